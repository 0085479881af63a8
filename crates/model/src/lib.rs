//! The values of Kubernetes, without I/O.
//!
//! What an object is called ([`ObjectKey`]), which version of it was seen ([`ResourceVersion`]) and how it
//! is labelled ([`Labels`]). Nothing here waits, opens a socket or needs a runtime.
//!
//! What a user names: a resource ([`GroupVersionResource`], [`ResourceArg`]) or a kind ([`GroupVersionKind`]),
//! and the objects of it, by label ([`Selector`]) or by field ([`FieldSelector`]).
//!
//! What Kubernetes has built in: [`BUILTIN_KINDS`], and [`for_each_kind!`] to make code from them.
//!
//! What a server answers: messages cut out of a stream ([`FrameDecoder`]) and failures ([`Status`]). What
//! typed clients send and get: objects in protobuf ([`decode_protobuf`], [`encode_protobuf`]).
//!
//! Every parser takes any input without panicking and answers an error that names the position.

mod dns;
mod field_selector;
mod framing;
mod key;
mod kinds;
mod labels;
mod protobuf;
mod resource;
mod selector;
mod status;
mod version;

pub use dns::{is_dns_label, is_dns_subdomain, is_kind_name};
pub use field_selector::{
    FieldOperator, FieldPath, FieldRequirement, FieldRequirementError, FieldSelector, FieldSelectorError,
    FieldStep, FieldValue,
};
pub use framing::{DEFAULT_FRAME_LIMIT, FrameDecoder, FrameError, Framing};
pub use key::{KeyError, ObjectKey};
pub use kinds::{BUILTIN_KINDS, BuiltinKind};
pub use labels::{Label, LabelError, LabelSource, Labels, validate_label_key, validate_label_value};
pub use protobuf::{
    JSON_TEXT, MergeKey, MergeType, Merging, OBJECT_BYTES, ProtobufEncodeError, ProtobufEncodeErrorKind,
    ProtobufError, ProtobufErrorKind, ProtobufHead, ProtobufKind, ProtobufList, ProtobufObject, check_fields,
    complete_fields, decode_protobuf, decoded_bytes, encode_protobuf, encode_watch_event, has_protobuf,
};
pub use resource::{GroupVersionKind, GroupVersionResource, ResourceArg, ResourceArgError, qualified_name};
pub use selector::{Operator, Requirement, RequirementError, Selector, SelectorError, SelectorErrorKind};
pub use status::{Outcome, Reason, Status, StatusCause, StatusDetails, StatusMetadata};
pub use version::ResourceVersion;
