//! A map with room for so many entries, which forgets what was not asked for the longest.

use std::{collections::BTreeMap, hash::Hash};

use hashbrown::HashMap;

#[derive(Debug)]
pub(super) struct Recent<K, V> {
    capacity: usize,
    entries: HashMap<K, Entry<V>>,
    /// The keys by when they were last asked for.
    order: BTreeMap<u64, K>,
    uses: u64,
}

#[derive(Debug)]
struct Entry<V> {
    used: u64,
    value: V,
}

impl<K: Hash + Eq + Clone, V> Recent<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, entries: HashMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// What is there under a key, which is now the last one to be forgotten.
    pub(super) fn get(&mut self, key: &K) -> Option<&mut V> {
        let entry = self.entries.get_mut(key)?;
        if let Some(key) = self.order.remove(&entry.used) {
            self.uses += 1;
            entry.used = self.uses;
            self.order.insert(entry.used, key);
        }
        Some(&mut entry.value)
    }

    /// Puts a value in. Where there is no room, the entry that was not asked for the longest goes.
    pub(super) fn insert(&mut self, key: K, value: V) {
        self.remove(&key);
        if self.is_full() {
            self.order.pop_first().map(|(_, key)| self.entries.remove(&key));
        }
        self.uses += 1;
        self.order.insert(self.uses, key.clone());
        self.entries.insert(key, Entry { used: self.uses, value });
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.order.remove(&entry.used);
        Some(entry.value)
    }

    /// The entry that was not asked for the longest.
    pub(super) fn oldest(&self) -> Option<&V> {
        let (_, key) = self.order.first_key_value()?;
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// Whether another entry would have one forgotten.
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.capacity
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.entries.len(), self.order.len());
        self.entries.len()
    }
}
