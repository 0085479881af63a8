//! Probes: whether the server is still the one that was listed.

use std::time::Duration;

use informer_model::ResourceVersion;

use super::{Action, Machine, State};
use crate::{
    reflector::{Problem, Remedy},
    source::{ListOptions, PageEnd, SourceError},
};

impl Machine {
    pub(super) fn probe(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.probing = Some(self.last.clone());
        self.probe_at = self.next_probe(now);
        actions.push(Action::Probe(ListOptions { limit: Some(1), ..ListOptions::default() }));
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
            self.last_unavailable = true;
            actions.push(Action::CloseWatch);
            let problem = Problem::Rewound { seen: sent, server: end.version };
            actions.push(Action::Report(problem, Remedy::ListNewest));
            self.begin_list(now, ResourceVersion::UNSET, actions);
            return;
        }
        let total = match (end.remaining, end.continue_token) {
            (Some(remaining), _) => Some(objects + remaining),
            (None, None) => Some(objects),
            (None, Some(_)) => None,
        };
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
