//! What a client reads to learn what is served: groups, versions, resources and their verbs.
//!
//! In: [`Groups`], filled with a [`Served`] for each resource in each version. Out: the documents of `/api`, `/apis`
//! and what is below them, in the aggregated shape (`apidiscovery.k8s.io/v2`) and in the older one of many documents.

use http::{HeaderMap, header};
use serde_json::{Map, Value, json};

/// A resource as one version of its group serves it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Served {
    /// As in the path of a request: `pods`.
    pub resource: String,
    /// The name of one of its objects: `pod`.
    pub singular: String,
    /// `Pod`
    pub kind: String,
    /// Whether its objects lie in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// What it may be called in short: `po`.
    pub short_names: Vec<String>,
    /// The groups of resources that it is counted among: `all`.
    pub categories: Vec<String>,
    /// The parts of its objects that have paths of their own.
    pub subresources: Vec<Subresource>,
}

/// A part of the objects of a resource: `status`, `scale`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Subresource {
    /// As in the path of a request.
    pub name: String,
    /// What it is if it is not of the kind of the object.
    pub kind: Option<Kind>,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// A kind of another group or version than the resource that serves it.
#[derive(Debug, Clone, PartialEq)]
pub struct Kind {
    /// Empty for the core group.
    pub group: String,
    /// Like `v1`.
    pub version: String,
    /// Like `Scale`.
    pub kind: String,
}

/// All that is served. Groups, the versions of each and the resources in each are listed in the order in which they
/// were added, so that the preferred version of a group is the one that came first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Groups(Vec<Group>);

#[derive(Debug, Clone, PartialEq)]
struct Group {
    /// Empty for the core group.
    name: String,
    versions: Vec<Version>,
}

#[derive(Debug, Clone, PartialEq)]
struct Version {
    name: String,
    stale: bool,
    resources: Vec<Served>,
}

impl Groups {
    /// Adds a resource to a version of a group. The core group is the empty text.
    pub fn add(&mut self, group: &str, version: &str, served: Served) {
        self.version(group, version).resources.push(served);
    }

    /// Marks a version of a group as one that may serve something else than is said here, because whoever serves
    /// it did not answer.
    pub fn mark_stale(&mut self, group: &str, version: &str) {
        self.version(group, version).stale = true;
    }

    fn version(&mut self, group: &str, version: &str) -> &mut Version {
        let new_group = || Group { name: group.to_owned(), versions: Vec::new() };
        let new_version = || Version { name: version.to_owned(), stale: false, resources: Vec::new() };
        let group = found_or_added(&mut self.0, |known| known.name == group, new_group);
        found_or_added(&mut group.versions, |known| known.name == version, new_version)
    }

    fn group(&self, name: &str) -> Option<&Group> {
        self.0.iter().find(|group| group.name == name)
    }

    /// Every group but the core one.
    fn named(&self) -> impl Iterator<Item = &Group> {
        self.0.iter().filter(|group| !group.name.is_empty())
    }

    /// `/api`, aggregated: the core group.
    pub fn aggregated_core(&self) -> Value {
        aggregated(self.group("").into_iter())
    }

    /// `/apis`, aggregated: every other group.
    pub fn aggregated_groups(&self) -> Value {
        aggregated(self.named())
    }

    /// `/api`: the versions of the core group, and the address (`127.0.0.1:6443`) the server is reached at.
    pub fn api_versions(&self, server_address: &str) -> Value {
        let versions = self.group("").into_iter().flat_map(|core| &core.versions);
        let versions: Value = versions.map(|version| version.name.as_str()).collect();
        let address = json!({"clientCIDR": "0.0.0.0/0", "serverAddress": server_address});
        json!({"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": [address]})
    }

    /// `/apis`: every group but the core one.
    pub fn api_group_list(&self) -> Value {
        let groups: Value = self.named().map(|group| Value::Object(group.entry())).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `/apis/{group}`: one group, if it is there.
    pub fn api_group(&self, name: &str) -> Option<Value> {
        let mut document = self.named().find(|group| group.name == name)?.entry();
        document.insert("kind".to_owned(), json!("APIGroup"));
        document.insert("apiVersion".to_owned(), json!("v1"));
        Some(Value::Object(document))
    }

    /// `/api/{version}` or `/apis/{group}/{version}`: the resources of a version of a group, if it has any.
    pub fn api_resource_list(&self, group: &str, version: &str) -> Option<Value> {
        let group = self.group(group)?;
        let version = group.versions.iter().find(|known| known.name == version)?;
        let resources: Vec<Value> = version.resources.iter().flat_map(api_resources).collect();
        (!resources.is_empty()).then(|| {
            let mut list = json!({
                "kind": "APIResourceList",
                "groupVersion": group.api_version(&version.name),
                "resources": resources,
            });
            // The document of the core group is older than this field.
            if !group.name.is_empty() {
                list["apiVersion"] = "v1".into();
            }
            list
        })
    }
}

fn found_or_added<T>(all: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let at = all.iter().position(is_it).unwrap_or_else(|| {
        all.push(new());
        all.len() - 1
    });
    &mut all[at]
}

impl Group {
    /// `apiVersion` of a version of the group.
    fn api_version(&self, version: &str) -> String {
        if self.name.is_empty() { version.to_owned() } else { format!("{}/{version}", self.name) }
    }

