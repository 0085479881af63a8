//! What all requests to an API server have in common, whoever sends them: a source, discovery, events, a leader.
//!
//! In goes a request. Out comes the answer, part by part or as one document, or a [`SourceError`] in words for a person.

mod answer;
mod error;
mod failure;

pub(crate) use answer::{Answer, Part, open, read_document};
pub use error::SourceError;
