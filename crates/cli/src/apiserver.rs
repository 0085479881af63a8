//! `informer apiserver`: an API server for kubectl and tests, on the loopback interface.

use std::{
    io::{IsTerminal, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use informer_apiserver::{ApiServer, Churn, DemoCluster, ListenError};
use jiff::Timestamp;

use crate::{demo::keep_in_motion, signal::interrupt};

/// A Kubernetes API server in one process: no etcd, no nodes, no passwords. What it holds is gone when it ends.
///
/// It serves list, watch, get, create, update, patch and delete for every built-in kind and for custom resources,
/// with the semantics of a real server, to unmodified kubectl, kube-rs and client-go.
#[derive(Args)]
#[command(after_help = "Examples:
  informer apiserver --write-kubeconfig demo.kubeconfig --pods 1000 --churn 20
  kubectl --kubeconfig demo.kubeconfig get pods -A --watch

  informer apiserver --load crds.yaml --load objects.yaml")]
pub(crate) struct Options {
    /// Where to listen; port 0 takes a free one. Loopback addresses only: there are no passwords
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,

    /// Write a kubeconfig for this server to a file; one that was there is overwritten
    #[arg(long, value_name = "FILE")]
    write_kubeconfig: Option<PathBuf>,

    /// Load objects from a YAML or JSON file, status included; may be given several times
    #[arg(long, value_name = "FILE", num_args = 1..)]
    load: Vec<PathBuf>,

    /// Generate a believable cluster with so many pods
    #[arg(long, value_name = "N")]
    pods: Option<usize>,

    /// Keep the generated cluster in motion: so many changes per second (rollouts, restarts, scaling, events)
    #[arg(long, value_name = "R", requires = "pods", value_parser = rate)]
    churn: Option<f64>,

    /// The seed of everything that is random: the same seed gives the same cluster
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// How many changes of each resource are kept; a watch that falls further behind has to start over
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    history: u32,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.0..=100_000.0).contains(&rate) => Ok(rate),
        _ => Err("expected a number of changes per second between 0 and 100000".into()),
    }
}

/// Runs the server until Ctrl-C or SIGTERM.
pub(crate) async fn run(options: Options) -> Result<()> {
    let server = ApiServer::builder().seed(options.seed).history(options.history as usize).build();
    // Listening comes first: a port in use should not be found out after a minute of loading. Whoever asks meanwhile
    // whether it is ready is told that it is not.
    server.set_ready(false);
    let listener = server.listen(options.listen).await.map_err(|error| match error {
        ListenError::Bind { .. } => {
            anyhow!("{error}; choose another address with --listen, or port 0 for a free one")
        }
        other => other.into(),
    })?;
    let interrupted = interrupt();
    tokio::pin!(interrupted);
    let loading = load(&server, &options);
    let churn = tokio::select! {
        churn = loading => churn?,
        () = &mut interrupted => {
            eprintln!("\nstopped while loading");
            return Ok(());
        }
    };
    if let Some(path) = &options.write_kubeconfig {
        write_kubeconfig(path, &listener.kubeconfig())?;
    }
    server.set_ready(true);
    let size = server.size();
    eprintln!("{} objects, {} MB", size.objects, size.bytes / 1_000_000);
    eprintln!("Kubernetes API server at {}, without passwords and for this machine only", listener.url());
    match &options.write_kubeconfig {
        Some(path) => println!("kubectl --kubeconfig {} get pods -A", path.display()),
        None => println!("kubectl --server {} get pods -A", listener.url()),
    }
    let moving = keep_in_motion(server.clone(), churn, options.churn.unwrap_or(0.0));
    tokio::select! {
        () = moving => {}
        () = &mut interrupted => eprintln!("\nstopping"),
    }
    server.shutdown();
    // Clients that do not read their last answer must not keep the server alive.
    if tokio::time::timeout(Duration::from_secs(5), listener.closed()).await.is_err() {
        eprintln!("some connections did not end in time and were cut off");
    }
    Ok(())
}

/// Fills the server with what was asked for.
async fn load(server: &ApiServer, options: &Options) -> Result<Option<Churn>> {
    let mut churn = None;
    if let Some(pods) = options.pods {
        let cluster = DemoCluster::new(options.seed, pods).at(Timestamp::now());
        generate(server, &cluster, pods).await?;
        churn = options.churn.is_some().then(|| cluster.churn());
    }
    for path in &options.load {
        let manifest =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let loaded = server.load(&manifest).with_context(|| format!("cannot load {}", path.display()))?;
        eprintln!("{}: {loaded} objects", path.display());
    }
    server.compact();
    Ok(churn)
}

/// Generates the demo cluster, telling how far it is.
async fn generate(server: &ApiServer, cluster: &DemoCluster, pods: usize) -> Result<()> {
    let started = Instant::now();
    let mut told = started;
    let mut generated = 0;
    for (count, object) in (1_usize..).zip(cluster.objects()) {
        generated += usize::from(object["kind"] == "Pod");
        server.put(object).context("the generator made an object that the server refuses")?;
        if count.is_multiple_of(256) {
            // Ctrl-C is heard here.
            tokio::task::yield_now().await;
            // Nobody sees how the cluster comes to be, and its history would take hundreds of megabytes.
            server.compact();
            if std::io::stderr().is_terminal() && told.elapsed() > Duration::from_millis(200) {
                told = Instant::now();
                eprint!("\rgenerating: {generated} of {pods} pods");
                std::io::stderr().flush().ok();
            }
        }
    }
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
    eprintln!(
        "generated {generated} pods and what belongs to them in {:.1} s",
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

fn write_kubeconfig(path: &Path, text: &str) -> Result<()> {
    if path.is_dir() {
        bail!("cannot write the kubeconfig to {}: it is a directory", path.display());
    }
    std::fs::write(path, text).with_context(|| format!("cannot write the kubeconfig to {}", path.display()))
}
