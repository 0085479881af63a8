//! The Kubernetes API of the gateway: what a client of a cluster reads, it reads from memory.

mod clients;
mod discovery;
mod reads;
#[path = "../support/mod.rs"]
mod support;
mod watches;

use serde_json::{Value, json};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// The definition of a custom resource with columns of its own.
fn mk_websites() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "websites.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "websites", "singular": "website", "kind": "Website", "shortNames": ["ws"]},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "additionalPrinterColumns": [
                    {"name": "Address", "type": "string", "jsonPath": ".spec.address", "description": "Where it is."},
                    {"name": "Pages", "type": "integer", "jsonPath": ".spec.pages", "priority": 1},
                ],
            }],
        },
    })
}

fn mk_website(name: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1",
        "kind": "Website",
        "metadata": {"namespace": "default", "name": name},
        "spec": {"address": format!("https://{name}.example.com"), "pages": 3},
    })
}
