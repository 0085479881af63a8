//! What clients are told of the server: what it serves, and its version.
//!
//! In: the catalog. Out: the [`Groups`] that make the documents of discovery, and the document of `/version`.

use std::sync::Arc;

use informer_serving::discovery::{Groups, Kind, Served, Subresource};
use serde_json::{Value, json};

use crate::{
    builtin::{self, by_priority},
    catalog::{Catalog, Resource, Version},
};

/// What can be done with a subresource.
const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

/// What is served: the built-in groups in the order of the catalog, then the others by name; of each group its
/// versions by preference, and of each version its resources by name.
pub(crate) fn groups(catalog: &Catalog) -> Groups {
    let mut groups = Groups::default();
    for group in group_names(catalog) {
        let mut resources: Vec<&Resource> =
            catalog.iter().map(Arc::as_ref).filter(|resource| resource.group == group).collect();
        resources.sort_by_key(|resource| resource.plural.as_str());
        let mut versions: Vec<&str> = resources
            .iter()
            .flat_map(|resource| &resource.versions)
            .map(|version| version.name.as_str())
            .collect();
        versions.sort_by(|one, other| by_priority(one, other));
        versions.dedup();
        for name in versions {
            let served =
                resources.iter().filter_map(|resource| Some(served(resource, resource.version(name)?)));
            served.for_each(|served| groups.add(group, name, served));
        }
    }
    groups
}

fn group_names(catalog: &Catalog) -> Vec<&str> {
    let (mut built_in, mut custom): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for resource in catalog.iter().filter(|resource| !resource.custom) {
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
    built_in.into_iter().chain(custom).collect()
}

fn served(resource: &Resource, version: &Version) -> Served {
    let owned = |verbs: &[&str]| verbs.iter().map(|&verb| verb.to_owned()).collect();
    let subresource =
        |name: &str, kind| Subresource { name: name.to_owned(), kind, verbs: owned(SUBRESOURCE_VERBS) };
    let scale = version.scale.as_ref().map(|_| {
        let kind =
            Kind { group: "autoscaling".to_owned(), version: "v1".to_owned(), kind: "Scale".to_owned() };
        subresource("scale", Some(kind))
    });
    let status = version.status.then(|| subresource("status", None));
    Served {
        resource: resource.plural.clone(),
        singular: resource.singular.clone(),
        kind: resource.kind.clone(),
        namespaced: resource.namespaced,
        verbs: owned(builtin::verbs(resource)),
        short_names: resource.short_names.clone(),
        categories: resource.categories.clone(),
        subresources: scale.into_iter().chain(status).collect(),
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
        let document = groups(&catalog).aggregated_groups();
        let listed = names(&document["items"], "/metadata/name");
        assert_eq!(listed[..3], ["apiregistration.k8s.io", "apps", "events.k8s.io"]);
        assert_eq!(listed[listed.len() - 2..], ["a.org", "z.example.com"]);
        assert_eq!(names(&groups(&catalog).api_group_list()["groups"], "/name"), listed);
        assert!(!listed.contains(&String::new()));
        assert_eq!(groups(&catalog).aggregated_core()["items"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn the_preferred_version_of_a_group_comes_first_even_when_resources_have_different_versions() {
        let things = mk_custom("a.org", "things", &["v1beta1", "v1alpha1"]);
        let others = mk_custom("a.org", "others", &["v2", "v1beta1"]);
        let catalog = mk_catalog(vec![things, others]);
        let group = groups(&catalog).api_group("a.org").unwrap();
        assert_eq!(names(&group["versions"], "/version"), ["v2", "v1beta1", "v1alpha1"]);
        assert_eq!(group["preferredVersion"], json!({"groupVersion": "a.org/v2", "version": "v2"}));
        let both = groups(&catalog).api_resource_list("a.org", "v1beta1").unwrap();
        assert_eq!(names(&both["resources"], "/name"), ["others", "things"]);
        let one = groups(&catalog).api_resource_list("a.org", "v2").unwrap();
        assert_eq!(names(&one["resources"], "/name"), ["others"]);
    }

    #[test]
    fn a_resource_is_described_as_kubernetes_describes_it() {
        let catalog = mk_catalog(Vec::new());
        let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
        let document = groups(&catalog).aggregated_groups();
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

        let document = groups(&catalog).api_resource_list("apps", "v1").unwrap();
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
        let document = groups(&mk_catalog(Vec::new())).api_resource_list("", "v1").unwrap();
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
