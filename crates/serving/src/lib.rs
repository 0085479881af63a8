//! What servers of the Kubernetes API have in common.
//!
//! In: the parts of a request, descriptions of what is served, objects as JSON. Out: what the request asks for
//! ([`path`], [`options`], [`media`]), and what is answered: the documents of [`discovery`], what stands around objects in a list
//! or a watch ([`envelope`]), and the columns of each kind for `kubectl get` ([`table`]), read from the text of objects
//! ([`json`]). Nothing here does I/O or knows where objects come from.

#![allow(clippy::result_large_err, reason = "the error of a request is its answer, and made once")]

pub mod discovery;
pub mod envelope;
pub mod json;
pub mod media;
pub mod options;
pub mod path;
mod quantity;
pub mod table;

pub use quantity::Quantity;
