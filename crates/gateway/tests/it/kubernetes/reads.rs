//! Lists and single objects, in the forms that clients of Kubernetes know.

use serde_json::{Value, json};

use super::{METADATA, METADATA_LIST, TABLE};
use crate::support::*;

async fn with_pods() -> Stage {
    let stage = Stage::open(mk_server()).await;
    stage.put([
        mk_namespace("shop"),
        mk_pod("default", "api-0", json!({"app": "api"})),
        mk_pod("shop", "web-0", json!({"app": "web"})),
        mk_pod("shop", "web-1", json!({"app": "web"})),
    ]);
    stage
}

#[tokio::test]
async fn a_list_is_a_list_of_its_kind() {
    let stage = with_pods().await;
    let answer = stage.get("/api/v1/pods").await;
    let list = answer.ok();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("PodList"), &json!("v1")));
    assert_eq!(list["metadata"]["resourceVersion"], answer.header("x-resource-version"));
    assert_eq!(answer.names(), ["api-0", "web-0", "web-1"]);
    assert_eq!(stage.get("/api/v1/namespaces/shop/pods").await.names(), ["web-0", "web-1"]);
    assert_eq!(
        stage.get("/api/v1/namespaces/shop/pods?labelSelector=app%3Dapi").await.items(),
        [] as [Value; 0]
    );
    assert_eq!(stage.get("/api/v1/namespaces/nowhere/pods").await.items(), [] as [Value; 0]);
    assert_eq!(stage.get("/apis/apps/v1/deployments").await.ok()["kind"], "DeploymentList");
    assert_eq!(
        stage.get("/api/v1/pods/").await.names(),
        ["api-0", "web-0", "web-1"],
        "a slash at the end is nothing"
    );
    stage.close().await;
}

#[tokio::test]
async fn an_object_is_the_one_of_the_cluster() {
    let stage = with_pods().await;
    let answer = stage.get("/api/v1/namespaces/shop/pods/web-0").await;
    let (pod, request) =
        (answer.ok(), http::Request::get("/api/v1/namespaces/shop/pods/web-0").body(Vec::new()));
    let original: Value = stage.server.client().request(request.unwrap()).await.expect("the pod itself");
    assert_eq!(pod, original);
    let etag = answer.header("etag");
    let again = stage.get_with("/api/v1/namespaces/shop/pods/web-0", &[("if-none-match", etag)]).await;
    assert_eq!((again.code, again.body.len()), (304, 0));
    assert_eq!(stage.get("/api/v1/namespaces/shop").await.ok()["kind"], "Namespace");
    stage.close().await;
}

#[tokio::test]
async fn an_object_waits_for_the_version_it_is_asked_for() {
    let stage = with_pods().await;
    stage.get("/api/v1/pods").await.ok();
    let mut pod = mk_pod("shop", "web-0", json!({"app": "web", "new": "yes"}));
    pod["spec"]["nodeName"] = "n1".into();
    let version = stage.put([pod]);
    let path = query("/api/v1/namespaces/shop/pods/web-0", &[("resourceVersion", &version)]);
    let pod = stage.get(&path).await.ok();
    assert_eq!((&pod["metadata"]["labels"]["new"], &pod["spec"]["nodeName"]), (&json!("yes"), &json!("n1")));
    stage.close().await;
}

#[tokio::test]
async fn what_is_not_there_is_404_in_the_words_of_kubernetes() {
    let stage = with_pods().await;
    let answer = stage.get("/api/v1/namespaces/shop/pods/web-7").await;
    assert_eq!(answer.fails(404), "pods \"web-7\" not found");
    let status = answer.json();
    assert_eq!(status["reason"], "NotFound");
    assert_eq!(status["details"], json!({"name": "web-7", "kind": "pods"}));
    let status = stage.get("/apis/apps/v1/namespaces/shop/deployments/x").await;
    assert_eq!(status.fails(404), "deployments.apps \"x\" not found");
    for path in [
        "/api/v1/pod",
        "/api/v1/po",
        "/api/v1/Pods",
        "/api/v1/pods/web-0",
        "/api/v1/nothing",
        "/api/v7/pods",
        "/apis/v1/pods",
        "/apis/core/v1/pods",
        "/apis/apps/v1/pods",
        "/api/v1/namespaces/shop/nodes",
        "/api/v1/namespaces/shop/pods/a/b/c",
        "/api/v1/namespaces/shop/pods/UPPER",
    ] {
        let answer = stage.get(path).await;
        assert_eq!(answer.code, 404, "{path}: {}", answer.text());
        answer.fails(404);
    }
    stage.close().await;
}

