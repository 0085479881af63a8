//! One condition on one label.

use std::{cmp::Ordering, fmt};

use crate::{LabelError, LabelSource, validate_label_key, validate_label_value};

/// How a [`Requirement`] compares a label with its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`: the label is there and has the value.
    Equals,
    /// `==`: the same, as it was written.
    DoubleEquals,
    /// `!=`: the label is not there or has another value.
    NotEquals,
    /// `in`: the label is there and has one of the values.
    In,
    /// `notin`: the label is not there or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// `!`: the label is not there.
    DoesNotExist,
    /// `>`: the label is there and is an integer greater than the value.
    GreaterThan,
    /// `<`: the label is there and is an integer less than the value.
    LessThan,
}

impl Operator {
    fn takes(self, values: usize) -> bool {
        match self {
            Self::Exists | Self::DoesNotExist => values == 0,
            Self::In | Self::NotIn => values > 0,
            Self::Equals | Self::DoubleEquals | Self::NotEquals => values == 1,
            Self::GreaterThan | Self::LessThan => values == 1,
        }
    }

    fn arity(self) -> &'static str {
        match self {
            Self::Exists | Self::DoesNotExist => "no value",
            Self::In | Self::NotIn => "at least one value",
            _ => "exactly one value",
        }
    }

    pub(super) fn is_numeric(self) -> bool {
        matches!(self, Self::GreaterThan | Self::LessThan)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Exists => "exists",
            Self::DoesNotExist => "!",
            Self::GreaterThan => ">",
            Self::LessThan => "<",
        })
    }
}

/// One condition of a [`Selector`](crate::Selector).
///
/// A requirement is always valid: its key and values are a label's, and it has as many values as its
/// operator takes.
///
/// ```
/// use informer_model::{Operator, Requirement};
///
/// let tier = Requirement::new("tier", Operator::In, ["web", "api", "web"])?;
/// assert_eq!(tier.values(), ["api", "web"]);
/// assert_eq!(tier.to_string(), "tier in (api,web)");
/// assert_eq!(Requirement::new("app", Operator::Exists, None::<&str>)?.to_string(), "app");
/// assert!(Requirement::new("tier", Operator::Equals, ["web", "api"]).is_err());
/// # Ok::<(), informer_model::RequirementError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted, each once.
    values: Vec<String>,
}

/// Why there is no such [`Requirement`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequirementError {
    /// The key is no label key.
    #[error("label key {key:?}, byte {position}: {error}")]
    Key {
        /// The key.
        key: String,
        /// Where in the key, in bytes.
        position: usize,
        /// The rule that it breaks.
        error: LabelError,
    },
    /// A value is no label value.
    #[error("value {value:?} for label `{key}`, byte {position}: {error}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// Where in the value, in bytes.
        position: usize,
        /// The rule that it breaks.
        error: LabelError,
    },
    /// Too few or too many values.
    #[error("label `{key}`: the operator `{operator}` takes {}, found {count}", .operator.arity())]
    Count {
        /// The key.
        key: String,
        /// The operator.
        operator: Operator,
        /// How many values were given.
        count: usize,
    },
    /// A value to be compared by size is not an integer.
    #[error("label `{key}`: the operator `{operator}` takes an integer of 64 bits, found {value:?}")]
    Integer {
        /// The key.
        key: String,
        /// The operator.
        operator: Operator,
        /// The value.
        value: String,
    },
}

impl Requirement {
    /// A requirement: one value for `=`, `==`, `!=`, `>` and `<` (an integer for the last two), at least one
    /// for `in` and `notin`, none for the others. The empty text is a value.
    pub fn new(
        key: impl Into<String>,
        operator: Operator,
        values: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, RequirementError> {
        let key = key.into();
        let values: Vec<String> = values.into_iter().map(Into::into).collect();
        if let Err((at, error)) = validate_label_key(&key) {
            return Err(RequirementError::Key { position: floor_char(&key, at), key, error });
        }
        if !operator.takes(values.len()) {
            return Err(RequirementError::Count { key, operator, count: values.len() });
        }
        for value in &values {
            if let Err((at, error)) = validate_label_value(value) {
                let (position, value) = (floor_char(value, at), value.clone());
                return Err(RequirementError::Value { key, value, position, error });
            }
            if operator.is_numeric() && value.parse::<i64>().is_err() {
                return Err(RequirementError::Integer { key, operator, value: value.clone() });
            }
        }
        Ok(Self::of_valid(key, operator, values))
    }

    /// From parts that were checked already.
    pub(super) fn of_valid(key: impl Into<String>, operator: Operator, mut values: Vec<String>) -> Self {
        values.sort_unstable();
        values.dedup();
        Self { key: key.into(), operator, values }
    }

    /// The label that the requirement is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label is compared.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// What it is compared with: sorted, each value once.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// The values of which the label must have one, or `None` when the operator leaves the value open.
    /// With `Some`, an index on this label finds all matches.
    pub fn exact_values(&self) -> Option<&[String]> {
        let exact = matches!(self.operator, Operator::Equals | Operator::DoubleEquals | Operator::In);
        exact.then_some(&self.values)
    }

    /// Whether the requirement holds for these labels.
    pub fn matches(&self, labels: &(impl LabelSource + ?Sized)) -> bool {
        self.accepts(labels.label(&self.key))
    }

    /// Whether the requirement holds for a label with this value, or without the label.
    pub(crate) fn accepts(&self, value: Option<&str>) -> bool {
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => self.names(value),
            Operator::NotEquals | Operator::NotIn => !self.names(value),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.compare(value) == Some(Ordering::Greater),
            Operator::LessThan => self.compare(value) == Some(Ordering::Less),
        }
    }

