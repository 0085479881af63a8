//! What an object becomes when a configuration is applied to it, and when fields are taken out of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::{
    element,
    fields::{FieldSet, Node, View},
    schema::{Shape, Type, set_element},
};

/// Why something cannot be applied, with the path at which that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfit {
    path: String,
    why: String,
}

impl Unfit {
    fn new(why: impl Into<String>) -> Self {
        Self { path: String::new(), why: why.into() }
    }

    fn below(mut self, element: &str) -> Self {
        let element = element::Element::parse(element).map(|element| element.to_string());
        self.path = [element.unwrap_or_default(), self.path].concat();
        self
    }
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.is_empty() {
            true => write!(f, "{}", self.why),
            false => write!(f, "{}: {}", self.path, self.why),
        }
    }
}

type Elements<'e> = &'e dyn Fn(&Value) -> Result<String, String>;

/// All fields that a configuration names.
pub(crate) fn field_set(r#type: Type<'_>, config: &Value) -> Result<FieldSet, Unfit> {
    Ok(named(r#type, config, true)?.below)
}

/// All fields that an object has. Of items that are there twice, and of what has no place in its list, nothing is said.
pub(crate) fn present(r#type: Type<'_>, object: &Value) -> FieldSet {
    named(r#type, object, false).map(|node| node.below).unwrap_or_default()
}

fn named(r#type: Type<'_>, value: &Value, strict: bool) -> Result<Node, Unfit> {
    match (r#type.shape(), value) {
        (Shape::Object | Shape::Either, Value::Object(fields)) => {
            let mut node = Node::default();
            for (name, value) in fields {
                let (below, declared) = r#type.member(name);
                let spelled = element::field(name);
                let mut entry = named(below, value, strict).map_err(|unfit| unfit.below(&spelled))?;
                let is_empty = value.as_object().is_some_and(Map::is_empty);
                entry.member |= value.is_null() || is_empty || !declared;
                node.below.put(spelled, entry);
            }
            Ok(node)
        }
        (Shape::Set, Value::Array(items)) => named_items(Type::Atomic, items, &set_element, strict),
        (Shape::Keyed(keys, item), Value::Array(items)) => {
            named_items(item, items, &|item| keys.element(item), strict)
        }
        (Shape::Object | Shape::Set | Shape::Keyed(..), Value::Null) => Ok(Node::default()),
        _ => Ok(Node::leaf()),
    }
}

fn named_items(
    r#type: Type<'_>,
    items: &[Value],
    element: Elements<'_>,
    strict: bool,
) -> Result<Node, Unfit> {
    let mut node = Node::default();
    let mut seen = BTreeSet::new();
    for (place, item) in items.iter().enumerate() {
        let spelled = match element(item) {
            Ok(spelled) => spelled,
            Err(why) if strict => return Err(Unfit::new(format!("element {place}: {why}"))),
            Err(_) => continue,
        };
        if !seen.insert(spelled.clone()) {
            if !strict {
                node.below.put(spelled, Node::leaf());
                continue;
            }
            let item = element::Element::parse(&spelled).map(|item| item.to_string()).unwrap_or_default();
            return Err(Unfit::new(format!("duplicate entries for key {item}")));
        }
        let mut entry = named(r#type, item, strict).map_err(|unfit| unfit.below(&spelled))?;
        entry.member = true;
        node.below.put(spelled, entry);
    }
    Ok(node)
}

/// What an object becomes: all that it has, and what the configuration says.
pub(crate) fn merge(r#type: Type<'_>, live: &Value, config: &Value) -> Value {
    merged(r#type, Some(live), Some(config))
}

fn merged(r#type: Type<'_>, live: Option<&Value>, config: Option<&Value>) -> Value {
    let whole = || config.or(live).cloned().unwrap_or_default();
    let (shape, both) = (r#type.shape(), (live, config));
    match (shape, both) {
        (Shape::Object | Shape::Either, (Some(Value::Object(live)), Some(Value::Object(config)))) => {
            let mut fields = live.clone();
            for (name, value) in config {
                let below = r#type.member(name).0;
                let value = merged(below, live.get(name), Some(value));
                fields.insert(name.clone(), value);
            }
            Value::Object(fields)
        }
        // What says nothing of an object leaves it as it is.
        (Shape::Object | Shape::Either, (Some(live @ Value::Object(fields)), Some(Value::Null)))
            if !fields.is_empty() =>
        {
            live.clone()
        }
        (Shape::Set | Shape::Keyed(..), (Some(live @ Value::Array(items)), Some(Value::Null)))
            if !items.is_empty() =>
        {
            live.clone()
        }
        (Shape::Set, (Some(Value::Array(live)), Some(Value::Array(config)))) => {
            merged_items(Type::Atomic, live, config, &set_element)
        }
        (Shape::Keyed(keys, item), (Some(Value::Array(live)), Some(Value::Array(config)))) => {
            merged_items(item, live, config, &|item| keys.element(item))
        }
        _ => whole(),
    }
}

/// The items of both. Those of the configuration are in its order, and what stood before one of them still does.
fn merged_items(r#type: Type<'_>, live: &[Value], config: &[Value], element: Elements<'_>) -> Value {
    if live.is_empty() || config.is_empty() {
        return Value::Array(if config.is_empty() { live.to_vec() } else { config.to_vec() });
    }
    let spelled = |item: &Value| element(item).unwrap_or_default();
    let wanted: Vec<(String, &Value)> = config.iter().map(|item| (spelled(item), item)).collect();
    let in_config: BTreeSet<&str> = wanted.iter().map(|(name, _)| name.as_str()).collect();
    let there: Vec<(String, &Value)> = live.iter().map(|item| (spelled(item), item)).collect();
    let mut first: BTreeMap<&str, Option<&Value>> = BTreeMap::new();
    for (name, item) in &there {
        // Of an item that is there twice nothing is merged.
        first.entry(name).and_modify(|known| *known = None).or_insert(Some(item));
    }
    let merge = |name: &str, item: &Value| merged(r#type, first.get(name).copied().flatten(), Some(item));
    let mut shared: VecDeque<&str> =
        wanted.iter().map(|(name, _)| name.as_str()).filter(|name| first.contains_key(name)).collect();
    let mut out = Vec::with_capacity(there.len().max(wanted.len()));
    let mut done = BTreeSet::new();
    let (mut l, mut r) = (0, 0);
    while l < there.len() || r < wanted.len() {
        let (left, right) = (there.get(l), wanted.get(r));
        if let (Some((left, _)), Some((right, item))) = (left, right) {
            if left == right {
                out.push(merge(right, item));
                done.insert(right.as_str());
                shared.pop_front();
                (l, r) = (l + 1, r + 1);
                continue;
            }
            // It comes later, in the order of the configuration.
            if in_config.contains(left.as_str()) && shared.front().is_some_and(|next| next != left) {
                l += 1;
                continue;
            }
        }
        if let Some((left, item)) = left {
            if !in_config.contains(left.as_str()) {
                out.push((*item).clone());
                l += 1;
                continue;
            }
            if done.contains(left.as_str()) {
                l += 1;
            }
        }
        if let Some((right, item)) = right {
            out.push(merge(right, item));
            done.insert(right.as_str());
            if shared.front() == Some(&right.as_str()) {
                shared.pop_front();
            }
            r += 1;
        }
    }
    Value::Array(out)
}

/// An object without these fields and items. A list or a map that has nothing left is gone with them.
pub(crate) fn remove(r#type: Type<'_>, object: Value, fields: View<'_>) -> Value {
    removed(r#type, object, fields).unwrap_or_else(|| Value::Object(Map::new()))
}

fn removed(r#type: Type<'_>, value: Value, gone: View<'_>) -> Option<Value> {
    match (r#type.shape(), value) {
        (Shape::Object | Shape::Either, Value::Object(fields)) => {
            let mut left = Map::new();
            for (name, value) in fields {
                let spelled = element::field(&name);
                if gone.has(&spelled) {
                    continue;
                }
                let below = gone.below(&spelled);
                let value = match below.is_empty() {
                    true => value,
                    false => removed(r#type.member(&name).0, value, below).unwrap_or_default(),
                };
                left.insert(name, value);
            }
            (!left.is_empty()).then_some(Value::Object(left))
        }
        (Shape::Set, Value::Array(items)) => removed_items(Type::Atomic, items, gone, &set_element),
        (Shape::Keyed(keys, item), Value::Array(items)) => {
            removed_items(item, items, gone, &|item| keys.element(item))
        }
        (Shape::Leaf, Value::Array(_) | Value::Object(_)) => None,
        (_, value) => Some(value),
    }
}

fn removed_items(
    r#type: Type<'_>,
    items: Vec<Value>,
    gone: View<'_>,
    element: Elements<'_>,
) -> Option<Value> {
    let mut left = Vec::with_capacity(items.len());
    for item in items {
        let spelled = element(&item).unwrap_or_default();
        if gone.has(&spelled) {
            continue;
        }
        let below = gone.below(&spelled);
        left.push(match below.is_empty() {
            true => item,
            false => removed(r#type, item, below).unwrap_or_default(),
        });
    }
    (!left.is_empty()).then_some(Value::Array(left))
}
