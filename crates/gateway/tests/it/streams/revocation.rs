//! What becomes of streams whose caller may no longer see what they tell of.

use std::time::Duration;

use axum::body::Body;
use futures_util::StreamExt;
use informer_gateway::{Auth, Gateway};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::events::{Events, call, router};
use crate::cluster::Cluster;

/// No caller sees anything so long after it was taken away.
const AT_MOST: Duration = Duration::from_secs(10);

fn put(cluster: &Cluster, name: &str) {
    cluster.put(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "annotations": {"text": "x".repeat(1_000)}},
    }));
}

/// A cluster of many pods that `ann` may see, and what a gateway answers her.
async fn ask(path: &str) -> (Cluster, Body) {
    let cluster = Cluster::new();
    cluster.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    cluster.grant("ann", "pods", "shop");
    (0..600).for_each(|number| put(&cluster, &format!("web-{number}")));
    let gateway = Gateway::builder(cluster.client()).auth(Auth::Kubernetes).build().expect("a gateway");
    let response = call(&router(&gateway), path, &[("authorization", "Bearer ann-token")]).await;
    assert_eq!(response.status(), 200);
    (cluster, response.into_body())
}

async fn revoked(events: &mut Events) {
    let event = events.event().await;
    assert_eq!((&*event.name, &event.data["reason"]), ("end", &json!("access revoked")));
    assert_eq!(event.id(), "", "where the stream was is to be forgotten");
    assert_eq!(events.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_holds_changes_back_ends_as_soon_as_others() {
    let (cluster, body) = ask("/_stream/core/v1/pods?namespace=shop&interval=60s").await;
    let mut events = Events::in_body(body);
    events.snapshot().await;
    put(&cluster, "one");
    assert_eq!(events.event().await.name, "added");
    put(&cluster, "two");
    let began = Instant::now();
    cluster.revoke_all();
    revoked(&mut events).await;
    assert!(began.elapsed() <= AT_MOST, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_reads_a_snapshot_slowly_does_not_get_the_rest_of_it() {
    let (cluster, body) = ask("/_stream/core/v1/pods?namespace=shop").await;
    let mut events = Events::in_body(body);
    assert_eq!(events.event().await.name, "snapshot");
    assert_eq!(events.event().await.name, "items");
    cluster.revoke_all();
    sleep(AT_MOST).await;
    revoked(&mut events).await;
}

#[tokio::test(start_paused = true)]
async fn who_reads_a_watch_slowly_does_not_get_the_rest_of_it() {
    let (cluster, body) = ask("/api/v1/namespaces/shop/pods?watch=1").await;
    let mut pieces = body.into_data_stream();
    pieces.next().await.expect("a piece").expect("bytes");
    cluster.revoke_all();
    sleep(AT_MOST).await;
    assert!(pieces.next().await.is_none(), "the watch has ended");
}
