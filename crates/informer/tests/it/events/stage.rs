//! A server, a recorder, and a check that all the server has is what an API server takes.

use std::time::Duration;

use informer::{
    events::{Delivery, RecordedEvent, Recorder, RecorderBuilder, RecorderStats},
    model::{is_dns_subdomain, validate_label_key},
};
use informer_apiserver::{ApiServer, Fault, Rule, RuleId, Verb};
use k8s_openapi::{
    api::{core::v1::ConfigMap, events::v1::Event as Recorded},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);
const CONTROLLER: &str = "example.com/website-controller";

pub(crate) struct Stage {
    pub(crate) server: ApiServer,
    pub(crate) recorder: Recorder,
    pub(crate) stop: CancellationToken,
    pub(crate) running: JoinHandle<()>,
}

impl Stage {
    /// A recorder whose delivery runs.
    pub(crate) fn run() -> Self {
        Self::run_with(|builder| builder)
    }

    pub(crate) fn run_with(choose: impl FnOnce(RecorderBuilder) -> RecorderBuilder) -> Self {
        let (server, recorder, delivery) = Self::build(choose);
        let stop = CancellationToken::new();
        let running = tokio::spawn(delivery.run(stop.clone()));
        Self { server, recorder, stop, running }
    }

    /// A recorder whose delivery does not run.
    pub(crate) fn build(
        choose: impl FnOnce(RecorderBuilder) -> RecorderBuilder,
    ) -> (ApiServer, Recorder, Delivery) {
        let server = ApiServer::builder().seed(1).build();
        server
            .put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } }))
            .expect("a namespace");
        let builder = Recorder::builder(server.client(), CONTROLLER).instance("pod-0").seed(1);
        let (recorder, delivery) = choose(builder).build().expect("good settings");
        (server, recorder, delivery)
    }

    /// Something happens to a config map.
    pub(crate) fn record(&self, name: &str, note: &str) {
        self.recorder.record(&mk(name), RecordedEvent::normal("Changed", note).action("Change"));
    }

    pub(crate) async fn flush(&self) {
        self.recorder.flush(HOUR).await.expect("all is sent");
    }

    /// Lets something go wrong with requests for events.
    pub(crate) fn fault(&self, fault: Fault, verbs: &[Verb], when: impl FnOnce(Rule) -> Rule) -> RuleId {
        let rule = Rule::new(fault).resource("events.events.k8s.io");
        self.server.faults().add(when(verbs.iter().fold(rule, |rule, verb| rule.verb(*verb))))
    }

    /// Stops the delivery and waits for its end.
    pub(crate) async fn end(self) -> RecorderStats {
        self.stop.cancel();
        self.running.await.expect("it does not panic");
        check(&events(&self.server).await, self.recorder.stats());
        self.recorder.stats()
    }

    /// The events that there are, checked.
    pub(crate) async fn events(&self) -> Vec<Recorded> {
        let events = events(&self.server).await;
        events.iter().for_each(is_valid);
        events
    }

    /// `note ×count` of each event.
    pub(crate) async fn notes(&self) -> Vec<String> {
        let line =
            |event: &Recorded| format!("{} ×{}", event.note.as_deref().unwrap_or_default(), count(event));
        self.events().await.iter().map(line).collect()
    }

    /// How many requests there were for a verb.
    pub(crate) fn requests(&self, verb: &'static str) -> u64 {
        self.server.requests().get(&(verb, "events".to_owned())).copied().unwrap_or(0)
    }
}

pub(crate) fn mk(name: &str) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("shop".to_owned()),
        uid: Some(format!("uid-of-{name}")),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

/// Lets everything happen that needs no time.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

pub(crate) async fn events(server: &ApiServer) -> Vec<Recorded> {
    let events = Api::<Recorded>::all(server.client()).list(&Default::default()).await.expect("a list");
    events.items
}

/// How often it happened.
pub(crate) fn count(event: &Recorded) -> i32 {
    event.series.as_ref().map_or(1, |series| series.count)
}

/// Everything on the server is valid, and is what the recorder says of itself.
pub(crate) fn check(events: &[Recorded], stats: RecorderStats) {
    events.iter().for_each(is_valid);
    let counted: i64 = events.iter().map(|event| i64::from(count(event))).sum();
    let there = i64::try_from(stats.sent + stats.aggregated).expect("few");
    assert_eq!(counted, there, "{stats}");
    assert_eq!(events.len() as u64, stats.sent, "{stats}");
}

/// What an API server wants of an event of `events.k8s.io/v1`; the embedded one does not ask.
fn is_valid(event: &Recorded) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    assert!(is_dns_subdomain(&event.name_any()), "{event:?}");
    assert!(event.event_time.is_some(), "{event:?}");
    assert!(validate_label_key(&text(&event.reporting_controller)).is_ok(), "{event:?}");
    assert!((1..=128).contains(&text(&event.reporting_instance).len()), "{event:?}");
    assert!((1..=128).contains(&text(&event.reason).len()), "{event:?}");
    assert!((1..=128).contains(&text(&event.action).len()), "{event:?}");
    assert!(text(&event.note).len() <= 1_024, "{event:?}");
    assert!(["Normal", "Warning"].contains(&text(&event.type_).as_str()), "{event:?}");
    assert!(event.series.as_ref().is_none_or(|series| series.count >= 2), "{event:?}");
    let namespace = event.regarding.as_ref().and_then(|regarding| regarding.namespace.clone());
    let expected = namespace.filter(|namespace| !namespace.is_empty()).unwrap_or("default".to_owned());
    assert_eq!(event.namespace().as_deref(), Some(expected.as_str()), "{event:?}");
    let deprecated =
        (event.deprecated_count, &event.deprecated_first_timestamp, &event.deprecated_last_timestamp);
    assert_eq!(deprecated, (None, &None, &None), "{event:?}");
    // A server fills in an empty one.
    let source = event.deprecated_source.clone().unwrap_or_default();
    assert_eq!(source, Default::default(), "{event:?}");
}
