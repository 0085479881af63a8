//! What a Prometheus server gets to read.

mod leaders;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use informer::{
    DynamicObject, Handler, Packed, PrometheusMetrics, RawObject, SharedInformer,
    controller::Controller,
    metrics::{Levels, Measurement, Metrics, Probe},
    source::MemorySource,
    workqueue::WorkQueue,
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use prometheus_client::{encoding::text::encode, registry::Registry};

fn scrape(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).expect("a registry that can be written");
    text
}

/// The lines of some series, sorted: within a metric, series come in any order.
fn lines(text: &str, beginning: &str) -> Vec<String> {
    let mut lines: Vec<_> =
        text.lines().filter(|line| line.starts_with(beginning)).map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test(start_paused = true)]
async fn every_measurement_has_its_lines_with_informer_and_unit() {
    let mut registry = Registry::default();
    let metrics = PrometheusMetrics::new(&mut registry);
    assert_eq!(
        lines(&scrape(&registry), "informer_store"),
        Vec::<String>::new(),
        "what was never measured is not said"
    );
    let took = Duration::from_millis(1_500);
    metrics.informer("pods", holding(3, &[("index", 5)]));
    for measurement in [
        Measurement::Listed { objects: 3, took },
        Measurement::ListFailed,
        Measurement::Relist { cause: "version expired" },
        Measurement::WatchOpened,
        Measurement::WatchFailed,
        Measurement::Applied { added: 3, updated: 2, deleted: 0, took },
        Measurement::Skipped,
        Measurement::Quarantined(1),
        Measurement::HandlerPanicked { handler: "index" },
        Measurement::Synced { took },
    ] {
        metrics.record("pods", measurement);
    }
    tokio::time::advance(Duration::from_millis(2_500)).await;
    let text = scrape(&registry);
    let events = "informer_events_total";
    let expected = [
        r#"informer_events_total{informer="pods",change="added"} 3"#,
        r#"informer_events_total{informer="pods",change="deleted"} 0"#,
        r#"informer_events_total{informer="pods",change="updated"} 2"#,
    ];
    assert_eq!(lines(&text, events), expected);
    let buckets = "informer_processing_latency_seconds_bucket";
    // Other tests of this process may pack objects meanwhile.
    let elsewhere =
        |line: &str| ["informer_packed_", "informer_dictionary_"].iter().any(|name| line.contains(name));
    let others: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with(events) && !line.starts_with(buckets) && !elsewhere(line))
        .collect();
    assert_eq!(others, EXPECTED.lines().collect::<Vec<_>>());
}

