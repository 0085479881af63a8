//! The one side that changes a store.

use std::{
    cmp::Ordering,
    collections::VecDeque,
    hint::black_box,
    ops::Bound,
    sync::{Arc, MutexGuard, PoisonError},
};

use hashbrown::HashSet;
use imbl::OrdMap;
use informer_model::{ObjectKey, ResourceVersion};

use super::{
    Shared, Store,
    index::{Index, InsideIndexFunction, UserIndex},
    slab::{Slab, Slot},
    snapshot::{Snapshot, View},
};
use crate::{Event, Object, Tombstone, delta::Replacement};

/// The only way to change a store. There is one for each store, and it cannot be cloned.
pub struct StoreWriter<K> {
    shared: Arc<Shared<K>>,
}

/// Everything in the store, in the form that can be changed.
pub(super) struct State<K> {
    objects: Slab<Object<K>>,
    order: OrdMap<ObjectKey, Slot>,
    namespaces: Index,
    labels: Index,
    pub(super) user: Vec<UserIndex<K>>,
    pub(super) version: ResourceVersion,
    /// How often the version went back.
    pub(super) rewinds: u64,
    /// What is new of the versions of single namespaces.
    pub(super) namespace_versions: Vec<(Arc<str>, Option<ResourceVersion>)>,
    /// Why there can be no objects at all, in words, if that is so.
    pub(super) absent: Option<Arc<str>>,
    /// What all objects took on the wire, if somebody wants to know: it is a look at the body of each that comes or
    /// goes.
    pub(super) wire_bytes: Option<u64>,
}

impl<K> State<K> {
    pub(super) fn new() -> Self {
        Self {
            objects: Slab::new(),
            order: OrdMap::new(),
            namespaces: Index::new(),
            labels: Index::new(),
            user: Vec::new(),
            version: ResourceVersion::UNSET,
            rewinds: 0,
            namespace_versions: Vec::new(),
            absent: None,
            wire_bytes: None,
        }
    }

    /// What is here now, for readers.
    pub(super) fn show(&mut self) -> View<K> {
        View {
            objects: self.objects.show(),
            order: self.order.clone(),
            namespaces: self.namespaces.show(),
            labels: self.labels.show(),
            user: self.user.iter_mut().map(|index| (Arc::clone(&index.name), index.show())).collect(),
            version: self.version.clone(),
            rewinds: self.rewinds,
        }
    }

    /// To be called when readers see what was shown.
    pub(super) fn published(&mut self) {
        self.objects.published();
        self.namespaces.published();
        self.labels.published();
        self.user.iter_mut().for_each(UserIndex::published);
    }

    fn rest(&mut self) {
        self.objects.rest();
        self.namespaces.rest();
        self.labels.rest();
        self.user.iter_mut().for_each(UserIndex::rest);
    }

    /// Adds an index and files in it what is here.
    pub(super) fn add_index(&mut self, mut index: UserIndex<K>) {
        for (_, slot) in &self.order {
            if let Some(object) = self.objects.view().get(*slot) {
                index.refile(*slot, object);
            }
        }
        self.user.push(index);
    }

    /// Puts many objects into an empty store; what [`insert`](Self::insert) says of each is told in order.
    fn fill(&mut self, objects: &[Object<K>]) -> Vec<Option<Object<K>>> {
        let mut put = |object: &Object<K>| {
            let (slot, old, object) = self.objects.insert(object.clone(), None);
            weigh(&mut self.wire_bytes, old.as_ref(), Some(object));
            self.order.insert(object.key().clone(), slot);
            old
        };
        let replaced = objects.iter().map(&mut put).collect();
        let view = self.objects.view();
        let filled = || self.order.values().filter_map(|slot| Some((*slot, view.get(*slot)?)));
        self.namespaces.fill(filled().map(|(slot, object)| (object.key().namespace().unwrap_or(""), slot)));
        self.labels
            .fill(filled().flat_map(|(slot, o)| o.labels().iter().map(move |label| (label.pair(), slot))));
        for index in &mut self.user {
            filled().for_each(|(slot, object)| index.refile(slot, object));
        }
        replaced
    }

