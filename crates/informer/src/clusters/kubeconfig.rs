//! The contexts of a kubeconfig as clusters.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use kube::{
    Client, Config,
    config::{Kubeconfig, KubeconfigError},
};
use tokio_util::sync::CancellationToken;

use super::{
    Clusters,
    provider::{Brought, ClusterProvider, Connect, Described, ProviderError, connect, fingerprint},
};

/// The contexts of a kubeconfig file, each a cluster of that name. The file is read again every 10 seconds: contexts that come,
/// go or change are clusters that do.
///
/// A file that cannot be read, or not as a kubeconfig, changes nothing, and is named in the log once; but if that is so at the
/// beginning, following it fails.
///
/// ```no_run
/// use informer::{CancellationToken, clusters::{Clusters, KubeconfigContexts}};
///
/// # async fn follow(clusters: Clusters, stop: CancellationToken) -> Result<(), Box<dyn std::error::Error>> {
/// let provider = KubeconfigContexts::of("/etc/clusters/kubeconfig").only(["east", "west"]);
/// clusters.follow(provider, stop).await?;
/// # Ok(()) }
/// ```
#[must_use]
pub struct KubeconfigContexts {
    path: PathBuf,
    only: Option<BTreeSet<String>>,
    every: Duration,
    connect: Connect,
}

impl KubeconfigContexts {
    /// Those of this file.
    pub fn of(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), only: None, every: Duration::from_secs(10), connect: connect() }
    }

    /// Only the contexts with these names.
    pub fn only(mut self, contexts: impl IntoIterator<Item: Into<String>>) -> Self {
        self.only = Some(contexts.into_iter().map(Into::into).collect());
        self
    }

    /// How often the file is read, at least every second.
    pub fn read_every(mut self, period: Duration) -> Self {
        self.every = period.max(Duration::from_secs(1));
        self
    }

    /// Makes the client of each cluster in a way of one's own. By default it is kube's, with the retries left to the informers.
    pub fn connect_with(
        mut self,
        connect: impl Fn(Config) -> Result<Client, String> + Send + Sync + 'static,
    ) -> Self {
        self.connect = Arc::new(connect);
        self
    }

    async fn read(&self) -> Result<BTreeMap<String, Described>, String> {
        let path = self.path.clone();
        let reading = tokio::task::spawn_blocking(move || Kubeconfig::read_from(path)).await;
        let kubeconfig = reading.map_err(|error| error.to_string())?.map_err(|error| match error {
            // It may quote the file, with what is secret in it.
            KubeconfigError::Parse(_) => "it is no kubeconfig".to_owned(),
            error => error.to_string(),
        })?;
        let names = kubeconfig.contexts.iter().map(|context| context.name.clone());
        let meant = |name: &String| self.only.as_ref().is_none_or(|only| only.contains(name));
        let described = names.filter(meant).map(|name| {
            let kubeconfig = of_context(&kubeconfig, &name);
            // What kube writes of a kubeconfig is all that it reads of one.
            let fingerprint = fingerprint(serde_json::to_string(&kubeconfig).unwrap_or_default());
            (name.clone(), Described { kubeconfig, context: Some(name), fingerprint })
        });
        Ok(described.collect())
    }
}

/// What a kubeconfig says of one context.
fn of_context(all: &Kubeconfig, name: &str) -> Kubeconfig {
    let mut one = all.clone();
    one.current_context = None;
    one.contexts.retain(|context| context.name == name);
    let context = one.contexts.first().and_then(|context| context.context.clone());
    one.clusters.retain(|cluster| context.as_ref().is_some_and(|it| it.cluster == cluster.name));
    one.auth_infos.retain(|user| context.as_ref().is_some_and(|it| it.user.as_deref() == Some(&*user.name)));
    one
}

impl ClusterProvider for KubeconfigContexts {
    async fn run(self, clusters: Clusters, stop: CancellationToken) -> Result<(), ProviderError> {
        let file = self.path.display().to_string();
        let mut brought = Brought::new(clusters, Arc::clone(&self.connect));
        let first = self.read().await.map_err(|error| ProviderError::new(format!("{file}: {error}")))?;
        brought.set(first).await;
        let mut trouble = None;
        while stop.run_until_cancelled(tokio::time::sleep(self.every)).await.is_some() {
            match self.read().await {
                Ok(described) => {
                    trouble = None;
                    brought.set(described).await;
                }
                Err(error) => {
                    if trouble.as_ref() != Some(&error) {
                        tracing::error!(
                            file,
                            error,
                            "the kubeconfig cannot be read; its clusters stay as they are"
                        );
                    }
                    trouble = Some(error);
                }
            }
        }
        Ok(())
    }
}
