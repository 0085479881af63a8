//! How objects leave the server: in the form, in the version and in the encoding that was asked for.
//!
//! Protobuf is made of the text of the JSON that would be sent otherwise.

use std::sync::Arc;

use bytes::Bytes;
use informer_model::{ProtobufEncodeError, ProtobufKind, ProtobufList, Status, encode_watch_event};
use informer_serving::{
    envelope::{self, BOOKMARK, ERROR, Envelope, EventType, KindNames, partial_metadata},
    media::{Encoding, Form, Include},
};
use serde_json::Deserializer;

use crate::{
    catalog::{Resource, Version},
    store::{Change, Stored},
};

/// A resource in the version and in the form that a client wants.
pub(crate) struct Presentation {
    resource: Arc<Resource>,
    version: Version,
    pub envelope: Envelope,
    /// None: JSON is wanted.
    protobuf: Option<ProtobufKind>,
}

impl Presentation {
    pub(crate) fn new(
        resource: Arc<Resource>,
        version: &Version,
        (form, encoding): (Form, Encoding),
    ) -> Self {
        let names = KindNames {
            api_version: resource.api_version(&version.name),
            kind: resource.kind.clone(),
            list_kind: resource.list_kind.clone(),
        };
        let envelope = Envelope::new(names, form, || resource.columns(version));
        let (api_version, kind) = envelope.object_type();
        let protobuf = match encoding {
            Encoding::Json => None,
            // It has been agreed on, so there is such a kind.
            Encoding::Protobuf => ProtobufKind::new(api_version, kind).ok(),
        };
        Self { resource, version: version.clone(), envelope, protobuf }
    }

    pub(crate) fn encoding(&self) -> Encoding {
        if self.protobuf.is_some() { Encoding::Protobuf } else { Encoding::Json }
    }

    /// One object on its own.
    pub(crate) fn object(&self, object: &Stored) -> Result<Bytes, Status> {
        let json = self.json(object);
        let Some(kind) = &self.protobuf else { return Ok(json) };
        let written = kind.encode(&mut Deserializer::from_slice(&json));
        written.map(Bytes::from).map_err(|error| self.unwritable(object, &error))
    }

    fn json(&self, object: &Stored) -> Bytes {
        match self.envelope.form() {
            Form::Object => object.json(&self.resource, &self.version.name),
            Form::Metadata => partial_metadata(object.metadata()).into(),
            Form::Table(_) => {
                let json = object.json(&self.resource, &self.version.name);
                self.envelope.table(text(&json)).into()
            }
        }
    }

    /// One item of a list. Built-in objects do not repeat there what the list says of their kind.
    pub(crate) fn list_item(&self, object: &Stored, out: &mut Vec<u8>) {
        match self.envelope.form() {
            Form::Object if self.resource.custom => {
                out.extend_from_slice(&object.json(&self.resource, &self.version.name));
            }
            Form::Object => {
                out.push(b'{');
                out.extend_from_slice(object.rest());
            }
            Form::Metadata => out.extend_from_slice(partial_metadata(object.metadata()).as_bytes()),
            Form::Table(_) => {
                self.envelope.write_row(text(&object.json(&self.resource, &self.version.name)), out);
            }
        }
    }

    /// A list in protobuf, of which all has to be written before the first byte of it can be sent.
    pub(crate) fn protobuf_list(&self) -> Result<ProtobufList, Status> {
        let (api_version, kind) = self.envelope.list_type();
        ProtobufList::new(api_version, kind).map_err(|error| Status::internal_error(error.to_string()))
    }

    /// One item of a list in protobuf.
    pub(crate) fn protobuf_item(
        &self,
        list: &ProtobufList,
        object: &Stored,
        out: &mut Vec<u8>,
    ) -> Result<(), Status> {
        let written = list.write_item(&mut Deserializer::from_slice(&self.json(object)), out);
        written.map_err(|error| self.unwritable(object, &error))
    }

    /// An event of a watch about one state of an object.
    pub(crate) fn event(&mut self, r#type: EventType, object: &Stored) -> Result<Bytes, Status> {
        let frame = self.frame(r#type, object);
        self.envelope.mark_columns_told();
        frame
    }

    fn frame(&self, r#type: EventType, object: &Stored) -> Result<Bytes, Status> {
        let json = self.json(object);
        let Some(kind) = &self.protobuf else { return Ok(r#type.frame(&json)) };
        let written = kind.encode_event(r#type.name(), &mut Deserializer::from_slice(&json));
        written.map(Bytes::from).map_err(|error| self.unwritable(object, &error))
    }

    /// A bookmark of a watch: nothing but a version, and whether the initial events end here.
    pub(crate) fn bookmark(&self, version: u64, initial_events_end: bool) -> Bytes {
        let version = version.to_string();
        let Some(kind) = &self.protobuf else { return self.envelope.bookmark(&version, initial_events_end) };
        let object = self.envelope.bookmark_object(&version, initial_events_end);
        // It has nothing in it that could not be written.
        kind.encode_event(BOOKMARK, &mut Deserializer::from_str(&object)).unwrap_or_default().into()
    }

    /// An event of a watch about a change; encoded once for all who see it in this form.
    pub(crate) fn change(&mut self, r#type: EventType, change: &Change) -> Result<Bytes, Status> {
        let encode = || match (r#type, &change.before) {
            (EventType::Deleted, Some(before)) if !change.deleted => {
                self.frame(r#type, &self.at_version(before, change.version))
            }
            _ => self.frame(r#type, &change.after),
        };
        let preferred = self.resource.versions.first().is_some_and(|first| first.name == self.version.name);
        if !preferred || self.envelope.owes_columns() {
            let frame = encode();
            self.envelope.mark_columns_told();
            return frame;
        }
        let form = match (self.envelope.form(), self.encoding()) {
            (Form::Object, Encoding::Json) => 0,
            (Form::Metadata, Encoding::Json) => 1,
            (Form::Table(Include::Nothing), _) => 2,
            (Form::Table(Include::Metadata), _) => 3,
            (Form::Table(Include::Object), _) => 4,
            (Form::Object, Encoding::Protobuf) => 5,
            (Form::Metadata, Encoding::Protobuf) => 6,
        };
        change.frame(form * 3 + r#type as usize, encode)
    }

    /// An object that is no object of its kind: whoever put it into the store meant it to be so.
    fn unwritable(&self, object: &Stored, error: &ProtobufEncodeError) -> Status {
        Status::internal_error(format!("{} {:?}: {error}", self.resource.plural, object.key.as_str()))
    }

    /// An older state under the version at which it stopped being what was asked for.
    fn at_version(&self, object: &Arc<Stored>, version: u64) -> Arc<Stored> {
        let mut value = object.value(&self.resource, &self.version.name);
        value["metadata"]["resourceVersion"] = version.to_string().into();
        let stored = Stored::new(&self.resource, &self.version.name, version, &value);
        // It had this key before, so it has one now.
        stored.map_or_else(|_| Arc::clone(object), Arc::new)
    }
}

/// An ERROR event, which is the last thing that a watch says.
pub(crate) fn error_event(status: &Status, encoding: Encoding) -> Bytes {
    match encoding {
        Encoding::Json => envelope::error_event(status),
        Encoding::Protobuf => {
            let status = serde_json::to_value(status).unwrap_or_default();
            encode_watch_event(ERROR, &status).unwrap_or_default().into()
        }
    }
}

/// What was encoded here is text.
fn text(json: &[u8]) -> &str {
    std::str::from_utf8(json).unwrap_or_default()
}
