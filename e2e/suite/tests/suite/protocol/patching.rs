//! PATCH in its four formats.

use serde_json::json;

use crate::{
    objects::{mk_deployment, mk_map},
    stage::play,
};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

#[test]
fn a_merge_patch_merges() {
    play("merge_patch", async |stage| {
        let path = stage.maps();
        let a = format!("{path}/a");
        let made = stage.make(&path, mk_map("a")).await;
        stage.patch(&a, &[], MERGE, &json!({ "data": { "b": "2" } })).await;
        stage
            .patch(&a, &[], MERGE, &json!({ "data": { "a": null }, "metadata": { "labels": { "x": "y" } } }))
            .await;
        stage.note("nothing");
        stage.patch(&a, &[], MERGE, &json!({})).await;
        stage.note("a stale version in it");
        let version = made["metadata"]["resourceVersion"].clone();
        stage
            .patch(
                &a,
                &[],
                MERGE,
                &json!({ "metadata": { "resourceVersion": version }, "data": { "c": "3" } }),
            )
            .await;
        stage.note("what is not an object, and what does not become one of its kind");
        for patch in [json!([]), json!(5), json!({ "data": [] }), json!({ "data": { "a": 5 } })] {
            stage.write_refused("PATCH", &a, &[], MERGE, &patch).await;
        }
        stage
            .write_refused(
                "PATCH",
                &a,
                &[],
                MERGE,
                &json!({ "metadata": { "labels": { "a": "not valid!" } } }),
            )
            .await;
        stage.note("what must stay");
        stage.write_refused("PATCH", &a, &[], MERGE, &json!({ "metadata": { "name": "b" } })).await;
        stage.write_refused("PATCH", &a, &[], MERGE, &json!({ "kind": "Secret" })).await;
        let uid = json!({ "metadata": { "uid": "11111111-1111-1111-1111-111111111111" } });
        stage.patch(&a, &[], MERGE, &uid).await;
        stage.note("what is not there");
        stage.patch(&format!("{path}/none"), &[], MERGE, &json!({})).await;
        stage.get(&a, &[]).await;
    });
}

#[test]
fn a_json_patch_does_as_its_operations_say() {
    play("json_patch", async |stage| {
        let path = stage.maps();
        let a = format!("{path}/a");
        stage.make(&path, mk_map("a")).await;
        for patch in [
            json!([{ "op": "add", "path": "/data/b", "value": "2" }]),
            json!([{ "op": "test", "path": "/data/b", "value": "2" }, { "op": "remove", "path": "/data/a" }]),
            json!([{ "op": "copy", "from": "/data/b", "path": "/data/c" }, { "op": "move", "from": "/data/b", "path": "/data/d" }]),
            json!([]),
        ] {
            stage.patch(&a, &[], JSON_PATCH, &patch).await;
        }
        for patch in [
            json!([{ "op": "test", "path": "/data/c", "value": "other" }]),
            json!([{ "op": "remove", "path": "/data/none" }]),
            json!([{ "op": "replace", "path": "/data/none", "value": "1" }]),
            json!([{ "op": "add", "path": "/none/b", "value": "1" }]),
            json!([{ "op": "explode", "path": "/data" }]),
            json!({}),
            json!([{ "op": "replace", "path": "/data", "value": 5 }]),
        ] {
            stage.write_refused("PATCH", &a, &[], JSON_PATCH, &patch).await;
        }
        stage.get(&a, &[]).await;
    });
}

#[test]
fn to_a_json_patch_what_is_not_there_is_null() {
    play("json_patch_null", async |stage| {
        let path = stage.maps();
        let b = format!("{path}/b");
        stage.make(&path, mk_map("b")).await;
        let first = |path: &str| {
            json!([
                { "op": "test", "path": path, "value": null },
                { "op": "add", "path": path, "value": ["example.com/mine"] },
            ])
        };
        stage.patch(&b, &[], JSON_PATCH, &first("/metadata/finalizers")).await;
        for absent in ["/metadata/finalizers", "/none/finalizers"] {
            stage.write_refused("PATCH", &b, &[], JSON_PATCH, &first(absent)).await;
        }
        stage.patch(&b, &[], JSON_PATCH, &json!([{ "op": "remove", "path": "/metadata/finalizers" }])).await;
    });
}

#[test]
fn media_types_of_patches() {
    play("patch_types", async |stage| {
        let path = stage.maps();
        let a = format!("{path}/a");
        stage.make(&path, mk_map("a")).await;
        for r#type in ["application/json", "text/plain", "application/apply-patch+cbor"] {
            stage.write_refused("PATCH", &a, &[], r#type, &json!({})).await;
        }
        stage.note("a strategic merge patch merges lists by their keys");
        let deployments = stage.group("apps/v1", "deployments");
        stage.make(&deployments, mk_deployment("web", 1)).await;
        let patch = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "side", "image": "side:1" }] } } } });
        let web = format!("{deployments}/web");
        let answer = stage.send_typed("PATCH", &web, STRATEGIC, &patch).await;
        let containers = answer.body["spec"]["template"]["spec"]["containers"].as_array();
        let names = containers
            .map(|list| list.iter().map(|container| container["name"].to_string()).collect::<Vec<_>>());
        stage.note(format!("  {} {}", answer.code, names.unwrap_or_default().join(" ")));
    });
}

#[test]
fn apply_has_managers_and_conflicts() {
    play("apply", async |stage| {
        let path = stage.maps();
        let a = format!("{path}/a");
        let map = |value: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a": value } });
        stage.note("it needs a manager, and makes what is not there");
        stage.patch(&a, &[], APPLY, &map("1")).await;
        stage.patch(&a, &[("fieldManager", "one")], APPLY, &map("1")).await;
        stage.note("again, the same");
        stage.patch(&a, &[("fieldManager", "one")], APPLY, &map("1")).await;
        stage.note("another manager, another value");
        stage.patch(&a, &[("fieldManager", "two")], APPLY, &map("2")).await;
        stage.patch(&a, &[("fieldManager", "two"), ("force", "true")], APPLY, &map("2")).await;
        stage.note("a manager that no longer says a field takes it away");
        let without = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
        stage.patch(&a, &[("fieldManager", "two")], APPLY, &without).await;
        stage.note("force is for apply only");
        stage.patch(&a, &[("force", "true")], MERGE, &json!({})).await;
        stage.note("who manages what is written down");
        let answer = stage.send_quietly("GET", &a, serde_json::Value::Null).await;
        let entries = answer.body["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        for entry in entries {
            stage.note(format!("  {} {} {}", entry["manager"], entry["operation"], entry["fieldsV1"]));
        }
    });
}
