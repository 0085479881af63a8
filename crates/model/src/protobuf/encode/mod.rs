//! From JSON to protobuf, as a server writes it.
//!
//! An object comes in with its apiVersion and kind, from a value or from text, bytes come out. The schema says which
//! fields there are; they are written in the order of their numbers, and what the schema does not know is left out.
//! Go writes structs and plain scalars even if they are empty, pointers, lists and maps only if they are not.
//!
//! [`visitor`] is called by whoever reads the JSON, so that no tree is made of it, and hands the fields to [`writer`].

mod error;
#[cfg(test)]
mod tests;
mod visitor;
mod writer;

use serde::Deserializer;
use serde_json::Value;

pub use error::{ProtobufEncodeError, ProtobufEncodeErrorKind};
use visitor::One;
pub(super) use writer::Writer;

use super::{
    envelope::PREFIX,
    schema::{Field, MessageId, SCHEMA, Type},
};

type Result<T> = std::result::Result<T, ProtobufEncodeError>;

/// Whether a kind can be written in protobuf: built-in kinds and their lists can, custom resources cannot.
pub fn has_protobuf(api_version: &str, kind: &str) -> bool {
    SCHEMA.kind(api_version, kind).is_some()
}

/// Writes an object as `application/vnd.kubernetes.protobuf` has it: the bytes `6b 38 73 00` and an envelope
/// that names its apiVersion and kind, which must be those of a built-in kind or of a list of them.
///
/// Fields that the kind does not have are left out; null stands for the empty value of every type.
/// [`decode_protobuf`](crate::decode_protobuf) makes the same object of it again, as a server shows it.
///
/// ```
/// use informer_model::{decode_protobuf, encode_protobuf};
/// use serde_json::json;
///
/// let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "k": "v" } });
/// assert_eq!(decode_protobuf(&encode_protobuf(&map)?).unwrap(), map);
///
/// let wrong = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "k": 7 } });
/// let error = encode_protobuf(&wrong).unwrap_err();
/// assert_eq!(error.to_string(), "protobuf: expected a text, found the number 7 at data.k");
/// # Ok::<(), informer_model::ProtobufEncodeError>(())
/// ```
pub fn encode_protobuf(object: &Value) -> Result<Vec<u8>> {
    ProtobufKind::of(object)?.encode(object)
}

/// Writes an event of a watch: its length in four bytes, the type (`ADDED`) and the object.
///
/// ```
/// let pod = serde_json::json!({ "apiVersion": "v1", "kind": "Pod" });
/// let event = informer_model::encode_watch_event("BOOKMARK", &pod)?;
/// assert_eq!(usize::from(event[3]), event.len() - 4);
/// # Ok::<(), informer_model::ProtobufEncodeError>(())
/// ```
pub fn encode_watch_event(r#type: &str, object: &Value) -> Result<Vec<u8>> {
    ProtobufKind::of(object)?.encode_event(r#type, object)
}

/// Writes objects of one kind from whatever can be deserialized: a `&Value`, or text without making values of it.
///
/// ```
/// use informer_model::{ProtobufKind, decode_protobuf};
///
/// let mut text = serde_json::Deserializer::from_str(r#"{ "metadata": { "name": "a" } }"#);
/// let bytes = ProtobufKind::new("v1", "ConfigMap")?.encode(&mut text)?;
/// assert_eq!(decode_protobuf(&bytes).unwrap()["metadata"]["name"], "a");
/// # Ok::<(), informer_model::ProtobufEncodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ProtobufKind {
    api_version: String,
    kind: String,
    message: MessageId,
}

impl ProtobufKind {
    /// The kind of an apiVersion: a built-in one, or a list of those.
    pub fn new(api_version: &str, kind: &str) -> Result<Self> {
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        match SCHEMA.kind(&api_version, &kind) {
            Some(message) => Ok(Self { api_version, kind, message }),
            None => Err(ProtobufEncodeError::new(ProtobufEncodeErrorKind::UnknownKind { api_version, kind })),
        }
    }

