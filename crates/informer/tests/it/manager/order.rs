//! What begins and ends when.

use std::time::Duration;

use informer::{
    EventHandler, Object, SharedInformerFactory,
    controller::Action,
    events::{RecordedEvent, Recorder},
    manager::{Manager, ManagerError},
};
use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event};
use kube::{Api, ResourceExt, api::ListParams};

use super::stage::{Log, Running, Stage, seconds};

/// Hears of nothing, and says when it is gone.
struct Farewell(Log, Recorder, Object<ConfigMap>);

impl EventHandler<ConfigMap> for Farewell {}

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.note("the caches end");
        self.1.record(&*self.2, RecordedEvent::normal("Last", "the last word"));
    }
}

#[tokio::test(start_paused = true)]
async fn c47_parts_end_in_the_order_work_term_others_caches_events() {
    let stage = Stage::new();
    let (recorder, delivery) = Recorder::builder(stage.server.client(), "example.com/maps").build().unwrap();
    let map = serde_json::from_value::<ConfigMap>(
        serde_json::json!({ "metadata": { "name": "a", "namespace": "default" } }),
    );
    let map = Object::new(map.unwrap()).unwrap();
    stage.maps.add_handler(Farewell(stage.log.clone(), recorder, map)).unwrap();
    let logs = [(); 3].map(|()| stage.log.clone());
    let [called, led, other] = logs;
    let holder = stage.holder();
    let manager = Manager::new()
        .caches(&stage.factory)
        .events(delivery)
        .election(stage.election("ann").build().unwrap())
        .controller(stage.controller(), move |key| {
            let log = called.clone();
            async move {
                log.note(format!("a call for {key}"));
                seconds(3).await;
                log.note("the call ends");
                Ok::<_, kube::Error>(Action::after(Duration::from_millis(1)))
            }
        })
        .leading_runnable("errand", async move |leadership, stop| {
            stop.cancelled().await;
            seconds(4).await;
            led.note(format!("the errand ends, leading: {}", leadership.fence().is_ok()));
            Ok::<_, kube::Error>(())
        })
        .runnable("webhooks", async move |stop| {
            other.note("webhooks begin");
            stop.cancelled().await;
            other.note(format!("webhooks end, leader: {:?}", holder.await));
            Ok::<_, kube::Error>(())
        });
    let running = Running::start(manager);
    stage.log.heard("a call for default/a").await;
    assert!(running.observer.ready().is_ok(), "{}", running.observer.ready());
    let observer = running.observer.clone();
    let (ended, took) = running.end().await;
    ended.unwrap();
    assert!(took >= Duration::from_secs(4) && took < Duration::from_secs(5), "{took:?}");
    assert_eq!(
        stage.log.take(),
        "webhooks begin, a call for default/a, the call ends, the errand ends, leading: true, webhooks end, leader: \"\", the caches end"
    );
    let events = Api::<Event>::namespaced(stage.server.client(), "default")
        .list(&ListParams::default())
        .await
        .unwrap();
    let last = events.iter().filter(|event| event.reason.as_deref() == Some("Last"));
    assert_eq!(last.count(), 1, "what is recorded while caches end is sent");
    assert!(
        observer.ready().to_string().contains("[-]manager failed: has been told to stop"),
        "{observer:?}"
    );
    assert!(stage.factory.is_shut_down() && stage.maps.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn c47_without_an_election_controllers_begin_at_once() {
    let stage = Stage::new();
    let log = stage.log.clone();
    let manager = Manager::new().caches(&stage.factory).controller(stage.controller(), move |key| {
        log.note(key.to_string());
        async { Ok::<_, kube::Error>(Action::AwaitChange) }
    });
    let running = Running::start(manager);
    stage.log.heard("default/a").await;
    running.end().await.0.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c47_who_waits_for_its_turn_is_ready_with_warm_caches_and_calls_nothing() {
    let ann = Stage::new();
    let mut programs = Vec::new();
    for (identity, stage) in [("ann", Stage::at(ann.server.clone())), ("bob", Stage::at(ann.server.clone()))]
    {
        let log = stage.log.clone();
        let manager = Manager::new()
            .caches(&stage.factory)
            .election(stage.election(identity).build().unwrap())
            .fenced_controller(stage.controller(), move |leadership| {
                move |key| {
                    log.note(format!("{key} fenced: {}", leadership.fence().is_ok()));
                    async { Ok::<_, kube::Error>(Action::AwaitChange) }
                }
            });
        programs.push((Running::start(manager), stage));
        seconds(10).await;
    }
    let (bob, of_bob) = programs.pop().unwrap();
    let (ann, of_ann) = programs.pop().unwrap();
    assert_eq!((of_ann.log.take(), of_bob.log.take()), ("default/a fenced: true".to_owned(), String::new()));
    assert!(of_bob.maps.has_synced() && bob.observer.ready().is_ok(), "{}", bob.observer.ready());
    ann.end().await.0.unwrap();
    of_bob.log.heard("default/a fenced: true").await;
    bob.end().await.0.unwrap();
    assert_eq!(of_bob.holder().await, "");
}

#[tokio::test(start_paused = true)]
async fn c47_what_does_not_end_is_dropped_and_named_within_the_time_that_a_pod_has() {
    let stage = Stage::new();
    let (recorder, delivery) = Recorder::builder(stage.server.client(), "example.com/maps").build().unwrap();
    // Events that cannot be sent take their time, too.
    let down =
        informer_apiserver::Rule::new(informer_apiserver::Fault::Refuse).resource("events.events.k8s.io");
    stage.server.faults().add(down);
    let (log, dropped) = (stage.log.clone(), stage.log.clone());
    let manager = Manager::new()
        .caches(&stage.factory)
        .events(delivery)
        .election(stage.election("ann").build().unwrap())
        .leading_runnable("deaf", async move |_, _| {
            log.note("deaf");
            std::future::pending::<Result<(), kube::Error>>().await
        })
        .runnable("deaf too", async move |_| {
            let _dropped = NotedDrop(dropped);
            std::future::pending::<Result<(), kube::Error>>().await
        });
    let running = Running::start(manager);
    stage.log.heard("deaf").await;
    let map = serde_json::from_value::<ConfigMap>(
        serde_json::json!({ "metadata": { "name": "a", "namespace": "default" } }),
    );
    recorder.record(&map.unwrap(), RecordedEvent::normal("Last", "the last word"));
    let (ended, took) = running.end().await;
    let ended = ended.unwrap_err();
    assert!(
        matches!(&ended, ManagerError::Unfinished { parts, .. } if parts == &["deaf too", "deaf"]),
        "{ended}"
    );
    assert_eq!(ended.to_string(), "deaf too, deaf had not ended 24s after the stop");
    assert!(took <= Duration::from_secs(30), "{took:?}");
    assert_eq!(stage.holder().await, "", "the term was given back all the same");
    stage.log.heard("dropped").await;
    assert!(stage.factory.is_shut_down());
}

struct NotedDrop(Log);

impl Drop for NotedDrop {
    fn drop(&mut self) {
        self.0.note("dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn c47_a_second_stop_ends_at_once() {
    let stage = Stage::new();
    let log = stage.log.clone();
    let manager = Manager::new()
        .caches(&stage.factory)
        .election(stage.election("ann").build().unwrap())
        .controller(stage.controller(), move |_| {
            let dropped = NotedDrop(log.clone());
            log.note("a call");
            async move {
                let _dropped = dropped;
                std::future::pending::<Result<Action, kube::Error>>().await
            }
        });
    let running = Running::start(manager);
    stage.log.heard("a call").await;
    running.stop.cancel();
    seconds(5).await;
    assert!(!running.task.is_finished());
    running.at_once.cancel();
    let began = tokio::time::Instant::now();
    let ended = running.task.await.unwrap().unwrap_err();
    assert!(began.elapsed().is_zero());
    assert!(
        matches!(&ended, ManagerError::AtOnce { parts } if parts.contains(&"controller maps".to_owned())),
        "{ended}"
    );
    stage.log.heard("dropped").await;
    assert!(stage.factory.is_shut_down());
    assert_eq!(stage.holder().await, "ann", "nobody has waited for the server");
}

#[tokio::test(start_paused = true)]
async fn c47_dropping_it_ends_everything() {
    let stage = Stage::new();
    let (log, noted) = (stage.log.clone(), stage.log.clone());
    let manager = Manager::new().caches(&stage.factory).runnable("one", async move |_| {
        let _dropped = NotedDrop(log);
        noted.note("one");
        std::future::pending::<Result<(), kube::Error>>().await
    });
    let running = Running::start(manager);
    stage.log.heard("one").await;
    running.task.abort();
    assert!(running.task.await.unwrap_err().is_cancelled());
    stage.log.heard("dropped").await;
    assert!(stage.factory.is_shut_down());
    let ended = async {
        while !stage.maps.is_stopped() {
            seconds(1).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the informer ends");
}

#[tokio::test(start_paused = true)]
async fn c47_nothing_is_left_running() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let stage = Stage::new();
    // What the server has of its own.
    let names = Api::<ConfigMap>::namespaced(stage.server.client(), "default")
        .list(&ListParams::default())
        .await
        .unwrap();
    assert_eq!(names.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["a"]);
    let before = tasks();
    let (_, delivery) = Recorder::builder(stage.server.client(), "example.com/maps").build().unwrap();
    let (log, other) = (stage.log.clone(), SharedInformerFactory::new(stage.server.client(), Duration::ZERO));
    let clusters = informer::clusters::Clusters::new();
    let everywhere = clusters.informers(|factory| factory.informer_for::<ConfigMap>());
    clusters.add("east", stage.server.client()).await.unwrap();
    let manager = Manager::new()
        .caches(&stage.factory)
        .caches(&other)
        .caches(&clusters)
        .events(delivery)
        .election(stage.election("ann").build().unwrap())
        .runnable("webhooks", async |stop| {
            stop.cancelled().await;
            Ok::<_, kube::Error>(())
        })
        .controller(stage.controller().workers(4), move |key| {
            log.note(key.to_string());
            async { Ok::<_, kube::Error>(Action::AwaitChange) }
        });
    let running = Running::start(manager);
    stage.log.heard("default/a").await;
    seconds(60).await;
    assert!(
        running.observer.ready().to_string().contains("[+]cluster east: "),
        "{}",
        running.observer.ready()
    );
    assert!(tasks() > before + 4, "{} and {before}", tasks());
    running.end().await.0.unwrap();
    drop(everywhere);
    let ended = async {
        while tasks() > before {
            seconds(1).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
    assert!(ended.is_ok(), "{} tasks and before {before}", tasks());
}