    fn names(&self, value: Option<&str>) -> bool {
        value.is_some_and(|value| self.values.binary_search_by(|own| own.as_str().cmp(value)).is_ok())
    }

    fn compare(&self, value: Option<&str>) -> Option<Ordering> {
        let bound: i64 = self.values.first()?.parse().ok()?;
        Some(value?.parse::<i64>().ok()?.cmp(&bound))
    }
}

/// A length limit may fall into the middle of a character; an error points at its beginning.
pub(super) fn floor_char(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, operator) = (&self.key, self.operator);
        match operator {
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::In | Operator::NotIn => write!(f, "{key} {operator} ({})", self.values.join(",")),
            _ => write!(f, "{key}{operator}{}", self.values.join(",")),
        }
    }
}

impl fmt::Debug for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::{Operator::*, *};
    use std::collections::BTreeMap;

    const ALL: [Operator; 9] =
        [Equals, DoubleEquals, NotEquals, In, NotIn, Exists, DoesNotExist, GreaterThan, LessThan];

    #[test]
    fn an_operator_takes_its_number_of_values() {
        for operator in ALL {
            let allowed: &[usize] = match operator {
                Exists | DoesNotExist => &[0],
                In | NotIn => &[1, 2, 3],
                _ => &[1],
            };
            for count in 0..=3 {
                let made = Requirement::new("a", operator, ["1", "2", "3"].into_iter().take(count));
                let expected = match allowed.contains(&count) {
                    true => Ok(count),
                    false => Err(RequirementError::Count { key: "a".into(), operator, count }),
                };
                assert_eq!(made.map(|made| made.values().len()), expected, "{operator} with {count}");
            }
        }
        let twice = Requirement::new("a", Equals, ["x", "x"]).unwrap_err();
        assert_eq!(twice.to_string(), "label `a`: the operator `=` takes exactly one value, found 2");
    }

    #[test]
    fn keys_and_values_are_checked() {
        use LabelError::*;
        let refused =
            |key: &str, operator, value: &str| Requirement::new(key, operator, [value]).unwrap_err();
        assert_eq!(
            refused("a/b/c", Equals, "x"),
            RequirementError::Key { key: "a/b/c".into(), position: 3, error: ExtraSlash }
        );
        let error = refused("a", Equals, "x y");
        assert!(error.to_string().starts_with(r#"value "x y" for label `a`, byte 1: "#), "{error}");
        for value in ["x", "", "1.5", "9223372036854775808", "0x1"] {
            let expected =
                RequirementError::Integer { key: "a".into(), operator: LessThan, value: value.into() };
            assert_eq!(refused("a", LessThan, value), expected);
        }
        assert!(matches!(refused("a", GreaterThan, "-1"), RequirementError::Value { position: 0, .. }));
        assert!(Requirement::new("a", GreaterThan, ["9223372036854775807"]).is_ok());
        // 62 letters and a character of two bytes that the limit of 63 cuts in half.
        let split = "x".repeat(62) + "éé";
        assert!(matches!(refused("a", Equals, &split), RequirementError::Value { position: 62, .. }));
        assert!(matches!(refused(&split, Equals, ""), RequirementError::Key { position: 62, .. }));
    }

    #[test]
    fn every_operator_on_a_missing_an_empty_and_a_set_label() {
        let texts = ["a=1", "a==1", "a!=1", "a in (1,x)", "a notin (1,x)", "a", "!a", "a>1", "a<1"];
        for (label, expected) in [
            (None, [false, false, true, false, true, false, true, false, false]),
            (Some(""), [false, false, true, false, true, true, false, false, false]),
            (Some("1"), [true, true, false, true, false, true, false, false, false]),
            (Some("x"), [false, false, true, true, false, true, false, false, false]),
            (Some("2"), [false, false, true, false, true, true, false, true, false]),
            (Some("+2"), [false, false, true, false, true, true, false, true, false]),
            (Some("-5"), [false, false, true, false, true, true, false, false, true]),
            (Some("01"), [false, false, true, false, true, true, false, false, false]),
            (Some("2.5"), [false, false, true, false, true, true, false, false, false]),
            (Some("9223372036854775808"), [false, false, true, false, true, true, false, false, false]),
        ] {
            let labels: BTreeMap<_, _> = label.map(|value| ("a", value)).into_iter().collect();
            for (text, expected) in texts.iter().zip(expected) {
                let selector = crate::Selector::parse(text).unwrap();
                assert_eq!(selector.matches(&labels), expected, "{text} on {label:?}");
            }
        }
    }

    #[test]
    fn only_equality_and_membership_are_exact() {
        for operator in ALL {
            let values = ["1"].into_iter().take(usize::from(!matches!(operator, Exists | DoesNotExist)));
            let requirement = Requirement::new("a", operator, values).unwrap();
            let exact = matches!(operator, Equals | DoubleEquals | In).then(|| vec!["1".to_owned()]);
            assert_eq!(requirement.exact_values(), exact.as_deref(), "{operator}");
        }
    }
}
