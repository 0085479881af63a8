//! All that a server serves, and finding a resource in it by any of its names.

use informer_model::{GroupVersionResource, ResourceArg, ResourceArgError, qualified_name};
use kube::core::ApiResource;

use super::{error::ResolveError, nearest::nearest};

/// A resource that a server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedResource {
    /// Group, version, kind and plural name: what a request needs to know.
    pub api: ApiResource,
    /// Its name for one object; empty if the server has none.
    pub singular: String,
    /// What it may be called in short: `po`.
    pub short_names: Vec<String>,
    /// The groups of resources that it is counted among: `all`.
    pub categories: Vec<String>,
    /// Whether its objects lie in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// All that a server serves: the core group first, then the others as the server orders them; of each group the
/// preferred version first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Catalog {
    /// The resources, without subresources.
    pub resources: Vec<ServedResource>,
    /// The versions of groups that could not be asked: what they serve may be missing or out of date.
    pub silent: Vec<String>,
}

impl ServedResource {
    /// The name that means this resource in a usual cluster: `pods`, `deployments.apps`.
    pub fn name(&self) -> String {
        qualified_name(&self.api.plural, &self.api.group)
    }

    /// What an object of it is called before its own name: `pod`, `deployment.apps`.
    pub fn singular_name(&self) -> String {
        qualified_name(&self.api.kind.to_lowercase(), &self.api.group)
    }

    /// Group, version and plural name. It fails if the server's names are against the rules.
    pub fn resource(&self) -> Result<GroupVersionResource, ResourceArgError> {
        GroupVersionResource::new(&self.api.group, &self.api.version, &self.api.plural)
    }

    fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|other| other == verb)
    }
}

impl Catalog {
    /// The resource that is meant, by its plural or singular name, its kind in small letters, or a short name.
    ///
    /// A name goes before a short name, and the server's order decides the rest.
    pub fn find(&self, resource: &ResourceArg) -> Result<&ServedResource, ResolveError> {
        let fits = |served: &&ServedResource| {
            resource.group().is_none_or(|group| group == served.api.group)
                && resource.version().is_none_or(|version| version == served.api.version)
        };
        let name = resource.resource();
        let is_named = |served: &&ServedResource| {
            served.api.plural == name || served.singular == name || served.api.kind.to_lowercase() == name
        };
        let is_short = |served: &&ServedResource| served.short_names.iter().any(|short| short == name);
        let candidates = || self.resources.iter().filter(fits);
        match candidates().find(is_named).or_else(|| candidates().find(is_short)) {
            Some(served) if served.can("list") && served.can("watch") => Ok(served),
            Some(served) => Err(ResolveError::Verbs { resource: served.name(), verbs: served.verbs.clone() }),
            None => Err(ResolveError::Unknown {
                resource: resource.clone(),
                near: nearest(resource, &self.resources),
                silent: self.silent.clone(),
            }),
        }
    }
}
