//! Everything the server keeps: one version counter, and for each resource its objects and their history.
//!
//! Writes go through [`Store::write`], one at a time; what a write does is seen at once. Reads take what was
//! there at a version and work on that without holding anything up. Watches keep no copy: they ask
//! for the changes after the last one they saw. One that asks too late is cut off.

mod collection;
mod object;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use collection::Collection;
pub(crate) use collection::{Change, Expired, Objects, from_key};
use informer_model::{KeyError, ObjectKey, Status};
pub(crate) use object::Stored;
use serde_json::Value;
use tokio::sync::watch;

use crate::catalog::{Catalog, Resource};

/// The number of a collection. It is never used for another one.
pub(crate) type CollectionId = u32;

/// There is no such collection, or no longer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// Why an object is not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unwritable {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("the object has {0} bytes, the limit is {OBJECT_LIMIT}")]
    TooLarge(usize),
}

impl From<Unwritable> for Status {
    fn from(unwritable: Unwritable) -> Self {
        match unwritable {
            Unwritable::Key(_) => Self::bad_request(unwritable.to_string()),
            Unwritable::TooLarge(_) => Self::request_entity_too_large(unwritable),
        }
    }
}

/// No object gets longer than this, however it grows: as long as a request may be and what the server adds.
const OBJECT_LIMIT: usize = crate::media::BODY_LIMIT + 1024 * 1024;

/// Why a read of the past, or of what comes next, is not possible.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    Expired,
    Gone,
}

pub(crate) struct Store {
    state: RwLock<State>,
    /// The newest version, for those who wait for one.
    version: watch::Sender<u64>,
}

pub(crate) struct State {
    version: u64,
    compacted: u64,
    /// How often the store went back to an older version: a watch does not survive that.
    rewinds: u64,
    /// How many changes of one resource are kept.
    history: usize,
    catalog: Arc<Catalog>,
    names: HashMap<(String, String), CollectionId>,
    collections: BTreeMap<CollectionId, Collection>,
    next_id: CollectionId,
    /// The collections that the running write has changed.
    touched: BTreeSet<CollectionId>,
}

/// All objects of a resource at one version.
pub(crate) struct Reading {
    pub objects: Objects,
    pub version: u64,
}

/// How far a watch has got.
pub(crate) struct Cursor {
    collection: CollectionId,
    /// Everything up to here has been seen.
    pub version: u64,
    rewinds: u64,
    changed: watch::Receiver<()>,
}

