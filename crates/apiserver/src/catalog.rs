//! What the server serves: one [`Resource`] for each collection of objects, built in or custom.

use std::sync::Arc;

use informer_serving::table::{Columns, PrinterColumn};
use serde_json::Value;

/// A collection of objects: what is stored, listed and watched as one, in all its versions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resource {
    /// Empty for the core group.
    pub group: String,
    /// As in the path of a request.
    pub plural: String,
    pub singular: String,
    pub kind: String,
    /// The kind of a list of its objects.
    pub list_kind: String,
    pub short_names: Vec<String>,
    /// `all`, for `kubectl get all`.
    pub categories: Vec<String>,
    pub namespaced: bool,
    /// The served versions, the preferred one first. There is at least one.
    pub versions: Vec<Version>,
    /// From a CustomResourceDefinition.
    pub custom: bool,
}

/// How a collection is served in one version of its group.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Version {
    pub name: String,
    /// `status` is a subresource of its own.
    pub status: bool,
    /// `scale` is a subresource; where its fields are in the object.
    pub scale: Option<Scale>,
    /// The `additionalPrinterColumns` of a custom resource.
    pub columns: Vec<PrinterColumn>,
    /// Fields a selector may name beside name and namespace, as dotted paths (`spec.nodeName`).
    pub selectable_fields: Vec<String>,
    /// What a custom resource says of its fields.
    pub schema: Option<Arc<Value>>,
}

/// Where a kind keeps what `scale` shows, as dotted paths (`spec.replicas`).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    /// A label selector as an object (`spec.selector` of apps) or as text (custom resources).
    pub selector: Option<String>,
}

impl Resource {
    /// The version of that name, if it is served.
    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// `apiVersion` of its objects in a version: `v1`, `apps/v1`.
    pub(crate) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// The columns of a table of its objects in a version.
    pub(crate) fn columns(&self, version: &Version) -> Columns {
        if self.custom { Columns::custom(&version.columns) } else { Columns::of(&self.group, &self.plural) }
    }

    /// The fields that a selector may name in any version, beside name and namespace, each once.
    pub(crate) fn selectable_fields(&self) -> impl Iterator<Item = &str> {
        let mut seen: Vec<&str> = Vec::new();
        self.versions.iter().flat_map(|version| &version.selectable_fields).filter_map(move |field| {
            let new = !seen.contains(&field.as_str());
            new.then(|| seen.push(field)).map(|()| field.as_str())
        })
    }
}

/// Every resource that is served, in the order of discovery: built-in ones first.
pub(crate) type Catalog = Vec<Arc<Resource>>;

#[cfg(test)]
mod tests {
    use crate::{builtin, catalog::Resource};

    #[test]
    fn a_custom_resource_that_is_called_like_a_built_in_one_has_its_own_columns() {
        let pods = builtin::resources().into_iter().find(|known| known.plural == "pods").unwrap();
        let second = |pods: &Resource| pods.columns(&pods.versions[0]).definitions()[1]["name"].clone();
        assert_eq!(second(&pods), "Ready");
        assert_eq!(second(&Resource { custom: true, ..pods }), "Age");
    }
}
