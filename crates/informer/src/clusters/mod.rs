//! Several clusters in one program: a factory for each under one roof, with clusters that come and go while it runs.
//!
//! In: clusters by name, from calls or from [providers](ClusterProvider). Out: for each kind an informer in every cluster
//! ([`ClusterInformers`]), one handler over all of them, and one work queue or controller, whose keys have the cluster in them
//! ([`ClusterKey`]). Clusters share nothing but that: one that is lost shows in its own health, and the others go on.

mod group;
#[cfg(feature = "controller")]
mod keys;
mod kubeconfig;
mod provider;
mod secrets;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use kube::Client;
use tokio::sync::watch;

use crate::{
    Health, NotSynced, SharedInformer, SharedInformerFactory, SyncReport, factory::FactoryError,
    shared::is_inside_a_handler,
};
use group::Group;

pub use group::ClusterInformers;
#[cfg(feature = "controller")]
pub use keys::ClusterKey;
pub use kubeconfig::KubeconfigContexts;
pub use provider::{ClusterProvider, ProviderError};
pub use secrets::KubeconfigSecrets;

/// The factories of several clusters, by name. It is cheap to clone (an `Arc`).
///
/// ```
/// use informer::{Event, clusters::Clusters};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let [east, west] = [(); 2].map(|()| informer_apiserver::ApiServer::builder().build().client());
/// let clusters = Clusters::new();
/// let namespaces = clusters.informers(|factory| factory.core().v1().namespaces().informer());
/// namespaces.add_handler("print", |cluster, event, _initial| {
///     if let Event::Added(namespace) = event {
///         println!("{cluster}: {}", namespace.key());
///     }
/// });
/// clusters.start();
/// clusters.add("east", east).await?;
/// clusters.add("west", west).await?;
/// for (cluster, synced) in clusters.wait_for_cache_sync(std::time::Duration::from_secs(10)).await {
///     println!("{cluster}: {}", synced?);
/// }
/// clusters.remove("west").await; // told as deletions whose departure is the cluster
/// clusters.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Clusters {
    inner: Arc<Inner>,
}

type MakeFactory = dyn Fn(&str, Client) -> Result<SharedInformerFactory, FactoryError> + Send + Sync;

struct Inner {
    make: Box<MakeFactory>,
    /// Held by whoever changes which clusters or groups there are, while functions of a user's choose their informers.
    changing: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    there: BTreeMap<Arc<str>, SharedInformerFactory>,
    /// Clusters that are on their way out. Each says when it is.
    leaving: BTreeMap<Arc<str>, watch::Receiver<()>>,
    groups: Vec<Arc<dyn Group>>,
    started: bool,
    shut_down: bool,
}

/// Why a cluster was not added.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AddClusterError {
    /// Its factory cannot be built.
    #[error("cluster {cluster:?} cannot be added: {reason}")]
    Factory {
        /// The cluster's name.
        cluster: String,
        /// What is wrong.
        reason: FactoryError,
    },
    /// Nothing is added any more.
    #[error("cluster {cluster:?} was not added: the clusters are shut down")]
    ShutDown {
        /// The cluster's name.
        cluster: String,
    },
}

impl Default for Clusters {
    fn default() -> Self {
        Self::new()
    }
}

impl Clusters {
    /// None yet; each that comes gets a factory with every default.
    pub fn new() -> Self {
        Self::with_factories(|_, client| SharedInformerFactory::builder(client).build())
    }

