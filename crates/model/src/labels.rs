//! Labels of one object in compact form, and the rules for label keys and values.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashMap},
    fmt,
    hash::BuildHasher,
    sync::Arc,
};

use crate::Requirement;

/// The labels of one object: immutable, sorted by key, shared by clones.
///
/// All of them lie in one text, each as `key=value`. An index that files objects under such texts takes
/// them from here without building one, and two objects' labels are compared at one go.
///
/// A key with `=`, or a key or value with a line end, is no label by any server's rules and cannot be
/// selected by. Should one come all the same, it is left out here.
///
/// ```
/// use informer_model::Labels;
///
/// let labels: Labels = [("tier", "web"), ("app", "shop")].into_iter().collect();
/// assert_eq!(labels.get("app"), Some("shop"));
/// assert_eq!(labels.to_string(), "app=shop,tier=web");
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels(Option<Arc<str>>);

/// One label of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Label<'a> {
    pair: &'a str,
    key_end: usize,
}

impl<'a> Label<'a> {
    /// The key.
    pub fn key(self) -> &'a str {
        &self.pair[..self.key_end]
    }

    /// The value, possibly empty.
    pub fn value(self) -> &'a str {
        &self.pair[self.key_end + 1..]
    }

    /// `key=value`.
    pub fn pair(self) -> &'a str {
        self.pair
    }
}

impl Labels {
    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// The value of a label, if the object has it.
    pub fn get(&self, key: &str) -> Option<&str> {
        // Objects have a handful of labels: walking them beats searching among them.
        self.iter().find(|label| label.key() == key).map(Label::value)
    }

    /// The labels in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = Label<'_>> {
        let pairs = self.0.as_deref().into_iter().flat_map(|text| text.split('\n'));
        pairs.filter_map(|pair| Some(Label { pair, key_end: memchr::memchr(b'=', pair.as_bytes())? }))
    }

    fn from_sorted<K: AsRef<str>, V: AsRef<str>>(pairs: impl Iterator<Item = (K, V)>) -> Self {
        let mut text = String::new();
        for (key, value) in pairs {
            let (key, value) = (key.as_ref(), value.as_ref());
            if key.contains(['=', '\n']) || value.contains('\n') {
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.extend([key, "=", value]);
        }
        Self((!text.is_empty()).then(|| text.into()))
    }
}

impl From<&BTreeMap<String, String>> for Labels {
    fn from(map: &BTreeMap<String, String>) -> Self {
        Self::from_sorted(map.iter())
    }
}

/// Of two labels with one key the later one counts.
impl<K: AsRef<str> + Ord, V: AsRef<str>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self::from_sorted(pairs.into_iter().collect::<BTreeMap<K, V>>().iter())
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, label) in self.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { "," }, label.pair())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|label| (label.key(), label.value()))).finish()
    }
}

impl fmt::Debug for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.pair, f)
    }
}

/// Anything that has labels: what a selector can be matched against.
pub trait LabelSource {
    /// The value of a label, if it is there.
    fn label(&self, key: &str) -> Option<&str>;

    /// Whether all of these requirements hold, which are sorted by key.
    fn satisfies(&self, requirements: &[Requirement]) -> bool {
        requirements.iter().all(|requirement| requirement.matches(self))
    }
}

impl LabelSource for Labels {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)
    }

    /// Both are sorted, so one walk along both is enough, however many requirements there are.
    fn satisfies(&self, requirements: &[Requirement]) -> bool {
        let mut labels = self.iter().peekable();
        requirements.iter().all(|requirement| {
            while labels.next_if(|label| label.key() < requirement.key()).is_some() {}
            let label = labels.peek().filter(|label| label.key() == requirement.key());
            requirement.accepts(label.map(|label| label.value()))
        })
    }
}

impl<K: Borrow<str> + Ord, V: AsRef<str>> LabelSource for BTreeMap<K, V> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(AsRef::as_ref)
    }
}

impl<K: Borrow<str> + Eq + std::hash::Hash, V: AsRef<str>, S: BuildHasher> LabelSource for HashMap<K, V, S> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(AsRef::as_ref)
    }
}

/// The shape of `metadata.labels`, where none at all is the same as an empty map.
impl<T: LabelSource> LabelSource for Option<T> {
    fn label(&self, key: &str) -> Option<&str> {
        self.as_ref()?.label(key)
    }
}

/// Which rule a label key or value breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// A key, or the name after its prefix, is empty.
    #[error("a label name must not be empty")]
    EmptyName,
    /// The part before the slash is empty.
    #[error("the prefix before `/` in a label key must not be empty")]
    EmptyPrefix,
    /// More than one slash.
    #[error("a label key has at most one `/`")]
    ExtraSlash,
    /// A name or a value is over 63 bytes long.
    #[error("a label name or value has at most 63 characters")]
    TooLong,
    /// A prefix is over 253 bytes long.
    #[error("the prefix of a label key has at most 253 characters")]
    PrefixTooLong,
    /// A name or a value has another character than allowed.
    #[error(
        "a label name or value consists of letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit"
    )]
    Character,
    /// A prefix is no DNS subdomain.
    #[error(
        "the prefix of a label key is a DNS subdomain: lower-case letters, digits, `-` and `.`, each part beginning and ending with a letter or digit"
    )]
    PrefixCharacter,
}

