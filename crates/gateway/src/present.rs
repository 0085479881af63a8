//! How objects are written: whole, in part, as metadata, or as a row of a table.
//!
//! A whole object is written from the bytes that are kept. Everything else is made of them, for those who ask.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, LazyLock},
};

use informer::Object;
use informer_model::ObjectKey;
use informer_serving::{
    envelope::{Envelope, KindNames, partial_metadata},
    json::{Json, Outline},
    media::{self, Include},
};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    cache::{Stored, collection::Collection},
    query::Projection,
};

/// In which form objects are wanted.
#[derive(Debug, Clone)]
pub(crate) enum Form {
    /// As they are.
    Whole,
    /// These members only.
    Fields(Arc<Projection>),
    /// `PartialObjectMetadata`.
    Metadata,
    /// A row of the gateway's own table.
    Row,
    /// A row of a `Table` of Kubernetes.
    Table(Include),
}

/// A form, for the objects of one collection.
#[derive(Clone)]
pub(crate) struct Presentation {
    form: Form,
    collection: Arc<Collection>,
    /// What stands around objects for clients of Kubernetes.
    pub(crate) envelope: Envelope,
}

impl Presentation {
    pub(crate) fn new(form: Form, collection: &Arc<Collection>) -> Self {
        let api = &collection.served.api;
        let names = KindNames {
            api_version: api.api_version.clone(),
            kind: api.kind.clone(),
            list_kind: format!("{}List", api.kind),
        };
        let shape = match form {
            Form::Table(include) => media::Form::Table(include),
            Form::Metadata => media::Form::Metadata,
            _ => media::Form::Object,
        };
        let envelope = Envelope::new(names, shape, || collection.columns.clone());
        Self { form, collection: Arc::clone(collection), envelope }
    }

    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    /// The columns of the gateway's own table.
    pub(crate) fn columns(&self) -> Value {
        self.collection.columns.definitions()
    }

    /// How many bytes an object will take, where that is known beforehand.
    pub(crate) fn length(&self, object: &Object<Stored>) -> Option<usize> {
        match self.form {
            Form::Whole => Some(object.json_bytes()),
            _ => None,
        }
    }

    /// About how long it takes to write an object, in microseconds; nothing where bytes are only copied or
    /// unpacked, of which a piece has few. Everything else may have to be unpacked first.
    pub(crate) fn micros(&self) -> usize {
        match &self.form {
            Form::Whole => 0,
            Form::Metadata => 4,
            Form::Fields(projection) => 8 + projection.len() / 10,
            Form::Row | Form::Table(_) => 13,
        }
    }

    /// Writes an object as an item of a list.
    pub(crate) fn write(&self, object: &Object<Stored>, out: &mut Vec<u8>) {
        match &self.form {
            Form::Whole => object.append_json(out),
            Form::Fields(projection) => object.with_json(|json| projection.apply(json, out)),
            Form::Metadata => object.with_metadata_json(|metadata| {
                out.extend_from_slice(partial_metadata(metadata).as_bytes());
            }),
            Form::Row => object.with_json(|json| self.write_row(object.key(), json, out)),
            Form::Table(_) => object.with_json(|json| self.envelope.write_row(json, out)),
        }
    }

    /// An object on its own, in a form that stands on its own.
    pub(crate) fn one(&self, object: &Object<Stored>) -> Vec<u8> {
        if let Form::Table(_) = self.form {
            return object.with_json(|json| self.envelope.table(json)).into();
        }
        let mut text = Vec::new();
        self.write(object, &mut text);
        text
    }

    fn write_row(&self, key: &ObjectKey, text: &str, out: &mut Vec<u8>) {
        let outline = Outline::of(text);
        let json = outline.root();
        out.extend_from_slice(b"{\"cells\":");
        self.collection.columns.write_cells(&json, Timestamp::now(), out);
        let text = |pointer| json.pointer(pointer).map_or("null", Json::text);
        let named = |namespace| format!(",\"namespace\":{}", Value::from(namespace));
        let about = format!(
            ",\"created\":{},\"labels\":{},\"name\":{}{},\"uid\":{}}}",
            text("/metadata/creationTimestamp"),
            text("/metadata/labels"),
            Value::from(key.name()),
            key.namespace().map(named).unwrap_or_default(),
            text("/metadata/uid"),
        );
        out.extend_from_slice(about.as_bytes());
    }

    /// A number for this form: two that write the same have the same. `purpose` is what it is written for.
    pub(crate) fn way(&self, purpose: &str) -> u64 {
        static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        HASHES.hash_one(format!("{purpose} {:?}", self.form))
    }
}
