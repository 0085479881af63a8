//! What becomes of events when all goes well.

use informer::{
    DynamicObject, Object,
    events::{Limits, RecordedEvent},
};
use k8s_openapi::api::core::v1::{Node, ObjectReference};
use kube::{
    Resource, ResourceExt,
    core::{ApiResource, GroupVersionKind},
};
use tokio::time::{Instant, sleep};

use super::stage::{HOUR, MINUTE, SECOND, Stage, count, mk, settle};

#[tokio::test(start_paused = true)]
async fn an_event_says_everything_there_is_to_say() {
    let stage = Stage::run();
    let mut node = Node::default();
    node.metadata.name = Some("node-1".into());
    let event = RecordedEvent::warning("NoRoom", "the disk is full").action("Write").related(&node);
    stage.recorder.record(&mk("settings"), event);
    stage.flush().await;
    let events = stage.events().await;
    let [event] = &events[..] else { panic!("{events:?}") };
    assert!(event.name_any().starts_with("settings."), "{event:?}");
    assert_eq!(event.reporting_controller.as_deref(), Some("example.com/website-controller"));
    assert_eq!(event.reporting_instance.as_deref(), Some("pod-0"));
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!((event.reason.as_deref(), event.action.as_deref()), (Some("NoRoom"), Some("Write")));
    assert_eq!(event.note.as_deref(), Some("the disk is full"));
    assert!(event.series.is_none());
    let regarding = ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("ConfigMap".into()),
        name: Some("settings".into()),
        namespace: Some("shop".into()),
        uid: Some("uid-of-settings".into()),
        ..ObjectReference::default()
    };
    assert_eq!(event.regarding, Some(regarding));
    assert_eq!(event.related.as_ref().and_then(|related| related.kind.as_deref()), Some("Node"));
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_is_where_its_object_is_and_in_default_if_that_is_nowhere() {
    let stage = Stage::run();
    let changed = || RecordedEvent::normal("Changed", "");
    let object = Object::new(mk("shared")).expect("a name");
    stage.recorder.record(&object, changed());
    let mut node = Node::default();
    node.metadata.name = Some("node-1".into());
    stage.recorder.record(&node, changed());
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Website"));
    let document = serde_json::json!({ "metadata": { "name": "site", "namespace": "kube-system" } });
    let website: DynamicObject = serde_json::from_value(document).expect("an object");
    stage.recorder.record_about(website.object_ref(&kind), changed());
    stage.flush().await;
    let events = stage.events().await;
    let places: Vec<(String, &str, &str)> = events
        .iter()
        .map(|event| {
            let regarding = event.regarding.as_ref().expect("an object");
            let kind = regarding.kind.as_deref().expect("a kind");
            (event.namespace().expect("a namespace"), kind, event.action.as_deref().expect("an action"))
        })
        .collect();
    let place = |namespace: &str, kind| (namespace.to_owned(), kind, "Changed");
    assert_eq!(
        places,
        [place("default", "Node"), place("kube-system", "Website"), place("shop", "ConfigMap")]
    );
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn repetitions_become_one_event_with_a_count_and_few_requests() {
    let stage = Stage::run();
    let began = Instant::now();
    while began.elapsed() < HOUR {
        stage.record("settings", "again");
        sleep(SECOND).await;
    }
    let events = stage.events().await;
    assert_eq!(events.len(), 1);
    assert!(count(&events[0]) >= 3_300, "no more than five minutes out of date: {}", count(&events[0]));
    assert_eq!(stage.requests("create"), 1);
    assert!((15..=18).contains(&stage.requests("patch")), "{}", stage.requests("patch"));
    stage.flush().await;
    assert_eq!(stage.notes().await, ["again ×3600"]);
    let series = stage.events().await.remove(0).series.expect("a series");
    let event_time = events[0].event_time.as_ref().expect("a time");
    assert!(series.last_observed_time.0 >= event_time.0);
    let stats = stage.end().await;
    assert_eq!((stats.recorded, stats.sent, stats.aggregated, stats.waiting()), (3_600, 1, 3_599, 0));
}

#[tokio::test(start_paused = true)]
async fn a_series_that_has_ended_has_its_last_count_and_nothing_is_asked_for_after_that() {
    let stage = Stage::run();
    for _ in 0..5 {
        stage.record("settings", "again");
        sleep(SECOND).await;
    }
    sleep(7 * MINUTE).await;
    assert_eq!(stage.notes().await, ["again ×5"]);
    let before = stage.requests("patch");
    sleep(24 * HOUR).await;
    assert_eq!(stage.requests("patch"), before);
    stage.record("settings", "again");
    stage.flush().await;
    assert_eq!(stage.notes().await, ["again ×5", "again ×1"]);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_never_well_has_its_share_and_leaves_the_others_theirs() {
    let stage = Stage::run();
    for number in 0..100 {
        stage.recorder.record(&mk("noisy"), RecordedEvent::warning(format!("Reason{number}"), "no"));
        stage.record("noisy", &format!("note {number}"));
    }
    stage.record("quiet", "hello");
    stage.flush().await;
    let events = stage.events().await;
    let of = |type_: &str| events.iter().filter(|event| event.type_.as_deref() == Some(type_)).count();
    assert_eq!(of("Warning"), 25);
    assert_eq!(of("Normal"), 10 + 1 + 1, "ten notes, the rest combined, and the quiet one");
    let stats = stage.end().await;
    assert_eq!((stats.suppressed, stats.sent, stats.aggregated), (75, 37, 89));
}

#[tokio::test(start_paused = true)]
async fn events_of_one_object_list_in_the_order_in_which_they_happened() {
    let stage = Stage::run();
    let notes: Vec<String> = (0..9).map(|number| format!("note {number}")).collect();
    notes.iter().for_each(|note| stage.record("settings", note));
    stage.flush().await;
    let expected: Vec<String> = notes.iter().map(|note| format!("{note} ×1")).collect();
    assert_eq!(stage.notes().await, expected);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_flush_waits_for_what_was_recorded_before_and_says_so_when_it_takes_too_long() {
    let (server, recorder, delivery) = Stage::build(|builder| builder);
    recorder.record(&mk("settings"), RecordedEvent::normal("Changed", ""));
    let error = recorder.flush(MINUTE).await.expect_err("nothing runs");
    assert_eq!((error.waited, error.stats.waiting()), (MINUTE, 1));
    let text = error.to_string();
    assert!(text.contains("1 waiting") && text.contains("is the delivery running?"), "{text}");
    let stop = tokio_util::sync::CancellationToken::new();
    let running = tokio::spawn(delivery.run(stop.clone()));
    recorder.flush(MINUTE).await.expect("it runs");
    assert_eq!(super::stage::events(&server).await.len(), 1);
    recorder.flush(std::time::Duration::ZERO).await.ok();
    stop.cancel();
    running.await.expect("no panic");
    recorder.flush(MINUTE).await.expect("after the end there is nothing to wait for");
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_what_is_new_and_never_keeps_a_caller_waiting() {
    let stage = Stage::run_with(|builder| builder.limits(Limits { queue: 10, ..Limits::default() }));
    stage.fault(informer_apiserver::Fault::StallAfter(0), &[informer_apiserver::Verb::Create], |rule| {
        rule.times(1)
    });
    stage.record("first", "");
    settle().await;
    let began = Instant::now();
    for number in 0..10_000 {
        stage.record(&format!("map-{number}"), "");
    }
    for _ in 0..1_000 {
        stage.record("map-3", "");
    }
    assert_eq!(began.elapsed(), std::time::Duration::ZERO);
    let stats = stage.recorder.stats();
    assert_eq!((stats.dropped, stats.waiting()), (9_990, 1_011), "repetitions need no room");
    stage.flush().await;
    assert_eq!(stage.events().await.len(), 11);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_that_record_at_the_same_time_lose_nothing() {
    let stage = Stage::run();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let recorder = &stage.recorder;
            scope.spawn(move || {
                for number in 0..1_000 {
                    let event =
                        RecordedEvent::normal(format!("Reason{}", number % 3), format!("{}", number % 7));
                    recorder.record(&mk(&format!("map-{}", (number + thread) % 40)), event);
                }
            });
        }
    });
    stage.flush().await;
    let stats = stage.end().await;
    assert_eq!((stats.recorded, stats.waiting(), stats.dropped, stats.failed), (4_000, 0, 0, 0), "{stats}");
}
