//! What a reader sees: the whole store at one point in time.

use std::{ops::Bound, ptr, sync::Arc};

use imbl::OrdMap;
use informer_model::{ObjectKey, Requirement, ResourceVersion, Selector};

use super::{
    index::{IndexError, IndexView, LABEL_INDEX, NAMESPACE_INDEX},
    posting::Posting,
    slab::{Named, SlabView, Slot},
};
use crate::Object;

impl<K> Named for Object<K> {
    fn name(&self) -> &str {
        self.key().as_str()
    }
}

/// The contents of a store at one point in time. It is cheap to clone (an `Arc`); nothing that the writer does later
/// shows in it.
///
/// Lists come in the order of keys and borrow from the snapshot: looking at a hundred thousand objects moves
/// no counter, and so costs the writer nothing. A snapshot keeps alive what it shows: take one, look, let it
/// go.
pub struct Snapshot<K>(pub(super) Arc<View<K>>);

pub(super) struct View<K> {
    pub(super) objects: SlabView<Object<K>>,
    pub(super) order: OrdMap<ObjectKey, Slot>,
    pub(super) namespaces: IndexView,
    pub(super) labels: IndexView,
    pub(super) user: Vec<(Arc<str>, IndexView)>,
    pub(super) version: ResourceVersion,
    pub(super) rewinds: u64,
}

impl<K> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> Snapshot<K> {
    /// The version of the whole: every change up to it is here.
    ///
    /// With one source and the queue that keeps the order, which is what informers have unless told otherwise, no
    /// change after it is. With several namespaces, or a [`PerKey`](crate::queue::QueueKind::PerKey) queue, some
    /// objects may be ahead of it.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.0.version
    }

    /// How often the version has gone back, as it does when the server was restored from a backup. What was said
    /// about versions before that means nothing now, even when the new ones have grown past it.
    pub fn rewinds(&self) -> u64 {
        self.0.rewinds
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.0.objects.len()
    }

    /// What all objects took on the wire, in bytes. It looks at each of them.
    pub fn wire_bytes(&self) -> u64 {
        self.iter().map(|object| object.wire_bytes() as u64).sum()
    }

    /// About how many bytes the indexes take, in memory: those by namespace and label, and those that were added. It looks at each
    /// of their values.
    pub fn index_bytes(&self) -> u64 {
        let View { namespaces, labels, user, .. } = &*self.0;
        // Of each object an index of a user remembers where it is filed.
        let filed = self.len() * size_of::<Slot>();
        let user: usize = user.iter().map(|(_, index)| index.bytes() + filed).sum();
        (namespaces.bytes() + labels.bytes() + user) as u64
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One object by its key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Object<K>> {
        self.0.get(key)
    }

    /// All objects in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &Object<K>> {
        self.0.in_order()
    }

    /// The objects after a key in the order of keys; all of them without one. Costs those that are looked at.
    pub fn iter_after(&self, key: Option<&ObjectKey>) -> impl Iterator<Item = &Object<K>> {
        let after = key.map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_str()));
        let slots = self.0.order.range::<_, str>((after, Bound::Unbounded));
        slots.filter_map(|(_, slot)| self.0.objects.get(*slot))
    }

    /// The objects of a namespace in the order of their names. Costs those objects only.
    pub fn iter_namespace(&self, namespace: &str) -> impl Iterator<Item = &Object<K>> {
        self.0.range(namespace)
    }

    /// The objects whose labels match. With a requirement for certain values (`=`, `==`, `in`) this costs
    /// the objects that have one of them; otherwise it looks at every object.
    pub fn list(&self, selector: &Selector) -> Vec<&Object<K>> {
        self.0.list(None, selector)
    }

    /// The objects of a namespace whose labels match, at the cost of the namespace or of the labels,
    /// whichever is less.
    pub fn list_namespace(&self, namespace: &str, selector: &Selector) -> Vec<&Object<K>> {
        self.0.list(Some(namespace), selector)
    }

    /// How [`list`](Self::list) and [`list_namespace`](Self::list_namespace) find what they are asked for.
    pub fn plan(&self, namespace: Option<&str>, selector: &Selector) -> Plan {
        self.0.plan(namespace, selector).0
    }

    /// The objects that an index files under a value.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<&Object<K>>, IndexError> {
        Ok(self.0.filed(self.0.index(index)?, value))
    }

    /// All values of an index that have an object, sorted.
    pub fn index_values(&self, index: &str) -> Result<Vec<String>, IndexError> {
        Ok(sorted_values(self.0.index(index)?))
    }

    /// The names of all indexes.
    pub fn index_names(&self) -> impl Iterator<Item = &str> {
        self.0.index_names()
    }
}

/// How a list is found: which objects are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The index that names them; none where all are looked at.
    pub index: Option<&'static str>,
    /// How many there are.
    pub scanned: usize,
}

/// How many objects some postings hold.
fn total(postings: &[&Posting]) -> usize {
    postings.iter().map(|posting| posting.len()).sum()
}

pub(super) fn sorted_values(index: &IndexView) -> Vec<String> {
    let mut values: Vec<String> = index.values().map(str::to_owned).collect();
    values.sort_unstable();
    values
}

