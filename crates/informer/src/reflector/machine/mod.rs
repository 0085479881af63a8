//! What a reflector does next: every rule of listing and watching, and nothing else.
//!
//! In come [`Input`]s with the time at which they happened: a page is there, a watch broke, a timer ran out.
//! Out come [`Action`]s, to be carried out in their order. Objects do not pass through here, only what
//! has to be known of them; there is no clock, no network and no task. So each rule is a line in a scenario
//! (`tests/scenarios`), and a history is the same every time it is played.
//!
//! A *round* is a list, or a streaming list, and the watches after it. A failure ends the round unless
//! it is one of those after which a watch can go on where it was. Between two rounds lies a delay.

mod listing;
mod probing;
mod watching;

use std::time::Duration;

use informer_model::{ResourceVersion, Status};
use rand::SeedableRng;
use rand_pcg::Pcg32;

use super::{
    audit::Audit,
    problem::{Problem, Remedy},
    settings::ReflectorSettings,
};
use crate::{
    backoff::Delays,
    source::{ListOptions, PageEnd, SourceError, WatchChange},
};

/// How many objects a page has by default.
const PAGE_SIZE: u32 = 500;
/// A watch that closes sooner, without an event, is a failure.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// How long after its timeout a watch without an event is given up.
const WATCH_GRACE: Duration = Duration::from_secs(5);
/// How long a watch may take to be opened.
const OPENING: Duration = Duration::from_secs(60);
/// How long a list may bring nothing. A server may think for a while before it begins.
const LIST_SILENCE: Duration = Duration::from_secs(90);
/// How long a streaming list may say nothing before it is complete.
const STREAMING_SILENCE: Duration = Duration::from_secs(30);
/// A server's `Retry-After` counts up to this, so that a typo in it cannot stop an informer for good.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);
/// No watch is asked to last longer, in seconds: servers read a number that fits.
const LONGEST_WATCH: u64 = i32::MAX as u64 / 2;
/// In so many probe periods the objects are counted once.
const COUNTING: u32 = 10;
/// A probe comes when the last part of its period has begun, each at another moment of it: from here on.
const PROBE_JITTER: f64 = 0.75;
/// After this long without one, an internal error is the first of a new series.
const QUIET_MINUTE: Duration = Duration::from_secs(60);

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The reflector begins.
    Start,
    /// The list brought something. Once in a while is enough.
    ListGoesOn,
    /// A page of the list is complete.
    Page {
        /// What the server says of it.
        end: PageEnd,
        /// How many objects it had, usable or not.
        objects: u64,
    },
    /// The list failed.
    ListFailed(SourceError),
    /// The watch is open.
    WatchOpened,
    /// The watch could not be opened.
    WatchRefused(SourceError),
    /// The watch told of an object, usable or not.
    Event(WatchChange, ResourceVersion),
    /// An event that was to be [applied late](Action::ApplyLate) has been: the cache had an older state of its object.
    AppliedLate(WatchChange),
    /// The watch told that everything up to a version has been told, and perhaps that all that existed has.
    Bookmark(ResourceVersion, bool),
    /// The watch ends with an error in the stream.
    ErrorEvent(Status),
    /// The watch told something that has no business there, namely this.
    Foreign(String),
    /// The watch is closed, by the server or by a failure.
    WatchClosed(Option<SourceError>),
    /// The source panicked, and what it was asked for is lost. The panic said this.
    Panicked(String),
    /// The probe was answered: what the list said of itself, and how many objects it had.
    Probed(Result<(PageEnd, u64), SourceError>),
    /// The probe was not needed: so long ago somebody else heard of the same server that it has the version that was
    /// reached, or a later one.
    Vouched(Duration),
    /// The time of [`Machine::deadline`] has come.
    Timer,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Ask for a page of the list, and keep what it brings until [`Replace`](Self::Replace).
    List(ListOptions),
    /// Give up the list that was asked for.
    CancelList,
    /// Open a watch.
    Watch(ListOptions),
    /// Ask for a list of one object, beside the watch, to learn the server's version and its number of objects.
    Probe {
        /// What to ask for.
        options: ListOptions,
        /// Whether nobody need ask if somebody else knows that the server has not gone back in time.
        version_only: bool,
    },
    /// Close the watch.
    CloseWatch,
    /// Keep what the event tells for the list that is being made.
    Collect,
    /// Forget what was kept for a list.
    Discard,
    /// What was kept is all that there is, at this version.
    Replace(ResourceVersion),
    /// Apply the event.
    Apply,
    /// Apply the event if the cache has an older state of its object, and only then: everything up to this version
    /// had been told before it.
    ApplyLate(ResourceVersion),
    /// Every change up to this version has been applied.
    Bookmark(ResourceVersion),
    /// Do not apply the event, for this reason.
    Skip(String),
    /// Tell that something went wrong, and what is done about it.
    Report(Problem, Remedy),
}

