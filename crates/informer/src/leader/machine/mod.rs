//! What a candidate does next: every rule of the election, and nothing else.
//!
//! In come [`Input`]s with the moment at which they happened: an answer of the server, a timer, the wish to resign.
//! Out come [`Action`]s, to be carried out in their order. There is no clock, no network and no task, so whole elections
//! with pauses, lost answers and clocks that run differently are played from a seed (`tests/it/leader`).
//!
//! One request is under way at a time. Only a write that was answered counts: after any other end of a request the
//! candidate looks again before it believes anything. The wall clock is written into the Lease for people to read, and
//! decides nothing.

mod record;
mod round;
mod sight;

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

pub use self::record::{Record, Stored};
use self::sight::Sight;
use super::{leadership::Lost, problem::ElectionProblem};

/// A candidate waits for the retry period and for up to so much more of it, as chance has it.
pub(super) const JITTER: f64 = 1.2;

/// No request takes longer, however late the deadline.
const LONGEST_REQUEST: Duration = Duration::from_secs(30);

/// What the rules need to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What stands in the Lease while this candidate leads.
    pub identity: String,
    /// How long others wait without seeing a change before they take the Lease.
    pub lease_duration: Duration,
    /// How long a term lasts from the moment at which its last answered renewal was sent.
    pub renew_deadline: Duration,
    /// How long to wait between two attempts.
    pub retry_period: Duration,
    /// Whether the Lease is given back after resigning.
    pub release: bool,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The candidate begins.
    Start,
    /// The request that is under way was answered, or failed.
    Answer(Answer),
    /// The time of [`Machine::deadline`] has come.
    Timer,
    /// The work has ended, and the candidate wants no further term.
    Resign,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The Lease as it was read, or as it was written.
    Lease(Stored),
    /// There is no such Lease.
    Absent,
    /// Somebody else has written first.
    Conflict,
    /// It was refused, or nobody knows what became of it.
    Failed(ElectionProblem),
}

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Read the Lease.
    Get,
    /// Create the Lease.
    Create(Record),
    /// Write the Lease over the one of this version.
    Update(Record, u64),
    /// Give up the request that is under way.
    Abandon,
    /// Somebody leads who did not before.
    NewLeader(String),
    /// A term begins.
    Gained(Term),
    /// The term goes on.
    Renewed(Term),
    /// The term is over.
    Lost(Lost),
    /// Tell that something is wrong.
    Report(ElectionProblem),
    /// Tell that nothing is wrong any more.
    Recovered,
    /// There is nothing more to do.
    Done,
}

/// A term of leadership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// What tells this term from all others: the version of the Lease that it began with. A later term has a greater one.
    pub token: u64,
    /// When it ends unless it is renewed.
    pub valid_until: Duration,
}

impl Term {
    /// Whether the term lasts at this moment.
    pub fn holds(&self, now: Duration) -> bool {
        now < self.valid_until
    }
}

/// The rules of a candidate, and where it stands.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    rng: Pcg32,
    role: Role,
    request: Option<Request>,
    /// When the next attempt is due, while no request is under way.
    next_try: Duration,
    /// This attempt has already looked a second time.
    looked_again: bool,
    sight: Option<Sight>,
    /// Whether the version in sight is the newest one that this candidate can know of.
    fresh: bool,
    /// There may have been a Lease: one was seen, or its creation was asked for and not refused.
    known: bool,
    /// The highest count of terms that was seen.
    highest: i32,
    /// The newest term that was asked for, granted or not.
    claim: Option<Claim>,
    /// Who was last told to lead.
    leader: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    /// Until [`Input::Start`].
    Idle,
    /// Then: leading, or done.
    Candidate,
    /// Then: a candidate again, or releasing.
    Leading(Term),
    /// Gives the Lease back, and tries no longer than this. Then: done.
    Releasing {
        until: Duration,
    },
    Done,
}

