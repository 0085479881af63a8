//! How objects are written: whole, in part, as metadata, or as a row of a table.
//!
//! A whole object is written from the bytes that are kept. Everything else is made of them, for those who ask.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, LazyLock},
};

use informer::{Object, RawObject};
use informer_serving::{
    envelope::{Envelope, KindNames, partial_metadata},
    media::{self, Include},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{cache::collection::Collection, query::Projection};

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
    pub(crate) fn length(&self, object: &Object<RawObject>) -> Option<usize> {
        match self.form {
            Form::Whole => Some(object.json().len()),
            _ => None,
        }
    }

    /// How much is written in one go of what may take so much: less of what takes long to write, so that nobody waits.
    pub(crate) fn piece(&self, bytes: usize) -> usize {
        match self.form {
            Form::Whole | Form::Metadata => bytes,
            Form::Fields(_) => bytes / 4,
            Form::Row | Form::Table(_) => bytes / 16,
        }
    }

    /// Writes an object as an item of a list.
    pub(crate) fn write(&self, object: &Object<RawObject>, out: &mut Vec<u8>) {
        match &self.form {
            Form::Whole => out.extend_from_slice(object.json().as_bytes()),
            Form::Fields(projection) => projection.apply(object.json(), out),
            Form::Metadata => out.extend_from_slice(partial_metadata(object.metadata_json()).as_bytes()),
            Form::Row => out.extend_from_slice(self.row(object).to_string().as_bytes()),
            Form::Table(_) => out.extend_from_slice(self.envelope.row(&value(object)).to_string().as_bytes()),
        }
    }

    /// An object on its own, in a form that stands on its own.
    pub(crate) fn one(&self, object: &Object<RawObject>) -> Vec<u8> {
        if let Form::Table(_) = self.form {
            return self.envelope.table(&value(object)).into();
        }
        let mut text = Vec::new();
        self.write(object, &mut text);
        text
    }

    fn row(&self, object: &Object<RawObject>) -> Value {
        let value = value(object);
        let mut row = json!({
            "name": object.key().name(),
            "uid": value.pointer("/metadata/uid"),
            "created": value.pointer("/metadata/creationTimestamp"),
            "labels": value.pointer("/metadata/labels"),
            "cells": self.collection.columns.cells(&value, Timestamp::now()),
        });
        if let Some(namespace) = object.key().namespace() {
            row["namespace"] = namespace.into();
        }
        row
    }

    /// A number for this form: two that write the same have the same. `purpose` is what it is written for.
    pub(crate) fn way(&self, purpose: &str) -> u64 {
        static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        HASHES.hash_one(format!("{purpose} {:?}", self.form))
    }
}

/// The object decoded; one that is nested too deeply shows its metadata alone.
fn value(object: &Object<RawObject>) -> Value {
    object.value().unwrap_or_else(|_| {
        let metadata: Value = serde_json::from_str(object.metadata_json()).unwrap_or_default();
        json!({"metadata": metadata})
    })
}
