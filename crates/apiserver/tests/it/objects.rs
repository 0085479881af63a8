//! A server, and objects to write.

use informer_apiserver::ApiServer;
use serde_json::{Value, json};

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

pub(crate) fn mk_server() -> ApiServer {
    ApiServer::builder().seed(1).build()
}

/// Writes ConfigMaps of these names, each one version after the other.
pub(crate) fn put_maps(server: &ApiServer, names: &[&str]) {
    for name in names {
        server.put(mk_config_map(name)).expect("written");
    }
}

pub(crate) fn discard_map(server: &ApiServer, name: &str) {
    let key = informer_model::ObjectKey::new(Some("default"), name).expect("a key");
    assert!(server.discard("", "configmaps", &key), "{name} was there");
}

pub(crate) fn mk_pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "main:1" }] },
    })
}

pub(crate) fn mk_config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" } })
}

pub(crate) fn mk_labelled(name: &str, labels: Value) -> Value {
    let mut map = mk_config_map(name);
    map["metadata"]["labels"] = labels;
    map
}

pub(crate) fn mk_held(name: &str) -> Value {
    let mut map = mk_config_map(name);
    map["metadata"]["finalizers"] = json!(["example.com/hold"]);
    map
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

/// Widgets of example.com, which can also be selected by their colour.
pub(crate) fn mk_crd() -> Value {
    let mut definition = informer_testing::widgets("example.com");
    definition["spec"]["versions"][0]["selectableFields"] = json!([{ "jsonPath": ".spec.color" }]);
    definition
}

pub(crate) fn mk_widget(name: &str, color: &str) -> Value {
    informer_testing::widget("example.com", name, color)
}
