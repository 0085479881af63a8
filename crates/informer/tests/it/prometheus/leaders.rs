//! What is read of elections, recorders and handlers.

use std::{sync::Arc, time::Duration};

use informer::{
    EventHandler, Object, PrometheusMetrics, SharedInformer,
    events::{RecordedEvent, Recorder},
    leader::LeaderElection,
    model::Status,
    source::MemorySource,
};
use informer_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{lines, scrape};

#[tokio::test(start_paused = true)]
async fn c35_an_election_has_the_series_that_dashboards_of_kubernetes_know_and_those_of_its_terms() {
    let mut registry = Registry::default();
    let metrics = Arc::new(PrometheusMetrics::new(&mut registry));
    let server = ApiServer::builder().seed(1).build();
    let election = LeaderElection::builder(server.client(), "default", "boss").metrics(metrics);
    let (election, stop) = (election.seed(7).build().unwrap(), CancellationToken::new());
    let read = |registry: &Registry| {
        let text = scrape(registry);
        let all = [lines(&text, "leader_election_"), lines(&text, "informer_leader_")].concat();
        all.iter().map(|line| line.replace(r#"{name="boss"}"#, "")).collect::<Vec<_>>()
    };
    let said = |leads: u8, slow: u8, failed: u8, terms: u8| {
        [
            format!("leader_election_master_status {leads}"),
            format!("leader_election_slowpath_total {slow}"),
            format!("informer_leader_renew_failures_total {failed}"),
            format!("informer_leader_terms_total {terms}"),
        ]
    };
    assert_eq!(read(&registry), said(0, 0, 0, 0), "every series from the beginning on");
    let until = stop.clone();
    let running =
        tokio::spawn(election.run_while_leader(stop.clone(), move |_| until.clone().cancelled_owned()));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(read(&registry), said(1, 0, 0, 1));

    // A renewal fails; the next one reads the Lease first.
    let broken = Fault::Status(Status::internal_error("no disk"));
    server.faults().add(Rule::new(broken).resource("leases").verb(Verb::Update).times(1));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(read(&registry), said(1, 1, 1, 1));

    // The Lease is deleted, and a second term begins.
    assert!(server.discard("coordination.k8s.io", "leases", &"default/boss".parse().unwrap()));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(read(&registry)[0], "leader_election_master_status 1");
    assert_eq!(read(&registry)[3], "informer_leader_terms_total 2");
    stop.cancel();
    running.await.unwrap();
    assert_eq!(read(&registry)[0], "leader_election_master_status 0");
}

#[tokio::test(start_paused = true)]
async fn c37_what_became_of_every_event_can_be_read() {
    let mut registry = Registry::default();
    let metrics = Arc::new(PrometheusMetrics::new(&mut registry));
    let server = ApiServer::builder().seed(1).build();
    let recorder = Recorder::builder(server.client(), "example.com/maps").metrics(metrics).seed(1);
    let (recorder, delivery) = recorder.build().unwrap();
    let map = |name: &str| -> ConfigMap {
        serde_json::from_value(json!({ "metadata": { "name": name, "namespace": "default" } })).unwrap()
    };
    for _ in 0..3 {
        recorder.record(&map("a"), RecordedEvent::normal("Changed", "a change"));
    }
    let read = |registry: &Registry| {
        let all = lines(&scrape(registry), "informer_recorded_events");
        all.iter().map(|line| line.replace(r#"controller="example.com/maps""#, "")).collect::<Vec<_>>()
    };
    assert_eq!(read(&registry).last().unwrap(), "informer_recorded_events_waiting{} 3");
    let stop = CancellationToken::new();
    let running = tokio::spawn(delivery.run(stop.clone()));
    // One that no server takes.
    let forbidden = Fault::Status(Status::forbidden("events", "events.k8s.io", "", "no"));
    recorder.flush(Duration::from_secs(600)).await.unwrap();
    server.faults().add(Rule::new(forbidden).resource("events.events.k8s.io"));
    recorder.record(&map("b"), RecordedEvent::normal("Changed", "a change"));
    recorder.flush(Duration::from_secs(600)).await.unwrap();
    stop.cancel();
    running.await.unwrap();
    recorder.record(&map("c"), RecordedEvent::normal("Changed", "a change"));
    let expected = [
        r#"informer_recorded_events_total{,outcome="counted"} 2"#,
        r#"informer_recorded_events_total{,outcome="dropped"} 1"#,
        r#"informer_recorded_events_total{,outcome="failed"} 1"#,
        r#"informer_recorded_events_total{,outcome="sent"} 1"#,
        r#"informer_recorded_events_total{,outcome="suppressed"} 0"#,
        "informer_recorded_events_waiting{} 0",
    ];
    assert_eq!(read(&registry), expected);
}

/// Hears of one object, and then never returns.
struct Stuck;

impl EventHandler<ConfigMap> for Stuck {
    async fn on_add(&mut self, object: &Object<ConfigMap>, _: bool) {
        if object.key().name() != "a" {
            std::future::pending::<()>().await;
        }
    }

    fn name(&self) -> Option<&str> {
        Some("stuck")
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_stuck_has_events_waiting_and_is_told_none() {
    let mut registry = Registry::default();
    let metrics = Arc::new(PrometheusMetrics::new(&mut registry));
    let source = MemorySource::<ConfigMap>::new();
    let put = |name: &str| {
        let map = json!({ "metadata": { "name": name, "namespace": "default" } });
        source.put(serde_json::from_value(map).unwrap()).unwrap();
    };
    put("a");
    let informer = SharedInformer::builder(source.clone()).name("maps").metrics(metrics);
    let maps = informer.grace(Duration::from_secs(1)).build().unwrap();
    maps.add_handler(Stuck).unwrap();
    maps.start().unwrap();
    maps.wait_until_synced(Duration::from_secs(10)).await.unwrap();
    let read = |registry: &Registry| {
        let text = scrape(registry);
        [lines(&text, "informer_handler_pending{"), lines(&text, "informer_handler_events_total{")].concat()
    };
    let said = |pending: u8, told: u8| {
        [
            format!(r#"informer_handler_pending{{informer="maps",handler="stuck"}} {pending}"#),
            format!(r#"informer_handler_events_total{{informer="maps",handler="stuck"}} {told}"#),
        ]
    };
    sleep(Duration::from_secs(5)).await;
    assert_eq!(read(&registry), said(0, 1));
    put("b");
    put("c");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(read(&registry), said(2, 1));
    assert!(maps.stop().await.is_err(), "its grace is over");
}
