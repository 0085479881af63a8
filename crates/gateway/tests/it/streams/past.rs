//! Clients that have followed another gateway, or this one before it was started anew.

use futures_util::future::join_all;
use informer_apiserver::{ApiServer, Fault, Rule, Verb};
use informer_gateway::Gateway;
use informer_model::{FrameDecoder, Framing, Status};
use informer_testing::Deadline;
use serde_json::{Value, json};

use super::events::{Events, MAPS, call, discard, mk_cluster, mk_map, put, router};
use crate::support::query;

/// What happens while no gateway is there: everything that can happen to an object, and the version of before.
fn meanwhile(server: &ApiServer) -> String {
    for key in ["a/stays", "a/changes", "b/goes", "a/relabelled", "b/relabelled"] {
        server.put(mk_map(key, json!({"app": "web"}), "old")).expect("a map");
    }
    let version = server.version().to_string();
    server.put(mk_map("a/changes", json!({"app": "web"}), "new")).expect("a map");
    server.put(mk_map("b/comes", json!({"app": "web"}), "new")).expect("a map");
    for key in ["a/relabelled", "b/relabelled"] {
        server.put(mk_map(key, json!({"app": "api"}), "old")).expect("a map");
    }
    discard(server, "b/goes");
    // Something else moves the version on.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}});
    server.put(namespace).expect("a namespace");
    version
}

fn mk_gateway(server: &ApiServer) -> Gateway {
    Gateway::builder(server.client()).build().expect("a gateway")
}

async fn resumed(gateway: &Gateway, parameters: &[(&str, &str)], id: &str) -> Events {
    let router = router(gateway);
    // Somebody else has asked before, so that the cache is later than the client.
    call(&router, "/core/v1/configmaps", &[]).await;
    Events::in_body(call(&router, &query(MAPS, parameters), &[("last-event-id", id)]).await.into_body())
}

#[tokio::test(start_paused = true)]
async fn a_stream_goes_on_over_a_restart_of_the_gateway() {
    let server = mk_cluster();
    let version = meanwhile(&server);
    let gateway = mk_gateway(&server);
    let mut events = resumed(&gateway, &[], &version).await;
    let told = events.shown(5).await;
    let expected = [
        "modified changes new",
        "added comes new",
        "modified relabelled old",
        "modified relabelled old",
        "deleted goes old",
    ];
    assert_eq!(told, expected);
    put(&server, "a/next", "new");
    assert_eq!(events.shown(1).await, ["added next new"], "nothing comes twice");
}

