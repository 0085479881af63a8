//! One condition on one field.

use std::fmt;

use serde_json::Value;

use super::{FieldPath, FieldValue, parser::escaped_for_list};

/// How a [`FieldRequirement`] compares a field with its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldOperator {
    /// `=` or `==`.
    Equals,
    /// `!=`.
    NotEquals,
    /// `in`: the field has one of the values.
    In,
    /// `notin`: the field has none of the values.
    NotIn,
    /// `exists`: the field is there and not null.
    Exists,
    /// `!`: the field is not there, or null.
    NotExists,
}

impl FieldOperator {
    fn takes(self, values: usize) -> bool {
        match self {
            Self::Equals | Self::NotEquals => values == 1,
            Self::In | Self::NotIn => values > 0,
            Self::Exists | Self::NotExists => values == 0,
        }
    }

    fn arity(self) -> &'static str {
        match self {
            Self::Equals | Self::NotEquals => "exactly one value",
            Self::In | Self::NotIn => "at least one value",
            Self::Exists | Self::NotExists => "no value",
        }
    }

    fn is_negative(self) -> bool {
        matches!(self, Self::NotEquals | Self::NotIn | Self::NotExists)
    }
}

/// One condition of a [`FieldSelector`](super::FieldSelector). It has as many values as its operator takes.
///
/// ```
/// use informer_model::{FieldOperator, FieldRequirement};
///
/// let requirement = FieldRequirement::new("data['a=b']".parse()?, FieldOperator::Equals, ["x,y"])?;
/// assert_eq!(requirement.to_string(), r"data['a=b']=x\,y");
/// assert_eq!(requirement.exact_value(), Some("x,y"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FieldRequirement {
    path: FieldPath,
    operator: FieldOperator,
    /// Sorted, each once.
    values: Vec<String>,
}

/// Why there is no such [`FieldRequirement`]: too few or too many values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field `{path}`: the operator `{operator}` takes {}, found {count}", .operator.arity())]
pub struct FieldRequirementError {
    /// The field.
    pub path: FieldPath,
    /// The operator.
    pub operator: FieldOperator,
    /// How many values were given.
    pub count: usize,
}

