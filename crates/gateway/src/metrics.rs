//! What the gateway counts about its own work, and about its informers.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use informer::{
    PrometheusMetrics,
    metrics::{Measurement, Metrics},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// How many requests were answered, by how.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestMetrics {
    answered: Family<Answered, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    route: &'static str,
    code: u16,
}

impl RequestMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let help = "Requests that were answered, by route and HTTP status";
        registry.register("informer_gateway_requests", help, metrics.answered.clone());
        metrics
    }

    pub(crate) fn answered(&self, path: &str, code: u16) {
        self.answered.get_or_create(&Answered { route: route(path), code }).inc();
    }
}

/// The kind of route: few values, whatever is asked for.
fn route(path: &str) -> &'static str {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    match first {
        "" | "_page" => "page",
        "api" | "apis" => "kubernetes",
        "_stream" => "stream",
        "_owned" => "owned",
        "_informers" | "_resources" => "about",
        "deploy" => "deploy",
        "livez" | "readyz" | "healthz" | "metrics" | "version" | "openapi.json" => "operations",
        _ => "resource",
    }
}

/// Takes the measurements of all informers: for Prometheus, and a few to be asked for by name.
pub(crate) struct Tally {
    prometheus: PrometheusMetrics,
    relists: Mutex<HashMap<String, u64>>,
}

impl Tally {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        Self { prometheus: PrometheusMetrics::new(registry), relists: Mutex::default() }
    }

    /// How often an informer had to list again.
    pub(crate) fn relists(&self, informer: &str) -> u64 {
        self.relists.lock().unwrap_or_else(PoisonError::into_inner).get(informer).copied().unwrap_or_default()
    }
}

impl Metrics for Tally {
    fn record(&self, informer: &str, measurement: Measurement<'_>) {
        let mut relists = self.relists.lock().unwrap_or_else(PoisonError::into_inner);
        match measurement {
            Measurement::Relist { .. } => *relists.entry(informer.to_owned()).or_default() += 1,
            Measurement::Stopped => drop(relists.remove(informer)),
            _ => {}
        }
        drop(relists);
        self.prometheus.record(informer, measurement);
    }
}
