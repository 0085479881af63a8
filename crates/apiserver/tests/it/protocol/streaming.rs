//! Streaming lists, bookmarks and timeouts.

use std::time::Duration;

use informer_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    client::{Api, METADATA, TABLE, Watch, query, version},
    objects::{MAPS, PODS, mk_config_map, mk_labelled, mk_pod},
};

const WATCH: (&str, &str) = ("watch", "true");
const BOOKMARKS: (&str, &str) = ("allowWatchBookmarks", "true");
const INITIAL: (&str, &str) = ("sendInitialEvents", "true");
const NOT_OLDER: (&str, &str) = ("resourceVersionMatch", "NotOlderThan");

async fn with_maps() -> Api {
    let api = Api::new();
    for name in ["a", "b"] {
        api.post(MAPS, &mk_config_map(name)).await.ok();
    }
    api
}

async fn bookmark(watch: &mut Watch) -> Value {
    let (r#type, object) = watch.event().await;
    assert_eq!(r#type, "BOOKMARK");
    object
}

#[tokio::test]
async fn a_streaming_list_is_added_for_each_object_a_closing_bookmark_and_then_events() {
    let api = with_maps().await;
    let newest = api.server.version();
    for start in ["", "0", "1", &newest.to_string()] {
        let mut watch = api
            .watch(&query(MAPS, &[WATCH, INITIAL, NOT_OLDER, BOOKMARKS, ("resourceVersion", start)]))
            .await;
        let mut initial = watch.lines(2).await;
        initial.sort();
        assert_eq!(initial, ["ADDED a", "ADDED b"], "{start}");
        let end = bookmark(&mut watch).await;
        assert_eq!(end["metadata"]["annotations"], json!({ "k8s.io/initial-events-end": "true" }));
        assert_eq!(
            (version(&end), &end["kind"], &end["apiVersion"]),
            (newest, &"ConfigMap".into(), &"v1".into())
        );
        assert!(watch.is_silent());
    }
    let mut watch = api.watch(&query(MAPS, &[WATCH, INITIAL, NOT_OLDER, BOOKMARKS])).await;
    watch.lines(3).await;
    api.delete(&format!("{MAPS}/a")).await.ok();
    assert_eq!(watch.lines(1).await, ["DELETED a"]);
}

#[tokio::test]
async fn a_streaming_list_of_nothing_is_the_closing_bookmark_alone() {
    let api = Api::new();
    let mut watch = api.watch(&query(PODS, &[WATCH, INITIAL, NOT_OLDER, BOOKMARKS])).await;
    assert_eq!(version(&bookmark(&mut watch).await), api.server.version());
}

#[tokio::test]
async fn a_streaming_list_has_selectors_and_forms_of_its_own() {
    let api = with_maps().await;
    api.post(MAPS, &mk_labelled("c", json!({ "app": "web" }))).await.ok();
    let path = query(MAPS, &[WATCH, INITIAL, NOT_OLDER, BOOKMARKS, ("labelSelector", "app")]);
    let mut watch = api.watch_as(&path, METADATA).await;
    let (_, object) = watch.event().await;
    assert_eq!(
        (&object["kind"], &object["metadata"]["name"]),
        (&"PartialObjectMetadata".into(), &"c".into())
    );
    let end = bookmark(&mut watch).await;
    assert_eq!(
        (&end["kind"], &end["metadata"]["annotations"]["k8s.io/initial-events-end"]),
        (&"PartialObjectMetadata".into(), &"true".into())
    );
    let mut watch = api.watch_as(&path, TABLE).await;
    let (_, table) = watch.event().await;
    assert_eq!((&table["kind"], table["rows"].as_array().map(Vec::len)), (&"Table".into(), Some(1)));
    let end = bookmark(&mut watch).await;
    assert_eq!((&end["kind"], version(&end)), (&"Table".into(), api.server.version()));
    let row = &end["rows"][0]["object"];
    assert_eq!(row["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test]
async fn without_bookmarks_a_streaming_list_does_not_say_where_it_ends() {
    let api = with_maps().await;
    let mut watch = api.watch(&query(MAPS, &[WATCH, INITIAL, NOT_OLDER])).await;
    watch.lines(2).await;
    assert!(watch.is_silent());
}

#[tokio::test]
async fn without_initial_events_a_watch_begins_at_the_version_or_now() {
    let api = with_maps().await;
    let none = ("sendInitialEvents", "false");
    for start in [None, Some(0), Some(api.server.version() + 2)] {
        let start = start.map(|start| start.to_string()).unwrap_or_default();
        let mut watch =
            api.watch(&query(MAPS, &[WATCH, none, NOT_OLDER, BOOKMARKS, ("resourceVersion", &start)])).await;
        assert!(watch.is_silent(), "{start}");
        api.merge(&format!("{MAPS}/a"), &json!({ "data": { "x": format!("{start}.") } })).await.ok();
        assert_eq!(watch.lines(1).await, ["MODIFIED a"]);
    }
}

#[tokio::test]
async fn initial_events_need_a_match_and_a_match_needs_initial_events() {
    let api = Api::new();
    for parameters in [
        &[WATCH, INITIAL][..],
        &[WATCH, ("sendInitialEvents", "false")],
        &[WATCH, INITIAL, ("resourceVersionMatch", "Exact"), ("resourceVersion", "1")],
        &[WATCH, NOT_OLDER, ("resourceVersion", "1")],
        &[WATCH, ("resourceVersionMatch", "Exact"), ("resourceVersion", "1")],
    ] {
        let status = api.get(&query(MAPS, parameters)).await.fails(422, "Invalid");
        assert_eq!(status["details"]["causes"][0]["field"], "resourceVersionMatch", "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_with_kind_and_version_only() {
    let api = with_maps().await;
    let mut watch = api
        .watch(&query(MAPS, &[WATCH, BOOKMARKS, ("resourceVersion", &api.server.version().to_string())]))
        .await;
    for minute in 1..=3 {
        let start = Instant::now();
        let object = bookmark(&mut watch).await;
        assert_eq!(start.elapsed().as_secs(), 60, "minute {minute}");
        let expected = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": { "resourceVersion": api.server.version().to_string() },
        });
        assert_eq!(object, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_has_the_version_of_all_that_was_seen_also_when_only_others_changed() {
    let api = with_maps().await;
    let mut watch = api
        .watch(&query(MAPS, &[WATCH, BOOKMARKS, ("resourceVersion", &api.server.version().to_string())]))
        .await;
    assert!(watch.is_silent());
    api.post(PODS, &mk_pod("elsewhere")).await.ok();
    assert_eq!(version(&bookmark(&mut watch).await), api.server.version());
}

#[tokio::test(start_paused = true)]
async fn without_asking_there_are_no_bookmarks() {
    let api = with_maps().await;
    for parameters in [
        &[WATCH, ("timeoutSeconds", "300")][..],
        &[WATCH, ("timeoutSeconds", "300"), ("allowWatchBookmarks", "false")],
    ] {
        let mut watch = api.watch(&query(MAPS, parameters)).await;
        watch.lines(2).await;
        assert_eq!(watch.next().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_last_bookmark_comes_shortly_before_the_timeout() {
    let api = with_maps().await;
    let start = Instant::now();
    let mut watch = api
        .watch(&query(MAPS, &[WATCH, BOOKMARKS, ("resourceVersion", "0"), ("timeoutSeconds", "30")]))
        .await;
    watch.lines(2).await;
    assert_eq!(version(&bookmark(&mut watch).await), api.server.version());
    assert!((25..30).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    assert_eq!(watch.next().await, None);
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_timeout_seconds_or_after_half_an_hour_to_an_hour() {
    let api = Api::new();
    for (timeout, expected) in
        [(Some("1"), 1..2), (Some("90"), 90..91), (Some("0"), 1_800..3_601), (None, 1_800..3_601)]
    {
        let start = Instant::now();
        let parameters: Vec<_> =
            [WATCH].into_iter().chain(timeout.map(|timeout| ("timeoutSeconds", timeout))).collect();
        let mut watch = api.watch(&query(MAPS, &parameters)).await;
        assert_eq!(watch.next().await, None);
        assert!(expected.contains(&start.elapsed().as_secs()), "{timeout:?}: {:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn the_interval_of_bookmarks_can_be_set() {
    let api = Api::of(ApiServer::builder().bookmark_interval(Duration::from_secs(5)).build());
    let mut watch = api.watch(&query(MAPS, &[WATCH, BOOKMARKS])).await;
    let start = Instant::now();
    bookmark(&mut watch).await;
    bookmark(&mut watch).await;
    assert_eq!(start.elapsed().as_secs(), 10);
}
