//! PUT, the subresources `status` and `scale`, and what counts as a change.

use serde_json::json;

use crate::{
    client::{Api, query, version},
    objects::{DEPLOYMENTS, MAPS, PODS, mk_config_map, mk_deployment, mk_pod},
};

const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const A: &str = "/api/v1/namespaces/default/configmaps/a";

async fn with_map() -> (Api, serde_json::Value) {
    let api = Api::new();
    let created = api.post(MAPS, &mk_config_map("a")).await.ok();
    (api, created)
}

async fn with_deployment() -> Api {
    let api = Api::new();
    api.post(DEPLOYMENTS, &mk_deployment("web", 2)).await.ok();
    api
}

#[tokio::test]
async fn update_replaces_the_object_and_keeps_what_is_the_servers() {
    let (api, created) = with_map().await;
    let mut sent = mk_config_map("a");
    sent["data"] = json!({ "b": "2" });
    sent["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    sent["metadata"]["labels"] = json!({ "x": "y" });
    let answer = api.put(A, &sent).await;
    assert_eq!(answer.code, 200);
    let updated = answer.ok();
    assert_eq!(
        (&updated["data"], &updated["metadata"]["labels"]),
        (&sent["data"], &sent["metadata"]["labels"])
    );
    for field in ["uid", "creationTimestamp"] {
        assert_eq!(updated["metadata"][field], created["metadata"][field], "{field}");
    }
    assert_eq!(version(&updated), version(&created) + 1);
}

#[tokio::test]
async fn a_stale_version_is_409() {
    let (api, created) = with_map().await;
    let mut sent = created.clone();
    sent["data"]["a"] = "2".into();
    let updated = api.put(A, &sent).await.ok();
    let status = api.put(A, &sent).await.fails(409, "Conflict");
    assert_eq!(status["details"], json!({ "name": "a", "kind": "configmaps" }));
    assert!(status["message"].as_str().expect("text").contains("the object has been modified"));
    sent["metadata"]["resourceVersion"] = updated["metadata"]["resourceVersion"].clone();
    sent["data"]["a"] = "3".into();
    api.put(A, &sent).await.ok();
    sent["metadata"]["resourceVersion"] = "99999999".into();
    api.put(A, &sent).await.fails(409, "Conflict");
}

#[tokio::test]
async fn a_uid_that_is_not_the_objects_is_409() {
    let (api, mut sent) = with_map().await;
    sent["metadata"]["uid"] = "11111111-1111-1111-1111-111111111111".into();
    let status = api.put(A, &sent).await.fails(409, "Conflict");
    assert!(status["message"].as_str().expect("text").contains("UID in precondition"));
}

#[tokio::test]
async fn updating_what_is_not_there_is_404() {
    let api = Api::new();
    api.put(A, &mk_config_map("a")).await.fails(404, "NotFound");
}

#[tokio::test]
async fn a_name_namespace_or_type_that_is_not_that_of_the_path_is_400() {
    let (api, created) = with_map().await;
    for (pointer, value) in [
        ("/metadata/name", "b"),
        ("/metadata/namespace", "kube-system"),
        ("/kind", "Secret"),
        ("/apiVersion", "v2"),
    ] {
        let mut sent = created.clone();
        *sent.pointer_mut(pointer).expect("a field") = value.into();
        api.put(A, &sent).await.fails(400, "BadRequest");
    }
}

#[tokio::test]
async fn a_collection_cannot_be_updated_or_patched() {
    let api = Api::new();
    api.put(MAPS, &mk_config_map("a")).await.fails(405, "MethodNotAllowed");
    api.merge(MAPS, &json!({})).await.fails(405, "MethodNotAllowed");
}

#[tokio::test]
async fn an_update_that_changes_nothing_writes_nothing_and_sends_no_event() {
    let (api, created) = with_map().await;
    let mut watch = api
        .watch(&query(MAPS, &[("watch", "true"), ("resourceVersion", &version(&created).to_string())]))
        .await;
    assert_eq!(api.put(A, &created).await.ok(), created);
    assert_eq!(api.put(A, &mk_config_map("a")).await.ok(), created, "without a version, too");
    assert_eq!(api.merge(A, &json!({ "data": { "a": "1" } })).await.ok(), created);
    assert_eq!(api.server.version(), version(&created));
    assert!(watch.is_silent());
}

#[tokio::test]
async fn an_update_that_leaves_defaults_out_changes_nothing() {
    let api = Api::new();
    let created = api.post(PODS, &mk_pod("a")).await.ok();
    assert_eq!(api.put(&format!("{PODS}/a"), &mk_pod("a")).await.ok(), created);
}

#[tokio::test]
async fn an_update_leaves_the_status_alone_and_an_update_of_the_status_the_rest() {
    let api = with_deployment().await;
    let status = format!("{WEB}/status");
    let mut sent = mk_deployment("web", 9);
    sent["status"] = json!({ "replicas": 2 });
    let updated = api.put(&status, &sent).await.ok();
    assert_eq!((&updated["status"]["replicas"], &updated["spec"]["replicas"]), (&2.into(), &2.into()));
    sent["status"] = json!({ "replicas": 7 });
    let updated = api.put(WEB, &sent).await.ok();
    assert_eq!((&updated["status"]["replicas"], &updated["spec"]["replicas"]), (&2.into(), &9.into()));
    let patched = api
        .merge(&status, &json!({ "spec": { "replicas": 1 }, "status": { "readyReplicas": 1 } }))
        .await
        .ok();
    assert_eq!(
        (&patched["status"], &patched["spec"]["replicas"]),
        (&json!({ "replicas": 2, "readyReplicas": 1 }), &9.into())
    );
    let patched = api.merge(WEB, &json!({ "status": { "readyReplicas": 5 } })).await.ok();
    assert_eq!(patched["status"]["readyReplicas"], 1);
    assert_eq!(api.get(&status).await.ok(), patched, "to read it is the whole object");
}

#[tokio::test]
async fn the_generation_counts_changes_of_the_spec_only() {
    let api = with_deployment().await;
    let generation = async |expected: u64| {
        assert_eq!(api.get(WEB).await.ok()["metadata"]["generation"], expected);
    };
    api.merge(WEB, &json!({ "metadata": { "labels": { "a": "b" } } })).await.ok();
    generation(1).await;
    api.merge(&format!("{WEB}/status"), &json!({ "status": { "replicas": 2 } })).await.ok();
    generation(1).await;
    api.merge(WEB, &json!({ "spec": { "replicas": 3 } })).await.ok();
    generation(2).await;
    api.merge(WEB, &json!({ "spec": { "replicas": 3 }, "metadata": { "generation": 40 } })).await.ok();
    generation(2).await;
    api.merge(&format!("{WEB}/scale"), &json!({ "spec": { "replicas": 4 } })).await.ok();
    generation(3).await;
}

#[tokio::test]
async fn a_config_map_has_no_generation() {
    let (api, created) = with_map().await;
    let updated = api.merge(A, &json!({ "data": { "a": "2" } })).await.ok();
    assert_eq!((created["metadata"].get("generation"), updated["metadata"].get("generation")), (None, None));
}

#[tokio::test]
async fn scale_shows_and_sets_the_replicas_of_an_object() {
    let api = with_deployment().await;
    let path = format!("{WEB}/scale");
    api.merge(&format!("{WEB}/status"), &json!({ "status": { "replicas": 1 } })).await.ok();
    let scale = api.get(&path).await.ok();
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&"Scale".into(), &"autoscaling/v1".into()));
    assert_eq!(
        (&scale["spec"], &scale["status"]),
        (&json!({ "replicas": 2 }), &json!({ "replicas": 1, "selector": "app=web" }))
    );
    assert_eq!((&scale["metadata"]["name"], version(&scale)), (&"web".into(), api.server.version()));

    let mut sent = scale.clone();
    sent["spec"]["replicas"] = 5.into();
    let scaled = api.put(&path, &sent).await.ok();
    assert_eq!((&scaled["spec"]["replicas"], version(&scaled)), (&5.into(), api.server.version()));
    assert_eq!(api.get(WEB).await.ok()["spec"]["replicas"], 5);
    api.put(&path, &sent).await.fails(409, "Conflict");
    let patched = api.merge(&path, &json!({ "spec": { "replicas": 0 } })).await.ok();
    assert_eq!(patched["spec"].get("replicas").unwrap_or(&0.into()), 0);
    for bad in [json!(-1), json!("two"), json!(1.5)] {
        let answer = api.merge(&path, &json!({ "spec": { "replicas": bad } })).await;
        assert!([400, 422].contains(&answer.code), "{} {}", answer.code, answer.body);
    }
}