/// What a reflector is doing, for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// It has not begun.
    Idle,
    /// It asks for a list.
    Listing,
    /// It takes a list as a stream.
    Streaming,
    /// It watches, or opens a watch.
    Watching,
    /// It waits after a failure.
    Waiting,
}

/// The rules of a reflector, and where it stands.
#[derive(Debug)]
pub struct Machine {
    settings: ReflectorSettings,
    rng: Pcg32,
    delays: Delays,
    state: State,
    /// The version that has been reached; unset before the first list.
    last: ResourceVersion,
    /// The server does not have that version: the next list is to ask for the newest.
    last_unavailable: bool,
    /// The server answers pages even to a list at version "0".
    pages_at_zero: bool,
    /// The server refuses streaming lists.
    streaming_refused: bool,
    /// This round is to begin with a list whatever was configured.
    list_this_round: bool,
    /// Since when internal errors are tolerated, and when the last one came.
    internal_errors: Option<(Duration, Duration)>,
    /// When it is to be seen whether a probe is needed.
    probe_at: Option<Duration>,
    /// When the server last showed that it has not gone back in time.
    assured: Duration,
    /// When the objects are to be counted next.
    count_at: Duration,
    /// The version at which the server said to be when it had gone back in time, as long as it says nothing better.
    rewound: Option<ResourceVersion>,
    /// It said so again after a list: its word is not taken any more until it changes.
    rewound_again: bool,
    /// The version that was reached when the probe was sent that is not yet answered.
    probing: Option<ResourceVersion>,
    audit: Audit,
}

/// A field is in the state in which it means something.
#[derive(Debug)]
enum State {
    /// Until [`Input::Start`].
    Idle,
    /// A page was asked for. Then: the next page, or a watch, or waiting.
    Listing(Listing),
    /// A streaming list. Then: watching on the same stream, or a list, or waiting.
    Streaming { asked: ResourceVersion, objects: i64, opened: bool, quiet_since: Duration },
    /// A watch. Then: another one, or waiting.
    Watching(Watching),
    /// A delay. Then what it says.
    Waiting { until: Duration, then: Next },
}

#[derive(Debug)]
struct Listing {
    /// The version that the first page asked for.
    version: ResourceVersion,
    limit: Option<u32>,
    pages: u32,
    objects: u64,
    heard: Duration,
}

#[derive(Debug)]
struct Watching {
    /// When it was opened, once it is.
    opened: Option<Duration>,
    timeout: Duration,
    /// Whether an event came.
    events: bool,
    /// When the last one came, or it was opened or asked for.
    heard: Duration,
    /// It began without a version: what exists is told first, in no order.
    unordered: bool,
    /// The connection was lost before: the server may be another one, or another past, than it was.
    suspicious: bool,
}

#[derive(Debug, Clone, Copy)]
enum Next {
    Round,
    Rewatch { suspicious: bool },
}