impl Store {
    pub(crate) fn new(resources: Vec<Resource>, history: usize) -> Self {
        let mut state = State {
            version: 1,
            compacted: 0,
            rewinds: 0,
            history: history.max(1),
            catalog: Arc::default(),
            names: HashMap::new(),
            collections: BTreeMap::new(),
            next_id: 0,
            touched: BTreeSet::new(),
        };
        resources.into_iter().for_each(|resource| state.serve(resource));
        Self { state: RwLock::new(state), version: watch::Sender::new(1) }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // A write that panicked has changed whole objects only.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the store. Everybody sees what `work` did when it has returned.
    pub(crate) fn write<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut state);
        for id in std::mem::take(&mut state.touched) {
            if let Some(collection) = state.collections.get(&id) {
                collection.changed.send_replace(());
            }
        }
        // While the lock is held: another write must not be announced before this one.
        let version = state.version;
        self.version.send_if_modified(|known| std::mem::replace(known, version) != version);
        result
    }

    pub(crate) fn version(&self) -> u64 {
        self.read().version
    }

    /// Follows the newest version.
    pub(crate) fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.read().catalog)
    }

    pub(crate) fn find(&self, group: &str, plural: &str) -> Option<(CollectionId, Arc<Resource>)> {
        self.read().find(group, plural)
    }

    pub(crate) fn get(&self, id: CollectionId, key: &ObjectKey) -> Option<Arc<Stored>> {
        self.read().get(id, key)
    }

    /// Everything there is now.
    pub(crate) fn newest(&self, id: CollectionId) -> Result<Reading, Gone> {
        let state = self.read();
        let collection = state.served(id).ok_or(Gone)?;
        Ok(Reading { objects: collection.objects.clone(), version: state.version })
    }

    /// Everything as it was at a version that has been reached.
    pub(crate) fn at(&self, id: CollectionId, version: u64) -> Result<Reading, Unreadable> {
        let state = self.read();
        let collection = state.served(id).ok_or(Unreadable::Gone)?;
        let objects = if version < state.compacted { Err(Expired) } else { collection.at(version) };
        Ok(Reading { objects: objects.map_err(|Expired| Unreadable::Expired)?, version })
    }

    /// Begins to watch after a version, which may not have been reached yet.
    pub(crate) fn follow(&self, id: CollectionId, after: u64) -> Result<Cursor, Unreadable> {
        let state = self.read();
        let collection = state.served(id).ok_or(Unreadable::Gone)?;
        if after < state.compacted {
            return Err(Unreadable::Expired);
        }
        collection.changes(after, after, 0).map_err(|Expired| Unreadable::Expired)?;
        let changed = collection.changed.subscribe();
        Ok(Cursor { collection: id, version: after, rewinds: state.rewinds, changed })
    }

    /// The changes after a cursor, at most so many and none after `up_to`, and moves the cursor past them.
    pub(crate) fn next(
        &self,
        cursor: &mut Cursor,
        most: usize,
        up_to: u64,
    ) -> Result<Vec<Arc<Change>>, Unreadable> {
        let state = self.read();
        let collection = state.collections.get(&cursor.collection).ok_or(Unreadable::Gone)?;
        if cursor.rewinds != state.rewinds {
            return Err(Unreadable::Gone);
        }
        cursor.changed.borrow_and_update();
        let newest = state.version.min(up_to);
        let changes = collection.changes(cursor.version, newest, most);
        let changes = changes.map_err(|Expired| Unreadable::Expired)?;
        if changes.is_empty() && collection.retired {
            return Err(Unreadable::Gone);
        }
        let seen =
            if changes.len() < most { newest } else { changes.last().map_or(newest, |last| last.version) };
        cursor.version = cursor.version.max(seen);
        Ok(changes)
    }

    /// How many objects there are, and how many bytes they have.
    pub(crate) fn size(&self) -> (usize, usize) {
        let state = self.read();
        let objects = || state.collections.values().flat_map(|collection| collection.objects.values());
        (objects().count(), objects().map(|object| object.len()).sum())
    }
}

impl Cursor {
    /// Waits until there may be something new. The collection being gone is new, too.
    pub(crate) async fn changed(&mut self) {
        let _ = self.changed.changed().await;
    }
}

impl State {
    fn served(&self, id: CollectionId) -> Option<&Collection> {
        self.collections.get(&id).filter(|collection| !collection.retired)
    }

    pub(crate) fn find(&self, group: &str, plural: &str) -> Option<(CollectionId, Arc<Resource>)> {
        let id = *self.names.get(&(group.to_owned(), plural.to_owned()))?;
        Some((id, Arc::clone(&self.collections.get(&id)?.resource)))
    }

    pub(crate) fn get(&self, id: CollectionId, key: &ObjectKey) -> Option<Arc<Stored>> {
        self.collections.get(&id)?.objects.get(key).cloned()
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }

    pub(crate) fn objects(&self, id: CollectionId) -> Objects {
        self.collections.get(&id).map(|collection| collection.objects.clone()).unwrap_or_default()
    }

