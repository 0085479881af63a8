//! Probes: whether the server is still the one that was listed.

use std::time::Duration;

use informer_model::ResourceVersion;
use rand::RngExt;

use super::{Action, COUNTING, Machine, PROBE_JITTER, State};
use crate::{
    reflector::{Problem, Remedy},
    source::{ListOptions, PageEnd, SourceError},
};

impl Machine {
    /// A watch is open, or a list is complete: from now on the server is asked once in a while.
    pub(super) fn schedule_probes(&mut self, now: Duration) {
        self.assured = now;
        if let Some(period) = self.settings.probe_period {
            self.count_at = now.saturating_add(self.jittered(period.saturating_mul(COUNTING)));
            self.probe_at = Some(now.saturating_add(self.jittered(period)));
        }
    }

    /// What chance makes of a period: many reflectors that began together do not ask together.
    pub(super) fn jittered(&mut self, period: Duration) -> Duration {
        let part = self.rng.random_range(PROBE_JITTER..=1.0);
        Duration::try_from_secs_f64(period.as_secs_f64() * part).unwrap_or(Duration::MAX)
    }

    /// The server showed that it has not gone back in time.
    pub(super) fn assure(&mut self, at: Duration) {
        self.assured = self.assured.max(at);
    }

    /// The time of the next probe has come. A watch that goes on tells the server's version as well.
    pub(super) fn probe_if_needed(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let Some(period) = self.settings.probe_period else { return };
        let count = self.audit.counts() && (now >= self.count_at || self.audit.is_in_doubt());
        let needed = now.saturating_sub(self.assured).as_secs_f64() >= period.as_secs_f64() * PROBE_JITTER;
        if self.probing.is_some() {
            let error = SourceError::Unreachable("no answer".to_owned());
            actions.push(Action::Report(Problem::Probe(error), Remedy::GoOn));
        } else if !needed && !count {
            let assured = self.assured;
            self.probe_at = Some(assured.saturating_add(self.jittered(period)));
            return;
        }
        self.probe(now, !count, actions);
    }

    pub(super) fn probe(&mut self, now: Duration, version_only: bool, actions: &mut Vec<Action>) {
        self.probing = Some(self.last.clone());
        self.probe_at = self.settings.probe_period.map(|period| now.saturating_add(self.jittered(period)));
        let options = ListOptions { limit: Some(1), ..ListOptions::default() };
        actions.push(Action::Probe { options, version_only });
    }

    pub(super) fn vouched(&mut self, now: Duration, ago: Duration) {
        self.probing = None;
        self.assure(now.saturating_sub(ago));
        let assured = self.assured;
        self.probe_at =
            self.settings.probe_period.map(|period| assured.saturating_add(self.jittered(period)));
    }

    pub(super) fn probed(
        &mut self,
        now: Duration,
        answer: Result<(PageEnd, u64), SourceError>,
        actions: &mut Vec<Action>,
    ) {
        let (Some(sent), State::Watching(_)) = (self.probing.take(), &self.state) else { return };
        let (end, objects) = match answer {
            Ok(answer) => answer,
            Err(error) => {
                actions.push(Action::Report(Problem::Probe(error), Remedy::GoOn));
                return;
            }
        };
        // All that was seen before the question was asked is older than the answer, or time went backwards.
        if end.version < sent {
            // A list did not help: it is the version of lists that does not move, while the watch goes on.
            if self.rewound.as_ref() == Some(&end.version) {
                if !std::mem::replace(&mut self.rewound_again, true) {
                    let problem = Problem::VersionStuck { seen: sent, server: end.version };
                    actions.push(Action::Report(problem, Remedy::GoOn));
                }
                return;
            }
            (self.rewound, self.rewound_again) = (Some(end.version.clone()), false);
            self.last_unavailable = true;
            actions.push(Action::CloseWatch);
            let problem = Problem::Rewound { seen: sent, server: end.version };
            actions.push(Action::Report(problem, Remedy::ListNewest));
            self.begin_list(now, ResourceVersion::UNSET, actions);
            return;
        }
        (self.rewound, self.rewound_again) = (None, false);
        self.assure(now);
        if let Some(period) = self.settings.probe_period {
            self.count_at = now.saturating_add(self.jittered(period.saturating_mul(COUNTING)));
        }
        let total = match (end.remaining, end.continue_token) {
            (Some(remaining), _) => Some(objects + remaining),
            (None, None) => Some(objects),
            (None, Some(_)) => None,
        };
        self.audit.counting(total.is_some());
        if let Some(lost) = total.and_then(|total| self.audit.counted(end.version, total, &self.last)) {
            self.events_lost(now, lost, actions);
        }
    }

    pub(super) fn events_lost(&mut self, now: Duration, lost: Problem, actions: &mut Vec<Action>) {
        actions.push(Action::CloseWatch);
        actions.push(Action::Report(lost, Remedy::ListNewest));
        self.probing = None;
        self.last_unavailable = true;
        self.begin_list(now, ResourceVersion::UNSET, actions);
    }
}
