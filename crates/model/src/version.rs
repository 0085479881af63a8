//! The version of an object or of a whole collection, as the API server writes it.

use std::{cmp::Ordering, convert::Infallible, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A resource version: an opaque text that is usually a decimal number.
///
/// Two versions of one resource compare when both are decimals, of any length. Anything else cannot be
/// compared, and [`PartialOrd`] says so with `None` unless the two texts are the same. A number with a
/// leading zero is not a decimal, because no server writes one.
///
/// ```
/// use informer_model::ResourceVersion;
///
/// let v = |text: &str| ResourceVersion::from(text);
/// assert!(v("9") < v("10"));
/// assert!(v("99999999999999999999999998") < v("99999999999999999999999999"));
/// assert_eq!(v("7").partial_cmp(&v("etcd-7")), None);
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Repr);

/// Each text has exactly one representation, so that equality of values is equality of texts.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
enum Repr {
    /// The empty text.
    #[default]
    Unset,
    /// A decimal that fits: nearly every version there is, kept without allocation.
    Small(u64),
    /// A longer decimal, or no decimal at all.
    Text(Box<str>),
}

impl ResourceVersion {
    /// No version: in a request, "the newest there is".
    pub const UNSET: Self = Self(Repr::Unset);
    /// Version `0`: in a request, "any that you have at hand".
    pub const ANY: Self = Self(Repr::Small(0));

    /// Whether this is the empty text.
    pub fn is_unset(&self) -> bool {
        self.0 == Repr::Unset
    }

    /// Whether this version can be compared with others: it is a decimal.
    pub fn is_decimal(&self) -> bool {
        match &self.0 {
            Repr::Unset => false,
            Repr::Small(_) => true,
            Repr::Text(text) => is_decimal(text),
        }
    }
}

fn is_decimal(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes == b"0" || (matches!(bytes.first(), Some(b'1'..=b'9')) && bytes.iter().all(u8::is_ascii_digit))
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        if text.is_empty() {
            return Self::UNSET;
        }
        match text.parse() {
            Ok(number) if is_decimal(text) => Self(Repr::Small(number)),
            _ => Self(Repr::Text(text.into())),
        }
    }
}

impl From<String> for ResourceVersion {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(Repr::Small(number))
    }
}

impl FromStr for ResourceVersion {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.into())
    }
}

impl PartialOrd for ResourceVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        if !self.is_decimal() || !other.is_decimal() {
            return None;
        }
        Some(match (&self.0, &other.0) {
            (Repr::Small(a), Repr::Small(b)) => a.cmp(b),
            (Repr::Text(a), Repr::Text(b)) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
            // A decimal that is kept as text did not fit and is the larger one.
            (_, Repr::Text(_)) => Ordering::Less,
            _ => Ordering::Greater,
        })
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Unset => Ok(()),
            Repr::Small(number) => fmt::Display::fmt(number, f),
            Repr::Text(text) => f.pad(text),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Serialize for ResourceVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ResourceVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(String::deserialize(deserializer)?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(text: &str) -> ResourceVersion {
        text.into()
    }

    #[test]
    fn decimals_of_any_length_compare_as_numbers() {
        let ascending =
            ["0", "1", "9", "10", "18446744073709551615", "18446744073709551616", "99999999999999999999999"];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(v(a).partial_cmp(&v(b)), Some(i.cmp(&j)), "{a} and {b}");
            }
        }
    }

    #[test]
    fn what_is_not_decimal_cannot_be_compared() {
        for other in ["", "a", "007", "1.5", "-1", "+1", " 1", "1 ", "0x1", "00", "٣"] {
            assert!(!v(other).is_decimal(), "{other:?}");
            for decimal in ["0", "1", "18446744073709551616"] {
                assert_eq!(v(other).partial_cmp(&v(decimal)), None, "{other:?} and {decimal}");
                assert_eq!(v(decimal).partial_cmp(&v(other)), None, "{decimal} and {other:?}");
            }
            assert_eq!(
                v(other).partial_cmp(&v(other)),
                Some(Ordering::Equal),
                "the same text is the same version"
            );
        }
    }

    #[test]
    fn the_text_is_kept_as_it_came() {
        for text in ["", "0", "12", "007", "+7", "18446744073709551616", "etcd:7"] {
            assert_eq!(v(text).to_string(), text);
            assert_eq!(serde_json::to_value(v(text)).unwrap(), text);
        }
        assert!(ResourceVersion::UNSET.is_unset() && v("").is_unset() && !v("0").is_unset());
        assert_eq!(ResourceVersion::ANY, v("0"));
    }
}
