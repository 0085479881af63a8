//! What stands around objects in an answer, in each form: how a list begins and ends, a table, the events of a watch.
//!
//! In: the names of a kind, the form that a client wants, objects as JSON. Out: text and frames of JSON.

use bytes::{Bytes, BytesMut};
use informer_model::Status;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    json::{Json, Outline},
    media::{Form, Include},
    table::Columns,
};

/// What happened to an object, as far as the one who watches is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// It is new among what is watched.
    Added,
    /// It is another than before.
    Modified,
    /// It is gone, or no longer among what is watched.
    Deleted,
}

impl EventType {
    /// What events of this type are called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }

    /// An event of a watch about an object, which is given in the form that the client wants.
    pub fn frame(self, object: &[u8]) -> Bytes {
        frame(self.name(), object)
    }
}

/// An ERROR event, which is the last thing that a watch says.
pub fn error_event(status: &Status) -> Bytes {
    frame(ERROR, &serde_json::to_vec(status).unwrap_or_default())
}

/// What the last event of a watch is called that tells of a failure.
pub const ERROR: &str = "ERROR";

/// What an event is called that tells of a version alone.
pub const BOOKMARK: &str = "BOOKMARK";

fn frame(r#type: &str, object: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(object.len() + r#type.len() + 24);
    frame.extend_from_slice(b"{\"type\":\"");
    frame.extend_from_slice(r#type.as_bytes());
    frame.extend_from_slice(b"\",\"object\":");
    frame.extend_from_slice(object);
    frame.extend_from_slice(b"}\n");
    frame.freeze()
}

/// How an encoded object begins.
pub fn type_meta(kind: &str, api_version: &str) -> String {
    format!("{{\"kind\":{},\"apiVersion\":{},", Value::from(kind), Value::from(api_version))
}

/// The `PartialObjectMetadata` of an object whose `metadata` is given as JSON.
pub fn partial_metadata(metadata: &str) -> String {
    format!("{}\"metadata\":{metadata}}}", type_meta("PartialObjectMetadata", META))
}

/// What a list says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListMeta {
    /// `resourceVersion`
    pub version: String,
    /// The token of the next page, if there is one.
    pub continue_from: Option<String>,
    /// How many objects the next pages have, if that is known.
    pub remaining: Option<usize>,
}

impl ListMeta {
    /// The `metadata` of the list.
    pub fn json(&self) -> Value {
        let mut metadata = json!({ "resourceVersion": self.version });
        if let Some(token) = &self.continue_from {
            metadata["continue"] = token.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }
}

/// A kind, and how a list of its objects is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindNames {
    /// `v1`, `apps/v1`
    pub api_version: String,
    /// `Pod`
    pub kind: String,
    /// `PodList`
    pub list_kind: String,
}

/// The surroundings of the objects of one kind in the form that a client wants.
#[derive(Debug, Clone)]
pub struct Envelope {
    names: KindNames,
    form: Form,
    /// None for no table.
    columns: Option<Columns>,
    /// Whether a watch has told the columns of its table: its first event does, for all that follow.
    told_columns: bool,
}

/// How a list ends.
pub const LIST_END: &str = "]}\n";

const META: &str = "meta.k8s.io/v1";

impl Envelope {
    /// The columns are only asked for if the form is a table.
    pub fn new(names: KindNames, form: Form, columns: impl FnOnce() -> Columns) -> Self {
        let columns = matches!(form, Form::Table(_)).then(columns);
        Self { names, form, columns, told_columns: false }
    }

    /// The form that the client wants.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The apiVersion and the kind of an object in this form.
    pub fn object_type(&self) -> (&str, &str) {
        match self.form {
            Form::Object => (&self.names.api_version, &self.names.kind),
            Form::Metadata => (META, "PartialObjectMetadata"),
            Form::Table(_) => (META, "Table"),
        }
    }

    /// The apiVersion and the kind of a list in this form.
    pub fn list_type(&self) -> (&str, &str) {
        match self.form {
            Form::Object => (&self.names.api_version, &self.names.list_kind),
            Form::Metadata => (META, "PartialObjectMetadataList"),
            Form::Table(_) => (META, "Table"),
        }
    }