#[tokio::test(start_paused = true)]
async fn what_no_longer_matches_is_gone_and_nothing_is_told_of_others() {
    let server = mk_cluster();
    let version = meanwhile(&server);
    let gateway = mk_gateway(&server);
    let mut events = resumed(&gateway, &[("labelSelector", "app=web"), ("namespace", "a")], &version).await;
    assert_eq!(events.shown(2).await, ["modified changes new", "deleted relabelled old"]);
    put(&server, "b/other", "new");
    server.put(mk_map("a/next", json!({"app": "web"}), "new")).expect("a map");
    assert_eq!(events.shown(1).await, ["added next new"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_over_a_restart_of_the_gateway() {
    let server = mk_cluster();
    let version = meanwhile(&server);
    let gateway = mk_gateway(&server);
    let router = router(&gateway);
    let path = query("/api/v1/configmaps", &[("watch", "1"), ("resourceVersion", &version)]);
    let mut body = call(&router, &path, &[]).await.into_body();
    let mut frames = FrameDecoder::new(Framing::Json);
    let mut told = Vec::new();
    while told.len() < 5 {
        match frames.next_frame().expect("a frame") {
            Some(frame) => {
                let event: Value = serde_json::from_slice(&frame).expect("JSON");
                told.push(format!(
                    "{} {}",
                    event["type"].as_str().unwrap(),
                    event["object"]["metadata"]["name"].as_str().unwrap_or("-")
                ));
            }
            None => {
                let piece = http_body_util::BodyExt::frame(&mut body).await.expect("more").expect("no cut");
                frames.push(piece.into_data().expect("no trailers"));
            }
        }
    }
    assert_eq!(
        told,
        ["MODIFIED changes", "ADDED comes", "MODIFIED relabelled", "MODIFIED relabelled", "DELETED goes"]
    );
}

/// How often the config maps were watched: by the informer once, and once for each question about the past.
fn watches(server: &ApiServer) -> u64 {
    server.requests().get(&("watch", "configmaps".to_owned())).copied().unwrap_or_default()
}

/// A gateway whose cache is later than a client, and its own watch open: what goes wrong now goes wrong with the past.
async fn mk_later(server: &ApiServer) -> Gateway {
    let gateway = mk_gateway(server);
    call(&router(&gateway), "/core/v1/configmaps", &[]).await;
    let deadline = Deadline::start();
    while watches(server) == 0 {
        deadline.check("the gateway watches");
        tokio::task::yield_now().await;
    }
    gateway
}

#[tokio::test(start_paused = true)]
async fn what_the_server_no_longer_knows_is_a_reset_and_is_not_asked_for_twice() {
    type Step = fn(&ApiServer);
    let nothing: Step = |_| {};
    let refuse: Step = |server| {
        server.faults().add(Rule::new(Fault::Status(Status::expired("too old"))).verb(Verb::Watch));
    };
    let too_many: Step = |server| (0..4_100).for_each(|n| put(server, "a/changes", &n.to_string()));
    let too_large: Step = |server| (0..10).for_each(|_| put(server, "a/changes", &"x".repeat(1 << 20)));
    let before: [Step; 4] = [ApiServer::compact, nothing, too_many, too_large];
    for (before_the_list, after_it) in before.into_iter().zip([nothing, refuse, nothing, nothing]) {
        let server = mk_cluster();
        let version = meanwhile(&server);
        before_the_list(&server);
        let gateway = mk_later(&server).await;
        after_it(&server);
        for _ in 0..3 {
            let mut events = resumed(&gateway, &[], &version).await;
            assert_eq!(events.event().await.name, "reset");
        }
        assert_eq!(watches(&server), 2, "the informer's own, and once for the past");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_to_ask_is_not_taken_for_an_answer() {
    let failures = [
        Fault::Refuse,
        Fault::Status(Status::internal_error("etcd has no leader")),
        Fault::Status(Status::too_many_requests("later", 1)),
        Fault::Html,
        Fault::Reset,
        Fault::CutAfter(300),
        Fault::StallAfter(300),
        Fault::StreamError(Status::internal_error("etcd has no leader")),
    ];
    for failure in failures {
        let server = mk_cluster();
        let version = meanwhile(&server);
        let gateway = mk_later(&server).await;
        // What breaks connections is about the informer's watch, too, which is open: it is the first.
        let breaks = matches!(failure, Fault::Reset | Fault::CutAfter(_) | Fault::StallAfter(_));
        let nth = if breaks { 2 } else { 1 };
        server.faults().add(Rule::new(failure.clone()).verb(Verb::Watch).resource("configmaps").nth([nth]));
        let mut first = resumed(&gateway, &[], &version).await;
        assert_eq!(first.event().await.name, "reset", "{failure:?}");
        let mut next = resumed(&gateway, &[], &version).await;
        assert_eq!(next.shown(1).await, ["modified changes new"], "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_of_clients_does_not_hammer_a_server_that_does_not_answer() {
    for failure in [Fault::Refuse, Fault::StallAfter(0)] {
        let server = mk_cluster();
        let version = meanwhile(&server);
        let gateway = mk_later(&server).await;
        server.faults().add(Rule::new(failure).verb(Verb::Watch).resource("configmaps"));
        let crowd = (0..200).map(|_| resumed(&gateway, &[], &version));
        for mut events in join_all(crowd).await {
            assert_eq!(events.event().await.name, "reset");
        }
        assert!(watches(&server) <= 1 + 6, "one at a time, with a pause: {}", watches(&server));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_through_all_versions_does_not_hammer_the_server() {
    let server = mk_cluster();
    (0..300).for_each(|n| put(&server, "a/changes", &n.to_string()));
    server.compact();
    let gateway = mk_later(&server).await;
    let began = tokio::time::Instant::now();
    for version in 1..200 {
        let mut events = resumed(&gateway, &[], &version.to_string()).await;
        assert_eq!(events.event().await.name, "reset");
    }
    let seconds = began.elapsed().as_secs();
    assert!(watches(&server) <= 2 + 10 * (seconds + 1), "{} in {seconds} seconds", watches(&server));
}
