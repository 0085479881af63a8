//! Watches: opening them, what they tell, and how they end.

use std::time::Duration;

use informer_model::{ResourceVersion, Status};
use rand::RngExt;

use super::{Action, LONGEST_WATCH, Machine, QUIET_MINUTE, SHORT_WATCH, State, Watching};
use crate::{
    reflector::{Problem, Remedy},
    source::{ListOptions, SourceError, WatchChange},
};

impl Machine {
    pub(super) fn watch_timeout(&mut self) -> Duration {
        let least = self.settings.watch_timeout.as_secs().clamp(1, LONGEST_WATCH);
        Duration::from_secs(self.rng.random_range(least..=2 * least))
    }

    pub(super) fn begin_watch(&mut self, now: Duration, suspicious: bool, actions: &mut Vec<Action>) {
        let timeout = self.watch_timeout();
        actions.push(Action::Watch(ListOptions {
            resource_version: self.last.clone(),
            allow_watch_bookmarks: true,
            timeout: Some(timeout),
            ..ListOptions::default()
        }));
        let unordered = self.last.is_unset() || self.last == ResourceVersion::ANY;
        self.state = State::Watching(Watching {
            opened: None,
            timeout,
            events: false,
            heard: now,
            unordered,
            suspicious,
        });
    }

    pub(super) fn opened(&mut self, now: Duration, actions: &mut Vec<Action>) {
        match &mut self.state {
            State::Streaming { opened, quiet_since, .. } => (*opened, *quiet_since) = (true, now),
            State::Watching(watching) => {
                watching.opened = Some(now);
                watching.heard = now;
                let suspicious = watching.suspicious;
                // Watches that never last as long as the period do not put the probe off.
                if self.probe_at.is_none() {
                    self.schedule_probes(now);
                }
                if suspicious && self.probe_at.is_some() {
                    self.probe(now, false, actions);
                }
            }
            _ => {}
        }
    }

    pub(super) fn refused(&mut self, now: Duration, error: SourceError, actions: &mut Vec<Action>) {
        match &self.state {
            State::Streaming { asked, .. } => {
                let asked = asked.clone();
                self.streaming_failed(now, &asked, error, true, actions);
            }
            State::Watching(watching) => {
                let suspicious = watching.suspicious || matches!(error, SourceError::Refused(_));
                self.watch_failed(now, error, suspicious, Problem::WatchRefused, actions);
            }
            _ => {}
        }
    }

    /// A watch failed with an error of the server, or could not be opened. Some of these mean only that it
    /// should be tried again; after all others the list is repeated.
    pub(super) fn watch_failed(
        &mut self,
        now: Duration,
        error: SourceError,
        suspicious: bool,
        problem: fn(SourceError) -> Problem,
        actions: &mut Vec<Action>,
    ) {
        let status = error.status();
        let at_least = status.and_then(Status::retry_after);
        let busy = status.is_some_and(Status::is_too_many_requests);
        let internal = status.is_some_and(|status| status.code == 500);
        if busy || matches!(error, SourceError::Refused(_)) || (internal && self.tolerates_internal(now)) {
            self.rewatch_later(now, problem(error), at_least, suspicious, actions);
        } else {
            self.end_round(now, problem(error), at_least, actions);
        }
    }

    /// Whether an internal error is within the time for which they are to be tolerated.
    pub(super) fn tolerates_internal(&mut self, now: Duration) -> bool {
        let (first, _) = match self.internal_errors {
            Some((first, last)) if now.saturating_sub(last) < QUIET_MINUTE => (first, last),
            _ => (now, now),
        };
        self.internal_errors = Some((first, now));
        let window = self.settings.internal_error_retry;
        !window.is_zero() && now.saturating_sub(first) <= window
    }

    pub(super) fn event(
        &mut self,
        now: Duration,
        change: WatchChange,
        version: ResourceVersion,
        actions: &mut Vec<Action>,
    ) {
        match &mut self.state {
            State::Streaming { objects, quiet_since, .. } => {
                *quiet_since = now;
                *objects += match change {
                    WatchChange::Added => 1,
                    WatchChange::Modified => 0,
                    WatchChange::Deleted => -1,
                };
                actions.push(Action::Collect);
            }
            State::Watching(watching) => {
                (watching.events, watching.heard) = (true, now);
                if change != WatchChange::Added {
                    watching.unordered = false;
                }
                if watching.unordered {
                    actions.push(Action::Apply);
                    return;
                }
                // The first ordered event after unordered ones has nothing to be compared with.
                if version <= self.last {
                    actions.push(Action::ApplyLate(self.last.clone()));
                    return;
                }
                if let Some(lost) = self.audit.passing(&version, false) {
                    self.events_lost(now, lost, actions);
                    return;
                }
                self.audit.applied(change);
                if !version.is_unset() {
                    self.last = version;
                    self.assure(now);
                }
                actions.push(Action::Apply);
            }
            _ => {}
        }
    }

