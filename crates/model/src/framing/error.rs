//! What can be wrong with a stream.

use bytes::Bytes;

/// Why a stream cannot be cut into messages.
///
/// Offsets are in bytes from the beginning of the stream, after decompression unless they say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A message is larger than the decoder may hold.
    #[error("the message at byte {offset} of the stream is over the limit of {limit} bytes{}", size(*.announced))]
    TooLarge {
        /// Where the message begins.
        offset: u64,
        /// The limit it is over.
        limit: usize,
        /// Its length, where it stands before the message.
        announced: Option<u32>,
    },
    /// A byte that no JSON value has at this place.
    #[error("unexpected `{}` at byte {offset} of the stream; expected {expected}", .found.escape_ascii())]
    Unexpected {
        /// Where the byte stands.
        offset: u64,
        /// The byte.
        found: u8,
        /// What should stand there.
        expected: &'static str,
    },
    /// A bracket is closed by one of the other kind.
    #[error(
        "unexpected `{found}` at byte {offset} of the stream; the innermost open bracket needs `{expected}`"
    )]
    Mismatched {
        /// Where the closing bracket stands.
        offset: u64,
        /// The closing bracket.
        found: char,
        /// The one that should close.
        expected: char,
    },
    /// Objects and arrays lie too deep in each other.
    #[error("the bracket at byte {offset} of the stream is nested deeper than the limit of {limit}")]
    TooDeep {
        /// Where the bracket stands that is one too many.
        offset: u64,
        /// How many may be open at once.
        limit: usize,
    },
    /// The stream ended inside a message.
    #[error("the stream ended inside a message: it began at byte {offset} and {pending} bytes of it came")]
    Truncated {
        /// Where the message begins, or the length before it.
        offset: u64,
        /// How many bytes of it came.
        pending: usize,
    },
    /// The stream ended between two messages, but inside a gzip member.
    #[error(
        "the stream ended inside a gzip member: it began at compressed byte {offset} and {pending} bytes of it came"
    )]
    TruncatedGzip {
        /// Where the member begins in the compressed stream.
        offset: u64,
        /// How many compressed bytes of it came.
        pending: u64,
    },
    /// The compressed bytes are not gzip, or were damaged.
    #[error("bad gzip data at compressed byte {offset} of the stream: {problem}")]
    Gzip {
        /// How far the compressed stream was read when this was noticed.
        offset: u64,
        /// What was noticed.
        problem: String,
    },
    /// A message was left out, because the decoder was told to skip such ones. The stream goes on.
    #[error("{reason}")]
    Skipped {
        /// How the message begins: all of one that is only too deep, else at most 64 KiB.
        beginning: Bytes,
        /// Why it was left out.
        reason: Box<FrameError>,
    },
}

impl FrameError {
    /// Whether the stream was right as far as it came: it only ended too early.
    pub fn is_truncated(&self) -> bool {
        matches!(self, Self::Truncated { .. } | Self::TruncatedGzip { .. })
    }
}

fn size(announced: Option<u32>) -> String {
    announced.map_or(String::new(), |length| format!(": it announces {length}"))
}
