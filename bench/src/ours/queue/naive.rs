//! The queue that one writes when there is none: two sets and a list behind a lock, with the same promises.
//!
//! What is queued stays one item, no two workers have the same one, and what is added while a worker has it is queued once
//! more when that worker is done.

use std::{
    collections::{HashSet, VecDeque},
    hash::Hash,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

pub(super) struct Naive<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    ready: Notify,
}

struct State<T> {
    queue: VecDeque<T>,
    /// What is queued, or will be when its worker is done.
    dirty: HashSet<T>,
    processing: HashSet<T>,
    closed: bool,
}

impl<T: Hash + Eq + Clone> Naive<T> {
    pub(super) fn new() -> Self {
        let state = State {
            queue: VecDeque::new(),
            dirty: HashSet::new(),
            processing: HashSet::new(),
            closed: false,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), ready: Notify::new() }))
    }

    pub(super) fn add(&self, item: T) {
        let mut state = self.lock();
        if state.closed || !state.dirty.insert(item.clone()) || state.processing.contains(&item) {
            return;
        }
        state.queue.push_back(item);
        drop(state);
        self.0.ready.notify_one();
    }

    pub(super) async fn get(&self) -> Option<T> {
        loop {
            let mut ready = pin!(self.0.ready.notified());
            // From here on nothing that happens is missed.
            ready.as_mut().enable();
            {
                let mut state = self.lock();
                if let Some(item) = state.queue.pop_front() {
                    state.dirty.remove(&item);
                    state.processing.insert(item.clone());
                    return Some(item);
                }
                if state.closed {
                    return None;
                }
            }
            ready.await;
        }
    }

    pub(super) fn done(&self, item: T) {
        let mut state = self.lock();
        state.processing.remove(&item);
        if state.dirty.contains(&item) {
            state.queue.push_back(item);
            drop(state);
            self.0.ready.notify_one();
        }
    }

    pub(super) fn shut_down(&self) {
        self.lock().closed = true;
        self.0.ready.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Naive<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn an_item_is_with_one_worker_at_a_time_and_comes_again_if_it_was_added_meanwhile() {
        let queue = Naive::new();
        queue.add(1);
        queue.add(1);
        assert_eq!(queue.get().await, Some(1));
        queue.add(1);
        assert_eq!(queue.get().now_or_never(), None);
        queue.done(1);
        assert_eq!(queue.get().await, Some(1));
        queue.done(1);
        assert_eq!(queue.get().now_or_never(), None);
    }

    #[tokio::test]
    async fn who_waits_gets_what_comes_and_hears_of_the_end() {
        let queue = Naive::new();
        let worker = tokio::spawn({
            let queue = queue.clone();
            async move { (queue.get().await, queue.get().await) }
        });
        tokio::task::yield_now().await;
        queue.add(1);
        tokio::task::yield_now().await;
        queue.shut_down();
        queue.add(2);
        assert_eq!(worker.await.unwrap(), (Some(1), None));
    }
}
