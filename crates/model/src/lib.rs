//! The values of Kubernetes, without I/O.
//!
//! What an object is called ([`ObjectKey`]), which version of it was seen ([`ResourceVersion`]) and how it
//! is labelled ([`Labels`]). Nothing here waits, opens a socket or needs a runtime.
//!
//! Every parser takes any input without panicking and answers an error that names the position.

mod key;
mod labels;
mod version;

pub use key::{KeyError, ObjectKey};
pub use labels::{Label, LabelError, LabelSource, Labels, validate_label_key, validate_label_value};
pub use version::ResourceVersion;
