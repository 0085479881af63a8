//! A queue between two tasks: one fills it, one empties it and may wait.

use std::{
    future::poll_fn,
    marker::PhantomData,
    ops::Deref,
    task::{Context, Poll, Waker},
};

use crate::{
    Object, Tombstone,
    model::ResourceVersion,
    queue::{Delta, Queue, Replacement},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A [`Queue`] that tasks share. It is cheap to clone (an `Arc`).
///
/// One batch is out at a time, however many wait for one: so one key is never with two workers at once, and
/// what happened to it stays in order.
pub struct SharedQueue<K, Q> {
    state: Arc<Mutex<State<Q>>>,
    objects: PhantomData<fn() -> K>,
}

struct State<Q> {
    queue: Q,
    in_flight: bool,
    closed: bool,
    /// How many are adding what belongs together: who waits is woken when they are done.
    adding: usize,
    /// Tasks that wait for a batch, or for there to be none. All are woken whenever there may be one.
    waiting: Vec<Waker>,
}

impl<Q> State<Q> {
    fn wait(&mut self, context: &Context<'_>) {
        if !self.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            self.waiting.push(context.waker().clone());
        }
    }
}

/// The queue was closed, and nothing was queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is closed")]
pub struct Closed;

impl<K, Q: Queue<K>> SharedQueue<K, Q> {
    /// Shares a queue.
    pub fn new(queue: Q) -> Self {
        let state = State { queue, in_flight: false, closed: false, adding: 0, waiting: Vec::new() };
        Self { state: Arc::new(Mutex::new(state)), objects: PhantomData }
    }

    /// The server said that an object is new.
    pub fn added(&self, object: Object<K>) -> Result<(), Closed> {
        self.push(|queue| queue.added(object))
    }

    /// The server said that an object has changed.
    pub fn updated(&self, object: Object<K>) -> Result<(), Closed> {
        self.push(|queue| queue.updated(object))
    }

    /// An object is gone.
    pub fn deleted(&self, tombstone: Tombstone<K>) -> Result<(), Closed> {
        self.push(|queue| queue.deleted(tombstone))
    }

    /// A list is all that there is.
    pub fn replace(&self, list: Replacement<K>) -> Result<(), Closed> {
        self.push(|queue| queue.replace(list))
    }

    /// All objects of the cache are to be shown to the handlers again.
    pub fn resync(&self) -> Result<(), Closed> {
        self.push(Q::resync)
    }

    /// The server has told every change up to this version.
    pub fn bookmark(&self, version: ResourceVersion) -> Result<(), Closed> {
        self.push(|queue| queue.bookmark(version))
    }

    /// The next batch of about `max` deltas. Waits until there is one and the batch before it is done;
    /// `None` when the queue is closed and nothing is left.
    pub async fn pop(&self, max: usize) -> Option<Popped<K, Q>> {
        poll_fn(|context| self.poll_pop(context, max)).await
    }

    pub(crate) fn poll_pop(&self, context: &mut Context<'_>, max: usize) -> Poll<Option<Popped<K, Q>>> {
        let mut state = self.lock();
        if !state.in_flight {
            let deltas = state.queue.pop(max);
            if !deltas.is_empty() {
                state.in_flight = true;
                return Poll::Ready(Some(Popped { deltas, again: Vec::new(), queue: self.clone() }));
            }
            if state.closed {
                return Poll::Ready(None);
            }
        }
        state.wait(context);
        Poll::Pending
    }

    /// Waits until everything that was queued has been processed.
    pub(crate) async fn idle(&self) {
        poll_fn(|context| {
            let mut state = self.lock();
            if !state.in_flight && (state.closed || state.queue.is_empty()) {
                return Poll::Ready(());
            }
            state.wait(context);
            Poll::Pending
        })
        .await;
    }

    /// Closes the queue: nothing more comes in, and `pop` returns what is left and then `None`.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        wake_all(state);
    }

    /// How many entries wait.
    pub fn len(&self) -> usize {
        self.lock().queue.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first list has been processed to its end.
    pub fn has_synced(&self) -> bool {
        self.lock().queue.has_synced()
    }

    /// Puts in what belongs together: nobody takes out a part of it, if they take out enough at a time.
    pub(crate) fn push(&self, push: impl FnOnce(&mut Q)) -> Result<(), Closed> {
        let mut state = self.lock();
        if state.closed {
            return Err(Closed);
        }
        push(&mut state.queue);
        if state.adding == 0 {
            wake_all(state);
        }
        Ok(())
    }

    /// Until the answer is dropped, what is put in wakes nobody: who waits for a batch then finds all of it, instead of
    /// being woken for the first.
    pub(crate) fn adding(&self) -> Adding<K, Q> {
        self.lock().adding += 1;
        Adding(self.clone())
    }

    fn finish(&self, retry: Vec<Delta<K>>) {
        let mut state = self.lock();
        if !retry.is_empty() {
            state.queue.retry(retry);
        }
        state.queue.done();
        state.in_flight = false;
        wake_all(state);
    }

    fn lock(&self) -> MutexGuard<'_, State<Q>> {
        // Nothing of a user's runs under this lock, so no panic leaves a state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes with the lock released, so that nobody wakes up only to wait for it.
fn wake_all<Q>(mut state: MutexGuard<'_, State<Q>>) {
    let waiting = std::mem::take(&mut state.waiting);
    drop(state);
    for waker in waiting {
        waker.wake();
    }
}

impl<K, Q> Clone for SharedQueue<K, Q> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), objects: PhantomData }
    }
}

/// See [`SharedQueue::adding`].
pub(crate) struct Adding<K, Q: Queue<K>>(SharedQueue<K, Q>);

impl<K, Q: Queue<K>> Drop for Adding<K, Q> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.adding -= 1;
        if state.adding == 0 {
            wake_all(state);
        }
    }
}

/// A batch that is being processed. The next one comes out when this one is dropped.
pub struct Popped<K, Q: Queue<K>> {
    deltas: Vec<Delta<K>>,
    again: Vec<Delta<K>>,
    queue: SharedQueue<K, Q>,
}

impl<K, Q: Queue<K>> Popped<K, Q> {
    /// Takes the deltas out, to process them. The batch is in flight until this value is dropped.
    pub fn take(&mut self) -> Vec<Delta<K>> {
        std::mem::take(&mut self.deltas)
    }

    /// Queues deltas of this batch again when it ends, because processing them failed.
    pub fn retry(&mut self, deltas: impl IntoIterator<Item = Delta<K>>) {
        self.again.extend(deltas);
    }
}

impl<K, Q: Queue<K>> Deref for Popped<K, Q> {
    type Target = [Delta<K>];

    fn deref(&self) -> &[Delta<K>] {
        &self.deltas
    }
}

impl<K, Q: Queue<K>> Drop for Popped<K, Q> {
    fn drop(&mut self) {
        self.queue.finish(std::mem::take(&mut self.again));
    }
}
