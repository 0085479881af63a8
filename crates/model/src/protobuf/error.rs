//! What is wrong with bytes that should be an object.

use std::fmt;

use serde::de;

/// Why bytes are not an object in protobuf.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("protobuf: {kind} at byte {position}{}", in_place(.place))]
pub struct ProtobufError {
    /// Where the error was found, in bytes from the beginning of the body.
    pub position: usize,
    /// The message, or the field of it, in which that byte is: `core/v1.PodSpec.containers`.
    pub place: String,
    /// What is wrong there.
    pub kind: ProtobufErrorKind,
}

/// What is wrong at the position of a [`ProtobufError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtobufErrorKind {
    /// The four bytes `6b 38 73 00` that every object begins with are not there.
    Prefix,
    /// A value reaches beyond the message that it is in.
    Truncated,
    /// An integer takes more than 64 bits.
    LongInteger,
    /// The number of a field is 0 or has more than 29 bits.
    FieldNumber,
    /// A wire type that is not read: a group (3 and 4), or one that does not exist (6 and 7).
    WireType(u8),
    /// A known field in another encoding than it has.
    Encoding {
        /// The wire type that the field has.
        expected: &'static str,
        /// The wire type that it came in.
        found: &'static str,
    },
    /// A text is not UTF-8.
    Utf8,
    /// Messages in messages, deeper than any object is.
    Depth,
    /// So many short messages that the object would take far more memory than its bytes.
    Memory,
    /// A time before the year 0 or after the year 9999.
    Time,
    /// A number that JSON has no form for: infinite, or not a number.
    Number,
    /// The type of an `IntOrString` is neither 0 nor 1.
    IntOrString(i64),
    /// Bytes that should be JSON are not.
    Json(String),
    /// There is no such kind, or it has no protobuf form, as custom resources have none.
    UnknownKind {
        /// The apiVersion, as it was sent.
        api_version: String,
        /// The kind, as it was sent.
        kind: String,
    },
    /// The object is in another form than protobuf or JSON.
    ContentType(String),
    /// The object is compressed or otherwise encoded.
    ContentEncoding(String),
    /// The type that is decoded into refuses the value.
    Refused(String),
    /// A field comes after one with a higher number, or once more. The object is read again in the usual order.
    Order,
}

impl fmt::Display for ProtobufErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix => f.write_str("expected the bytes 6b 38 73 00 that an object begins with"),
            Self::Truncated => f.write_str("expected more bytes before the end of the message"),
            Self::LongInteger => f.write_str("expected an integer of at most 64 bits"),
            Self::FieldNumber => f.write_str("expected a field number of 1 to 29 bits"),
            Self::WireType(group @ (3 | 4)) => write!(f, "groups (wire type {group}) are not read"),
            Self::WireType(other) => write!(f, "there is no wire type {other}"),
            Self::Encoding { expected, found } => write!(f, "expected {expected}, found {found}"),
            Self::Utf8 => f.write_str("expected UTF-8 text"),
            Self::Depth => write!(f, "messages are nested deeper than {} levels", super::DEPTH_LIMIT),
            Self::Memory => f.write_str("the object takes far more memory than its bytes"),
            Self::Time => f.write_str("expected a time in the years 0 to 9999"),
            Self::Number => f.write_str("expected a finite number"),
            Self::IntOrString(found) => {
                write!(f, "expected 0 (an integer) or 1 (a text) as the type, found {found}")
            }
            Self::Json(error) => write!(f, "expected JSON: {error}"),
            Self::UnknownKind { api_version, kind } => {
                write!(f, "no kind {kind:?} of {api_version:?} is known in protobuf")
            }
            Self::ContentType(found) => write!(f, "expected protobuf or JSON inside, found {found:?}"),
            Self::ContentEncoding(found) => write!(f, "expected no content encoding inside, found {found:?}"),
            Self::Refused(error) => f.write_str(error),
            Self::Order => f.write_str("a field is not where it should be"),
        }
    }
}

fn in_place(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(" in {place}") }
}

/// Errors are seldom, and passed through many calls: behind a pointer they cost those little.
pub(super) type Failure = Box<ProtobufError>;

pub(super) fn failure(position: usize, kind: ProtobufErrorKind) -> Failure {
    Box::new(ProtobufError { position, place: String::new(), kind })
}

impl ProtobufError {
    /// Names the place, unless one further inside has been named. What a type refuses, it refuses at `position`.
    pub(super) fn within(mut self: Box<Self>, position: usize, place: impl FnOnce() -> String) -> Failure {
        if self.place.is_empty() {
            self.place = place();
            if matches!(self.kind, ProtobufErrorKind::Refused(_)) {
                self.position = position;
            }
        }
        self
    }
}

impl de::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        failure(0, ProtobufErrorKind::Refused(message.to_string()))
    }
}
