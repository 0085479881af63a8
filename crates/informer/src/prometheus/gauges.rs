//! What informers hold, read at the time of a scrape.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use informer_model::ResourceVersion;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

use crate::metrics::{Levels, Probe};

/// The labels that client-go gives an informer. Those of the resource are empty where none is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
pub(super) struct OfResource {
    name: String,
    group: String,
    version: String,
    resource: String,
}

impl OfResource {
    fn new(name: &str, levels: &Levels) -> Self {
        let mut labels = Self { name: name.to_owned(), ..Self::default() };
        if let Some(of) = &levels.resource {
            (labels.group, labels.version) = (of.group().to_owned(), of.version().to_owned());
            of.resource().clone_into(&mut labels.resource);
        }
        labels
    }
}

/// Informers whose gauges are read at the time of a scrape.
#[derive(Debug, Clone, Default)]
pub(super) struct Gauges(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    probes: Vec<(OfResource, Probe<Levels>)>,
    /// By name, also of informers that have stopped: their histograms go on.
    labels: BTreeMap<String, OfResource>,
}

/// What the informers of one name hold together, and which version the one that is furthest behind has reached.
#[derive(Default)]
struct Sums {
    levels: BTreeMap<String, Levels>,
    queued: BTreeMap<OfResource, u64>,
    versions: BTreeMap<OfResource, u64>,
    handlers: BTreeMap<(String, String), usize>,
    told: BTreeMap<(String, String), u64>,
}

impl Gauges {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watch(&self, name: &str, probe: Probe<Levels>) {
        let labels = OfResource::new(name, &probe.ask().unwrap_or_default());
        let mut known = self.lock();
        known.labels.insert(name.to_owned(), labels.clone());
        known.probes.push((labels, probe));
    }

    pub(super) fn labels_of(&self, name: &str) -> OfResource {
        let known = self.lock().labels.get(name).cloned();
        known.unwrap_or_else(|| OfResource { name: name.to_owned(), ..OfResource::default() })
    }

    /// What all informers hold that run. Those of one name, and handlers of one name, are one.
    fn read(&self) -> Sums {
        let mut sums = Sums::default();
        self.lock().probes.retain(|(labels, probe)| {
            let Some(now) = probe.ask() else { return false };
            let sum = sums.levels.entry(labels.name.clone()).or_default();
            sum.objects += now.objects;
            sum.bytes += now.bytes;
            sum.index_bytes += now.index_bytes;
            *sums.queued.entry(labels.clone()).or_default() += now.queued as u64;
            if let Some(version) = last_digits(&now.version) {
                let least = sums.versions.entry(labels.clone()).or_insert(version);
                *least = version.min(*least);
            }
            for (handler, pending) in now.handlers {
                *sums.handlers.entry((labels.name.clone(), handler)).or_default() += pending;
            }
            for (handler, told) in now.told {
                *sums.told.entry((labels.name.clone(), handler)).or_default() += told;
            }
            true
        });
        sums
    }
}

/// What of a version a gauge can say exactly: its last 15 digits.
fn last_digits(version: &ResourceVersion) -> Option<u64> {
    let text = version.to_string();
    let last = text.get(text.len().saturating_sub(15)..)?;
    (version.is_decimal()).then(|| last.parse().ok())?
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Sums { levels, queued, versions, handlers, told } = self.read();
        let mut of_resources = |name, help, values: BTreeMap<OfResource, u64>| -> fmt::Result {
            if values.is_empty() {
                return Ok(());
            }
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (labels, value) in values {
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
            Ok(())
        };
        let help = "Entries that wait between the server and the cache.";
        of_resources("queued_items", help, queued)?;
        let help = "The last 15 digits of the version that the cache has reached.";
        of_resources("store_resource_version", help, versions)?;
        if levels.is_empty() {
            return Ok(());
        }
        let mut gauge = |name, help, unit, read: fn(&Levels) -> u64| -> fmt::Result {
            let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            for (informer, levels) in &levels {
                let labels = [("informer", informer.as_str())];
                ConstGauge::new(read(levels)).encode(family.encode_family(&labels)?)?;
            }
            Ok(())
        };
        gauge("store_objects", "Objects in the cache.", None, |levels| levels.objects as u64)?;
        let help = "What the objects in the cache took on the wire.";
        gauge("store", help, Some(&Unit::Bytes), |levels| levels.bytes)?;
        let help = "About what indexes take in memory.";
        gauge("store_index", help, Some(&Unit::Bytes), |levels| levels.index_bytes)?;
        if handlers.is_empty() {
            return Ok(());
        }
        let help = "Events that wait for a handler.";
        let mut family = encoder.encode_descriptor("handler_pending", help, None, MetricType::Gauge)?;
        for ((informer, handler), pending) in &handlers {
            let labels = [("informer", informer.as_str()), ("handler", handler.as_str())];
            ConstGauge::new(*pending as u64).encode(family.encode_family(&labels)?)?;
        }
        if told.is_empty() {
            return Ok(());
        }
        let help = "Events that a handler was told.";
        let mut family = encoder.encode_descriptor("handler_events", help, None, MetricType::Counter)?;
        for ((informer, handler), told) in &told {
            let labels = [("informer", informer.as_str()), ("handler", handler.as_str())];
            ConstCounter::new(*told).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
