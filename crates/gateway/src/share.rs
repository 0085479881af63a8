//! How much each caller holds of what there is only so much of: connections, streams, encoders, answers that are being read.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::work::Account;

/// How much may be held: of one caller, and in all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) of_one: usize,
    pub(crate) in_all: usize,
}

/// There is no room for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    OfOne(usize),
    InAll(usize),
}

/// What callers hold.
pub(crate) struct Shares<K: Eq + Hash = Account> {
    limits: Limits,
    held: Mutex<Held<K>>,
}

struct Held<K> {
    of_each: HashMap<K, usize>,
    in_all: usize,
}

/// A part of it, which is free again when this is dropped.
pub(crate) struct Share<K: Eq + Hash = Account> {
    shares: Arc<Shares<K>>,
    who: K,
    amount: usize,
}

impl<K: Eq + Hash + Clone> Shares<K> {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        let held = Mutex::new(Held { of_each: HashMap::new(), in_all: 0 });
        Arc::new(Self { limits, held })
    }

    /// How much is held in all.
    pub(crate) fn held(&self) -> usize {
        self.lock().in_all
    }

    /// So much more for a caller, if there is room. What is larger than a limit is given to who holds nothing.
    pub(crate) fn take(self: &Arc<Self>, who: &K, amount: usize) -> Result<Share<K>, Full> {
        let Limits { of_one, in_all } = self.limits;
        let fits = |held: usize, limit: usize| held + amount.min(limit.max(1)) <= limit;
        let mut held = self.lock();
        let own = held.of_each.get(who).copied().unwrap_or_default();
        if !fits(own, of_one) {
            return Err(Full::OfOne(of_one));
        }
        if !fits(held.in_all, in_all) {
            return Err(Full::InAll(in_all));
        }
        held.of_each.insert(who.clone(), own + amount);
        held.in_all += amount;
        Ok(Share { shares: Arc::clone(self), who: who.clone(), amount })
    }
}

impl<K: Eq + Hash> Shares<K> {
    fn lock(&self) -> MutexGuard<'_, Held<K>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut held = self.shares.lock();
        held.in_all -= self.amount;
        if let Some(own) = held.of_each.get_mut(&self.who) {
            *own -= self.amount;
            if *own == 0 {
                held.of_each.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> Account {
        Account::User(name.into())
    }

    #[test]
    fn nobody_holds_so_much_that_others_have_nothing() {
        let (shares, eve) = (Shares::new(Limits { of_one: 32, in_all: 128 }), account("eve"));
        let mut hers: Vec<Share> = (0..1_000).map_while(|_| shares.take(&eve, 1).ok()).collect();
        assert_eq!((hers.len(), shares.take(&eve, 1).err()), (32, Some(Full::OfOne(32))));
        let crowd = (0..1_000).map(|n| account(&n.to_string()));
        let others: Vec<Share> = crowd.map_while(|account| shares.take(&account, 1).ok()).collect();
        assert_eq!(others.len(), 96, "and all together have no more than there is");
        hers.pop();
        assert!(shares.take(&eve, 2).is_err());
        assert!(shares.take(&eve, 1).is_ok(), "what has ended makes room");
        drop((hers, others));
        assert_eq!(shares.held(), 0);
        assert!(shares.lock().of_each.is_empty());
    }

    #[test]
    fn what_is_larger_than_a_limit_is_for_who_holds_nothing() {
        let (shares, eve) = (Shares::new(Limits { of_one: 10, in_all: 100 }), account("eve"));
        let large = shares.take(&eve, 50).ok();
        assert!(large.is_some());
        assert_eq!(shares.take(&eve, 1).err(), Some(Full::OfOne(10)));
        assert!(shares.take(&account("ann"), 10).is_ok());
        assert_eq!(shares.take(&account("ann"), 60).err(), Some(Full::InAll(100)));
        drop(large);
        assert!(shares.take(&account("ann"), 1_000).is_ok());
        let none = Shares::new(Limits { of_one: 0, in_all: 0 });
        assert!(none.take(&eve, 1).is_err());
    }
}
