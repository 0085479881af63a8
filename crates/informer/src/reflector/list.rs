//! A list in the making: what has arrived of it so far.

use std::collections::BTreeMap;

use informer_model::ObjectKey;

use crate::{Object, source::Unusable};

/// Objects by key, in the order of keys, which is the order in which a server lists.
///
/// A streaming list may change or take back what it has told; of two objects with one key the later counts.
pub(super) struct List<K> {
    objects: BTreeMap<ObjectKey, Object<K>>,
    unusable: BTreeMap<String, Unusable>,
}

impl<K> Default for List<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), unusable: BTreeMap::new() }
    }
}

impl<K> List<K> {
    pub(super) fn len(&self) -> usize {
        self.objects.len() + self.unusable.len()
    }

    pub(super) fn put(&mut self, object: Object<K>) {
        if !self.unusable.is_empty() {
            self.unusable.remove(object.key().as_str());
        }
        self.objects.insert(object.key().clone(), object);
    }

    pub(super) fn put_unusable(&mut self, unusable: Unusable) {
        if let Some(key) = &unusable.key {
            self.objects.remove(key);
        }
        self.unusable.insert(unusable.name.clone(), unusable);
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) {
        self.objects.remove(key);
        self.unusable.remove(key.as_str());
    }

    /// The objects in the order of keys, and what cannot be used.
    pub(super) fn take(&mut self) -> (Vec<Object<K>>, Vec<Unusable>) {
        let List { objects, unusable } = std::mem::take(self);
        (objects.into_values().collect(), unusable.into_values().collect())
    }
}
