//! `informer serve`: the cluster from memory, over HTTP, with a page.

use std::{
    io::ErrorKind,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use informer::discovery::Discovery;
use informer_gateway::{AllowedHost, Auth, Gateway, Packing, Tls, TlsError};
use informer_model::ResourceArg;
use tokio::{net::TcpListener, time::timeout};

use crate::{
    cluster::{Cluster, ClusterOptions, places},
    failure::Failure,
    flags, logging,
    signal::interrupt,
    text::thousands,
};

/// The demo cluster has so many pods,
const DEMO_PODS: usize = 500;
/// and so many changes per second.
const DEMO_CHURN: f64 = 5.0;
/// How long the cluster has to answer at first.
const REACH_WITHIN: Duration = Duration::from_secs(15);

/// Serve the cluster from memory: queries, live streams and a page, for everybody who would ask the API server
#[derive(Args)]
#[command(
    long_about = "Serve the cluster from memory: queries, live streams and a page, for everybody who would ask the API server.

It lists and watches each resource once, when it is first asked for, and answers from there. It never writes to the cluster. Without a configured cluster it makes one up and says so.",
    after_help = "Examples:
  informer serve                                    then open http://127.0.0.1:8888
  informer serve --preload pods,deployments.apps -n shop -n web
  kubectl --server http://127.0.0.1:8888 get pods -A -o wide
  curl 'http://127.0.0.1:8888/core/v1/pods?labelSelector=app%3Dweb&sort=-status.startTime&limit=10'
  curl -N 'http://127.0.0.1:8888/_stream/core/v1/pods?fields=metadata.name,status.phase'
  informer serve --listen 0.0.0.0:8443 --auth kubernetes --tls-self-signed --allow-host informer.example.com

An address that other machines can reach needs TLS and --auth kubernetes: callers then show a token
of the cluster and see what the cluster lets them see.

Exit code: 0 if ended by Ctrl-C or SIGTERM; 1 if it cannot serve; 2 if the arguments make no sense."
)]
pub(crate) struct Options {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8888")]
    listen: SocketAddr,

    /// Serve a made-up cluster inside this process: 500 pods, 5 changes a second
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    demo: bool,

    /// How many pods the made-up cluster has
    #[arg(long, value_name = "N", requires = "demo", default_value_t = DEMO_PODS, hide_default_value = true)]
    demo_pods: usize,

    /// Take these resources into memory at once and keep them: pods,deployments.apps
    #[arg(long, value_name = "RESOURCES", value_delimiter = ',', value_parser = flags::resource)]
    preload: Vec<ResourceArg>,

    #[command(flatten)]
    cluster: ClusterOptions,

    /// Only this namespace, and objects that are in none; may be given several times
    #[arg(short, long, value_name = "NAME", value_parser = flags::namespace, conflicts_with = "all_namespaces")]
    namespace: Vec<String>,

    /// All namespaces, which is the default
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Forget a resource that nobody has asked for in this time; 0 is never
    #[arg(long, value_name = "TIME", value_parser = flags::timeout, default_value = "30m")]
    idle_timeout: Duration,

    /// Begin with no further resource when the process has this much in memory: 512Mi, 2Gi
    #[arg(long, value_name = "SIZE", value_parser = flags::size)]
    memory_limit: Option<u64>,

