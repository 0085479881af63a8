//! Sets of fields, in the form that `managedFields` have on the wire: `fieldsV1`.
//!
//! A set is kept as the JSON that it is in an object, so that it costs nothing to read and to write: the entry of an element has
//! the entries of what is below it, and `.` if the element itself is in the set too. An element with nothing below it is in the set.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::{
    element::{self, Element},
    schema::Type,
};

/// The entry that says that an element is in the set itself.
const SELF: &str = ".";

/// A set of fields of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet(Map<String, Value>);

/// What a set has at one element.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Node {
    /// The element itself is in the set.
    pub(crate) member: bool,
    pub(crate) below: FieldSet,
}

impl Node {
    /// An element, and nothing below it.
    pub(crate) fn leaf() -> Self {
        Self { member: true, below: FieldSet::default() }
    }

    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// The set that `fieldsV1` is. What is not understood there is left out.
    pub(crate) fn read(fields: Value) -> Self {
        let Value::Object(fields) = fields else { return Self::default() };
        Self(fields)
    }

    /// The same set with its elements spelled as a server does. A client may have spelled them otherwise, or made them up.
    pub(crate) fn respelled(self) -> Self {
        let mut set = Self::default();
        for (name, value) in self.0 {
            if name == SELF {
                set.0.insert(name, value);
            } else if let Some(name) = Element::parse(&name).map(|element| element.spelled()) {
                let below = Self::read(value).respelled();
                set.0.insert(name, Value::Object(below.0));
            }
        }
        set
    }

    /// As `fieldsV1` has it.
    pub(crate) fn write(self) -> Value {
        Value::Object(self.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts in what there is at an element, in the place of what was there.
    pub(crate) fn put(&mut self, name: String, node: Node) {
        let Node { member, below: FieldSet(mut below) } = node;
        if member && !below.is_empty() {
            below.insert(SELF.to_owned(), Value::Object(Map::new()));
        }
        if member || !below.is_empty() {
            self.0.insert(name, Value::Object(below));
        }
    }

    pub(crate) fn view(&self) -> View<'_> {
        View(Some(&self.0))
    }

    /// What is in this set, in the other one, or in both.
    pub(crate) fn union(mut self, other: Self) -> Self {
        for (name, value) in other.0 {
            match self.0.remove(&name) {
                None => drop(self.0.insert(name, value)),
                Some(own) => {
                    let (own, other) = (Node::read(own), Node::read(value));
                    let member = own.member || other.member;
                    self.put(name, Node { member, below: own.below.union(other.below) });
                }
            }
        }
        self
    }

    /// What is in this set and not in the other one.
    pub(crate) fn difference(self, other: View<'_>) -> Self {
        if other.is_empty() {
            return self;
        }
        let mut left = Self::default();
        for (name, value) in self.0 {
            let Some(theirs) = other.entry(&name).filter(|_| name != SELF) else {
                left.0.insert(name, value);
                continue;
            };
            let own = Node::read(value);
            let node =
                Node { member: own.member && !theirs.member, below: own.below.difference(theirs.below) };
            left.put(name, node);
        }
        left
    }

    /// What is in both.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.view().intersection(other.view())
    }

    /// The set with the fields of structs that lead to what is in it. A struct is not in the set of who has only some of its fields.
    pub(crate) fn with_named_fields(mut self, r#type: Type<'_>) -> Self {
        let names: Vec<String> = self.0.keys().filter(|name| *name != SELF).cloned().collect();
        for name in names {
            let Some(value) = self.0.remove(&name) else { continue };
            let node = Node::read(value);
            let (below, declared) = r#type.at(&name);
            let member = node.member || declared && !node.below.is_empty();
            self.put(name, Node { member, below: node.below.with_named_fields(below) });
        }
        self
    }

    /// Only what is at one element at the top, or all but that.
    pub(crate) fn only(mut self, name: &str) -> Self {
        self.0.retain(|known, _| known == name);
        self
    }

    /// All but what is at one element at the top.
    pub(crate) fn except(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// Leaves out what is nobody's: what names the object, and what the server says of it.
    pub(crate) fn without_server_fields(mut self) -> Self {
        const STRIPPED: [&str; 9] = [
            "f:name",
            "f:namespace",
            "f:creationTimestamp",
            "f:selfLink",
            "f:uid",
            "f:clusterName",
            "f:generation",
            "f:managedFields",
            "f:resourceVersion",
        ];
        for name in ["f:apiVersion", "f:kind"] {
            self.0.remove(name);
        }
        if let Some(metadata) = self.0.remove("f:metadata") {
            let mut metadata = Node::read(metadata);
            metadata.below.0.retain(|name, _| !STRIPPED.contains(&name.as_str()));
            self.put("f:metadata".to_owned(), Node { member: false, ..metadata });
        }
        self
    }

    /// The paths of all that is in the set, as people read them: what is higher comes first.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.view().paths("", &mut paths);
        paths
    }
}

impl Node {
    fn read(value: Value) -> Self {
        let FieldSet(mut below) = FieldSet::read(value);
        let member = below.is_empty() || below.contains_key(SELF);
        below.remove(SELF);
        Self { member, below: FieldSet(below) }
    }
}

/// What a set has at one element, looked at.
struct Entry<'s> {
    member: bool,
    below: View<'s>,
}

impl<'s> Entry<'s> {
    fn new(value: &'s Value) -> Self {
        let below = value.as_object();
        let member = below.is_none_or(|below| below.is_empty() || below.contains_key(SELF));
        Self { member, below: View(below) }
    }
}

/// A set, or what is below one of its elements, looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'s>(Option<&'s Map<String, Value>>);

impl<'s> View<'s> {
    fn entries(self) -> impl Iterator<Item = (&'s String, Entry<'s>)> {
        let entries = self.0.into_iter().flatten().filter(|(name, _)| *name != SELF);
        entries.map(|(name, value)| (name, Entry::new(value)))
    }

    fn entry(self, name: &str) -> Option<Entry<'s>> {
        self.0?.get(name).map(Entry::new)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.entries().next().is_none()
    }

    /// Whether an element is in the set.
    pub(crate) fn has(self, name: &str) -> bool {
        self.entry(name).is_some_and(|entry| entry.member)
    }

    /// What is below an element.
    pub(crate) fn below(self, name: &str) -> View<'s> {
        self.entry(name).map_or(View(None), |entry| entry.below)
    }

    fn intersection(self, other: View<'_>) -> FieldSet {
        let mut both = FieldSet::default();
        for (name, own) in self.entries() {
            let Some(theirs) = other.entry(name) else { continue };
            let below = own.below.intersection(theirs.below);
            let node = Node { member: own.member && theirs.member, below };
            if !node.is_empty() {
                both.put(name.clone(), node);
            }
        }
        both
    }

    fn paths(self, before: &str, paths: &mut Vec<String>) {
        let mut entries: Vec<_> =
            self.entries().filter_map(|(name, entry)| Some((Element::parse(name)?, entry))).collect();
        entries.sort_by(|(one, _), (other, _)| element::compare(one, other));
        for (element, _) in entries.iter().filter(|(_, entry)| entry.member) {
            paths.push(format!("{before}{element}"));
        }
        for (element, entry) in entries {
            entry.below.paths(&format!("{before}{element}"), paths);
        }
    }
}

/// The order of two values that tell items of a list apart: numbers before texts, as a server has it.
pub(super) fn compare_values(one: &Value, other: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        _ => 3,
    };
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Value::String(one), Value::String(other)) => one.cmp(other),
        _ => rank(one).cmp(&rank(other)),
    }
}
