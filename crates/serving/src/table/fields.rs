//! Reading objects by JSON pointer, where a field that is missing or of another type is like an empty one.

use informer_model::{Operator, Requirement, Selector};
use serde_json::{Map, Value};

use crate::Quantity;

/// The text at a place; empty if there is none.
pub(super) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    text_or(object, pointer, "")
}

/// The text at a place, be it empty, or what is shown when there is none.
pub(super) fn text_or<'v>(object: &'v Value, pointer: &str, missing: &'v str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or(missing)
}

/// The text at a place, or what is shown when it is empty or there is none.
pub(super) fn filled_or<'v>(object: &'v Value, pointer: &str, missing: &'v str) -> &'v str {
    Some(text(object, pointer)).filter(|text| !text.is_empty()).unwrap_or(missing)
}

/// The integer at a place, or what is shown when there is none.
pub(super) fn integer_or(object: &Value, pointer: &str, missing: i64) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(missing)
}

/// The integer at a place; zero if there is none.
pub(super) fn integer(object: &Value, pointer: &str) -> i64 {
    integer_or(object, pointer, 0)
}

/// The truth at a place, or what is shown when there is none.
pub(super) fn flag_or(object: &Value, pointer: &str, missing: bool) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(missing)
}

/// The truth at a place; false if there is none.
pub(super) fn flag(object: &Value, pointer: &str) -> bool {
    flag_or(object, pointer, false)
}

/// Whether something other than null is at a place.
pub(super) fn is_set(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).is_some_and(|value| !value.is_null())
}

/// The elements of the list at a place.
pub(super) fn items<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The map at a place.
pub(super) fn entries<'v>(object: &'v Value, pointer: &str) -> Option<&'v Map<String, Value>> {
    object.pointer(pointer).and_then(Value::as_object)
}

/// How many entries the list or map at a place has.
pub(super) fn count(object: &Value, pointer: &str) -> i64 {
    let len = match object.pointer(pointer) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(entries)) => entries.len(),
        _ => 0,
    };
    i64::try_from(len).unwrap_or(i64::MAX)
}

/// The texts in the list at a place, joined by commas.
pub(super) fn texts(object: &Value, pointer: &str) -> String {
    each_text(object, pointer, "")
}

/// One text of each element of the list at a place, joined by commas.
pub(super) fn each_text(object: &Value, list: &str, element: &str) -> String {
    items(object, list).iter().map(|item| text(item, element)).collect::<Vec<_>>().join(",")
}

/// The condition of a type: the first of that name.
pub(super) fn condition<'v>(object: &'v Value, r#type: &str) -> Option<&'v Value> {
    items(object, "/status/conditions").iter().find(|condition| text(condition, "/type") == r#type)
}

/// Whether the condition of a type is there and true.
pub(super) fn has_condition(object: &Value, r#type: &str) -> bool {
    condition(object, r#type).is_some_and(|condition| text(condition, "/status") == "True")
}

/// Whether the object waits for its finalizers.
pub(super) fn is_terminating(object: &Value) -> bool {
    is_set(object, "/metadata/deletionTimestamp")
}

/// Up to `max` entries and how many there are beside them: `a,b + 3 more...`.
pub(super) fn shortened(entries: &[&str], max: usize, separator: &str) -> String {
    match entries.get(..max) {
        Some(shown) if entries.len() > max => {
            format!("{} + {} more...", shown.join(separator), entries.len() - max)
        }
        _ => entries.join(separator),
    }
}

/// The map of labels at a place: `a=b,c=d`, or `<none>`.
pub(super) fn labels(object: &Value, pointer: &str) -> String {
    let pairs = entries(object, pointer).into_iter().flatten();
    let pairs: Vec<String> =
        pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or(""))).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// A quantity as a server writes it. What is none is shown as it is: a server would not have stored it.
pub(super) fn quantity(value: &Value) -> String {
    match (Quantity::of(value), value) {
        (Some(quantity), _) => quantity.to_string(),
        (None, Value::String(text)) => text.trim().to_owned(),
        _ => "0".to_owned(),
    }
}

/// The quantity of a resource in the map at a place; zero if there is none.
pub(super) fn quantity_of(object: &Value, pointer: &str, resource: &str) -> String {
    let value = entries(object, pointer).and_then(|quantities| quantities.get(resource));
    value.map_or_else(|| "0".to_owned(), quantity)
}

/// The label selector object at a place, in the text form of selectors; `None` if it is not a valid one.
pub(super) fn selector(object: &Value, pointer: &str) -> Option<String> {
    let mut requirements = Vec::new();
    for (key, value) in entries(object, &format!("{pointer}/matchLabels")).into_iter().flatten() {
        requirements.push(Requirement::new(key, Operator::Equals, [value.as_str()?]).ok()?);
    }
    for expression in items(object, &format!("{pointer}/matchExpressions")) {
        let operator = match text(expression, "/operator") {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return None,
        };
        let values = items(expression, "/values").iter().filter_map(Value::as_str);
        requirements.push(Requirement::new(text(expression, "/key"), operator, values).ok()?);
    }
    Some(Selector::new(requirements).to_string())
}

/// The label selector object at a place as most kinds show it: `<none>` for one that asks for nothing.
pub(super) fn selector_or_none(object: &Value, pointer: &str) -> String {
    match selector(object, pointer) {
        Some(text) if text.is_empty() => "<none>".to_owned(),
        Some(text) => text,
        None => "<error>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_quantity_is_shown_in_its_canonical_form_and_what_is_none_as_it_is() {
        let object = json!({ "capacity": { "storage": "1024Mi", "cpu": "much ", "pods": null } });
        let shown = |resource| quantity_of(&object, "/capacity", resource);
        assert_eq!(["storage", "cpu", "pods", "gpus"].map(shown), ["1Gi", "much", "0", "0"]);
        assert_eq!(quantity_of(&json!({ "capacity": [] }), "/capacity", "storage"), "0");
    }
}
