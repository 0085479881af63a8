//! The queue that keeps the events of each key together.

use std::collections::{HashMap, HashSet, VecDeque};

use hashbrown::DefaultHashBuilder;
use informer_model::{ObjectKey, ResourceVersion};

use super::{Delta, Queue, Replacement};
use crate::{Object, Tombstone, store::Store};

type KeyMap<V> = HashMap<ObjectKey, V, DefaultHashBuilder>;
type KeySet = HashSet<ObjectKey, DefaultHashBuilder>;

/// Hands out key by key, in the order in which keys came to wait, each with all that happened to it.
///
/// Of what happened to a key nothing is left out, but for one of two deletions in a row: the one that knows
/// more stays. Deletions that were missed are found when a list arrives, by comparing it with the store and
/// with what waits. Keys overtake each other here, so the store behind this queue has a version only where a
/// bookmark says so.
pub struct DeltaFifo<K> {
    store: Store<K>,
    /// Keys and bookmarks in the order in which they came to wait.
    order: VecDeque<Waiting>,
    /// What has happened to each waiting key, oldest first. Never empty for a key.
    deltas: KeyMap<Vec<Delta<K>>>,
    /// The keys of the batch in flight, each as the batch will leave it: `None` is deleted.
    in_flight: KeyMap<Option<Object<K>>>,
    /// The keys of the first list that have not been processed; `None` before that list.
    initial: Option<KeySet>,
    /// The version of the newest event, until a bookmark for it waits.
    newest: Option<ResourceVersion>,
}

enum Waiting {
    Key(ObjectKey),
    Bookmark(ResourceVersion),
}

impl<K> DeltaFifo<K> {
    /// An empty queue in front of a store.
    pub fn new(store: Store<K>) -> Self {
        let (order, deltas, in_flight) = Default::default();
        Self { store, order, deltas, in_flight, initial: None, newest: None }
    }

    fn push(&mut self, delta: Delta<K>) {
        let Some(key) = delta.key() else { return };
        match self.deltas.get_mut(key) {
            Some(waiting) => {
                waiting.push(delta);
                merge_deletions(waiting);
            }
            None => {
                let key = key.clone();
                self.order.push_back(Waiting::Key(key.clone()));
                self.deltas.insert(key, vec![delta]);
            }
        }
    }

    fn saw(&mut self, version: &ResourceVersion) {
        if !version.is_unset() {
            self.newest = Some(version.clone());
        }
    }

    /// Whether something waits or is in flight for a key.
    fn is_busy(&self, key: &ObjectKey) -> bool {
        self.deltas.contains_key(key) || self.in_flight.contains_key(key)
    }

    /// Notes a deletion for each key that is known here or to the store and is not in the list.
    fn bury_missing(&mut self, list: &Replacement<K>) -> Vec<ObjectKey> {
        let listed: HashSet<&ObjectKey> =
            list.objects.iter().map(Object::key).chain(&list.unusable).collect();
        let stored = self.store.snapshot();
        let in_flight = self.in_flight.iter().filter(|(_, object)| object.is_some()).map(|(key, _)| key);
        let in_store = stored.iter().map(Object::key).filter(|key| !self.in_flight.contains_key(*key));
        let known = in_flight.chain(in_store).filter(|key| !self.deltas.contains_key(*key));
        let absent = |key: &&ObjectKey| list.covers(key) && !listed.contains(key);
        let mut missing: Vec<ObjectKey> = self.deltas.keys().chain(known).filter(absent).cloned().collect();
        missing.sort_unstable();
        for key in &missing {
            let last_seen = match self.deltas.get(key).and_then(|waiting| waiting.last()) {
                Some(delta) => delta.object(),
                None => self.in_flight.get(key).map_or_else(|| stored.get(key), Option::as_ref),
            };
            let last_seen = last_seen.cloned();
            self.push(Delta::Deleted(Tombstone::Unknown { key: key.clone(), last_seen }));
        }
        missing
    }
}

