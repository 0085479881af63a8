//! What the gateway counts about its own work, and about its informers, and how that is written.

use std::{
    collections::HashMap,
    fmt::{self, Write},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use informer::{
    PrometheusMetrics,
    metrics::{Levels, Measurement, Metrics, Probe},
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, counter::Counter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::Registry,
};

use crate::{cache::Cache, listener::ConnectionLimits, share::Shares};

/// The upper ends of what answers take, in seconds.
const SECONDS: [f64; 10] = [0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

/// How many requests were answered, by how, and how soon.
#[derive(Clone, Debug)]
pub(crate) struct RequestMetrics {
    answered: Family<Answered, Counter>,
    took: Family<Route, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    route: &'static str,
    code: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Route {
    route: &'static str,
}

impl RequestMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            answered: Family::default(),
            took: Family::new_with_constructor(|| Histogram::new(SECONDS)),
        };
        let help = "Requests that were answered, by route and HTTP status";
        registry.register("informer_gateway_requests", help, metrics.answered.clone());
        let help = "Time until an answer began, in seconds, by route";
        registry.register("informer_gateway_request_duration_seconds", help, metrics.took.clone());
        metrics
    }

    pub(crate) fn answered(&self, path: &str, code: u16, took: Duration) {
        let route = route(path);
        self.answered.get_or_create(&Answered { route, code }).inc();
        self.took.get_or_create(&Route { route }).observe(took.as_secs_f64());
    }
}

/// Who is there now.
pub(crate) struct Present {
    pub(crate) streams: Arc<Shares>,
    pub(crate) connections: Arc<ConnectionLimits>,
}

impl fmt::Debug for Present {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Present").finish_non_exhaustive()
    }
}

impl Collector for Present {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, help, value) in [
            ("informer_gateway_streams", "Streams and watches that are open", self.streams.held()),
            ("informer_gateway_connections", "Connections that are open", self.connections.taken()),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value as i64).encode(metric)?;
        }
        Ok(())
    }
}

/// What the objects in memory take: it looks at each of them.
pub(crate) struct Objects(pub(crate) Arc<Cache>);

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

impl Collector for Objects {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Bytes of objects in memory, by resource: their JSON as text, and what is kept";
        let name = "informer_gateway_object_bytes";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for collection in self.0.all() {
            let sizes = collection.sizes();
            for (form, bytes) in [("text", sizes.plain), ("kept", sizes.kept)] {
                let labels = [("resource", collection.path.as_str()), ("form", form)];
                ConstGauge::new(bytes as i64).encode(metric.encode_family(&labels)?)?;
            }
        }
        let help = "Bytes of the last changes, by resource: objects as they are kept, and changes as they were written";
        let name = "informer_gateway_change_bytes";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for collection in self.0.all() {
            for (form, bytes) in collection.changes.bytes() {
                let labels = [("resource", collection.path.as_str()), ("form", form)];
                ConstGauge::new(bytes as i64).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// The text format of Prometheus, of the same in OpenMetrics: a counter has its whole name in the lines about it, and
/// there are no units and no end.
pub(crate) fn prometheus_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut counters = Vec::new();
    for line in open_metrics.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ").and_then(|line| line.strip_suffix(" counter")) {
            counters.push(name);
        }
    }
    for line in open_metrics.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT ")) {
        let about = ["# TYPE ", "# HELP "].iter().find_map(|about| Some((about, line.strip_prefix(about)?)));
        // Writing to a string does not fail.
        let _ = match about.and_then(|(about, line)| Some((about, line.split_once(' ')?))) {
            Some((about, (name, rest))) if counters.contains(&name) => {
                writeln!(text, "{about}{name}_total {rest}")
            }
            Some((about, (name, "unknown"))) => writeln!(text, "{about}{name} untyped"),
            _ => writeln!(text, "{line}"),
        };
    }
    text
}

/// The kind of route: few values, whatever is asked for.
fn route(path: &str) -> &'static str {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    match first {
        "" | "_page" => "page",
        "api" | "apis" => "kubernetes",
        "_stream" | "_streams" => "stream",
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

    fn informer(&self, name: &str, probe: Probe<Levels>) {
        self.prometheus.informer(name, probe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_format_of_prometheus_has_no_end_and_whole_names_of_counters() {
        let open_metrics = "# HELP a How many.\n# TYPE a counter\n# UNIT a seconds\na_total{x=\"y\"} 3\n# HELP b Now.\n# TYPE b gauge\nb 1\n# EOF\n";
        let text = "# HELP a_total How many.\n# TYPE a_total counter\na_total{x=\"y\"} 3\n# HELP b Now.\n# TYPE b gauge\nb 1\n";
        assert_eq!(prometheus_text(open_metrics), text);
    }
}