    /// How a list begins; the items follow, with commas between them, and [`LIST_END`].
    pub fn list_start(&self, meta: &ListMeta) -> String {
        let (api_version, kind) = self.list_type();
        let items = match self.form {
            Form::Object | Form::Metadata => "\"items\":[".to_owned(),
            Form::Table(_) => format!("\"columnDefinitions\":{},\"rows\":[", self.definitions()),
        };
        format!("{}\"metadata\":{},{items}", type_meta(kind, api_version), meta.json())
    }

    /// A table of one object, which is given as JSON. It has no columns where a watch has told them.
    pub fn table(&self, json: &str) -> String {
        let outline = Outline::of(json);
        let object = outline.root();
        let version = object.pointer("/metadata/resourceVersion").map_or("null", Json::text);
        let definitions = if self.told_columns { Value::Null } else { self.definitions() };
        let mut table = format!(
            "{}\"metadata\":{{\"resourceVersion\":{version}}},\"columnDefinitions\":{definitions},\"rows\":[",
            type_meta("Table", META)
        )
        .into_bytes();
        self.write_row_of(&object, &mut table);
        table.extend_from_slice(b"]}");
        // It is made of text alone.
        String::from_utf8(table).unwrap_or_default()
    }

    /// Writes the row of an object in a table, with what of it the client wants included.
    pub fn write_row(&self, json: &str, out: &mut Vec<u8>) {
        self.write_row_of(&Outline::of(json).root(), out);
    }

    fn write_row_of(&self, object: &Json<'_>, out: &mut Vec<u8>) {
        let Some(columns) = &self.columns else { return out.extend_from_slice(b"null") };
        columns.write_row_start(object, Timestamp::now(), out);
        match self.form {
            Form::Table(Include::Nothing) => out.extend_from_slice(b"null"),
            Form::Table(Include::Object) => out.extend_from_slice(object.text().as_bytes()),
            _ => {
                let metadata = object.get("metadata").map_or("null", Json::text);
                out.extend_from_slice(partial_metadata(metadata).as_bytes());
            }
        }
        out.push(b'}');
    }

    /// Whether the next event of a watch has to tell the columns of the table.
    pub fn owes_columns(&self) -> bool {
        self.columns.is_some() && !self.told_columns
    }

    /// Notes that an event has told the columns: those that follow do not repeat them.
    pub fn mark_columns_told(&mut self) {
        self.told_columns = true;
    }

    /// A bookmark of a watch: nothing but a version, and whether the initial events end here.
    pub fn bookmark(&self, version: &str, initial_events_end: bool) -> Bytes {
        frame(BOOKMARK, self.bookmark_object(version, initial_events_end).as_bytes())
    }

