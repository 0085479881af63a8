//! Label selectors and field selectors.

use serde_json::{Value, json};

use crate::{
    client::{Api, query},
    objects::{MAPS, PODS, mk_config_map, mk_labelled, mk_pod},
};

async fn with_labelled() -> Api {
    let api = Api::new();
    api.post(MAPS, &mk_labelled("a", json!({ "app": "web", "example.com/tier": "front" }))).await.ok();
    api.post(MAPS, &mk_labelled("b", json!({ "app": "db" }))).await.ok();
    api.post(MAPS, &mk_labelled("c", json!({ "tier": "" }))).await.ok();
    api
}

#[tokio::test]
async fn each_operator_of_a_label_selector_selects() {
    let api = with_labelled().await;
    for (selector, expected) in [
        ("app=web", "a"),
        ("app==web", "a"),
        ("app!=web", "bc"),
        ("app in (web,db)", "ab"),
        ("app in (db)", "b"),
        ("app notin (web)", "bc"),
        ("app", "ab"),
        ("!app", "c"),
        ("app,app!=db", "a"),
        ("app=web,example.com/tier=front", "a"),
        ("tier=", "c"),
        ("tier in ()", "c"),
        ("app notin (web, db), tier", "c"),
        ("app=nothing", ""),
        ("", "abc"),
    ] {
        let found = api.names(&query(MAPS, &[("labelSelector", selector)])).await;
        assert_eq!(found.concat(), expected, "{selector}");
    }
}

#[tokio::test]
async fn a_label_selector_that_is_no_selector_or_has_no_valid_labels_is_400() {
    let api = Api::new();
    for bad in [
        "=",
        "a=b=c",
        "a in",
        "a in (",
        "a b",
        "a,,b",
        "-a=b",
        "a=-b",
        "a/b/c=d",
        "a=ö",
        "a=!",
        &format!("a={}", "b".repeat(64)),
    ] {
        api.get(&query(MAPS, &[("labelSelector", bad)])).await.fails(400, "BadRequest");
        api.get(&query(MAPS, &[("watch", "1"), ("labelSelector", bad)])).await.fails(400, "BadRequest");
    }
}

#[tokio::test]
async fn every_kind_can_be_selected_by_name_and_namespace() {
    let api = with_labelled().await;
    api.post("/api/v1/namespaces/kube-system/configmaps", &mk_config_map("a")).await.ok();
    for (selector, expected) in [
        ("metadata.name=a", "aa"),
        ("metadata.name==a,metadata.namespace=default", "a"),
        ("metadata.name!=a", "bc"),
        ("metadata.namespace!=default", "a"),
        (r"metadata.name=a\,b", ""),
        ("", "abca"),
    ] {
        let found = api.names(&query("/api/v1/configmaps", &[("fieldSelector", selector)])).await;
        assert_eq!(found.concat(), expected, "{selector}");
    }
    let namespaces =
        api.names(&query("/api/v1/namespaces", &[("fieldSelector", "metadata.name=default")])).await;
    assert_eq!(namespaces, ["default"]);
}

#[tokio::test]
async fn a_field_that_a_kind_cannot_be_selected_by_is_400() {
    let api = Api::new();
    for (path, field) in [
        (MAPS, "data.a=1"),
        (MAPS, "status.phase=Running"),
        (PODS, "spec.containers=x"),
        (PODS, "metadata.uid=x"),
        ("/apis/apps/v1/deployments", "spec.replicas=1"),
    ] {
        let status = api.get(&query(path, &[("fieldSelector", field)])).await.fails(400, "BadRequest");
        let name = field.split('=').next().expect("a field");
        let message = status["message"].as_str().expect("text");
        assert!(
            message.contains("field label not supported") || message.contains("not a known field"),
            "{message}"
        );
        assert!(message.contains(name), "{message}");
    }
    for bad in ["metadata.name", "metadata.name>a", r"metadata.name=a\"] {
        api.get(&query(MAPS, &[("fieldSelector", bad)])).await.fails(400, "BadRequest");
    }
}

