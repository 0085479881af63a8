//! OpenAPI v3: which operations there are and which query parameters they take.
//!
//! In: the catalog. Out: the document of `/openapi/v3`, and that of one version of a group below it. This is
//! enough for a client that asks whether the server validates fields. The shapes of objects are not in it.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use crate::{
    builtin,
    catalog::{Catalog, Resource, Version},
};

const WITHOUT_SCHEMAS: &str =
    "Operations and their query parameters. The schemas of objects are not part of this document.";

/// Where a version of a group is, in the paths of the API and in those of OpenAPI: `api/v1`, `apis/apps/v1`.
fn root_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// `/openapi/v3`: where the document of each version of each group is. A document whose content changes gets
/// another address.
pub(crate) fn root(catalog: &Catalog) -> Value {
    let mut hashes: Map<String, Value> = Map::new();
    let mut hashers: Vec<(String, DefaultHasher)> = Vec::new();
    for resource in catalog {
        for version in &resource.versions {
            let root = root_of(&resource.group, &version.name);
            let i = hashers.iter().position(|(known, _)| *known == root).unwrap_or_else(|| {
                hashers.push((root, DefaultHasher::new()));
                hashers.len() - 1
            });
            if let Some((_, hasher)) = hashers.get_mut(i) {
                identity(resource, version).hash(hasher);
            }
        }
    }
    for (root, hasher) in hashers {
        let address = format!("/openapi/v3/{root}?hash={:016X}", hasher.finish());
        hashes.insert(root, json!({"serverRelativeURL": address}));
    }
    json!({"paths": hashes})
}

/// All that the document of a version says about a resource.
fn identity<'a>(resource: &'a Resource, version: &Version) -> (&'a str, &'a str, bool, bool, bool) {
    (&resource.plural, &resource.kind, resource.namespaced, version.status, version.scale.is_some())
}

/// `/openapi/v3/api/v1` or `/openapi/v3/apis/{group}/{version}`, if there is such a version.
pub(crate) fn group_version(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let mut paths = Map::new();
    for resource in catalog.iter().filter(|resource| resource.group == group) {
        if let Some(served) = resource.version(version) {
            insert_paths(&mut paths, resource, served);
        }
    }
    (!paths.is_empty()).then(|| {
        json!({
            "openapi": "3.0.0",
            "info": {
                "title": "Kubernetes",
                "version": builtin::version_name(),
                "description": WITHOUT_SCHEMAS,
            },
            "paths": paths,
        })
    })
}

fn insert_paths(paths: &mut Map<String, Value>, resource: &Resource, version: &Version) {
    let root = format!("/{}", root_of(&resource.group, &version.name));
    let collection = if resource.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("{root}/{}", resource.plural)
    };
    let verbs = builtin::verbs(resource);
    let own_kind = json!({"group": resource.group, "version": version.name, "kind": resource.kind});
    let mut insert = |path: String, operations: &[&Operation], kind: &Value| {
        let namespaced = path.contains("{namespace}");
        let named = path.contains("{name}");
        let mut item = Map::new();
        let placed: Vec<Value> = [("namespace", namespaced), ("name", named)]
            .into_iter()
            .filter(|(_, is_in)| *is_in)
            .map(|(name, _)| parameter(name, "path", "string"))
            .collect();
        if !placed.is_empty() {
            item.insert("parameters".to_owned(), Value::Array(placed));
        }
        for operation in operations.iter().filter(|operation| verbs.contains(&operation.verb)) {
            item.insert(operation.method.to_owned(), operation.document(kind));
        }
        paths.insert(path, Value::Object(item));
    };
    if resource.namespaced {
        insert(format!("{root}/{}", resource.plural), &[&LIST], &own_kind);
    }
    let object = format!("{collection}/{{name}}");
    insert(collection, &[&LIST, &CREATE, &DELETE_COLLECTION], &own_kind);
    if version.status {
        insert(format!("{object}/status"), &[&GET, &UPDATE, &PATCH], &own_kind);
    }
    if version.scale.is_some() {
        let scale = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        insert(format!("{object}/scale"), &[&GET, &UPDATE, &PATCH], &scale);
    }
    insert(object, &[&GET, &UPDATE, &PATCH, &DELETE], &own_kind);
}

/// One way to use a path.
struct Operation {
    /// The HTTP method, in lower case.
    method: &'static str,
    /// As in `x-kubernetes-action`.
    action: &'static str,
    /// The verb that a resource must have.
    verb: &'static str,
    /// Query parameters and their types.
    parameters: &'static [(&'static str, &'static str)],
}

static GET: Operation =
    Operation { method: "get", action: "get", verb: "get", parameters: &[("resourceVersion", "string")] };
