//! How values are merged: by the table of built-in kinds, by the schema of a custom resource, or by what they look like.

use informer_model::{MergeKey, MergeType, Merging};
use serde_json::Value;

use super::element;

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type<'s> {
    /// Of a built-in kind.
    BuiltIn(MergeType),
    /// A whole custom object: its schema says nothing of its metadata.
    CustomObject(&'s Value),
    /// Of a custom resource, by its schema.
    Custom(&'s Value),
    /// Of which nothing is known: objects are merged, all else is replaced.
    Deduced,
    /// Replaced as a whole.
    Atomic,
}

/// What becomes of two values of a type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'s> {
    Leaf,
    /// They are objects, whose fields or entries are merged.
    Object,
    Set,
    /// They are lists of items with keys, which are of this type.
    Keyed(Keys<'s>, Type<'s>),
    /// Objects like [`Object`](Self::Object), all else like [`Leaf`](Self::Leaf).
    Either,
}

/// The fields that tell the items of a list apart.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keys<'s> {
    BuiltIn(&'static [MergeKey]),
    /// A list in the schema of a custom resource.
    Custom(&'s Value),
}

impl<'s> Type<'s> {
    /// The type of the objects of a built-in kind.
    pub(crate) fn of_kind(api_version: &str, kind: &str) -> Self {
        MergeType::of_kind(api_version, kind).map_or(Self::Deduced, Self::BuiltIn)
    }

    /// What becomes of two values.
    pub(crate) fn shape(self) -> Shape<'s> {
        let schema = match self {
            Self::BuiltIn(known) => {
                return match known.merging() {
                    Merging::Leaf => Shape::Leaf,
                    Merging::Fields | Merging::Map(_) => Shape::Object,
                    Merging::Set => Shape::Set,
                    Merging::Keyed(keys, item) => Shape::Keyed(Keys::BuiltIn(keys), Self::BuiltIn(item)),
                    Merging::Any => Shape::Either,
                };
            }
            Self::CustomObject(_) => return Shape::Object,
            Self::Deduced => return Shape::Either,
            Self::Atomic => return Shape::Leaf,
            Self::Custom(schema) => schema,
        };
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "object" if text("x-kubernetes-map-type") == "atomic" => Shape::Leaf,
            "object" => Shape::Object,
            "array" => match text("x-kubernetes-list-type") {
                "set" => Shape::Set,
                "map" => Shape::Keyed(
                    Keys::Custom(schema),
                    schema.get("items").map_or(Self::Deduced, Self::Custom),
                ),
                _ => Shape::Leaf,
            },
            // Anything, also an integer or a text.
            "" => Shape::Either,
            _ => Shape::Leaf,
        }
    }

    /// The type of a field or an entry, and whether its name is one that the type has, which entries have not.
    pub(crate) fn member(self, name: &str) -> (Self, bool) {
        match self {
            Self::BuiltIn(known) => match (known.field(name), known.merging()) {
                (Some(field), Merging::Fields) => (Self::BuiltIn(field), true),
                (_, Merging::Map(entry)) => (Self::BuiltIn(entry), false),
                _ => (Self::Deduced, matches!(name, "apiVersion" | "kind")),
            },
            Self::CustomObject(_) if matches!(name, "apiVersion" | "kind") => (Self::Atomic, true),
            Self::CustomObject(_) if name == "metadata" => {
                (MergeType::object_meta().map_or(Self::Deduced, Self::BuiltIn), true)
            }
            Self::CustomObject(schema) => Self::property(schema, name),
            Self::Custom(schema) => {
                let is_whole = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
                match is_whole && matches!(name, "apiVersion" | "kind" | "metadata") {
                    true => Self::CustomObject(schema).member(name),
                    false => Self::property(schema, name),
                }
            }
            Self::Deduced | Self::Atomic => (Self::Deduced, false),
        }
    }

    fn property(schema: &'s Value, name: &str) -> (Self, bool) {
        if let Some(property) = schema.get("properties").and_then(|all| all.get(name)) {
            return (Self::Custom(property), true);
        }
        match schema.get("additionalProperties") {
            Some(entry @ Value::Object(_)) => (Self::Custom(entry), false),
            _ => (Self::Deduced, false),
        }
    }

    /// The type of an element as it is spelled in a set of fields, and whether it is a field that the type has.
    pub(crate) fn at(self, element: &str) -> (Self, bool) {
        match element.strip_prefix("f:") {
            Some(name) => self.member(name),
            None => match self.shape() {
                Shape::Keyed(_, item) => (item, false),
                _ => (Self::Atomic, false),
            },
        }
    }
}

impl Keys<'_> {
    /// How an item is spelled; why it has no place in the list, otherwise.
    pub(crate) fn element(self, item: &Value) -> Result<String, String> {
        let Value::Object(fields) = item else {
            let what = if item.is_null() { "a null element" } else { "non-map elements" };
            return Err(format!("associative list with keys may not have {what}"));
        };
        let mut found: Vec<(&str, &Value)> = Vec::with_capacity(2);
        self.each(&mut |name, default| {
            if let Some(value) = fields.get(name).or(default) {
                found.push((name, value));
            }
        });
        if found.is_empty() {
            let mut names = Vec::new();
            self.each(&mut |name, _| names.push(format!("{name:?}")));
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                names.join(" ")
            ));
        }
        found.sort_unstable_by_key(|(name, _)| *name);
        Ok(element::key(found.into_iter()))
    }
}

impl<'s> Keys<'s> {
    fn each<'f>(self, tell: &mut dyn FnMut(&'f str, Option<&'f Value>))
    where
        's: 'f,
    {
        match self {
            Self::BuiltIn(keys) => keys.iter().for_each(|key| tell(key.name, key.default.as_ref())),
            Self::Custom(schema) => {
                let names = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                for name in names.into_iter().flatten().filter_map(Value::as_str) {
                    tell(
                        name,
                        schema.pointer("/items/properties").and_then(|all| all.get(name)?.get("default")),
                    );
                }
            }
        }
    }
}

/// How the item of a set is spelled; why it cannot be one, otherwise.
pub(crate) fn set_element(item: &Value) -> Result<String, String> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
        plain => Ok(element::item(plain)),
    }
}
