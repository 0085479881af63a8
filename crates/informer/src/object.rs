//! The handle through which everything here hands out an object of the cluster.

use std::{fmt, ops::Deref, sync::Arc};

use informer_model::{KeyError, Labels, ObjectKey, ResourceVersion};
use kube::Resource;

/// A shared, immutable object of kind `K`.
///
/// Cloning is a counter, and `&*object` is the `K`. Key, version and labels are kept beside the object and
/// cost nothing to ask for, whichever way the object itself is held.
///
/// ```
/// use informer::Object;
/// use k8s_openapi::api::core::v1::Pod;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
///
/// let metadata = ObjectMeta { name: Some("web-0".into()), namespace: Some("shop".into()), ..Default::default() };
/// let pod = Object::new(Pod { metadata, ..Default::default() })?;
/// assert_eq!(pod.key().to_string(), "shop/web-0");
/// assert!(pod.spec.is_none());
/// # Ok::<(), informer::ObjectError>(())
/// ```
pub struct Object<K>(Arc<Inner<K>>);

/// What is asked for all the time fits in one cache line with the counter. The body, which is large, lies
/// elsewhere: the lines of many objects then lie close together, and walking over them does not drag the
/// bodies through the caches.
struct Inner<K> {
    key: ObjectKey,
    version: ResourceVersion,
    labels: Labels,
    body: Box<K>,
}

/// Why a decoded object cannot be kept: it has no usable name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// `metadata.name` is missing.
    #[error("the object has no metadata.name (namespace {namespace:?})")]
    NoName {
        /// The namespace that it names, if any.
        namespace: Option<String>,
    },
    /// `metadata.name` or `metadata.namespace` is not a name.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl<K: Resource> Object<K> {
    /// Takes key, version and labels from the object's own metadata.
    pub fn new(body: K) -> Result<Self, ObjectError> {
        // The body comes first: key, labels and counter are then allocated in a row and lie close together.
        let body = Box::new(body);
        let meta = body.meta();
        let Some(name) = &meta.name else {
            return Err(ObjectError::NoName { namespace: meta.namespace.clone() });
        };
        let key = ObjectKey::new(meta.namespace.as_deref(), name)?;
        let version = meta.resource_version.as_deref().unwrap_or_default().into();
        Ok(Self::assemble(key, version, body))
    }

    /// The same object with its body changed, as a transform does it.
    ///
    /// Key and version stay what the server said, whatever happens to the metadata in the body: they say
    /// which object this is. Labels are those of the changed body. The body is copied only if somebody else
    /// holds this object too.
    pub fn modify<E>(self, change: impl FnOnce(&mut K) -> Result<(), E>) -> Result<Self, E>
    where
        K: Clone,
    {
        let (key, version) = (self.0.key.clone(), self.0.version.clone());
        let mut body = Arc::try_unwrap(self.0).map_or_else(|shared| shared.body.clone(), |inner| inner.body);
        change(&mut body)?;
        Ok(Self::assemble(key, version, body))
    }

    fn assemble(key: ObjectKey, version: ResourceVersion, body: Box<K>) -> Self {
        let labels = body.meta().labels.as_ref().map(Labels::from).unwrap_or_default();
        Self(Arc::new(Inner { key, version, labels, body }))
    }
}

impl<K> Object<K> {
    /// `namespace/name`.
    pub fn key(&self) -> &ObjectKey {
        &self.0.key
    }

    /// The version that the server gave this state of the object.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.0.version
    }

    /// The object's labels.
    pub fn labels(&self) -> &Labels {
        &self.0.labels
    }

    /// Whether two handles hold the very same object, not an equal one.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<K> Clone for Object<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> Deref for Object<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.0.body
    }
}

impl<K> fmt::Debug for Object<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key(), self.resource_version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};

    fn config_map(name: Option<&str>) -> ConfigMap {
        let metadata = ObjectMeta {
            name: name.map(str::to_owned),
            namespace: Some("ns".into()),
            resource_version: Some("7".into()),
            labels: Some([("app".to_owned(), "web".to_owned())].into()),
            ..ObjectMeta::default()
        };
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    #[test]
    fn c20_key_version_and_labels_are_at_hand() {
        let object = Object::new(config_map(Some("a"))).unwrap();
        assert_eq!(format!("{object:?}"), "ns/a@7");
        assert_eq!(object.labels().get("app"), Some("web"));
        assert!(object.ptr_eq(&object.clone()), "clones share");
    }

    #[test]
    fn an_object_without_a_usable_name_is_an_error_that_says_so() {
        let error = Object::new(config_map(None)).unwrap_err();
        assert_eq!(error.to_string(), "the object has no metadata.name (namespace Some(\"ns\"))");
        assert!(matches!(Object::new(config_map(Some("a/b"))), Err(ObjectError::Key(_))));
        assert!(matches!(Object::new(config_map(Some(""))), Err(ObjectError::Key(_))));
    }

    #[test]
    fn modify_keeps_key_and_version_and_leaves_other_holders_alone() {
        let object = Object::new(config_map(Some("a"))).unwrap();
        let held = object.clone();
        let strip = |body: &mut ConfigMap| {
            body.metadata = ObjectMeta::default();
            Ok::<(), ()>(())
        };
        let stripped = object.modify(strip).unwrap();
        assert_eq!(format!("{stripped:?}"), "ns/a@7");
        assert!(stripped.labels().is_empty() && stripped.metadata.name.is_none());
        assert_eq!(held.metadata.name.as_deref(), Some("a"));
        assert!(held.modify(|_| Err("no")).is_err());
    }
}