    /// The slot is where somebody has found the object before, if so.
    fn insert(&mut self, object: Object<K>, slot: Option<Slot>) -> Option<Object<K>> {
        let (slot, old, object) = self.objects.insert(object, slot);
        weigh(&mut self.wire_bytes, old.as_ref(), Some(object));
        match &old {
            None => {
                self.order.insert(object.key().clone(), slot);
                self.namespaces.file(object.key().namespace().unwrap_or(""), slot);
                for label in object.labels().iter() {
                    self.labels.file(label.pair(), slot);
                }
            }
            Some(old) if old.labels() == object.labels() => {}
            Some(old) => {
                // Both are sorted by key: one walk along both, however many there are.
                let (mut before, mut after) =
                    (old.labels().iter().peekable(), object.labels().iter().peekable());
                loop {
                    let order = match (before.peek(), after.peek()) {
                        (None, None) => break,
                        (Some(_), None) => Ordering::Less,
                        (None, Some(_)) => Ordering::Greater,
                        (Some(old), Some(new)) => (old.key(), old.value()).cmp(&(new.key(), new.value())),
                    };
                    let gone = before.next_if(|_| order.is_le());
                    let come = after.next_if(|_| order.is_ge());
                    match (gone, come) {
                        (Some(gone), None) => self.labels.unfile(gone.pair(), slot),
                        (None, Some(come)) => {
                            self.labels.file(come.pair(), slot);
                        }
                        _ => {}
                    }
                }
            }
        }
        for index in &mut self.user {
            index.refile(slot, object);
        }
        old
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Object<K>> {
        let (slot, object) = self.objects.remove(key.as_str())?;
        weigh(&mut self.wire_bytes, Some(&object), None);
        self.order.remove(key);
        self.namespaces.unfile(key.namespace().unwrap_or(""), slot);
        for label in object.labels().iter() {
            self.labels.unfile(label.pair(), slot);
        }
        for index in &mut self.user {
            index.unfile(slot, key);
        }
        Some(object)
    }
}

/// Counts an object that went and one that came.
fn weigh<K>(wire_bytes: &mut Option<u64>, old: Option<&Object<K>>, new: Option<&Object<K>>) {
    if let Some(bytes) = wire_bytes {
        let weight = |object: Option<&Object<K>>| object.map_or(0, |object| object.wire_bytes() as u64);
        *bytes = (*bytes + weight(new)).saturating_sub(weight(old));
    }
}

impl<K> StoreWriter<K> {
    pub(super) fn new(shared: Arc<Shared<K>>) -> Self {
        Self { shared }
    }

    /// A reader of this store.
    pub fn store(&self) -> Store<K> {
        Store::new(Arc::clone(&self.shared))
    }

    /// To be called when nothing has been written for a while: what only readers hold is then theirs alone, and goes
    /// when they let go of it. The next write costs a little more if there were any.
    pub fn rest(&mut self) {
        self.shared.lock().rest();
    }

    /// From now on the store knows what all objects took on the wire.
    pub(crate) fn count_wire_bytes(&mut self) {
        let mut state = self.shared.lock();
        state.wire_bytes = Some(Snapshot(Arc::new(state.show())).wire_bytes());
    }

    /// Changes the store. Readers see all that `work` does at once, when it has returned, and never a part
    /// of it. Doing many changes in one go costs much less than one by one.
    pub fn write<R>(&mut self, work: impl FnOnce(&mut Batch<'_, K>) -> R) -> R {
        let mut batch = Batch { state: self.shared.lock(), prefetched: VecDeque::new() };
        let result = work(&mut batch);
        self.shared.publish(&mut batch.state);
        result
    }
}

impl<K> Drop for StoreWriter<K> {
    fn drop(&mut self) {
        // There is no next write that would bring anything of use to what only readers hold.
        if !InsideIndexFunction::is_active() {
            self.shared.lock().rest();
        }
        self.shared.close();
    }
}

/// Changes that readers will see together.
pub struct Batch<'a, K> {
    state: MutexGuard<'a, State<K>>,
    /// Where the next objects to be put were found.
    prefetched: VecDeque<Option<Slot>>,
}

/// See [`Batch::AHEAD`].
const AHEAD: usize = 16;

impl<K> Batch<'_, K> {
    /// How many objects [`prefetch`](Self::prefetch) looks up: what they take fits well into the smallest cache.
    pub const AHEAD: usize = AHEAD;

    /// One object as this batch has left it.
    pub fn get(&self, key: &ObjectKey) -> Option<&Object<K>> {
        let objects = self.state.objects.view();
        objects.get(objects.find(key.as_str())?)
    }

    /// The whole as this batch has left it.
    pub fn snapshot(&mut self) -> Snapshot<K> {
        Snapshot(Arc::new(self.state.show()))
    }

