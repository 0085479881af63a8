//! The name of an object within its resource: `namespace/name`, or `name` alone for cluster-scoped kinds.

use std::{cmp::Ordering, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The key of one object: `namespace/name`, or just `name` when the kind has no namespaces.
///
/// A key is always valid: no part is empty and there is at most one slash. It is cheap to clone (an `Arc`).
///
/// Keys are ordered as an API server orders a list: by the bytes of `namespace/name`. That is not the
/// order of the pair: `a-b/x` comes before `a/x`, because `-` is less than `/`.
///
/// ```
/// use informer_model::ObjectKey;
///
/// let key: ObjectKey = "kube-system/kube-dns".parse()?;
/// assert_eq!((key.namespace(), key.name()), (Some("kube-system"), "kube-dns"));
/// assert_eq!(ObjectKey::new(None, "node-1")?.to_string(), "node-1");
/// assert!("a/b/c".parse::<ObjectKey>().is_err());
/// # Ok::<(), informer_model::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ObjectKey(Arc<str>);

/// Why a text is not an [`ObjectKey`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is nothing where a name must be.
    #[error("object key {key:?}: the name at byte {position} is empty; expected `name` or `namespace/name`")]
    EmptyName {
        /// The whole text.
        key: String,
        /// Where the name should have begun, in bytes.
        position: usize,
    },
    /// The text begins with the slash.
    #[error("object key {key:?}: the namespace before the slash is empty; a cluster-scoped key has no slash")]
    EmptyNamespace {
        /// The whole text.
        key: String,
    },
    /// A second slash.
    #[error("object key {key:?}: unexpected `/` at byte {position}; expected at most one slash")]
    ExtraSlash {
        /// The whole text.
        key: String,
        /// Where the slash that is too many stands, in bytes.
        position: usize,
    },
}

impl ObjectKey {
    /// The key of an object from its two names. `Some("")` as a namespace counts as none, because the
    /// API writes it so.
    pub fn new(namespace: Option<&str>, name: &str) -> Result<Self, KeyError> {
        match namespace.filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => Self::checked(&[namespace, "/", name].concat(), Some(namespace.len())),
            None => Self::checked(name, None),
        }
    }

    /// `slash` is where the slash between namespace and name stands.
    fn checked(text: &str, slash: Option<usize>) -> Result<Self, KeyError> {
        let key = || text.to_owned();
        let position = slash.map_or(0, |slash| slash + 1);
        if slash == Some(0) {
            return Err(KeyError::EmptyNamespace { key: key() });
        }
        if position == text.len() {
            return Err(KeyError::EmptyName { key: key(), position });
        }
        if let Some(extra) = text.bytes().enumerate().position(|(at, b)| b == b'/' && Some(at) != slash) {
            return Err(KeyError::ExtraSlash { key: key(), position: extra });
        }
        Ok(Self(text.into()))
    }

    /// The namespace, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The name within the namespace.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// The key as text: what [`Display`](fmt::Display) prints and [`FromStr`] reads.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ObjectKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::checked(text, text.find('/'))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::borrow::Borrow<str> for ObjectKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_text_round_trip() {
        for (text, namespace, name) in
            [("pod", None, "pod"), ("ns/pod", Some("ns"), "pod"), ("é/☃", Some("é"), "☃")]
        {
            let key: ObjectKey = text.parse().unwrap();
            assert_eq!((key.namespace(), key.name(), key.to_string().as_str()), (namespace, name, text));
            assert_eq!(ObjectKey::new(namespace, name).unwrap(), key);
            assert_eq!(
                serde_json::from_str::<ObjectKey>(&serde_json::to_string(&key).unwrap()).unwrap(),
                key
            );
        }
        assert_eq!(ObjectKey::new(Some(""), "node").unwrap().namespace(), None);
    }

    #[test]
    fn empty_parts_and_extra_slashes_are_refused_with_their_position() {
        let refused = |text: &str| text.parse::<ObjectKey>().unwrap_err();
        assert_eq!(refused(""), KeyError::EmptyName { key: "".into(), position: 0 });
        assert_eq!(refused("ns/"), KeyError::EmptyName { key: "ns/".into(), position: 3 });
        assert_eq!(refused("/pod"), KeyError::EmptyNamespace { key: "/pod".into() });
        assert_eq!(refused("/"), KeyError::EmptyNamespace { key: "/".into() });
        assert_eq!(refused("a/b/c"), KeyError::ExtraSlash { key: "a/b/c".into(), position: 3 });
        assert_eq!(refused("a//"), KeyError::ExtraSlash { key: "a//".into(), position: 2 });
        assert!(ObjectKey::new(Some("a/b"), "c").is_err());
        assert!(ObjectKey::new(None, "a/b").is_err());
        assert!(ObjectKey::new(Some("ns"), "").is_err());
    }

    #[test]
    fn order_is_that_of_an_api_servers_list() {
        let mut keys: Vec<ObjectKey> =
            ["a/x", "a-b/x", "a.b/x", "a0/x"].map(|key| key.parse().unwrap()).to_vec();
        keys.sort();
        assert_eq!(keys.iter().map(ObjectKey::as_str).collect::<Vec<_>>(), ["a-b/x", "a.b/x", "a/x", "a0/x"]);
    }
}
