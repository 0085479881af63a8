//! History that is forgotten, and a store that goes back to an older backup.

use futures_util::FutureExt;
use informer_apiserver::{ApiServer, Fault, Rule, TooOld, Verb};
use informer_testing::custom_resource;
use serde_json::{Value, json};

use crate::{
    client::{Watch, code, get, get_json, names, version},
    objects::{MAPS, discard_map, mk_config_map, mk_server, put_maps},
};

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

async fn delete(server: &ApiServer, path: &str) {
    use http_body_util::Full;
    use tower_service::Service;
    let request = http::Request::delete(path).body(Full::<bytes::Bytes>::default()).expect("a request");
    assert_eq!(server.service().call(request).await.expect("an answer").status(), 200, "{path}");
}

#[tokio::test]
async fn after_a_compaction_older_versions_are_expired() {
    let server = mk_server();
    put_maps(&server, &["a", "b"]);
    let old = server.version() - 1;
    let exact = format!("{MAPS}?resourceVersion={old}&resourceVersionMatch=Exact");
    assert_eq!(names(&get_json(&server, &exact).await), ["a"]);
    server.compact();
    let (parts, status) = get(&server, &exact).await;
    assert_eq!(parts.status, 410);
    assert_eq!(serde_json::from_slice::<Value>(&status).expect("JSON")["reason"], "Expired");
    let mut late = Watch::of(&server, &format!("resourceVersion={old}")).await;
    let event = late.next().await.expect("an event");
    assert_eq!((&event["type"], &event["object"]["code"]), (&"ERROR".into(), &410.into()));
    assert_eq!(late.now(), ["end"]);

    let mut watch = Watch::of(&server, &format!("resourceVersion={}", server.version())).await;
    put_maps(&server, &["c"]);
    assert_eq!(watch.now(), ["ADDED c"], "the newest version is still good");
    assert_eq!(names(&get_json(&server, MAPS).await), ["a", "b", "c"]);
}

#[tokio::test]
async fn history_can_be_forgotten_just_before_a_request_is_answered() {
    let server = mk_server();
    put_maps(&server, &["a", "b", "c"]);
    let page = get_json(&server, &format!("{MAPS}?limit=1")).await;
    let token = page["metadata"]["continue"].as_str().expect("a token");
    put_maps(&server, &["d"]);
    server.faults().add(Rule::new(Fault::Compact).verb(Verb::List).nth([2]));
    let second = get_json(&server, &format!("{MAPS}?limit=1&continue={token}")).await;
    assert_eq!(names(&second), ["b"]);
    let token = second["metadata"]["continue"].as_str().expect("a token");
    let third = get_json(&server, &format!("{MAPS}?limit=1&continue={token}")).await;
    assert_eq!((&third["code"], &third["reason"]), (&410.into(), &"Expired".into()));
    let token = third["metadata"]["continue"].as_str().expect("a fresh token");
    let rest = get_json(&server, &format!("{MAPS}?continue={token}")).await;
    assert_eq!(names(&rest), ["c", "d"]);
}

#[tokio::test]
async fn a_watch_that_is_up_to_date_survives_a_compaction() {
    let server = mk_server();
    let mut watch = Watch::of(&server, "resourceVersion=0").await;
    put_maps(&server, &["a"]);
    assert_eq!(watch.now(), ["ADDED a"]);
    server.compact();
    put_maps(&server, &["b"]);
    assert_eq!(watch.now(), ["ADDED b"]);
}

#[tokio::test]
async fn a_rewind_takes_objects_and_versions_back() {
    let server = mk_server();
    put_maps(&server, &["a", "b"]);
    discard_map(&server, "b");
    let point = server.version();
    put_maps(&server, &["b", "c"]);
    discard_map(&server, "a");
    assert_eq!(names(&get_json(&server, MAPS).await), ["b", "c"]);
    assert_eq!(server.rewind(point), Ok(()));
    let list = get_json(&server, MAPS).await;
    assert_eq!((names(&list), version(&list), server.version()), (vec!["a".to_owned()], point, point));
    put_maps(&server, &["d"]);
    let next = get_json(&server, &format!("{MAPS}/d")).await;
    assert_eq!(version(&next), point + 1, "versions are given a second time");
}

