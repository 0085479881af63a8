//! Streaming lists and bookmarks.

use serde_json::json;

use crate::{
    objects::{mk_labelled, mk_map},
    stage::{Stage, play},
};

const BOOKMARKS: (&str, &str) = ("allowWatchBookmarks", "true");
const INITIAL: (&str, &str) = ("sendInitialEvents", "true");
const NOT_OLDER: (&str, &str) = ("resourceVersionMatch", "NotOlderThan");

async fn with_maps(stage: &Stage) -> String {
    stage.make(&stage.maps(), mk_map("a")).await;
    let made = stage.make(&stage.maps(), mk_labelled("b", "web")).await;
    made["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
}

#[test]
fn a_streaming_list_is_added_for_each_a_bookmark_and_then_events() {
    play("streaming", async |stage| {
        let newest = with_maps(stage).await;
        let path = stage.maps();
        for start in ["", "0", &newest] {
            let parameters = [INITIAL, NOT_OLDER, BOOKMARKS, ("resourceVersion", start)];
            let mut watch = stage.watch(&path, &parameters).await;
            watch.unordered(2).await;
            watch.events(1).await;
            watch.silence().await;
        }
        let mut watch = stage.watch(&path, &[INITIAL, NOT_OLDER, BOOKMARKS, ("labelSelector", "app")]).await;
        watch.events(2).await;
        stage.remove(&format!("{path}/b")).await;
        watch.events(1).await;
        stage.note("of nothing");
        let mut watch = stage.watch(&stage.core("secrets"), &[INITIAL, NOT_OLDER, BOOKMARKS]).await;
        watch.events(1).await;
        watch.silence().await;
    });
}

#[test]
fn a_streaming_list_needs_the_right_options() {
    play("streaming_refused", async |stage| {
        with_maps(stage).await;
        let (watch, no) = (("watch", "true"), ("sendInitialEvents", "false"));
        let exact = ("resourceVersionMatch", "Exact");
        for parameters in [
            &[watch, INITIAL][..],
            &[watch, INITIAL, BOOKMARKS],
            &[watch, no],
            &[watch, INITIAL, exact, ("resourceVersion", "1"), BOOKMARKS],
            &[watch, NOT_OLDER, ("resourceVersion", "1")],
            &[watch, exact, ("resourceVersion", "1")],
            &[watch, ("resourceVersionMatch", "Sometimes")],
            &[
                watch,
                INITIAL,
                NOT_OLDER,
                ("continue", "x"),
                ("timeoutSeconds", "1"),
                ("labelSelector", "none"),
            ],
        ] {
            stage.get(&stage.maps(), parameters).await;
        }
        stage.note("without bookmarks it does not say where it ends");
        let mut watch = stage.watch(&stage.maps(), &[INITIAL, NOT_OLDER]).await;
        watch.unordered(2).await;
        watch.silence().await;
    });
}

#[test]
fn without_initial_events_a_watch_begins_at_the_version_or_now() {
    play("streaming_off", async |stage| {
        let newest = with_maps(stage).await;
        let path = stage.maps();
        let none = ("sendInitialEvents", "false");
        let mut watches = Vec::new();
        for start in ["", "0", &newest] {
            let mut watch =
                stage.watch(&path, &[none, NOT_OLDER, BOOKMARKS, ("resourceVersion", start)]).await;
            watch.silence().await;
            watches.push(watch);
        }
        stage.change(&format!("{path}/a"), json!({ "data": { "a": "2" } })).await;
        for watch in &mut watches {
            watch.events(1).await;
        }
    });
}

#[test]
fn a_bookmark_comes_shortly_before_the_timeout() {
    play("bookmarks", async |stage| {
        let newest = with_maps(stage).await;
        let parameters = [BOOKMARKS, ("resourceVersion", &newest), ("timeoutSeconds", "4")];
        let mut watch = stage.watch(&stage.maps(), &parameters).await;
        watch.bookmark().await;
        let mut watch =
            stage.watch(&stage.maps(), &[("resourceVersion", &newest), ("timeoutSeconds", "4")]).await;
        watch.rest().await;
    });
}

#[test]
fn a_streaming_list_has_the_forms_of_a_list() {
    play("streaming_forms", async |stage| {
        with_maps(stage).await;
        let parameters = [INITIAL, NOT_OLDER, BOOKMARKS, ("labelSelector", "app")];
        for form in [
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
        ] {
            let mut watch = stage.watch_as(&stage.maps(), &parameters, form).await;
            watch.events(2).await;
            stage.change(&format!("{}/b", stage.maps()), json!({ "data": { "form": form } })).await;
            watch.events(1).await;
        }
    });
}
