//! The series of work queues. They have the names and the label `name` that Kubernetes' own components give them, so that
//! dashboards and alerts for those show ours too.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{
        MetricType,
        counter::ConstCounter,
        family::{Family, MetricConstructor},
        gauge::ConstGauge,
        histogram::Histogram,
    },
    registry::{Registry, Unit},
};

use super::add_with_unit;
use crate::workqueue::{QueueProbe, QueueStats};

#[derive(Debug, Clone)]
pub(super) struct Queues {
    waited: Family<OfQueue, Histogram, WorkBuckets>,
    took: Family<OfQueue, Histogram, WorkBuckets>,
    probes: Probes,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfQueue {
    name: String,
}

/// Powers of ten, from ten nanoseconds to ten seconds.
#[derive(Debug, Clone)]
pub(super) struct WorkBuckets;

impl MetricConstructor<Histogram> for WorkBuckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new([1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0])
    }
}

impl Queues {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("workqueue");
        let probes = Probes::default();
        registry.register_collector(Box::new(probes.clone()));
        let mut histogram = |name, help| {
            add_with_unit(registry, name, help, Unit::Seconds, Family::new_with_constructor(WorkBuckets))
        };
        Self {
            waited: histogram("queue_duration", "Time an item is queued before a worker takes it"),
            took: histogram("work_duration", "Time a worker has an item"),
            probes,
        }
    }

    pub(super) fn watch(&self, name: &str, probe: QueueProbe) {
        self.probes.lock().probes.push((name.to_owned(), probe));
    }

    pub(super) fn started(&self, name: &str, waited: Duration) {
        self.waited.get_or_create(&OfQueue { name: name.to_owned() }).observe(waited.as_secs_f64());
    }

    pub(super) fn done(&self, name: &str, took: Duration) {
        self.took.get_or_create(&OfQueue { name: name.to_owned() }).observe(took.as_secs_f64());
    }
}

/// Queues whose gauges are read at the time of a scrape.
#[derive(Debug, Clone, Default)]
struct Probes(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    probes: Vec<(String, QueueProbe)>,
    /// What those have counted that are gone: the next one of the name goes on from there.
    gone: BTreeMap<String, Counts>,
}

/// Adds and retries.
type Counts = [u64; 2];

fn add_counts(all: &mut BTreeMap<String, Counts>, name: &str, probe: &QueueProbe) {
    let [adds, retries] = all.entry(name.to_owned()).or_default();
    *adds += probe.adds();
    *retries += probe.retries();
}

impl Probes {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What all queues have counted, and how those are doing that still exist. Those of one name are one.
    fn read(&self) -> (BTreeMap<String, Counts>, BTreeMap<String, QueueStats>) {
        let mut known = self.lock();
        let Known { probes, gone } = &mut *known;
        let mut levels = BTreeMap::new();
        probes.retain(|(name, probe)| {
            let Some(stats) = probe.stats() else {
                add_counts(gone, name, probe);
                return false;
            };
            levels.entry(name.clone()).and_modify(|sum: &mut QueueStats| sum.add(stats)).or_insert(stats);
            true
        });
        let mut counts = gone.clone();
        probes.iter().for_each(|(name, probe)| add_counts(&mut counts, name, probe));
        (counts, levels)
    }
}

impl Collector for Probes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (counts, all) = self.read();
        if counts.is_empty() {
            return Ok(());
        }
        let mut counter = |name, help, nth: usize| -> fmt::Result {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (queue, counts) in &counts {
                let labels = [("name", queue.as_str())];
                ConstCounter::new(counts[nth]).encode(family.encode_family(&labels)?)?;
            }
            Ok(())
        };
        counter("adds", "Items that were queued", 0)?;
        counter("retries", "Items that were queued again because they failed", 1)?;
        if all.is_empty() {
            return Ok(());
        }

        let mut gauge = |name, help, unit, read: fn(&QueueStats) -> f64| -> fmt::Result {
            let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            for (queue, stats) in &all {
                let labels = [("name", queue.as_str())];
                ConstGauge::new(read(stats)).encode(family.encode_family(&labels)?)?;
            }
            Ok(())
        };
        gauge("depth", "Items that are queued now", None, |stats| stats.depth as f64)?;
        gauge("delayed", "Items that will be queued later", None, |stats| stats.delayed as f64)?;
        gauge("processing", "Items that a worker has now", None, |stats| stats.processing as f64)?;
        let help = "Time workers have had what they have now, all together: if it grows, one is stuck";
        gauge("unfinished_work", help, Some(&Unit::Seconds), |stats| stats.unfinished.as_secs_f64())?;
        let help = "Time the slowest worker has had its item";
        gauge("longest_running_processor", help, Some(&Unit::Seconds), |stats| {
            stats.longest_running.as_secs_f64()
        })
    }
}
