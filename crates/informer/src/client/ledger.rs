//! Which writes the cache may not show yet.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use hashbrown::HashMap;
use informer_model::{ObjectKey, ResourceVersion};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde_json::Value;
use tokio::time::Instant;

use super::call::{Remembered, Written};
use crate::{
    Object,
    coverage::Coverage,
    store::{NotShown, Store},
};

/// What no cache has shown for so long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(600);
/// So many are remembered before it is looked which of them can be forgotten.
const FEW: usize = 64;

pub(super) struct Ledger<K> {
    store: Store<K>,
    coverage: Coverage<K>,
    writes: Mutex<HashMap<ObjectKey, Write>>,
    /// How many there are: who reads when there is none takes no lock.
    remembered: AtomicUsize,
    /// The latest term that has written something, by its token, and the version of that.
    term: Mutex<Option<(u64, ResourceVersion)>>,
    /// It was said that versions cannot be compared.
    said: AtomicBool,
}

/// What became of an object by our hand.
#[derive(Debug, Clone, PartialEq)]
struct Write {
    /// The version of the last write that was answered; unset after a mere deletion.
    version: ResourceVersion,
    /// The uid of the object that is gone, if one is.
    gone: Option<String>,
    /// The last of it has left an object there.
    left: bool,
    at: Instant,
    until: Instant,
}

/// The cache does not show yet what was written to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Behind {
    /// The object.
    pub key: ObjectKey,
    /// The version that was written; unset after a mere deletion.
    pub wanted: ResourceVersion,
    /// The version that the cache has reached.
    pub current: ResourceVersion,
    /// How long ago that was.
    pub since: Duration,
    /// The informer has stopped: its cache never will.
    pub stopped: bool,
}

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, wanted, current, since, stopped } = self;
        write!(f, "the cache does not show ")?;
        match wanted.is_unset() {
            true => write!(f, "the deletion of {key}")?,
            false => write!(f, "version {wanted} of {key}")?,
        }
        write!(f, ", written {since:?} ago; it is at version {current:?}")?;
        if *stopped { write!(f, ", and its informer has stopped") } else { Ok(()) }
    }
}

impl std::error::Error for Behind {}

impl Write {
    fn is_shown<K: Resource>(&self, object: Option<&Object<K>>, reached: &ResourceVersion) -> bool {
        let version = self.version.is_unset()
            || *reached >= self.version
            || object.is_some_and(|object| *object.resource_version() >= self.version);
        let has = |uid: &String| object.is_some_and(|object| object.meta().uid.as_ref() == Some(uid));
        version && !self.gone.as_ref().is_some_and(has)
    }

    fn behind(&self, key: &ObjectKey, NotShown { version, stopped }: NotShown) -> Behind {
        let (key, wanted) = (key.clone(), self.version.clone());
        Behind { key, wanted, current: version, since: self.at.elapsed(), stopped }
    }
}

/// Whether an object that is deleted is gone with that: nothing holds it any more. (Namespaces have finalizers in their spec, too.)
pub(super) fn is_last_state(metadata: &ObjectMeta, object: &dyn Fn() -> Value) -> bool {
    let grace = metadata.deletion_grace_period_seconds.unwrap_or(0);
    let held =
        || object().pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|by| !by.is_empty());
    metadata.finalizers.as_ref().is_none_or(Vec::is_empty) && grace == 0 && !held()
}

