//! What must hold for what the gateway reads from the JSON text of an object.
//!
//! `cargo fuzz` drives it with libFuzzer; `crates/gateway/src/query/reader/tests.rs` drives it on stable Rust with the seeds in
//! `fuzz/seeds/reader` and random mutations of them. An input is a field selector, a line feed, and a text.

use informer_model::{FieldRequirement, FieldSelector};
use serde_json::Value;

use crate::query::reader::Paths;

/// A selector finds in the text of an object what it finds in the decoded object. A text that is none does no harm.
pub(crate) fn reader(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some((selector, json)) = text.split_once('\n') else { return };
    let Ok(selector) = FieldSelector::parse_extended(selector) else { return };
    let requirements = selector.requirements();
    let paths = Paths::new(requirements.iter().map(FieldRequirement::path));
    let found = paths.find(json, |path, value| requirements[path].seeks(value));
    let matches = requirements.iter().zip(found).all(|(one, found)| one.holds_if(found.is_some()));
    if let Ok(object @ Value::Object(_)) = serde_json::from_str(json) {
        assert_eq!(matches, selector.matches(&object), "{selector} of {json}");
    }
}
