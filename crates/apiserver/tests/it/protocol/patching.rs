//! PATCH: JSON patch, merge patch and strategic merge patch, and the types that are not served.

use serde_json::{Value, json};

use crate::{
    client::{Api, JSON, JSON_PATCH, query, version},
    objects::{DEPLOYMENTS, MAPS, PODS, mk_config_map, mk_deployment, mk_pod},
};

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const A: &str = "/api/v1/namespaces/default/configmaps/a";

async fn with_map() -> (Api, Value) {
    let api = Api::new();
    let created = api.post(MAPS, &mk_config_map("a")).await.ok();
    (api, created)
}

#[tokio::test]
async fn a_json_patch_is_applied_in_order() {
    let (api, _) = with_map().await;
    let patch = json!([
        { "op": "test", "path": "/data/a", "value": "1" },
        { "op": "add", "path": "/data/b", "value": "2" },
        { "op": "copy", "from": "/data/b", "path": "/data/c" },
        { "op": "move", "from": "/data/a", "path": "/data/d" },
        { "op": "replace", "path": "/data/b", "value": "3" },
        { "op": "add", "path": "/metadata/annotations", "value": { "example.com/x": "y" } },
        { "op": "replace", "path": "/metadata/annotations/example.com~1x", "value": "z" },
    ]);
    let patched = api.patch(A, JSON_PATCH, &patch).await.ok();
    assert_eq!(patched["data"], json!({ "b": "3", "c": "2", "d": "1" }));
    assert_eq!(patched["metadata"]["annotations"], json!({ "example.com/x": "z" }));
}

#[tokio::test]
async fn a_test_for_null_passes_where_nothing_is() {
    let (api, _) = with_map().await;
    let first = |path: &str| {
        json!([
            { "op": "test", "path": path, "value": null },
            { "op": "add", "path": path, "value": ["example.com/mine"] },
        ])
    };
    let patched = api.patch(A, JSON_PATCH, &first("/metadata/finalizers")).await.ok();
    assert_eq!(patched["metadata"]["finalizers"], json!(["example.com/mine"]));
    api.patch(A, JSON_PATCH, &first("/metadata/finalizers")).await.fails(422, "Invalid");
    api.patch(A, JSON_PATCH, &first("/none/finalizers")).await.fails(422, "Invalid");
}

#[tokio::test]
async fn a_json_patch_that_does_not_fit_is_422_and_changes_nothing() {
    let (api, created) = with_map().await;
    for operation in [
        json!({ "op": "test", "path": "/data/a", "value": "2" }),
        json!({ "op": "remove", "path": "/data/none" }),
        json!({ "op": "replace", "path": "/none/a", "value": 1 }),
        json!({ "op": "move", "from": "/none", "path": "/data/b" }),
    ] {
        let patch = json!([{ "op": "add", "path": "/data/x", "value": "1" }, operation]);
        api.patch(A, JSON_PATCH, &patch).await.fails(422, "Invalid");
    }
    assert_eq!(api.get(A).await.ok(), created);
}

#[tokio::test]
async fn a_json_patch_that_is_no_list_is_400_and_one_of_other_things_than_operations_422() {
    let (api, _) = with_map().await;
    for patch in [json!({}), json!("x")] {
        api.patch(A, JSON_PATCH, &patch).await.fails(400, "BadRequest");
    }
    for patch in [json!([5]), json!([{ "op": "fly", "path": "/a" }]), json!([{ "op": "add" }])] {
        api.patch(A, JSON_PATCH, &patch).await.fails(422, "Invalid");
    }
}

#[tokio::test]
async fn a_json_patch_of_more_than_ten_thousand_operations_is_413() {
    let (api, _) = with_map().await;
    let operations = vec![json!({ "op": "test", "path": "/data/a", "value": "1" }); 10_001];
    api.patch(A, JSON_PATCH, &Value::Array(operations)).await.fails(413, "RequestEntityTooLarge");
}

#[tokio::test]
async fn a_merge_patch_sets_replaces_and_removes() {
    let (api, _) = with_map().await;
    let patch = json!({ "data": { "a": null, "b": "2" }, "metadata": { "labels": { "x": "y" } } });
    let patched = api.merge(A, &patch).await.ok();
    assert_eq!(
        (&patched["data"], &patched["metadata"]["labels"]),
        (&json!({ "b": "2" }), &json!({ "x": "y" }))
    );
    let patched = api.merge(A, &json!({ "data": null })).await.ok();
    assert!(patched.get("data").is_none());
}

