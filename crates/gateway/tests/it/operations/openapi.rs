//! The description of the gateway's own routes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;

use crate::support::*;

/// What each operation is called, by its path. Clients are generated from these names: they stay.
const OPERATIONS: [(&str, &str); 19] = [
    ("/", "page"),
    ("/_informers", "informers"),
    ("/_owned/{uid}", "owned"),
    ("/_page/{file}", "pageFile"),
    ("/_resources", "resources"),
    ("/_stream/{group}/{version}/{resource}", "stream"),
    ("/_streams", "streams"),
    ("/api", "coreDiscovery"),
    ("/api/{rest}", "core"),
    ("/apis", "groupDiscovery"),
    ("/apis/{rest}", "groups"),
    ("/deploy", "deployments"),
    ("/healthz", "healthz"),
    ("/livez", "livez"),
    ("/metrics", "metrics"),
    ("/openapi.json", "openapi"),
    ("/readyz", "readyz"),
    ("/version", "version"),
    ("/{group}/{version}/{resource}", "objects"),
];

/// The paths of the router, as its source says; with a slash at the end it is the same path.
fn routed() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/routes/mod.rs");
    let source = fs::read_to_string(source).expect("the source of the routes");
    let routes = source.split(".route(").skip(1);
    let path = |route: &str| {
        let path = route.split('"').nth(1).expect("a path").replace("{*", "{");
        path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(&path).to_owned()
    };
    routes.map(path).collect()
}

async fn document() -> Value {
    let stage = Stage::open(mk_server()).await;
    let document = stage.get("/openapi.json").await.ok();
    stage.close().await;
    document
}

#[tokio::test]
async fn every_route_is_described_and_nothing_else() {
    let document = document().await;
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.")));
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let described: BTreeSet<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(described, routed());
}

#[tokio::test]
async fn operations_keep_their_names() {
    let document = document().await;
    let mut operations = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters")
        {
            assert_eq!(method, "get", "{path}");
            operations.insert(path.as_str(), operation["operationId"].as_str().expect("a name"));
        }
    }
    assert_eq!(operations, OPERATIONS.into());
}

/// Calls `see` with every object of a document.
fn walk(value: &Value, see: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            see(members);
            members.values().for_each(|member| walk(member, see));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, see)),
        _ => {}
    }
}

#[tokio::test]
async fn references_lead_somewhere_and_parameters_of_paths_are_described() {
    let document = document().await;
    walk(&document, &mut |object| {
        if let Some(Value::String(reference)) = object.get("$ref") {
            let pointer = reference.strip_prefix('#').expect("a reference within the document");
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    });
    let resolve = |value: &Value| match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).cloned().expect("something"),
        None => value.clone(),
    };
    for (path, item) in document["paths"].as_object().unwrap() {
        let own = item["get"]["parameters"].as_array().into_iter().chain(item["parameters"].as_array());
        let named: BTreeSet<String> = own
            .flatten()
            .map(resolve)
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| parameter["name"].as_str().unwrap_or_default().to_owned())
            .collect();
        let expected: BTreeSet<String> =
            path.split('{').skip(1).filter_map(|rest| rest.split('}').next()).map(str::to_owned).collect();
        assert_eq!(named, expected, "{path}");
        assert!(item["get"]["responses"]["200"].is_object(), "{path}");
    }
}
