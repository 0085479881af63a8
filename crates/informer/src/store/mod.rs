//! The local cache of one kind: one writer, any number of readers.
//!
//! In come whole objects, from the one task that owns the [`StoreWriter`]. Out come [`Object`] handles:
//! single ones from a [`Store`], lists of one point in time from its [`Snapshot`]. Readers never wait for the
//! writer nor the writer for readers: the writer works on its own copy, which shares the objects and nearly all
//! else that is unchanged with what readers see, and swaps one pointer when it is done.
//!
//! Objects lie in numbered slots. An order by key, an index by namespace, one by label and one for each
//! function that a user adds all speak of slots, so an update that changes none of these touches none.

mod index;
mod left_right;
mod posting;
mod slab;
mod snapshot;
mod trie;

mod writer;

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use informer_model::{ObjectKey, ResourceVersion, Selector};
use tokio::sync::watch;

use crate::Object;
use index::{InsideIndexFunction, UserIndex};
use snapshot::View;
use writer::State;

pub use index::{IndexError, IndexFailure, LABEL_INDEX, NAMESPACE_INDEX};
pub use snapshot::{Plan, Snapshot};
pub use writer::{Batch, StoreWriter};

/// A reader of the cache. It is cheap to clone (an `Arc`).
///
/// ```
/// use informer::{Object, store};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
///
/// let (mut writer, store) = store::new::<ConfigMap>();
/// let by_key = store.add_index("data-key", |object| {
///     object.data.iter().flatten().map(|(key, _)| key.clone()).collect::<Vec<_>>()
/// })?;
///
/// let metadata = ObjectMeta { name: Some("a".into()), namespace: Some("ns".into()), ..Default::default() };
/// let data = Some([("color".to_owned(), "red".to_owned())].into());
/// let object = Object::new(ConfigMap { metadata, data, ..Default::default() })?;
/// writer.write(|batch| batch.insert(object));
///
/// assert!(store.get(&"ns/a".parse()?).is_some());
/// assert_eq!(by_key.get("color").len(), 1);
/// assert_eq!(store.snapshot().iter_namespace("ns").count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store<K> {
    shared: Arc<Shared<K>>,
}

/// What the writer and all readers of one store have in common.
struct Shared<K> {
    /// What readers see.
    view: ArcSwap<View<K>>,
    /// What the writer works on. Others lock it only to add an index or to ask for its failures.
    state: Mutex<State<K>>,
    /// The version of `view`, for those who wait for one.
    reached: watch::Sender<Reached>,
    /// What the objects of `view` took on the wire, if that is counted.
    wire_bytes: AtomicU64,
}

#[derive(Clone, Default)]
struct Reached {
    version: ResourceVersion,
    /// The versions of namespaces that are filled each by itself.
    namespaces: BTreeMap<Arc<str>, ResourceVersion>,
    /// Why there can be no objects at all, in words, if that is so.
    absent: Option<Arc<str>>,
    /// The writer is gone: there will be no other version.
    last: bool,
}

/// A new, empty store: its writer and a reader.
pub fn new<K>() -> (StoreWriter<K>, Store<K>) {
    let mut state = State::new();
    let shared = Arc::new(Shared {
        view: ArcSwap::from_pointee(state.show()),
        state: Mutex::new(state),
        reached: watch::Sender::default(),
        wire_bytes: AtomicU64::new(0),
    });
    (StoreWriter::new(Arc::clone(&shared)), Store::new(shared))
}

impl<K> Shared<K> {
    fn publish(&self, state: &mut State<K>) {
        state.rewinds += u64::from(state.version < self.view.load().version);
        self.view.store(Arc::new(state.show()));
        self.wire_bytes.store(state.wire_bytes.unwrap_or_default(), Relaxed);
        state.published();
        self.reached.send_if_modified(|reached| {
            let news = reached.version != state.version || !state.namespace_versions.is_empty();
            if reached.version != state.version {
                reached.version = state.version.clone();
            }
            let news = news || reached.absent != state.absent;
            reached.absent.clone_from(&state.absent);
            for (namespace, version) in state.namespace_versions.drain(..) {
                match version {
                    Some(version) => drop(reached.namespaces.insert(namespace, version)),
                    None => drop(reached.namespaces.remove(&namespace)),
                }
            }
            news
        });
    }

    fn close(&self) {
        self.reached.send_modify(|reached| reached.last = true);
    }
}

