//! Who knows which clusters there are.

use std::{
    collections::BTreeMap,
    future::Future,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::Clusters;

/// Knows which clusters there are: adds them, and removes those that are gone, until it is told to stop.
///
/// ```
/// use informer::{CancellationToken, clusters::{ClusterProvider, Clusters, ProviderError}};
///
/// /// The clusters of a registry that tells of them over a channel.
/// struct Registry(tokio::sync::mpsc::Receiver<(String, Option<kube::Client>)>);
///
/// impl ClusterProvider for Registry {
///     async fn run(mut self, clusters: Clusters, stop: CancellationToken) -> Result<(), ProviderError> {
///         while let Some(Some((name, client))) = stop.run_until_cancelled(self.0.recv()).await {
///             match client {
///                 Some(client) => drop(clusters.add(&name, client).await.map_err(ProviderError::new)?),
///                 None => drop(clusters.remove(&name).await),
///             }
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait ClusterProvider: Send {
    /// Runs until it is told to stop. An error is final: what can be tried again should be, and be logged.
    fn run(
        self,
        clusters: Clusters,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<(), ProviderError>> + Send;
}

/// Why a provider gave up.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the clusters are not followed any more: {0}")]
pub struct ProviderError(Arc<dyn std::error::Error + Send + Sync>);

impl ProviderError {
    /// It gave up because of this.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into().into())
    }
}

/// Makes the client of a cluster.
pub(super) type Connect = Arc<dyn Fn(Config) -> Result<Client, String> + Send + Sync>;

/// With the retries left to the informers.
pub(super) fn connect() -> Connect {
    Arc::new(|mut config| {
        config.default_retry = false;
        Client::try_from(config).map_err(|error| error.to_string())
    })
}

/// What a provider has read of one cluster: a context of a kubeconfig.
#[derive(Debug, Clone)]
pub(super) struct Described {
    pub(super) kubeconfig: Kubeconfig,
    pub(super) context: Option<String>,
    /// What it was read from. While that stays, the cluster does.
    pub(super) fingerprint: u64,
}

pub(super) fn fingerprint(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The clusters that one provider has brought. It leaves others alone.
pub(super) struct Brought {
    clusters: Clusters,
    connect: Connect,
    known: BTreeMap<String, Known>,
}

struct Known {
    fingerprint: u64,
    /// Says that it is to be removed. Dropped, it stays.
    remove: oneshot::Sender<()>,
    /// Adds it, and has it removed.
    task: Option<JoinHandle<()>>,
}

impl Brought {
    pub(super) fn new(clusters: Clusters, connect: Connect) -> Self {
        Self { clusters, connect, known: BTreeMap::new() }
    }

    /// Makes these the clusters of this provider. One that is described in another way is removed and comes anew. None waits for
    /// another, and one that cannot be connected to is named in the log and tried when it is described anew.
    pub(super) async fn set(&mut self, described: BTreeMap<String, Described>) {
        let stays = |name: &str, known: &Known| {
            described.get(name).is_some_and(|it| it.fingerprint == known.fingerprint)
        };
        let (known, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.known).into_iter().partition(|(name, known)| stays(name, known));
        self.known = known;
        let mut before: BTreeMap<String, Option<JoinHandle<()>>> = BTreeMap::new();
        for (name, known) in gone {
            let _ = known.remove.send(());
            before.insert(name, known.task);
        }
        for (name, Described { kubeconfig, context, fingerprint }) in described {
            if self.known.contains_key(&name) {
                continue;
            }
            let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            let client = config.map_err(|error| error.to_string()).and_then(|config| (self.connect)(config));
            let (remove, removed) = oneshot::channel();
            let mut task = before.remove(&name).flatten();
            match client {
                Ok(client) => {
                    let bringing = bring(self.clusters.clone(), name.clone(), client, removed, task);
                    task = Some(tokio::spawn(bringing));
                }
                Err(error) => tracing::error!(cluster = name, error, "a cluster cannot be connected to"),
            }
            self.known.insert(name, Known { fingerprint, remove, task });
        }
    }
}

/// Adds a cluster after the one that had its name before, and has it removed when that is asked for. Another one of its name,
/// which somebody else has brought, stays.
async fn bring(
    clusters: Clusters,
    name: String,
    client: Client,
    removed: oneshot::Receiver<()>,
    before: Option<JoinHandle<()>>,
) {
    if let Some(before) = before {
        // What a panic in it had to say was said by the panic hook.
        let _ = before.await;
    }
    match clusters.add(&name, client).await {
        Ok(true) => {
            if removed.await.is_ok() {
                drop(clusters.begin_removal(&name));
            }
        }
        Ok(false) => tracing::warn!(cluster = name, "a cluster of this name is there already, and stays"),
        Err(error) => tracing::error!(%error, "a cluster of a provider"),
    }
}
