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

/// Widgets of a group in `v1` (with everything a version can have) and in `v1beta1` (bare).
pub(crate) fn mk_crd(group: &str) -> Value {
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("widgets.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget", "shortNames": ["wd"] },
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true, "schema": schema,
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.size",
                            "statusReplicasPath": ".status.size",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                    "additionalPrinterColumns": [
                        { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
                        { "name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1 },
                    ],
                },
                { "name": "v1beta1", "served": true, "storage": false, "schema": schema },
            ],
        },
    })
}

pub(crate) fn mk_widget(group: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "Widget",
        "metadata": { "name": name },
        "spec": { "color": "red", "size": 2 },
    })
}
