//! [`Metrics`] that a Prometheus server can scrape.
//!
//! In come an informer's measurements, out go series in a [`Registry`], each with the label `informer`: the
//! name of the informer that was measured. All names begin with `informer_`. When an informer stops, its gauges go;
//! its counters stay, and go on if it is started anew. Those of work queues begin with `workqueue_`, those of controllers
//! with `controller_runtime_`, some of those of elections with `leader_election_`. Series that client-go has too have its names, meanings and labels: `name`, `group`, `version`
//! and `resource`.

mod controllers;
#[cfg(feature = "events")]
mod events;
mod gauges;
#[cfg(feature = "leader")]
mod leaders;
#[cfg(feature = "packed")]
mod packing;
mod queues;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{
        MetricType,
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::{ConstGauge, Gauge},
        histogram::Histogram,
    },
    registry::{Metric, Registry, Unit},
};
use tokio::time::Instant;

use self::{
    controllers::Controllers,
    gauges::{Gauges, OfResource},
    queues::{Queues, WorkBuckets},
};
use crate::{
    metrics::{Levels, Measurement, Metrics, Probe},
    workqueue,
};

/// Measurements as Prometheus series. One for all informers and queues of a program: each has its own label.
///
/// ```
/// use informer::{PrometheusMetrics, metrics::{Measurement, Metrics}};
/// use prometheus_client::{encoding::text::encode, registry::Registry};
///
/// let mut registry = Registry::default();
/// let metrics = PrometheusMetrics::new(&mut registry);
/// metrics.record("pods", Measurement::WatchOpened);
///
/// let mut text = String::new();
/// encode(&mut text, &registry)?;
/// assert!(text.contains(r#"informer_watches_total{informer="pods"} 1"#));
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PrometheusMetrics {
    lists: Count<OfInformer>,
    list_failures: Count<OfInformer>,
    list_objects: Level<OfInformer>,
    list_duration: Family<OfInformer, Histogram, ListBuckets>,
    relists: Count<OfCause>,
    watches: Count<OfInformer>,
    watch_failures: Count<OfInformer>,
    events: Count<OfChange>,
    last_events: LastEvents,
    skipped: Count<OfInformer>,
    quarantined: Level<OfInformer>,
    gauges: Gauges,
    processing: Family<OfResource, Histogram, WorkBuckets>,
    handler_panics: Count<OfHandler>,
    sync_duration: Family<OfInformer, Gauge<f64, AtomicU64>>,
    queues: Queues,
    controllers: Controllers,
    #[cfg(feature = "leader")]
    leaders: leaders::Leaders,
    #[cfg(feature = "events")]
    recorders: events::Recorders,
}

type Count<Labels> = Family<Labels, Counter>;
type Level<Labels> = Family<Labels, Gauge<u64, AtomicU64>>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfInformer {
    informer: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCause {
    informer: String,
    cause: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfChange {
    informer: String,
    change: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfHandler {
    informer: String,
    handler: String,
}

/// A list takes from a few milliseconds to minutes.
#[derive(Debug, Clone)]
struct ListBuckets;

impl MetricConstructor<Histogram> for ListBuckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0])
    }
}

/// When each informer had its last event. The age is computed at the time of a scrape.
#[derive(Debug, Clone, Default)]
struct LastEvents(Arc<Mutex<BTreeMap<String, Instant>>>);

impl LastEvents {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, informer: &str) {
        let now = Instant::now();
        let mut times = self.lock();
        match times.get_mut(informer) {
            Some(time) => *time = now,
            None => drop(times.insert(informer.to_owned(), now)),
        }
    }
}

impl Collector for LastEvents {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let times = self.lock();
        if times.is_empty() {
            return Ok(());
        }
        let help = "Time since the last change of the cache.";
        let mut family =
            encoder.encode_descriptor("last_event_age", help, Some(&Unit::Seconds), MetricType::Gauge)?;
        for (informer, time) in &*times {
            let age = ConstGauge::new(time.elapsed().as_secs_f64());
            age.encode(family.encode_family(&[("informer", informer.as_str())])?)?;
        }
        Ok(())
    }
}