    pub(super) fn bookmark(
        &mut self,
        now: Duration,
        version: ResourceVersion,
        end: bool,
        actions: &mut Vec<Action>,
    ) {
        match &mut self.state {
            State::Streaming { quiet_since, objects, .. } => {
                *quiet_since = now;
                if end && !version.is_unset() {
                    let objects = u64::try_from(*objects).unwrap_or_default();
                    self.replaced(version, objects, actions);
                    self.state = State::Watching(Watching {
                        opened: Some(now),
                        timeout: self.settings.watch_timeout.saturating_mul(2),
                        events: true,
                        heard: now,
                        unordered: false,
                        suspicious: false,
                    });
                    self.schedule_probes(now);
                }
            }
            State::Watching(watching) => {
                (watching.events, watching.heard, watching.unordered) = (true, now, false);
                if version.is_unset() || version < self.last {
                    actions.push(Action::Skip("a bookmark that is older than what was seen".to_owned()));
                    return;
                }
                if let Some(lost) = self.audit.passing(&version, true) {
                    self.events_lost(now, lost, actions);
                    return;
                }
                self.last = version.clone();
                self.assure(now);
                actions.push(Action::Bookmark(version));
            }
            _ => {}
        }
    }

    /// Something came that is no event. A watch that has nothing else is not one to come back to at once.
    pub(super) fn hear(&mut self, now: Duration) {
        match &mut self.state {
            State::Streaming { quiet_since, .. } => *quiet_since = now,
            State::Watching(watching) => watching.heard = now,
            _ => {}
        }
    }

    pub(super) fn error_event(&mut self, now: Duration, status: Status, actions: &mut Vec<Action>) {
        match &self.state {
            State::Streaming { asked, .. } => {
                let asked = asked.clone();
                actions.extend([Action::CloseWatch, Action::Discard]);
                self.streaming_failed(now, &asked, status.into(), false, actions);
            }
            State::Watching(_) => {
                actions.push(Action::CloseWatch);
                self.watch_failed(now, status.into(), false, Problem::WatchFailed, actions);
            }
            _ => {}
        }
    }

    pub(super) fn closed(&mut self, now: Duration, error: Option<SourceError>, actions: &mut Vec<Action>) {
        match (&self.state, error) {
            // Not even its beginning makes sense: the server does not know what it was asked for.
            (State::Streaming { asked, objects: 0, .. }, Some(error @ SourceError::Malformed(_))) => {
                let asked = asked.clone();
                actions.push(Action::Discard);
                self.streaming_refused = true;
                self.streaming_failed(now, &asked, error, true, actions);
            }
            (State::Streaming { .. }, error) => {
                actions.push(Action::Discard);
                self.list_this_round = true;
                let problem = error.map_or(Problem::StreamingEnded, Problem::Streaming);
                self.end_round(now, problem, None, actions);
            }
            (State::Watching(watching), error) => {
                let lived = watching.opened.map_or(Duration::ZERO, |opened| now.saturating_sub(opened));
                let short = !watching.events && lived < SHORT_WATCH;
                self.probing = None;
                match error {
                    // Bytes that make no sense may come again at the same place: only a list gets past it.
                    Some(error @ SourceError::Malformed(_)) => {
                        self.end_round(now, Problem::WatchFailed(error), None, actions);
                    }
                    Some(error) if short => self.end_round(now, Problem::WatchFailed(error), None, actions),
                    None if short => self.end_round(now, Problem::ShortWatch, None, actions),
                    Some(error) => {
                        let remedy = Remedy::Rewatch(Duration::ZERO);
                        actions.push(Action::Report(Problem::WatchFailed(error), remedy));
                        self.begin_watch(now, true, actions);
                    }
                    None => self.begin_watch(now, false, actions),
                }
            }
            _ => {}
        }
    }
}
