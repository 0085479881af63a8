//! What one object has and another has not.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    element,
    fields::{FieldSet, Node},
    schema::{Shape, Type, set_element},
};

/// The fields in which a new object differs from an old one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Changes {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

impl Changes {
    /// What became of an object of a type.
    pub(crate) fn between(r#type: Type<'_>, old: &Value, new: &Value) -> Self {
        let Change { added, modified, removed } = change(r#type, Some(old), Some(new));
        Self { added: added.below, modified: modified.below, removed: removed.below }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Leaves out what a write cannot change.
    pub(crate) fn filtered(self, filter: impl Fn(FieldSet) -> FieldSet) -> Self {
        Self { added: filter(self.added), modified: filter(self.modified), removed: filter(self.removed) }
    }
}

/// What became of one value.
#[derive(Default)]
struct Change {
    added: Node,
    modified: Node,
    removed: Node,
}

impl Change {
    fn put(&mut self, name: &str, spelled: impl Fn(&str) -> String, below: Self) {
        // Most values stay as they are.
        for (set, node) in [
            (&mut self.added, below.added),
            (&mut self.modified, below.modified),
            (&mut self.removed, below.removed),
        ] {
            if node != Node::default() {
                set.below.put(spelled(name), node);
            }
        }
    }
}

fn leaf(old: Option<&Value>, new: Option<&Value>) -> Change {
    let mut change = Change::default();
    match (old, new) {
        (None, Some(_)) => change.added = Node::leaf(),
        (Some(_), None) => change.removed = Node::leaf(),
        (Some(old), Some(new)) if !is_same(old, new) => change.modified = Node::leaf(),
        _ => {}
    }
    change
}

/// Whether two values are the same: 1 is also 1.0.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => one == other,
    }
}

fn change(r#type: Type<'_>, old: Option<&Value>, new: Option<&Value>) -> Change {
    let objects = |value: Option<&Value>| value.is_none_or(|value| value.is_object() || value.is_null());
    let mut change = match r#type.shape() {
        Shape::Leaf => return leaf(old, new),
        Shape::Object => entries(r#type, old.and_then(Value::as_object), new.and_then(Value::as_object)),
        Shape::Either if objects(old) && objects(new) => {
            entries(r#type, old.and_then(Value::as_object), new.and_then(Value::as_object))
        }
        Shape::Either => {
            // What is an object on one side only has its fields there, and is another value as well.
            let (before, after) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            let mut both = entries(r#type, before, after).unwrap_or_default();
            let whole = leaf(old, new);
            both.added.member |= whole.added.member;
            both.modified.member |= whole.modified.member;
            both.removed.member |= whole.removed.member;
            return both;
        }
        Shape::Set => {
            let element = |item: &Value| set_element(item);
            items(Type::Atomic, element, old.and_then(Value::as_array), new.and_then(Value::as_array))
        }
        Shape::Keyed(keys, item) => {
            let element = |item: &Value| keys.element(item);
            items(item, element, old.and_then(Value::as_array), new.and_then(Value::as_array))
        }
    };
    match &mut change {
        // Both are empty: whether that is null, or an empty list, is a value of its own.
        None => return leaf(old, new),
        Some(change) if old.is_none() => change.added.member = true,
        Some(change) if new.is_none() => change.removed.member = true,
        Some(_) => {}
    }
    change.unwrap_or_default()
}

/// None if both have no entries.
fn entries(
    r#type: Type<'_>,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
) -> Option<Change> {
    let (old, new) = (old.filter(|old| !old.is_empty()), new.filter(|new| !new.is_empty()));
    if old.is_none() && new.is_none() {
        return None;
    }
    let mut changes = Change::default();
    for (name, value) in new.into_iter().flatten() {
        let before = old.and_then(|old| old.get(name));
        changes.put(name, element::field, change(r#type.member(name).0, before, Some(value)));
    }
    let gone = old.into_iter().flatten().filter(|(name, _)| !new.is_some_and(|new| new.contains_key(*name)));
    for (name, value) in gone {
        changes.put(name, element::field, change(r#type.member(name).0, Some(value), None));
    }
    Some(changes)
}

/// The items of a list under the elements that they are. What has no element is left out.
fn by_element(
    items: Option<&Vec<Value>>,
    element: impl Fn(&Value) -> Result<String, String>,
) -> BTreeMap<String, Vec<&Value>> {
    let mut all: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for item in items.into_iter().flatten() {
        if let Ok(element) = element(item) {
            all.entry(element).or_default().push(item);
        }
    }
    all
}

/// None if both have no items.
fn items(
    r#type: Type<'_>,
    element: impl Fn(&Value) -> Result<String, String>,
    old: Option<&Vec<Value>>,
    new: Option<&Vec<Value>>,
) -> Option<Change> {
    let (old, new) = (old.filter(|old| !old.is_empty()), new.filter(|new| !new.is_empty()));
    if old.is_none() && new.is_none() {
        return None;
    }
    let (mut before, after) = (by_element(old, &element), by_element(new, &element));
    let mut changes = Change::default();
    let mut put = |name: String, below: Change| changes.put(&name, str::to_owned, below);
    for (name, new) in after {
        let old = before.remove(&name).unwrap_or_default();
        put(name, item_change(r#type, &old, &new));
    }
    for (name, old) in before {
        put(name, item_change(r#type, &old, &[]));
    }
    Some(changes)
}

/// What became of an item, which may have been there more than once: then it is looked at as a whole.
fn item_change(r#type: Type<'_>, old: &[&Value], new: &[&Value]) -> Change {
    match (old, new) {
        ([] | [_], [] | [_]) => change(r#type, old.first().copied(), new.first().copied()),
        ([_, _, ..], [_, _, ..]) if old == new => Change::default(),
        ([_, _, ..], [_, _, ..]) => Change { modified: Node::leaf(), ..Change::default() },
        ([_, _, ..], _) => {
            let mut below = match new.first() {
                Some(new) => change(r#type, None, Some(new)),
                None => Change::default(),
            };
            below.removed.member = true;
            below
        }
        (_, [_, _, ..]) => {
            let mut below = match old.first() {
                Some(old) => change(r#type, Some(old), None),
                None => Change::default(),
            };
            below.added.member = true;
            below
        }
    }
}
