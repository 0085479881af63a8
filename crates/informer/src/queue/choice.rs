//! Which queue an informer has.

use informer_model::ResourceVersion;

use super::{Delta, DeltaFifo, InOrderFifo, Queue, Replacement};
use crate::{Object, Tombstone, store::Store};

/// The two queues there are to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum QueueKind {
    /// Every event in the order of its arrival: [`InOrderFifo`].
    #[default]
    InOrder,
    /// The events of each key together: [`DeltaFifo`].
    PerKey,
}

/// Either queue, as a value of one type.
pub struct AnyQueue<K>(Box<dyn Queue<K> + Send>);

impl<K: Send + Sync + 'static> AnyQueue<K> {
    /// A queue of this kind in front of a store.
    pub fn new(kind: QueueKind, store: &Store<K>) -> Self {
        match kind {
            QueueKind::InOrder => Self(Box::new(InOrderFifo::new())),
            QueueKind::PerKey => Self(Box::new(DeltaFifo::new(store.clone()))),
        }
    }
}

impl<K> Queue<K> for AnyQueue<K> {
    fn added(&mut self, object: Object<K>) {
        self.0.added(object);
    }

    fn updated(&mut self, object: Object<K>) {
        self.0.updated(object);
    }

    fn deleted(&mut self, tombstone: Tombstone<K>) {
        self.0.deleted(tombstone);
    }

    fn replace(&mut self, list: Replacement<K>) {
        self.0.replace(list);
    }

    fn resync(&mut self) {
        self.0.resync();
    }

    fn bookmark(&mut self, version: ResourceVersion) {
        self.0.bookmark(version);
    }

    fn pop(&mut self, max: usize) -> Vec<Delta<K>> {
        self.0.pop(max)
    }

    fn retry(&mut self, deltas: Vec<Delta<K>>) {
        self.0.retry(deltas);
    }

    fn done(&mut self) {
        self.0.done();
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn has_synced(&self) -> bool {
        self.0.has_synced()
    }
}