impl PrometheusMetrics {
    /// Registers all series. The registry adds its own prefix, if it has one.
    pub fn new(registry: &mut Registry) -> Self {
        let (queues, controllers) = (Queues::new(registry), Controllers::new(registry));
        #[cfg(feature = "leader")]
        let leaders = leaders::Leaders::new(registry);
        let registry = registry.sub_registry_with_prefix("informer");
        let last_events = LastEvents::default();
        registry.register_collector(Box::new(last_events.clone()));
        #[cfg(feature = "packed")]
        registry.register_collector(Box::new(packing::Packing));
        #[cfg(feature = "events")]
        let recorders = events::Recorders::default();
        #[cfg(feature = "events")]
        registry.register_collector(Box::new(recorders.clone()));
        let gauges = Gauges::default();
        registry.register_collector(Box::new(gauges.clone()));
        Self {
            lists: add(registry, "lists", "Complete lists", Family::default()),
            list_failures: add(registry, "list_failures", "Lists that failed", Family::default()),
            list_objects: add(
                registry,
                "list_objects",
                "Objects in the last complete list",
                Family::default(),
            ),
            list_duration: add_with_unit(
                registry,
                "list_duration",
                "Time from the first request of a list to its last byte",
                Unit::Seconds,
                Family::new_with_constructor(ListBuckets),
            ),
            relists: add(registry, "relists", "Lists that had to be repeated, by cause", Family::default()),
            watches: add(registry, "watches", "Watches that were opened", Family::default()),
            watch_failures: add(
                registry,
                "watch_failures",
                "Watches that could not be opened or broke",
                Family::default(),
            ),
            events: add(
                registry,
                "events",
                "Changes of the cache, by what became of the object",
                Family::default(),
            ),
            last_events,
            skipped: add(
                registry,
                "skipped",
                "Items of watches that had no business there and were skipped",
                Family::default(),
            ),
            quarantined: add(
                registry,
                "quarantined_objects",
                "Objects that exist but cannot be used",
                Family::default(),
            ),
            gauges,
            processing: add_with_unit(
                registry,
                "processing_latency",
                "Time from taking changes out of the queue to having them in the cache",
                Unit::Seconds,
                Family::new_with_constructor(WorkBuckets),
            ),
            handler_panics: add(registry, "handler_panics", "Panics of a handler", Family::default()),
            sync_duration: add_with_unit(
                registry,
                "sync_duration",
                "Time from the start to the first list in the cache",
                Unit::Seconds,
                Family::default(),
            ),
            queues,
            controllers,
            #[cfg(feature = "leader")]
            leaders,
            #[cfg(feature = "events")]
            recorders,
        }
    }

    /// Every change is a series from the first batch on: one that begins above 0 hides its first increase.
    fn applied(&self, informer: &str, changes: [(&'static str, usize); 3]) {
        for (change, count) in changes {
            let of = OfChange { informer: informer.to_owned(), change };
            self.events.get_or_create(&of).inc_by(count as u64);
        }
        if changes.iter().any(|(_, count)| *count > 0) {
            self.last_events.note(informer);
        }
    }

    /// Removes what is said of the present.
    fn forget_levels(&self, of: &OfInformer) {
        for level in [&self.list_objects, &self.quarantined] {
            level.remove(of);
        }
        self.sync_duration.remove(of);
        self.last_events.lock().remove(&of.informer);
    }
}

/// The registry adds a full stop to the help, and `_total` to the names of counters.
fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// The registry adds the unit to the name.
fn add_with_unit<M: Metric + Clone>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    unit: Unit,
    metric: M,
) -> M {
    registry.register_with_unit(name, help, unit, metric.clone());
    metric
}

impl Metrics for PrometheusMetrics {
    fn record(&self, informer: &str, measurement: Measurement<'_>) {
        let of = OfInformer { informer: informer.to_owned() };
        let count = |family: &Count<OfInformer>| {
            family.get_or_create(&of).inc();
        };
        let set = |family: &Level<OfInformer>, level: u64| {
            family.get_or_create(&of).set(level);
        };
        match measurement {
            Measurement::Listed { objects, took } => {
                count(&self.lists);
                set(&self.list_objects, objects as u64);
                self.list_duration.get_or_create(&of).observe(took.as_secs_f64());
            }
            Measurement::ListFailed => count(&self.list_failures),
            Measurement::Relist { cause } => {
                self.relists.get_or_create(&OfCause { informer: of.informer, cause }).inc();
            }
            Measurement::WatchOpened => count(&self.watches),
            Measurement::WatchFailed => count(&self.watch_failures),
            Measurement::Applied { added, updated, deleted, took } => {
                self.applied(informer, [("added", added), ("updated", updated), ("deleted", deleted)]);
                self.processing.get_or_create(&self.gauges.labels_of(informer)).observe(took.as_secs_f64());
            }
            Measurement::Skipped => count(&self.skipped),
            Measurement::Quarantined(objects) => set(&self.quarantined, objects as u64),
            Measurement::HandlerPanicked { handler } => {
                let of = OfHandler { informer: of.informer, handler: handler.to_owned() };
                self.handler_panics.get_or_create(&of).inc();
            }
            Measurement::Synced { took } => {
                // Those that have not counted anything yet begin at 0, so that their first increase shows.
                for family in [&self.list_failures, &self.watches, &self.watch_failures, &self.skipped] {
                    drop(family.get_or_create(&of));
                }
                self.sync_duration.get_or_create(&of).set(took.as_secs_f64());
            }
            Measurement::Stopped => self.forget_levels(&of),
            Measurement::WorkStarted { waited } => self.queues.started(informer, waited),
            Measurement::WorkDone { took } => self.queues.done(informer, took),
            Measurement::Reconciled { outcome } => self.controllers.ended(informer, outcome),
        }
    }

    fn informer(&self, name: &str, probe: Probe<Levels>) {
        self.gauges.watch(name, probe);
    }

    #[cfg(feature = "leader")]
    fn election(&self, name: &str, probe: Probe<crate::leader::LeaderStats>) {
        self.leaders.watch(name, probe);
    }

    #[cfg(feature = "events")]
    fn recorder(&self, controller: &str, probe: Probe<crate::events::RecorderStats>) {
        self.recorders.watch(controller, probe);
    }

    fn queue(&self, name: &str, probe: workqueue::QueueProbe) {
        self.queues.watch(name, probe);
    }
}