const EXPECTED: &str = r#"# HELP informer_lists Complete lists.
# TYPE informer_lists counter
informer_lists_total{informer="pods"} 1
# HELP informer_list_failures Lists that failed.
# TYPE informer_list_failures counter
informer_list_failures_total{informer="pods"} 1
# HELP informer_list_objects Objects in the last complete list.
# TYPE informer_list_objects gauge
informer_list_objects{informer="pods"} 3
# HELP informer_list_duration_seconds Time from the first request of a list to its last byte.
# TYPE informer_list_duration_seconds histogram
# UNIT informer_list_duration_seconds seconds
informer_list_duration_seconds_sum{informer="pods"} 1.5
informer_list_duration_seconds_count{informer="pods"} 1
informer_list_duration_seconds_bucket{le="0.01",informer="pods"} 0
informer_list_duration_seconds_bucket{le="0.025",informer="pods"} 0
informer_list_duration_seconds_bucket{le="0.05",informer="pods"} 0
informer_list_duration_seconds_bucket{le="0.1",informer="pods"} 0
informer_list_duration_seconds_bucket{le="0.25",informer="pods"} 0
informer_list_duration_seconds_bucket{le="0.5",informer="pods"} 0
informer_list_duration_seconds_bucket{le="1.0",informer="pods"} 0
informer_list_duration_seconds_bucket{le="2.5",informer="pods"} 1
informer_list_duration_seconds_bucket{le="5.0",informer="pods"} 1
informer_list_duration_seconds_bucket{le="10.0",informer="pods"} 1
informer_list_duration_seconds_bucket{le="30.0",informer="pods"} 1
informer_list_duration_seconds_bucket{le="60.0",informer="pods"} 1
informer_list_duration_seconds_bucket{le="120.0",informer="pods"} 1
informer_list_duration_seconds_bucket{le="+Inf",informer="pods"} 1
# HELP informer_relists Lists that had to be repeated, by cause.
# TYPE informer_relists counter
informer_relists_total{informer="pods",cause="version expired"} 1
# HELP informer_watches Watches that were opened.
# TYPE informer_watches counter
informer_watches_total{informer="pods"} 1
# HELP informer_watch_failures Watches that could not be opened or broke.
# TYPE informer_watch_failures counter
informer_watch_failures_total{informer="pods"} 1
# HELP informer_events Changes of the cache, by what became of the object.
# TYPE informer_events counter
# HELP informer_skipped Items of watches that had no business there and were skipped.
# TYPE informer_skipped counter
informer_skipped_total{informer="pods"} 1
# HELP informer_quarantined_objects Objects that exist but cannot be used.
# TYPE informer_quarantined_objects gauge
informer_quarantined_objects{informer="pods"} 1
# HELP informer_processing_latency_seconds Time from taking changes out of the queue to having them in the cache.
# TYPE informer_processing_latency_seconds histogram
# UNIT informer_processing_latency_seconds seconds
informer_processing_latency_seconds_sum{name="pods",group="",version="v1",resource="pods"} 1.5
informer_processing_latency_seconds_count{name="pods",group="",version="v1",resource="pods"} 1
# HELP informer_handler_panics Panics of a handler.
# TYPE informer_handler_panics counter
informer_handler_panics_total{informer="pods",handler="index"} 1
# HELP informer_sync_duration_seconds Time from the start to the first list in the cache.
# TYPE informer_sync_duration_seconds gauge
# UNIT informer_sync_duration_seconds seconds
informer_sync_duration_seconds{informer="pods"} 1.5
# HELP informer_last_event_age_seconds Time since the last change of the cache.
# TYPE informer_last_event_age_seconds gauge
# UNIT informer_last_event_age_seconds seconds
informer_last_event_age_seconds{informer="pods"} 2.5
# HELP informer_queued_items Entries that wait between the server and the cache.
# TYPE informer_queued_items gauge
informer_queued_items{name="pods",group="",version="v1",resource="pods"} 7
# HELP informer_store_resource_version The last 15 digits of the version that the cache has reached.
# TYPE informer_store_resource_version gauge
informer_store_resource_version{name="pods",group="",version="v1",resource="pods"} 345678901234567
# HELP informer_store_objects Objects in the cache.
# TYPE informer_store_objects gauge
informer_store_objects{informer="pods"} 3
# HELP informer_store_bytes What the objects in the cache took on the wire.
# TYPE informer_store_bytes gauge
# UNIT informer_store_bytes bytes
informer_store_bytes{informer="pods"} 3072
# HELP informer_store_index_bytes About what indexes take in memory.
# TYPE informer_store_index_bytes gauge
# UNIT informer_store_index_bytes bytes
informer_store_index_bytes{informer="pods"} 512
# HELP informer_handler_pending Events that wait for a handler.
# TYPE informer_handler_pending gauge
informer_handler_pending{informer="pods",handler="index"} 5
# EOF
"#;

/// An informer that holds so many objects of a kibibyte, and this for its handlers.
fn holding(objects: usize, handlers: &[(&str, usize)]) -> Probe<Levels> {
    let mut levels = Levels::default();
    (levels.objects, levels.bytes, levels.queued) = (objects, objects as u64 * 1024, 7);
    levels.resource = "v1/pods".parse().ok();
    levels.version = "9012345678901234567".into();
    levels.index_bytes = 512;
    levels.handlers = handlers.iter().map(|(name, pending)| ((*name).to_owned(), *pending)).collect();
    Probe::new(move || Some(levels.clone()))
}