#[tokio::test]
async fn a_rewind_ends_open_watches_of_every_resource() {
    let server = mk_server();
    let mut watch = Watch::of(&server, "resourceVersion=0").await;
    let mut unread = Watch::of(&server, "resourceVersion=0").await;
    put_maps(&server, &["a"]);
    assert_eq!(watch.now(), ["ADDED a"]);
    let point = server.version();
    server.put(mk_config_map("b")).expect("written");
    assert_eq!(watch.now(), ["ADDED b"]);
    server.rewind(point).expect("in the history");
    assert_eq!(watch.now(), ["end"]);
    assert_eq!(unread.now(), ["end"], "what it did not read in time is gone");
}

#[tokio::test]
async fn a_watch_resumed_at_a_version_of_the_future_is_silent_until_it_is_reached() {
    let server = mk_server();
    put_maps(&server, &["a"]);
    let point = server.version();
    put_maps(&server, &["b", "c"]);
    let seen = server.version();
    server.rewind(point).expect("in the history");
    let mut watch = Watch::of(&server, &format!("resourceVersion={seen}")).await;
    put_maps(&server, &["x", "y"]);
    assert_eq!((server.version(), watch.now()), (seen, vec![]), "these have versions that the client knows");
    put_maps(&server, &["z"]);
    assert_eq!(watch.now(), ["ADDED z"]);
}

#[tokio::test(start_paused = true)]
async fn a_read_at_a_version_that_was_taken_back_waits_and_fails() {
    let server = mk_server();
    let point = server.version();
    put_maps(&server, &["a", "b"]);
    let seen = server.version();
    server.rewind(point).expect("in the history");
    let status = get_json(&server, &format!("{MAPS}?resourceVersion={seen}")).await;
    assert_eq!(
        (&status["code"], &status["details"]["causes"][0]["reason"]),
        (&504.into(), &"ResourceVersionTooLarge".into())
    );
    put_maps(&server, &["x", "y"]);
    let list =
        get_json(&server, &format!("{MAPS}?resourceVersion={seen}")).now_or_never().expect("no waiting");
    assert_eq!(names(&list), ["x", "y"]);
}

#[tokio::test]
async fn a_rewind_serves_the_custom_resources_of_then() {
    let server = mk_server();
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.put(custom_resource("Widget", &[])).expect("written");
    let point = server.version();
    server.put(custom_resource("Gadget", &[])).expect("written");
    delete(&server, &format!("{crd}/widgets.example.com")).await;
    let gadgets = WIDGETS.replace("widgets", "gadgets");
    assert_eq!((code(&server, WIDGETS).await, code(&server, &gadgets).await), (404, 200));
    server.rewind(point).expect("in the history");
    assert_eq!((code(&server, WIDGETS).await, code(&server, &gadgets).await), (200, 404));
    assert_eq!(names(&get_json(&server, crd).await), ["widgets.example.com"]);
    let resources = get_json(&server, "/apis/example.com/v1").await;
    assert_eq!(
        (resources["resources"].as_array().map(Vec::len), &resources["resources"][0]["name"]),
        (Some(1), &"widgets".into())
    );
    let widget = json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "w" } });
    server.put(widget).expect("served again");
    assert_eq!(names(&get_json(&server, WIDGETS).await), ["w"]);
}

#[tokio::test]
async fn a_rewind_to_what_is_forgotten_fails_and_changes_nothing() {
    let server = ApiServer::builder().seed(1).history(2).build();
    put_maps(&server, &["a", "b", "c", "d"]);
    let newest = server.version();
    let mut watch = Watch::of(&server, &format!("resourceVersion={newest}")).await;
    assert_eq!(server.rewind(newest - 3), Err(TooOld(newest - 3)));
    assert_eq!((server.version(), watch.now()), (newest, vec![]));
    assert_eq!(server.rewind(newest - 1), Ok(()));
    server.compact();
    assert_eq!(server.rewind(newest - 2), Err(TooOld(newest - 2)));
    assert_eq!(names(&get_json(&server, MAPS).await), ["a", "b", "c"]);
}
