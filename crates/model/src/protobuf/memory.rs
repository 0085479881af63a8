//! What an object takes in memory when it is decoded into the type that k8s-openapi has for its kind.
//!
//! The types are made from the same definitions as the schema: a struct has a place for each field, set or not, which is
//! most of what a decoded object takes. This adds up what Rust's layout makes of them; nothing is decoded.

use serde_json::{Map, Value};

use super::schema::{Count, Field, Form, Message, SCHEMA, Type};

/// A text, a list, or bytes: a pointer and two lengths.
const TEXT: usize = 24;
const MAP: usize = 32;
/// Any JSON.
const JSON: usize = 32;
/// Entries for which a node of a map has room, and how many it has in the end when they come in order.
const NODE: usize = 11;
const NODE_FILLED: usize = 6;
/// The least that a list makes room for, unless its items are long.
const LEAST_ITEMS: usize = 4;
const LONG_ITEM: usize = 1_024;

/// About how many bytes an object takes that is decoded into its type of k8s-openapi, or, where the schema does not have
/// its kind, into a [`Value`]. `managedFields` are not counted in types: informers leave them out.
///
/// ```
/// use informer_model::decoded_bytes;
/// use serde_json::json;
///
/// let pod = |object| decoded_bytes("v1", "Pod", &object);
/// assert!(pod(json!({})) > 1_000, "every field has its place, set or not");
/// assert!(pod(json!({ "metadata": { "labels": { "app": "web" } } })) > pod(json!({})) + 500, "a map is dear");
/// let metadata = |object| decoded_bytes("meta.k8s.io/v1", "PartialObjectMetadata", &object);
/// assert!(metadata(json!({ "spec": { "nodeName": "n" } })) < pod(json!({})));
/// ```
pub fn decoded_bytes(api_version: &str, kind: &str, object: &Value) -> usize {
    match (SCHEMA.kind(api_version, kind).map(|id| SCHEMA.message(id)), object) {
        (Some(message), Value::Object(fields)) => size(message, &mut Vec::new()) + beyond(message, fields),
        _ => JSON + json(object),
    }
}

/// What the struct itself takes.
fn size(message: &Message, within: &mut Vec<(&'static str, &'static str)>) -> usize {
    let name = (message.package, message.name);
    if within.contains(&name) {
        // What contains itself does so behind a pointer.
        return 8;
    }
    within.push(name);
    let places = SCHEMA.fields(message).iter().map(|field| place(field, within)).sum::<usize>();
    within.pop();
    places.next_multiple_of(8)
}

/// What a field takes in its struct, set or not.
fn place(field: &Field, within: &mut Vec<(&'static str, &'static str)>) -> usize {
    match (field.count, field.r#type) {
        (Count::List, _) => TEXT,
        (Count::Map, _) => MAP,
        (Count::One | Count::Embedded, r#type) => value_size(r#type, within),
    }
}

fn value_size(r#type: Type, within: &mut Vec<(&'static str, &'static str)>) -> usize {
    match r#type {
        Type::Bool => 1,
        Type::Int32 => 8,
        Type::Int64 | Type::Double => 16,
        Type::Text | Type::Bytes | Type::Texts => TEXT,
        Type::Message(id) => {
            let message = SCHEMA.message(id);
            match message.form {
                Form::Object => size(message, within),
                Form::Quantity | Form::IntOrString | Form::Time | Form::MicroTime => TEXT,
                Form::RawJson | Form::RawExtension | Form::ListOrField | Form::FieldOrBool => JSON,
            }
        }
    }
}

/// What the fields of an object take elsewhere.
fn beyond(message: &Message, object: &Map<String, Value>) -> usize {
    let own = SCHEMA.fields(message).iter().map(|field| match (field.count, field.r#type) {
        (Count::Embedded, Type::Message(id)) => beyond(SCHEMA.message(id), object),
        _ if field.name == "managedFields" => 0,
        _ => object.get(field.name).map_or(0, |value| beyond_field(field, value)),
    });
    own.sum()
}

fn beyond_field(field: &Field, value: &Value) -> usize {
    let each = || value_size(field.r#type, &mut Vec::new());
    let inside = |value: &Value| beyond_value(field.r#type, value);
    match (field.count, value) {
        (Count::List, Value::Array(items)) => {
            list(items.len(), each()) + items.iter().map(inside).sum::<usize>()
        }
        (Count::Map, Value::Object(entries)) => {
            let texts = entries.iter().map(|(key, value)| text(key.len()) + inside(value));
            map(entries.len(), TEXT + each()) + texts.sum::<usize>()
        }
        _ => inside(value),
    }
}

fn beyond_value(r#type: Type, value: &Value) -> usize {
    match (r#type, value) {
        (Type::Message(id), Value::Object(fields)) if SCHEMA.message(id).form == Form::Object => {
            beyond(SCHEMA.message(id), fields)
        }
        (Type::Message(id), _) if matches!(SCHEMA.message(id).form, Form::Time | Form::MicroTime) => 0,
        (Type::Bytes, Value::String(base64)) => text(base64.len() / 4 * 3),
        _ => json(value),
    }
}

/// What any JSON takes beside its [`Value`].
fn json(value: &Value) -> usize {
    match value {
        Value::String(value) => text(value.len()),
        Value::Array(items) => list(items.len(), JSON) + items.iter().map(json).sum::<usize>(),
        Value::Object(entries) => {
            let inside = entries.iter().map(|(key, value)| text(key.len()) + json(value));
            map(entries.len(), TEXT + JSON) + inside.sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Allocators give eights.
fn text(length: usize) -> usize {
    length.next_multiple_of(8)
}

/// Lists double while they grow.
fn list(items: usize, each: usize) -> usize {
    let least = if each > LONG_ITEM { 1 } else { LEAST_ITEMS };
    if items == 0 { 0 } else { items.next_power_of_two().max(least) * each }
}

/// Maps are trees whose nodes have room for many entries.
fn map(entries: usize, each: usize) -> usize {
    let nodes = match entries {
        0 => 0,
        1..=NODE => 1,
        many => many.div_ceil(NODE_FILLED),
    };
    nodes * (NODE * each + 16)
}
