//! What an informer or a work queue tells about itself while it works, for a monitoring system.

use std::time::Duration;

use crate::workqueue::Probe;

/// Takes measurements. Give one to the builder of an informer or a work queue.
///
/// An informer calls it between batches, a queue for each item, from their own tasks: it should be quick and must not
/// block.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use informer::metrics::{Measurement, Metrics};
///
/// #[derive(Default)]
/// struct Relists(AtomicU64);
///
/// impl Metrics for Relists {
///     fn record(&self, _name: &str, measurement: Measurement<'_>) {
///         if let Measurement::Relist { .. } = measurement {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait Metrics: Send + Sync + 'static {
    /// Something was measured, at the informer or queue with this name.
    fn record(&self, name: &str, measurement: Measurement<'_>);

    /// There is a new work queue with this name, which can be asked how it is doing.
    fn queue(&self, name: &str, probe: Probe) {
        let _ = (name, probe);
    }
}

/// One thing that was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Measurement<'a> {
    /// A list was complete.
    Listed {
        /// How many objects it had.
        objects: usize,
        /// From the first request to the last byte.
        took: Duration,
    },
    /// A list failed.
    ListFailed,
    /// A list has to be repeated after the first one, for this reason.
    Relist {
        /// A few words that do not vary, like `version expired`.
        cause: &'static str,
    },
    /// A watch was opened.
    WatchOpened,
    /// A watch could not be opened, or ended in a way that a server does not mean.
    WatchFailed,
    /// A batch of changes is in the cache.
    Applied {
        /// Objects that are new.
        added: usize,
        /// Objects that have changed.
        updated: usize,
        /// Objects that are gone.
        deleted: usize,
    },
    /// Something in a watch had no business there and was skipped.
    Skipped,
    /// How many objects are quarantined now.
    Quarantined(usize),
    /// How many entries wait between the server and the cache now.
    QueueDepth(usize),
    /// What is in the cache now.
    StoreSize {
        /// Objects.
        objects: usize,
        /// What they took on the wire, in bytes.
        bytes: u64,
    },
    /// How many events wait for a handler now.
    HandlerLag {
        /// The handler's name.
        handler: &'a str,
        /// Events.
        pending: usize,
    },
    /// A handler panicked.
    HandlerPanicked {
        /// The handler's name.
        handler: &'a str,
    },
    /// The first list is in the cache.
    Synced {
        /// Since the informer was started.
        took: Duration,
    },
    /// The informer has stopped: what it said to be so *now* is so no more.
    Stopped,
    /// A worker has taken an item from a work queue.
    WorkStarted {
        /// Since it was queued.
        waited: Duration,
    },
    /// A worker is done with an item of a work queue.
    WorkDone {
        /// Since the worker took it.
        took: Duration,
    },
}
