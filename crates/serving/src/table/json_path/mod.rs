//! JSONPath as columns of custom resources use it: text in, values of an object out.
//!
//! ```text
//! path    = { step }
//! step    = "." name | ".*" | "[*]" | "[" index "]" | "[" [ from ] ":" [ to ] "]"
//!         | "['" name { "." name } "']" | "[" '"' key '"' "]" | "[?(" filter ")]"
//! filter  = operand [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) operand ]
//! operand = [ "@" ] path | text in quotes | number | "true" | "false"
//! ```
//!
//! A backslash takes the next character into a name, so `\.` is a dot. In single quotes it is needed too:
//! there servers read `['a.b']` as `.a.b`. Double quotes, which servers refuse, hold a key as it is.

mod parser;

use std::cmp::Ordering;

use serde_json::Value;

use crate::json::Json;

/// A path into an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath(Vec<Step>);

/// Why a text is not a [`JsonPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("JSONPath {input:?}: expected {expected} at byte {position}")]
pub(crate) struct JsonPathError {
    /// The whole text.
    pub(crate) input: String,
    /// Where something else was expected, in bytes.
    pub(crate) position: usize,
    /// What could have stood there.
    pub(crate) expected: &'static str,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// All values of a map or a list.
    Any,
    Element(i64),
    Slice {
        from: Option<i64>,
        to: Option<i64>,
    },
    Filter(Filter),
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Operand,
    /// Without it, the left operand must be there.
    comparison: Option<(Comparison, Operand)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(Vec<Step>),
    Literal(Value),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The object does not have the shape that a step needs, so that there is no result at all.
struct Misfit;

impl JsonPath {
    pub(crate) fn parse(text: &str) -> Result<Self, JsonPathError> {
        parser::parse(text).map(Self)
    }

    /// The values that the path leads to. None where a field is missing, and none at all where a step finds
    /// something it is not for: an index that a list does not have, or a filter on what is no list.
    pub(crate) fn find<'v, 'j>(&self, object: &'v Json<'j>) -> Vec<&'v Json<'j>> {
        walk(object, &self.0).unwrap_or_default()
    }
}

fn walk<'v, 'j>(object: &'v Json<'j>, steps: &[Step]) -> Result<Vec<&'v Json<'j>>, Misfit> {
    let mut at = object;
    let mut steps = steps;
    // Most paths are names alone, or begin with them.
    while let [Step::Field(name), rest @ ..] = steps {
        let Some(member) = at.get(name) else { return Ok(Vec::new()) };
        (at, steps) = (member, rest);
    }
    let mut found = vec![at];
    for step in steps {
        found = step.walk(&found)?;
    }
    Ok(found)
}

impl Step {
    fn walk<'v, 'j>(&self, from: &[&'v Json<'j>]) -> Result<Vec<&'v Json<'j>>, Misfit> {
        let mut found = Vec::new();
        for &value in from {
            match (self, value.as_array()) {
                (Self::Field(name), _) => found.extend(value.get(name)),
                (Self::Any, Some(items)) => found.extend(items),
                (Self::Any, None) => found.extend(value.as_object().unwrap_or_default().into_values()),
                (Self::Filter(filter), Some(items)) => {
                    for item in items {
                        if filter.accepts(item)? {
                            found.push(item);
                        }
                    }
                }
                (Self::Element(_) | Self::Slice { .. }, None) if value.is_null() => {}
                (Self::Element(index), Some(items)) => {
                    let index = position(*index, items.len())?;
                    found.push(items.get(index).ok_or(Misfit)?);
                }
                (Self::Slice { from, to }, Some(items)) => {
                    let first = from.map_or(Ok(0), |from| position(from, items.len()))?;
                    let end = to.map_or(Ok(items.len()), |to| position(to, items.len()))?;
                    if first == end {
                        // As on a server, an empty slice ends the step: later lists are not looked at.
                        break;
                    }
                    found.extend(items.get(first..end).ok_or(Misfit)?);
                }
                (Self::Filter(_) | Self::Element(_) | Self::Slice { .. }, None) => return Err(Misfit),
            }
        }
        Ok(found)
    }
}

/// The place in a list, where a negative index counts from the end.
fn position(index: i64, len: usize) -> Result<usize, Misfit> {
    let len = i64::try_from(len).map_err(|_| Misfit)?;
    let from_start = if index < 0 { index.saturating_add(len) } else { index };
    usize::try_from(from_start).map_err(|_| Misfit)
}

impl Filter {
    fn accepts(&self, item: &Json<'_>) -> Result<bool, Misfit> {
        let left = self.left.values(item)?;
        let Some((comparison, right)) = &self.comparison else { return Ok(!left.is_empty()) };
        match (left.as_slice(), right.values(item)?.as_slice()) {
            ([], _) | (_, []) => Ok(false),
            ([left], [right]) => comparison.holds(left, right),
            _ => Err(Misfit),
        }
    }
}

impl Operand {
    fn values(&self, item: &Json<'_>) -> Result<Vec<Value>, Misfit> {
        match self {
            Self::Path(steps) => Ok(walk(item, steps)?.into_iter().map(Json::value).collect()),
            Self::Literal(literal) => Ok(vec![literal.clone()]),
        }
    }
}

impl Comparison {
    /// Only values of one type can be compared, and an integer is not of the type of a fraction.
    fn holds(self, left: &Value, right: &Value) -> Result<bool, Misfit> {
        let order = match (left, right) {
            (Value::Bool(left), Value::Bool(right)) => match self {
                Self::Equal | Self::NotEqual => Some(left.cmp(right)),
                _ => return Err(Misfit),
            },
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Number(left), Value::Number(right)) if left.is_f64() && right.is_f64() => {
                left.as_f64().partial_cmp(&right.as_f64())
            }
            (Value::Number(left), Value::Number(right)) => {
                Some(left.as_i128().ok_or(Misfit)?.cmp(&right.as_i128().ok_or(Misfit)?))
            }
            _ => return Err(Misfit),
        };
        Ok(match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        })
    }
}

#[cfg(test)]
mod tests;
