//! Watches: every change of what was asked for, in order, until the end.

use std::time::Duration;

use informer_model::{FrameDecoder, Framing};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::{METADATA, TABLE};
use crate::support::*;

const PODS: &str = "/api/v1/pods";

/// A watch that was accepted.
struct Watch {
    stream: Stream,
    frames: FrameDecoder,
}

impl Watch {
    async fn open(stage: &Stage, path: &str, parameters: &[(&str, &str)], accept: &str) -> Self {
        let parameters: Vec<_> = parameters.iter().copied().chain([("watch", "true")]).collect();
        let stream = stage.stream(&query(path, &parameters), &[("accept", accept)]).await;
        assert_eq!(stream.code, 200, "{parameters:?}");
        Self { stream, frames: FrameDecoder::new(Framing::Json) }
    }

    async fn of(stage: &Stage, parameters: &[(&str, &str)]) -> Self {
        Self::open(stage, PODS, parameters, "application/json").await
    }

    /// The next event; none at the end of the watch.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(frame) = self.frames.next_frame().expect("a frame") {
                return Some(serde_json::from_slice(&frame).expect("JSON"));
            }
            self.frames.push(self.stream.next().await?);
        }
    }

    /// The types and names of the next events, as `ADDED a`.
    async fn lines(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for _ in 0..count {
            let event = self.next().await.expect("an event, not the end");
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
            lines.push(format!("{} {name}", event["type"].as_str().expect("a type")));
        }
        lines
    }
}

fn mk_web(name: &str) -> Value {
    mk_pod("default", name, json!({"app": "web"}))
}

#[tokio::test]
async fn a_watch_without_a_version_tells_what_is_there_and_then_what_changes() {
    let stage = Stage::open(mk_server()).await;
    stage.put([mk_web("a"), mk_web("b")]);
    let mut watch = Watch::of(&stage, &[]).await;
    assert_eq!(watch.lines(2).await, ["ADDED a", "ADDED b"]);
    stage.put([mk_web("c"), mk_pod("default", "a", json!({"app": "api"}))]);
    stage.discard("pods", "default/b");
    assert_eq!(watch.lines(3).await, ["ADDED c", "MODIFIED a", "DELETED b"]);
    stage.close().await;
}

#[tokio::test]
async fn a_watch_from_a_version_tells_what_came_after_it() {
    let stage = Stage::open(mk_server()).await;
    stage.put([mk_web("a")]);
    let list = stage.get(PODS).await.ok();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    stage.put([mk_web("b"), mk_web("a")]);
    let mut watch = Watch::of(&stage, &[("resourceVersion", version)]).await;
    stage.put([mk_web("c")]);
    let mut last = version.parse::<u64>().unwrap();
    for expected in ["ADDED b", "MODIFIED a", "ADDED c"] {
        let event = watch.next().await.unwrap();
        let object = &event["object"]["metadata"];
        assert_eq!(
            format!("{} {}", event["type"].as_str().unwrap(), object["name"].as_str().unwrap()),
            expected
        );
        let version: u64 = object["resourceVersion"].as_str().unwrap().parse().unwrap();
        assert!(version > last, "versions grow");
        last = version;
    }
    stage.close().await;
}

#[tokio::test]
async fn what_no_longer_matches_is_deleted_and_what_begins_to_match_added() {
    let stage = Stage::open(mk_server()).await;
    stage.put([mk_web("a"), mk_web("b"), mk_pod("default", "c", json!({"app": "api"}))]);
    let mut watch = Watch::of(&stage, &[("labelSelector", "app=web")]).await;
    assert_eq!(watch.lines(2).await, ["ADDED a", "ADDED b"]);
    stage.put([
        mk_pod("default", "a", json!({"app": "api"})),
        mk_pod("default", "a", json!({"app": "other"})),
        mk_web("c"),
        mk_pod("default", "b", json!({"app": "web", "new": "yes"})),
        mk_web("a"),
    ]);
    assert_eq!(watch.lines(4).await, ["DELETED a", "ADDED c", "MODIFIED b", "ADDED a"]);
    stage.close().await;
}

