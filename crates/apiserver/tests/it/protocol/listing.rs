//! GET and LIST: which version they read, in pages or whole.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    client::{Answer, Api, names, query, version},
    objects::{MAPS, mk_config_map},
};

/// A server with config maps of these names, each one version after the other, and the version after the last.
async fn with_maps(maps: &[&str]) -> (Api, u64) {
    let api = Api::new();
    for name in maps {
        api.post(MAPS, &mk_config_map(name)).await.ok();
    }
    let newest = api.server.version();
    (api, newest)
}

async fn list(api: &Api, parameters: &[(&str, &str)]) -> Answer {
    api.get(&query(MAPS, parameters)).await
}

#[tokio::test]
async fn get_reads_the_newest_any_or_not_older_than_a_version() {
    let (api, newest) = with_maps(&["a"]).await;
    let path = format!("{MAPS}/a");
    for wanted in ["", "0", "1", &newest.to_string()] {
        let object = api.get(&query(&path, &[("resourceVersion", wanted)])).await.ok();
        assert_eq!((version(&object), &object["data"]["a"]), (newest, &"1".into()), "{wanted}");
        assert_eq!((&object["kind"], &object["apiVersion"]), (&"ConfigMap".into(), &"v1".into()));
    }
}

#[tokio::test]
async fn get_of_what_is_not_there_is_404_with_its_name_and_resource() {
    let api = Api::new();
    let status = api.get("/apis/apps/v1/namespaces/default/deployments/none").await.fails(404, "NotFound");
    assert_eq!(status["details"], json!({ "name": "none", "group": "apps", "kind": "deployments" }));
    assert_eq!(status["message"], r#"deployments.apps "none" not found"#);
}

#[tokio::test]
async fn a_list_without_a_version_is_the_newest_and_has_the_version_of_the_whole_store() {
    let (api, newest) = with_maps(&["a", "b"]).await;
    let all = list(&api, &[]).await.ok();
    assert_eq!((&all["kind"], &all["apiVersion"]), (&"ConfigMapList".into(), &"v1".into()));
    assert_eq!((names(&all), version(&all)), (vec!["a".into(), "b".into()], newest));
    let nodes = api.get("/api/v1/nodes").await.ok();
    assert_eq!((nodes["items"].clone(), version(&nodes)), (json!([]), newest), "one counter for all");
}

#[tokio::test]
async fn a_list_of_any_version_ignores_the_limit() {
    let (api, _) = with_maps(&["a", "b", "c"]).await;
    for more in [&[][..], &[("resourceVersionMatch", "NotOlderThan")]] {
        let parameters = [&[("resourceVersion", "0"), ("limit", "1")], more].concat();
        let all = list(&api, &parameters).await.ok();
        assert_eq!(names(&all).len(), 3);
        assert!(all["metadata"].get("continue").is_none());
    }
}

#[tokio::test]
async fn a_list_at_a_version_is_exact_or_not_older_as_the_table_says() {
    let (api, newest) = with_maps(&["a", "b", "c"]).await;
    let older = (newest - 2).to_string();
    let both = ["a", "b", "c"];
    for (more, expected, at) in [
        (&[][..], &both[..], newest),
        (&[("resourceVersionMatch", "NotOlderThan")], &both, newest),
        (&[("resourceVersionMatch", "NotOlderThan"), ("limit", "2")], &both[..2], newest),
        (&[("limit", "5")], &both[..1], newest - 2),
        (&[("resourceVersionMatch", "Exact")], &both[..1], newest - 2),
        (&[("resourceVersionMatch", "Exact"), ("limit", "5")], &both[..1], newest - 2),
    ] {
        let parameters = [&[("resourceVersion", older.as_str())], more].concat();
        let found = list(&api, &parameters).await.ok();
        assert_eq!(
            (names(&found), version(&found)),
            (expected.iter().map(|n| (*n).into()).collect(), at),
            "{more:?}"
        );
    }
}

#[tokio::test]
async fn options_that_exclude_each_other_are_422_with_a_cause() {
    let (api, _) = with_maps(&["a", "b"]).await;
    let first = list(&api, &[("limit", "1")]).await.ok();
    let token = first["metadata"]["continue"].as_str().expect("a token");
    let wanted = "resourceVersionMatch";
    for (parameters, reason, field, message) in [
        (&[(wanted, "Exact")][..], "FieldValueForbidden", wanted, "unless resourceVersion is provided"),
        (
            &[(wanted, "Exact"), ("resourceVersion", "1"), ("continue", token)],
            "FieldValueForbidden",
            wanted,
            "when continue is provided",
        ),
        (
            &[(wanted, "Exact"), ("resourceVersion", "0")],
            "FieldValueForbidden",
            wanted,
            "for resourceVersion \"0\"",
        ),
        (&[(wanted, "Newest"), ("resourceVersion", "1")], "FieldValueNotSupported", wanted, "Newest"),
        (&[("sendInitialEvents", "true")], "FieldValueForbidden", "sendInitialEvents", "forbidden for list"),
    ] {
        let status = list(&api, parameters).await.fails(422, "Invalid");
        let causes = status["details"]["causes"].as_array().expect("causes");
        assert_eq!(causes.len(), 1, "{status}");
        assert_eq!((&causes[0]["reason"], &causes[0]["field"]), (&reason.into(), &field.into()), "{status}");
        assert!(causes[0]["message"].as_str().expect("text").contains(message), "{status}");
        assert_eq!(
            (&status["details"]["kind"], &status["details"]["group"]),
            (&"ListOptions".into(), &"meta.k8s.io".into())
        );
    }
}

#[tokio::test]
async fn a_malformed_version_is_400() {
    let (api, _) = with_maps(&["a"]).await;
    for bad in ["x", "-1", "1.5", "0x10", " 1", "1 ", "+1", "١"] {
        list(&api, &[("resourceVersion", bad)]).await.fails(400, "BadRequest");
        api.get(&query(&format!("{MAPS}/a"), &[("resourceVersion", bad)])).await.fails(400, "BadRequest");
        api.get(&query(MAPS, &[("watch", "true"), ("resourceVersion", bad)])).await.fails(400, "BadRequest");
    }
}

#[tokio::test]
async fn items_come_in_the_order_of_namespace_and_name() {
    let api = Api::new();
    for (namespace, name) in
        [("kube-system", "a"), ("default", "b"), ("default", "a.b"), ("default", "a"), ("default", "a-b")]
    {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        api.post(&path, &mk_config_map(name)).await.ok();
    }
    assert_eq!(api.names("/api/v1/configmaps").await, ["a", "a-b", "a.b", "b", "a"]);
    assert_eq!(api.names(MAPS).await, ["a", "a-b", "a.b", "b"], "a namespace has its own objects only");
}

#[tokio::test]
async fn items_of_a_list_do_not_repeat_the_kind_of_a_built_in_resource() {
    let (api, _) = with_maps(&["a"]).await;
    let all = list(&api, &[]).await.ok();
    assert!(all["items"][0].get("kind").is_none() && all["items"][0].get("apiVersion").is_none());
}

/// Reads a list page by page and returns all pages.
async fn pages(api: &Api, parameters: &[(&str, &str)], mut between: impl AsyncFnMut()) -> Vec<Value> {
    let mut pages = vec![list(api, parameters).await.ok()];
    while let Some(token) = pages.last().expect("a page")["metadata"]["continue"].as_str().map(str::to_owned)
    {
        between().await;
        let limit = parameters.iter().copied().filter(|(name, _)| *name != "resourceVersion");
        let parameters: Vec<_> = limit.chain([("continue", token.as_str())]).collect();
        pages.push(list(api, &parameters).await.ok());
    }
    pages
}

#[tokio::test]
async fn all_pages_of_a_list_have_one_version_whatever_is_written_meanwhile() {
    let (api, newest) = with_maps(&["a", "b", "c", "d", "e"]).await;
    let mut written = 0;
    let pages = pages(&api, &[("limit", "2")], async || {
        written += 1;
        api.post(MAPS, &mk_config_map(&format!("bb{written}"))).await.ok();
        api.delete(&format!("{MAPS}/{}", if written == 1 { "e" } else { "d" })).await.ok();
    })
    .await;
    let read: Vec<Vec<String>> = pages.iter().map(names).collect();
    assert_eq!(read, [vec!["a", "b"], vec!["c", "d"], vec!["e"]]);
    assert!(pages.iter().all(|page| version(page) == newest));
}

#[tokio::test]
async fn a_legacy_list_at_a_version_goes_on_at_that_version() {
    let (api, newest) = with_maps(&["a", "b", "c"]).await;
    let older = (newest - 1).to_string();
    let pages = pages(&api, &[("limit", "1"), ("resourceVersion", &older)], async || {}).await;
    assert_eq!(pages.iter().flat_map(names).collect::<Vec<_>>(), ["a", "b"]);
    assert!(pages.iter().all(|page| version(page) == newest - 1));
}

#[tokio::test]
async fn remaining_items_are_counted_unless_there_is_a_selector() {
    let (api, _) = with_maps(&["a", "b", "c", "d"]).await;
    let first = list(&api, &[("limit", "1")]).await.ok();
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    let token = first["metadata"]["continue"].as_str().expect("a token");
    let second = list(&api, &[("limit", "1"), ("continue", token)]).await.ok();
    assert_eq!(second["metadata"]["remainingItemCount"], 2);
    let last = list(&api, &[("continue", token)]).await.ok();
    assert!(
        last["metadata"].get("remainingItemCount").is_none() && last["metadata"].get("continue").is_none()
    );
    for selector in [("labelSelector", "!x"), ("fieldSelector", "metadata.name!=z")] {
        let page = list(&api, &[("limit", "1"), selector]).await.ok();
        assert!(page["metadata"]["continue"].is_string(), "{selector:?}");
        assert!(page["metadata"].get("remainingItemCount").is_none(), "{selector:?}");
    }
}

#[tokio::test]
async fn a_page_that_ends_the_list_has_no_token() {
    let (api, _) = with_maps(&["a", "b"]).await;
    for limit in ["2", "3", "0", "-1"] {
        let all = list(&api, &[("limit", limit)]).await.ok();
        assert_eq!((names(&all).len(), all["metadata"].get("continue")), (2, None), "{limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_future_version_blocks_for_three_seconds_and_then_is_504() {
    let (api, newest) = with_maps(&["a"]).await;
    let future = (newest + 1).to_string();
    let streaming = [
        ("watch", "true"),
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
        ("resourceVersion", &future),
    ];
    for path in [
        query(&format!("{MAPS}/a"), &[("resourceVersion", &future)]),
        query(MAPS, &[("resourceVersion", &future)]),
        query(MAPS, &[("resourceVersion", &future), ("limit", "1")]),
        query(MAPS, &[("resourceVersion", &future), ("resourceVersionMatch", "Exact")]),
    ] {
        let start = Instant::now();
        let answer = api.get(&path).await;
        assert_eq!(start.elapsed().as_secs(), 3, "{path}");
        assert_eq!(answer.headers["retry-after"], "1", "{path}");
        let status = answer.fails(504, "Timeout");
        assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge", "{path}");
        assert_eq!(status["details"]["retryAfterSeconds"], 1, "{path}");
        assert!(status["message"].as_str().expect("text").contains("Too large resource version"), "{path}");
    }
    // A stream has begun by then: there it is an event.
    let start = Instant::now();
    let (r#type, status) = api.watch(&query(MAPS, &streaming)).await.event().await;
    assert_eq!((r#type.as_str(), start.elapsed().as_secs()), ("ERROR", 3));
    assert_eq!((&status["code"], &status["reason"]), (&504.into(), &"Timeout".into()));
    let beyond = query(MAPS, &[("resourceVersion", "99999999999999999999999999")]);
    api.get(&beyond).await.fails(400, "BadRequest");
}

#[tokio::test(start_paused = true)]
async fn a_future_version_that_is_reached_meanwhile_is_answered_at_once() {
    let (api, newest) = with_maps(&["a"]).await;
    let path = query(MAPS, &[("resourceVersion", &(newest + 1).to_string())]);
    let start = Instant::now();
    let (listed, _) = tokio::join!(api.get(&path), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        api.post(MAPS, &mk_config_map("b")).await.ok()
    });
    assert_eq!(start.elapsed().as_secs(), 1);
    assert_eq!(listed.names(), ["a", "b"]);
}