static LIST: Operation = Operation {
    method: "get",
    action: "list",
    verb: "list",
    parameters: &[
        ("allowWatchBookmarks", "boolean"),
        ("continue", "string"),
        ("fieldSelector", "string"),
        ("labelSelector", "string"),
        ("limit", "integer"),
        ("resourceVersion", "string"),
        ("resourceVersionMatch", "string"),
        ("sendInitialEvents", "boolean"),
        ("timeoutSeconds", "integer"),
        ("watch", "boolean"),
    ],
};
static CREATE: Operation = Operation {
    method: "post",
    action: "post",
    verb: "create",
    parameters: &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")],
};
static UPDATE: Operation = Operation {
    method: "put",
    action: "put",
    verb: "update",
    parameters: &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")],
};
static PATCH: Operation = Operation {
    method: "patch",
    action: "patch",
    verb: "patch",
    parameters: &[
        ("dryRun", "string"),
        ("fieldManager", "string"),
        ("fieldValidation", "string"),
        ("force", "boolean"),
    ],
};
static DELETE: Operation = Operation {
    method: "delete",
    action: "delete",
    verb: "delete",
    parameters: &[
        ("dryRun", "string"),
        ("gracePeriodSeconds", "integer"),
        ("orphanDependents", "boolean"),
        ("propagationPolicy", "string"),
    ],
};
static DELETE_COLLECTION: Operation = Operation {
    method: "delete",
    action: "deletecollection",
    verb: "deletecollection",
    parameters: &[
        ("dryRun", "string"),
        ("fieldSelector", "string"),
        ("gracePeriodSeconds", "integer"),
        ("labelSelector", "string"),
        ("orphanDependents", "boolean"),
        ("propagationPolicy", "string"),
    ],
};

impl Operation {
    fn document(&self, kind: &Value) -> Value {
        let parameters: Value =
            self.parameters.iter().map(|(name, r#type)| parameter(name, "query", r#type)).collect();
        json!({
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": self.action,
            "x-kubernetes-group-version-kind": kind,
        })
    }
}

fn parameter(name: &str, place: &str, r#type: &str) -> Value {
    let mut parameter = json!({"name": name, "in": place, "schema": {"type": r#type}});
    if place == "path" {
        parameter["required"] = json!(true);
    }
    parameter
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn mk_catalog() -> Catalog {
        builtin::resources().into_iter().map(Arc::new).collect()
    }

    #[test]
    fn the_root_names_a_document_for_every_version_of_every_group() {
        let catalog = mk_catalog();
        let document = root(&catalog);
        let paths = document["paths"].as_object().unwrap();
        for (name, entry) in paths {
            let address = entry["serverRelativeURL"].as_str().unwrap();
            assert!(address.starts_with(&format!("/openapi/v3/{name}?hash=")), "{address}");
            let parts: Vec<&str> = name.split('/').collect();
            let (group, version) = if parts.len() == 2 { ("", parts[1]) } else { (parts[1], parts[2]) };
            assert!(group_version(&catalog, group, version).is_some(), "{name}");
        }
        assert!(paths.contains_key("api/v1") && paths.contains_key("apis/apps/v1"));
        assert_eq!(group_version(&catalog, "apps", "v0"), None);
    }

    #[test]
    fn the_address_of_a_document_changes_with_its_content_only() {
        let before = mk_catalog();
        let mut after = before.clone();
        let i = after.iter().position(|resource| resource.plural == "deployments").unwrap();
        let mut changed = Resource::clone(&after[i]);
        changed.versions[0].status = false;
        after[i] = Arc::new(changed);
        let (before, after) = (root(&before), root(&after));
        assert_ne!(before["paths"]["apis/apps/v1"], after["paths"]["apis/apps/v1"]);
        assert_eq!(before["paths"]["api/v1"], after["paths"]["api/v1"]);
    }

    /// What kubectl looks for before it leaves the validation of fields to the server.
    #[test]
    fn every_patch_of_a_kind_takes_field_validation() {
        let catalog = mk_catalog();
        for resource in catalog.iter().filter(|resource| resource.kind != "ComponentStatus") {
            for version in &resource.versions {
                let document = group_version(&catalog, &resource.group, &version.name).unwrap();
                let own_kind =
                    json!({"group": resource.group, "version": version.name, "kind": resource.kind});
                let patches: Vec<&Value> = (document["paths"].as_object().unwrap().values())
                    .map(|item| &item["patch"])
                    .filter(|patch| patch["x-kubernetes-group-version-kind"] == own_kind)
                    .collect();
                assert!(!patches.is_empty(), "{own_kind}");
                for patch in patches {
                    let wanted =
                        json!({"name": "fieldValidation", "in": "query", "schema": {"type": "string"}});
                    assert!(patch["parameters"].as_array().unwrap().contains(&wanted), "{own_kind}");
                }
            }
        }
    }

    #[test]
    fn paths_have_the_operations_that_the_verbs_of_the_resource_allow() {
        let document = group_version(&mk_catalog(), "", "v1").unwrap();
        let methods = |path: &str| {
            let item = document["paths"][path].as_object().unwrap_or_else(|| panic!("{path}"));
            item.keys().filter(|key| *key != "parameters").cloned().collect::<Vec<_>>()
        };
        assert_eq!(methods("/api/v1/pods"), ["get"]);
        assert_eq!(methods("/api/v1/namespaces/{namespace}/pods"), ["delete", "get", "post"]);
        assert_eq!(methods("/api/v1/namespaces/{namespace}/pods/{name}"), ["delete", "get", "patch", "put"]);
        assert_eq!(methods("/api/v1/namespaces/{namespace}/pods/{name}/status"), ["get", "patch", "put"]);
        assert_eq!(methods("/api/v1/namespaces"), ["get", "post"]);
        assert_eq!(methods("/api/v1/componentstatuses/{name}"), ["get"]);
        assert!(document["info"]["description"].as_str().unwrap().contains("not part of"));
        let path = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"];
        assert_eq!(path["parameters"][0]["name"], "namespace");
        assert_eq!(path["parameters"][1]["required"], true);
    }
}
