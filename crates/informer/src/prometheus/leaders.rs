//! The series of leader elections. Those that client-go has too have its names and its label `name`.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};

use crate::{leader::LeaderStats, metrics::Probe};

/// Elections, which are asked at the time of a scrape.
#[derive(Debug, Clone, Default)]
pub(super) struct Leaders(Arc<Mutex<Vec<Named>>>);

/// Under the name of its series.
type Named = (String, Probe<LeaderStats>);

impl Leaders {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let leaders = Self::default();
        registry
            .sub_registry_with_prefix("leader_election")
            .register_collector(Box::new(OfClientGo(leaders.clone())));
        registry.sub_registry_with_prefix("informer").register_collector(Box::new(Ours(leaders.clone())));
        leaders
    }

    pub(super) fn watch(&self, name: &str, probe: Probe<LeaderStats>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), probe));
    }

    /// Elections of one name are one: terms one after the other, or Leases of two namespaces.
    fn read(&self) -> BTreeMap<String, LeaderStats> {
        let mut all = BTreeMap::new();
        for (name, probe) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            if let Some(stats) = probe.ask() {
                all.entry(name.clone()).or_insert_with(LeaderStats::default).add(stats);
            }
        }
        all
    }
}

type Read = fn(&LeaderStats) -> u64;

#[derive(Debug)]
struct OfClientGo(Leaders);

impl Collector for OfClientGo {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.0.read();
        if all.is_empty() {
            return Ok(());
        }
        let help = "Whether this process leads.";
        let mut family = encoder.encode_descriptor("master_status", help, None, MetricType::Gauge)?;
        for (name, stats) in &all {
            let leads = ConstGauge::new(u64::from(stats.leads));
            leads.encode(family.encode_family(&[("name", name.as_str())])?)?;
        }
        count(&mut encoder, &all, "slowpath", "Renewals for which the Lease was read first.", |stats| {
            stats.slow_renewals
        })
    }
}

#[derive(Debug)]
struct Ours(Leaders);

impl Collector for Ours {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.0.read();
        if all.is_empty() {
            return Ok(());
        }
        count(&mut encoder, &all, "leader_terms", "Terms of this process.", |stats| stats.terms)?;
        let help = "Attempts to renew a term that failed.";
        count(&mut encoder, &all, "leader_renew_failures", help, |stats| stats.renew_failures)
    }
}

fn count(
    encoder: &mut DescriptorEncoder<'_>,
    all: &BTreeMap<String, LeaderStats>,
    metric: &str,
    help: &str,
    read: Read,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(metric, help, None, MetricType::Counter)?;
    for (name, stats) in all {
        ConstCounter::new(read(stats)).encode(family.encode_family(&[("name", name.as_str())])?)?;
    }
    Ok(())
}