#[tokio::test]
async fn a_merge_patch_replaces_lists_whole() {
    let api = Api::new();
    api.post(DEPLOYMENTS, &mk_deployment("web", 1)).await.ok();
    let containers = json!([{ "name": "other", "image": "other:1" }]);
    let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    let patched = api.merge(&format!("{DEPLOYMENTS}/web"), &patch).await.ok();
    assert_eq!(patched["spec"]["template"]["spec"]["containers"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_merge_patch_that_is_no_object_is_400() {
    let (api, _) = with_map().await;
    for patch in [json!([]), json!("x"), json!(5), json!(null)] {
        api.merge(A, &patch).await.fails(400, "BadRequest");
    }
}

#[tokio::test]
async fn a_patch_may_ask_for_a_version_and_must_not_change_the_uid() {
    let (api, created) = with_map().await;
    let stale = json!({ "metadata": { "resourceVersion": "1" }, "data": { "a": "2" } });
    api.merge(A, &stale).await.fails(409, "Conflict");
    let other =
        json!({ "metadata": { "uid": "11111111-1111-1111-1111-111111111111" }, "data": { "a": "2" } });
    let status = api.merge(A, &other).await.fails(422, "Invalid");
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.uid");
    let current =
        json!({ "metadata": { "resourceVersion": version(&created).to_string() }, "data": { "a": "2" } });
    api.merge(A, &current).await.ok();
}

#[tokio::test]
async fn a_patch_cannot_rename_move_or_retype_an_object() {
    let (api, created) = with_map().await;
    for patch in [
        json!({ "metadata": { "name": "b" } }),
        json!({ "metadata": { "namespace": "kube-system" } }),
        json!({ "kind": "Secret" }),
        json!({ "apiVersion": "v2" }),
    ] {
        let answer = api.merge(A, &patch).await;
        assert!([400, 422].contains(&answer.code), "{patch}: {} {}", answer.code, answer.body);
    }
    assert_eq!(api.get(A).await.ok(), created);
}

#[tokio::test]
async fn what_a_patch_makes_must_be_valid() {
    let (api, created) = with_map().await;
    api.merge(A, &json!({ "metadata": { "labels": { "a": "not valid!" } } })).await.fails(422, "Invalid");
    for patch in [json!({ "data": [] }), json!({ "data": { "a": 5 } }), json!({ "metadata": [] })] {
        let answer = api.merge(A, &patch).await;
        assert!([400, 422].contains(&answer.code), "{patch}: {} {}", answer.code, answer.body);
    }
    assert_eq!(api.get(A).await.ok(), created);
}

#[tokio::test]
async fn patching_what_is_not_there_is_404() {
    let api = Api::new();
    api.merge(A, &json!({})).await.fails(404, "NotFound");
}

#[tokio::test]
async fn patch_types_that_are_not_served_are_415_and_name_those_that_are() {
    let (api, _) = with_map().await;
    for r#type in ["application/apply-patch+cbor", JSON, "text/plain"] {
        let path = query(A, &[("fieldManager", "test")]);
        let status = api.patch(&path, r#type, &json!({})).await.fails(415, "UnsupportedMediaType");
        let message = status["message"].as_str().expect("text");
        assert!(
            message.contains(JSON_PATCH) && message.contains("application/merge-patch+json"),
            "{message}"
        );
    }
    api.send("PATCH", A, &[], "{}").await.fails(415, "UnsupportedMediaType");
}

#[tokio::test]
async fn a_strategic_merge_patch_merges_lists_that_have_a_key() {
    let api = Api::new();
    api.post(PODS, &mk_pod("a")).await.ok();
    let patch = json!({ "spec": { "containers": [{ "name": "extra", "image": "extra:1" }] } });
    let pod = format!("{PODS}/a");
    let patched = api.patch(&pod, STRATEGIC, &patch).await.ok();
    let before = mk_pod("a")["spec"]["containers"].as_array().map_or(0, Vec::len);
    assert_eq!(patched["spec"]["containers"].as_array().map(Vec::len), Some(before + 1), "{patched}");
    let patch = json!({ "spec": { "containers": [{ "name": "extra", "$patch": "delete" }] } });
    let patched = api.patch(&pod, STRATEGIC, &patch).await.ok();
    assert_eq!(patched["spec"]["containers"].as_array().map(Vec::len), Some(before), "{patched}");
    let nameless = json!({ "spec": { "containers": [{ "image": "x" }] } });
    api.patch(&pod, STRATEGIC, &nameless).await.fails(400, "BadRequest");
    api.patch(&pod, STRATEGIC, &json!([])).await.fails(400, "BadRequest");
}