    /// None yet; each that comes gets a factory that is made here of its name and client.
    pub fn with_factories(
        make: impl Fn(&str, Client) -> Result<SharedInformerFactory, FactoryError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                make: Box::new(make),
                changing: Mutex::default(),
                state: Mutex::default(),
            }),
        }
    }

    /// Adds a cluster, with every informer that is asked for in all clusters. Says whether it is new: one that has the name
    /// already stays as it is. While another one of this name is being removed, this waits for its end.
    pub async fn add(&self, cluster: &str, client: Client) -> Result<bool, AddClusterError> {
        loop {
            match self.try_add(cluster, &client)? {
                Ok(is_new) => return Ok(is_new),
                // It ends with its sender.
                Err(mut leaving) => drop(leaving.changed().await),
            }
        }
    }

    /// Adds a cluster, unless one of its name is on its way out: then it says how to wait for that.
    fn try_add(
        &self,
        cluster: &str,
        client: &Client,
    ) -> Result<Result<bool, watch::Receiver<()>>, AddClusterError> {
        let _changing = self.changing();
        let (groups, is_started) = {
            let state = self.lock();
            if state.shut_down {
                return Err(AddClusterError::ShutDown { cluster: cluster.to_owned() });
            }
            if state.there.contains_key(cluster) {
                return Ok(Ok(false));
            }
            if let Some(leaving) = state.leaving.get(cluster) {
                return Ok(Err(leaving.clone()));
            }
            (state.groups.clone(), state.started)
        };
        let refused = |reason| AddClusterError::Factory { cluster: cluster.to_owned(), reason };
        let factory = (self.inner.make)(cluster, client.clone()).map_err(refused)?;
        let name: Arc<str> = cluster.into();
        groups.iter().for_each(|group| group.join(&name, &factory));
        if is_started {
            // Only one that was shut down by somebody else cannot be started.
            let _ = factory.start();
        }
        tracing::info!(cluster, "a cluster was added");
        self.lock().there.insert(name, factory);
        Ok(Ok(true))
    }

    /// Removes a cluster, stops its informers, and waits for that. Handlers over all clusters then hear that each of its objects
    /// is deleted, with the cluster as its [departure](crate::Departure). Says whether it was there. Called from inside a
    /// handler it does not wait, as that would be for ever; and it goes on if nobody waits for it any more.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub async fn remove(&self, cluster: &str) -> bool {
        let Some(mut leaving) = self.begin_removal(cluster) else { return false };
        if !is_inside_a_handler() {
            let _ = leaving.changed().await;
        }
        true
    }

    /// Has a cluster removed, and says how to wait for it, if there is one.
    pub(crate) fn begin_removal(&self, cluster: &str) -> Option<watch::Receiver<()>> {
        let _changing = self.changing();
        let mut state = self.lock();
        let (name, factory) = state.there.remove_entry(cluster)?;
        let (ended, leaving) = watch::channel(());
        state.leaving.insert(Arc::clone(&name), leaving.clone());
        let groups = state.groups.clone();
        drop(state);
        let this = self.clone();
        // A task of its own: it is not inside a handler, whoever asks for it.
        tokio::spawn(async move {
            factory.shutdown().await;
            for group in groups {
                group.leave(&name);
            }
            tracing::info!(cluster = &*name, "a cluster was removed");
            this.lock().leaving.remove(&name);
            drop(ended);
        });
        Some(leaving)
    }

    /// The factory of a cluster, for what is asked for in this one alone.
    pub fn get(&self, cluster: &str) -> Option<SharedInformerFactory> {
        self.lock().there.get(cluster).cloned()
    }

    /// The names of all clusters, sorted.
    pub fn names(&self) -> Vec<String> {
        self.lock().there.keys().map(|name| name.to_string()).collect()
    }

    /// An informer in every cluster, those that come later too. The function should choose by the factory alone, so that all
    /// clusters have the same one; it must not add or remove clusters.
    pub fn informers<K: Send + Sync + 'static>(
        &self,
        choose: impl Fn(&SharedInformerFactory) -> SharedInformer<K> + Send + Sync + 'static,
    ) -> ClusterInformers<K> {
        let group = ClusterInformers::new(choose);
        let _changing = self.changing();
        let there = self.lock().there.clone();
        for (name, factory) in &there {
            group.join(name, factory);
        }
        self.lock().groups.push(Arc::new(group.clone()));
        group
    }

    /// Starts what was asked for in every cluster, and in those that come later as they come. May be called again, for what was
    /// asked for later.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn start(&self) {
        let _changing = self.changing();
        let mut state = self.lock();
        state.started = true;
        for factory in state.there.values() {
            // Only one that was shut down by somebody else cannot be started.
            let _ = factory.start();
        }
    }

    /// Waits until the caches of each cluster are complete, for so long at most, and says of each whether they are: one that is
    /// lost takes all the time that there is, and the others are told beside it.
    pub async fn wait_for_cache_sync(
        &self,
        within: Duration,
    ) -> BTreeMap<Arc<str>, Result<SyncReport, NotSynced>> {
        let there = self.lock().there.clone();
        let waits = there.into_iter().map(async |(name, factory)| {
            let synced = factory.wait_for_cache_sync(within).await;
            (name, synced)
        });
        join_all(waits).await.into_iter().collect()
    }

    /// What each informer of each cluster is doing.
    pub fn health(&self) -> BTreeMap<Arc<str>, Vec<Health>> {
        let there = self.lock().there.clone();
        there.into_iter().map(|(name, factory)| (name, factory.health())).collect()
    }

    /// Has a provider add and remove clusters, until it is told to stop or fails. The clusters stay as they are then.
    pub async fn follow(
        &self,
        provider: impl ClusterProvider,
        stop: crate::CancellationToken,
    ) -> Result<(), ProviderError> {
        provider.run(self.clone(), stop).await
    }

    /// Stops everything in all clusters, waits until the last handler has returned, and lets no cluster come after that. Handlers
    /// hear of no deletions: nothing is known to be gone. Called from inside a handler it does not wait.
    pub async fn shutdown(&self) {
        let (there, leaving) = {
            let _changing = self.changing();
            let mut state = self.lock();
            state.shut_down = true;
            state.groups.clear();
            (std::mem::take(&mut state.there), state.leaving.values().cloned().collect::<Vec<_>>())
        };
        join_all(there.values().map(SharedInformerFactory::shutdown)).await;
        if !is_inside_a_handler() {
            for mut leaving in leaving {
                let _ = leaving.changed().await;
            }
        }
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.inner.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Clusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clusters").field(&self.names()).finish()
    }
}