impl<K> View<K> {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Object<K>> {
        self.objects.get(self.objects.find(key.as_str())?)
    }

    pub(super) fn index(&self, name: &str) -> Result<&IndexView, IndexError> {
        match name {
            NAMESPACE_INDEX => Ok(&self.namespaces),
            LABEL_INDEX => Ok(&self.labels),
            _ => {
                let found = self.user.iter().find(|(known, _)| **known == *name);
                found.map(|(_, index)| index).ok_or_else(|| {
                    let known = self.index_names().map(str::to_owned).collect();
                    IndexError::Unknown { name: name.to_owned(), known }
                })
            }
        }
    }

    fn index_names(&self) -> impl Iterator<Item = &str> {
        [NAMESPACE_INDEX, LABEL_INDEX].into_iter().chain(self.user.iter().map(|(name, _)| &**name))
    }

    /// The objects under a value of an index, in the order of keys.
    pub(super) fn filed(&self, index: &IndexView, value: &str) -> Vec<&Object<K>> {
        index.get(value).map_or_else(Vec::new, |posting| self.gather(&[posting], |_| true))
    }

    pub(super) fn list(&self, namespace: Option<&str>, selector: &Selector) -> Vec<&Object<K>> {
        match self.plan(namespace, selector).1 {
            Some((indexed, postings)) => {
                // The index has answered for one requirement: alone, it need not be looked at again.
                let is_only = selector.requirements().iter().all(|other| ptr::eq(other, indexed));
                self.gather(&postings, |object| {
                    namespace.is_none_or(|namespace| object.key().namespace().unwrap_or("") == namespace)
                        && (is_only || selector.matches(object.labels()))
                })
            }
            None => {
                let matches = |object: &&Object<K>| selector.matches(object.labels());
                match namespace {
                    Some(namespace) => self.range(namespace).filter(matches).collect(),
                    None => self.in_order().filter(matches).collect(),
                }
            }
        }
    }

    /// Which objects a list looks at: those of some postings of the label index, or else those of the namespace or all.
    fn plan<'a>(
        &'a self,
        namespace: Option<&str>,
        selector: &'a Selector,
    ) -> (Plan, Option<(&'a Requirement, Vec<&'a Posting>)>) {
        let within = namespace.map_or(self.objects.len(), |namespace| self.namespaces.count(namespace));
        match self.narrowest(selector).filter(|(_, postings)| total(postings) < within) {
            Some(narrow) => (Plan { index: Some(LABEL_INDEX), scanned: total(&narrow.1) }, Some(narrow)),
            None => (Plan { index: namespace.map(|_| NAMESPACE_INDEX), scanned: within }, None),
        }
    }

    /// The requirement that the index can answer with the fewest objects, and the postings that hold them.
    /// One object has one value for a label, so no two of these have an object in common.
    fn narrowest<'a>(&'a self, selector: &'a Selector) -> Option<(&'a Requirement, Vec<&'a Posting>)> {
        let candidates = selector.requirements().iter().filter_map(|requirement| {
            let values = requirement.exact_values()?;
            let mut pair = format!("{}=", requirement.key());
            let key_end = pair.len();
            let postings = values.iter().filter_map(|value| {
                pair.truncate(key_end);
                pair.push_str(value);
                self.labels.get(&pair)
            });
            Some((requirement, postings.collect::<Vec<_>>()))
        });
        candidates.min_by_key(|(_, postings)| total(postings))
    }

    /// The objects of some postings that pass a test, in the order of keys.
    fn gather(&self, postings: &[&Posting], wanted: impl Fn(&Object<K>) -> bool) -> Vec<&Object<K>> {
        // Sorting many costs more than walking all in their order.
        if total(postings) > (self.objects.len() / 8).max(64) {
            let filed = |slot: &Slot| postings.iter().any(|posting| posting.contains(*slot));
            let slots = self.order.iter().map(|(_, slot)| slot).filter(|slot| filed(slot));
            return slots.filter_map(|slot| self.objects.get(*slot)).filter(|o| wanted(o)).collect();
        }
        let slots = postings.iter().flat_map(|posting| posting.iter());
        let mut objects: Vec<&Object<K>> =
            slots.filter_map(|slot| self.objects.get(slot)).filter(|object| wanted(object)).collect();
        objects.sort_unstable_by_key(|object| object.key());
        objects
    }

    fn in_order(&self) -> impl Iterator<Item = &Object<K>> {
        self.order.iter().filter_map(|(_, slot)| self.objects.get(*slot))
    }

    /// The objects of one namespace; `""` stands for objects without one.
    fn range(&self, namespace: &str) -> impl Iterator<Item = &Object<K>> {
        // `0` is the character after `/`.
        let (after, before) = (format!("{namespace}/"), format!("{namespace}0"));
        let bounds = match namespace {
            "" => (Bound::Unbounded, Bound::Unbounded),
            _ => (Bound::Excluded(after.as_str()), Bound::Excluded(before.as_str())),
        };
        let slots = self.order.range::<_, str>(bounds);
        let scoped = !namespace.is_empty();
        slots
            .filter(move |(key, _)| scoped || key.namespace().is_none())
            .filter_map(|(_, slot)| self.objects.get(*slot))
    }
}
