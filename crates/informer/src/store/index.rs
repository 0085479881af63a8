//! Objects filed under values: one [`Index`] each for namespaces, for labels, and for every function that
//! a user adds. An index knows objects only by their slots.

use std::{
    cell::Cell,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use hashbrown::{HashMap, HashSet};
use informer_model::ObjectKey;

use super::{
    posting::{COUNTERS, Posting},
    slab::{Named, Slab, SlabView, Slot},
};
use crate::{Object, panic_message};

/// The name of the index by namespace, which every store has. Cluster-scoped objects are under `""`.
pub const NAMESPACE_INDEX: &str = "namespace";

/// The name of the index by label, which every store has. Its values are `key=value`.
pub const LABEL_INDEX: &str = "label";

/// Why an index cannot be added or asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// No index has that name.
    #[error("there is no index {name:?}; the store has {}", known.join(", "))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// Another index has that name already.
    #[error("there is an index {name:?} already; choose another name")]
    Conflict {
        /// The name.
        name: String,
    },
    /// An index function tried to add an index.
    #[error("index {name:?} cannot be added from inside an index function")]
    InsideIndexFunction {
        /// The name.
        name: String,
    },
}

/// An object for which an index function panicked. It is in the store but not in that index.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexFailure {
    /// The index.
    pub index: String,
    /// The object.
    pub key: ObjectKey,
    /// What the panic said.
    pub message: String,
}

/// All objects under one value.
#[derive(Clone)]
pub(super) struct Entry {
    value: Arc<str>,
    slots: Posting,
}

impl Named for Arc<Entry> {
    fn name(&self) -> &str {
        &self.value
    }
}

/// What a reader sees of an index.
#[derive(Clone)]
pub(super) struct IndexView(SlabView<Arc<Entry>>);

impl IndexView {
    /// The objects under a value.
    pub(super) fn get(&self, value: &str) -> Option<&Posting> {
        Some(&self.0.get(self.0.find(value)?)?.slots)
    }

    pub(super) fn count(&self, value: &str) -> usize {
        self.get(value).map_or(0, Posting::len)
    }

    /// About how many bytes it takes: its values, and who is filed under them.
    pub(super) fn bytes(&self) -> usize {
        // An entry is found through a page that has its tag and slot.
        const ENTRY: usize = 2 * COUNTERS + size_of::<(Entry, Arc<Entry>, u32, Slot)>();
        self.0.iter().map(|entry| ENTRY + entry.value.len() + entry.slots.bytes()).sum()
    }

    /// All values with at least one object, in no order.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| &*entry.value)
    }
}

/// The writer's side of an index.
pub(super) struct Index(Slab<Arc<Entry>>);

impl Index {
    pub(super) fn new() -> Self {
        Self(Slab::new())
    }

    pub(super) fn show(&mut self) -> IndexView {
        IndexView(self.0.show())
    }

    pub(super) fn published(&mut self) {
        self.0.published();
    }

    pub(super) fn rest(&mut self) {
        self.0.rest();
    }

    /// Files a slot under a value, and returns the value's own number.
    pub(super) fn file(&mut self, value: &str, slot: Slot) -> Slot {
        match self.0.view().find(value) {
            Some(at) => {
                if let Some(entry) = self.0.get_mut(at) {
                    Arc::make_mut(entry).slots.insert(slot);
                }
                at
            }
            None => self.0.insert(Arc::new(Entry { value: value.into(), slots: Posting::One(slot) }), None).0,
        }
    }

    /// Files many objects at once in an index that has none: much cheaper than one by one.
    pub(super) fn fill<'a>(&mut self, filed: impl Iterator<Item = (&'a str, Slot)>) {
        let mut values: HashMap<&str, Vec<Slot>> = HashMap::new();
        for (value, slot) in filed {
            values.entry(value).or_default().push(slot);
        }
        for (value, slots) in values {
            self.0.insert(Arc::new(Entry { value: value.into(), slots: Posting::new(slots) }), None);
        }
    }

    pub(super) fn unfile(&mut self, value: &str, slot: Slot) {
        if let Some(at) = self.0.view().find(value) {
            self.unfile_at(at, slot);
        }
    }

    /// Takes a slot from the value with this number, and the value away with its last slot.
    fn unfile_at(&mut self, at: Slot, slot: Slot) {
        let Some(entry) = self.0.get_mut(at) else { return };
        if Arc::make_mut(entry).slots.remove(slot) {
            let value = Arc::clone(&entry.value);
            self.0.remove(&value);
        }
    }

    fn value(&self, at: Slot) -> Option<&str> {
        self.0.view().get(at).map(|entry| &*entry.value)
    }
}

type Function<K> = Box<dyn Fn(&Object<K>, &mut dyn FnMut(&str)) + Send + Sync>;

/// An index that a user's function fills.
///
/// It remembers where each object is filed instead of asking the function about the old object again:
/// a function that changes its mind cannot leave an object behind in the index.
pub(super) struct UserIndex<K> {
    pub(super) name: Arc<str>,
    function: Function<K>,
    index: Index,
    filed: Filed,
    failures: BTreeMap<ObjectKey, String>,
    values: Values,
}

/// The numbers of the values under which each object is filed.
///
/// Four bytes for each object with one value or none, because every update looks here. The few with more
/// are kept apart.
#[derive(Default)]
struct Filed {
    once: Vec<Slot>,
    often: HashMap<Slot, Box<[Slot]>>,
}

