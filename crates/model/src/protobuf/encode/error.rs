//! Why an object cannot be written.

/// Why an object cannot be written in protobuf.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("protobuf: {kind}{}", at(.path))]
pub struct ProtobufEncodeError {
    /// The field in which it is wrong, as Kubernetes spells it: `spec.containers[0].ports`.
    pub path: String,
    /// What is wrong there.
    pub kind: ProtobufEncodeErrorKind,
}

/// What is wrong at the path of a [`ProtobufEncodeError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufEncodeErrorKind {
    /// There is no such kind, or it has no protobuf form, as custom resources have none.
    #[error("no kind {kind:?} of {api_version:?} is known in protobuf")]
    UnknownKind {
        /// The apiVersion, empty if the object has none.
        api_version: String,
        /// The kind, empty if the object has none.
        kind: String,
    },
    /// A value is not what its field holds.
    #[error("expected {expected}, found {found}")]
    Mismatch {
        /// What the field holds.
        expected: &'static str,
        /// What there is.
        found: String,
    },
    /// The text is not JSON, or nested deeper than it is read.
    #[error("{0}")]
    Json(String),
    /// Values in values, deeper than can be read again.
    #[error("values are nested too deep")]
    Depth,
    /// The message of an event takes more than the 32 bits that its length has.
    #[error("the message is longer than 4 GiB")]
    Length,
}

impl ProtobufEncodeError {
    pub(super) fn new(kind: ProtobufEncodeErrorKind) -> Self {
        Self { path: String::new(), kind }
    }

    /// The error as seen from one step further out: from the object that has a field of this name.
    pub(super) fn in_field(self, name: &str) -> Self {
        self.behind(name)
    }

    /// The same for a list and the place of an item in it.
    pub(super) fn in_item(self, item: usize) -> Self {
        self.behind(&format!("[{item}]"))
    }

    fn behind(mut self, step: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }
}

fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" at {path}") }
}