impl Machine {
    /// A machine at its beginning. The seed decides all that is left to chance.
    pub fn new(settings: ReflectorSettings, seed: u64) -> Self {
        Self {
            rng: Pcg32::seed_from_u64(seed),
            delays: Delays::new(settings.backoff),
            state: State::Idle,
            last: ResourceVersion::UNSET,
            last_unavailable: false,
            pages_at_zero: false,
            streaming_refused: false,
            list_this_round: false,
            internal_errors: None,
            probe_at: None,
            assured: Duration::ZERO,
            count_at: Duration::ZERO,
            rewound: None,
            rewound_again: false,
            probing: None,
            audit: Audit::default(),
            settings,
        }
    }

    /// A machine that takes over where another one ended, at the version that it had reached.
    pub(crate) fn resume(mut self, last: ResourceVersion) -> Self {
        self.last = last;
        self
    }

    /// Takes what happened at `now` (since any fixed moment) and says what to do.
    ///
    /// An input that does not fit the state is one that crossed an action on its way, like the last event of a
    /// watch that is to be closed. It changes nothing.
    pub fn handle(&mut self, now: Duration, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        self.tell(now, input, &mut actions);
        actions
    }

    /// Like [`handle`](Self::handle); what to do goes into a list that is there: one for each event would be allocated.
    pub(crate) fn tell(&mut self, now: Duration, input: Input, actions: &mut Vec<Action>) {
        match input {
            Input::Start if matches!(self.state, State::Idle) => self.begin_round(now, actions),
            Input::Start => {}
            Input::ListGoesOn => {
                if let State::Listing(listing) = &mut self.state {
                    listing.heard = now;
                }
            }
            Input::Page { end, objects } => self.page(now, end, objects, actions),
            Input::ListFailed(error) => self.list_failed(now, error, actions),
            Input::WatchOpened => self.opened(now, actions),
            Input::WatchRefused(error) => self.refused(now, error, actions),
            Input::Event(change, version) => self.event(now, change, version, actions),
            Input::AppliedLate(change) => self.audit.applied_late(change),
            Input::Bookmark(version, end) => self.bookmark(now, version, end, actions),
            Input::ErrorEvent(status) => self.error_event(now, status, actions),
            Input::Foreign(what) => {
                self.hear(now);
                actions.push(Action::Skip(what));
            }
            Input::WatchClosed(error) => self.closed(now, error, actions),
            Input::Panicked(message) => self.panicked(now, message, actions),
            Input::Probed(answer) => self.probed(now, answer, actions),
            Input::Vouched(ago) => self.vouched(now, ago),
            Input::Timer => self.timer(now, actions),
        }
    }

    /// When [`Input::Timer`] is to come next, if nothing happens before.
    pub fn deadline(&self) -> Option<Duration> {
        match &self.state {
            State::Idle => None,
            State::Listing(listing) => Some(listing.heard + LIST_SILENCE),
            State::Streaming { quiet_since, .. } => Some(*quiet_since + STREAMING_SILENCE),
            State::Waiting { until, .. } => Some(*until),
            State::Watching(watching) => {
                let dead = watching.dead_at();
                let probe = self.probe_at.filter(|_| watching.opened.is_some());
                Some(probe.map_or(dead, |probe| probe.min(dead)))
            }
        }
    }

    /// The version that has been reached; unset before the first list.
    pub fn last_version(&self) -> &ResourceVersion {
        &self.last
    }

