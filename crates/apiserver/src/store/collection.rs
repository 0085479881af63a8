//! The objects of one resource: what they are now, and what they were for as long as history holds.

use std::{
    collections::VecDeque,
    ops::Bound,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use imbl::OrdMap;
use informer_model::ObjectKey;
use tokio::sync::watch;

use super::object::Stored;
use crate::catalog::Resource;

/// All objects of a resource at one version, in the order of their keys. A clone costs nothing.
pub(crate) type Objects = OrdMap<ObjectKey, Arc<Stored>>;

/// The objects from a key on, or from where it would be.
pub(crate) fn from_key<'o>(
    objects: &'o Objects,
    key: &str,
) -> impl Iterator<Item = &'o Arc<Stored>> + use<'o> {
    objects.range::<_, str>((Bound::Included(key), Bound::Unbounded)).map(|(_, object)| object)
}

/// How many encodings of a change are kept beside it; see [`Change::frame`].
pub(crate) const FRAMES: usize = 21;

/// One change of one object.
pub(crate) struct Change {
    pub version: u64,
    pub before: Option<Arc<Stored>>,
    /// What it is now. A deleted object is here in its last state with the version of the deletion.
    pub after: Arc<Stored>,
    pub deleted: bool,
    /// Everything as this change left it.
    objects: Objects,
    frames: [OnceLock<Bytes>; FRAMES],
}

impl Change {
    /// An encoding of this change, kept for all who watch once it is made.
    pub(crate) fn frame<E>(
        &self,
        place: usize,
        encode: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        let Some(kept) = self.frames.get(place) else { return encode() };
        match kept.get() {
            Some(frame) => Ok(frame.clone()),
            None => encode().map(|frame| kept.get_or_init(|| frame).clone()),
        }
    }
}

/// The requested version is older than what history holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expired;

pub(super) struct Collection {
    pub resource: Arc<Resource>,
    pub objects: Objects,
    /// The newest changes, oldest first. `base` is what was there before the first of them.
    changes: VecDeque<Arc<Change>>,
    base: Objects,
    /// Every change after this version is in `changes`.
    base_version: u64,
    /// Wakes the watches when there is something new.
    pub changed: watch::Sender<()>,
    /// It is no longer served, and here only for those who have not yet seen its end.
    pub retired: bool,
}

impl Collection {
    /// An empty collection whose history begins at `version`.
    pub(super) fn new(resource: Arc<Resource>, version: u64) -> Self {
        Self {
            resource,
            objects: Objects::new(),
            changes: VecDeque::new(),
            base: Objects::new(),
            base_version: version,
            changed: watch::Sender::new(()),
            retired: false,
        }
    }

    pub(super) fn put(&mut self, object: &Arc<Stored>, limit: usize) {
        let before = self.objects.insert(object.key.clone(), Arc::clone(object));
        self.record(before, object, false, limit);
    }

    /// Takes out the object that `last` is the end of.
    pub(super) fn remove(&mut self, last: &Arc<Stored>, limit: usize) {
        let before = self.objects.remove(&last.key);
        self.record(before, last, true, limit);
    }

    /// Looks after a change of what the resource can be selected by: the objects of now have it, too.
    pub(super) fn describe(&mut self, resource: Arc<Resource>) {
        if !self.resource.selectable_fields().eq(resource.selectable_fields()) {
            let objects = self.objects.iter();
            self.objects =
                objects.map(|(key, object)| (key.clone(), Arc::new(object.refiled(&resource)))).collect();
        }
        self.resource = resource;
    }

    fn record(&mut self, before: Option<Arc<Stored>>, after: &Arc<Stored>, deleted: bool, limit: usize) {
        self.changes.push_back(Arc::new(Change {
            version: after.version,
            before,
            after: Arc::clone(after),
            deleted,
            objects: self.objects.clone(),
            frames: Default::default(),
        }));
        while self.changes.len() > limit {
            self.forget_one();
        }
    }

    fn forget_one(&mut self) {
        if let Some(change) = self.changes.pop_front() {
            self.base = change.objects.clone();
            self.base_version = change.version;
        }
    }

    /// Forgets the changes up to a version. A watch that has seen them all goes on.
    pub(super) fn compact(&mut self, version: u64) {
        while self.changes.front().is_some_and(|change| change.version <= version) {
            self.forget_one();
        }
    }

    /// Goes back to an older version and forgets what came after and before it.
    pub(super) fn rewind(&mut self, version: u64) -> Result<(), Expired> {
        self.objects = self.at(version)?;
        self.changes.clear();
        (self.base, self.base_version) = (self.objects.clone(), version);
        Ok(())
    }

    /// Everything as it was at a version.
    pub(super) fn at(&self, version: u64) -> Result<Objects, Expired> {
        if version < self.base_version {
            return Err(Expired);
        }
        let newer = self.changes.partition_point(|change| change.version <= version);
        let last = newer.checked_sub(1).and_then(|last| self.changes.get(last));
        Ok(last.map_or_else(|| self.base.clone(), |change| change.objects.clone()))
    }

    /// The changes after one version and up to another, at most so many of them.
    pub(super) fn changes(&self, after: u64, up_to: u64, most: usize) -> Result<Vec<Arc<Change>>, Expired> {
        if after < self.base_version {
            return Err(Expired);
        }
        let first = self.changes.partition_point(|change| change.version <= after);
        let wanted = self.changes.range(first..).take_while(|change| change.version <= up_to);
        Ok(wanted.take(most).cloned().collect())
    }
}
