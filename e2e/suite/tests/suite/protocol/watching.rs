//! Watches: where they begin, what they tell, how they end.

use serde_json::{Value, json};

use crate::{
    objects::{mk_held, mk_labelled, mk_map},
    stage::{Stage, play, play_alone},
};

fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
}

async fn with_maps(stage: &Stage, names: &[&str]) -> Vec<String> {
    let mut versions = Vec::new();
    for name in names {
        versions.push(version(&stage.make(&stage.maps(), mk_map(name)).await));
    }
    versions
}

#[test]
fn a_watch_begins_where_its_version_says() {
    play("watch", async |stage| {
        let versions = with_maps(stage, &["a", "b"]).await;
        let path = stage.maps();
        for start in [None, Some("0"), Some("")] {
            let parameters: Vec<_> = start.map(|start| ("resourceVersion", start)).into_iter().collect();
            let mut watch = stage.watch(&path, &parameters).await;
            watch.unordered(2).await;
            watch.silence().await;
        }
        let mut watch = stage.watch(&path, &[("resourceVersion", &versions[0])]).await;
        watch.events(1).await;
        watch.silence().await;
        let mut newest = stage.watch(&path, &[("resourceVersion", &versions[1])]).await;
        newest.silence().await;
        stage.change(&format!("{path}/a"), json!({ "data": { "a": "2" } })).await;
        stage.change(&format!("{path}/a"), json!({ "data": { "a": "2" } })).await;
        stage.remove(&format!("{path}/b")).await;
        stage.note("a change, a patch that changes nothing, and a deletion");
        newest.events(2).await;
        newest.silence().await;
    });
}

#[test]
fn a_deletion_is_told_in_steps_when_finalizers_hold() {
    play("watch_finalizers", async |stage| {
        let path = stage.maps();
        let start = version(&stage.make(&path, mk_held("a")).await);
        let mut watch = stage.watch(&path, &[("resourceVersion", &start)]).await;
        stage.remove(&format!("{path}/a")).await;
        stage.remove(&format!("{path}/a")).await;
        stage.change(&format!("{path}/a"), json!({ "metadata": { "finalizers": null } })).await;
        watch.events(2).await;
        watch.silence().await;
    });
}

#[test]
fn a_selector_makes_objects_come_and_go() {
    play("watch_selectors", async |stage| {
        let path = stage.maps();
        let start = version(&stage.make(&path, mk_labelled("a", "web")).await);
        let mut by_label =
            stage.watch(&path, &[("labelSelector", "app=web"), ("resourceVersion", &start)]).await;
        let mut by_field =
            stage.watch(&path, &[("fieldSelector", "metadata.name=b"), ("resourceVersion", &start)]).await;
        let relabel = async |name: &str, app: Value| {
            stage
                .change(&format!("{path}/{name}"), json!({ "metadata": { "labels": { "app": app } } }))
                .await;
        };
        relabel("a", "db".into()).await;
        relabel("a", "x".into()).await;
        relabel("a", "web".into()).await;
        stage.make(&path, mk_labelled("b", "web")).await;
        stage.remove(&format!("{path}/b")).await;
        relabel("a", Value::Null).await;
        stage.remove(&format!("{path}/a")).await;
        stage.note("by label");
        by_label.events(5).await;
        by_label.silence().await;
        stage.note("by name");
        by_field.events(2).await;
        by_field.silence().await;
    });
}

#[test]
fn a_watch_ends_after_its_timeout() {
    play("watch_timeout", async |stage| {
        with_maps(stage, &["a"]).await;
        let mut watch = stage.watch(&stage.maps(), &[("timeoutSeconds", "1")]).await;
        watch.rest().await;
        let (watch, short) = (("watch", "true"), ("timeoutSeconds", "1"));
        stage.get(&stage.maps(), &[watch, short, ("resourceVersion", "1000000000"), ("limit", "1")]).await;
        for bad in [
            ("timeoutSeconds", "x"),
            ("resourceVersion", "x"),
            ("labelSelector", "a b"),
            ("fieldSelector", "data.a=1"),
        ] {
            stage.get_refused(&stage.maps(), &[watch, bad]).await;
        }
    });
}

#[test]
fn a_plain_watch_of_the_future_is_silent() {
    play("watch_future", async |stage| {
        with_maps(stage, &["a"]).await;
        let mut watch = stage.watch(&stage.maps(), &[("resourceVersion", "1000000000")]).await;
        stage.change(&format!("{}/a", stage.maps()), json!({ "data": { "a": "2" } })).await;
        watch.silence().await;
    });
}

#[test]
fn a_watch_of_a_forgotten_version_is_one_error_event() {
    play_alone("watch_too_old", async |stage| {
        let versions = with_maps(stage, &["a", "b"]).await;
        stage.cluster.compact();
        stage.cluster.restart();
        stage.note("the past is forgotten, also by the server's cache");
        let mut watch = stage.watch(&stage.maps(), &[("resourceVersion", "1")]).await;
        watch.rest().await;
        let mut watch = stage.watch(&stage.maps(), &[("resourceVersion", &versions[0])]).await;
        watch.rest().await;
    });
}