impl FieldRequirement {
    /// A requirement: one value for `=` and `!=`, at least one for `in` and `notin`, none for the others. Any
    /// text is a value.
    pub fn new(
        path: FieldPath,
        operator: FieldOperator,
        values: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, FieldRequirementError> {
        let values: Vec<String> = values.into_iter().map(Into::into).collect();
        match operator.takes(values.len()) {
            true => Ok(Self::of_valid(path, operator, values)),
            false => Err(FieldRequirementError { path, operator, count: values.len() }),
        }
    }

    /// A requirement that has as many values as it must have.
    pub(super) fn of_valid(path: FieldPath, operator: FieldOperator, mut values: Vec<String>) -> Self {
        values.sort_unstable();
        values.dedup();
        Self { path, operator, values }
    }

    /// The field that the requirement is about.
    pub fn path(&self) -> &FieldPath {
        &self.path
    }

    /// How the field is compared.
    pub fn operator(&self) -> FieldOperator {
        self.operator
    }

    /// What it is compared with, without escapes: sorted, each once.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// The text that the field must have, or `None` when the operator leaves it open.
    pub fn exact_value(&self) -> Option<&str> {
        match (self.operator, &self.values[..]) {
            (FieldOperator::Equals | FieldOperator::In, [value]) => Some(value),
            _ => None,
        }
    }

    /// Whether the requirement holds for an object.
    pub fn matches(&self, object: &Value) -> bool {
        self.holds_if(self.path.any(object, |value| self.seeks(value)))
    }

    /// Whether a value at the end of the path is one that the requirement asks for, or, with `!=`, `notin` and
    /// `!`, asks not to be there. For those who read objects in their own way: see [`holds_if`](Self::holds_if).
    pub fn seeks(&self, value: FieldValue<'_>) -> bool {
        let text = match value {
            _ if matches!(self.operator, FieldOperator::Exists | FieldOperator::NotExists) => {
                return value != FieldValue::Missing;
            }
            FieldValue::Missing => "",
            FieldValue::Text(text) => text,
            FieldValue::Structure => return false,
        };
        self.values.binary_search_by(|value| value.as_str().cmp(text)).is_ok()
    }

    /// Whether the requirement holds for an object in which a value that it [seeks](Self::seeks) was found at
    /// the end of the path, or was not.
    ///
    /// ```
    /// use informer_model::{FieldSelector, FieldValue};
    ///
    /// let selector = FieldSelector::parse("status.phase!=Running")?;
    /// let requirement = &selector.requirements()[0];
    /// assert!(requirement.seeks(FieldValue::Text("Running")));
    /// assert!(requirement.holds_if(false) && !requirement.holds_if(true));
    /// # Ok::<(), informer_model::FieldSelectorError>(())
    /// ```
    pub fn holds_if(&self, found: bool) -> bool {
        found != self.operator.is_negative()
    }
}

impl fmt::Display for FieldOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Equals => "=",
            Self::NotEquals => "!=",
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Exists => "exists",
            Self::NotExists => "!",
        })
    }
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, operator, values } = self;
        match operator {
            FieldOperator::Equals | FieldOperator::NotEquals => {
                write!(f, "{path}{operator}")?;
                for part in values.iter().flat_map(|value| value.split_inclusive(['\\', ',', '='])) {
                    match part.strip_suffix(['\\', ',', '=']) {
                        Some(plain) => write!(f, "{plain}\\{}", &part[plain.len()..])?,
                        None => f.write_str(part)?,
                    }
                }
                Ok(())
            }
            FieldOperator::In | FieldOperator::NotIn => {
                let values: Vec<String> = values.iter().map(|value| escaped_for_list(value)).collect();
                write!(f, "{path} {operator} ({})", values.join(","))
            }
            FieldOperator::Exists => write!(f, "{path} {operator}"),
            FieldOperator::NotExists => write!(f, "{operator}{path}"),
        }
    }
}

impl fmt::Debug for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_takes_its_number_of_values() {
        use FieldOperator::{Equals, Exists, In, NotEquals, NotExists, NotIn};
        let path: FieldPath = "a.b".parse().unwrap();
        for (operator, fits) in [
            (Equals, [false, true, false]),
            (NotEquals, [false, true, false]),
            (In, [false, true, true]),
            (NotIn, [false, true, true]),
            (Exists, [true, false, false]),
            (NotExists, [true, false, false]),
        ] {
            let made = [0, 1, 2].map(|n| FieldRequirement::new(path.clone(), operator, vec!["x"; n]).is_ok());
            assert_eq!(made, fits, "{operator}");
        }
        let error = FieldRequirement::new(path, In, None::<&str>).unwrap_err();
        assert_eq!(error.to_string(), "field `a.b`: the operator `in` takes at least one value, found 0");
    }

    #[test]
    fn one_value_is_exact_however_it_is_asked_for() {
        let path: FieldPath = "a".parse().unwrap();
        let exact = |operator, values: &[&str]| {
            let requirement = FieldRequirement::new(path.clone(), operator, values.iter().copied()).unwrap();
            requirement.exact_value().map(str::to_owned)
        };
        assert_eq!(exact(FieldOperator::Equals, &["x"]).as_deref(), Some("x"));
        assert_eq!(exact(FieldOperator::In, &["x", "x"]).as_deref(), Some("x"));
        assert_eq!(exact(FieldOperator::In, &["x", "y"]), None);
        assert_eq!(exact(FieldOperator::NotEquals, &["x"]), None);
        assert_eq!(exact(FieldOperator::NotIn, &["x"]), None);
        assert_eq!(exact(FieldOperator::Exists, &[]), None);
    }
}
