//! Watches: where they begin, what they show, and how they end.

use informer_apiserver::ApiServer;
use serde_json::json;

use crate::{
    client::{Api, query, version},
    objects::{CRDS, MAPS, PODS, WIDGETS, mk_config_map, mk_crd, mk_held, mk_labelled, mk_pod, mk_widget},
};

fn from(version: u64) -> String {
    query(MAPS, &[("watch", "true"), ("resourceVersion", &version.to_string())])
}

async fn with_maps(names: &[&str]) -> Api {
    let api = Api::new();
    for name in names {
        api.post(MAPS, &mk_config_map(name)).await.ok();
    }
    api
}

#[tokio::test]
async fn a_watch_without_a_version_or_with_any_begins_with_what_exists() {
    let api = with_maps(&["a", "b"]).await;
    for start in ["", "0"] {
        let mut watch = api.watch(&query(MAPS, &[("watch", "true"), ("resourceVersion", start)])).await;
        let mut initial = watch.lines(2).await;
        initial.sort();
        assert_eq!(initial, ["ADDED a", "ADDED b"]);
        assert!(watch.is_silent());
        api.merge(&format!("{MAPS}/a"), &json!({ "data": { "a": format!("{start}x") } })).await.ok();
        assert_eq!(watch.lines(1).await, ["MODIFIED a"]);
    }
}

