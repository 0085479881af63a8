//! What a candidate has seen of the Lease, and since when it looks that way.

use std::time::Duration;

use super::{Action, Machine, Record, Stored};

/// The Lease as it was last seen.
#[derive(Debug)]
pub(super) struct Sight {
    /// Nothing if there was none.
    pub(super) lease: Option<Stored>,
    /// When it was first seen to say this, on this candidate's own clock.
    since: Duration,
    /// For how long from then on somebody may lead whom this candidate does not hear of.
    patience: Duration,
}

impl Machine {
    pub(super) fn observe(&mut self, now: Duration, lease: Option<Stored>, actions: &mut Vec<Action>) {
        if let Some(stored) = &lease {
            self.known = true;
            self.highest = self.highest.max(stored.record.count());
            // Somebody else was faster. Should the claim be written all the same, it does not count any more.
            if !self.is_own(stored) {
                self.claim.take_if(|claim| claim.version != Some(stored.version));
            }
            let holder = stored.record.holder();
            if holder.is_some() && holder != self.leader.as_deref() {
                self.leader = holder.map(str::to_owned);
                actions.extend(self.leader.clone().map(Action::NewLeader));
            }
        }
        let (before, own) = (self.sight.take(), self.settings.lease_duration);
        let says =
            |lease: &Option<Stored>| lease.as_ref().map(|lease| (lease.record.clone(), lease.uid.clone()));
        let unchanged = before.as_ref().filter(|before| says(&before.lease) == says(&lease));
        let (since, patience) = match (unchanged, &lease) {
            (Some(before), _) => (before.since, before.patience),
            (None, Some(lease)) => (now, lease.record.duration().unwrap_or(own)),
            // Who held it when it was deleted may lead on for a while.
            (None, None) => (now, before.map_or(own, |before| before.patience.max(own))),
        };
        self.sight = Some(Sight { lease, since, patience });
        self.fresh = true;
    }

    /// Whether the Lease as it was seen may be taken. That it is still so, the server checks when it is written.
    pub(super) fn may_take(&self, sight: &Sight, now: Duration) -> bool {
        let expired = now.saturating_sub(sight.since) >= sight.patience;
        match sight.record() {
            None => expired || !self.known,
            // A term of this very process is over when it is a candidate.
            Some(record) => expired || record.holder().is_none() || self.own(sight).is_some(),
        }
    }

    /// The Lease in sight, if it is this process's.
    pub(super) fn own<'a>(&self, sight: &'a Sight) -> Option<&'a Stored> {
        sight.lease.as_ref().filter(|lease| self.is_own(lease))
    }

    /// Whether this process has written what the Lease says, and not one before it with the same identity, and into this very
    /// Lease: one that was brought back after a deletion may say the same.
    pub(super) fn is_own(&self, Stored { record, uid, .. }: &Stored) -> bool {
        self.claim.as_ref().is_some_and(|claim| {
            record.holder() == Some(&self.settings.identity)
                && record.transitions == Some(claim.transitions)
                && record.acquired == Some(claim.acquired)
                && claim.uid.as_ref().is_none_or(|known| known == uid)
        })
    }
}

impl Sight {
    pub(super) fn record(&self) -> Option<&Record> {
        self.lease.as_ref().map(|lease| &lease.record)
    }
}
