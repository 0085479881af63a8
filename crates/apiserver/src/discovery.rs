//! What a client reads to learn what is served: groups, versions, resources and their verbs.
//!
//! In: the catalog. Out: the documents of `/api`, `/apis` and what is below them, in the aggregated shape
//! (`apidiscovery.k8s.io/v2`) and in the older one of many documents; and the document of `/version`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{
    builtin::{self, by_priority},
    catalog::{Catalog, Resource, Version},
};

/// What can be done with a subresource.
const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

/// An API group, with its versions by preference and its resources by name.
struct Group<'a> {
    name: &'a str,
    versions: Vec<&'a str>,
    resources: Vec<&'a Resource>,
}

impl<'a> Group<'a> {
    fn new(name: &'a str, catalog: &'a Catalog) -> Self {
        let mut resources: Vec<&Resource> =
            catalog.iter().map(Arc::as_ref).filter(|resource| resource.group == name).collect();
        resources.sort_by_key(|resource| resource.plural.as_str());
        let mut versions: Vec<&str> = resources
            .iter()
            .flat_map(|resource| &resource.versions)
            .map(|version| version.name.as_str())
            .collect();
        versions.sort_by(|one, other| by_priority(one, other));
        versions.dedup();
        Self { name, versions, resources }
    }

    /// `apiVersion` of a version of the group.
    fn api_version(&self, version: &str) -> String {
        if self.name.is_empty() { version.to_owned() } else { format!("{}/{version}", self.name) }
    }

    /// The resources that are served in a version.
    fn served(&self, version: &str) -> impl Iterator<Item = (&'a Resource, &'a Version)> {
        self.resources.iter().filter_map(move |&resource| Some((resource, resource.version(version)?)))
    }
}

/// Every group but the core one: the built-in ones in the order of the catalog, then the others by name.
fn named_groups(catalog: &Catalog) -> Vec<Group<'_>> {
    let (mut built_in, mut custom): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for resource in catalog.iter().filter(|resource| !resource.custom && !resource.group.is_empty()) {
        if !built_in.contains(&resource.group.as_str()) {
            built_in.push(&resource.group);
        }
    }
    for resource in catalog.iter().filter(|resource| resource.custom) {
        if !built_in.contains(&resource.group.as_str()) {
            custom.push(&resource.group);
        }
    }
    custom.sort_unstable();
    custom.dedup();
    built_in.into_iter().chain(custom).map(|name| Group::new(name, catalog)).collect()
}

/// `/api`, aggregated: the core group.
pub(crate) fn aggregated_core(catalog: &Catalog) -> Value {
    aggregated(&[Group::new("", catalog)])
}

/// `/apis`, aggregated: every other group.
pub(crate) fn aggregated_groups(catalog: &Catalog) -> Value {
    aggregated(&named_groups(catalog))
}

fn aggregated(groups: &[Group<'_>]) -> Value {
    let items: Value = groups.iter().map(aggregated_group).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_group(group: &Group<'_>) -> Value {
    let version = |&version: &&str| {
        let resources: Value =
            group.served(version).map(|(resource, served)| aggregated_resource(resource, served)).collect();
        json!({"version": version, "freshness": "Current", "resources": resources})
    };
    let versions: Value = group.versions.iter().map(version).collect();
    let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(resource: &Resource, version: &Version) -> Value {
    let own_kind = json!({"group": resource.group, "version": version.name, "kind": resource.kind});
    let subresource =
        |name, kind| json!({"subresource": name, "responseKind": kind, "verbs": SUBRESOURCE_VERBS});
    let mut subresources = Vec::new();
    if version.scale.is_some() {
        let scale = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        subresources.push(subresource("scale", scale));
    }
    if version.status {
        subresources.push(subresource("status", own_kind.clone()));
    }
    let scope = if resource.namespaced { "Namespaced" } else { "Cluster" };
    let mut entry = Map::new();
    entry.insert("resource".to_owned(), json!(resource.plural));
    entry.insert("responseKind".to_owned(), own_kind);
    entry.insert("scope".to_owned(), json!(scope));
    entry.insert("singularResource".to_owned(), json!(resource.singular));
    entry.insert("verbs".to_owned(), json!(builtin::verbs(resource)));
    insert_unless_empty(&mut entry, "shortNames", &resource.short_names);
    insert_unless_empty(&mut entry, "categories", &resource.categories);
    if !subresources.is_empty() {
        entry.insert("subresources".to_owned(), Value::Array(subresources));
    }
    Value::Object(entry)
}

/// `/api`: the versions of the core group, and the address (`127.0.0.1:6443`) the server is reached at.
pub(crate) fn api_versions(server_address: &str) -> Value {
    let address = json!({"clientCIDR": "0.0.0.0/0", "serverAddress": server_address});
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]})
}