    /// Says which objects will be put next, up to [`AHEAD`](Self::AHEAD) of them. They are looked up side by side, so that
    /// [`insert`](Self::insert) finds in the processor's caches what it would otherwise wait for, one object after the
    /// other. It changes nothing, and what comes after all may be something else.
    pub fn prefetch<'o>(&mut self, objects: impl IntoIterator<Item = &'o Object<K>, IntoIter: Clone>)
    where
        K: 'o,
    {
        let objects = objects.into_iter();
        self.prefetched.clear();
        // One alone waits just as long here as there.
        if objects.clone().nth(1).is_none() {
            return;
        }
        let names = objects.clone().map(|object| object.key().as_str());
        let known: [_; AHEAD] = self.state.objects.view().look_for(names);
        for (known, new) in known.into_iter().zip(objects) {
            self.prefetched.push_back(known.map(|(slot, old)| {
                black_box(old.key() == new.key() && old.labels() == new.labels());
                for index in &self.state.user {
                    black_box(index.look(slot));
                }
                slot
            }));
        }
    }

    /// Puts an object under its key and returns the one that was there.
    pub fn insert(&mut self, object: Object<K>) -> Option<Object<K>> {
        let slot = self.prefetched.pop_front().flatten();
        self.state.insert(object, slot)
    }

    /// Takes an object out.
    pub fn remove(&mut self, key: &ObjectKey) -> Option<Object<K>> {
        self.state.remove(key)
    }

    /// Says which version of the collection the store has reached.
    pub fn set_resource_version(&mut self, version: ResourceVersion) {
        self.state.version = version;
    }

    /// Says which version one namespace has reached that is filled by itself; `None` when it is filled no longer.
    pub(crate) fn set_namespace_version(&mut self, namespace: Arc<str>, version: Option<ResourceVersion>) {
        self.state.namespace_versions.push((namespace, version));
    }

    /// Says why there can be no objects at all, or that there can.
    pub(crate) fn set_absent(&mut self, why: Option<Arc<str>>) {
        self.state.absent = why;
    }

    /// Takes out all objects of one namespace, or all that there are, in the order of keys.
    pub(crate) fn evict(&mut self, namespace: Option<&str>) -> Vec<Object<K>> {
        // With a namespace, it costs that namespace alone: keys begin with it.
        let keys: Vec<ObjectKey> = match namespace {
            None => self.state.order.keys().cloned().collect(),
            Some(namespace) => {
                let (first, end) = (format!("{namespace}/"), format!("{namespace}0"));
                let bounds = (Bound::Included(first.as_str()), Bound::Excluded(end.as_str()));
                self.state.order.range::<_, str>(bounds).map(|(key, _)| key.clone()).collect()
            }
        };
        keys.iter().filter_map(|key| self.state.remove(key)).collect()
    }

    /// Makes a list the contents of the store, at the list's version.
    ///
    /// Objects of the list that could not be used stay as the store has them, so that nobody hears of a deletion
    /// that did not happen; and so does what lies outside of the namespace that was listed. The answer tells what changed: deletions first in
    /// the order of keys, then additions and updates in the order of the list. Of two objects with one key
    /// the later one stays.
    pub fn replace(&mut self, list: Replacement<K>) -> Vec<Event<K>> {
        let state = &mut *self.state;
        let change = |old, new| match old {
            Some(old) => Event::Updated { old, new },
            None => Event::Added(new),
        };
        // That it is gone was not told, only found out.
        let gone_from = |old: Object<K>| {
            Event::Deleted(Tombstone::Unknown { key: old.key().clone(), last_seen: Some(old) })
        };
        let mut changes;
        state.version = list.version.clone();
        if state.order.is_empty() {
            let objects = list.objects;
            let replaced = state.fill(&objects);
            changes = replaced.into_iter().zip(objects).map(|(old, new)| change(old, new)).collect();
        } else {
            let named = list.objects.iter().map(Object::key).chain(&list.unusable);
            let listed: HashSet<&str> = named.map(ObjectKey::as_str).collect();
            let absent = |key: &&ObjectKey| list.covers(key) && !listed.contains(key.as_str());
            let gone: Vec<ObjectKey> = state.order.keys().filter(absent).cloned().collect();
            drop(listed);
            let objects = list.objects;
            changes = Vec::with_capacity(gone.len() + objects.len());
            changes.extend(gone.iter().filter_map(|key| state.remove(key)).map(gone_from));
            changes.extend(objects.into_iter().map(|new| change(state.insert(new.clone(), None), new)));
        }
        changes
    }
}

impl<K> Shared<K> {
    pub(super) fn lock(&self) -> MutexGuard<'_, State<K>> {
        // A panic in the middle of a batch leaves each object and its index entries whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