/// Writes an object with its status and counts how many of its kind each selector finds.
async fn selects(object: Value, path: &str, cases: &[(&str, usize)]) {
    let api = Api::new();
    api.server.put(object).expect("written");
    for (selector, count) in cases {
        let found = api.names(&query(path, &[("fieldSelector", selector)])).await;
        assert_eq!(found.len(), *count, "{selector}");
    }
}

#[tokio::test]
async fn pods_are_selected_by_their_fields() {
    let mut pod = mk_pod("a");
    pod["spec"]["nodeName"] = "node-1".into();
    pod["status"] = json!({ "phase": "Running", "podIP": "10.0.0.1", "nominatedNodeName": "node-2" });
    selects(
        pod,
        PODS,
        &[
            ("spec.nodeName=node-1", 1),
            ("spec.nodeName=", 0),
            ("spec.nodeName!=node-1", 0),
            ("spec.restartPolicy=Always", 1),
            ("spec.schedulerName=default-scheduler", 1),
            ("spec.serviceAccountName=default", 1),
            ("status.phase=Running,spec.nodeName!=", 1),
            ("status.phase!=Running", 0),
            ("status.podIP=10.0.0.1", 1),
            ("status.nominatedNodeName=node-2", 1),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_pod_that_nobody_looked_after_is_pending_and_on_no_node() {
    let api = Api::new();
    api.post(PODS, &mk_pod("a")).await.ok();
    for selector in ["spec.nodeName=", "status.phase=Pending", "status.podIP="] {
        assert_eq!(api.names(&query(PODS, &[("fieldSelector", selector)])).await, ["a"], "{selector}");
    }
}

#[tokio::test]
async fn nodes_namespaces_secrets_events_and_jobs_are_selected_by_their_fields() {
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } });
    selects(
        node.clone(),
        "/api/v1/nodes",
        &[("spec.unschedulable=false", 1), ("spec.unschedulable=true", 0)],
    )
    .await;
    let mut cordoned = node;
    cordoned["spec"] = json!({ "unschedulable": true });
    selects(cordoned, "/api/v1/nodes", &[("spec.unschedulable=true", 1)]).await;

    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n" } });
    let active = [("status.phase=Active", 5), ("status.phase=Terminating", 0)];
    selects(namespace, "/api/v1/namespaces", &active).await;

    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } });
    selects(secret, "/api/v1/secrets", &[("type=Opaque", 1), ("type!=Opaque", 0)]).await;

    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e" },
        "involvedObject": { "kind": "Pod", "name": "a", "namespace": "default", "uid": "u" },
        "reason": "Started", "type": "Normal", "source": { "component": "kubelet" },
    });
    let cases = [
        ("involvedObject.kind=Pod,involvedObject.name=a,involvedObject.namespace=default", 1),
        ("involvedObject.uid=u", 1),
        ("involvedObject.uid=v", 0),
        ("reason=Started,type!=Warning,source=kubelet", 1),
    ];
    selects(event, "/api/v1/events", &cases).await;

    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "j" },
        "spec": { "template": { "spec": { "containers": [] } } }, "status": { "succeeded": 1 },
    });
    selects(job, "/apis/batch/v1/jobs", &[("status.successful=1", 1), ("status.successful=0", 0)]).await;

    let controller = json!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": { "name": "r" }, "status": { "replicas": 3 },
    });
    selects(controller, "/api/v1/replicationcontrollers", &[("status.replicas=3", 1)]).await;
}

#[tokio::test]
async fn both_kinds_of_selectors_must_match() {
    let api = with_labelled().await;
    let both = |label, field| query(MAPS, &[("labelSelector", label), ("fieldSelector", field)]);
    assert_eq!(api.names(&both("app", "metadata.name!=b")).await, ["a"]);
    assert!(api.names(&both("app=web", "metadata.name=b")).await.is_empty());
}
