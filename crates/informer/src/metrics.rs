//! What an informer or a work queue tells about itself while it works, for a monitoring system.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use informer_model::{GroupVersionResource, ResourceVersion};

#[cfg(feature = "events")]
use crate::events;
#[cfg(feature = "leader")]
use crate::leader;
use crate::panic_message;
#[cfg(feature = "controller")]
use crate::workqueue;

/// Takes measurements. Give one to the builder of an informer or a work queue.
///
/// What happens is recorded: an informer does so between batches, a queue for each item, from their own tasks. It should
/// be quick and must not block. If it panics, that is in the log, and costs nothing but the measurement. Gauges are read
/// through a probe, at the time of a scrape.
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

    /// An informer with this name has been started, and can be asked what it holds until it has stopped.
    fn informer(&self, name: &str, probe: Probe<Levels>) {
        let _ = (name, probe);
    }

    /// There is an election for the Lease of this name, which can be asked how its terms have gone.
    #[cfg(feature = "leader")]
    fn election(&self, name: &str, probe: Probe<leader::LeaderStats>) {
        let _ = (name, probe);
    }

    /// There is a recorder for a controller of this name, which can be asked what became of its events.
    #[cfg(feature = "events")]
    fn recorder(&self, controller: &str, probe: Probe<events::RecorderStats>) {
        let _ = (controller, probe);
    }

    /// There is a new work queue with this name, which can be asked how it is doing.
    #[cfg(feature = "controller")]
    fn queue(&self, name: &str, probe: workqueue::QueueProbe) {
        let _ = (name, probe);
    }
}

/// Tells a user's [`Metrics`] something. Its panic must not end the task that measures.
pub(crate) fn guarded(name: &str, tell: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(tell)) {
        let panic = panic_message(&*panic);
        tracing::error!(name, panic, "a measurement panicked; all else goes on");
    }
}

/// What an informer holds at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Levels {
    /// Which resource of an API the cache has, where its source says so.
    pub resource: Option<GroupVersionResource>,
    /// The version that the whole cache has reached; unset before the first list.
    pub version: ResourceVersion,
    /// Objects in the cache.
    pub objects: usize,
    /// What they took on the wire, in bytes.
    pub bytes: u64,
    /// About what its indexes take in memory, in bytes.
    pub index_bytes: u64,
    /// Entries that wait between the server and the cache.
    pub queued: usize,
    /// Each handler by name, and how many events wait for it.
    pub handlers: Vec<(String, usize)>,
    /// Each handler by name, and how many events it was told.
    pub told: Vec<(String, u64)>,
}

/// Reads the state of an informer or a queue, without keeping it alive.
pub struct Probe<T>(Box<dyn Fn() -> Option<T> + Send + Sync>);

impl<T> Probe<T> {
    /// Reads by this function, which returns `None` once what it reads is gone.
    pub fn new(ask: impl Fn() -> Option<T> + Send + Sync + 'static) -> Self {
        Self(Box::new(ask))
    }

    /// The state, or `None` if what it reads is gone.
    pub fn ask(&self) -> Option<T> {
        (self.0)()
    }
}

impl<T: fmt::Debug> fmt::Debug for Probe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Probe").field(&self.ask()).finish()
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
        /// From taking the batch to having it in the cache, and before every handler. Handlers take their own time.
        took: Duration,
    },
    /// Something in a watch had no business there and was skipped.
    Skipped,
    /// How many objects are quarantined now.
    Quarantined(usize),
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
    /// A call of a controller has ended.
    Reconciled {
        /// How.
        outcome: Outcome,
    },
}

/// How a call of a controller ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// There is nothing to do until something changes.
    Success,
    /// It is to be looked at again after a time.
    RequeueAfter,
    /// It failed, and is tried again.
    Error,
    /// It failed, and waits for a change.
    TerminalError,
    /// It panicked, and is tried again.
    Panic,
}