    /// What the reflector is doing.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Idle => Phase::Idle,
            State::Listing(_) => Phase::Listing,
            State::Streaming { .. } => Phase::Streaming,
            State::Watching(_) => Phase::Watching,
            State::Waiting { .. } => Phase::Waiting,
        }
    }

    fn begin_round(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let list = std::mem::take(&mut self.list_this_round);
        if self.settings.streaming && !self.streaming_refused && !list {
            let asked = if self.last_unavailable { ResourceVersion::UNSET } else { self.last.clone() };
            self.begin_streaming(now, asked, actions);
        } else {
            self.begin_list(now, self.list_version(), actions);
        }
    }

    fn list_version(&self) -> ResourceVersion {
        match (self.last_unavailable, self.last.is_unset()) {
            (true, _) => ResourceVersion::UNSET,
            (false, true) => ResourceVersion::ANY,
            (false, false) => self.last.clone(),
        }
    }

    /// Waits, then begins another round.
    fn end_round(
        &mut self,
        now: Duration,
        problem: Problem,
        at_least: Option<Duration>,
        actions: &mut Vec<Action>,
    ) {
        let remedy = Remedy::Relist(self.wait(now, at_least, Next::Round));
        actions.push(Action::Report(problem, remedy));
    }

    fn panicked(&mut self, now: Duration, message: String, actions: &mut Vec<Action>) {
        actions.push(match self.state {
            State::Idle | State::Waiting { .. } => return,
            State::Listing(_) => Action::CancelList,
            State::Streaming { .. } | State::Watching(_) => Action::CloseWatch,
        });
        actions.push(Action::Discard);
        self.end_round(now, Problem::Panicked(message), None, actions);
    }

    fn rewatch_later(
        &mut self,
        now: Duration,
        problem: Problem,
        at_least: Option<Duration>,
        suspicious: bool,
        actions: &mut Vec<Action>,
    ) {
        let remedy = Remedy::Rewatch(self.wait(now, at_least, Next::Rewatch { suspicious }));
        actions.push(Action::Report(problem, remedy));
    }

    fn wait(&mut self, now: Duration, at_least: Option<Duration>, then: Next) -> Duration {
        let at_least = at_least.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        let delay = self.delays.next(now, &mut self.rng).max(at_least);
        self.probing = None;
        self.state = State::Waiting { until: now.saturating_add(delay), then };
        delay
    }

    fn timer(&mut self, now: Duration, actions: &mut Vec<Action>) {
        match &self.state {
            State::Listing(listing) if now >= listing.heard + LIST_SILENCE => {
                let error = SourceError::Unreachable(format!("nothing came for {LIST_SILENCE:?}"));
                actions.push(Action::CancelList);
                self.list_failed(now, error, actions);
            }
            State::Streaming { quiet_since, .. } if now >= *quiet_since + STREAMING_SILENCE => {
                actions.extend([Action::CloseWatch, Action::Discard]);
                self.list_this_round = true;
                self.end_round(now, Problem::StreamingSilent(STREAMING_SILENCE), None, actions);
            }
            State::Waiting { until, then } if now >= *until => match *then {
                Next::Round => self.begin_round(now, actions),
                Next::Rewatch { suspicious } => self.begin_watch(now, suspicious, actions),
            },
            State::Watching(watching) if now >= watching.dead_at() => {
                let silent = now.saturating_sub(watching.heard);
                actions.push(Action::CloseWatch);
                let remedy = Remedy::Rewatch(Duration::ZERO);
                self.probing = None;
                if watching.opened.is_some() {
                    actions.push(Action::Report(Problem::SilentWatch(silent), remedy));
                    self.begin_watch(now, true, actions);
                } else {
                    let error = SourceError::Unreachable(format!("no answer within {OPENING:?}"));
                    self.rewatch_later(now, Problem::WatchRefused(error), None, true, actions);
                }
            }
            State::Watching(watching)
                if watching.opened.is_some() && self.probe_at.is_some_and(|at| now >= at) =>
            {
                self.probe_if_needed(now, actions);
            }
            _ => {}
        }
    }
}

impl Watching {
    /// When it is to be given up if nothing is heard of it.
    fn dead_at(&self) -> Duration {
        let patience = if self.opened.is_some() { self.timeout.saturating_add(WATCH_GRACE) } else { OPENING };
        self.heard.saturating_add(patience)
    }
}
