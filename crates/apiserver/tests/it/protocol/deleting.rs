//! DELETE of one object and of a collection, preconditions and finalizers.

use serde_json::{Value, json};

use crate::{
    client::{Api, query, version},
    objects::{DEPLOYMENTS, MAPS, mk_config_map, mk_deployment, mk_held, mk_labelled},
};

const A: &str = "/api/v1/namespaces/default/configmaps/a";

async fn with_map() -> (Api, Value) {
    let api = Api::new();
    let created = api.post(MAPS, &mk_config_map("a")).await.ok();
    (api, created)
}

#[tokio::test]
async fn delete_answers_success_with_the_details_of_what_is_gone() {
    let (api, created) = with_map().await;
    let answer = api.delete(A).await;
    assert_eq!(answer.code, 200);
    let status = answer.ok();
    assert_eq!((&status["kind"], &status["status"]), (&"Status".into(), &"Success".into()));
    let expected = json!({ "name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"] });
    assert_eq!(status["details"], expected);
    api.get(A).await.fails(404, "NotFound");
    api.delete(A).await.fails(404, "NotFound");
}

#[tokio::test]
async fn a_precondition_that_does_not_hold_is_409() {
    let (api, created) = with_map().await;
    for preconditions in [
        json!({ "uid": "11111111-1111-1111-1111-111111111111" }),
        json!({ "resourceVersion": "1" }),
        json!({ "uid": created["metadata"]["uid"], "resourceVersion": "1" }),
    ] {
        let status =
            api.delete_with(A, &json!({ "preconditions": preconditions })).await.fails(409, "Conflict");
        assert!(status["message"].as_str().expect("text").contains("Precondition failed"), "{status}");
    }
    let preconditions = json!({ "uid": created["metadata"]["uid"], "resourceVersion": created["metadata"]["resourceVersion"] });
    let options = json!({ "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions });
    assert_eq!(api.delete_with(A, &options).await.ok()["status"], "Success");
}

#[tokio::test]
async fn options_of_the_wrong_type_are_400_and_delete_nothing() {
    let (api, created) = with_map().await;
    for options in [
        json!({ "preconditions": 5 }),
        json!({ "preconditions": { "uid": 5 } }),
        json!({ "preconditions": { "resourceVersion": 5 } }),
        json!({ "gracePeriodSeconds": "soon" }),
        json!({ "propagationPolicy": 5 }),
    ] {
        let answer = api.delete_with(A, &options).await;
        assert_eq!(answer.code, 400, "{options}: {}", answer.body);
    }
    assert_eq!(api.get(A).await.ok(), created);
}

#[tokio::test]
async fn an_unknown_propagation_policy_is_422() {
    let (api, _) = with_map().await;
    api.delete(&query(A, &[("propagationPolicy", "Sideways")])).await.fails(422, "Invalid");
    api.delete_with(A, &json!({ "propagationPolicy": "Sideways" })).await.fails(422, "Invalid");
    assert_eq!(api.delete(&query(A, &[("propagationPolicy", "Background")])).await.code, 200);
}

#[tokio::test]
async fn a_finalizer_holds_an_object_until_it_is_removed() {
    let api = Api::new();
    let created = api.post(MAPS, &mk_held("a")).await.ok();
    let mut watch = api
        .watch(&query(MAPS, &[("watch", "true"), ("resourceVersion", &version(&created).to_string())]))
        .await;
    let answer = api.delete(A).await;
    assert!([200, 202].contains(&answer.code));
    let held = answer.ok();
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(watch.event().await, ("MODIFIED".into(), held.clone()));

    api.delete(A).await.ok();
    assert_eq!(api.get(A).await.ok(), held, "deleting it again changes nothing");
    assert!(watch.is_silent());

    let released = api.merge(A, &json!({ "metadata": { "finalizers": null } })).await.ok();
    assert!(released["metadata"].get("finalizers").is_none());
    let (r#type, object) = watch.event().await;
    assert_eq!((r#type.as_str(), version(&object)), ("DELETED", api.server.version()));
    assert!(object["metadata"]["deletionTimestamp"].is_string());
    api.get(A).await.fails(404, "NotFound");
}

#[tokio::test]
async fn one_finalizer_of_two_still_holds() {
    let api = Api::new();
    let mut sent = mk_held("a");
    sent["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    api.post(MAPS, &sent).await.ok();
    api.delete(A).await.ok();
    api.merge(A, &json!({ "metadata": { "finalizers": ["example.com/two"] } })).await.ok();
    assert_eq!(api.get(A).await.ok()["metadata"]["finalizers"], json!(["example.com/two"]));
    api.merge(A, &json!({ "metadata": { "finalizers": [] } })).await.ok();
    api.get(A).await.fails(404, "NotFound");
}

#[tokio::test]
async fn while_an_object_is_deleted_no_finalizer_can_be_added_and_the_deletion_not_undone() {
    let api = Api::new();
    api.post(MAPS, &mk_held("a")).await.ok();
    let held = api.delete(A).await.ok();
    let more = json!({ "metadata": { "finalizers": ["example.com/hold", "example.com/more"] } });
    let status = api.merge(A, &more).await.fails(422, "Invalid");
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.finalizers");
    let undone =
        api.merge(A, &json!({ "metadata": { "deletionTimestamp": null }, "data": { "a": "2" } })).await.ok();
    assert_eq!(undone["metadata"]["deletionTimestamp"], held["metadata"]["deletionTimestamp"]);
}

#[tokio::test]
async fn the_mark_of_deletion_counts_in_the_generation() {
    let api = Api::new();
    let mut sent = mk_deployment("web", 1);
    sent["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(DEPLOYMENTS, &sent).await.ok();
    assert_eq!(api.delete(&format!("{DEPLOYMENTS}/web")).await.ok()["metadata"]["generation"], 2);
}

#[tokio::test]
async fn removing_a_finalizer_of_an_object_that_is_not_deleted_keeps_it() {
    let api = Api::new();
    api.post(MAPS, &mk_held("a")).await.ok();
    api.merge(A, &json!({ "metadata": { "finalizers": null } })).await.ok();
    assert!(api.get(A).await.ok()["metadata"].get("deletionTimestamp").is_none());
}

#[tokio::test]
async fn dry_run_deletes_nothing() {
    let (api, created) = with_map().await;
    let held = api.post(MAPS, &mk_held("b")).await.ok();
    let before = api.server.version();
    api.delete(&query(A, &[("dryRun", "All")])).await.ok();
    api.delete_with(A, &json!({ "dryRun": ["All"] })).await.ok();
    let shown = api.delete(&query(&format!("{MAPS}/b"), &[("dryRun", "All")])).await.ok();
    assert!(shown["metadata"]["deletionTimestamp"].is_string(), "{shown}");
    assert_eq!(api.delete(&query(MAPS, &[("dryRun", "All")])).await.names(), ["a", "b"]);
    assert_eq!(api.server.version(), before);
    assert_eq!(api.get(A).await.ok(), created);
    assert_eq!(api.get(&format!("{MAPS}/b")).await.ok(), held);
    api.delete(&query(A, &[("dryRun", "Some")])).await.fails(422, "Invalid");
}

#[tokio::test]
async fn a_collection_is_deleted_by_its_selectors() {
    let api = Api::new();
    for (name, app) in [("a", "web"), ("b", "db"), ("c", "web")] {
        api.post(MAPS, &mk_labelled(name, json!({ "app": app }))).await.ok();
    }
    let elsewhere = "/api/v1/namespaces/kube-system/configmaps";
    api.post(elsewhere, &mk_labelled("a", json!({ "app": "web" }))).await.ok();
    let mut watch = api
        .watch(&query(MAPS, &[("watch", "true"), ("resourceVersion", &api.server.version().to_string())]))
        .await;
    let deleted = api
        .delete(&query(MAPS, &[("labelSelector", "app=web"), ("fieldSelector", "metadata.name!=c")]))
        .await;
    assert_eq!(deleted.names(), ["a"]);
    let deleted = api.delete(&query(MAPS, &[("labelSelector", "app=web")])).await.ok();
    assert_eq!(deleted["kind"], "ConfigMapList");
    assert_eq!(watch.lines(2).await, ["DELETED a", "DELETED c"]);
    assert_eq!(api.names(MAPS).await, ["b"]);
    api.delete(MAPS).await.ok();
    assert!(api.names(MAPS).await.is_empty());
    assert_eq!(api.names(elsewhere).await, ["a"], "another namespace is not meant");
}

#[tokio::test]
async fn a_collection_keeps_what_finalizers_hold() {
    let api = Api::new();
    api.post(MAPS, &mk_held("a")).await.ok();
    api.post(MAPS, &mk_config_map("b")).await.ok();
    api.delete(MAPS).await.ok();
    let left = api.get(MAPS).await.ok();
    assert_eq!(left["items"].as_array().map(Vec::len), Some(1));
    assert!(left["items"][0]["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test]
async fn a_bad_selector_deletes_nothing() {
    let (api, _) = with_map().await;
    api.delete(&query(MAPS, &[("labelSelector", "a in")])).await.fails(400, "BadRequest");
    api.delete(&query(MAPS, &[("fieldSelector", "data.a=1")])).await.fails(400, "BadRequest");
    api.delete("/api/v1/configmaps").await.fails(405, "MethodNotAllowed");
    assert_eq!(api.names(MAPS).await, ["a"]);
}

#[tokio::test]
async fn a_namespace_that_is_not_empty_is_kept_and_says_why() {
    let api = Api::new();
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
    api.post("/api/v1/namespaces", &namespace).await.ok();
    let maps = "/api/v1/namespaces/shop/configmaps";
    api.post(maps, &mk_config_map("a")).await.ok();
    let status = api.delete("/api/v1/namespaces/shop").await.fails(409, "Conflict");
    assert!(status["message"].as_str().expect("text").contains("configmaps"), "{status}");
    api.delete(maps).await.ok();
    api.delete("/api/v1/namespaces/shop").await.ok();
    api.post(maps, &mk_config_map("a")).await.fails(404, "NotFound");
}
