//! One step of a path into an object, and how it is spelled: `f:name`, `k:{"key":…}`, `v:value`, `i:place`.

use std::{cmp::Ordering, fmt};

use serde_json::{Map, Value};

use super::fields::compare_values;

/// One step into a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Element {
    /// A field of a struct, or an entry of a map.
    Field(String),
    /// The item of a list that has these values.
    Key(Vec<(String, Value)>),
    /// The item of a set.
    Value(Value),
    /// The item at a place.
    Index(u64),
}

impl Element {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (mark, rest) = text.split_once(':')?;
        Some(match mark {
            "f" => Self::Field(rest.to_owned()),
            "k" => {
                let fields: Map<String, Value> = serde_json::from_str(rest).ok()?;
                let mut fields: Vec<_> = fields.into_iter().collect();
                fields.sort_by(|(one, _), (other, _)| one.cmp(other));
                Self::Key(fields)
            }
            "v" => Self::Value(serde_json::from_str(rest).ok()?),
            "i" => Self::Index(rest.parse().ok()?),
            _ => return None,
        })
    }

    /// As it is spelled in `fieldsV1`.
    pub(crate) fn spelled(&self) -> String {
        match self {
            Self::Field(name) => field(name),
            Self::Key(fields) => key(fields.iter().map(|(name, value)| (name.as_str(), value))),
            Self::Value(value) => item(value),
            Self::Index(place) => format!("i:{place}"),
        }
    }
}

/// How a field is spelled.
pub(crate) fn field(name: &str) -> String {
    ["f:", name].concat()
}

/// How the item of a set is spelled.
pub(crate) fn item(value: &Value) -> String {
    ["v:", &json(value)].concat()
}

/// How an item with keys is spelled, which come in the order of their names.
pub(crate) fn key<'k>(fields: impl Iterator<Item = (&'k str, &'k Value)>) -> String {
    let mut text = String::from("k:{");
    for (place, (name, value)) in fields.enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push_str(&json(&Value::from(name)));
        text.push(':');
        text.push_str(&json(value));
    }
    text.push('}');
    text
}

/// JSON as Go writes it, which keeps it safe inside of HTML.
fn json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    // They can only be inside of texts.
    text.chars().fold(String::new(), |mut text, c| {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
        text
    })
}

/// As people read it: `.name`, `[key="value"]`, `[="value"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(place) => write!(f, "[{place}]"),
        }
    }
}

/// The order in which a server goes through elements.
pub(crate) fn compare(one: &Element, other: &Element) -> Ordering {
    let rank = |element: &Element| match element {
        Element::Field(_) => 0,
        Element::Key(_) => 1,
        Element::Value(_) => 2,
        Element::Index(_) => 3,
    };
    match (one, other) {
        (Element::Field(one), Element::Field(other)) => one.cmp(other),
        (Element::Key(one), Element::Key(other)) => {
            let pairs = one
                .iter()
                .zip(other)
                .map(|((one, a), (other, b))| one.cmp(other).then_with(|| compare_values(a, b)));
            let different = pairs.into_iter().find(|order| order.is_ne());
            different.unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (Element::Value(one), Element::Value(other)) => compare_values(one, other),
        (Element::Index(one), Element::Index(other)) => one.cmp(other),
        _ => rank(one).cmp(&rank(other)),
    }
}
