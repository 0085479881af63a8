//! Which cluster is meant: the one of a kubeconfig, the one around this pod, or a made-up one.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use informer::source::{SourceError, WireOptions};
use informer_apiserver::{ApiServer, DemoCluster};
use jiff::Timestamp;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use crate::{demo::keep_in_motion, failure::Failure};

/// The demo cluster is always the same.
const DEMO_SEED: u64 = 1;

/// Which cluster a user means.
#[derive(Args)]
pub(crate) struct ClusterOptions {
    /// The kubeconfig file; by default those in $KUBECONFIG, then ~/.kube/config, then the pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig, if not the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// A cluster that can be asked.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// In which forms it is asked for objects.
    pub(crate) wire: WireOptions,
    /// What it is called in messages.
    pub(crate) name: String,
    /// The namespace to watch if none is named; `None` is all.
    pub(crate) namespace: Option<String>,
}

impl Cluster {
    /// The cluster that a kubeconfig names, or the one in whose pod this runs.
    pub(crate) async fn connect(options: &ClusterOptions) -> Result<Self> {
        Self::configured(options).await?.ok_or_else(|| {
            anyhow!("no cluster found: looked for {}; to try it without a cluster, add --demo", places())
        })
    }

    /// The same; none if nothing names a cluster.
    pub(crate) async fn configured(options: &ClusterOptions) -> Result<Option<Self>> {
        let (kubeconfig, context) = (options.kubeconfig.as_deref(), options.context.as_deref());
        let mut config = match read_kubeconfig(kubeconfig)? {
            Some((kubeconfig, files)) => from_kubeconfig(kubeconfig, &files, context).await?,
            None if env::var_os("KUBERNETES_SERVICE_HOST").is_some() && context.is_none() => {
                Config::incluster().context("cannot use the service account of this pod")?
            }
            None if context.is_some() => {
                bail!("there is no kubeconfig for --context: looked for {}", places())
            }
            None => return Ok(None),
        };
        // Repeating requests is the informer's business.
        config.default_retry = false;
        let (name, namespace) = (config.cluster_url.to_string(), config.default_namespace.clone());
        // Compressing does not pay where there is no network in between.
        let is_local = matches!(config.cluster_url.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let wire = if is_local { WireOptions::default().uncompressed() } else { WireOptions::default() };
        let client = Client::try_from(config).map_err(|error| {
            anyhow!("cannot connect to {name}: {}", Failure::from(&SourceError::from(error)))
        })?;
        Ok(Some(Self { client, wire, name, namespace: Some(namespace) }))
    }

    /// A made-up cluster inside this process, in motion as long as the runtime lives.
    pub(crate) fn demo(pods: usize, changes_per_second: f64) -> Result<Self> {
        let server = ApiServer::builder().seed(DEMO_SEED).build();
        let cluster = DemoCluster::new(DEMO_SEED, pods).at(Timestamp::now());
        server.load_demo(&cluster).context("the generator made an object that the server refuses")?;
        server.compact();
        let client = server.client();
        tokio::spawn(keep_in_motion(server, Some(cluster.churn()), changes_per_second));
        // It holds JSON.
        let wire = WireOptions::default().json().uncompressed();
        Ok(Self { client, wire, name: "a demo cluster in this process".to_owned(), namespace: None })
    }
}

/// Where a cluster is looked for.
pub(crate) fn places() -> String {
    let file =
        default_kubeconfig().map_or_else(|| "~/.kube/config".to_owned(), |path| path.display().to_string());
    format!("--kubeconfig, for files in $KUBECONFIG, for {file} and for the service account of a pod")
}

fn default_kubeconfig() -> Option<PathBuf> {
    Some(env::home_dir()?.join(".kube").join("config"))
}

/// The kubeconfig and the files that it was read from; `None` if there is none.
fn read_kubeconfig(named: Option<&Path>) -> Result<Option<(Kubeconfig, String)>> {
    if let Some(path) = named {
        return Ok(Some((read_file(path)?, path.display().to_string())));
    }
    let listed = env::var_os("KUBECONFIG").unwrap_or_default();
    let mut paths: Vec<PathBuf> =
        env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect();
    if paths.is_empty() {
        paths.extend(default_kubeconfig());
    }
    // As for kubectl, a file that does not exist is not missed.
    paths.retain(|path| path.exists());
    let mut merged: Option<Kubeconfig> = None;
    for path in &paths {
        let next = read_file(path)?;
        merged = Some(match merged {
            None => next,
            Some(before) => {
                before.merge(next).with_context(|| format!("cannot use the kubeconfig {}", path.display()))?
            }
        });
    }
    let files: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    Ok(merged.map(|kubeconfig| (kubeconfig, files.join(", "))))
}

fn read_file(path: &Path) -> Result<Kubeconfig> {
    Kubeconfig::read_from(path).map_err(|error| match error {
        KubeconfigError::ReadConfig(error, _) => {
            anyhow!("cannot read the kubeconfig {}: {error}", path.display())
        }
        KubeconfigError::Parse(error) => {
            let reason = error.to_string();
            let reason = crate::text::one_line(&reason, 300);
            anyhow!("the kubeconfig {} is not one: {reason}", path.display())
        }
        other => anyhow!("cannot use the kubeconfig {}: {other}", path.display()),
    })
}

async fn from_kubeconfig(kubeconfig: Kubeconfig, files: &str, context: Option<&str>) -> Result<Config> {
    let contexts: Vec<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| {
        let choices = match contexts.as_slice() {
            [] => "it has none".to_owned(),
            contexts => format!("it has {}", contexts.join(", ")),
        };
        match error {
            KubeconfigError::LoadContext(name) if !contexts.contains(&name) => {
                anyhow!("the kubeconfig {files} has no context {name:?}: {choices}")
            }
            KubeconfigError::CurrentContextNotSet => {
                anyhow!(
                    "the kubeconfig {files} names no current context; choose one with --context: {choices}"
                )
            }
            KubeconfigError::LoadClusterOfContext(name) => {
                anyhow!("the kubeconfig {files} has no cluster {name:?}, which its context names")
            }
            other => anyhow!("cannot use the kubeconfig {files}: {other}"),
        }
    })
}
