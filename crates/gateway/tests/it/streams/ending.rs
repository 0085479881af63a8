//! How streams end.

use informer_testing::{Deadline, socket};
use serde_json::json;
use tokio::{
    io::AsyncReadExt,
    time::{Duration, sleep},
};

use super::events::{Events, MAPS, mk_cluster, mk_map, put};
use crate::support::Stage;

#[tokio::test]
async fn a_gateway_that_stops_says_so_and_the_client_may_come_back_with_its_id() {
    let stage = Stage::open(mk_cluster()).await;
    let mut following = Events::of(&stage, MAPS, &[]).await;
    following.snapshot().await;
    put(&stage.server, "a/one", "new");
    assert_eq!(following.shown(1).await, ["added one new"]);
    let watch = stage.stream("/api/v1/configmaps?watch=1&resourceVersion=0", &[]).await;
    stage.close().await;
    let event = following.event().await;
    assert_eq!((&*event.name, &event.data["reason"], event.id), ("end", &json!("shutting down"), None));
    assert_eq!(following.next().await, None);
    assert!(watch.rest().await.contains("ADDED"), "a watch ends, too");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_disconnected_after_a_minute() {
    let stage = Stage::open(mk_cluster()).await;
    let text = "x".repeat(500_000);
    for number in 0..60 {
        stage.server.put(mk_map(&format!("a/c-{number}"), json!({}), &text)).expect("a map");
    }
    let request = socket::get_request(stage.address, MAPS, &[]);
    let mut stalled = socket::open(stage.address, request.as_bytes()).await;
    let streams = async || {
        let informers = stage.get("/_informers").await.ok();
        informers["informers"].as_array().and_then(|all| all.first()).map(|one| one["streams"].clone())
    };
    let deadline = Deadline::start();
    while streams().await != Some(json!(1)) {
        deadline.check("the stream is there");
        sleep(Duration::from_millis(100)).await;
    }
    let began = tokio::time::Instant::now();
    while streams().await != Some(json!(0)) {
        assert!(began.elapsed() < Duration::from_secs(90), "it is still there");
        sleep(Duration::from_secs(1)).await;
    }
    assert!(began.elapsed() >= Duration::from_secs(30), "it had its time: {:?}", began.elapsed());
    let mut read = Vec::new();
    let _ = stalled.read_to_end(&mut read).await;
    assert!(read.len() < 60 * text.len(), "what was not taken is not kept: {} bytes", read.len());
    stage.close().await;
}
