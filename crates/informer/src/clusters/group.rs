//! The informers of one kind in all clusters.

use std::{
    collections::BTreeMap,
    fmt,
    future::{Future, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    Departure, Event, EventHandler, Object, SharedInformer, SharedInformerFactory, Tombstone, panic_message,
};

/// Hears of clusters that come and go.
pub(super) trait Group: Send + Sync {
    fn join(&self, cluster: &Arc<str>, factory: &SharedInformerFactory);
    /// Its informers have stopped.
    fn leave(&self, cluster: &Arc<str>);
}

/// One informer in each cluster, all of the same kind. It is cheap to clone (an `Arc`).
pub struct ClusterInformers<K> {
    inner: Arc<Inner<K>>,
}

type Choose<K> = dyn Fn(&SharedInformerFactory) -> SharedInformer<K> + Send + Sync;

struct Inner<K> {
    choose: Box<Choose<K>>,
    state: Mutex<State<K>>,
}

struct State<K> {
    there: BTreeMap<Arc<str>, (SharedInformer<K>, SharedInformerFactory)>,
    listeners: Vec<Listener<K>>,
}

/// Who hears of the events of all clusters.
pub(super) struct Listener<K> {
    pub(super) name: Arc<str>,
    pub(super) tell: Arc<Tell<K>>,
    /// Whether it hears nothing of a cluster before the caches of that cluster are complete.
    pub(super) waits: bool,
}

pub(super) type Tell<K> = dyn Fn(&Arc<str>, &Event<K>, bool) + Send + Sync;

impl<K> Clone for Listener<K> {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), tell: Arc::clone(&self.tell), waits: self.waits }
    }
}

impl<K: Send + Sync + 'static> Listener<K> {
    /// Has it hear of one cluster from now on. Whether it waits, its factory's next start decides.
    fn listen(&self, cluster: &Arc<str>, informer: &SharedInformer<K>, factory: &SharedInformerFactory) {
        let heard = Heard { cluster: Arc::clone(cluster), listener: self.clone() };
        // One that has stopped has nothing to tell.
        if self.waits {
            let informer = informer.clone();
            factory.after_sync(move || drop(informer.add_handler(heard)));
        } else {
            drop(informer.add_handler(heard));
        }
    }
}

/// The handler of one cluster.
struct Heard<K> {
    cluster: Arc<str>,
    listener: Listener<K>,
}

impl<K: Send + Sync + 'static> EventHandler<K> for Heard<K> {
    fn on_add(&mut self, object: &Object<K>, initial: bool) -> impl Future<Output = ()> + Send {
        (self.listener.tell)(&self.cluster, &Event::Added(object.clone()), initial);
        ready(())
    }

    fn on_update(&mut self, old: &Object<K>, new: &Object<K>) -> impl Future<Output = ()> + Send {
        (self.listener.tell)(&self.cluster, &Event::Updated { old: old.clone(), new: new.clone() }, false);
        ready(())
    }

    fn on_delete(&mut self, gone: &Tombstone<K>) -> impl Future<Output = ()> + Send {
        (self.listener.tell)(&self.cluster, &Event::Deleted(gone.clone()), false);
        ready(())
    }

    fn name(&self) -> Option<&str> {
        Some(&self.listener.name)
    }
}

impl<K: Send + Sync + 'static> ClusterInformers<K> {
    pub(super) fn new(
        choose: impl Fn(&SharedInformerFactory) -> SharedInformer<K> + Send + Sync + 'static,
    ) -> Self {
        let state = Mutex::new(State { there: BTreeMap::new(), listeners: Vec::new() });
        Self { inner: Arc::new(Inner { choose: Box::new(choose), state }) }
    }

    /// The informer of one cluster.
    pub fn get(&self, cluster: &str) -> Option<SharedInformer<K>> {
        self.lock().there.get(cluster).map(|(informer, _)| informer.clone())
    }

    /// The informer of each cluster, by name.
    pub fn all(&self) -> BTreeMap<Arc<str>, SharedInformer<K>> {
        let there = &self.lock().there;
        there.iter().map(|(name, (informer, _))| (Arc::clone(name), informer.clone())).collect()
    }

    /// Tells one function of every event in every cluster, with the cluster's name and whether it adds what existed before.
    ///
    /// Events of one cluster come one at a time and in the order that [a handler](EventHandler) hears; different clusters do not
    /// wait for each other, so it may be called by several at the same time. It should be quick. When a cluster is removed, it
    /// hears that each of its objects is deleted, with the cluster as its [departure](Departure); of some of them it may not have
    /// heard before.
    pub fn add_handler(
        &self,
        name: impl Into<Arc<str>>,
        tell: impl Fn(&Arc<str>, &Event<K>, bool) + Send + Sync + 'static,
    ) {
        self.listen(Listener { name: name.into(), tell: Arc::new(tell), waits: false });
    }

    pub(super) fn listen(&self, listener: Listener<K>) {
        let mut state = self.lock();
        for (cluster, (informer, factory)) in &state.there {
            listener.listen(cluster, informer, factory);
        }
        state.listeners.push(listener);
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Send + Sync + 'static> Group for ClusterInformers<K> {
    fn join(&self, cluster: &Arc<str>, factory: &SharedInformerFactory) {
        let informer = (self.inner.choose)(factory);
        let mut state = self.lock();
        for listener in &state.listeners {
            listener.listen(cluster, &informer, factory);
        }
        state.there.insert(Arc::clone(cluster), (informer, factory.clone()));
    }

    fn leave(&self, cluster: &Arc<str>) {
        let mut state = self.lock();
        let Some((informer, _)) = state.there.remove(cluster) else { return };
        let listeners = state.listeners.clone();
        // Functions of a user's run without a lock.
        drop(state);
        for last_seen in informer.store().snapshot().iter() {
            let gone = Tombstone::Left { last_seen: last_seen.clone(), why: Departure::Cluster };
            let event = Event::Deleted(gone);
            for listener in &listeners {
                let told = catch_unwind(AssertUnwindSafe(|| (listener.tell)(cluster, &event, false)));
                if let Err(panic) = told {
                    let (handler, message) = (&*listener.name, panic_message(&*panic));
                    tracing::error!(cluster = &**cluster, handler, message, "a handler panicked");
                }
            }
        }
    }
}

impl<K> Clone for ClusterInformers<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<K: Send + Sync + 'static> fmt::Debug for ClusterInformers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().there.keys()).finish()
    }
}
