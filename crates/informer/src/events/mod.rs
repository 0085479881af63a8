//! Records what happens to objects as events of the cluster (`events.k8s.io/v1`), for `kubectl describe` and `kubectl events`.
//!
//! A [`Recorder`] is a handle that any part of a program may have: recording never waits and never fails. A [`Delivery`] sends what
//! was recorded, one request at a time. In between, repetitions become a count in one event, events that differ in their note alone
//! are combined when there are many of them, an object has no more events than its share, and what waits is bounded:
//! [`Limits`] says by how much, and [`Recorder::stats`] what became of everything.
//!
//! The program needs the verbs `create` and `patch` on `events` of the group `events.k8s.io`, in the namespaces of the objects and in
//! `default`, where the events of objects without a namespace are.

mod builder;
mod correlator;
mod delivery;
mod event;
mod limits;
mod name;
mod stats;
mod trouble;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::{api::core::v1::ObjectReference, jiff::Timestamp};
use kube::Client;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use correlator::{Correlator, Verdict};
use event::{Report, Unsendable};
use trouble::Complaints;

pub use builder::{RecorderBuildError, RecorderBuilder};
pub use delivery::Delivery;
pub use event::{EventType, RecordedEvent, Regarding};
pub use limits::Limits;
pub use stats::RecorderStats;

/// Records events. It is cheap to clone (an `Arc`).
///
/// ```
/// use std::time::Duration;
///
/// use informer::events::{RecordedEvent, Recorder};
/// use k8s_openapi::api::{core::v1::Node, events::v1::Event as Recorded};
/// use tokio_util::sync::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = informer_apiserver::ApiServer::builder().build().client(); // or kube::Client::try_default().await?
/// let (recorder, delivery) = Recorder::builder(client.clone(), "example.com/website-controller").build()?;
/// let stop = CancellationToken::new();
/// let delivering = tokio::spawn(delivery.run(stop.clone()));
///
/// let mut node = Node::default();
/// node.metadata.name = Some("node-1".into());
/// for _ in 0..3 {
///     recorder.record(&node, RecordedEvent::warning("DiskPressure", "the disk is nearly full").action("Check"));
/// }
///
/// stop.cancel(); // what was recorded is still sent
/// delivering.await?;
/// let events = kube::Api::<Recorded>::namespaced(client, "default").list(&Default::default()).await?;
/// assert_eq!(events.items.len(), 1);
/// assert_eq!(events.items[0].series.as_ref().map(|series| series.count), Some(3));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Inner>,
}

struct Inner {
    controller: String,
    state: Mutex<State>,
    /// Wakes the delivery.
    wake: Notify,
    /// Up to which mark all has been sent or given up.
    reached: watch::Sender<u64>,
}

struct State {
    correlator: Correlator,
    complaints: Complaints,
}

/// Not everything could be sent in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("after {waited:?} not all events are sent ({stats}); is the delivery running?")]
#[non_exhaustive]
pub struct FlushError {
    /// How long was waited.
    pub waited: Duration,
    /// What had become of all events then.
    pub stats: RecorderStats,
}

impl Recorder {
    /// A recorder for a controller of this name, which is like a label key: `example.com/website-controller`.
    pub fn builder(client: Client, controller: impl Into<String>) -> RecorderBuilder {
        RecorderBuilder::new(client, controller.into())
    }

    fn new(controller: String, limits: Limits) -> Self {
        let state = State { correlator: Correlator::new(limits), complaints: Complaints::default() };
        let inner = Inner {
            controller,
            state: Mutex::new(state),
            wake: Notify::new(),
            reached: watch::Sender::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Records that something happened to an object.
    ///
    /// It never waits, and nothing goes wrong for the caller: what cannot be sent is counted and logged.
    pub fn record(&self, regarding: &impl Regarding, event: RecordedEvent) {
        self.record_about(regarding.reference(), event);
    }

    /// Like [`record`](Self::record), of an object that is known by a reference: `object.object_ref(&kind)` makes one of an object
    /// whose kind is known only at run time.
    ///
    /// A reference with a namespace that cannot be one, or with more than 4 KiB of text, is that of no object: its events are counted as
    /// failed.
    pub fn record_about(&self, regarding: ObjectReference, event: RecordedEvent) {
        let report = Report::new(regarding, event);
        let (now, time) = (Instant::now(), Timestamp::now());
        let mut state = self.lock();
        let (kind, problem) = match report.map(|report| state.correlator.observe(report, now, time)) {
            Ok(Verdict::Queued | Verdict::Scheduled) => return self.inner.wake.notify_one(),
            Ok(Verdict::Counted | Verdict::Suppressed) => return,
            Ok(Verdict::Dropped) => ("dropped", "the queue is full, or the delivery has ended"),
            Err(Unsendable(problem)) => {
                state.correlator.refuse();
                ("unsendable", problem)
            }
        };
        if state.complaints.are_due(kind, now) {
            let stats = state.correlator.stats();
            drop(state);
            tracing::warn!(controller = self.inner.controller, problem, %stats, "an event is not sent");
        }
    }

    /// Waits until all that was recorded before is sent or given up. Counts of repetitions, which are written now and then, are written
    /// now.
    pub async fn flush(&self, within: Duration) -> Result<(), FlushError> {
        let mut reached = self.inner.reached.subscribe();
        let mark = self.lock().correlator.flush();
        self.inner.wake.notify_one();
        let done = tokio::time::timeout(within, reached.wait_for(|reached| *reached >= mark)).await;
        // The other side lives in `self`.
        done.map(drop).map_err(|_| FlushError { waited: within, stats: self.stats() })
    }

    /// What became of all that was recorded.
    pub fn stats(&self) -> RecorderStats {
        self.lock().correlator.stats()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({}: {})", self.inner.controller, self.stats())
    }
}
