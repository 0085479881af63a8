//! What travels from the reflector to the store: single steps, and whole lists.

use std::sync::Arc;

use informer_model::{ObjectKey, ResourceVersion};

use crate::{Object, Tombstone};

/// One step of what happened, as a queue hands it out.
#[derive(Debug, Clone)]
pub enum Delta<K> {
    /// The server said that the object is new.
    Added(Object<K>),
    /// The server said that the object has changed.
    Updated(Object<K>),
    /// The object is gone.
    Deleted(Tombstone<K>),
    /// The object was in a list. [`DeltaFifo`](crate::queue::DeltaFifo) hands out a list object by object.
    Replaced(Object<K>),
    /// The object is in the cache and is shown again. [`DeltaFifo`](crate::queue::DeltaFifo) resyncs object by object.
    Sync(Object<K>),
    /// A whole list, to be applied in one step. [`InOrderFifo`](crate::queue::InOrderFifo) hands out a list so.
    ReplacedAll(Replacement<K>),
    /// All objects of the cache are to be shown again. [`InOrderFifo`](crate::queue::InOrderFifo) resyncs so.
    SyncAll,
    /// Every change up to this version has been handed out.
    Bookmark(ResourceVersion),
}

impl<K> Delta<K> {
    /// The key of the one object that this is about, if it is about one.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::Deleted(tombstone) => Some(tombstone.key()),
            _ => self.object().map(Object::key),
        }
    }

    /// The one object that this is about, if it is about one and the object is known.
    pub fn object(&self) -> Option<&Object<K>> {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => {
                Some(object)
            }
            Self::Deleted(tombstone) => tombstone.object(),
            Self::ReplacedAll(_) | Self::SyncAll | Self::Bookmark(_) => None,
        }
    }
}

/// A list from the server: all that there is at one version.
#[derive(Debug, Clone)]
pub struct Replacement<K> {
    /// The one namespace that was listed; `None` if everything was. Nothing outside of it is touched.
    pub namespace: Option<Arc<str>>,
    /// The objects in the server's order.
    pub objects: Vec<Object<K>>,
    /// Objects that exist but cannot be used, because they do not decode or their transform failed. They
    /// count as present: an object that the cache has from before stays there.
    pub unusable: Vec<ObjectKey>,
    /// The version of the list.
    pub version: ResourceVersion,
}

impl<K> Replacement<K> {
    /// All that there is, every object of it usable.
    pub fn new(objects: Vec<Object<K>>, version: impl Into<ResourceVersion>) -> Self {
        Self { namespace: None, objects, unusable: Vec::new(), version: version.into() }
    }

    /// Whether the list would have an object with this key, if it existed.
    pub fn covers(&self, key: &ObjectKey) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| key.namespace() == Some(namespace))
    }
}
