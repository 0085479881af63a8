//! The queue that keeps everything in the order of its arrival.

use std::collections::VecDeque;

use informer_model::ResourceVersion;

use super::{Delta, Queue, Replacement};
use crate::{Object, Tombstone};

/// Hands out every event in the order of its arrival, and a list as one step.
///
/// The store behind it is therefore always what the server held at one version, and a relist is compared
/// with the store when its turn comes, not when it arrives. This is the queue to use unless you know why not.
pub struct InOrderFifo<K> {
    deltas: VecDeque<Delta<K>>,
    synced: Synced,
}

/// How far the first list has come.
#[derive(PartialEq)]
enum Synced {
    No,
    InFlight,
    Yes,
}

impl<K> Default for InOrderFifo<K> {
    fn default() -> Self {
        Self { deltas: VecDeque::new(), synced: Synced::No }
    }
}

impl<K> InOrderFifo<K> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K> Queue<K> for InOrderFifo<K> {
    fn added(&mut self, object: Object<K>) {
        self.deltas.push_back(Delta::Added(object));
    }

    fn updated(&mut self, object: Object<K>) {
        self.deltas.push_back(Delta::Updated(object));
    }

    fn deleted(&mut self, tombstone: Tombstone<K>) {
        self.deltas.push_back(Delta::Deleted(tombstone));
    }

    fn replace(&mut self, list: Replacement<K>) {
        self.deltas.push_back(Delta::ReplacedAll(list));
    }

    fn resync(&mut self) {
        // Objects are shown as they are when the turn comes, so one waiting resync is as good as two.
        if !self.deltas.iter().any(|delta| matches!(delta, Delta::SyncAll)) {
            self.deltas.push_back(Delta::SyncAll);
        }
    }

    fn bookmark(&mut self, version: ResourceVersion) {
        match self.deltas.back_mut() {
            Some(Delta::Bookmark(waiting)) => *waiting = version,
            _ => self.deltas.push_back(Delta::Bookmark(version)),
        }
    }

    fn pop(&mut self, max: usize) -> Vec<Delta<K>> {
        let count = self.deltas.len().min(max.max(1));
        let mut batch = Vec::with_capacity(count + 1);
        batch.extend(self.deltas.drain(..count));
        if self.synced == Synced::No && batch.iter().any(|delta| matches!(delta, Delta::ReplacedAll(_))) {
            self.synced = Synced::InFlight;
        }
        // In this queue an event stands for its version: whoever has applied it is there.
        let reached = batch.iter().rev().find_map(|delta| match delta {
            Delta::Added(object) | Delta::Updated(object) | Delta::Deleted(Tombstone::Final(object)) => {
                Some(Some(object.resource_version().clone()))
            }
            Delta::ReplacedAll(_) | Delta::Bookmark(_) => Some(None),
            _ => None,
        });
        batch.extend(reached.flatten().filter(|version| !version.is_unset()).map(Delta::Bookmark));
        batch
    }

    fn retry(&mut self, deltas: Vec<Delta<K>>) {
        if self.synced == Synced::InFlight
            && deltas.iter().any(|delta| matches!(delta, Delta::ReplacedAll(_)))
        {
            self.synced = Synced::No;
        }
        for delta in deltas.into_iter().rev() {
            self.deltas.push_front(delta);
        }
    }

    fn done(&mut self) {
        if self.synced == Synced::InFlight {
            self.synced = Synced::Yes;
        }
    }

    fn len(&self) -> usize {
        self.deltas.len()
    }

    fn has_synced(&self) -> bool {
        self.synced == Synced::Yes
    }
}
