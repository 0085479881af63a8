//! Secrets with a kubeconfig as clusters.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt, StreamExt};
use informer_model::Selector;
use k8s_openapi::api::core::v1::Secret;
use kube::{Client, Config, config::Kubeconfig};
use tokio_util::sync::CancellationToken;

use super::{
    Clusters,
    provider::{Brought, ClusterProvider, Connect, Described, ProviderError, connect, fingerprint},
};
use crate::{KubeListWatch, Object, SharedInformer};

/// The Secrets of one namespace that have a kubeconfig in them, each a cluster of the Secret's name: its current context.
///
/// They are followed: a Secret that comes, goes or changes is a cluster that does. One without a kubeconfig that can be read is
/// named in the log, and what it was before stays. So is one whose kubeconfig names a program to run (`exec`) or files: whoever
/// may write a Secret may not run programs here.
///
/// ```no_run
/// use informer::{CancellationToken, clusters::{Clusters, KubeconfigSecrets}};
///
/// # async fn follow(clusters: Clusters, client: kube::Client, stop: CancellationToken) -> Result<(), Box<dyn std::error::Error>> {
/// let provider = KubeconfigSecrets::of(client, "fleet").labels(&"fleet.example.com/cluster".parse()?);
/// clusters.follow(provider, stop).await?;
/// # Ok(()) }
/// ```
#[must_use]
pub struct KubeconfigSecrets {
    client: Client,
    namespace: String,
    labels: Selector,
    field: String,
    connect: Connect,
}

impl KubeconfigSecrets {
    /// Those of this namespace that have the label `sigs.k8s.io/multicluster-runtime-kubeconfig=true`, with the kubeconfig
    /// under `kubeconfig`.
    pub fn of(client: Client, namespace: impl Into<String>) -> Self {
        let labels = "sigs.k8s.io/multicluster-runtime-kubeconfig=true".parse().expect("a selector");
        let (namespace, field) = (namespace.into(), "kubeconfig".to_owned());
        Self { client, namespace, labels, field, connect: connect() }
    }

    /// Those with these labels instead.
    pub fn labels(mut self, selector: &Selector) -> Self {
        self.labels = selector.clone();
        self
    }

    /// The kubeconfig lies there in the data of the Secret.
    pub fn field(mut self, name: impl Into<String>) -> Self {
        self.field = name.into();
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

    fn read(&self, secret: &Secret) -> Result<Described, String> {
        let data = secret.data.as_ref().and_then(|data| data.get(&self.field));
        let data = data.ok_or_else(|| format!("it has no data under {:?}", self.field))?;
        let text = str::from_utf8(&data.0).map_err(|error| error.to_string())?;
        // kube's own words may have the text in them, with what is secret in it.
        let unreadable = |_| format!("what is under {:?} is no kubeconfig", self.field);
        let kubeconfig = Kubeconfig::from_yaml(text).map_err(unreadable)?;
        if reaches_out(&kubeconfig) {
            return Err(
                "its kubeconfig names a program to run or files of this machine, as one in a Secret may not"
                    .into(),
            );
        }
        Ok(Described { kubeconfig, context: None, fingerprint: fingerprint(text) })
    }

    /// What all Secrets say now. Of one that cannot be read, what it said before.
    fn describe(
        &self,
        secrets: &[Object<Secret>],
        before: &mut BTreeMap<String, Described>,
        troubles: &mut HashMap<String, String>,
    ) {
        let name = |secret: &Object<Secret>| secret.key().name().to_owned();
        before.retain(|known, _| secrets.iter().any(|secret| secret.key().name() == known));
        troubles.retain(|known, _| secrets.iter().any(|secret| secret.key().name() == known));
        for secret in secrets {
            match self.read(secret) {
                Ok(described) => {
                    troubles.remove(&name(secret));
                    before.insert(name(secret), described);
                }
                Err(error) => {
                    if troubles.insert(name(secret), error.clone()).as_ref() != Some(&error) {
                        tracing::error!(secret = %secret.key(), error, "no cluster can be read from a Secret");
                    }
                }
            }
        }
    }
}

/// Whether a kubeconfig has programs run, or files read, where it is used.
fn reaches_out(kubeconfig: &Kubeconfig) -> bool {
    let users = kubeconfig.auth_infos.iter().filter_map(|user| user.auth_info.as_ref());
    let clusters = kubeconfig.clusters.iter().filter_map(|cluster| cluster.cluster.as_ref());
    users.into_iter().any(|user| {
        let files = [&user.token_file, &user.client_certificate, &user.client_key];
        user.exec.is_some() || user.auth_provider.is_some() || files.into_iter().any(Option::is_some)
    }) || clusters.into_iter().any(|cluster| cluster.certificate_authority.is_some())
}

impl ClusterProvider for KubeconfigSecrets {
    async fn run(self, clusters: Clusters, stop: CancellationToken) -> Result<(), ProviderError> {
        let source = KubeListWatch::<Secret>::all(self.client.clone())
            .in_namespace(&self.namespace)
            .label_selector(&self.labels);
        let secrets = SharedInformer::builder(source).build().map_err(ProviderError::new)?;
        let mut brought = Brought::new(clusters, Arc::clone(&self.connect));
        let following = async {
            let Ok(mut news) = secrets.subscribe() else { return };
            // Before the first list nothing is known to be gone.
            if secrets.wait_until_synced(Duration::MAX).await.is_err() {
                return;
            }
            let (mut described, mut troubles) = (BTreeMap::new(), HashMap::new());
            loop {
                self.describe(&secrets.store().list(&Selector::everything()), &mut described, &mut troubles);
                brought.set(described.clone()).await;
                if news.next().await.is_none() {
                    return;
                }
                // What has come together is looked at once.
                while news.next().now_or_never().flatten().is_some() {}
            }
        };
        let (_, ended) = tokio::join!(following, secrets.run(stop));
        ended.map_err(ProviderError::new)
    }
}