/// Up to so many values of an object are compared one by one.
const FEW: usize = 16;

const NOWHERE: Slot = Slot::MAX;
const OFTEN: Slot = Slot::MAX - 1;

impl Filed {
    fn get(&self, slot: Slot) -> &[Slot] {
        match self.once.get(slot as usize) {
            None | Some(&NOWHERE) => &[],
            Some(&OFTEN) => self.often.get(&slot).map_or(&[], |at| at),
            Some(at) => std::slice::from_ref(at),
        }
    }

    fn set(&mut self, slot: Slot, at: &[Slot]) {
        if self.once.len() <= slot as usize {
            self.once.resize(slot as usize + 1, NOWHERE);
        }
        let once = &mut self.once[slot as usize];
        if *once == OFTEN {
            self.often.remove(&slot);
        }
        *once = match at {
            [] => NOWHERE,
            [only] => *only,
            _ => {
                self.often.insert(slot, at.into());
                OFTEN
            }
        };
    }
}

impl<K> UserIndex<K> {
    pub(super) fn new<F, I>(name: Arc<str>, function: F) -> Self
    where
        F: Fn(&Object<K>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item: AsRef<str>>,
    {
        let function: Function<K> = Box::new(move |object, sink| {
            for value in function(object) {
                sink(value.as_ref());
            }
        });
        let (filed, failures, values) = Default::default();
        Self { name, function, index: Index::new(), filed, failures, values }
    }

    pub(super) fn show(&mut self) -> IndexView {
        self.index.show()
    }

    pub(super) fn published(&mut self) {
        self.index.published();
    }

    pub(super) fn rest(&mut self) {
        self.index.rest();
    }

    pub(super) fn failures(&self) -> impl Iterator<Item = IndexFailure> {
        self.failures.iter().map(|(key, message)| IndexFailure {
            index: self.name.to_string(),
            key: key.clone(),
            message: message.clone(),
        })
    }

    /// Looks at what [`refile`](Self::refile) will compare. The answer says nothing but that it was looked at.
    pub(super) fn look(&self, slot: Slot) -> usize {
        let values = self.filed.get(slot).iter().filter_map(|at| self.index.value(*at));
        values.map(|value| value.as_ptr().addr()).sum()
    }

    /// Files an object that is new or has changed.
    pub(super) fn refile(&mut self, slot: Slot, object: &Object<K>) {
        self.ask(object);
        let index = &self.index;
        let before = self.filed.get(slot);
        if before.iter().map(|at| index.value(*at)).eq(self.values.iter().map(Some)) {
            return;
        }
        let before = before.to_vec();
        // New places first: a value that stays must not vanish in between and come back with another number.
        let mut after: Vec<Slot> = Vec::with_capacity(before.len());
        // Who has many values would otherwise compare each with each, while the store is locked.
        let mut many = HashSet::new();
        for value in self.values.iter() {
            let at = self.index.file(value, slot);
            if after.len() == FEW && many.is_empty() {
                many.extend(&after);
            }
            let is_new = if after.len() < FEW { !after.contains(&at) } else { many.insert(at) };
            if is_new {
                after.push(at);
            }
        }
        let stays = |at: &Slot| if many.is_empty() { after.contains(at) } else { many.contains(at) };
        for at in before.iter().filter(|at| !stays(at)) {
            self.index.unfile_at(*at, slot);
        }
        self.filed.set(slot, &after);
    }

    /// Forgets an object that is gone.
    pub(super) fn unfile(&mut self, slot: Slot, key: &ObjectKey) {
        for at in self.filed.get(slot) {
            self.index.unfile_at(*at, slot);
        }
        self.filed.set(slot, &[]);
        self.failures.remove(key);
    }

    /// Puts the function's answer into `self.values`; none at all if it panicked.
    fn ask(&mut self, object: &Object<K>) {
        let values = &mut self.values;
        values.clear();
        let answer = {
            let _inside = InsideIndexFunction::enter();
            catch_unwind(AssertUnwindSafe(|| (self.function)(object, &mut |value| values.push(value))))
        };
        match answer {
            Ok(()) if self.failures.is_empty() => {}
            Ok(()) => {
                self.failures.remove(object.key());
            }
            Err(panic) => {
                values.clear();
                let message = panic_message(&*panic);
                let known = self.failures.insert(object.key().clone(), message.clone());
                if known.as_ref() != Some(&message) {
                    tracing::error!(index = %self.name, object = %object.key(), %message,
                        "the index function panicked; the object is cached but not in this index");
                }
            }
        }
    }
}

/// A list of texts that keeps its room when it is cleared.
#[derive(Default)]
struct Values {
    text: String,
    ends: Vec<usize>,
}

impl Values {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn push(&mut self, value: &str) {
        self.text.push_str(value);
        self.ends.push(self.text.len());
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.text[std::mem::replace(&mut start, end)..end])
    }
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Held while a user's index function runs on this thread. The store's lock is held then too, so whoever
/// needs the lock must ask here first.
pub(super) struct InsideIndexFunction(bool);

impl InsideIndexFunction {
    fn enter() -> Self {
        Self(INSIDE.replace(true))
    }

    pub(super) fn is_active() -> bool {
        INSIDE.get()
    }
}

impl Drop for InsideIndexFunction {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}