    fn of(object: &Value) -> Result<Self> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        Self::new(text("apiVersion"), text("kind"))
    }

    /// An object of this kind, see [`encode_protobuf`]. What it says of its apiVersion and kind does not count.
    pub fn encode<'de>(&self, object: impl Deserializer<'de>) -> Result<Vec<u8>> {
        let mut writer = Writer::default();
        self.write(object, &mut writer)?;
        Ok(writer.bytes)
    }

    /// An event about an object of this kind, see [`encode_watch_event`].
    pub fn encode_event<'de>(&self, r#type: &str, object: impl Deserializer<'de>) -> Result<Vec<u8>> {
        let mut writer = Writer::default();
        writer.bytes.extend_from_slice(&[0; 4]);
        writer.delimited(1, r#type.as_bytes());
        writer.message(2, |writer| writer.message(1, |writer| self.write(object, writer)))?;
        let length = u32::try_from(writer.bytes.len() - 4);
        let length = length.map_err(|_| ProtobufEncodeError::new(ProtobufEncodeErrorKind::Length))?;
        writer.bytes[..4].copy_from_slice(&length.to_be_bytes());
        Ok(writer.bytes)
    }

    fn write<'de>(&self, object: impl Deserializer<'de>, writer: &mut Writer) -> Result<()> {
        self.write_start(writer)?;
        One { writer, number: 2, r#type: Type::Message(self.message), depth: 0 }.read(object)?;
        writer.bytes.extend_from_slice(ProtobufList::END);
        Ok(())
    }

    /// How an envelope begins.
    fn write_start(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes.extend_from_slice(&PREFIX);
        writer.message(1, |writer| {
            writer.delimited(1, self.api_version.as_bytes());
            writer.delimited(2, self.kind.as_bytes());
            Ok(())
        })
    }
}

/// Writes a list item by item, for those who do not want to have all of it as JSON.
///
/// The length of all items stands before the first of them. So they are written first, into one buffer or many,
/// and sent between [`start`](Self::start) and [`END`](Self::END).
///
/// ```
/// use informer_model::{ProtobufList, decode_protobuf};
/// use serde_json::json;
///
/// let list = ProtobufList::new("v1", "PodList")?;
/// let mut items = Vec::new();
/// list.write_item(&json!({ "metadata": { "name": "a" } }), &mut items)?;
/// let start = list.start(&json!({ "resourceVersion": "7" }), items.len())?;
/// let list = decode_protobuf(&[&start, &items[..], ProtobufList::END].concat()).unwrap();
/// assert_eq!(list["items"][0]["metadata"]["name"], "a");
/// # Ok::<(), informer_model::ProtobufEncodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ProtobufList {
    kind: ProtobufKind,
    metadata: Field,
    items: Field,
}

impl ProtobufList {
    /// What stands after the last item.
    pub const END: &[u8] = b"\x1a\x00\x22\x00";

    /// A list of a kind that is a list: `v1` and `PodList`.
    pub fn new(api_version: &str, kind: &str) -> Result<Self> {
        let kind = ProtobufKind::new(api_version, kind)?;
        match *SCHEMA.fields(SCHEMA.message(kind.message)) {
            [metadata, items] if items.name == "items" => Ok(Self { kind, metadata, items }),
            _ => {
                let ProtobufKind { api_version, kind, .. } = kind;
                Err(ProtobufEncodeError::new(ProtobufEncodeErrorKind::UnknownKind { api_version, kind }))
            }
        }
    }

    /// Writes one item behind the others. Its apiVersion and kind are those that the list says.
    pub fn write_item<'de>(&self, item: impl Deserializer<'de>, out: &mut Vec<u8>) -> Result<()> {
        let mut writer = Writer { bytes: std::mem::take(out), ..Writer::default() };
        let start = writer.bytes.len();
        let Field { number, r#type, .. } = self.items;
        let written = One { writer: &mut writer, number, r#type, depth: 1 }.read(item);
        *out = writer.bytes;
        written.inspect_err(|_| out.truncate(start))
    }

    /// What stands before the items, which have so many bytes in all.
    pub fn start(&self, metadata: &Value, items: usize) -> Result<Vec<u8>> {
        let mut fields = Writer::default();
        let Field { number, r#type, .. } = self.metadata;
        One { writer: &mut fields, number, r#type, depth: 1 }.read(metadata)?;
        let mut writer = Writer::default();
        self.kind.write_start(&mut writer)?;
        writer.length(2, fields.bytes.len() + items);
        writer.bytes.extend_from_slice(&fields.bytes);
        Ok(writer.bytes)
    }
}
