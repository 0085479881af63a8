//! How objects leave the server: encoded in the form, and in the version, that was asked for.

use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    catalog::{Resource, Version},
    media::{Form, Include},
    store::{Change, Stored, type_meta},
    table::{self, Columns},
};

/// What happened to an object, as far as the one who watches is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// What a list says of itself.
#[derive(Debug, Default)]
pub(crate) struct ListMeta {
    pub version: u64,
    pub continue_from: Option<String>,
    pub remaining: Option<usize>,
}

/// A resource in the version and in the form that a client wants.
pub(crate) struct Presentation {
    resource: Arc<Resource>,
    version: Version,
    form: Form,
    columns: OnceLock<Columns>,
    /// Whether a watch has told the columns of its table: its first event does, for all that follow.
    told_columns: bool,
}

const METADATA_TYPE: &str = "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",";

impl Presentation {
    pub(crate) fn new(resource: Arc<Resource>, version: &Version, form: Form) -> Self {
        Self { resource, version: version.clone(), form, columns: OnceLock::new(), told_columns: false }
    }

    fn columns(&self) -> &Columns {
        self.columns.get_or_init(|| table::columns(&self.resource, &self.version))
    }

    /// One object on its own.
    pub(crate) fn object(&self, object: &Stored) -> Bytes {
        match self.form {
            Form::Object => object.json(&self.resource, &self.version.name),
            Form::Metadata => metadata(object).into(),
            Form::Table(_) => {
                let meta = json!({ "resourceVersion": object.version.to_string() });
                table::table(meta, self.definitions(), vec![self.row(object)]).to_string().into()
            }
        }
    }

    /// The columns of the table, unless they have been told.
    fn definitions(&self) -> Value {
        if self.told_columns { Value::Null } else { self.columns().definitions() }
    }

    fn row(&self, object: &Stored) -> Value {
        let value = object.value(&self.resource, &self.version.name);
        let carried = match self.form {
            Form::Table(Include::Object) => Some(value.clone()),
            Form::Table(Include::Nothing) => None,
            _ => serde_json::from_str(&metadata(object)).ok(),
        };
        self.columns().row(&value, carried, Timestamp::now())
    }

    /// How a list begins; the items follow, with commas between them.
    pub(crate) fn list_start(&self, meta: &ListMeta) -> String {
        let mut list = json!({ "resourceVersion": meta.version.to_string() });
        if let Some(token) = &meta.continue_from {
            list["continue"] = token.as_str().into();
        }
        if let Some(remaining) = meta.remaining {
            list["remainingItemCount"] = remaining.into();
        }
        match self.form {
            Form::Object => {
                let api_version = self.resource.api_version(&self.version.name);
                format!(
                    "{}\"metadata\":{list},\"items\":[",
                    type_meta(&self.resource.list_kind, &api_version)
                )
            }
            Form::Metadata => {
                format!(
                    "{}\"metadata\":{list},\"items\":[",
                    type_meta("PartialObjectMetadataList", "meta.k8s.io/v1")
                )
            }
            Form::Table(_) => format!(
                "{}\"metadata\":{list},\"columnDefinitions\":{},\"rows\":[",
                type_meta("Table", "meta.k8s.io/v1"),
                self.columns().definitions()
            ),
        }
    }

    /// How a list ends.
    pub(crate) const LIST_END: &'static str = "]}\n";

    /// One item of a list. Built-in objects do not repeat there what the list says of their kind.
    pub(crate) fn list_item(&self, object: &Stored, out: &mut Vec<u8>) {
        match self.form {
            Form::Object if self.resource.custom => {
                out.extend_from_slice(&object.json(&self.resource, &self.version.name));
            }
            Form::Object => {
                out.push(b'{');
                out.extend_from_slice(object.rest());
            }
            Form::Metadata => out.extend_from_slice(metadata(object).as_bytes()),
            Form::Table(_) => out.extend_from_slice(self.row(object).to_string().as_bytes()),
        }
    }

    /// An event of a watch about one state of an object.
    pub(crate) fn event(&mut self, r#type: EventType, object: &Stored) -> Bytes {
        let frame = frame(r#type.name(), &self.object(object));
        self.told_columns = true;
        frame
    }

    /// An event of a watch about a change; encoded once for all who see it in this form.
    pub(crate) fn change(&mut self, r#type: EventType, change: &Change) -> Bytes {
        let encode = || match (r#type, &change.before) {
            (EventType::Deleted, Some(before)) if !change.deleted => {
                frame(r#type.name(), &self.object(&self.at_version(before, change.version)))
            }
            _ => frame(r#type.name(), &self.object(&change.after)),
        };
        let preferred = self.resource.versions.first().is_some_and(|first| first.name == self.version.name);
        let tells_columns = matches!(self.form, Form::Table(_)) && !self.told_columns;
        if !preferred || tells_columns {
            let frame = encode();
            self.told_columns = true;
            return frame;
        }
        let form = match self.form {
            Form::Object => 0,
            Form::Metadata => 1,
            Form::Table(Include::Nothing) => 2,
            Form::Table(Include::Metadata) => 3,
            Form::Table(Include::Object) => 4,
        };
        change.frame(form * 3 + r#type as usize, encode)
    }

    /// An older state under the version at which it stopped being what was asked for.
    fn at_version(&self, object: &Arc<Stored>, version: u64) -> Arc<Stored> {
        let mut value = object.value(&self.resource, &self.version.name);
        value["metadata"]["resourceVersion"] = version.to_string().into();
        let stored = Stored::new(&self.resource, &self.version.name, version, &value);
        // It had this key before, so it has one now.
        stored.map_or_else(|_| Arc::clone(object), Arc::new)
    }

    /// A bookmark: nothing but a version, and whether the initial events end here.
    pub(crate) fn bookmark(&self, version: u64, initial_events_end: bool) -> Bytes {
        let mut meta = json!({ "resourceVersion": version.to_string() });
        if initial_events_end {
            meta["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let object = match self.form {
            Form::Object => {
                let api_version = self.resource.api_version(&self.version.name);
                format!("{}\"metadata\":{meta}}}", type_meta(&self.resource.kind, &api_version))
            }
            Form::Metadata => format!("{METADATA_TYPE}\"metadata\":{meta}}}"),
            Form::Table(_) => table::table(meta, self.definitions(), Vec::new()).to_string(),
        };
        frame("BOOKMARK", object.as_bytes())
    }
}

/// A frame of a watch.
pub(crate) fn frame(r#type: &str, object: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(object.len() + r#type.len() + 24);
    frame.extend_from_slice(b"{\"type\":\"");
    frame.extend_from_slice(r#type.as_bytes());
    frame.extend_from_slice(b"\",\"object\":");
    frame.extend_from_slice(object);
    frame.extend_from_slice(b"}\n");
    frame.freeze()
}

fn metadata(object: &Stored) -> String {
    format!("{METADATA_TYPE}\"metadata\":{}}}", object.metadata())
}
