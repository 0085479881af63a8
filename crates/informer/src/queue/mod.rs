//! What has happened and is still to be applied: the way from the reflector to the store.
//!
//! In come events, whole lists, resyncs and bookmarks, from the task that talks to the server. Out come
//! batches of [`Delta`], for the task that [`apply`]s them to the store. Two queues differ in what they keep:
//! [`InOrderFifo`] every event in the order of its arrival, [`DeltaFifo`] the events of each key together.
//!
//! Both are plain values without locks or waiting. [`SharedQueue`] puts one between two tasks.

mod apply;
mod choice;
mod delta_fifo;
mod in_order;
mod shared;
mod transform;

use std::sync::Arc;

use informer_model::{ObjectKey, ResourceVersion};

use crate::{Object, Tombstone};

pub(crate) use apply::FirstList;
pub use apply::apply;
pub use choice::{AnyQueue, QueueKind};
pub use delta_fifo::DeltaFifo;
pub use in_order::InOrderFifo;
pub use shared::{Closed, Popped, SharedQueue};
pub use transform::{Transform, TransformError, Verdict};

/// One step of what happened, as a queue hands it out.
#[derive(Debug, Clone)]
pub enum Delta<K> {
    /// The server said that the object is new.
    Added(Object<K>),
    /// The server said that the object has changed.
    Updated(Object<K>),
    /// The object is gone.
    Deleted(Tombstone<K>),
    /// The object was in a list. [`DeltaFifo`] hands out a list object by object.
    Replaced(Object<K>),
    /// The object is in the cache and is shown again. [`DeltaFifo`] resyncs object by object.
    Sync(Object<K>),
    /// A whole list, to be applied in one step. [`InOrderFifo`] hands out a list so.
    ReplacedAll(Replacement<K>),
    /// All objects of the cache are to be shown again. [`InOrderFifo`] resyncs so.
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

/// A queue between the reflector and the store.
///
/// A batch is *in flight* from [`pop`](Self::pop) to [`done`](Self::done). There is one at a time. What is
/// in flight may or may not be in the store already, so a queue that compares a list with the store counts
/// what is in flight as known.
pub trait Queue<K> {
    /// The server said that an object is new.
    fn added(&mut self, object: Object<K>);
    /// The server said that an object has changed.
    fn updated(&mut self, object: Object<K>);
    /// An object is gone.
    fn deleted(&mut self, tombstone: Tombstone<K>);
    /// A list is all that there is.
    fn replace(&mut self, list: Replacement<K>);
    /// All objects of the cache are to be shown to the handlers again.
    fn resync(&mut self);
    /// The server has told every change up to this version.
    fn bookmark(&mut self, version: ResourceVersion);

    /// Takes out about `max` deltas: fewer if there are fewer, more if they belong together. An empty answer
    /// means that there is nothing to do.
    fn pop(&mut self, max: usize) -> Vec<Delta<K>>;
    /// Queues deltas of the batch in flight again, because processing them failed.
    fn retry(&mut self, deltas: Vec<Delta<K>>);
    /// The batch in flight has been processed.
    fn done(&mut self);

    /// How many entries wait.
    fn len(&self) -> usize;
    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether the first list has been processed to its end.
    fn has_synced(&self) -> bool;
}
