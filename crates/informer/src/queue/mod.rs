//! What has happened and is still to be applied: the way from the reflector to the store.
//!
//! In come events, whole lists, resyncs and bookmarks, from the task that talks to the server. Out come
//! batches of [`Delta`], for the task that applies them to the store. Two queues differ in what they keep:
//! [`InOrderFifo`] every event in the order of its arrival, [`DeltaFifo`] the events of each key together.
//!
//! Both are plain values without locks or waiting. [`SharedQueue`] puts one between two tasks.

mod apply;
mod choice;
mod delta_fifo;
mod in_order;
mod shared;
mod transform;

use informer_model::ResourceVersion;

use crate::{Object, Tombstone};

pub(crate) use apply::FirstList;
#[doc(hidden)]
pub use apply::apply;
#[doc(hidden)]
pub use choice::AnyQueue;
pub use choice::QueueKind;
pub use delta_fifo::DeltaFifo;
pub use in_order::InOrderFifo;
#[doc(hidden)]
pub use shared::Popped;
pub use shared::{Closed, SharedQueue};
#[doc(hidden)]
pub use transform::Verdict;
pub use transform::{Transform, TransformError};

pub use crate::delta::{Delta, Replacement};

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
