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
