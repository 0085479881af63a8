//! What must hold whatever goes wrong: no event is missed, no read waits in vain, no input makes the server
//! panic.

use std::time::Duration;

use futures_util::FutureExt;
use http_body_util::Empty;
use informer_apiserver::ApiServer;
use informer_model::ObjectKey;
use informer_testing::custom_resource;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};

use crate::{
    client::{Watch, code, get_json, names, version},
    objects::{MAPS, discard_map, mk_config_map, mk_server, put_maps},
};

/// Compaction forgets the past. A watch that has seen all of it misses nothing, even if it did not notice that
/// other resources have changed.
#[tokio::test]
async fn a_watch_that_missed_nothing_survives_a_compaction() {
    let server = mk_server();
    let mut watch = Watch::of(&server, "resourceVersion=0").await;
    assert_eq!(watch.now(), [""; 0]);
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } });
    server.put(secret).expect("written");
    server.compact();
    put_maps(&server, &["a"]);
    assert_eq!(watch.now(), ["ADDED a"]);
}

/// Who reads at the newest version never waits, however many write at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_was_written_is_reached() {
    let server = mk_server();
    for round in 0..2_000 {
        std::thread::scope(|scope| {
            for writer in ["a", "b"] {
                let server = &server;
                scope.spawn(move || server.put(mk_config_map(writer)).expect("written"));
            }
        });
        // What tokio lets a task do before it has to wait is not what is tested here.
        tokio::task::yield_now().await;
        let path = format!("{MAPS}?resourceVersion={}", server.version());
        let list = get_json(&server, &path).now_or_never();
        assert!(list.is_some(), "round {round}: a read at the newest version waits for it");
    }
}

/// Several writers and one who watches from the beginning: every version comes once and in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_sees_every_change_of_many_writers_in_order() {
    const WRITERS: usize = 4;
    const EACH: usize = 500;
    let server = mk_server();
    let before = server.version();
    let mut watch = Watch::of(&server, &format!("resourceVersion={before}")).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let server = server.clone();
            tokio::task::spawn_blocking(move || {
                for i in 0..EACH {
                    server.put(mk_config_map(&format!("map-{writer}-{}", i % 7))).expect("written");
                }
            })
        })
        .collect();
    for expected in before + 1..=before + (WRITERS * EACH) as u64 {
        let event = watch.next().await.expect("an event");
        assert_eq!(version(&event["object"]), expected);
    }
    for writer in writers {
        writer.await.expect("written");
    }
    assert_eq!(watch.now(), [""; 0]);
}

/// The second page of a consistent list is consistent, too: it does not come from a cache that lags.
#[tokio::test(start_paused = true)]
async fn a_lagging_replica_gives_all_pages_of_a_consistent_list() {
    let server = mk_server();
    server.hold_replica(Some(server.version()));
    put_maps(&server, &["a", "b"]);
    let maps: Api<ConfigMap> = Api::default_namespaced(server.replica_client());
    let first = maps.list(&ListParams::default().limit(1)).await.expect("a page");
    let token = first.metadata.continue_.expect("a token");
    let second = maps.list(&ListParams::default().limit(1).continue_token(&token)).await.expect("a page");
    assert_eq!(second.items.len(), 1);
}

/// A replica says nothing of versions that it has not reached.
#[tokio::test(start_paused = true)]
async fn a_lagging_replica_sends_no_bookmark_of_the_future() {
    let server = ApiServer::builder().seed(1).bookmark_interval(Duration::from_secs(10)).build();
    server.hold_replica(Some(server.version()));
    put_maps(&server, &["a"]);
    server.faults().add(informer_apiserver::Rule::new(informer_apiserver::Fault::Stale));
    let at = format!("resourceVersion={}&allowWatchBookmarks=true&timeoutSeconds=60", server.version());
    let mut watch = Watch::of(&server, &at).await;
    assert_eq!(watch.line().await, "end", "the watch is ahead of its replica all the time");
}