    /// The group in a list of groups.
    fn entry(&self) -> Map<String, Value> {
        let entry = |version: &Version| json!({"groupVersion": self.api_version(&version.name), "version": version.name});
        let mut document = Map::new();
        document.insert("name".to_owned(), json!(self.name));
        document.insert("versions".to_owned(), self.versions.iter().map(entry).collect());
        document.insert("preferredVersion".to_owned(), self.versions.first().map_or(Value::Null, entry));
        document
    }
}

fn aggregated<'a>(groups: impl Iterator<Item = &'a Group>) -> Value {
    let items: Value = groups.map(aggregated_group).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_group(group: &Group) -> Value {
    let version = |version: &Version| {
        let resource = |served| aggregated_resource(group, version, served);
        let resources: Value = version.resources.iter().map(resource).collect();
        let freshness = if version.stale { "Stale" } else { "Current" };
        json!({"version": version.name, "freshness": freshness, "resources": resources})
    };
    let versions: Value = group.versions.iter().map(version).collect();
    let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(group: &Group, version: &Version, served: &Served) -> Value {
    let own_kind = json!({"group": group.name, "version": version.name, "kind": served.kind});
    let subresource = |Subresource { name, kind, verbs }: &Subresource| {
        let kind = kind.as_ref().map_or_else(
            || own_kind.clone(),
            |Kind { group, version, kind }| json!({"group": group, "version": version, "kind": kind}),
        );
        json!({"subresource": name, "responseKind": kind, "verbs": verbs})
    };
    let subresources: Vec<Value> = served.subresources.iter().map(subresource).collect();
    let scope = if served.namespaced { "Namespaced" } else { "Cluster" };
    let mut entry = Map::new();
    entry.insert("resource".to_owned(), json!(served.resource));
    entry.insert("responseKind".to_owned(), own_kind);
    entry.insert("scope".to_owned(), json!(scope));
    entry.insert("singularResource".to_owned(), json!(served.singular));
    entry.insert("verbs".to_owned(), json!(served.verbs));
    insert_unless_empty(&mut entry, "shortNames", &served.short_names);
    insert_unless_empty(&mut entry, "categories", &served.categories);
    if !subresources.is_empty() {
        entry.insert("subresources".to_owned(), Value::Array(subresources));
    }
    Value::Object(entry)
}

/// The entry of a resource and one for each of its subresources.
fn api_resources(served: &Served) -> Vec<Value> {
    let mut entry = Map::new();
    entry.insert("name".to_owned(), json!(served.resource));
    entry.insert("singularName".to_owned(), json!(served.singular));
    entry.insert("namespaced".to_owned(), json!(served.namespaced));
    entry.insert("kind".to_owned(), json!(served.kind));
    entry.insert("verbs".to_owned(), json!(served.verbs));
    insert_unless_empty(&mut entry, "shortNames", &served.short_names);
    insert_unless_empty(&mut entry, "categories", &served.categories);
    let subresource = |Subresource { name, kind, verbs }: &Subresource| {
        let mut entry = json!({
            "name": format!("{}/{name}", served.resource),
            "singularName": "",
            "namespaced": served.namespaced,
            "kind": kind.as_ref().map_or(&served.kind, |other| &other.kind),
            "verbs": verbs,
        });
        if let Some(Kind { group, version, .. }) = kind {
            entry["group"] = json!(group);
            entry["version"] = json!(version);
        }
        entry
    };
    let subresources = served.subresources.iter().map(subresource);
    std::iter::once(Value::Object(entry)).chain(subresources).collect()
}

fn insert_unless_empty(entry: &mut Map<String, Value>, name: &str, values: &[String]) {
    if !values.is_empty() {
        entry.insert(name.to_owned(), json!(values));
    }
}

/// Where a client thinks that it has reached the server, for [`Groups::api_versions`].
pub fn server_address(headers: &HeaderMap) -> &str {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mk_served(resource: &str, kind: &str) -> Served {
        Served {
            resource: resource.to_owned(),
            singular: kind.to_lowercase(),
            kind: kind.to_owned(),
            namespaced: true,
            verbs: vec!["get".to_owned(), "list".to_owned()],
            ..Served::default()
        }
    }

    fn mk_groups() -> Groups {
        let scale =
            Kind { group: "autoscaling".to_owned(), version: "v1".to_owned(), kind: "Scale".to_owned() };
        let subresource = |name: &str, kind| Subresource {
            name: name.to_owned(),
            kind,
            verbs: vec!["get".to_owned(), "patch".to_owned()],
        };
        let mut groups = Groups::default();
        groups.add("z.org", "v1", mk_served("lamps", "Lamp"));
        groups.add("", "v1", Served { short_names: vec!["po".to_owned()], ..mk_served("pods", "Pod") });
        groups.add("", "v1", Served { namespaced: false, ..mk_served("nodes", "Node") });
        groups.add(
            "apps",
            "v1",
            Served {
                categories: vec!["all".to_owned()],
                subresources: vec![subresource("scale", Some(scale)), subresource("status", None)],
                ..mk_served("deployments", "Deployment")
            },
        );
        groups.add("apps", "v1beta1", mk_served("deployments", "Deployment"));
        groups.mark_stale("metrics.k8s.io", "v1beta1");
        groups
    }

    #[test]
    fn groups_versions_and_resources_come_in_the_order_in_which_they_were_added() {
        let entry = |group: &str, version: &str| json!({"groupVersion": format!("{group}/{version}"), "version": version});
        let list = mk_groups().api_group_list();
        assert_eq!(
            list,
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [
                {"name": "z.org", "versions": [entry("z.org", "v1")],
                 "preferredVersion": entry("z.org", "v1")},
                {"name": "apps", "versions": [entry("apps", "v1"), entry("apps", "v1beta1")],
                 "preferredVersion": entry("apps", "v1")},
                {"name": "metrics.k8s.io", "versions": [entry("metrics.k8s.io", "v1beta1")],
                 "preferredVersion": entry("metrics.k8s.io", "v1beta1")},
            ]})
        );
        let mut apps = list["groups"][1].clone();
        apps["kind"] = json!("APIGroup");
        apps["apiVersion"] = json!("v1");
        assert_eq!(mk_groups().api_group("apps"), Some(apps));
    }

    #[test]
    fn the_core_group_has_documents_of_its_own() {
        assert_eq!(
            mk_groups().api_versions("127.0.0.1:8888"),
            json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [
                {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:8888"}]})
        );
        let resource = |resource: &str, kind: &str, scope: &str| {
            json!({"resource": resource, "responseKind": {"group": "", "version": "v1", "kind": kind},
                   "scope": scope, "singularResource": kind.to_lowercase(), "verbs": ["get", "list"]})
        };
        let mut pods = resource("pods", "Pod", "Namespaced");
        pods["shortNames"] = json!(["po"]);
        assert_eq!(
            mk_groups().aggregated_core(),
            json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
                   "items": [{"metadata": {}, "versions": [{"version": "v1", "freshness": "Current",
                              "resources": [pods, resource("nodes", "Node", "Cluster")]}]}]})
        );
        let list = mk_groups().api_resource_list("", "v1").unwrap();
        assert_eq!(list["groupVersion"], "v1");
        assert_eq!(list["resources"][1]["name"], "nodes");
        assert_eq!(list["resources"][1]["namespaced"], false);
    }

    #[test]
    fn a_subresource_names_its_kind_where_that_is_another() {
        let document = mk_groups().aggregated_groups();
        assert_eq!(
            document["items"][1]["versions"][0]["resources"][0]["subresources"],
            json!([
                {"subresource": "scale", "verbs": ["get", "patch"],
                 "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}},
                {"subresource": "status", "verbs": ["get", "patch"],
                 "responseKind": {"group": "apps", "version": "v1", "kind": "Deployment"}},
            ])
        );
        assert_eq!(
            mk_groups().api_resource_list("apps", "v1"),
            Some(
                json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1", "resources": [
                    {"name": "deployments", "singularName": "deployment", "namespaced": true, "kind": "Deployment",
                     "verbs": ["get", "list"], "categories": ["all"]},
                    {"name": "deployments/scale", "singularName": "", "namespaced": true, "kind": "Scale",
                     "group": "autoscaling", "version": "v1", "verbs": ["get", "patch"]},
                    {"name": "deployments/status", "singularName": "", "namespaced": true, "kind": "Deployment",
                     "verbs": ["get", "patch"]},
                ]})
            )
        );
    }

    #[test]
    fn who_did_not_answer_is_stale() {
        let document = mk_groups().aggregated_groups();
        assert_eq!(
            document["items"][2],
            json!({"metadata": {"name": "metrics.k8s.io"},
                   "versions": [{"version": "v1beta1", "freshness": "Stale", "resources": []}]})
        );
        assert_eq!(document["items"][1]["versions"][1]["freshness"], "Current");
    }

    #[test]
    fn what_is_not_there_has_no_document() {
        assert_eq!(mk_groups().api_group(""), None, "the core group has no such document");
        assert_eq!(mk_groups().api_group("none.example.com"), None);
        assert_eq!(mk_groups().api_resource_list("apps", "v0"), None);
        assert_eq!(
            mk_groups().api_resource_list("metrics.k8s.io", "v1beta1"),
            None,
            "nothing is known of it"
        );
        assert_eq!(Groups::default().api_resource_list("", "v1"), None);
        assert_eq!(Groups::default().aggregated_groups()["items"], json!([]));
    }

    #[test]
    fn the_address_of_the_server_is_the_one_that_the_client_used() {
        let headers = HeaderMap::from_iter([(header::HOST, "cluster:80".parse().expect("a header"))]);
        assert_eq!(server_address(&headers), "cluster:80");
        assert_eq!(server_address(&HeaderMap::new()), "localhost");
    }
}
