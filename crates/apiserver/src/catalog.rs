//! What the server serves: one [`Resource`] for each collection of objects, built in or custom.

use std::sync::Arc;

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
}

/// Where a kind keeps what `scale` shows, as dotted paths (`spec.replicas`).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    /// A label selector as an object (`spec.selector` of apps) or as text (custom resources).
    pub selector: Option<String>,
}

/// One column that a CustomResourceDefinition adds to the table of its objects.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct PrinterColumn {
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub r#type: String,
    pub format: String,
    pub description: String,
    pub priority: i32,
    /// Like `.spec.replicas` or `.status.conditions[?(@.type=="Ready")].status`.
    pub json_path: String,
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
