//! Objects to write.

use serde_json::{Value, json};

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn mk_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" } })
}

pub(crate) fn mk_labelled(name: &str, app: &str) -> Value {
    let mut map = mk_map(name);
    map["metadata"]["labels"] = json!({ "app": app });
    map
}

pub(crate) fn mk_held(name: &str) -> Value {
    let mut map = mk_map(name);
    map["metadata"]["finalizers"] = json!(["example.com/hold"]);
    map
}

pub(crate) fn mk_pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "main:1" }] },
    })
}

pub(crate) fn mk_deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "main:1" }] },
            },
        },
    })
}

pub(crate) fn mk_widget(group: &str, name: &str) -> Value {
    informer_testing::widget(group, name, "red")
}