/// Of two deletions in a row the one with the better information stays.
fn merge_deletions<K>(deltas: &mut Vec<Delta<K>>) {
    if let [.., Delta::Deleted(earlier), Delta::Deleted(later)] = &deltas[..] {
        let earlier_knows_more = match (earlier, later) {
            (_, Tombstone::Final(_)) => false,
            (Tombstone::Final(_), _) => true,
            _ => later.object().is_none(),
        };
        let worse = if earlier_knows_more { deltas.len() - 1 } else { deltas.len() - 2 };
        deltas.remove(worse);
    }
}

impl<K> Queue<K> for DeltaFifo<K> {
    fn added(&mut self, object: Object<K>) {
        self.saw(object.resource_version());
        self.push(Delta::Added(object));
    }

    fn updated(&mut self, object: Object<K>) {
        self.saw(object.resource_version());
        self.push(Delta::Updated(object));
    }

    fn deleted(&mut self, tombstone: Tombstone<K>) {
        let version = match &tombstone {
            Tombstone::Final(object) => object.resource_version().clone(),
            Tombstone::Unknown { .. } | Tombstone::Left { .. } => ResourceVersion::UNSET,
        };
        if self.is_busy(tombstone.key()) || self.store.get(tombstone.key()).is_some() {
            self.saw(&version);
            self.push(Delta::Deleted(tombstone));
        } else if !version.is_unset() {
            // Of what nobody has heard nobody needs to hear that it is gone; but its version has been reached.
            self.bookmark(version);
        }
    }

    fn replace(&mut self, list: Replacement<K>) {
        let mut keys: Vec<ObjectKey> = list.objects.iter().map(|object| object.key().clone()).collect();
        keys.extend(self.bury_missing(&list));
        for object in list.objects {
            self.push(Delta::Replaced(object));
        }
        self.initial.get_or_insert_with(|| keys.into_iter().collect());
        self.bookmark(list.version);
    }

    fn resync(&mut self) {
        for object in self.store.snapshot().iter() {
            if !self.is_busy(object.key()) {
                self.push(Delta::Sync(object.clone()));
            }
        }
    }

    fn bookmark(&mut self, version: ResourceVersion) {
        self.newest = None;
        match self.order.back_mut() {
            Some(Waiting::Bookmark(waiting)) => *waiting = version,
            _ => self.order.push_back(Waiting::Bookmark(version)),
        }
    }

    fn pop(&mut self, max: usize) -> Vec<Delta<K>> {
        let mut batch = Vec::new();
        while batch.len() < max.max(1) {
            match self.order.pop_front() {
                None => break,
                Some(Waiting::Bookmark(version)) => batch.push(Delta::Bookmark(version)),
                Some(Waiting::Key(key)) => {
                    batch.extend(self.deltas.remove(&key).unwrap_or_default());
                    let left = match batch.last() {
                        Some(Delta::Deleted(_)) | None => None,
                        Some(delta) => delta.object().cloned(),
                    };
                    self.in_flight.insert(key, left);
                    // With nothing left that could be older, the newest event has become a point in time.
                    if self.order.is_empty() {
                        self.order.extend(self.newest.take().map(Waiting::Bookmark));
                    }
                }
            }
        }
        batch
    }

    fn retry(&mut self, deltas: Vec<Delta<K>>) {
        let mut again: Vec<(ObjectKey, Vec<Delta<K>>)> = Vec::new();
        for delta in deltas {
            match (delta.key(), again.last_mut()) {
                (None, _) => {}
                (Some(key), Some((last, deltas))) if key == last => deltas.push(delta),
                (Some(key), _) => again.push((key.clone(), vec![delta])),
            }
        }
        for (key, deltas) in again {
            self.in_flight.remove(&key);
            if !self.deltas.contains_key(&key) {
                self.order.push_back(Waiting::Key(key.clone()));
                self.deltas.insert(key, deltas);
            }
        }
    }

    fn done(&mut self) {
        for (key, _) in self.in_flight.drain() {
            if let Some(initial) = &mut self.initial {
                initial.remove(&key);
            }
        }
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    fn has_synced(&self) -> bool {
        self.initial.as_ref().is_some_and(KeySet::is_empty)
    }
}