#[tokio::test]
async fn scale_of_another_kind_than_scale_is_400() {
    let api = with_deployment().await;
    api.put(&format!("{WEB}/scale"), &mk_deployment("web", 7)).await.fails(400, "BadRequest");
    let renamed = json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": { "name": "other" }, "spec": { "replicas": 7 } });
    api.put(&format!("{WEB}/scale"), &renamed).await.fails(400, "BadRequest");
    assert_eq!(api.get(WEB).await.ok()["spec"]["replicas"], 2);
}

#[tokio::test]
async fn what_has_no_such_subresource_is_404() {
    let (api, _) = with_map().await;
    for part in ["status", "scale", "nothing"] {
        api.get(&format!("{A}/{part}")).await.fails(404, "NotFound");
    }
}

#[tokio::test]
async fn dry_run_changes_nothing() {
    let (api, created) = with_map().await;
    let path = query(A, &[("dryRun", "All")]);
    let mut sent = created.clone();
    sent["data"]["a"] = "2".into();
    assert_eq!(api.put(&path, &sent).await.ok()["data"]["a"], "2");
    assert_eq!(api.merge(&path, &json!({ "data": { "a": "3" } })).await.ok()["data"]["a"], "3");
    assert_eq!(api.get(A).await.ok(), created);
    sent["metadata"]["resourceVersion"] = "1".into();
    api.put(&path, &sent).await.fails(409, "Conflict");

    let api = with_deployment().await;
    let before = api.server.version();
    let path = query(&format!("{WEB}/scale"), &[("dryRun", "All")]);
    assert_eq!(api.merge(&path, &json!({ "spec": { "replicas": 8 } })).await.ok()["spec"]["replicas"], 8);
    assert_eq!(api.server.version(), before);
}