#[tokio::test]
async fn a_watch_from_a_version_shows_the_events_after_it() {
    let api = with_maps(&["a", "b"]).await;
    let mut watch = api.watch(&from(api.server.version() - 1)).await;
    let (r#type, object) = watch.event().await;
    assert_eq!(
        (r#type.as_str(), &object["kind"], version(&object)),
        ("ADDED", &"ConfigMap".into(), api.server.version())
    );
    let patched = api.merge(&format!("{MAPS}/a"), &json!({ "data": { "a": "2" } })).await.ok();
    assert_eq!(watch.event().await, ("MODIFIED".into(), patched));
    assert!(watch.is_silent());
}

#[tokio::test]
async fn deleted_carries_the_last_state_with_the_version_of_the_deletion() {
    let api = with_maps(&["a"]).await;
    let last = api.get(&format!("{MAPS}/a")).await.ok();
    let mut watch = api.watch(&from(api.server.version())).await;
    api.delete(&format!("{MAPS}/a")).await.ok();
    let (r#type, object) = watch.event().await;
    assert_eq!((r#type.as_str(), &object["data"]), ("DELETED", &last["data"]));
    assert_eq!(object["metadata"]["uid"], last["metadata"]["uid"]);
    assert_eq!(version(&object), version(&last) + 1);
    assert_eq!(version(&object), api.server.version());
}

#[tokio::test]
async fn deleted_by_its_last_finalizer_carries_what_was_stored_last() {
    let api = Api::new();
    api.post(MAPS, &mk_held("a")).await.ok();
    api.delete(&format!("{MAPS}/a")).await.ok();
    let mut watch = api.watch(&from(api.server.version())).await;
    let patch = json!({ "metadata": { "finalizers": null }, "data": { "a": "never stored" } });
    api.merge(&format!("{MAPS}/a"), &patch).await.ok();
    let (r#type, object) = watch.event().await;
    assert_eq!((r#type.as_str(), &object["data"]["a"]), ("DELETED", &"1".into()));
    assert_eq!(version(&object), api.server.version());
}

#[tokio::test]
async fn a_version_that_is_too_old_is_one_error_event_and_the_end() {
    let api = with_maps(&["a", "b"]).await;
    api.server.compact();
    let mut watch = api.watch(&from(api.server.version() - 1)).await;
    let (r#type, status) = watch.event().await;
    assert_eq!(
        (r#type.as_str(), &status["kind"], &status["status"]),
        ("ERROR", &"Status".into(), &"Failure".into())
    );
    assert_eq!((&status["code"], &status["reason"]), (&410.into(), &"Expired".into()));
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_version_that_fell_out_of_the_ring_is_too_old() {
    let api = Api::of(ApiServer::builder().seed(1).history(3).build());
    for name in ["a", "b", "c", "d", "e"] {
        api.post(MAPS, &mk_config_map(name)).await.ok();
    }
    let newest = api.server.version();
    assert_eq!(api.watch(&from(newest - 3)).await.lines(3).await, ["ADDED c", "ADDED d", "ADDED e"]);
    assert_eq!(api.watch(&from(newest - 4)).await.event().await.0, "ERROR");
}

#[tokio::test]
async fn a_future_version_is_accepted_and_silent_until_it_is_reached() {
    let api = with_maps(&["a"]).await;
    let mut watch = api.watch(&from(api.server.version() + 2)).await;
    for name in ["b", "c"] {
        api.post(MAPS, &mk_config_map(name)).await.ok();
        assert!(watch.is_silent(), "{name}");
    }
    api.post(MAPS, &mk_config_map("d")).await.ok();
    assert_eq!(watch.lines(1).await, ["ADDED d"]);
}

#[tokio::test]
async fn with_a_selector_an_object_that_starts_to_match_is_added_and_one_that_stops_is_deleted() {
    let api = Api::new();
    let created = api.post(MAPS, &mk_labelled("a", json!({ "app": "web" }))).await.ok();
    let selector = [("watch", "true"), ("labelSelector", "app=web"), ("resourceVersion", "0")];
    let mut watch = api.watch(&query(MAPS, &selector)).await;
    let path = format!("{MAPS}/a");
    assert_eq!(watch.seen().await, ("ADDED".into(), "a".into(), version(&created)));

    let left = api
        .merge(&path, &json!({ "metadata": { "labels": { "app": "db" } }, "data": { "a": "2" } }))
        .await
        .ok();
    let (r#type, object) = watch.event().await;
    assert_eq!((r#type.as_str(), version(&object)), ("DELETED", version(&left)), "the version of the change");
    assert_eq!(
        (&object["metadata"]["labels"]["app"], &object["data"]["a"]),
        (&"web".into(), &"1".into()),
        "the last matching state"
    );

    api.merge(&path, &json!({ "data": { "a": "3" } })).await.ok();
    assert!(watch.is_silent(), "what does not match is not seen");
    let back = api.merge(&path, &json!({ "metadata": { "labels": { "app": "web" } } })).await.ok();
    assert_eq!(watch.event().await, ("ADDED".into(), back));
    api.merge(&path, &json!({ "data": { "a": "4" } })).await.ok();
    api.delete(&path).await.ok();
    assert_eq!(watch.lines(2).await, ["MODIFIED a", "DELETED a"]);
}

#[tokio::test]
async fn a_field_selector_has_the_same_transitions() {
    let api = Api::new();
    let selector = [("watch", "true"), ("fieldSelector", "spec.nodeName=n1")];
    let mut watch = api.watch(&query(PODS, &selector)).await;
    api.post(PODS, &mk_pod("a")).await.ok();
    assert!(watch.is_silent());
    for (node, event) in [("n1", "ADDED a"), ("n2", "DELETED a"), ("n1", "ADDED a")] {
        api.merge(&format!("{PODS}/a"), &json!({ "spec": { "nodeName": node } })).await.ok();
        assert_eq!(watch.lines(1).await, [event]);
    }
}

#[tokio::test]
async fn a_watch_of_one_name_sees_only_that_name() {
    let api = with_maps(&["a", "b"]).await;
    let selector = [("watch", "true"), ("fieldSelector", "metadata.name=b"), ("resourceVersion", "0")];
    let mut watch = api.watch(&query(MAPS, &selector)).await;
    assert_eq!(watch.lines(1).await, ["ADDED b"]);
    for name in ["a", "b"] {
        api.delete(&format!("{MAPS}/{name}")).await.ok();
    }
    assert_eq!(watch.lines(1).await, ["DELETED b"]);
    assert!(watch.is_silent());
}

#[tokio::test]
async fn a_watch_of_a_namespace_sees_only_that_namespace_and_one_of_all_sees_all() {
    let api = Api::new();
    let mut one = api.watch(&query(MAPS, &[("watch", "true")])).await;
    let mut all = api.watch("/api/v1/configmaps?watch=true").await;
    api.post("/api/v1/namespaces/kube-system/configmaps", &mk_config_map("x")).await.ok();
    api.post(MAPS, &mk_config_map("a")).await.ok();
    assert_eq!(one.lines(1).await, ["ADDED a"]);
    assert_eq!(all.lines(2).await, ["ADDED x", "ADDED a"]);
}

#[tokio::test]
async fn all_who_watch_see_the_same_events_in_the_same_order() {
    let api = Api::new();
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(api.watch(&from(api.server.version())).await);
    }
    for name in ["c", "a", "b"] {
        api.post(MAPS, &mk_config_map(name)).await.ok();
        api.delete(&format!("{MAPS}/{name}")).await.ok();
    }
    for watch in &mut watches {
        let expected = ["ADDED c", "DELETED c", "ADDED a", "DELETED a", "ADDED b", "DELETED b"];
        assert_eq!(watch.lines(6).await, expected);
    }
}

#[tokio::test]
async fn a_watcher_that_is_too_slow_is_cut_off_without_an_error() {
    let api = Api::of(ApiServer::builder().seed(1).history(3).build());
    let mut watch = api.watch(&query(MAPS, &[("watch", "true")])).await;
    assert!(watch.is_silent());
    for name in ["a", "b", "c", "d"] {
        api.post(MAPS, &mk_config_map(name)).await.ok();
    }
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn an_open_watch_that_missed_nothing_survives_a_compaction() {
    let api = with_maps(&["a"]).await;
    let mut watch = api.watch(&from(api.server.version())).await;
    assert!(watch.is_silent());
    api.post(PODS, &mk_pod("elsewhere")).await.ok();
    api.server.compact();
    api.post(MAPS, &mk_config_map("b")).await.ok();
    assert_eq!(watch.next().await.expect("an event")["object"]["metadata"]["name"], "b");
}

#[tokio::test]
async fn a_restored_backup_ends_watches_and_counts_from_there() {
    let api = with_maps(&["a"]).await;
    let backup = api.server.version();
    api.post(MAPS, &mk_config_map("b")).await.ok();
    let mut watch = api.watch(&from(api.server.version())).await;
    assert!(watch.is_silent());
    api.server.rewind(backup).expect("in history");
    assert_eq!(watch.next().await, None);
    let mut silent = api.watch(&from(backup + 1)).await;
    assert!(silent.is_silent(), "the version of the lost future is in the future again");
    assert_eq!(api.names(MAPS).await, ["a"]);
}

#[tokio::test]
async fn deleting_a_definition_ends_the_watches_of_what_it_defined() {
    let api = Api::new();
    api.post(CRDS, &mk_crd()).await.ok();
    api.post(WIDGETS, &mk_widget("a", "red")).await.ok();
    let mut watch = api.watch(&query(WIDGETS, &[("watch", "true")])).await;
    assert_eq!(watch.lines(1).await, ["ADDED a"]);
    assert!(watch.is_silent());
    api.delete(&format!("{CRDS}/widgets.example.com")).await.ok();
    while let Some(event) = watch.next().await {
        assert_eq!(event["type"], "DELETED", "{event}");
    }
}

#[tokio::test]
async fn objects_are_deleted_with_their_definition() {
    let api = Api::new();
    api.post(CRDS, &mk_crd()).await.ok();
    api.post(WIDGETS, &mk_widget("a", "red")).await.ok();
    let mut watch = api.watch(&query(WIDGETS, &[("watch", "true")])).await;
    assert_eq!(watch.lines(1).await, ["ADDED a"]);
    api.delete(&format!("{CRDS}/widgets.example.com")).await.ok();
    let last = watch.next().await.expect("an event before the end");
    assert_eq!((&last["type"], &last["object"]["metadata"]["name"]), (&"DELETED".into(), &"a".into()));
    api.post(CRDS, &mk_crd()).await.ok();
    assert!(api.names(WIDGETS).await.is_empty(), "a new definition begins empty");
}

#[tokio::test]
async fn shutdown_ends_watches() {
    let api = with_maps(&["a"]).await;
    let mut watch = api.watch(&from(api.server.version())).await;
    assert!(watch.is_silent());
    api.server.shutdown();
    assert_eq!(watch.next().await, None);
}