/// Checks a label key: `name` or `prefix/name`. The error comes with the byte at which it was found.
pub fn validate_label_key(key: &str) -> Result<(), (usize, LabelError)> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let name_start = prefix.map_or(0, |prefix| prefix.len() + 1);
    if let Some(prefix) = prefix {
        validate_subdomain(prefix)?;
    }
    if let Some(slash) = name.find('/') {
        return Err((name_start + slash, LabelError::ExtraSlash));
    }
    if name.is_empty() {
        return Err((name_start, LabelError::EmptyName));
    }
    validate_label_value(name).map_err(|(at, error)| (name_start + at, error))
}

/// Checks a label value, which may be empty. The error comes with the byte at which it was found.
pub fn validate_label_value(value: &str) -> Result<(), (usize, LabelError)> {
    if value.len() > 63 {
        return Err((63, LabelError::TooLong));
    }
    let last = value.len().saturating_sub(1);
    let wrong = |(at, b): &(usize, u8)| match b {
        b'-' | b'_' | b'.' => *at == 0 || *at == last,
        b => !b.is_ascii_alphanumeric(),
    };
    value.bytes().enumerate().find(wrong).map_or(Ok(()), |(at, _)| Err((at, LabelError::Character)))
}

fn validate_subdomain(prefix: &str) -> Result<(), (usize, LabelError)> {
    if prefix.is_empty() {
        return Err((0, LabelError::EmptyPrefix));
    }
    if prefix.len() > 253 {
        return Err((253, LabelError::PrefixTooLong));
    }
    let bytes = prefix.as_bytes();
    let edge = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_none_or(|b| *b == b'.');
    let wrong = |(at, b): &(usize, &u8)| match b {
        b'a'..=b'z' | b'0'..=b'9' => false,
        b'-' => edge(at.checked_sub(1)) || edge(Some(at + 1)),
        b'.' => edge(at.checked_sub(1)) || *at + 1 == bytes.len(),
        _ => true,
    };
    bytes.iter().enumerate().find(wrong).map_or(Ok(()), |(at, _)| Err((at, LabelError::PrefixCharacter)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_found() {
        let labels: Labels = [("b", "2"), ("a", "1"), ("c", ""), ("a", "9")].into_iter().collect();
        assert_eq!(labels.iter().map(Label::pair).collect::<Vec<_>>(), ["a=9", "b=2", "c="]);
        assert_eq!((labels.get("a"), labels.get("c"), labels.get("d")), (Some("9"), Some(""), None));
        assert_eq!((labels.len(), labels.is_empty()), (3, false));
        let map =
            BTreeMap::from([("a", "9"), ("b", "2"), ("c", "")].map(|(k, v)| (k.to_owned(), v.to_owned())));
        assert_eq!(Labels::from(&map), labels);
        assert!(Labels::default().is_empty() && Labels::default().iter().next().is_none());
    }

    #[test]
    fn what_can_be_no_label_is_left_out() {
        let labels: Labels =
            [("a=b", "1"), ("c\nd", "2"), ("e", "3\nf=4"), ("g", "5=6")].into_iter().collect();
        assert_eq!(
            labels.iter().map(|label| (label.key(), label.value())).collect::<Vec<_>>(),
            [("g", "5=6")]
        );
    }

    #[test]
    fn good_keys_and_values_pass() {
        for key in
            ["a", "A-b_c.9", "k8s-app", "app.kubernetes.io/name", "a.b/c", &"x".repeat(63), "0.1.2.domain/99"]
        {
            assert_eq!(validate_label_key(key), Ok(()), "{key}");
        }
        for value in ["", "a", "v1.2_3-x", &"9".repeat(63)] {
            assert_eq!(validate_label_value(value), Ok(()), "{value}");
        }
    }

    #[test]
    fn bad_keys_and_values_are_refused_with_their_position() {
        use LabelError::*;
        for (key, at, error) in [
            ("", 0, EmptyName),
            ("a/", 2, EmptyName),
            ("/a", 0, EmptyPrefix),
            ("a/b/c", 3, ExtraSlash),
            ("-a", 0, Character),
            ("a-", 1, Character),
            ("a b", 1, Character),
            ("ä", 0, Character),
            ("A.b/c", 0, PrefixCharacter),
            ("a..b/c", 2, PrefixCharacter),
            ("a-.b/c", 1, PrefixCharacter),
            ("a./c", 1, PrefixCharacter),
            (&"x".repeat(64), 63, TooLong),
            (&format!("{}/a", "x".repeat(254)), 253, PrefixTooLong),
        ] {
            assert_eq!(validate_label_key(key), Err((at, error)), "{key}");
        }
        assert_eq!(validate_label_value("a/b"), Err((1, Character)));
        assert_eq!(validate_label_value("."), Err((0, Character)));
    }
}
