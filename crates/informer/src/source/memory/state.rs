//! What the server keeps: objects, one version counter, history, open watches, and what it is to do wrong.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc};

use imbl::OrdMap;
use informer_model::{ObjectKey, Status};
use kube::Resource;

use super::{
    super::{Unusable, WatchChange, WatchItem},
    misbehaviour::Faults,
    request::{Filter, Request},
    watching::Mailbox,
};
use crate::{Object, ObjectError, object::Wired};

pub(super) struct State<K> {
    objects: Objects<K>,
    version: u64,
    /// All changes since the oldest version that can still be read, and what was there at that version.
    changes: Vec<Change<K>>,
    base: Objects<K>,
    base_version: u64,
    uids: u64,
    /// How many writes there were. Unlike the version it never goes back.
    writes: u64,
    pub(super) watches: BTreeMap<u64, Mailbox<K>>,
    pub(super) requests: Vec<Request>,
    pub(super) faults: Faults,
}

/// All objects at one version. A clone costs nothing.
pub(super) type Objects<K> = OrdMap<ObjectKey, Stored<K>>;

/// An object, and why it does not decode if it does not.
pub(super) struct Stored<K> {
    pub(super) object: Object<K>,
    spoiled: Option<Arc<str>>,
}

/// One change of one object.
pub(super) struct Change<K> {
    pub(super) version: u64,
    before: Option<Stored<K>>,
    /// None: it was deleted.
    after: Option<Stored<K>>,
    /// Whether watches hear of it.
    told: bool,
    /// Everything as this change left it.
    objects: Objects<K>,
}

/// The first version. A server is never at version 0, which means "any" where it is asked for.
const FIRST: u64 = 1;

