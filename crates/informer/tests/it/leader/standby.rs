//! A candidate that waits with full caches.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use informer::{
    SharedInformerFactory,
    controller::{Action, Controller},
    leader::LeaderElection,
};
use informer_apiserver::ApiServer;
use serde_json::json;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::stage::{Candidate, Log};

const OBJECTS: usize = 10_000;

#[tokio::test(start_paused = true)]
async fn c36_who_waits_with_full_caches_reconciles_within_a_second_of_its_term_and_lists_nothing() {
    let server = ApiServer::builder().build();
    server.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } })).unwrap();
    for number in 0..OBJECTS {
        let metadata = json!({ "name": format!("map-{number}"), "namespace": "shop" });
        server.put(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })).unwrap();
    }
    let log = Log::default();
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;

    let factory = SharedInformerFactory::new(server.client(), Duration::ZERO);
    let maps = factory.core().v1().config_maps().informer();
    factory.start().unwrap();
    factory.wait_for_cache_sync(Duration::from_secs(60)).await.unwrap();
    let asked = |verb| server.requests().get(&(verb, "configmaps".to_owned())).copied().unwrap_or_default();
    let before = (asked("list"), asked("watch"));

    let bob = LeaderElection::builder(server.client(), "default", "boss").identity("bob").build().unwrap();
    let (stop, all) = (CancellationToken::new(), Arc::new(Notify::new()));
    let (began, first) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
    let (term, reconciled) = (Arc::clone(&began), Arc::clone(&first));
    let (ending, done, count) = (stop.clone(), Arc::clone(&all), Arc::new(AtomicUsize::new(0)));
    let running = tokio::spawn(bob.run_while_leader(stop.clone(), move |_| {
        *term.lock().unwrap() = Some(Instant::now());
        let (reconciled, done, count) = (Arc::clone(&reconciled), Arc::clone(&done), Arc::clone(&count));
        Controller::new("maps").of(&maps).workers(4).run(ending.clone(), move |_| {
            reconciled.lock().unwrap().get_or_insert_with(Instant::now);
            if count.fetch_add(1, Relaxed) + 1 == OBJECTS {
                done.notify_one();
            }
            async { Ok::<_, kube::Error>(Action::AwaitChange) }
        })
    }));
    ann.end().await;
    tokio::time::timeout(Duration::from_secs(60), all.notified()).await.expect("every object is reconciled");
    let waited = first.lock().unwrap().unwrap() - began.lock().unwrap().unwrap();
    assert!(waited < Duration::from_secs(1), "{waited:?} after the term began");
    assert_eq!((asked("list"), asked("watch")), before, "the caches were full already");
    stop.cancel();
    running.await.unwrap().unwrap().unwrap();
    factory.shutdown().await;
}
