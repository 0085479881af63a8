//! One state of one object, as it is kept: encoded, with what reading needs beside the bytes.

use bytes::Bytes;
use informer_model::{KeyError, Labels, ObjectKey};
use informer_serving::envelope::type_meta;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{builtin::selectable_value, catalog::Resource};

/// A state of an object. It never changes; a write makes another.
#[derive(Debug)]
pub(crate) struct Stored {
    pub key: ObjectKey,
    pub version: u64,
    pub labels: Labels,
    /// What a field selector may ask for, in the order of [`Resource::selectable_fields`].
    fields: Box<[Box<str>]>,
    /// `{"kind":…,"apiVersion":…,` and the rest of the object.
    json: Bytes,
    /// Where the rest begins.
    rest: usize,
    /// The name of the version in which it is encoded.
    encoded_in: Box<str>,
}

impl Stored {
    /// Encodes an object. Its metadata must already name it and carry `version`.
    pub(crate) fn new(
        resource: &Resource,
        encoded_in: &str,
        version: u64,
        object: &Value,
    ) -> Result<Self, KeyError> {
        let metadata = &object["metadata"];
        let key = ObjectKey::new(metadata["namespace"].as_str(), metadata["name"].as_str().unwrap_or(""))?;
        let labels = metadata["labels"].as_object().map(labels).unwrap_or_default();
        let fields = fields(resource, object);
        let mut json = type_meta(&resource.kind, &resource.api_version(encoded_in)).into_bytes();
        let rest = json.len();
        let mut first = true;
        for (name, value) in object.as_object().into_iter().flatten() {
            if name == "kind" || name == "apiVersion" {
                continue;
            }
            if !std::mem::take(&mut first) {
                json.push(b',');
            }
            // Writing a value into a buffer cannot fail: keys are text and nothing here does I/O.
            let _ = serde_json::to_writer(&mut json, name);
            json.push(b':');
            let _ = serde_json::to_writer(&mut json, value);
        }
        json.push(b'}');
        // A copy has the right size; a shrunk buffer may keep its room, as the allocator pleases.
        let json = Bytes::copy_from_slice(&json);
        Ok(Self { key, version, labels, fields, json, rest, encoded_in: encoded_in.into() })
    }

    /// The same state for a resource that can be selected by other fields.
    pub(super) fn refiled(&self, resource: &Resource) -> Self {
        let object = self.decode();
        let (key, labels) = (self.key.clone(), self.labels.clone());
        let (json, encoded_in) = (self.json.clone(), self.encoded_in.clone());
        let fields = fields(resource, &object);
        Self { key, version: self.version, labels, fields, json, rest: self.rest, encoded_in }
    }

    /// The value of a selectable field by its place in [`Resource::selectable_fields`].
    pub(crate) fn field(&self, place: usize) -> &str {
        self.fields.get(place).map_or("", |value| value)
    }

    /// The whole object in a version. It costs nothing in the version in which it was written.
    pub(crate) fn json(&self, resource: &Resource, version: &str) -> Bytes {
        if *self.encoded_in == *version {
            return self.json.clone();
        }
        let mut json = type_meta(&resource.kind, &resource.api_version(version)).into_bytes();
        json.extend_from_slice(self.rest());
        json.into()
    }

    /// The object without `kind` and `apiVersion` and without the brace that opens it.
    pub(crate) fn rest(&self) -> &[u8] {
        self.json.get(self.rest..).unwrap_or_default()
    }

    /// The object as a value, for those who change it.
    pub(crate) fn value(&self, resource: &Resource, version: &str) -> Value {
        let mut value = self.decode();
        if *self.encoded_in != *version {
            value["apiVersion"] = resource.api_version(version).into();
        }
        value
    }

    /// What was written here is read back, however deep it is.
    fn decode(&self) -> Value {
        let mut reader = serde_json::Deserializer::from_slice(&self.json);
        reader.disable_recursion_limit();
        Value::deserialize(&mut reader).unwrap_or_default()
    }

    /// `metadata` as it is encoded.
    pub(crate) fn metadata(&self) -> &str {
        #[derive(Deserialize)]
        struct Object<'a> {
            #[serde(borrow)]
            metadata: &'a RawValue,
        }
        serde_json::from_slice::<Object<'_>>(&self.json).map_or("{}", |object| object.metadata.get())
    }

    /// The name of the version in which it is encoded.
    pub(crate) fn encoded_in(&self) -> &str {
        &self.encoded_in
    }

    /// How many bytes the object has.
    pub(crate) fn len(&self) -> usize {
        self.json.len()
    }
}

fn fields(resource: &Resource, object: &Value) -> Box<[Box<str>]> {
    resource.selectable_fields().map(|path| selectable_value(resource, object, path).into()).collect()
}

fn labels(labels: &Map<String, Value>) -> Labels {
    labels.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}
