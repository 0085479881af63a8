//! What a candidate has seen of the Lease, and since when it looks that way.

use std::time::Duration;

use super::{Action, Claim, Machine, Record, Stored};

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
        let record = lease.as_ref().map(|lease| &lease.record);
        if let Some(record) = record {
            self.known = true;
            self.highest = self.highest.max(record.token());
            // Somebody else was faster. Should the claim be written all the same, it does not count any more.
            let beaten = |claim: &mut Claim| record.token() >= claim.token;
            if !self.is_own(record) {
                self.claim.take_if(beaten);
            }
            let holder = record.holder();
            if holder.is_some() && holder != self.leader.as_deref() {
                self.leader = holder.map(str::to_owned);
                actions.extend(self.leader.clone().map(Action::NewLeader));
            }
        }
        let before = self.sight.take();
        let own = self.settings.lease_duration;
        let unchanged = before.as_ref().filter(|before| before.record() == record);
        let (since, patience) = match (unchanged, record) {
            (Some(before), _) => (before.since, before.patience),
            (None, Some(record)) => (now, record.duration().unwrap_or(own)),
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
            Some(record) => expired || record.holder().is_none() || self.is_own(record),
        }
    }

    /// Whether this process has written the record, and not one before it with the same identity.
    pub(super) fn is_own(&self, record: &Record) -> bool {
        self.claim.is_some_and(|claim| {
            record.holder() == Some(&self.settings.identity)
                && record.token() == claim.token
                && record.acquired == Some(claim.acquired)
        })
    }
}

impl Sight {
    pub(super) fn record(&self) -> Option<&Record> {
        self.lease.as_ref().map(|lease| &lease.record)
    }
}
