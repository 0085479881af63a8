//! Label selectors: which objects a list, a watch or a lister is about.
//!
//! Text comes in through [`Selector::parse`], and the same text comes out of `Display`: what goes into a
//! request is what was matched locally.

mod parser;
mod requirement;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use parser::{SelectorError, SelectorErrorKind};
pub use requirement::{Operator, Requirement, RequirementError};

use crate::LabelSource;

/// A label selector: requirements of which all must hold.
///
/// | text | holds when the label `a` |
/// |---|---|
/// | `a=x`, `a==x` | is there and is `x` |
/// | `a!=x` | is not there, or is not `x` |
/// | `a in (x,y)` | is there and is one of these |
/// | `a notin (x,y)` | is not there, or is none of these |
/// | `a` | is there |
/// | `!a` | is not there |
/// | `a>5`, `a<5` | is there and is an integer above or below |
///
/// Commas join requirements; blanks, tabs and line ends may stand between words and signs. A value may be
/// empty: `a=`, `a in ()` and `a in (x,)` ask for the empty text. Keys and values are checked by the rules
/// for labels, which leave no room for a negative number after `>` and `<`.
///
/// Requirements are sorted by key and values by text, so that two selectors that differ in order alone
/// are equal. `Display` writes what [`parse`](Self::parse) reads back as the same selector.
///
/// ```
/// use informer_model::{Labels, Selector};
///
/// let selector: Selector = "tier in (web, api), app=shop, !canary".parse()?;
/// assert_eq!(selector.to_string(), "app=shop,!canary,tier in (api,web)");
///
/// let labels: Labels = [("app", "shop"), ("tier", "web")].into_iter().collect();
/// assert!(selector.matches(&labels));
///
/// let error = Selector::parse("a in x)").unwrap_err();
/// assert_eq!(error.to_string(), r#"label selector "a in x)": expected `(` at byte 5, found `x`"#);
/// # Ok::<(), informer_model::SelectorError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Selector(Vec<Requirement>);

/// The label that [`Selector::nothing`] requires and forbids. It does no harm on an object.
const NOTHING: &str = "informer.invalid/nothing";

impl Selector {
    /// Reads a selector. The empty text selects everything.
    ///
    /// What is accepted is what an API server accepts, with one exception: a NUL is refused. A server takes
    /// it for the end and so selects more than the text says.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parser::parse(text).map(Self::new)
    }

    /// The selector of these requirements.
    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut requirements: Vec<Requirement> = requirements.into_iter().collect();
        requirements.sort_by(|a, b| a.key().cmp(b.key()));
        Self(requirements)
    }

    /// The selector that every object matches. Its text is empty.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The selector that no object matches.
    ///
    /// It asks for one label to be there and not to be there, and its text says so. An empty text, which
    /// would be the obvious one, selects everything: a request built from it would fetch the whole cluster
    /// for a caller that wanted none of it.
    ///
    /// ```
    /// use informer_model::Selector;
    ///
    /// let nothing = Selector::nothing();
    /// assert!(nothing.is_nothing() && !nothing.is_everything());
    /// assert_eq!(Selector::parse(&nothing.to_string()), Ok(nothing));
    /// ```
    pub fn nothing() -> Self {
        let opposites = [Operator::Exists, Operator::DoesNotExist];
        Self::new(opposites.map(|operator| Requirement::of_valid(NOTHING, operator, Vec::new())))
    }

    /// The selector of objects that have all these labels. Without any it selects everything.
    ///
    /// ```
    /// use informer_model::Selector;
    ///
    /// let selector = Selector::from_set([("tier", "web"), ("app", "shop")])?;
    /// assert_eq!(selector.to_string(), "app=shop,tier=web");
    /// # Ok::<(), informer_model::RequirementError>(())
    /// ```
    pub fn from_set(
        labels: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Result<Self, RequirementError> {
        let equals = |(key, value)| Requirement::new(key, Operator::Equals, [value]);
        labels.into_iter().map(equals).collect::<Result<Vec<_>, _>>().map(Self::new)
    }

    /// The requirements in the order of their keys; those with one key in the order they came in.
    pub fn requirements(&self) -> &[Requirement] {
        &self.0
    }

    /// Whether all requirements hold for these labels.
    pub fn matches(&self, labels: &(impl LabelSource + ?Sized)) -> bool {
        labels.satisfies(&self.0)
    }

    /// Whether there is no requirement, so that every object matches.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether some label is required and forbidden at once, as in [`nothing`](Self::nothing), so that no
    /// object matches. Other contradictions, such as `a=1,a=2`, are not looked for.
    pub fn is_nothing(&self) -> bool {
        self.0.chunk_by(|a, b| a.key() == b.key()).any(|of_one_key| {
            let asks = |operator| of_one_key.iter().any(|requirement| requirement.operator() == operator);
            asks(Operator::Exists) && asks(Operator::DoesNotExist)
        })
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl From<Requirement> for Selector {
    fn from(requirement: Requirement) -> Self {
        Self(vec![requirement])
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.0.iter().enumerate() {
            write!(f, "{}{requirement}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl Serialize for Selector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Labels;

    #[test]
    fn order_does_not_tell_selectors_apart() {
        let a = Selector::parse("b,a in (y,x,y),c=1").unwrap();
        let b = Selector::parse("c=1 , a in(x,y), b").unwrap();
        assert_eq!((&a, a.to_string().as_str()), (&b, "a in (x,y),b,c=1"));
        assert_ne!(a, Selector::parse("c==1,a in (x,y),b").unwrap(), "the operators are two");
    }

    #[test]
    fn requirements_of_one_key_keep_their_order() {
        for text in ["a!=1,a", "a,a!=1", "a,!a", "!a,a"] {
            assert_eq!(Selector::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn nothing_selects_nothing_in_memory_and_as_text() {
        let nothing = Selector::nothing();
        let labelled: Labels = [(NOTHING, "")].into_iter().collect();
        assert!(!nothing.matches(&Labels::default()) && !nothing.matches(&labelled));
        assert_eq!(nothing.to_string(), "informer.invalid/nothing,!informer.invalid/nothing");
        let narrowed = Selector::parse(&format!("z=1,{nothing},a=1")).unwrap();
        assert!(narrowed.is_nothing() && Selector::parse("!a,b,a").unwrap().is_nothing());
        for other in ["", "a", "!a", "a,!b", "a=1,a=2"] {
            assert!(!Selector::parse(other).unwrap().is_nothing(), "{other}");
        }
    }

    #[test]
    fn everything_is_the_default_and_the_empty_set() {
        let everything = Selector::everything();
        assert!(everything.is_everything() && everything.matches(&Labels::default()));
        assert_eq!(Selector::default(), everything);
        assert_eq!(Selector::from_set([("a", "b"); 0]).unwrap(), everything);
        assert_eq!(Selector::new([]), everything);
        assert_eq!(Selector::parse(" \t\r\n").unwrap(), everything);
    }

    #[test]
    fn serde_writes_the_text() {
        let selector = Selector::parse("a in (x,y),!b").unwrap();
        let json = serde_json::to_value(&selector).unwrap();
        assert_eq!(json, "a in (x,y),!b");
        assert_eq!(serde_json::from_value::<Selector>(json).unwrap(), selector);
        let error = serde_json::from_str::<Selector>(r#""a,""#).unwrap_err().to_string();
        assert!(error.contains("at byte 2"), "{error}");
    }
}