#[tokio::test(start_paused = true)]
async fn gauges_say_what_is_so_when_they_are_read_whether_or_not_anything_happens() {
    let mut registry = Registry::default();
    let metrics = Arc::new(PrometheusMetrics::new(&mut registry));
    let source = MemorySource::<ConfigMap>::new();
    for name in ["a", "b", "c"] {
        let metadata =
            ObjectMeta { name: Some(name.into()), namespace: Some("shop".into()), ..Default::default() };
        source.put(ConfigMap { metadata, ..Default::default() }).unwrap();
    }
    let maps = SharedInformer::builder(source).name("maps").metrics(metrics).build().unwrap();
    let (entered, heard) = std::sync::mpsc::channel();
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let handler = Handler::<ConfigMap>::new().name("slow").blocking().on_add(move |_, _| {
        let _ = (entered.send(()), gate.recv());
    });
    let registration = maps.add_handler(handler).unwrap();
    maps.start().unwrap();
    maps.wait_until_synced(Duration::from_secs(10)).await.unwrap();
    let gauge = |name: &str| lines(&scrape(&registry), &format!("informer_{name}{{")).join("");
    heard.recv().unwrap();
    assert_eq!(gauge("store_objects"), r#"informer_store_objects{informer="maps"} 3"#);
    assert_eq!(gauge("handler_pending"), r#"informer_handler_pending{informer="maps",handler="slow"} 3"#);
    drop(go);
    registration.wait_until_synced(Duration::MAX).await.unwrap();
    assert_eq!(gauge("handler_pending"), r#"informer_handler_pending{informer="maps",handler="slow"} 0"#);
    let of_maps = r#"{name="maps",group="",version="",resource=""}"#;
    assert_eq!(gauge("queued_items"), format!("informer_queued_items{of_maps} 0"), "memory has no resource");
    let version = maps.store().resource_version();
    assert_eq!(
        gauge("store_resource_version"),
        format!("informer_store_resource_version{of_maps} {version}")
    );
    registration.remove().await.unwrap();
    assert_eq!(gauge("handler_pending"), "", "nothing is said of a handler that was removed");
    maps.stop().await.unwrap();
    assert_eq!(gauge("store_objects"), "", "nor of an informer that has stopped");
}

#[test]
fn what_packing_has_gained_has_its_lines_one_for_each_kind() {
    let mut registry = Registry::default();
    let _metrics = PrometheusMetrics::new(&mut registry);
    let lease = r#"{"apiVersion":"example.com/v1","kind":"Packed","metadata":{"name":"a"}}"#;
    let whole = serde_json::from_str::<Packed<RawObject>>(lease).unwrap();
    let other = serde_json::from_str::<Packed<DynamicObject>>(lease).unwrap();
    let bytes = |form: &str, bytes: usize| {
        format!(r#"informer_packed_bytes_total{{kind="example.com/v1/Packed",form="{form}"}} {bytes}"#)
    };
    let expected =
        [bytes("packed", whole.packed_bytes() + other.packed_bytes()), bytes("plain", 2 * lease.len())];
    let text = scrape(&registry);
    assert_eq!(lines(&text, r#"informer_packed_bytes_total{kind="example.com/v1/Packed""#), expected);
    let dictionaries = lines(&text, r#"informer_dictionary_bytes{kind="example.com/v1/Packed""#);
    assert_eq!(dictionaries, [r#"informer_dictionary_bytes{kind="example.com/v1/Packed"} 0"#]);
}

#[tokio::test(start_paused = true)]
async fn informers_and_handlers_have_lines_of_their_own() {
    let mut registry = Registry::default();
    let metrics = PrometheusMetrics::new(&mut registry);
    for (informer, handlers) in
        [("pods", &[("a", 1), ("b", 2)][..]), ("nodes", &[("a", 3)]), ("pods", &[("a", 3)])]
    {
        metrics.informer(informer, holding(1, handlers));
        metrics.clone().record(informer, Measurement::Skipped);
    }
    let text = scrape(&registry);
    let pending = [
        r#"informer_handler_pending{informer="nodes",handler="a"} 3"#,
        r#"informer_handler_pending{informer="pods",handler="a"} 4"#,
        r#"informer_handler_pending{informer="pods",handler="b"} 2"#,
    ];
    assert_eq!(lines(&text, "informer_handler_pending{"), pending);
    let skipped =
        [r#"informer_skipped_total{informer="nodes"} 1"#, r#"informer_skipped_total{informer="pods"} 2"#];
    assert_eq!(lines(&text, "informer_skipped_total"), skipped, "a clone counts for the same registry");
    let objects =
        [r#"informer_store_objects{informer="nodes"} 1"#, r#"informer_store_objects{informer="pods"} 2"#];
    assert_eq!(lines(&text, "informer_store_objects{"), objects, "informers of one name are one");
}

#[tokio::test(start_paused = true)]
async fn the_age_of_the_last_event_grows_until_there_is_another() {
    let mut registry = Registry::with_prefix("shop");
    let metrics = PrometheusMetrics::new(&mut registry);
    let applied = |added| Measurement::Applied { added, updated: 0, deleted: 0, took: Duration::ZERO };
    let age = |registry: &Registry| lines(&scrape(registry), "shop_informer_last_event_age_seconds{");
    metrics.record("pods", applied(0));
    assert!(age(&registry).is_empty(), "a batch without changes is no event");
    metrics.record("pods", applied(1));
    tokio::time::advance(Duration::from_secs(90)).await;
    metrics.record("nodes", applied(1));
    metrics.record("pods", applied(0));
    let expected = [
        r#"shop_informer_last_event_age_seconds{informer="nodes"} 0.0"#,
        r#"shop_informer_last_event_age_seconds{informer="pods"} 90.0"#,
    ];
    assert_eq!(age(&registry), expected);
    metrics.record("pods", applied(1));
    assert_eq!(age(&registry)[1], r#"shop_informer_last_event_age_seconds{informer="pods"} 0.0"#);
}

#[tokio::test(start_paused = true)]
async fn counters_begin_at_zero_once_the_informer_is_synced() {
    let mut registry = Registry::default();
    let metrics = PrometheusMetrics::new(&mut registry);
    metrics.record("pods", Measurement::Synced { took: Duration::ZERO });
    let text = scrape(&registry);
    for name in ["list_failures", "watches", "watch_failures", "skipped"] {
        let series = format!("informer_{name}_total");
        assert_eq!(lines(&text, &series), [format!(r#"{series}{{informer="pods"}} 0"#)]);
    }
}

#[test]
fn c32_the_gauges_of_an_informer_go_with_it_and_its_counters_stay() {
    let mut registry = Registry::default();
    let metrics = PrometheusMetrics::new(&mut registry);
    let took = Duration::from_secs(1);
    for informer in ["pods", "nodes"] {
        for measurement in [
            Measurement::Listed { objects: 3, took },
            Measurement::Applied { added: 3, updated: 0, deleted: 0, took },
            Measurement::Quarantined(1),
            Measurement::Synced { took },
        ] {
            metrics.record(informer, measurement);
        }
    }
    let running = Arc::new(());
    let asked = Arc::downgrade(&running);
    metrics.informer("pods", Probe::new(move || asked.upgrade().map(|_| Levels::default())));
    metrics.informer("nodes", holding(3, &[("a", 5), ("b", 6)]));
    drop(running);
    metrics.record("pods", Measurement::Stopped);
    let text = scrape(&registry);
    let names = |of: &str| {
        let lines = text.lines().filter(|line| {
            line.contains(&format!("informer=\"{of}\"")) || line.contains(&format!("{{name=\"{of}\""))
        });
        lines.map(|line| line.split('{').next().unwrap_or_default().to_owned()).collect::<BTreeSet<_>>()
    };
    let (gone, left): (Vec<_>, Vec<_>) =
        names("nodes").into_iter().partition(|name| !names("pods").contains(name));
    let gauges = [
        "informer_handler_pending",
        "informer_last_event_age_seconds",
        "informer_list_objects",
        "informer_quarantined_objects",
        "informer_queued_items",
        "informer_store_bytes",
        "informer_store_index_bytes",
        "informer_store_objects",
        "informer_store_resource_version",
        "informer_sync_duration_seconds",
    ];
    assert_eq!(gone, gauges);
    assert!(
        left.iter().all(|name| ["_total", "_duration_seconds_", "_latency_seconds_"]
            .iter()
            .any(|of| name.contains(of))),
        "{left:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn c34_a_work_queue_has_the_series_that_dashboards_of_kubernetes_know_until_it_is_gone() {
    let mut registry = Registry::default();
    let metrics = Arc::new(PrometheusMetrics::new(&mut registry));
    let queue = WorkQueue::builder().name("websites").metrics(metrics.clone()).build();
    // Another one of the same name counts with it.
    let other = WorkQueue::builder().name("websites").metrics(metrics).build();
    for item in ["a", "b", "c"] {
        queue.add(item);
    }
    other.add("d");
    tokio::time::advance(Duration::from_secs(2)).await;
    let (first, second) = (queue.get().await.unwrap(), queue.get().await.unwrap());
    tokio::time::advance(Duration::from_secs(3)).await;
    drop(first);
    queue.retry("b");
    let text = scrape(&registry);
    let levels: Vec<String> =
        lines(&text, "workqueue").into_iter().filter(|line| !line.contains("_duration_")).collect();
    let expected = [
        r#"workqueue_adds_total{name="websites"} 4"#,
        r#"workqueue_delayed{name="websites"} 1.0"#,
        r#"workqueue_depth{name="websites"} 2.0"#,
        r#"workqueue_longest_running_processor_seconds{name="websites"} 3.0"#,
        r#"workqueue_processing{name="websites"} 1.0"#,
        r#"workqueue_retries_total{name="websites"} 1"#,
        r#"workqueue_unfinished_work_seconds{name="websites"} 3.0"#,
    ];
    assert_eq!(levels, expected);
    for line in [
        r#"workqueue_queue_duration_seconds_sum{name="websites"} 4.0"#,
        r#"workqueue_queue_duration_seconds_count{name="websites"} 2"#,
        r#"workqueue_queue_duration_seconds_bucket{le="10.0",name="websites"} 2"#,
        r#"workqueue_work_duration_seconds_sum{name="websites"} 3.0"#,
        r#"workqueue_work_duration_seconds_count{name="websites"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    drop((queue, second, other));
    assert_eq!(lines(&scrape(&registry), "workqueue_depth"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn c34_the_counters_of_a_queue_go_on_when_another_one_takes_its_name() {
    let mut registry = Registry::default();
    let metrics = Arc::new(PrometheusMetrics::new(&mut registry));
    let counters = |registry: &Registry| {
        let text = scrape(registry);
        [lines(&text, "workqueue_adds_total"), lines(&text, "workqueue_retries_total")].concat()
    };
    // The terms of a leader: each has a controller of its own.
    for term in 1..=3 {
        let controller = Controller::<&str>::new("websites");
        let queue = controller.with_queue(WorkQueue::builder().metrics(metrics.clone())).queue();
        queue.add("a");
        queue.add("b");
        queue.retry("c");
        let expected = [
            format!(r#"workqueue_adds_total{{name="websites"}} {}"#, 2 * term),
            format!(r#"workqueue_retries_total{{name="websites"}} {term}"#),
        ];
        assert_eq!(counters(&registry), expected, "while it lasts");
        drop(queue);
        assert_eq!(counters(&registry), expected, "and after it");
    }
    // What nobody has read while it lasted counts too.
    let queue = WorkQueue::builder().name("websites").metrics(metrics).build();
    queue.add("a");
    drop(queue);
    assert_eq!(counters(&registry)[0], r#"workqueue_adds_total{name="websites"} 7"#);
}
