//! Objects in protobuf, as servers and typed clients of Kubernetes write them.
//!
//! One decoder reads every built-in kind by a table ([`schema`]) instead of code for each type. [`wire`] reads tags and
//! lengths, [`envelope`] finds out the kind, [`de`] gives the fields of a message to serde, [`form`] knows the messages
//! that are something else in JSON, and [`json`] writes what is read as text.

mod check;
mod complete;
mod de;
mod encode;
mod envelope;
mod error;
mod form;
mod json;
mod memory;
mod merging;
mod object;
mod order;
mod schema;
mod text;
mod wire;

use serde_json::Value;

pub use check::check_fields;
pub use complete::complete_fields;
pub use encode::{
    ProtobufEncodeError, ProtobufEncodeErrorKind, ProtobufKind, ProtobufList, encode_protobuf,
    encode_watch_event, has_protobuf,
};
pub use error::{ProtobufError, ProtobufErrorKind};
pub use memory::decoded_bytes;
pub use merging::{MergeType, Merging};
pub use object::{ProtobufHead, ProtobufObject};
pub use schema::MergeKey;

/// How deep messages may be nested. Objects of Kubernetes are about twenty deep, schemas in custom resource
/// definitions two for each level of theirs.
const DEPTH_LIMIT: usize = 100;

/// A newtype of this name is decoded from the JSON text of an object, as bytes: [`ProtobufObject::decode`] writes it
/// on the way, without anything in between.
pub const JSON_TEXT: &str = "informer_model::JSON_TEXT";

/// A newtype of this name is decoded from the object itself, as bytes: in protobuf, in an envelope, without
/// `managedFields` unless they are [kept](ProtobufObject::keep_managed_fields). From JSON it is a newtype like any other.
pub const OBJECT_BYTES: &str = "informer_model::OBJECT_BYTES";

/// Reads an object as `application/vnd.kubernetes.protobuf` has it: the bytes `6b 38 73 00` and an envelope
/// that names its apiVersion and kind.
///
/// What comes out is what a server answers for that object in JSON, with `apiVersion` and `kind`. Protobuf
/// cannot tell an empty list, map or text from none: where JSON leaves out the empty one it is left out, and
/// a list that JSON always has is `null`, or `[]` for the `items` of a list kind. Fields that are not known,
/// from newer clients, are passed over. Quantities stay as they were written.
///
/// Any bytes give an object or an error. Memory is bounded by the length of `body`, at about the factor that
/// JSON has.
///
/// ```
/// use informer_model::decode_protobuf;
///
/// let body = b"k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x06\n\x04\n\x02qa";
/// let json = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"qa"},"spec":{},"status":{}}"#;
/// assert_eq!(decode_protobuf(body)?.to_string(), json);
///
/// let error = decode_protobuf(&body[..body.len() - 1]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "protobuf: expected more bytes before the end of the message at byte 22 in runtime.Unknown.raw"
/// );
/// # Ok::<(), informer_model::ProtobufError>(())
/// ```
pub fn decode_protobuf(body: &[u8]) -> Result<Value, ProtobufError> {
    ProtobufObject::new(body)?.keep_managed_fields().any_depth().decode()
}