/// Why a wait for a version ended without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The time was up first.
    #[error("the cache has not reached version {wanted} within {waited:?}; it is at {current:?}")]
    Deadline {
        /// The version that was waited for.
        wanted: ResourceVersion,
        /// The version that the store had in the end; unset before the first list.
        current: ResourceVersion,
        /// How long was waited.
        waited: Duration,
    },
    /// The two versions have no order, so no wait would end.
    #[error(
        "version {wanted:?} cannot be compared with the cache's {current:?}: both must be decimal numbers"
    )]
    Incomparable {
        /// The version that was to be waited for.
        wanted: ResourceVersion,
        /// The version that the store has.
        current: ResourceVersion,
    },
    /// Nobody writes to the store any more.
    #[error("the cache is not updated any more: its informer has stopped before version {wanted}")]
    Stopped {
        /// The version that was waited for.
        wanted: ResourceVersion,
    },
}

impl Reached {
    /// The version that counts for an object: that of its namespace, if it is filled by itself.
    #[cfg(feature = "controller")]
    fn of(&self, key: &ObjectKey) -> &ResourceVersion {
        self.namespaces.get(key.namespace().unwrap_or_default()).unwrap_or(&self.version)
    }
}

/// A store did not come to show something.
#[cfg(feature = "controller")]
pub(crate) struct NotShown {
    /// The version that it had reached in the end, of what counts for the object.
    pub(crate) version: ResourceVersion,
    /// Nobody writes to it any more.
    pub(crate) stopped: bool,
}

impl<K> Store<K> {
    fn new(shared: Arc<Shared<K>>) -> Self {
        Self { shared }
    }

    /// The whole store at this moment.
    pub fn snapshot(&self) -> Snapshot<K> {
        Snapshot(self.shared.view.load_full())
    }

    /// One object by its key.
    pub fn get(&self, key: &ObjectKey) -> Option<Object<K>> {
        self.shared.view.load().get(key).cloned()
    }

