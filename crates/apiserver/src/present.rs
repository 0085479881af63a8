//! How objects leave the server: encoded in the form, and in the version, that was asked for.

use std::sync::Arc;

use bytes::Bytes;
use informer_serving::{
    envelope::{Envelope, EventType, KindNames, partial_metadata},
    media::{Form, Include},
};

use crate::{
    catalog::{Resource, Version},
    store::{Change, Stored},
};

/// A resource in the version and in the form that a client wants.
pub(crate) struct Presentation {
    resource: Arc<Resource>,
    version: Version,
    pub envelope: Envelope,
}

impl Presentation {
    pub(crate) fn new(resource: Arc<Resource>, version: &Version, form: Form) -> Self {
        let names = KindNames {
            api_version: resource.api_version(&version.name),
            kind: resource.kind.clone(),
            list_kind: resource.list_kind.clone(),
        };
        let envelope = Envelope::new(names, form, || resource.columns(version));
        Self { resource, version: version.clone(), envelope }
    }

    /// One object on its own.
    pub(crate) fn object(&self, object: &Stored) -> Bytes {
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

    /// An event of a watch about one state of an object.
    pub(crate) fn event(&mut self, r#type: EventType, object: &Stored) -> Bytes {
        let frame = r#type.frame(&self.object(object));
        self.envelope.mark_columns_told();
        frame
    }

    /// An event of a watch about a change; encoded once for all who see it in this form.
    pub(crate) fn change(&mut self, r#type: EventType, change: &Change) -> Bytes {
        let encode = || match (r#type, &change.before) {
            (EventType::Deleted, Some(before)) if !change.deleted => {
                r#type.frame(&self.object(&self.at_version(before, change.version)))
            }
            _ => r#type.frame(&self.object(&change.after)),
        };
        let preferred = self.resource.versions.first().is_some_and(|first| first.name == self.version.name);
        if !preferred || self.envelope.owes_columns() {
            let frame = encode();
            self.envelope.mark_columns_told();
            return frame;
        }
        let form = match self.envelope.form() {
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
}

/// What was encoded here is text.
fn text(json: &[u8]) -> &str {
    std::str::from_utf8(json).unwrap_or_default()
}
