//! Fields of objects by path. Objects come back from the server after anybody may have changed them, so a
//! field that is missing or has another type reads as empty and is replaced when written.

use jiff::Timestamp;
use serde_json::Value;

/// Writes a field and makes the objects on the way to it.
pub(super) fn put(object: &mut Value, path: &[&str], value: impl Into<Value>) {
    let mut place = object;
    for name in path {
        if !place.is_object() {
            *place = Value::Null;
        }
        place = &mut place[*name];
    }
    *place = value.into();
}

/// The text at a JSON pointer.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a JSON pointer.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// The list at a JSON pointer.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The list under a name, to change its elements.
pub(super) fn list_mut<'a>(object: &'a mut Value, pointer: &str) -> &'a mut [Value] {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

/// True while nobody has asked for the deletion of the object.
pub(super) fn is_staying(object: &Value) -> bool {
    text(object, "/metadata/deletionTimestamp").is_empty()
}

/// The spec was changed.
pub(super) fn next_generation(object: &mut Value) {
    let generation = number(object, "/metadata/generation").saturating_add(1);
    put(object, &["metadata", "generation"], generation);
}

/// A `Time`: whole seconds.
pub(super) fn time(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

/// A `MicroTime`.
pub(super) fn micro_time(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// So many seconds before.
pub(super) fn before(at: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_second(at.as_second().saturating_sub(seconds)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_of_another_type_is_replaced() {
        let mut object = json!({"metadata": "odd", "spec": null});
        put(&mut object, &["metadata", "labels", "a"], "b");
        put(&mut object, &["spec", "replicas"], 3);
        assert_eq!(object, json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 3}}));
        assert_eq!((text(&object, "/spec/replicas"), number(&object, "/metadata")), ("", 0));
    }

    #[test]
    fn times_have_whole_seconds_and_micro_times_six_digits() {
        let at: Timestamp = "2025-02-03T04:05:06.7Z".parse().unwrap();
        assert_eq!(time(at), "2025-02-03T04:05:06Z");
        assert_eq!(micro_time(at), "2025-02-03T04:05:06.700000Z");
        assert_eq!(before(Timestamp::MIN, 1), Timestamp::MIN);
    }
}
