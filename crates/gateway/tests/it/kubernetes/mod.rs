//! The Kubernetes API of the gateway: what a client of a cluster reads, it reads from memory.

mod clients;
mod discovery;
mod reads;
mod watches;

use informer_testing::custom_resource;
use serde_json::{Value, json};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// The definition of a custom resource with columns of its own.
fn mk_websites() -> Value {
    let mut definition = custom_resource("Website", &["ws"]);
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        {"name": "Address", "type": "string", "jsonPath": ".spec.address", "description": "Where it is."},
        {"name": "Pages", "type": "integer", "jsonPath": ".spec.pages", "priority": 1},
    ]);
    definition
}

fn mk_website(name: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1",
        "kind": "Website",
        "metadata": {"namespace": "default", "name": name},
        "spec": {"address": format!("https://{name}.example.com"), "pages": 3},
    })
}
