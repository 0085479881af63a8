//! Whatever is recorded, the server gets what it takes, and nothing panics.

use std::time::Duration;

use informer::{
    events::{EventType, Limits, RecordedEvent, Recorder, RecorderBuildError},
    reflector::Backoff,
};
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ObjectReference;
use proptest::prelude::*;
use tracing::Level;

use super::{
    log_lines::LogLines,
    stage::{HOUR, MINUTE, Stage, check, events},
};

#[tokio::test]
async fn a_recorder_that_could_send_nothing_is_not_built() {
    let client = ApiServer::builder().build().client();
    let build = |controller: &str| Recorder::builder(client.clone(), controller);
    let error = |builder: informer::events::RecorderBuilder| builder.build().err().expect("an error");
    for name in ["", "/", "a/b/c", "with space", "Example.com/x", &"x".repeat(64)] {
        let error = error(build(name));
        assert!(
            matches!(&error, RecorderBuildError::Controller { name: told, .. } if told == name),
            "{error}"
        );
        assert!(error.to_string().contains("like a label key"), "{error}");
    }
    for name in [String::new(), "x".repeat(129)] {
        let error = error(build("web").instance(name));
        assert!(matches!(error, RecorderBuildError::Instance { .. }), "{error}");
    }
    let zeros = [
        Limits { queue: 0, ..Limits::default() },
        Limits { tracked: 0, ..Limits::default() },
        Limits { burst: 0, ..Limits::default() },
        Limits { similar: 0, ..Limits::default() },
        Limits { tries: 0, ..Limits::default() },
    ];
    for (limits, limit) in zeros.into_iter().zip(["queue", "tracked", "burst", "similar", "tries"]) {
        let error = error(build("web").limits(limits));
        assert_eq!(error, RecorderBuildError::Zero { limit });
        assert_eq!(error.to_string(), format!("the limit `{limit}` must be at least 1"));
    }
    let long = format!("{}.com/{}", "a".repeat(240), "b".repeat(63));
    let (recorder, _delivery) = build(&long).build().expect("the longest name there is");
    assert!(format!("{recorder:?}").contains("0 recorded"));
}

#[tokio::test(start_paused = true)]
async fn absurd_limits_do_no_harm() {
    let limits = Limits {
        queue: usize::MAX,
        tracked: usize::MAX,
        burst: u32::MAX,
        refill: Duration::MAX,
        similar: usize::MAX,
        similar_for: Duration::MAX,
        series_end: Duration::MAX,
        refresh: Duration::MAX,
        tries: u32::MAX,
        drain: Duration::MAX,
    };
    let nothing = Limits {
        refill: Duration::ZERO,
        similar_for: Duration::ZERO,
        series_end: Duration::ZERO,
        refresh: Duration::ZERO,
        drain: Duration::ZERO,
        ..Limits::default()
    };
    let backoff = Backoff { initial: Duration::ZERO, max: Duration::ZERO, ..Backoff::default() };
    for limits in [limits, nothing] {
        let stage = Stage::run_with(|builder| builder.limits(limits).backoff(backoff));
        for number in 0..100 {
            stage.record("settings", &format!("note {}", number % 3));
            stage.record("settings", "again");
            tokio::time::sleep(MINUTE).await;
        }
        stage.flush().await;
        assert_eq!(stage.recorder.stats().waiting(), 0);
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_too_long_is_cut_between_characters_and_what_is_missing_is_filled_in() {
    let stage = Stage::run();
    let long = RecordedEvent::warning("é".repeat(100), "€".repeat(1_000)).action("ü".repeat(500));
    stage.recorder.record(&super::stage::mk("long"), long);
    for (reason, action) in [("", ""), ("", "Mount"), ("Mounted", "")] {
        stage.recorder.record(&super::stage::mk("short"), RecordedEvent::normal(reason, "").action(action));
    }
    stage.flush().await;
    let events = stage.events().await;
    assert_eq!(events[0].note.as_deref(), Some("€".repeat(341).as_str()));
    assert_eq!(events[0].reason.as_deref(), Some("é".repeat(64).as_str()));
    let words: Vec<_> =
        events[1..].iter().map(|event| (event.reason.as_deref(), event.action.as_deref())).collect();
    assert_eq!(
        words,
        [
            (Some("Unspecified"), Some("Unspecified")),
            (Some("Mount"), Some("Mount")),
            (Some("Mounted"), Some("Mounted")),
        ]
    );
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_is_none_costs_no_request_and_is_counted() {
    let log = LogLines::default();
    let _listening = log.listen();
    let stage = Stage::run();
    let of = |namespace: &str, name: String| ObjectReference {
        namespace: Some(namespace.to_owned()),
        name: Some(name),
        ..ObjectReference::default()
    };
    for namespace in ["../secrets", "a/b", "shop?x=y", "Shop", "é", &"x".repeat(64)] {
        stage.recorder.record_about(of(namespace, "web".into()), RecordedEvent::normal("Changed", ""));
    }
    stage.recorder.record_about(of("shop", "x".repeat(1 << 20)), RecordedEvent::normal("Changed", ""));
    stage.flush().await;
    assert_eq!((stage.requests("create"), stage.recorder.stats().failed), (0, 7));
    assert_eq!(log.take(Level::WARN).len(), 1);
    stage.recorder.record_about(of("", "node-1".into()), RecordedEvent::normal("Changed", ""));
    stage.flush().await;
    assert_eq!(stage.end().await.sent, 1);
}

fn references() -> impl Strategy<Value = ObjectReference> {
    let text = || prop::option::of("\\PC{0,20}|(?s).{0,20}");
    let namespace = prop_oneof![Just(None), Just(Some("shop".to_owned())), text()];
    (namespace, text(), text(), text(), text()).prop_map(
        |(namespace, name, kind, api_version, field_path)| ObjectReference {
            namespace,
            name,
            kind,
            api_version,
            field_path,
            ..ObjectReference::default()
        },
    )
}

fn hostile_events() -> impl Strategy<Value = RecordedEvent> {
    let text = || "(?s).{0,300}";
    let note = prop_oneof![
        text().boxed(),
        (text(), 0..200_usize).prop_map(|(part, times)| part.repeat(times)).boxed()
    ];
    (any::<bool>(), text(), text(), note, prop::option::of(references())).prop_map(
        |(warning, reason, action, note, related)| {
            let type_ = if warning { EventType::Warning } else { EventType::Normal };
            RecordedEvent { type_, reason, action, note, related }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn whatever_the_words_are_the_server_gets_what_it_takes(
        happenings in prop::collection::vec((references(), hostile_events()), 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let stage = Stage::run();
            for (reference, event) in happenings {
                stage.recorder.record_about(reference, event);
            }
            stage.recorder.flush(HOUR).await.expect("sent");
            check(&events(&stage.server).await, stage.recorder.stats());
            stage.end().await;
        });
    }
}
