//! The series of recorders of events.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use crate::{events::RecorderStats, metrics::Probe};

/// Recorders, which are asked at the time of a scrape.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorders(Arc<Mutex<Vec<Named>>>);

/// Under the name of its series.
type Named = (String, Probe<RecorderStats>);

impl Recorders {
    pub(super) fn watch(&self, controller: &str, probe: Probe<RecorderStats>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((controller.to_owned(), probe));
    }

    /// Recorders of one controller are one.
    fn read(&self) -> BTreeMap<String, RecorderStats> {
        let mut all = BTreeMap::new();
        for (controller, probe) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            if let Some(stats) = probe.ask() {
                all.entry(controller.clone()).or_insert_with(RecorderStats::default).add(stats);
            }
        }
        all
    }
}

impl Collector for Recorders {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.read();
        if all.is_empty() {
            return Ok(());
        }
        let help = "Events that were recorded, by what became of them.";
        let mut family = encoder.encode_descriptor("recorded_events", help, None, MetricType::Counter)?;
        for (controller, stats) in &all {
            // Each from the beginning on: one that begins above 0 hides its first increase.
            for (outcome, count) in [
                ("sent", stats.sent),
                ("counted", stats.aggregated),
                ("suppressed", stats.suppressed),
                ("dropped", stats.dropped),
                ("failed", stats.failed),
            ] {
                let labels = [("controller", controller.as_str()), ("outcome", outcome)];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        let help = "Events that are still to be sent.";
        let mut family =
            encoder.encode_descriptor("recorded_events_waiting", help, None, MetricType::Gauge)?;
        for (controller, stats) in &all {
            let waiting = ConstGauge::new(stats.waiting());
            waiting.encode(family.encode_family(&[("controller", controller.as_str())])?)?;
        }
        Ok(())
    }
}
