//! The handle through which everything here hands out an object of the cluster.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use informer_model::{KeyError, Labels, ObjectKey, ResourceVersion};
use kube::Resource;

use crate::wire::deep;

/// A shared, immutable object of kind `K`.
///
/// It is cheap to clone (an `Arc`), and `&*object` is the `K`. Key, version and labels are kept beside the object and
/// cost nothing to ask for, whichever way the object itself is held.
///
/// The methods of kube's [`Resource`] and `ResourceExt` work on it as they do on the `K`. A function that asks for a
/// `Resource` takes `&*object`: a handle is not one itself, because a `Resource` can be changed.
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
/// assert_eq!(kube::Resource::object_ref(&*pod, &()).namespace.as_deref(), Some("shop"));
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
    body: Box<Body<K>>,
}

/// The object itself, and what is seldom asked for.
struct Body<K> {
    /// Taken out only to be dropped.
    object: Option<K>,
    wire_bytes: u32,
    /// A hash of those bytes; 0 when there were none.
    wire_hash: u64,
    /// How deep it is nested, as far as that is known.
    depth: u32,
}

/// Dropping goes down to the innermost value, call by call: an object that was decoded with more stack than
/// usual needs it again here.
impl<K> Drop for Body<K> {
    fn drop(&mut self) {
        if deep::is_deep(self.depth) {
            let object = self.object.take();
            deep::with_stack(self.depth, || drop(object));
        }
    }
}

/// Why a decoded object cannot be kept: it has no usable name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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

/// What an object had on the wire.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wired {
    pub(crate) bytes: usize,
    /// A hash of what was decoded; 0 when that is not known. Its highest bit says in which form it came: hashes of
    /// one object in two forms have nothing in common.
    pub(crate) hash: u64,
    /// How deep it is nested, as far as that is known.
    pub(crate) depth: u32,
}

/// The bit of a hash that says that protobuf came.
pub(crate) const PROTOBUF_HASH: u64 = 1 << 63;

impl<K> Object<K> {
    /// An object as it came, with the head that was read before it.
    ///
    /// The body is there first: key, labels and counter are then allocated in a row and lie close together.
    pub(crate) fn decoded(
        body: K,
        wired: Wired,
        namespace: Option<&str>,
        name: Option<&str>,
        version: &str,
        labels: impl FnOnce(&K) -> Labels,
    ) -> Result<Self, ObjectError> {
        let wire_bytes = wired.bytes.try_into().unwrap_or(u32::MAX);
        let body =
            Box::new(Body { object: Some(body), wire_bytes, wire_hash: wired.hash, depth: wired.depth });
        let Some(name) = name else {
            return Err(ObjectError::NoName { namespace: namespace.map(str::to_owned) });
        };
        let key = ObjectKey::new(namespace, name)?;
        let (version, labels) = (version.into(), labels(&body));
        Ok(Self(Arc::new(Inner { key, version, labels, body })))
    }
}

impl<K: Resource> Object<K> {
    /// Takes key, version and labels from the object's own metadata.
    pub fn new(body: K) -> Result<Self, ObjectError> {
        Self::wired(body, Wired::default())
    }

    /// Like [`new`](Self::new), of an object that had this on the wire.
    pub(crate) fn wired(body: K, wired: Wired) -> Result<Self, ObjectError> {
        let meta = body.meta();
        let [namespace, name, version] =
            [&meta.namespace, &meta.name, &meta.resource_version].map(Clone::clone);
        let labels = |body: &K| body.meta().labels.as_ref().map(Labels::from).unwrap_or_default();
        let version = version.unwrap_or_default();
        Self::decoded(body, wired, namespace.as_deref(), name.as_deref(), &version, labels)
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
        // What copies or drops parts of a deep body needs more stack than usual.
        deep::with_stack(self.0.body.depth, move || {
            let mut body = self.into_body();
            change(&mut body)?;
            Ok(Self::assemble(key, version, body))
        })
    }

    /// The same object with its body held in another way: labels stay too, whatever the body says after that.
    pub(crate) fn reshape(self, change: impl FnOnce(&mut K)) -> Self
    where
        K: Clone,
    {
        let Inner { key, version, labels, body } = &*self.0;
        let (key, version, labels, depth) = (key.clone(), version.clone(), labels.clone(), body.depth);
        deep::with_stack(depth, move || {
            let mut body = self.into_body();
            change(&mut body);
            Self(Arc::new(Inner { key, version, labels, body }))
        })
    }

    /// The body, copied only if somebody else holds this object too.
    fn into_body(self) -> Box<Body<K>>
    where
        K: Clone,
    {
        Arc::try_unwrap(self.0).map_or_else(
            |shared| {
                let Body { wire_bytes, wire_hash, depth, .. } = *shared.body;
                Box::new(Body { object: Some((**shared.body).clone()), wire_bytes, wire_hash, depth })
            },
            |inner| inner.body,
        )
    }

    fn assemble(key: ObjectKey, version: ResourceVersion, body: Box<Body<K>>) -> Self {
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

    /// How many bytes the server sent, decompressed, for this object; 0 when it did not come from a server.
    pub fn wire_bytes(&self) -> usize {
        self.0.body.wire_bytes as usize
    }

    /// Whether the server said the same of both: one version, in the same bytes. The version alone would not do:
    /// a server that went back in time gives it to another state of the object. Of bytes in two forms there is no more
    /// to know than the version.
    pub(crate) fn same_bytes(&self, other: &Self) -> bool {
        let (one, two) = (self.0.body.wire_hash, other.0.body.wire_hash);
        one != 0
            && two != 0
            && (one == two || is_protobuf(one) != is_protobuf(two))
            && self.resource_version() == other.resource_version()
    }

    /// Whether nothing is known that sets the two apart: one version, and not in other bytes.
    pub(crate) fn same_state(&self, other: &Self) -> bool {
        let (one, two) = (self.0.body.wire_hash, other.0.body.wire_hash);
        let comparable = one != 0 && two != 0 && is_protobuf(one) == is_protobuf(two);
        self.resource_version() == other.resource_version() && (one == two || !comparable)
    }

    /// Whether two handles hold the very same object, not an equal one.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

fn is_protobuf(hash: u64) -> bool {
    hash & PROTOBUF_HASH != 0
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

const TAKEN: &str = "the object is taken out of its body only to be dropped";

impl<K> Deref for Body<K> {
    type Target = K;

    fn deref(&self) -> &K {
        self.object.as_ref().expect(TAKEN)
    }
}

impl<K> DerefMut for Body<K> {
    fn deref_mut(&mut self) -> &mut K {
        self.object.as_mut().expect(TAKEN)
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
