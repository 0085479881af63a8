//! What waits for one handler: between the task that applies changes and the one that tells of them.
//!
//! In come batches that all handlers share; waiting costs a pointer each. When more than [`LIMIT`] events
//! wait, they are merged into a private [`Backlog`], which takes all that comes until the handler has
//! emptied it. Out comes one piece of [`Work`] at a time.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    task::{Context, Poll, Waker},
};

use super::{backlog::Backlog, handler::Notice};
use crate::{
    store::Snapshot,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    trace::Changes,
};

/// A batch is at most this long, and a handler this far behind leaves the shared batches.
pub(super) const LIMIT: usize = 1_024;

/// What a handler takes out of its inbox.
pub(super) enum Work<K> {
    /// Everything that was there when the handler came, each object an initial add.
    Replay(Snapshot<K>),
    /// Events that other handlers have too.
    Shared(Batch<K>),
    /// Events merged for this handler alone.
    Merged(Vec<Notice<K>>),
    /// All that existed before has been handed out, and handled when this is taken.
    Synced,
}

impl<K> Work<K> {
    fn len(&self) -> usize {
        match self {
            Self::Replay(snapshot) => snapshot.len(),
            Self::Shared(batch) => batch.notices.len(),
            Self::Merged(notices) => notices.len(),
            Self::Synced => 0,
        }
    }
}

/// Some events in their order. It is cheap to clone (an `Arc`).
pub(super) struct Batch<K> {
    pub(super) notices: Arc<[Notice<K>]>,
    /// How many count for [`LIMIT`]: all but the adds of the first list, of which there is one for each key
    /// however many wait.
    counted: usize,
    /// What is traced of them, if anything is.
    pub(super) changes: Changes,
}

impl<K> Clone for Batch<K> {
    fn clone(&self) -> Self {
        Self { notices: Arc::clone(&self.notices), counted: self.counted, changes: self.changes.clone() }
    }
}

/// Cuts events into batches.
pub(super) fn batches<K>(notices: Vec<Notice<K>>, changes: &Changes) -> Vec<Batch<K>> {
    let mut before = 0;
    let mut notices = notices.into_iter();
    let mut batches = Vec::with_capacity(notices.len().div_ceil(LIMIT));
    while notices.len() > 0 {
        let notices: Arc<[Notice<K>]> = notices.by_ref().take(LIMIT).collect();
        let counted = notices.iter().filter(|notice| !notice.initial).count();
        let here = before..before + notices.len();
        before = here.end;
        let changes = changes.as_ref().and_then(|changes| changes.get(here)).map(Arc::from);
        batches.push(Batch { notices, counted, changes });
    }
    batches
}

pub(super) struct Inbox<K> {
    state: Mutex<State<K>>,
    /// Whether more than [`LIMIT`] events are merged.
    merges: bool,
    /// Looked at before every event, so that nothing is told after the end.
    closed: AtomicBool,
    /// Events that were taken out since the beginning, and those of them that are handled. The one who takes counts.
    taken: AtomicU64,
    told: AtomicU64,
}

struct State<K> {
    /// In the order of arrival, before all that is in the backlog. Never `Merged`.
    works: VecDeque<Work<K>>,
    /// Events in `works`, and those of them that count for [`LIMIT`].
    waiting: usize,
    counted: usize,
    backlog: Backlog<K>,
    waker: Option<Waker>,
}

impl<K> State<K> {
    fn new() -> Self {
        Self { works: VecDeque::new(), waiting: 0, counted: 0, backlog: Backlog::new(), waker: None }
    }

    fn push(&mut self, work: Work<K>) {
        self.waiting += work.len();
        if let Work::Shared(batch) = &work {
            self.counted += batch.counted;
        }
        self.works.push_back(work);
    }

    fn pop(&mut self) -> Option<Work<K>> {
        let Some(work) = self.works.pop_front() else { return self.backlog.take(LIMIT) };
        self.waiting -= work.len();
        if let Work::Shared(batch) = &work {
            self.counted -= batch.counted;
        }
        Some(work)
    }

    /// Leaves the shared batches: all that waits goes to the backlog, but for a replay, which comes first.
    fn merge(&mut self) {
        let works = std::mem::take(&mut self.works);
        (self.waiting, self.counted) = (0, 0);
        for work in works {
            match work {
                Work::Shared(batch) => batch.notices.iter().for_each(|notice| self.backlog.push(notice)),
                Work::Synced => self.backlog.mark_synced(),
                first @ (Work::Replay(_) | Work::Merged(_)) => self.push(first),
            }
        }
    }
}

impl<K> Inbox<K> {
    pub(super) fn new(merges: bool) -> Self {
        let (closed, taken, told) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        Self { state: Mutex::new(State::new()), merges, closed, taken, told }
    }

    /// Everything that is there when the handler comes.
    pub(super) fn replay(&self, snapshot: Snapshot<K>) {
        self.put(|state| state.push(Work::Replay(snapshot)));
    }

    /// Adds events.
    pub(super) fn push(&self, batches: &[Batch<K>]) {
        self.put(|state| {
            for batch in batches {
                if !state.backlog.is_empty() {
                    batch.notices.iter().for_each(|notice| state.backlog.push(notice));
                    continue;
                }
                state.push(Work::Shared(batch.clone()));
                if self.merges && state.counted > LIMIT {
                    state.merge();
                }
            }
        });
    }

    /// The handler is synced when what waits now is handled.
    pub(super) fn mark_synced(&self) {
        self.put(|state| match state.backlog.is_empty() {
            true => state.push(Work::Synced),
            false => state.backlog.mark_synced(),
        });
    }

    fn put(&self, put: impl FnOnce(&mut State<K>)) {
        let mut state = self.lock();
        if self.is_closed() {
            return;
        }
        put(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next work, when what was taken before is handled; `None` when the inbox is closed.
    pub(super) fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Work<K>>> {
        let mut state = self.lock();
        if self.is_closed() {
            return Poll::Ready(None);
        }
        if let Some(work) = state.pop() {
            self.taken.store(self.told() + work.len() as u64, Ordering::Relaxed);
            return Poll::Ready(Some(work));
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    pub(super) async fn take(&self) -> Option<Work<K>> {
        poll_fn(|context| self.poll_take(context)).await
    }

    /// One of the events that were taken out is handled.
    pub(super) fn handled(&self) {
        // Nobody else writes, so there is no need for one atomic step.
        self.told.store(self.told() + 1, Ordering::Relaxed);
    }

    /// How many events are handled.
    pub(super) fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }

    /// How many events wait, with those that were taken out and are not handled yet.
    pub(super) fn pending(&self) -> usize {
        let state = self.lock();
        if self.is_closed() {
            return 0;
        }
        let in_hand = self.taken.load(Ordering::Relaxed).saturating_sub(self.told());
        state.waiting + state.backlog.len() + in_hand as usize
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Drops all that waits, and takes nothing more.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        self.closed.store(true, Ordering::Release);
        let mut dropped = std::mem::replace(&mut *state, State::new());
        drop(state);
        if let Some(waker) = dropped.waker.take() {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        // A panic here can come from an object's own `drop` only, and leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
