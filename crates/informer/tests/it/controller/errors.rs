//! What becomes of a key that could not be reconciled.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use informer::{
    PrometheusMetrics,
    controller::{Action, Controller, OnError},
};
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::time::{Instant, sleep};

use super::{
    client::stage::Stage,
    stage::{Log, Running},
    support::key,
};

/// An error with a type.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("the spec cannot be")]
    Spec,
    #[error("it is not there yet")]
    Early,
    #[error("something else")]
    Other,
}

#[tokio::test(start_paused = true)]
async fn c42_a_terminal_error_waits_for_a_change_and_another_for_its_time() {
    let stage = Stage::new().await;
    for name in ["shop/spec", "shop/early", "shop/other"] {
        stage.create(name).await;
    }
    stage.settle().await;
    let (log, times) = (Log::default(), Arc::new(Mutex::new(Vec::new())));
    let told = log.clone();
    let policy = |_: &_, error: &Problem| match error {
        Problem::Spec => OnError::Terminal,
        Problem::Early => OnError::RetryAfter(Duration::from_secs(60)),
        Problem::Other => OnError::Retry,
    };
    let controller = Controller::new("configs").of(&stage.informer).error_policy(policy);
    let controller = controller.on_failure(move |key, failure| {
        let typed = failure.cause::<Problem>().is_some();
        told.note(format!("{}:{}:{typed}:{}", key.name(), failure.terminal, failure.times.min(1)));
    });
    let (began, noted) = (Instant::now(), Arc::clone(&times));
    let controller = Running::start(controller, move |key| {
        let minutes = began.elapsed().as_secs() / 60;
        noted.lock().unwrap().push(format!("{}@{minutes}", key.name()));
        async move {
            match (key.name(), minutes) {
                ("spec", _) => Err(Problem::Spec),
                ("early", _) => Err(Problem::Early),
                (_, 0) => Err(Problem::Other),
                _ => Ok(Action::AwaitChange),
            }
        }
    });
    sleep(Duration::from_secs(150)).await;
    let calls = |key: &str| times.lock().unwrap().iter().filter(|call| call.starts_with(key)).count();
    assert_eq!((calls("spec"), calls("early")), (1, 3));
    assert!(calls("other") > 5, "the limiter's delays");
    let told = log.take();
    assert!(told.contains("spec:true:true:0") && told.contains("early:false:true:0"), "{told}");
    assert!(told.contains("other:false:true:1"), "{told}");
    let blue = kube::api::Patch::Merge(serde_json::json!({ "data": { "colour": "blue" } }));
    stage.maps.patch(&key("shop/spec"), &Default::default(), &blue).await.unwrap();
    stage.settle().await;
    assert_eq!(calls("spec"), 2, "a change");
    controller.end().await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c42_a_policy_for_another_type_is_an_error_and_not_silence() {
    let controller = Controller::new("configs").error_policy(|_, _: &Problem| OnError::Retry);
    let error = Running::noting(controller, &Log::default()).end().await.unwrap_err().to_string();
    assert!(
        error.contains("is for ")
            && error.contains("Problem, and its function returns alloc::string::String"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn c42_a_call_that_takes_too_long_is_named_and_outcomes_are_counted() {
    let mut registry = Registry::default();
    let metrics = Arc::new(PrometheusMetrics::new(&mut registry));
    let stage = Stage::new().await;
    let policy = |_: &_, _: &Problem| OnError::Terminal;
    let controller = Controller::new("configs").of(&stage.informer).error_policy(policy).metrics(metrics);
    let controller = controller.workers(2).slow_after(Duration::from_secs(30));
    let observer = controller.observer();
    assert_eq!(observer.health().to_string(), "controller configs: not started");
    let controller = Running::start(controller, move |key| async move {
        match key.name() {
            "slow" => sleep(Duration::from_secs(100)).await,
            "panics" => panic!("for this test: a call"),
            "later" => return Ok(Action::after(Duration::from_secs(1_000))),
            "wrong" => return Err(Problem::Spec),
            _ => {}
        }
        Ok(Action::AwaitChange)
    });
    stage.settle().await;
    assert!(observer.health().is_healthy(), "{observer:?}");
    for name in ["good", "slow", "later", "wrong"] {
        stage.create(&format!("shop/{name}")).await;
    }
    sleep(Duration::from_secs(29)).await;
    assert!(observer.health().is_healthy(), "{observer:?}");
    sleep(Duration::from_secs(16)).await;
    let text = "controller configs: 1 calls; the call for \"shop/slow\" has been running for 45 s";
    assert_eq!((observer.health().is_healthy(), observer.health().to_string().as_str()), (false, text));
    sleep(Duration::from_secs(60)).await;
    assert!(observer.health().is_healthy(), "{observer:?}");
    stage.create("shop/panics").await;
    stage.settle().await;
    controller.end().await.unwrap();
    assert_eq!(observer.health().to_string(), "controller configs: stopped");
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in [
        r#"controller_runtime_reconcile_total{controller="configs",result="success"} 2"#,
        r#"controller_runtime_reconcile_total{controller="configs",result="requeue_after"} 1"#,
        r#"controller_runtime_terminal_reconcile_errors_total{controller="configs"} 1"#,
        r#"controller_runtime_reconcile_panics_total{controller="configs"} 1"#,
        r#"workqueue_adds_total{name="configs"}"#,
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    stage.end().await;
}

#[test]
fn jitter_only_makes_it_later_and_by_no_more_than_its_part() {
    let second = Duration::from_secs(1);
    for part in [0.0, 0.1, 1.0] {
        for _ in 0..100 {
            let Action::RequeueAfter(delay) = Action::after(second).jitter(part) else { panic!("a delay") };
            assert!((second..=second.mul_f64(1.0 + part)).contains(&delay), "{delay:?}");
        }
    }
    for nonsense in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Action::after(second).jitter(nonsense), Action::after(second), "{nonsense}");
    }
    assert_eq!(Action::after(Duration::MAX).jitter(0.5), Action::after(Duration::MAX));
    assert_eq!(Action::AwaitChange.jitter(0.5), Action::AwaitChange);
}