/// `/apis`: every group but the core one.
pub(crate) fn api_group_list(catalog: &Catalog) -> Value {
    let groups: Value = named_groups(catalog).iter().map(|group| Value::Object(entry_of(group))).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/{group}`: one group, if it is there.
pub(crate) fn api_group(catalog: &Catalog, group: &str) -> Option<Value> {
    let group = Group::new(group, catalog);
    if group.name.is_empty() || group.versions.is_empty() {
        return None;
    }
    let mut document = entry_of(&group);
    document.insert("kind".to_owned(), json!("APIGroup"));
    document.insert("apiVersion".to_owned(), json!("v1"));
    Some(Value::Object(document))
}

fn entry_of(group: &Group<'_>) -> Map<String, Value> {
    let entry = |version: &&str| json!({"groupVersion": group.api_version(version), "version": version});
    let mut document = Map::new();
    document.insert("name".to_owned(), json!(group.name));
    document.insert("versions".to_owned(), group.versions.iter().map(entry).collect());
    document.insert("preferredVersion".to_owned(), group.versions.first().map_or(Value::Null, entry));
    document
}

/// `/api/v1` or `/apis/{group}/{version}`: the resources of a version of a group, if it is there.
pub(crate) fn api_resource_list(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let group = Group::new(group, catalog);
    let resources: Vec<Value> =
        group.served(version).flat_map(|(resource, version)| api_resources(resource, version)).collect();
    (!resources.is_empty()).then(|| {
        json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group.api_version(version),
            "resources": resources,
        })
    })
}

/// The entry of a resource and one for each of its subresources.
fn api_resources(resource: &Resource, version: &Version) -> Vec<Value> {
    let mut entry = Map::new();
    entry.insert("name".to_owned(), json!(resource.plural));
    entry.insert("singularName".to_owned(), json!(resource.singular));
    entry.insert("namespaced".to_owned(), json!(resource.namespaced));
    entry.insert("kind".to_owned(), json!(resource.kind));
    entry.insert("verbs".to_owned(), json!(builtin::verbs(resource)));
    insert_unless_empty(&mut entry, "shortNames", &resource.short_names);
    insert_unless_empty(&mut entry, "categories", &resource.categories);
    let mut entries = vec![Value::Object(entry)];
    let subresource = |name: &str, kind: &str| {
        json!({
            "name": format!("{}/{name}", resource.plural),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": kind,
            "verbs": SUBRESOURCE_VERBS,
        })
    };
    if version.scale.is_some() {
        let mut scale = subresource("scale", "Scale");
        scale["group"] = json!("autoscaling");
        scale["version"] = json!("v1");
        entries.push(scale);
    }
    if version.status {
        entries.push(subresource("status", &resource.kind));
    }
    entries
}

fn insert_unless_empty(entry: &mut Map<String, Value>, name: &str, values: &[String]) {
    if !values.is_empty() {
        entry.insert(name.to_owned(), json!(values));
    }
}

/// `/version`: the version of Kubernetes whose kinds are served, and of this server.
pub(crate) fn version() -> Value {
    let minor = builtin::MINOR;
    let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
    let system = if system == "macos" { "darwin" } else { system };
    let processor = match processor {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "major": "1",
        "minor": minor.to_string(),
        "emulationMajor": "1",
        "emulationMinor": minor.to_string(),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": (minor - 1).to_string(),
        "gitVersion": builtin::version_name(),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{system}/{processor}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mk_custom(group: &str, plural: &str, versions: &[&str]) -> Resource {
        let version = |&name: &&str| Version { name: name.to_owned(), ..Version::default() };
        Resource {
            group: group.to_owned(),
            plural: plural.to_owned(),
            singular: "thing".to_owned(),
            kind: "Thing".to_owned(),
            list_kind: String::new(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            versions: versions.iter().map(version).collect(),
            custom: true,
        }
    }

    fn mk_catalog(custom: Vec<Resource>) -> Catalog {
        builtin::resources().into_iter().chain(custom).map(Arc::new).collect()
    }

    fn names(list: &Value, pointer: &str) -> Vec<String> {
        let name = |item: &Value| item.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(name).collect()
    }

    #[test]
    fn groups_come_in_the_order_of_kubernetes_and_custom_ones_after_them_by_name() {
        let custom =
            vec![mk_custom("z.example.com", "things", &["v1"]), mk_custom("a.org", "things", &["v1"])];
        let catalog = mk_catalog(custom);
        let document = aggregated_groups(&catalog);
        let groups = names(&document["items"], "/metadata/name");
        assert_eq!(groups[..3], ["apiregistration.k8s.io", "apps", "events.k8s.io"]);
        assert_eq!(groups[groups.len() - 2..], ["a.org", "z.example.com"]);
        assert_eq!(names(&api_group_list(&catalog)["groups"], "/name"), groups);
        assert!(!groups.contains(&String::new()));
        assert_eq!(aggregated_core(&catalog)["items"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn the_preferred_version_of_a_group_comes_first_even_when_resources_have_different_versions() {
        let things = mk_custom("a.org", "things", &["v1beta1", "v1alpha1"]);
        let others = mk_custom("a.org", "others", &["v2", "v1beta1"]);
        let catalog = mk_catalog(vec![things, others]);
        let group = api_group(&catalog, "a.org").unwrap();
        assert_eq!(names(&group["versions"], "/version"), ["v2", "v1beta1", "v1alpha1"]);
        assert_eq!(group["preferredVersion"], json!({"groupVersion": "a.org/v2", "version": "v2"}));
        let both = api_resource_list(&catalog, "a.org", "v1beta1").unwrap();
        assert_eq!(names(&both["resources"], "/name"), ["others", "things"]);
        let one = api_resource_list(&catalog, "a.org", "v2").unwrap();
        assert_eq!(names(&one["resources"], "/name"), ["others"]);
    }

    #[test]
    fn what_is_not_there_has_no_document() {
        let catalog = mk_catalog(Vec::new());
        assert_eq!(api_group(&catalog, ""), None);
        assert_eq!(api_group(&catalog, "none.example.com"), None);
        assert_eq!(api_resource_list(&catalog, "apps", "v0"), None);
        assert_eq!(api_resource_list(&Catalog::new(), "", "v1"), None);
        assert_eq!(aggregated_groups(&Catalog::new())["items"], json!([]));
    }

    #[test]
    fn a_resource_is_described_as_kubernetes_describes_it() {
        let catalog = mk_catalog(Vec::new());
        let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
        let document = aggregated_groups(&catalog);
        let apps = &document["items"][1]["versions"][0];
        assert_eq!((&apps["version"], &apps["freshness"]), (&json!("v1"), &json!("Current")));
        assert_eq!(
            apps["resources"][2],
            json!({
                "categories": ["all"],
                "resource": "deployments",
                "responseKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
                "scope": "Namespaced",
                "shortNames": ["deploy"],
                "singularResource": "deployment",
                "subresources": [
                    {
                        "subresource": "scale",
                        "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                        "verbs": ["get", "patch", "update"],
                    },
                    {
                        "subresource": "status",
                        "responseKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
                        "verbs": ["get", "patch", "update"],
                    },
                ],
                "verbs": verbs,
            })
        );

        let document = api_resource_list(&catalog, "apps", "v1").unwrap();
        let resources = document["resources"].as_array().unwrap();
        let find = |name| resources.iter().find(|entry| entry["name"] == name).unwrap();
        assert_eq!(
            *find("deployments"),
            json!({"name": "deployments", "singularName": "deployment", "namespaced": true,
                   "kind": "Deployment", "verbs": verbs, "shortNames": ["deploy"], "categories": ["all"]})
        );
        assert_eq!(
            *find("deployments/scale"),
            json!({"name": "deployments/scale", "singularName": "", "namespaced": true, "kind": "Scale",
                   "group": "autoscaling", "version": "v1", "verbs": ["get", "patch", "update"]})
        );
        assert_eq!(find("deployments/status")["kind"], "Deployment");
    }

    #[test]
    fn kinds_with_fewer_verbs_say_so() {
        let document = api_resource_list(&mk_catalog(Vec::new()), "", "v1").unwrap();
        let resources = document["resources"].as_array().unwrap();
        let find = |name| resources.iter().find(|entry| entry["name"] == name).unwrap();
        assert_eq!(find("componentstatuses")["verbs"], json!(["get", "list"]));
        assert!(!find("namespaces")["verbs"].as_array().unwrap().contains(&json!("deletecollection")));
    }

    #[test]
    fn the_version_is_that_of_the_kinds_that_are_served() {
        let document = version();
        assert_eq!(document["major"], "1");
        assert_eq!(document["gitVersion"], json!(format!("v1.{}.0+informer", builtin::MINOR)));
    }
}