    /// Keep objects packed in memory: those of large resources, which take a sixth then; all; or none
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = PackChoice::Auto)]
    pack: PackChoice,

    /// Serve Secrets, too: their metadata, and with --auth kubernetes all of them to callers who can read them
    #[arg(long)]
    include_secrets: bool,

    /// Which callers are let in: all that can connect, or those with a token of the cluster
    #[arg(long, value_enum, default_value_t = AuthChoice::None)]
    auth: AuthChoice,

    /// The certificate chain in PEM, for HTTPS; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls_self_signed")]
    tls_cert: Option<PathBuf>,

    /// Its private key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// HTTPS with a certificate made now, for this run only; its fingerprint is printed
    #[arg(long)]
    tls_self_signed: bool,

    /// A name under which browsers and programs may ask, beside localhost and the address: informer.example.com
    #[arg(long, value_name = "HOST[:PORT]")]
    allow_host: Vec<AllowedHost>,

    /// Log what is done; twice for more
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AuthChoice {
    None,
    Kubernetes,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PackChoice {
    Auto,
    Always,
    Never,
}

/// Serves until Ctrl-C or SIGTERM.
pub(crate) async fn run(options: Options) -> Result<()> {
    logging::begin(options.verbose, logging::WARNINGS);
    let cluster = cluster(&options).await?;
    let tls = tls(&options)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let gateway = gateway(&options, &cluster, tls)?;
    gateway.check_address(options.listen)?;
    let listener = bind(options.listen).await?;
    reach(&cluster).await?;
    let interrupted = interrupt();
    println!("{scheme}://{}", shown(listener.local_addr()?));
    eprintln!("serving {} from memory; Ctrl-C ends", cluster.name);
    let stopping = async {
        interrupted.await;
        eprintln!("\nstopping");
        gateway.stop();
    };
    let preloading = gateway.preload(&options.preload, |resource, loaded| match loaded {
        Ok(objects) => eprintln!("{resource}: {} objects in memory", thousands(objects)),
        Err(reason) => eprintln!("{resource}: {reason}; trying again"),
    });
    let (served, (), ()) = tokio::join!(gateway.serve(listener), preloading, async {
        tokio::select! {
            () = stopping => {}
            () = gateway.stopped() => {}
        }
    });
    Ok(served?)
}

/// The cluster that was named, or a made-up one where none is.
async fn cluster(options: &Options) -> Result<Cluster> {
    if options.demo {
        return Cluster::demo(options.demo_pods, DEMO_CHURN);
    }
    if let Some(cluster) = Cluster::configured(&options.cluster).await? {
        return Ok(cluster);
    }
    if matches!(options.auth, AuthChoice::Kubernetes) {
        bail!("--auth kubernetes needs a cluster to ask, and none is configured: looked for {}", places());
    }
    eprintln!(
        "no cluster is configured, so here is a made-up one: {DEMO_PODS} pods, {DEMO_CHURN} changes a second"
    );
    Cluster::demo(DEMO_PODS, DEMO_CHURN)
}

/// A cluster that is configured and does not answer is an error now, rather than of every request.
async fn reach(cluster: &Cluster) -> Result<()> {
    let discovery = Discovery::new(cluster.client.clone());
    let failure = match timeout(REACH_WITHIN, discovery.catalog()).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => Failure::from(&error),
        Err(_) => Failure::unanswered(REACH_WITHIN),
    };
    Err(anyhow!("cannot serve {}: {failure}", cluster.name))
}

fn tls(options: &Options) -> Result<Option<Tls>> {
    if let (Some(cert), Some(key)) = (&options.tls_cert, &options.tls_key) {
        return Ok(Some(Tls::from_files(cert, key).map_err(told_whole)?));
    }
    if !options.tls_self_signed {
        return Ok(None);
    }
    let hosts = options.allow_host.iter().map(AllowedHost::name);
    let own = ["localhost".to_owned(), options.listen.ip().to_string()];
    let names: Vec<String> = own.into_iter().chain(hosts).collect();
    let tls = Tls::self_signed(&names).map_err(told_whole)?;
    eprintln!("the certificate is made for this run; its SHA-256 fingerprint is {}", tls.fingerprint());
    Ok(Some(tls))
}

/// An error that tells its cause by itself.
fn told_whole(error: TlsError) -> anyhow::Error {
    anyhow!("{error}")
}

fn gateway(options: &Options, cluster: &Cluster, tls: Option<Tls>) -> Result<Gateway> {
    let auth = match options.auth {
        AuthChoice::None => Auth::None,
        AuthChoice::Kubernetes => Auth::Kubernetes,
    };
    let packing = match options.pack {
        PackChoice::Auto => Packing::Auto,
        PackChoice::Always => Packing::Always,
        PackChoice::Never => Packing::Never,
    };
    let mut builder = Gateway::builder(cluster.client.clone())
        .packing(packing)
        .wire(cluster.wire)
        .namespaces(&options.namespace)
        .include_secrets(options.include_secrets)
        .auth(auth)
        .idle_timeout(options.idle_timeout);
    if let Some(limit) = options.memory_limit {
        builder = builder.memory_limit(limit);
    }
    if let Some(tls) = tls {
        builder = builder.tls(tls);
    }
    for host in &options.allow_host {
        builder = builder.allow_host(host.clone());
    }
    Ok(builder.build()?)
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            anyhow!("{address} is in use; choose another address with --listen, or port 0 for a free one")
        }
        ErrorKind::PermissionDenied => {
            anyhow!("{address} may not be listened on: ports below 1024 need privileges; choose another with --listen")
        }
        _ => anyhow!("cannot listen on {address}: {error}"),
    })
}

/// The address as somebody on this machine types it.
fn shown(address: SocketAddr) -> SocketAddr {
    let local = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(local, address.port())
}
