//! Reading objects by JSON pointer, where a field that is missing or of another type is like an empty one.

use std::{borrow::Cow, collections::BTreeMap};

use informer_model::{Operator, Requirement, Selector};
use serde_json::Value;

use crate::{Quantity, json::Json};

/// The text at a place; empty if there is none.
pub(super) fn text<'v>(object: &'v Json<'_>, pointer: &str) -> &'v str {
    text_or(object, pointer, "")
}

/// The text at a place, be it empty, or what is shown when there is none.
pub(super) fn text_or<'v>(object: &'v Json<'_>, pointer: &str, missing: &'v str) -> &'v str {
    object.pointer(pointer).and_then(Json::as_str).unwrap_or(missing)
}

/// The text at a place, or what is shown when it is empty or there is none.
pub(super) fn filled_or<'v>(object: &'v Json<'_>, pointer: &str, missing: &'v str) -> &'v str {
    Some(text(object, pointer)).filter(|text| !text.is_empty()).unwrap_or(missing)
}

/// The integer at a place, or what is shown when there is none.
pub(super) fn integer_or(object: &Json<'_>, pointer: &str, missing: i64) -> i64 {
    object.pointer(pointer).and_then(Json::as_i64).unwrap_or(missing)
}

/// The integer at a place; zero if there is none.
pub(super) fn integer(object: &Json<'_>, pointer: &str) -> i64 {
    integer_or(object, pointer, 0)
}

/// The truth at a place, or what is shown when there is none.
pub(super) fn flag_or(object: &Json<'_>, pointer: &str, missing: bool) -> bool {
    object.pointer(pointer).and_then(Json::as_bool).unwrap_or(missing)
}

/// The truth at a place; false if there is none.
pub(super) fn flag(object: &Json<'_>, pointer: &str) -> bool {
    flag_or(object, pointer, false)
}

/// Whether something other than null is at a place.
pub(super) fn is_set(object: &Json<'_>, pointer: &str) -> bool {
    object.pointer(pointer).is_some_and(|value| !value.is_null())
}

/// The elements of the list at a place.
pub(super) fn items<'v, 'j>(object: &'v Json<'j>, pointer: &str) -> &'v [Json<'j>] {
    object.pointer(pointer).and_then(Json::as_array).unwrap_or_default()
}

/// The map at a place.
pub(super) fn entries<'v, 'j>(object: &'v Json<'j>, pointer: &str) -> BTreeMap<Cow<'j, str>, &'v Json<'j>> {
    object.pointer(pointer).and_then(Json::as_object).unwrap_or_default()
}

/// How many entries the list or map at a place has.
pub(super) fn count(object: &Json<'_>, pointer: &str) -> i64 {
    i64::try_from(items(object, pointer).len() + entries(object, pointer).len()).unwrap_or(i64::MAX)
}

/// The texts in the list at a place, joined by commas.
pub(super) fn texts(object: &Json<'_>, pointer: &str) -> String {
    each_text(object, pointer, "")
}

/// One text of each element of the list at a place, joined by commas.
pub(super) fn each_text(object: &Json<'_>, list: &str, element: &str) -> String {
    items(object, list).iter().map(|item| text(item, element)).collect::<Vec<_>>().join(",")
}

/// The condition of a type: the first of that name.
pub(super) fn condition<'v, 'j>(object: &'v Json<'j>, r#type: &str) -> Option<&'v Json<'j>> {
    items(object, "/status/conditions").iter().find(|condition| text(condition, "/type") == r#type)
}

/// Whether the condition of a type is there and true.
pub(super) fn has_condition(object: &Json<'_>, r#type: &str) -> bool {
    condition(object, r#type).is_some_and(|condition| text(condition, "/status") == "True")
}

/// Whether the object waits for its finalizers.
pub(super) fn is_terminating(object: &Json<'_>) -> bool {
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
pub(super) fn labels(object: &Json<'_>, pointer: &str) -> String {
    let pairs = entries(object, pointer).into_iter();
    let pairs: Vec<String> = pairs.map(|(key, value)| format!("{key}={}", text(value, ""))).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// A quantity as a server writes it. What is none is shown as it is: a server would not have stored it.
pub(super) fn quantity(json: &Json<'_>) -> String {
    let value = json.value();
    match (Quantity::of(&value), value) {
        (Some(quantity), _) => quantity.to_string(),
        (None, Value::String(text)) => text.trim().to_owned(),
        _ => "0".to_owned(),
    }
}

/// The quantity of a resource in the map at a place; zero if there is none.
pub(super) fn quantity_of(object: &Json<'_>, pointer: &str, resource: &str) -> String {
    let value = object.pointer(pointer).and_then(|quantities| quantities.get(resource));
    value.map_or_else(|| "0".to_owned(), quantity)
}

/// The label selector object at a place, in the text form of selectors; `None` if it is not a valid one.
pub(super) fn selector(object: &Json<'_>, pointer: &str) -> Option<String> {
    let mut requirements = Vec::new();
    for (key, value) in entries(object, &format!("{pointer}/matchLabels")) {
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
        let values = items(expression, "/values").iter().filter_map(Json::as_str);
        requirements.push(Requirement::new(text(expression, "/key"), operator, values).ok()?);
    }
    Some(Selector::new(requirements).to_string())
}

/// The label selector object at a place as most kinds show it: `<none>` for one that asks for nothing.
pub(super) fn selector_or_none(object: &Json<'_>, pointer: &str) -> String {
    match selector(object, pointer) {
        Some(text) if text.is_empty() => "<none>".to_owned(),
        Some(text) => text,
        None => "<error>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Outline;

    #[test]
    fn a_quantity_is_shown_in_its_canonical_form_and_what_is_none_as_it_is() {
        let outline = Outline::of(r#"{"capacity":{"storage":"1024Mi","cpu":"much ","pods":null},"none":[]}"#);
        let object = outline.root();
        let shown = |resource| quantity_of(&object, "/capacity", resource);
        assert_eq!(["storage", "cpu", "pods", "gpus"].map(shown), ["1Gi", "much", "0", "0"]);
        assert_eq!(quantity_of(&object, "/none", "storage"), "0");
    }
}