    /// All objects whose labels match, in the order of keys. To look without keeping, a [`Snapshot::list`] is
    /// cheaper: it copies no handle.
    pub fn list(&self, selector: &Selector) -> Vec<Object<K>> {
        self.shared.view.load().list(None, selector).into_iter().cloned().collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.shared.view.load().objects.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What all objects took on the wire; 0 unless that is counted.
    pub(crate) fn wire_bytes(&self) -> u64 {
        self.shared.wire_bytes.load(Relaxed)
    }

    /// The version that the store has reached; unset before the first list.
    pub fn resource_version(&self) -> ResourceVersion {
        self.shared.view.load().version.clone()
    }

    /// Why there can be no objects at all, in words: the server does not serve their kind.
    pub fn absent(&self) -> Option<Arc<str>> {
        self.shared.reached.borrow().absent.clone()
    }

    /// Adds an index, at any time: what is in the store already is in it when this returns.
    ///
    /// The function gives the values under which an object is to be found: none, one, or many. If it panics,
    /// the object stays in the store but not in this index, and [`index_failures`](Self::index_failures) says
    /// so. It runs while the writer waits: it should be quick.
    pub fn add_index<F, I>(&self, name: &str, function: F) -> Result<IndexHandle<K>, IndexError>
    where
        F: Fn(&Object<K>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item: AsRef<str>>,
    {
        if InsideIndexFunction::is_active() {
            return Err(IndexError::InsideIndexFunction { name: name.to_owned() });
        }
        let mut state = self.shared.lock();
        if [NAMESPACE_INDEX, LABEL_INDEX].contains(&name)
            || state.user.iter().any(|index| *index.name == *name)
        {
            return Err(IndexError::Conflict { name: name.to_owned() });
        }
        state.add_index(UserIndex::new(name.into(), function));
        self.shared.publish(&mut state);
        drop(state);
        self.index(name)
    }

    /// A handle for an index that exists.
    pub fn index(&self, name: &str) -> Result<IndexHandle<K>, IndexError> {
        self.shared.view.load().index(name)?;
        Ok(IndexHandle { name: name.into(), store: self.clone() })
    }

    /// The objects that are missing from an index now because its function panicked.
    pub fn index_failures(&self) -> Vec<IndexFailure> {
        if InsideIndexFunction::is_active() {
            return Vec::new();
        }
        self.shared.lock().user.iter().flat_map(UserIndex::failures).collect()
    }

    /// Waits until the store has applied this version, and returns the version that it has then. An unset version is
    /// reached by every store.
    ///
    /// With it a program reads its own writes: write, take the version from the answer, wait for it here,
    /// read from the store.
    pub async fn wait_for_resource_version(
        &self,
        wanted: &ResourceVersion,
        within: Duration,
    ) -> Result<ResourceVersion, WaitError> {
        self.wait(wanted, within, |reached| reached.version.clone()).await
    }

    /// Waits until the store has applied this version of one object, or its deletion at this version. With several
    /// namespaces, each watched by itself, nobody else's is waited for, as
    /// [`wait_for_resource_version`](Self::wait_for_resource_version) does.
    pub async fn wait_for(
        &self,
        key: &ObjectKey,
        wanted: &ResourceVersion,
        within: Duration,
    ) -> Result<ResourceVersion, WaitError> {
        self.wait(wanted, within, |reached| {
            let object = self.get(key).map(|object| object.resource_version().clone());
            let namespace = || reached.namespaces.get(key.namespace().unwrap_or_default());
            object
                .filter(|version| version >= wanted)
                .unwrap_or_else(|| namespace().unwrap_or(&reached.version).clone())
        })
        .await
    }

    /// Waits until the first list of a namespace that is filled by itself is in the store. Says whether it is: the store may
    /// be closed first.
    pub(crate) async fn wait_until_listed(&self, namespace: &str) -> bool {
        let is_listed =
            |reached: &Reached| reached.namespaces.get(namespace).is_some_and(|it| !it.is_unset());
        let mut reached = self.shared.reached.subscribe();
        let decided = reached.wait_for(|reached| reached.last || is_listed(reached)).await;
        decided.is_ok_and(|reached| is_listed(&reached))
    }

    /// Whether the store shows something of one object: it is asked with the object and the version that was reached.
    #[cfg(feature = "controller")]
    pub(crate) fn shows(
        &self,
        key: &ObjectKey,
        seen: impl Fn(Option<&Object<K>>, &ResourceVersion) -> bool,
    ) -> bool {
        let reached = self.shared.reached.borrow().of(key).clone();
        seen(self.get(key).as_ref(), &reached)
    }

    /// Waits until the store [shows](Self::shows) something of one object. It is asked once at least, and after each change of the version.
    #[cfg(feature = "controller")]
    pub(crate) async fn wait_until_shown(
        &self,
        key: &ObjectKey,
        until: tokio::time::Instant,
        seen: impl Fn(Option<&Object<K>>, &ResourceVersion) -> bool,
    ) -> Result<(), NotShown> {
        let shown = |reached: &Reached| seen(self.get(key).as_ref(), reached.of(key));
        let mut versions = self.shared.reached.subscribe();
        let decided = versions.wait_for(|reached| reached.last || shown(reached));
        // The sender is in `self`, so it is not gone.
        let _ = tokio::time::timeout_at(until, decided).await;
        let reached = self.shared.reached.borrow().clone();
        if shown(&reached) {
            return Ok(());
        }
        Err(NotShown { version: reached.of(key).clone(), stopped: reached.last })
    }

    /// Waits until what counts of all that was reached is this version or a later one.
    async fn wait(
        &self,
        wanted: &ResourceVersion,
        within: Duration,
        counts: impl Fn(&Reached) -> ResourceVersion,
    ) -> Result<ResourceVersion, WaitError> {
        let order = |version: &ResourceVersion| match wanted.is_unset() {
            true => Some(Ordering::Equal),
            false => version.partial_cmp(wanted),
        };
        let mut versions = self.shared.reached.subscribe();
        let decided = versions.wait_for(|reached| {
            let version = counts(reached);
            reached.last || order(&version).map_or(!version.is_unset(), Ordering::is_ge)
        });
        // The sender is in `self`, so it is not gone.
        let in_time = tokio::time::timeout(within, decided).await.is_ok();
        let reached = self.shared.reached.borrow().clone();
        let (wanted, current) = (wanted.clone(), counts(&reached));
        match order(&current) {
            Some(order) if order.is_ge() => Ok(current),
            None if !current.is_unset() => Err(WaitError::Incomparable { wanted, current }),
            _ if in_time && reached.last => Err(WaitError::Stopped { wanted }),
            _ => Err(WaitError::Deadline { wanted, current, waited: within }),
        }
    }
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared))
    }
}

impl<K> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({} objects at version {:?})", self.len(), self.resource_version())
    }
}

/// An index of a store, to ask again and again: it exists, so asking cannot fail.
pub struct IndexHandle<K> {
    name: Arc<str>,
    store: Store<K>,
}

impl<K> IndexHandle<K> {
    /// The index's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The objects under a value, at one point in time, in the order of keys.
    pub fn get(&self, value: &str) -> Vec<Object<K>> {
        let view = self.store.shared.view.load();
        let filed = view.index(&self.name).map_or_else(|_| Vec::new(), |index| view.filed(index, value));
        filed.into_iter().cloned().collect()
    }

    /// How many objects are under a value.
    pub fn count(&self, value: &str) -> usize {
        let view = self.store.shared.view.load();
        view.index(&self.name).map_or(0, |index| index.count(value))
    }

    /// All values that have an object, sorted.
    pub fn values(&self) -> Vec<String> {
        let view = self.store.shared.view.load();
        view.index(&self.name).map_or_else(|_| Vec::new(), snapshot::sorted_values)
    }
}

impl<K> Clone for IndexHandle<K> {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), store: self.store.clone() }
    }
}
