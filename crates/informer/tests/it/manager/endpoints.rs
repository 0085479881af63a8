//! What probes and scrapes are answered. These are real sockets, in real time.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use informer::{
    PrometheusMetrics, SharedInformerFactory,
    controller::Action,
    manager::{Endpoints, Manager},
    model::Status,
};
use informer_apiserver::{Fault, Rule};
use informer_testing::{
    Deadline,
    socket::{Answer, get_request, send},
};
use k8s_openapi::api::core::v1::ConfigMap;
use prometheus_client::registry::Registry;
use tokio::{net::TcpStream, time::sleep};

use super::stage::{Running, Stage};

async fn get(address: SocketAddr, path: &str) -> Answer {
    send(address, &get_request(address, path, &[])).await
}

async fn endpoints() -> Endpoints {
    Endpoints::bind(([127, 0, 0, 1], 0)).await.expect("a free port")
}

#[tokio::test]
async fn c47_probes_say_when_caches_are_complete_and_what_is_missing() {
    let stage = Stage::new();
    let forbidden = Status::forbidden("configmaps", "", "", "no right");
    let rule = stage.server.faults().add(Rule::new(Fault::Status(forbidden)).resource("configmaps"));
    let endpoints = endpoints().await;
    let address = endpoints.address();
    let manager = Manager::new()
        .caches(&stage.factory)
        .endpoints(endpoints)
        .controller(stage.controller(), async |_| Ok::<_, kube::Error>(Action::AwaitChange));
    let running = Running::start(manager);
    let deadline = Deadline::start();
    let answer = loop {
        let answer = get(address, "/readyz").await;
        if answer.body.contains("no right") {
            break answer;
        }
        deadline.check("the reason");
    };
    assert_eq!(answer.code, 503);
    assert!(
        answer.body.contains("[+]manager ok: runs\n[-]cache configmaps in all namespaces failed: "),
        "{}",
        answer.body
    );
    assert!(answer.body.ends_with("readyz check failed\n"), "{}", answer.body);
    let alive = get(address, "/healthz").await;
    assert_eq!((alive.code, &*alive.body), (200, "ok\n"), "starting it again would not help");

    stage.server.faults().remove(rule);
    while get(address, "/readyz").await.code != 200 {
        deadline.check("ready");
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(get(address, "/readyz").await.body, "ok\n");
    let all = get(address, "/readyz?verbose").await.body;
    assert!(all.contains("[+]cache configmaps") && all.ends_with("readyz check passed\n"), "{all}");
    let all = get(address, "/healthz?verbose").await.body;
    assert!(all.contains("[+]controller maps ok: ") && all.ends_with("healthz check passed\n"), "{all}");
    running.end().await.0.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "the port is free again");
}

#[tokio::test]
async fn c47_checks_of_a_program_are_asked_and_named() {
    let endpoints = endpoints().await;
    let address = endpoints.address();
    let manager = Manager::new()
        .endpoints(endpoints)
        .health_check("disk", || Err("full"))
        .ready_check("webhooks", || Ok::<_, String>(()))
        .ready_check("luck", || -> Result<(), String> { panic!("ran out") });
    let running = Running::start(manager);
    let health = get(address, "/healthz").await;
    assert_eq!((health.code, &*health.body), (503, "[-]disk failed: full\nhealthz check failed\n"));
    let ready = get(address, "/readyz").await;
    assert!(ready.body.contains("[+]webhooks ok\n[-]luck failed: it panicked: ran out\n"), "{}", ready.body);
    let failures = running.observer.ready();
    assert_eq!(failures.failures().collect::<Vec<_>>(), [("luck", "it panicked: ran out")]);
    running.end().await.0.unwrap();
}

#[tokio::test]
async fn c47_while_the_last_calls_end_the_process_is_alive_and_not_ready() {
    let stage = Stage::new();
    let endpoints = endpoints().await;
    let (address, log, ended) =
        (endpoints.address(), stage.log.clone(), Arc::new(tokio::sync::Notify::new()));
    let end = Arc::clone(&ended);
    let manager = Manager::new().caches(&stage.factory).endpoints(endpoints).controller(
        stage.controller(),
        move |_| {
            log.note("a call");
            let end = Arc::clone(&end);
            async move {
                end.notified().await;
                Ok::<_, kube::Error>(Action::AwaitChange)
            }
        },
    );
    let running = Running::start(manager);
    stage.log.heard("a call").await;
    running.stop.cancel();
    let deadline = Deadline::start();
    while get(address, "/readyz").await.code != 503 {
        deadline.check("not ready");
    }
    assert_eq!(get(address, "/healthz").await.code, 200);
    ended.notify_one();
    running.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn c47_metrics_are_those_of_the_registry_and_other_paths_say_what_there_is() {
    let stage = Stage::new();
    let mut registry = Registry::default();
    let metrics = Arc::new(PrometheusMetrics::new(&mut registry));
    let factory = SharedInformerFactory::builder(stage.server.client()).metrics(metrics).build().unwrap();
    let maps = factory.informer_for::<ConfigMap>();
    let endpoints = endpoints().await.metrics(registry);
    let address = endpoints.address();
    let running = Running::start(Manager::new().caches(&factory).endpoints(endpoints));
    maps.wait_until_synced(Duration::from_secs(60)).await.unwrap();
    let scraped = get(address, "/metrics").await;
    assert!(scraped.head.contains("content-type: application/openmetrics-text"), "{}", scraped.head);
    assert!(
        scraped.body.contains("informer_store_objects{informer=\"configmaps in all namespaces\"} 1\n"),
        "{}",
        scraped.body
    );

    let missing = get(address, "/nothing").await;
    assert!(missing.code == 404 && missing.body.contains("/readyz"), "{}", missing.body);
    let post = "POST /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(send(address, post).await.code, 405);
    running.end().await.0.unwrap();
}

#[tokio::test]
async fn c47_a_port_that_is_in_use_is_an_error_that_names_it() {
    let first = endpoints().await;
    let error = Endpoints::bind(first.address()).await.unwrap_err();
    let said = error.to_string();
    assert!(
        said.starts_with(&format!("cannot listen on {}: ", first.address())) && said.contains("in use"),
        "{said}"
    );
}

#[tokio::test]
async fn c47_a_client_that_keeps_its_connection_does_not_delay_the_stop() {
    let endpoints = endpoints().await;
    let address = endpoints.address();
    let running = Running::start(Manager::new().endpoints(endpoints));
    let silent = TcpStream::connect(address).await.unwrap();
    let half = informer_testing::socket::open(address, b"GET /healthz HT").await;
    assert_eq!(get(address, "/healthz").await.code, 200);
    let (ended, took) = running.end().await;
    ended.unwrap();
    assert!(took < Duration::from_secs(20), "{took:?}");
    drop((silent, half));
}