impl<K: Resource + 'static> Ledger<K> {
    pub(super) fn new(store: Store<K>, coverage: Coverage<K>) -> Self {
        Self {
            store,
            coverage,
            writes: Mutex::default(),
            remembered: AtomicUsize::new(0),
            term: Mutex::default(),
            said: AtomicBool::new(false),
        }
    }

    pub(super) fn store(&self) -> &Store<K> {
        &self.store
    }

    /// An object was written, and this is the answer.
    pub(super) fn wrote(
        &self,
        key: &ObjectKey,
        answer: &K,
        object: &dyn Fn() -> Value,
        within: Duration,
    ) -> bool {
        let meta = answer.meta();
        if meta.deletion_timestamp.is_some() && is_last_state(meta, object) {
            return self.deleted(key, meta.uid.as_deref(), within);
        }
        let version = ResourceVersion::from(meta.resource_version.as_deref().unwrap_or_default());
        if !version.is_decimal() {
            if !self.said.swap(true, Ordering::Relaxed) {
                tracing::warn!(%key, ?version, "writes cannot be waited for: their versions are no numbers");
            }
            return false;
        }
        // What was to be seen before comes first, or goes.
        let is_known = self.lock().contains_key(key) || self.store.get(key).is_some();
        if !is_known && !self.coverage.covers(meta, object) {
            return false;
        }
        let mut writes = self.lock();
        self.remember(&mut writes, key, within, |write| {
            write.left = true;
            if write.version.is_unset() || write.version < version {
                write.version = version;
            }
        });
        true
    }

    /// There is an object of this version that was written in a term.
    pub(super) fn wrote_in_term(&self, token: u64, version: &ResourceVersion) {
        let mut term = self.term.lock().unwrap_or_else(PoisonError::into_inner);
        if version.is_decimal() && term.as_ref().is_none_or(|(known, _)| *known < token) {
            *term = Some((token, version.clone()));
        }
    }

    /// Whether an object is in the cache, and that has come to where a term has written: nothing from before the term is missing then.
    pub(super) fn shows_term(&self, token: u64, object: &Object<K>) -> bool {
        let term = self.term.lock().unwrap_or_else(PoisonError::into_inner).clone();
        term.is_some_and(|(known, version)| {
            let is_there = |now: Option<&Object<K>>| now.is_some_and(|now| now.same_state(object));
            known == token
                && self.store.shows(object.key(), |now, reached| *reached >= version && is_there(now))
        })
    }

    /// An object is gone.
    pub(super) fn deleted(&self, key: &ObjectKey, uid: Option<&str>, within: Duration) -> bool {
        let Some(uid) = uid else { return false };
        let mut writes = self.lock();
        self.remember(&mut writes, key, within, |write| {
            (write.gone, write.left) = (Some(uid.to_owned()), false);
        });
        true
    }

    fn remember(
        &self,
        writes: &mut HashMap<ObjectKey, Write>,
        key: &ObjectKey,
        within: Duration,
        change: impl FnOnce(&mut Write),
    ) {
        let at = Instant::now();
        // What is later than any moment is in ten minutes: then it is forgotten.
        let until = at + within.min(FORGOTTEN);
        let new = || Write { version: ResourceVersion::UNSET, gone: None, left: false, at, until };
        let write = writes.entry_ref(key).or_insert_with(new);
        (write.at, write.until) = (at, until);
        change(write);
        if writes.len() >= FEW && writes.len() == writes.capacity() {
            writes.retain(|key, write| {
                write.at.elapsed() < FORGOTTEN && !self.store.shows(key, |o, v| write.is_shown(o, v))
            });
        }
        self.remembered.store(writes.len(), Ordering::Release);
    }

    fn get(&self, key: &ObjectKey) -> Option<Write> {
        if self.remembered.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut writes = self.lock();
        let write = writes.get(key)?;
        if write.at.elapsed() < FORGOTTEN {
            return Some(write.clone());
        }
        writes.remove(key);
        self.remembered.store(writes.len(), Ordering::Release);
        None
    }

    /// It is shown, unless it was written again meanwhile.
    fn forget(&self, key: &ObjectKey, write: &Write) {
        let mut writes = self.lock();
        if writes.get(key) == Some(write) {
            writes.remove(key);
        }
        self.remembered.store(writes.len(), Ordering::Release);
    }

    /// Waits until the cache shows what was written to an object.
    pub(super) async fn ready(&self, key: &ObjectKey) -> Result<(), Behind> {
        let Some(write) = self.get(key) else { return Ok(()) };
        let seen = |object: Option<&Object<K>>, reached: &ResourceVersion| write.is_shown(object, reached);
        self.store.wait_until_shown(key, write.until, seen).await.map_err(|not| write.behind(key, not))?;
        self.forget(key, &write);
        Ok(())
    }

    /// Waits for all that was written to objects that a test chooses.
    pub(super) async fn all_ready(&self, chosen: impl Fn(&ObjectKey) -> bool) -> Result<(), Behind> {
        if self.remembered.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let keys: Vec<ObjectKey> = self.lock().keys().filter(|key| chosen(key)).cloned().collect();
        for key in keys {
            self.ready(&key).await?;
        }
        Ok(())
    }

    /// How many writes are remembered.
    pub(super) fn len(&self) -> usize {
        self.remembered.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Write>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Resource + Send + Sync + 'static> Remembered for Ledger<K> {
    fn is_shown(&self, key: &ObjectKey) -> bool {
        self.get(key)
            .is_none_or(|write| self.store.shows(key, |object, reached| write.is_shown(object, reached)))
    }

    fn wait<'a>(&'a self, key: &'a ObjectKey) -> BoxFuture<'a, Result<(), Behind>> {
        self.ready(key).boxed()
    }

    fn missed(self: Arc<Self>, key: &ObjectKey) -> Option<BoxFuture<'static, bool>> {
        // The end of what the cache has is an event.
        let write = self.get(key).filter(|write| write.left && self.store.get(key).is_none())?;
        let (key, until) = (key.clone(), write.at + FORGOTTEN);
        let waiting = async move {
            let seen =
                |object: Option<&Object<K>>, reached: &ResourceVersion| write.is_shown(object, reached);
            self.store.wait_until_shown(&key, until, seen).await.is_ok() && self.store.get(&key).is_none()
        };
        Some(waiting.boxed())
    }
}

impl<K: Resource + Send + Sync + 'static> Ledger<K> {
    /// The call that is running has written an object.
    pub(super) fn note(self: &Arc<Self>, key: &ObjectKey) {
        Written::note(|| Arc::clone(self) as Arc<dyn Remembered>, key);
    }
}
