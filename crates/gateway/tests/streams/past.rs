//! Clients that have followed another gateway, or this one before it was started anew.

use informer_apiserver::ApiServer;
use informer_gateway::Gateway;
use informer_model::{FrameDecoder, Framing};
use serde_json::{Value, json};

use crate::{
    events::{Events, MAPS, call, discard, mk_cluster, mk_map, put, router},
    support::query,
};

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

#[tokio::test(start_paused = true)]
async fn what_the_server_no_longer_knows_is_a_reset_and_is_not_asked_for_twice() {
    let server = mk_cluster();
    let version = meanwhile(&server);
    server.compact();
    let gateway = mk_gateway(&server);
    for _ in 0..3 {
        let mut events = resumed(&gateway, &[], &version).await;
        assert_eq!(events.event().await.name, "reset");
    }
    let asked = server.requests();
    let watches = asked.get(&("watch", "configmaps".to_owned()));
    assert_eq!(watches, Some(&2), "the informer's own, and once for the past: {asked:?}");
}
