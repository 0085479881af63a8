//! What a queue knows of itself.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::sync::Arc;

/// What a [queue](super::WorkQueue) has measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// Items that are queued.
    pub depth: usize,
    /// Items that will be queued later.
    pub delayed: usize,
    /// Items that a worker has.
    pub processing: usize,
    /// Items that were added since the queue was made. One that was queued already does not count.
    pub adds: u64,
    /// How often an item was retried.
    pub retries: u64,
    /// For how long workers have had what they have now, all together. If this grows and `longest_running` with it, a worker
    /// is stuck.
    pub unfinished: Duration,
    /// For how long the slowest worker has had its item.
    pub longest_running: Duration,
}

/// What a queue has counted. It outlives the queue, so that nothing of it is missed.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) adds: AtomicU64,
    pub(super) retries: AtomicU64,
}

#[cfg(feature = "prometheus")]
impl QueueStats {
    /// The stats of two queues that go by one name.
    pub(crate) fn add(&mut self, other: Self) {
        self.depth += other.depth;
        self.delayed += other.delayed;
        self.processing += other.processing;
        self.adds += other.adds;
        self.retries += other.retries;
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.longest_running = self.longest_running.max(other.longest_running);
    }
}

/// Asks a queue how it is doing, and does not keep it alive.
pub struct QueueProbe {
    ask: Box<dyn Fn() -> Option<QueueStats> + Send + Sync>,
    totals: Arc<Totals>,
}

impl QueueProbe {
    pub(super) fn new(
        totals: Arc<Totals>,
        ask: impl Fn() -> Option<QueueStats> + Send + Sync + 'static,
    ) -> Self {
        Self { ask: Box::new(ask), totals }
    }

    /// What the queue has measured, or `None` if it is gone.
    pub fn stats(&self) -> Option<QueueStats> {
        (self.ask)()
    }

    /// Items that were added since the queue was made; also when it is gone.
    pub fn adds(&self) -> u64 {
        self.totals.adds.load(Relaxed)
    }

    /// How often an item was retried; also when the queue is gone.
    pub fn retries(&self) -> u64 {
        self.totals.retries.load(Relaxed)
    }
}

impl fmt::Debug for QueueProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueueProbe").field(&self.stats()).finish()
    }
}
