//! Lists in pages, their tokens, and what becomes of both when the past is forgotten.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::{
    objects::{mk_labelled, mk_map},
    stage::{Answer, Stage, play, play_alone},
};

fn token(page: &Answer) -> String {
    page.body["metadata"]["continue"].as_str().expect("a token").to_owned()
}

/// Config maps of these names; the version of the last.
async fn with_maps(stage: &Stage, names: &[&str]) -> String {
    let mut version = String::new();
    for name in names {
        let made = stage.make(&stage.maps(), mk_map(name)).await;
        version = made["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    }
    version
}

#[test]
fn all_pages_of_a_list_are_of_one_version() {
    play("pages", async |stage| {
        with_maps(stage, &["a", "b", "c", "d", "e"]).await;
        let path = stage.maps();
        let first = stage.get(&path, &[("limit", "2")]).await;
        stage.make(&path, mk_map("bb")).await;
        stage.remove(&format!("{path}/d")).await;
        let second = stage.get(&path, &[("limit", "2"), ("continue", &token(&first))]).await;
        stage.get(&path, &[("limit", "2"), ("continue", &token(&second))]).await;
        stage.note("a token is good more than once, and with another limit or none");
        stage.get(&path, &[("limit", "1"), ("continue", &token(&first))]).await;
        stage.get(&path, &[("continue", &token(&first))]).await;
        stage.note("a page that is as long as the list ends it");
        stage.get(&path, &[("limit", "5")]).await;
        stage.note("a table has pages, too");
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let page = stage.get_as(&path, &[("limit", "4"), ("includeObject", "None")], table).await;
        stage.get_as(&path, &[("continue", &token(&page)), ("includeObject", "None")], table).await;
    });
}

#[test]
fn how_many_remain_is_said_without_selectors_only() {
    play("remaining", async |stage| {
        for (name, app) in [("a", "web"), ("b", "web"), ("c", "db"), ("d", "web")] {
            stage.make(&stage.maps(), mk_labelled(name, app)).await;
        }
        let path = stage.maps();
        stage.get(&path, &[("limit", "1")]).await;
        let page = stage.get(&path, &[("limit", "1"), ("labelSelector", "app=web")]).await;
        stage.get(&path, &[("limit", "5"), ("labelSelector", "app=web"), ("continue", &token(&page))]).await;
        stage.get(&path, &[("limit", "1"), ("fieldSelector", "metadata.name!=b")]).await;
    });
}

#[test]
fn a_token_that_no_server_made_is_400() {
    play("bad_tokens", async |stage| {
        let version = with_maps(stage, &["a", "b", "c"]).await;
        let path = stage.maps();
        let first = stage.get(&path, &[("limit", "1")]).await;
        let made_up = |json: Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
        for bad in [
            "x".to_owned(),
            "%%%".to_owned(),
            made_up(json!({})),
            made_up(json!({ "v": "meta.k8s.io/v1", "rv": 0, "start": "a" })),
            made_up(json!({ "v": "meta.k8s.io/v1", "rv": "5", "start": "a" })),
            made_up(json!({ "v": "meta.k8s.io/v3", "rv": 5, "start": "a" })),
            made_up(json!({ "v": "meta.k8s.io/v1", "rv": 5, "start": "../kube-system/a" })),
            made_up(json!({ "v": "meta.k8s.io/v1", "rv": 5, "start": "" })),
        ] {
            stage.get_refused(&path, &[("limit", "1"), ("continue", &bad)]).await;
        }
        stage.note("a good one beside a version");
        stage.get(&path, &[("continue", &token(&first)), ("resourceVersion", &version)]).await;
        stage.get(&path, &[("continue", &token(&first)), ("resourceVersion", "0")]).await;
        stage.note("a good one at another place");
        stage.get(&stage.core("secrets"), &[("continue", &token(&first))]).await;
    });
}

#[test]
fn what_was_compacted_is_410_and_says_how_to_go_on() {
    play_alone("compacted", async |stage| {
        let version = with_maps(stage, &["a", "b", "c", "d"]).await;
        let path = stage.maps();
        let first = stage.get(&path, &[("limit", "1")]).await;
        stage.make(&path, mk_map("bb")).await;
        stage.cluster.compact();
        stage.cluster.restart();
        stage.make(&path, mk_map("e")).await;
        stage.note("the past is forgotten, also by the server's cache");
        let expired = stage.get_refused(&path, &[("limit", "1"), ("continue", &token(&first))]).await;
        stage.note("the new token goes on at the newest version");
        let second = stage.get(&path, &[("limit", "2"), ("continue", &token(&expired))]).await;
        stage.get(&path, &[("continue", &token(&second))]).await;
        stage.note("an exact version");
        for more in [("resourceVersionMatch", "Exact"), ("limit", "1")] {
            stage.get(&path, &[("resourceVersion", &version), more]).await;
        }
        stage.get(&path, &[("resourceVersion", &version)]).await;
        stage.get(&path, &[]).await;
    });
}
