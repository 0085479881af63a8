//! Objects that tests of several crates need.

use serde_json::{Value, json};

/// The definition of a namespaced custom resource `example.com/v1` that takes any fields. Its plural is the kind in
/// small letters and an `s`.
pub fn custom_resource(kind: &str, short_names: &[&str]) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": plural, "singular": singular, "kind": kind, "shortNames": short_names },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}

/// The definition of widgets of a group in `v1`, with everything a version can have, and in `v1beta1`, bare.
pub fn widgets(group: &str) -> Value {
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

/// A widget of [`widgets`].
pub fn widget(group: &str, name: &str, color: &str) -> Value {
    json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "Widget",
        "metadata": { "name": name },
        "spec": { "color": color, "size": 2 },
    })
}
