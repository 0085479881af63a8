//! Objects from YAML or JSON files.

use informer_model::Status;
use serde_json::Value;

use crate::{ApiServer, import::Fields};

/// Why manifests were not loaded, or not all of them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// They are neither YAML nor JSON.
    #[error("the manifest cannot be read: {0}")]
    Parse(String),
    /// The server does not take an object.
    #[error("document {document}, {name}: {status}")]
    Refused {
        /// Which document it is, from 1 on; empty ones do not count.
        document: usize,
        /// Kind and name of the object.
        name: String,
        /// What the server says.
        status: Box<Status>,
    },
}

impl ApiServer {
    /// Writes the objects of a manifest: YAML with any number of documents, or JSON. A `List` stands for its
    /// items. Statuses and uids are kept as they are. Returns how many objects there were.
    ///
    /// Scalars without quotes mean what they mean to kubectl: `yes` and `on` are booleans and `0644` is octal.
    /// A field of a built-in kind that then has the wrong type is refused.
    ///
    /// Namespaces and definitions of custom resources go first, whatever their place, so that what needs them
    /// finds them. What stands before an object that is refused has been written.
    pub fn load(&self, manifest: &str) -> Result<usize, LoadError> {
        let mut objects = Vec::new();
        for (document, value) in (1..).zip(parse(manifest)?) {
            unpack(document, value, &mut objects);
        }
        let rank = |object: &Value| match object["kind"].as_str() {
            Some("Namespace" | "CustomResourceDefinition") => 0,
            _ => 1,
        };
        objects.sort_by_key(|(_, object)| rank(object));
        let loaded = objects.len();
        for (document, object) in objects {
            let text =
                |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("?").to_owned();
            let name = format!("{} {:?}", text("/kind"), text("/metadata/name"));
            let written = self.0.import(object, Fields::Checked);
            written.map_err(|status| LoadError::Refused { document, name, status: Box::new(status) })?;
        }
        Ok(loaded)
    }
}

/// The objects of a document. The items of a list of one kind may leave out what the list says of them.
fn unpack(document: usize, mut value: Value, objects: &mut Vec<(usize, Value)>) {
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let items =
        kind.strip_suffix("List").and_then(|kind| Some((kind, value.get_mut("items")?.as_array_mut()?)));
    let Some((kind, items)) = items else {
        if !value.is_null() {
            objects.push((document, value));
        }
        return;
    };
    for mut item in std::mem::take(items) {
        if let Some(fields) = item.as_object_mut().filter(|_| !kind.is_empty()) {
            fields.entry("kind").or_insert_with(|| kind.into());
            fields.entry("apiVersion").or_insert_with(|| api_version.as_str().into());
        }
        unpack(document, item, objects);
    }
}

/// The documents of a manifest, without empty ones.
fn parse(manifest: &str) -> Result<Vec<Value>, LoadError> {
    let manifest = manifest.trim_start_matches('\u{feff}');
    let failed = |e: &dyn std::fmt::Display| LoadError::Parse(e.to_string());
    let yaml = || reading_yaml(|options| serde_saphyr::from_multiple_with_options(manifest, options));
    if !manifest.trim_start().starts_with('{') {
        return yaml().map_err(|e| failed(&e));
    }
    // JSON is YAML too, but its own parser is faster and says better what is wrong. What only YAML can read,
    // such as documents that begin with a brace and are separated by `---`, is read as that.
    let json: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(manifest).into_iter().collect();
    json.or_else(|e| yaml().map_err(|_| failed(&e)))
}

/// What the deepest document takes of a stack: 20 KB for each level in a program that is not optimised.
const YAML_STACK: usize = 4 << 20;

/// Reads YAML as kubectl does, with room for whole clusters: what is limited is what could exhaust the memory by few bytes,
/// and the depth, for which there is stack enough on any thread.
pub(crate) fn reading_yaml<T>(read: impl FnOnce(serde_saphyr::Options) -> T) -> T {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: usize::MAX,
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_depth: 128,
        },
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    stacker::maybe_grow(YAML_STACK, YAML_STACK, || read(options))
}