#[tokio::test(start_paused = true)]
async fn a_watch_may_ask_for_any_time() {
    let server = mk_server();
    for seconds in [0, 1, 86_400, u64::from(u32::MAX), i64::MAX as u64] {
        let mut watch = Watch::of(&server, &format!("timeoutSeconds={seconds}&allowWatchBookmarks=1")).await;
        put_maps(&server, &["a"]);
        assert!(watch.line().await.ends_with(" a"), "{seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_may_be_as_rare_as_one_likes() {
    let server = ApiServer::builder().bookmark_interval(Duration::MAX).build();
    let mut watch = Watch::of(&server, "allowWatchBookmarks=1&timeoutSeconds=60").await;
    assert_eq!(watch.lines(2).await, ["BOOKMARK", "end"], "only the one before the end");
}

/// Writing an object again is a change of that object, not another object of its name.
#[tokio::test]
async fn an_object_that_is_put_again_keeps_its_uid_and_its_time() {
    let server = mk_server();
    put_maps(&server, &["a"]);
    let before = get_json(&server, &format!("{MAPS}/a")).await;
    put_maps(&server, &["a"]);
    let after = get_json(&server, &format!("{MAPS}/a")).await;
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(before["metadata"]["creationTimestamp"], after["metadata"]["creationTimestamp"]);
    discard_map(&server, "a");
    put_maps(&server, &["a"]);
    let another = get_json(&server, &format!("{MAPS}/a")).await;
    assert_ne!(after["metadata"]["uid"], another["metadata"]["uid"], "this one is another");
}

#[tokio::test]
async fn a_definition_that_is_discarded_is_served_no_longer() {
    let server = mk_server();
    let widgets = "/apis/example.com/v1/widgets";
    server.put(custom_resource("Widget", &[])).expect("written");
    assert_eq!(code(&server, widgets).await, 200);
    let key = ObjectKey::new(None, "widgets.example.com").expect("a key");
    assert!(server.discard("apiextensions.k8s.io", "customresourcedefinitions", &key));
    assert_eq!(code(&server, widgets).await, 404);
}

/// Go reads JSON to a depth of ten thousand; an object may be deeper than the parsers of others take.
#[tokio::test]
async fn a_deep_object_is_shown_whole_and_can_be_deleted() {
    let server = mk_server();
    let mut deep = json!("ground");
    for _ in 0..300 {
        deep = json!({ "d": deep });
    }
    let mut map = mk_config_map("deep");
    map["data"] = deep;
    server.put(map).expect("written");
    let (_, body) = crate::client::get(&server, &format!("{MAPS}/deep")).await;
    assert_eq!(String::from_utf8_lossy(&body).matches("{\"d\":").count(), 300);
    discard_map(&server, "deep");
    assert!(names(&get_json(&server, MAPS).await).is_empty());
}

/// A panic would be answered with 500, and must not come from anything that a client can send.
#[tokio::test]
async fn no_query_makes_the_server_panic() {
    let server = mk_server();
    put_maps(&server, &["a"]);
    let odd = [
        "",
        "0",
        "-1",
        "9223372036854775807",
        "18446744073709551615",
        "99999999999999999999999",
        "NaN",
        "%00",
        "true",
    ];
    let names = [
        "timeoutSeconds",
        "limit",
        "resourceVersion",
        "continue",
        "watch",
        "sendInitialEvents",
        "resourceVersionMatch",
        "allowWatchBookmarks",
        "labelSelector",
        "fieldSelector",
        "includeObject",
        "pretty",
    ];
    for name in names {
        for value in odd {
            for more in ["", "&watch=1"] {
                let path = format!("{MAPS}?{name}={value}{more}");
                let request =
                    http::Request::get(&path).body(Empty::<bytes::Bytes>::new()).expect("a request");
                let answer = tower_service::Service::call(&mut server.service(), request).now_or_never();
                let Some(answer) = answer else { continue };
                assert_ne!(answer.expect("an answer").status(), 500, "{path}");
            }
        }
    }
}

/// Requests for what is not served leave nothing behind.
#[tokio::test]
async fn requests_for_nothing_are_not_kept() {
    let server = mk_server();
    for i in 0..100 {
        assert_eq!(code(&server, &format!("/api/v1/nothing-{i}")).await, 404);
    }
    assert!(server.requests().len() < 10, "{} kinds of requests", server.requests().len());
}

#[tokio::test]
async fn a_merge_patch_of_an_odd_object_is_answered() {
    let server = mk_server();
    let mut map = mk_config_map("odd");
    map["data"] = json!(["a list"]);
    server.put(map).expect("written");
    let request =
        http::Request::patch(format!("{MAPS}/odd")).header("content-type", "application/merge-patch+json");
    let patch = Value::from_iter([("metadata".to_owned(), json!({ "labels": { "a": "b" } }))]).to_string();
    let request = request.body(http_body_util::Full::new(bytes::Bytes::from(patch))).expect("a request");
    let answer = tower_service::Service::call(&mut server.service(), request).await.expect("an answer");
    assert_eq!(answer.status(), 422, "it is not of its kind");
}