    /// Writes an object, which gets the next version.
    pub(crate) fn put(
        &mut self,
        id: CollectionId,
        encode_in: &str,
        object: &mut Value,
    ) -> Result<Arc<Stored>, Unwritable> {
        let version = self.version + 1;
        let stored = self.encode(id, encode_in, version, object)?;
        if stored.len() > OBJECT_LIMIT {
            return Err(Unwritable::TooLarge(stored.len()));
        }
        if let Some(collection) = self.collections.get_mut(&id) {
            collection.put(&stored, self.history);
            self.version = version;
            self.touched.insert(id);
        }
        Ok(stored)
    }

    /// Deletes an object, whose last state gets the next version.
    pub(crate) fn remove(
        &mut self,
        id: CollectionId,
        encode_in: &str,
        last: &mut Value,
    ) -> Result<Arc<Stored>, Unwritable> {
        let version = self.version + 1;
        let stored = self.encode(id, encode_in, version, last)?;
        if let Some(collection) =
            self.collections.get_mut(&id).filter(|c| c.objects.contains_key(&stored.key))
        {
            collection.remove(&stored, self.history);
            self.version = version;
            self.touched.insert(id);
        }
        Ok(stored)
    }

    fn encode(
        &self,
        id: CollectionId,
        encode_in: &str,
        version: u64,
        object: &mut Value,
    ) -> Result<Arc<Stored>, KeyError> {
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let resource = self.collections.get(&id).map(|collection| &*collection.resource);
        // Only a write that found the collection under this very lock comes here.
        let resource = resource.expect("the collection is there while a write runs");
        Stored::new(resource, encode_in, version, object).map(Arc::new)
    }

    /// Serves a resource from now on, or serves it as it is described now.
    pub(crate) fn serve(&mut self, resource: Resource) {
        let (resource, name) = (Arc::new(resource.clone()), (resource.group, resource.plural));
        if let Some(collection) = self.names.get(&name).and_then(|id| self.collections.get_mut(id)) {
            collection.describe(resource);
        } else {
            let id = self.next_id;
            self.next_id += 1;
            self.names.insert(name, id);
            self.collections.insert(id, Collection::new(resource, 0));
        }
        self.list_catalog();
    }

    /// Ends a resource: its objects are deleted, and watches are told so before they end.
    pub(crate) fn withdraw(&mut self, group: &str, plural: &str) {
        let Some(id) = self.names.remove(&(group.to_owned(), plural.to_owned())) else { return };
        let (objects, resource) = match self.collections.get_mut(&id) {
            Some(collection) => (collection.objects.clone(), Arc::clone(&collection.resource)),
            None => return,
        };
        for object in objects.values() {
            let version = object.encoded_in().to_owned();
            // It has a key: that it was stored under.
            let _ = self.remove(id, &version, &mut object.value(&resource, &version));
        }
        if let Some(collection) = self.collections.get_mut(&id) {
            collection.retired = true;
            self.touched.insert(id);
        }
        self.list_catalog();
    }

    fn list_catalog(&mut self) {
        self.collections.retain(|_, c| !c.retired || c.changed.receiver_count() > 0);
        let served = self.collections.values().filter(|collection| !collection.retired);
        self.catalog = Arc::new(served.map(|collection| Arc::clone(&collection.resource)).collect());
    }

    /// Forgets all history up to a version: older ones are expired from now on.
    pub(crate) fn compact(&mut self, version: u64) {
        let version = version.min(self.version);
        self.compacted = self.compacted.max(version);
        self.collections.values_mut().for_each(|collection| collection.compact(version));
    }

    /// Goes back to an older version, as a restored backup does. Watches are cut off.
    pub(crate) fn rewind(&mut self, version: u64) -> Result<(), Expired> {
        if version > self.version {
            return Ok(());
        }
        if version < self.compacted || self.collections.values().any(|c| c.at(version).is_err()) {
            return Err(Expired);
        }
        for (id, collection) in &mut self.collections {
            collection.rewind(version)?;
            self.touched.insert(*id);
        }
        (self.version, self.compacted) = (version, version);
        self.rewinds += 1;
        Ok(())
    }
}
