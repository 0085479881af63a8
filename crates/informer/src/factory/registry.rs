//! The informers of a factory: which there are, and which of them run.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Scope, ShutDown};
use crate::{AnyInformer, SharedInformer, shared::is_inside_a_handler};

/// What makes two requests ask for the same informer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) objects: TypeId,
    /// Group, version and plural: one type may stand for objects of any resource.
    pub(super) resource: [String; 3],
    pub(super) scope: Scope,
}

pub(super) type Informers = Vec<Arc<dyn AnyInformer>>;

pub(super) struct Registry {
    /// Ends everything.
    root: CancellationToken,
    tasks: TaskTracker,
    /// What is to run beside the informers, from the next start until the end of everything.
    companions: Mutex<Vec<BoxFuture<'static, ()>>>,
    entries: Mutex<HashMap<Key, Entry>>,
}

struct Entry {
    informer: Arc<dyn AnyInformer>,
    running: Option<Running>,
}

struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Entry {
    /// Whether it may be handed out: it has not stopped, and is not about to.
    fn is_live(&self) -> bool {
        let is_ending = self.running.as_ref().is_some_and(|running| running.stop.is_cancelled());
        !is_ending && !self.informer.is_stopped()
    }

    fn typed<K: Send + Sync + 'static>(&self) -> Option<SharedInformer<K>> {
        let any: &dyn Any = &*self.informer;
        any.downcast_ref().cloned()
    }
}

impl Registry {
    pub(super) fn new(stop: &CancellationToken) -> Self {
        Self {
            root: stop.child_token(),
            tasks: TaskTracker::new(),
            companions: Mutex::default(),
            entries: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The informer, if there is one that has not stopped.
    pub(super) fn get<K: Send + Sync + 'static>(&self, key: &Key) -> Option<SharedInformer<K>> {
        self.lock().get(key).filter(|entry| entry.is_live())?.typed()
    }

    /// Takes an informer in and hands it back. If somebody else was first, it is theirs that is handed back.
    pub(super) fn insert<K: Send + Sync + 'static>(
        &self,
        key: Key,
        informer: SharedInformer<K>,
    ) -> SharedInformer<K> {
        let mut entries = self.lock();
        if let Some(first) = entries.get(&key).filter(|entry| entry.is_live()).and_then(Entry::typed) {
            return first;
        }
        entries.insert(key, Entry { informer: Arc::new(informer.clone()), running: None });
        informer
    }

    /// Has something run beside the informers, from the next start until the end of everything.
    pub(super) fn accompany(&self, companion: impl Future<Output = ()> + Send + 'static) {
        self.companions.lock().unwrap_or_else(PoisonError::into_inner).push(companion.boxed());
    }

    /// Runs every informer that does not run yet.
    pub(super) fn start(&self) -> Result<(), ShutDown> {
        let mut entries = self.lock();
        if self.root.is_cancelled() {
            return Err(ShutDown);
        }
        for entry in entries.values_mut().filter(|entry| entry.running.is_none()) {
            let (informer, stop) = (Arc::clone(&entry.informer), self.root.child_token());
            let until = stop.clone();
            let task = self.tasks.spawn(async move {
                if let Err(error) = informer.run(until).await {
                    tracing::warn!(informer = informer.name(), %error, "an informer of the factory");
                }
            });
            entry.running = Some(Running { stop, task });
        }
        let companions = std::mem::take(&mut *self.companions.lock().unwrap_or_else(PoisonError::into_inner));
        for companion in companions {
            let stop = self.root.clone();
            self.tasks.spawn(async move { stop.run_until_cancelled(companion).await });
        }
        Ok(())
    }

    /// Forgets one informer, stops it and waits for its end. Says whether there was one. From inside a handler nobody
    /// waits: the informer's end waits for its handlers.
    pub(super) async fn stop(&self, is_meant: impl Fn(&Key, &dyn AnyInformer) -> bool) -> bool {
        let removed = {
            let mut entries = self.lock();
            let key = entries.iter().find(|(key, entry)| is_meant(key, &*entry.informer));
            let key = key.map(|(key, _)| key.clone());
            key.and_then(|key| entries.remove(&key))
        };
        let Some(Entry { running, .. }) = removed else { return false };
        if let Some(Running { stop, task }) = running {
            stop.cancel();
            if !is_inside_a_handler() {
                // What a panic in it had to say was said by the panic hook.
                let _ = task.await;
            }
        }
        true
    }

    /// Stops everything for good and, except from inside a handler, waits for the end of it.
    pub(super) async fn shutdown(&self) {
        {
            // Under the lock, so that nothing is started after it.
            let mut entries = self.lock();
            self.root.cancel();
            entries.clear();
        }
        self.companions.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.tasks.close();
        if !is_inside_a_handler() {
            self.tasks.wait().await;
        }
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.root.is_cancelled()
    }

    /// Every informer, those that were started and the others, each by name.
    pub(super) fn all(&self) -> (Informers, Informers) {
        let entries = self.lock();
        let mut all: Vec<&Entry> = entries.values().collect();
        all.sort_by(|one, other| one.informer.name().cmp(other.informer.name()));
        let (started, others): (Vec<&Entry>, Vec<&Entry>) =
            all.into_iter().partition(|entry| entry.running.is_some());
        let informers =
            |entries: Vec<&Entry>| entries.iter().map(|entry| Arc::clone(&entry.informer)).collect();
        (informers(started), informers(others))
    }
}