    /// The object in a bookmark.
    pub fn bookmark_object(&self, version: &str, initial_events_end: bool) -> String {
        let mut meta = json!({ "resourceVersion": version });
        if initial_events_end {
            meta["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        match self.form {
            Form::Object => {
                let r#type = type_meta(&self.names.kind, &self.names.api_version);
                format!("{type}\"metadata\":{meta}}}")
            }
            Form::Metadata => partial_metadata(&meta.to_string()),
            // As a row like any other, of an object that is nothing but its version.
            Form::Table(_) => {
                let KindNames { api_version, kind, .. } = &self.names;
                let object = json!({ "kind": kind, "apiVersion": api_version, "metadata": meta });
                self.table(&object.to_string())
            }
        }
    }

    fn definitions(&self) -> Value {
        self.columns.as_ref().map_or(Value::Null, Columns::definitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::PrinterColumn;

    fn mk_envelope(form: Form) -> Envelope {
        let names = KindNames {
            api_version: "example.com/v1".to_owned(),
            kind: "Lamp".to_owned(),
            list_kind: "LampList".to_owned(),
        };
        let color = PrinterColumn {
            name: "Color".to_owned(),
            r#type: "string".to_owned(),
            json_path: ".color".to_owned(),
            ..PrinterColumn::default()
        };
        Envelope::new(names, form, || Columns::custom(&[color]))
    }

    fn mk_lamp() -> Value {
        json!({
            "kind": "Lamp",
            "apiVersion": "example.com/v1",
            "metadata": { "name": "a", "resourceVersion": "7" },
            "color": "red",
        })
    }

    fn parsed(text: impl AsRef<[u8]>) -> Value {
        serde_json::from_slice(text.as_ref()).unwrap()
    }

    fn row(include: Include, json: &str) -> String {
        let mut row = Vec::new();
        mk_envelope(Form::Table(include)).write_row(json, &mut row);
        String::from_utf8(row).unwrap()
    }

    const TABLE: Form = Form::Table(Include::Metadata);

    #[test]
    fn a_list_says_what_it_is_and_what_is_left_of_it() {
        let list = |form, meta: &ListMeta| parsed(mk_envelope(form).list_start(meta) + LIST_END);
        let last = ListMeta { version: "9".to_owned(), ..ListMeta::default() };
        assert_eq!(
            list(Form::Object, &last),
            json!({"kind": "LampList", "apiVersion": "example.com/v1",
                   "metadata": {"resourceVersion": "9"}, "items": []})
        );
        let page = ListMeta { continue_from: Some("a\"b".to_owned()), remaining: Some(3), ..last };
        assert_eq!(
            list(Form::Metadata, &page),
            json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": [],
                   "metadata": {"resourceVersion": "9", "continue": "a\"b", "remainingItemCount": 3}})
        );
        let table = list(TABLE, &page);
        assert_eq!((&table["kind"], &table["rows"]), (&json!("Table"), &json!([])));
        assert_eq!(table["columnDefinitions"][1]["name"], "Color");
    }

    #[test]
    fn a_row_has_what_the_client_wants_of_its_object() {
        let row = |include| parsed(row(include, &mk_lamp().to_string()));
        assert_eq!(row(Include::Nothing), json!({"cells": ["a", "red"], "object": null}));
        assert_eq!(row(Include::Object)["object"], mk_lamp());
        let metadata = partial_metadata(&mk_lamp()["metadata"].to_string());
        assert_eq!(row(Include::Metadata)["object"], parsed(metadata));
    }

    #[test]
    fn an_object_of_any_depth_has_a_row_with_its_text() {
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        let metadata = r#"{"name":"a","n":1.50}"#;
        let lamp = format!(r#"{{"color":"r\u0065d","metadata":{metadata},"spec":{deep}}}"#);
        assert_eq!(
            row(Include::Object, &lamp),
            format!(r#"{{"cells":["a","red"],"object":{lamp}}}"#),
            "byte by byte"
        );
        let metadata = partial_metadata(metadata);
        assert_eq!(row(Include::Metadata, &lamp), format!(r#"{{"cells":["a","red"],"object":{metadata}}}"#));
    }

    #[test]
    fn the_columns_are_told_once_in_a_watch() {
        let mut envelope = mk_envelope(TABLE);
        assert!(envelope.owes_columns() && !mk_envelope(Form::Object).owes_columns());
        let first = parsed(EventType::Added.frame(envelope.table(&mk_lamp().to_string()).as_bytes()));
        assert_eq!((&first["type"], &first["object"]["kind"]), (&json!("ADDED"), &json!("Table")));
        assert_eq!(first["object"]["metadata"], json!({"resourceVersion": "7"}));
        assert_eq!(first["object"]["columnDefinitions"].as_array().map(Vec::len), Some(2));
        envelope.mark_columns_told();
        assert!(!envelope.owes_columns());
        assert_eq!(parsed(envelope.table(&mk_lamp().to_string()))["columnDefinitions"], Value::Null);
        assert_eq!(parsed(envelope.bookmark("8", false))["object"]["columnDefinitions"], Value::Null);
    }

    #[test]
    fn a_bookmark_has_a_version_in_every_form() {
        let bookmark = |form| parsed(mk_envelope(form).bookmark("8", true));
        let meta = json!({"resourceVersion": "8", "annotations": {"k8s.io/initial-events-end": "true"}});
        assert_eq!(
            bookmark(Form::Object),
            json!({"type": "BOOKMARK",
                   "object": {"kind": "Lamp", "apiVersion": "example.com/v1", "metadata": meta}})
        );
        assert_eq!(bookmark(Form::Metadata)["object"]["kind"], "PartialObjectMetadata");
        for form in [Form::Object, Form::Metadata] {
            assert_eq!(bookmark(form)["object"]["metadata"], meta);
        }
        let table = bookmark(TABLE);
        assert_eq!(table["object"]["metadata"], json!({"resourceVersion": "8"}));
        assert_eq!(table["object"]["rows"][0]["object"]["metadata"], meta);
    }

    #[test]
    fn an_event_is_one_line() {
        assert_eq!(EventType::Deleted.frame(b"{}"), "{\"type\":\"DELETED\",\"object\":{}}\n");
        let error = error_event(&Status::expired("too\nold"));
        assert_eq!(error.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(parsed(&error)["object"]["code"], 410);
    }
}