#[tokio::test]
async fn writing_and_subresources_are_405() {
    let stage = with_pods().await;
    let pod = "/api/v1/namespaces/shop/pods/web-0";
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FROB"] {
        let answer = stage.send(method, pod, &[]).await;
        answer.fails(405);
        assert_eq!(
            (answer.header("allow"), &answer.json()["reason"]),
            ("GET, HEAD", &json!("MethodNotAllowed"))
        );
    }
    for part in ["status", "log", "exec", "scale", "nothing"] {
        let message = stage.get(&format!("{pod}/{part}")).await.fails(405);
        let words = format!(
            "the gateway serves objects from memory and has no pods/{part}: ask the API server itself"
        );
        assert_eq!(message, words);
    }
    stage.get("/api/v1/namespaces/shop/status").await.fails(405);
    assert_eq!(stage.get(pod).await.ok()["metadata"]["name"], "web-0");
    stage.close().await;
}

#[tokio::test]
async fn a_table_has_columns_and_rows_with_what_is_to_be_included() {
    let stage = with_pods().await;
    let accept = [("accept", TABLE)];
    let table = stage.get_with("/api/v1/pods", &accept).await.ok();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let names: Vec<_> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|c| c["name"].clone()).collect();
    assert_eq!(names[..5], [json!("Name"), json!("Ready"), json!("Status"), json!("Restarts"), json!("Age")]);
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["cells"].as_array().unwrap().len() == names.len()));
    assert_eq!(rows[0]["object"]["kind"], "PartialObjectMetadata");
    let with = async |include| {
        let path = format!("/api/v1/namespaces/shop/pods/web-0?includeObject={include}");
        stage.get_with(&path, &accept).await.ok()["rows"][0]["object"].clone()
    };
    assert_eq!(with("None").await, Value::Null);
    assert_eq!(with("Object").await["spec"]["containers"][0]["image"], "nginx");
    assert_eq!(with("Metadata").await.get("spec"), None);
    stage.get_with("/api/v1/pods?includeObject=Everything", &accept).await.fails(400);
    stage.close().await;
}

#[tokio::test]
async fn metadata_alone_is_metadata_alone() {
    let stage = with_pods().await;
    let list = stage.get_with("/api/v1/pods", &[("accept", METADATA_LIST)]).await.ok();
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("PartialObjectMetadataList"), &json!("meta.k8s.io/v1"))
    );
    for item in list["items"].as_array().unwrap() {
        let members: Vec<_> = item.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, ["apiVersion", "kind", "metadata"]);
        assert_eq!(item["kind"], "PartialObjectMetadata");
    }
    let one = stage.get_with("/api/v1/namespaces/shop/pods/web-0", &[("accept", METADATA)]).await.ok();
    assert_eq!(
        (&one["kind"], &one["metadata"]["labels"]),
        (&json!("PartialObjectMetadata"), &json!({"app": "web"}))
    );
    assert!(one.get("spec").is_none());
    stage.close().await;
}

#[tokio::test]
async fn a_form_that_is_not_served_is_406() {
    let stage = with_pods().await;
    for accept in [
        "application/vnd.kubernetes.protobuf",
        "text/html",
        "application/json;as=Table;v=v9;g=meta.k8s.io",
        "application/json;q=0",
    ] {
        let answer = stage.get_with("/api/v1/pods", &[("accept", accept)]).await;
        answer.fails(406);
    }
    let both = "application/vnd.kubernetes.protobuf,application/json;q=0.1";
    assert_eq!(stage.get_with("/api/v1/pods", &[("accept", both)]).await.items().len(), 3);
    stage.close().await;
}

#[tokio::test]
async fn a_wrong_parameter_is_400_and_a_version_of_the_past_410() {
    let stage = with_pods().await;
    for (name, value) in [
        ("labelSelector", "a in ("),
        ("fieldSelector", "a b c"),
        ("limit", "x"),
        ("continue", "x"),
        ("resourceVersion", "x"),
        ("watch", "perhaps"),
        ("timeoutSeconds", "soon"),
        ("sendInitialEvents", "true"),
    ] {
        stage.ask("/api/v1/pods", &[(name, value)]).await.fails(400);
    }
    let exact = [("resourceVersion", "1"), ("resourceVersionMatch", "Exact")];
    stage.ask("/api/v1/pods", &exact).await.fails(410);
    let unknown =
        [("pretty", "true"), ("timeoutSeconds", "5"), ("somethingNew", "1"), ("resourceVersion", "0")];
    assert_eq!(stage.ask("/api/v1/pods", &unknown).await.items().len(), 3);
    stage.close().await;
}