impl<K> State<K> {
    pub(super) fn new() -> Self {
        Self {
            objects: Objects::new(),
            version: FIRST,
            changes: Vec::new(),
            base: Objects::new(),
            base_version: FIRST,
            uids: 0,
            writes: 0,
            watches: BTreeMap::new(),
            requests: Vec::new(),
            faults: Faults::default(),
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<Object<K>> {
        self.objects.get(key).map(|stored| stored.object.clone())
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = &Object<K>> {
        self.objects.values().map(|stored| &stored.object)
    }

    pub(super) fn open_watches(&self) -> usize {
        self.watches.values().filter(|mailbox| !mailbox.is_closed()).count()
    }

    /// Everything as it is now.
    pub(super) fn newest(&self) -> Objects<K> {
        self.objects.clone()
    }

    /// Everything as it was at a version.
    pub(super) fn at(&self, version: u64) -> Result<Objects<K>, Status> {
        self.reached(version)?;
        let changes = self.changes.get(..self.first_after(version)?).unwrap_or_default();
        Ok(changes.last().map_or(&self.base, |change| &change.objects).clone())
    }

    /// Whether a version is not one of the future. A real server waits three seconds before it says so.
    pub(super) fn reached(&self, version: u64) -> Result<(), Status> {
        if version > self.version {
            return Err(Status::too_large_resource_version(&version.into(), &self.version.into()));
        }
        Ok(())
    }

    /// The changes after a version.
    pub(super) fn changes_after(&self, version: u64) -> Result<impl Iterator<Item = &Change<K>>, Status> {
        Ok(self.changes.iter().skip(self.first_after(version)?))
    }

    /// Where the changes after a version begin.
    fn first_after(&self, version: u64) -> Result<usize, Status> {
        if version < self.base_version {
            let oldest = self.base_version;
            return Err(Status::expired(format!("too old resource version: {version} ({oldest})")));
        }
        Ok(self.changes.partition_point(|change| change.version <= version))
    }

    /// Forgets all history.
    pub(super) fn compact(&mut self) {
        self.changes.clear();
        (self.base, self.base_version) = (self.objects.clone(), self.version);
    }

    /// Forgets everything after a version, and who was watching.
    pub(super) fn rewind(&mut self, version: u64) -> Result<(), Status> {
        self.objects = self.at(version)?;
        self.changes.truncate(self.first_after(version)?);
        self.version = version;
        self.watches.values_mut().for_each(Mailbox::close);
        Ok(())
    }
}

impl<K: Resource + Clone> State<K> {
    pub(super) fn put(&mut self, body: K) -> Result<u64, ObjectError> {
        let version = self.version + 1;
        self.writes += 1;
        let object = stamped(body, version, self.writes)?;
        let before = self.objects.get(object.key()).and_then(|stored| stored.object.meta().uid.clone());
        let uid = object.meta().uid.clone().or(before).unwrap_or_else(|| {
            self.uids += 1;
            format!("00000000-0000-4000-8000-{:012x}", self.uids)
        });
        let Ok(object) = object.modify(|body| {
            body.meta_mut().uid = Some(uid);
            Ok::<(), Infallible>(())
        });
        Ok(self.record(object.key().clone(), Some(Stored { object, spoiled: None })))
    }

    /// Writes an object again, in a form that clients cannot decode.
    pub(super) fn spoil(&mut self, key: &ObjectKey, error: &str) -> Option<u64> {
        let stored = self.objects.get(key)?.at(self.version + 1);
        Some(self.record(key.clone(), Some(Stored { spoiled: Some(error.into()), ..stored })))
    }

    pub(super) fn delete(&mut self, key: &ObjectKey) -> Option<u64> {
        self.objects.contains_key(key).then(|| self.record(key.clone(), None))
    }

    /// Makes a change under the next version, and tells it to the watches.
    fn record(&mut self, key: ObjectKey, after: Option<Stored<K>>) -> u64 {
        self.version += 1;
        let before = match &after {
            Some(stored) => self.objects.insert(key, stored.clone()),
            None => self.objects.remove(&key),
        };
        let told = self.faults.lost_events == 0;
        self.faults.lost_events = self.faults.lost_events.saturating_sub(1);
        let change = Change { version: self.version, before, after, told, objects: self.objects.clone() };
        self.watches.values_mut().for_each(|mailbox| mailbox.tell(&change));
        self.changes.push(change);
        self.version
    }
}

/// The number of the write stands for the bytes: two writes never have the same.
fn stamped<K: Resource>(mut body: K, version: u64, write: u64) -> Result<Object<K>, ObjectError> {
    body.meta_mut().resource_version = Some(version.to_string());
    Object::wired(body, Wired { hash: write, ..Wired::default() })
}

impl<K> Stored<K> {
    /// Why it cannot be used, if it cannot.
    pub(super) fn unusable(&self) -> Option<Unusable> {
        let (key, version) = (self.object.key(), self.object.resource_version());
        self.spoiled.as_ref().map(|error| Unusable {
            key: Some(key.clone()),
            name: key.to_string(),
            version: version.clone(),
            error: error.to_string(),
        })
    }

    pub(super) fn event(&self, change: WatchChange) -> WatchItem<K> {
        match self.unusable() {
            Some(unusable) => WatchItem::Unusable(change, unusable),
            None => WatchItem::Object(change, self.object.clone()),
        }
    }
}

impl<K: Resource + Clone> Stored<K> {
    /// The same with another version.
    fn at(&self, version: u64) -> Self {
        // It has been made an object before, so it has a name.
        let object = stamped((*self.object).clone(), version, 0).unwrap_or_else(|_| self.object.clone());
        Self { object, spoiled: self.spoiled.clone() }
    }
}

impl<K> Clone for Stored<K> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), spoiled: self.spoiled.clone() }
    }
}

impl<K: Resource + Clone> Change<K> {
    /// What this change is to somebody who sees only what is selected. An object that stops to match is told
    /// deleted, in its last state that did.
    pub(super) fn event(&self, filter: &Filter) -> Option<WatchItem<K>> {
        let selected =
            |stored: &Option<Stored<K>>| stored.clone().filter(|stored| filter.matches(&stored.object));
        match (selected(&self.before), selected(&self.after)) {
            _ if !self.told => None,
            (None, None) => None,
            (None, Some(after)) => Some(after.event(WatchChange::Added)),
            (Some(_), Some(after)) => Some(after.event(WatchChange::Modified)),
            (Some(before), None) => Some(before.at(self.version).event(WatchChange::Deleted)),
        }
    }
}
