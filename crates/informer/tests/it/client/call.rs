//! A controller waits by itself for what the last call for a key has written.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use informer::{
    client::within_call,
    controller::{Action, Controller},
    model::ObjectKey,
};
use informer_apiserver::{Fault, Rule, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use super::{
    stage::{LIMIT, Stage, mk},
    support::{key, log_lines::LogLines},
};

type Calls = Arc<Mutex<Vec<(String, u64)>>>;

/// When which key was called, in seconds.
fn noting(calls: &Calls, began: Instant, key: &ObjectKey) {
    calls.lock().unwrap().push((key.to_string(), began.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn c38_a_call_begins_when_the_cache_shows_what_the_last_call_for_its_key_wrote_and_no_worker_waits() {
    let stage = Stage::new().await;
    let (began, calls, stop) = (Instant::now(), Calls::default(), CancellationToken::new());
    let controller = Controller::new("configs");
    let queue = controller.queue();
    let (noted, maps) = (Arc::clone(&calls), stage.maps.clone());
    let running = tokio::spawn(controller.run(stop.clone(), move |item: ObjectKey| {
        noting(&noted, began, &item);
        let maps = maps.clone();
        async move {
            if item.name() == "writes" {
                // Also in a task of its own, and although the call fails.
                let created = tokio::spawn(within_call(async move {
                    maps.create(&PostParams::default(), &mk("shop/child")).await
                }));
                created.await.unwrap().unwrap();
                return Err("it failed after that");
            }
            Ok(Action::AwaitChange)
        }
    }));
    stage.lateness.hold(true);
    queue.add(key("shop/writes"));
    sleep(Duration::from_secs(2)).await;
    queue.add(key("shop/reads"));
    sleep(Duration::from_secs(2)).await;
    stage.lateness.hold(false);
    sleep(Duration::from_secs(1)).await;
    let calls = std::mem::take(&mut *calls.lock().unwrap());
    let first: Vec<(&str, u64)> = calls.iter().map(|(key, at)| (key.as_str(), *at)).take(3).collect();
    assert_eq!(first, [("shop/writes", 0), ("shop/reads", 2), ("shop/writes", 4)]);
    stop.cancel();
    running.await.unwrap().unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c38_what_a_call_has_made_and_is_gone_before_the_cache_has_it_brings_the_key_back() {
    let stage = Stage::new().await;
    let (began, calls, stop) = (Instant::now(), Calls::default(), CancellationToken::new());
    let controller = Controller::new("configs");
    let queue = controller.queue();
    let (noted, maps) = (Arc::clone(&calls), stage.maps.clone());
    let running = tokio::spawn(controller.run(stop.clone(), move |item: ObjectKey| {
        noting(&noted, began, &item);
        let maps = maps.clone();
        async move {
            if maps.lister().get_opt(&key("shop/child")).await.map_err(|error| error.to_string())?.is_none() {
                maps.create(&PostParams::default(), &mk("shop/child"))
                    .await
                    .map_err(|error| error.to_string())?;
            }
            Ok::<_, String>(Action::AwaitChange)
        }
    }));
    stage.server.faults().add(Rule::new(Fault::Refuse).verb(Verb::Watch));
    stage.server.break_watches();
    queue.add(key("shop/owner"));
    sleep(Duration::from_secs(2)).await;
    Api::<ConfigMap>::namespaced(stage.server.client(), "shop")
        .delete("child", &DeleteParams::default())
        .await
        .unwrap();
    // So the cache goes from a list without it to a list without it.
    stage.server.compact();
    stage.server.faults().clear();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(calls.lock().unwrap().len(), 2, "{calls:?}");
    assert!(stage.informer.store().get(&key("shop/child")).is_some());
    stop.cancel();
    running.await.unwrap().unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c38_a_call_begins_at_the_limit_all_the_same_and_that_is_said() {
    let stage = Stage::new().await;
    stage.create("shop/a").await;
    stage.maps.lister().get("shop/a").await.unwrap();
    let (began, calls, stop) = (Instant::now(), Calls::default(), CancellationToken::new());
    let lines = LogLines::default();
    let _listening = lines.listen();
    let controller = Controller::new("configs");
    let queue = controller.queue();
    let (noted, maps) = (Arc::clone(&calls), stage.maps.clone());
    let running = tokio::spawn(controller.run(stop.clone(), move |item: ObjectKey| {
        noting(&noted, began, &item);
        let maps = maps.clone();
        async move {
            if began.elapsed() < LIMIT {
                maps.delete(&item, &DeleteParams::default()).await.map_err(|error| error.to_string())?;
            }
            Ok::<_, String>(Action::AwaitChange)
        }
    }));
    stage.lateness.hold(true);
    queue.add(key("shop/a"));
    sleep(Duration::from_secs(1)).await;
    queue.add(key("shop/a"));
    sleep(LIMIT * 2).await;
    assert_eq!(calls.lock().unwrap().iter().map(|(_, at)| *at).collect::<Vec<_>>(), [0, 10]);
    let said = lines.lines(Level::WARN).join("\n");
    assert!(
        said.contains("it is reconciled although the cache does not show the deletion of shop/a"),
        "{said}"
    );
    queue.add(key("shop/a"));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(calls.lock().unwrap().len(), 3, "a call that wrote nothing is followed without a wait");
    stop.cancel();
    running.await.unwrap().unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_what_waits_for_the_cache() {
    let stage = Stage::new().await;
    let stop = CancellationToken::new();
    let controller = Controller::new("configs");
    let queue = controller.queue();
    let maps = stage.maps.clone();
    let running = tokio::spawn(controller.run(stop.clone(), move |_: ObjectKey| {
        let maps = maps.clone();
        async move {
            let patch = Patch::Merge(json!({ "data": { "colour": "blue" } }));
            maps.patch(&key("shop/a"), &PatchParams::default(), &patch).await?;
            Ok::<_, informer::client::WriteError>(Action::AwaitChange)
        }
    }));
    stage.create("shop/a").await;
    stage.maps.ensure_ready(&key("shop/a")).await.unwrap();
    stage.lateness.hold(true);
    queue.add(key("shop/a"));
    stage.settle().await;
    queue.add(key("shop/a"));
    stage.settle().await;
    assert_eq!(queue.stats().processing, 1, "it waits");
    let stopped = Instant::now();
    stop.cancel();
    running.await.unwrap().unwrap();
    stage.settle().await;
    assert!(stopped.elapsed() < Duration::from_secs(1));
    assert_eq!(queue.stats().processing, 0);
    stage.end().await;
}