#[tokio::test]
async fn fields_namespaces_and_names_filter_too() {
    let stage = Stage::open(mk_server()).await;
    stage.put([mk_namespace("shop"), mk_web("a"), mk_pod("shop", "a", json!({}))]);
    let json = "application/json";
    let mut by_field = Watch::of(&stage, &[("fieldSelector", "status.phase!=Running")]).await;
    let mut by_namespace = Watch::open(&stage, "/api/v1/namespaces/shop/pods", &[], json).await;
    let mut by_name = Watch::open(&stage, "/api/v1/namespaces/default/pods/a", &[], json).await;
    assert_eq!(by_namespace.lines(1).await, ["ADDED a"]);
    assert_eq!(by_name.lines(1).await, ["ADDED a"]);
    let mut failed = mk_pod("shop", "b", json!({}));
    failed["status"]["phase"] = "Failed".into();
    stage.put([mk_web("c"), failed, mk_web("a")]);
    assert_eq!(by_field.lines(1).await, ["ADDED b"]);
    assert_eq!(by_namespace.lines(1).await, ["ADDED b"]);
    assert_eq!(by_name.lines(1).await, ["MODIFIED a"]);
    stage.close().await;
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark_that_says_so() {
    let stage = Stage::open(mk_server()).await;
    let version = stage.put([mk_web("a"), mk_web("b")]);
    let streaming = [
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
        ("resourceVersion", version.as_str()),
        ("allowWatchBookmarks", "true"),
    ];
    let mut watch = Watch::of(&stage, &streaming).await;
    assert_eq!(watch.lines(2).await, ["ADDED a", "ADDED b"]);
    let end = watch.next().await.unwrap();
    assert_eq!((&end["type"], &end["object"]["kind"]), (&json!("BOOKMARK"), &json!("Pod")));
    assert_eq!(end["object"]["metadata"]["resourceVersion"], version);
    assert_eq!(end["object"]["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    stage.put([mk_web("c")]);
    assert_eq!(watch.lines(1).await, ["ADDED c"]);
    stage.close().await;
}

#[tokio::test]
async fn a_version_that_is_too_old_is_one_error_of_410() {
    let stage = Stage::open_with(mk_server(), |builder| builder.changes_kept(4)).await;
    stage.put([mk_web("a")]);
    let old = stage.get(PODS).await.header("x-resource-version").to_owned();
    let version = stage.put((0..20).map(|n| mk_web(&format!("pod-{n}"))));
    stage.ask(PODS, &[("resourceVersion", &version)]).await.ok();
    for version in [old.as_str(), "1"] {
        let mut watch = Watch::of(&stage, &[("resourceVersion", version)]).await;
        let event = watch.next().await.unwrap();
        assert_eq!(event["type"], "ERROR");
        let status = &event["object"];
        assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")), "{status}");
        assert_eq!(watch.next().await, None, "and the end");
    }
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_its_timeout_with_a_bookmark_for_who_wants_one() {
    let stage = Stage::inside(mk_server(), |builder| builder);
    let version = stage.put([mk_web("a")]);
    let began = Instant::now();
    let mut watch = Watch::of(&stage, &[("timeoutSeconds", "30")]).await;
    assert_eq!(watch.lines(1).await, ["ADDED a"]);
    assert_eq!(watch.next().await, None);
    let took = began.elapsed();
    assert!((Duration::from_secs(30)..Duration::from_secs(31)).contains(&took), "{took:?}");
    let parameters =
        [("timeoutSeconds", "5"), ("allowWatchBookmarks", "1"), ("resourceVersion", version.as_str())];
    let mut watch = Watch::of(&stage, &parameters).await;
    let bookmark = watch.next().await.unwrap();
    assert_eq!(
        (&bookmark["type"], &bookmark["object"]["metadata"]["resourceVersion"]),
        (&json!("BOOKMARK"), &json!(version))
    );
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_watch_may_be_asked_for_as_long_as_a_number_can_say() {
    let stage = Stage::open(mk_server()).await;
    stage.put([mk_web("a")]);
    for timeout in [u64::MAX.to_string(), i64::MAX.to_string(), u32::MAX.to_string()] {
        let mut watch = Watch::of(&stage, &[("timeoutSeconds", &timeout)]).await;
        assert_eq!(watch.lines(1).await, ["ADDED a"], "{timeout}");
    }
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_gets_a_bookmark_each_minute() {
    let stage = Stage::inside(mk_server(), |builder| builder);
    let version = stage.put([mk_web("a")]);
    let parameters = [("allowWatchBookmarks", "true"), ("labelSelector", "app=none")];
    let mut watch = Watch::of(&stage, &parameters).await;
    let began = Instant::now();
    assert_eq!(watch.next().await.unwrap()["object"]["metadata"]["resourceVersion"], version);
    let later = stage.put([mk_web("b")]);
    assert_eq!(watch.next().await.unwrap()["object"]["metadata"]["resourceVersion"], later, "it moves on");
    assert_eq!(began.elapsed().as_secs(), 120);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_without_bookmarks_sleeps() {
    let stage = Stage::inside(mk_server(), |builder| builder);
    let version = stage.put([mk_web("a")]);
    let mut watch = Watch::of(&stage, &[("resourceVersion", &version)]).await;
    // Time passes only while everybody sleeps: who is awake all the time never gets there.
    assert!(timeout(Duration::from_secs(600), watch.next()).await.is_err());
    stage.put([mk_web("b")]);
    assert_eq!(watch.lines(1).await, ["ADDED b"]);
}

#[tokio::test]
async fn a_table_tells_its_columns_once() {
    let stage = Stage::open(mk_server()).await;
    stage.put([mk_web("a"), mk_web("b")]);
    let mut watch = Watch::open(&stage, PODS, &[], TABLE).await;
    let first = watch.next().await.unwrap();
    assert_eq!((&first["type"], &first["object"]["kind"]), (&json!("ADDED"), &json!("Table")));
    assert_eq!(first["object"]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(first["object"]["rows"][0]["cells"][0], "a");
    stage.put([mk_web("c")]);
    for name in ["b", "c"] {
        let event = watch.next().await.unwrap();
        assert_eq!(event["object"]["columnDefinitions"], Value::Null);
        assert_eq!(event["object"]["rows"][0]["cells"][0], name);
    }
    let mut late = Watch::open(&stage, PODS, &[("labelSelector", "late")], TABLE).await;
    stage.put([mk_pod("default", "d", json!({"late": "yes"}))]);
    assert!(late.next().await.unwrap()["object"]["columnDefinitions"].is_array(), "whoever comes later, too");
    stage.close().await;
}

#[tokio::test]
async fn metadata_alone_can_be_watched() {
    let stage = Stage::open(mk_server()).await;
    stage.put([mk_web("a")]);
    let mut watch = Watch::open(&stage, PODS, &[], METADATA).await;
    stage.put([mk_web("b")]);
    for name in ["a", "b"] {
        let object = watch.next().await.unwrap()["object"].take();
        assert_eq!(
            (&object["kind"], &object["metadata"]["name"]),
            (&json!("PartialObjectMetadata"), &json!(name))
        );
        assert!(object.get("spec").is_none());
    }
    stage.close().await;
}

#[tokio::test]
async fn a_shutdown_ends_watches() {
    let stage = Stage::open(mk_server()).await;
    stage.put([mk_web("a")]);
    let mut watch = Watch::of(&stage, &[]).await;
    assert_eq!(watch.lines(1).await, ["ADDED a"]);
    stage.close().await;
    assert_eq!(watch.next().await, None);
}