#[derive(Debug)]
struct Request {
    purpose: Purpose,
    sent: Duration,
    /// The version that it is to replace.
    version: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Purpose {
    Look,
    Acquire,
    Renew,
    Release,
}

/// What only this process can have written into the Lease.
#[derive(Debug, Clone)]
struct Claim {
    transitions: i32,
    acquired: i64,
    /// The version that it is to replace, if it does not make the Lease.
    version: Option<u64>,
    /// The Lease that it is in, as far as that is known.
    uid: Option<String>,
}

impl Machine {
    /// A candidate that has not begun. The seed decides all that is left to chance.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            settings,
            rng: Pcg32::seed_from_u64(seed),
            role: Role::Idle,
            request: None,
            next_try: Duration::ZERO,
            looked_again: false,
            sight: None,
            fresh: false,
            known: false,
            highest: 0,
            claim: None,
            leader: None,
        }
    }

    /// Takes what happened at `now` (since any fixed moment, on a clock that never goes back) and says what to do.
    /// `wall` is the time to write into the Lease, in microseconds.
    pub fn handle(&mut self, now: Duration, wall: i64, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Role::Leading(term) = self.role
            && !term.holds(now)
        {
            self.lose(now, Lost::Deadline(self.settings.renew_deadline), &mut actions);
        }
        match input {
            Input::Start if self.role == Role::Idle => {
                self.role = Role::Candidate;
                self.look(now, &mut actions);
            }
            Input::Start => {}
            Input::Timer => self.timer(now, wall, &mut actions),
            Input::Answer(answer) => {
                if let Some(request) = self.request.take() {
                    self.answered(now, wall, request, answer, &mut actions);
                }
            }
            Input::Resign => self.resign(now, wall, &mut actions),
        }
        actions
    }

    /// When [`Input::Timer`] is to come next, if nothing happens before.
    pub fn deadline(&self) -> Option<Duration> {
        let attempt = match &self.request {
            Some(request) => request.sent.saturating_add(self.request_limit()),
            None => self.next_try,
        };
        match self.role {
            Role::Idle | Role::Done => None,
            Role::Candidate => Some(attempt),
            Role::Leading(term) => Some(attempt.min(term.valid_until)),
            Role::Releasing { until } => Some(attempt.min(until)),
        }
    }

    /// How long a request may take: a leader whose request hangs can try once more.
    fn request_limit(&self) -> Duration {
        LONGEST_REQUEST.min(self.settings.renew_deadline / 2)
    }

    fn timer(&mut self, now: Duration, wall: i64, actions: &mut Vec<Action>) {
        let limit = self.request_limit();
        if let Role::Releasing { until } = self.role
            && now >= until
        {
            self.abandon(actions);
            self.end(actions);
        } else if let Some(request) =
            self.request.take_if(|request| now.saturating_sub(request.sent) >= limit)
        {
            actions.push(Action::Abandon);
            let silence = ElectionProblem::NoAnswer(limit);
            self.answered(now, wall, request, Answer::Failed(silence), actions);
        } else if self.request.is_none() && now >= self.next_try {
            self.looked_again = false;
            match self.role {
                Role::Leading(_) if self.fresh => self.decide(now, wall, actions),
                Role::Leading(_) | Role::Candidate => self.look(now, actions),
                Role::Releasing { .. } => self.end(actions),
                Role::Idle | Role::Done => {}
            }
        }
    }

    fn resign(&mut self, now: Duration, wall: i64, actions: &mut Vec<Action>) {
        let led = matches!(self.role, Role::Leading(_));
        if led {
            actions.push(Action::Lost(Lost::Resigned));
        }
        // A request to acquire that is under way may be granted.
        let claiming = self.request.as_ref().is_some_and(|request| request.purpose == Purpose::Acquire);
        match self.role {
            Role::Leading(_) | Role::Candidate if self.settings.release && (led || claiming) => {
                self.role = Role::Releasing { until: now.saturating_add(self.request_limit()) };
                self.looked_again = false;
                if self.request.is_none() && self.fresh {
                    self.decide(now, wall, actions);
                } else if self.request.is_none() {
                    self.look(now, actions);
                }
            }
            Role::Releasing { .. } | Role::Done => {}
            Role::Idle | Role::Candidate | Role::Leading(_) => {
                self.abandon(actions);
                self.end(actions);
            }
        }
    }

    fn lose(&mut self, now: Duration, why: Lost, actions: &mut Vec<Action>) {
        self.abandon(actions);
        self.role = Role::Candidate;
        actions.push(Action::Lost(why));
        self.wait(now);
    }

    fn end(&mut self, actions: &mut Vec<Action>) {
        self.role = Role::Done;
        actions.push(Action::Done);
    }

    fn abandon(&mut self, actions: &mut Vec<Action>) {
        if self.request.take().is_some() {
            self.fresh = false;
            actions.push(Action::Abandon);
        }
    }

    /// Puts the next attempt off. Candidates come at different times, a leader comes in time.
    fn wait(&mut self, now: Duration) {
        let period = self.settings.retry_period;
        let longer = match self.role {
            Role::Leading(_) => Duration::ZERO,
            _ => Duration::try_from_secs_f64(period.as_secs_f64() * JITTER * self.rng.random::<f64>())
                .unwrap_or(period),
        };
        self.next_try = now.saturating_add(period).saturating_add(longer);
    }
}
