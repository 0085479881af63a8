//! A fair queue for a scarce resource: a caller with many requests waits behind its own, not before those of others.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// A number of turns at a time. Those who wait are served one after the other, round and round.
pub(crate) struct FairQueue<K: Eq + Hash + Clone> {
    limits: FairLimits,
    state: Mutex<State<K>>,
}

/// How many turns there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FairLimits {
    /// At a time, in all.
    pub(crate) at_a_time: usize,
    /// At a time, of one caller: the others find a free one at once.
    pub(crate) by_one: usize,
    /// How many may wait of one caller.
    pub(crate) waiting: usize,
}

struct State<K: Eq + Hash + Clone> {
    taken: usize,
    askers: HashMap<K, Asker<K>>,
    /// Those of whom somebody waits and may be served, the next one first.
    round: VecDeque<K>,
}

struct Asker<K: Eq + Hash + Clone> {
    taken: usize,
    waiting: VecDeque<oneshot::Sender<Turn<K>>>,
    in_round: bool,
}

/// Too many requests of this caller wait already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany;

/// A turn, which ends when this is dropped.
pub(crate) struct Turn<K: Eq + Hash + Clone> {
    queue: Arc<FairQueue<K>>,
    key: K,
}

impl<K: Eq + Hash + Clone> FairQueue<K> {
    pub(crate) fn new(limits: FairLimits) -> Arc<Self> {
        let state = State { taken: 0, askers: HashMap::new(), round: VecDeque::new() };
        Arc::new(Self { limits, state: Mutex::new(state) })
    }

    /// A turn for `key`, when there is one.
    pub(crate) async fn turn(self: &Arc<Self>, key: K) -> Result<Turn<K>, TooMany> {
        loop {
            let (sender, waiting) = oneshot::channel();
            {
                let mut state = self.state();
                let asker = state.askers.entry(key.clone()).or_insert_with(Asker::new);
                asker.waiting.retain(|waiting| !waiting.is_closed());
                if asker.waiting.len() >= self.limits.waiting {
                    return Err(TooMany);
                }
                asker.waiting.push_back(sender);
                state.enter_round(&key, self.limits.by_one);
            }
            self.serve();
            // The sender is dropped by a turn only.
            if let Ok(turn) = waiting.await {
                return Ok(turn);
            }
        }
    }

    /// Hands out what is free.
    fn serve(self: &Arc<Self>) {
        loop {
            let (sender, turn) = {
                let mut state = self.state();
                if state.taken >= self.limits.at_a_time {
                    return;
                }
                let Some(key) = state.round.pop_front() else { return };
                let Some(asker) = state.askers.get_mut(&key) else { continue };
                asker.in_round = false;
                let Some(sender) = asker.waiting.pop_front() else {
                    state.forget(&key);
                    continue;
                };
                asker.taken += 1;
                state.taken += 1;
                state.enter_round(&key, self.limits.by_one);
                (sender, Turn { queue: Arc::clone(self), key })
            };
            // Who went away gives the turn back by not taking it. Not under the lock, which that needs.
            drop(sender.send(turn));
        }
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone> Asker<K> {
    fn new() -> Self {
        Self { taken: 0, waiting: VecDeque::new(), in_round: false }
    }
}

impl<K: Eq + Hash + Clone> State<K> {
    fn enter_round(&mut self, key: &K, by_one: usize) {
        if let Some(asker) = self.askers.get_mut(key)
            && !asker.in_round
            && !asker.waiting.is_empty()
            && asker.taken < by_one
        {
            asker.in_round = true;
            self.round.push_back(key.clone());
        }
    }

    /// Whoever has nothing and wants nothing is not kept.
    fn forget(&mut self, key: &K) {
        if self.askers.get(key).is_some_and(|asker| asker.taken == 0 && asker.waiting.is_empty()) {
            self.askers.remove(key);
        }
    }
}

impl<K: Eq + Hash + Clone> Drop for Turn<K> {
    fn drop(&mut self) {
        {
            let mut state = self.queue.state();
            state.taken -= 1;
            if let Some(asker) = state.askers.get_mut(&self.key) {
                asker.taken -= 1;
            }
            state.enter_round(&self.key, self.queue.limits.by_one);
            state.forget(&self.key);
        }
        self.queue.serve();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn mk_queue(at_a_time: usize, by_one: usize, waiting: usize) -> Arc<FairQueue<&'static str>> {
        FairQueue::new(FairLimits { at_a_time, by_one, waiting })
    }

    /// Polls it once.
    fn now<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
        future.now_or_never()
    }

    #[test]
    fn turns_go_round_among_those_who_wait() {
        let queue = mk_queue(1, 1, 100);
        let first = now(&mut Box::pin(queue.turn("flood"))).unwrap().ok();
        let mut flood: Vec<_> = (0..50).map(|_| Box::pin(queue.turn("flood"))).collect();
        assert!(flood.iter_mut().all(|turn| now(turn).is_none()));
        let mut quiet = Box::pin(queue.turn("quiet"));
        assert!(now(&mut quiet).is_none());
        drop(first);
        let served = now(&mut quiet).expect("who has had nothing comes before the fifty").ok();
        assert!(now(&mut Box::pin(queue.turn("quiet"))).is_none());
        drop(served);
        let served: Vec<_> = flood.iter_mut().filter_map(now).collect();
        assert_eq!(served.len(), 1, "and then it is their turn");
    }

    #[test]
    fn nobody_takes_all_turns() {
        let queue = mk_queue(4, 3, 100);
        let mut many: Vec<_> = (0..4).map(|_| Box::pin(queue.turn("flood"))).collect();
        let held: Vec<_> = many.iter_mut().filter_map(now).collect();
        assert_eq!(held.len(), 3);
        assert!(now(&mut Box::pin(queue.turn("quiet"))).is_some());
        drop(held);
        assert!(many.last_mut().and_then(now).is_some(), "and goes on when its own have ended");
    }

    #[test]
    fn who_has_too_many_waiting_is_told_so_and_the_others_are_not() {
        let queue = mk_queue(1, 1, 2);
        let _held = now(&mut Box::pin(queue.turn("flood"))).unwrap().ok();
        let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(queue.turn("flood"))).collect();
        assert!(waiting.iter_mut().all(|turn| now(turn).is_none()));
        assert!(matches!(now(&mut Box::pin(queue.turn("flood"))), Some(Err(TooMany))));
        assert!(now(&mut Box::pin(queue.turn("quiet"))).is_none(), "it waits");
        waiting.pop();
        assert!(now(&mut Box::pin(queue.turn("flood"))).is_none(), "one gave up, so there is room");
    }

    #[test]
    fn who_goes_away_loses_no_turn_and_leaves_nothing_behind() {
        let queue = mk_queue(1, 1, 100);
        let held = now(&mut Box::pin(queue.turn("a"))).unwrap().ok();
        let mut gone = Box::pin(queue.turn("b"));
        let mut stays = Box::pin(queue.turn("c"));
        assert!(now(&mut gone).is_none() && now(&mut stays).is_none());
        drop(gone);
        drop(held);
        let turn = now(&mut stays).unwrap().ok();
        let mut late = Box::pin(queue.turn("d"));
        assert!(now(&mut late).is_none());
        drop(turn);
        // It has been given a turn that it never took.
        drop(late);
        let state = queue.state();
        assert!(state.askers.is_empty() && state.round.is_empty() && state.taken == 0);
    }
}
