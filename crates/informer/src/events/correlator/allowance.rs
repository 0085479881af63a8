//! How many new events an object may have: some at once, and one more every few minutes.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::Recent;
use crate::events::{Limits, event::Topic};

#[derive(Debug)]
pub(super) struct Allowances {
    refill: Duration,
    most: Duration,
    spent: Recent<Holder, Spent>,
}

/// Who has an allowance: an object, for a type, so that what is normal does not use up the room for warnings.
#[derive(Debug, Clone)]
struct Holder(Arc<Topic>);

/// How much was spent, as the time until all of it is back.
#[derive(Debug)]
struct Spent {
    amount: Duration,
    at: Instant,
}

impl Allowances {
    pub(super) fn new(limits: &Limits) -> Self {
        let most = limits.refill.saturating_mul(limits.burst);
        Self { refill: limits.refill, most, spent: Recent::new(limits.tracked) }
    }

    /// Takes one, if there is one left.
    pub(super) fn take(&mut self, topic: &Arc<Topic>, now: Instant) -> bool {
        let holder = Holder(Arc::clone(topic));
        let spent = self
            .spent
            .get(&holder)
            .map_or(Duration::ZERO, |spent| spent.amount.saturating_sub(now.duration_since(spent.at)));
        let amount = spent.saturating_add(self.refill);
        let allowed = amount <= self.most;
        if allowed {
            self.spent.insert(holder, Spent { amount, at: now });
        }
        allowed
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.spent.len()
    }
}

impl PartialEq for Holder {
    fn eq(&self, other: &Self) -> bool {
        self.0.type_ == other.0.type_ && self.0.regarding == other.0.regarding
    }
}

impl Eq for Holder {}

impl Hash for Holder {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.type_, &self.0.regarding).hash(state);
    }
}
