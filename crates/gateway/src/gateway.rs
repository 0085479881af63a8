//! The gateway as a whole: how it is built, what it serves on, how it ends.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::Router;
use futures_util::future::join_all;
use informer::{
    SharedInformerFactory,
    discovery::Discovery,
    factory::{FactoryBuilder, FactoryError},
    queue::Transform,
    source::WireOptions,
};
use informer_model::ResourceArg;
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::{net::TcpListener, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    access::{Access, Reviewer, UnknownTokens},
    allowance::Allowances,
    app::{ANSWERS, App, STREAMS, UNKNOWN_KIND_EVERY, UNKNOWN_KINDS},
    cache::{Cache, CacheLimits, Packing, Secrets, Stored},
    guard::{AllowedHost, Guard},
    listener::{self, ConnectionLimits, Limits},
    metrics::{Objects, Present, RequestMetrics, Tally},
    pages::Pages,
    process::ProcessMetrics,
    routes,
    share::{self, Shares},
    tls::Tls,
    work::Work,
};

/// How long to wait before what could not be loaded is tried again.
const PRELOAD_AGAIN: Duration = Duration::from_secs(10);
/// How often what nobody will read any more is looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// Which callers are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Auth {
    /// Every caller that can connect sees everything. For the loopback interface.
    #[default]
    None,
    /// Callers show a token of the cluster, and see what the cluster lets that user see.
    Kubernetes,
}

/// A cluster from memory, over HTTP.
///
/// ```
/// use informer_gateway::Gateway;
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = informer_apiserver::ApiServer::builder().build().client();
/// let gateway = Gateway::builder(client).build()?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// println!("http://{}", listener.local_addr()?);
/// # gateway.stop();
/// gateway.serve(listener).await?; // until somebody calls `gateway.stop()`
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Gateway {
    pub(crate) app: Arc<App>,
    options: Arc<Options>,
}

struct Options {
    auth: Auth,
    tls: Option<Tls>,
    hosts: Vec<AllowedHost>,
    connections: Limits,
    connection_limits: Arc<ConnectionLimits>,
}

/// Builds a [`Gateway`].
#[must_use]
pub struct GatewayBuilder {
    client: Client,
    wire: WireOptions,
    namespaces: Vec<String>,
    secrets: bool,
    auth: Auth,
    limits: CacheLimits,
    packing: Packing,
    streams: share::Limits,
    hosts: Vec<AllowedHost>,
    tls: Option<Tls>,
    connections: Limits,
    unknown_tokens: UnknownTokens,
}

/// Why a gateway cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// It would be open to others than this machine without protection.
    #[error("{0}")]
    Exposed(String),
    /// The socket failed.
    #[error("the address to listen on is not known: {0}")]
    Socket(#[from] io::Error),
}

impl GatewayBuilder {
    /// Only objects of these namespaces, and those that are in none.
    pub fn namespaces(mut self, names: impl IntoIterator<Item: Into<String>>) -> Self {
        self.namespaces = names.into_iter().map(Into::into).collect();
        self
    }

    /// Serves Secrets, too: that they are there, and with [`Auth::Kubernetes`] what is in them.
    pub fn include_secrets(mut self, include: bool) -> Self {
        self.secrets = include;
        self
    }

    /// Which callers are let in.
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// What nobody has asked for in this time is no longer kept. Zero keeps everything.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.limits.idle = Some(timeout).filter(|timeout| !timeout.is_zero());
        self
    }

    /// With so many bytes in memory nothing new is begun.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.limits.memory = Some(bytes);
        self
    }

    /// Whether objects are kept packed, which they are by default where it pays. Secrets are not: a dictionary would keep parts
    /// of them.
    pub fn packing(mut self, packing: Packing) -> Self {
        self.packing = packing;
        self
    }

    /// Changes that are kept for each resource, for clients that resume a stream.
    pub fn changes_kept(mut self, changes: usize) -> Self {
        self.limits.depth.changes = changes;
        self
    }

    /// Streams and watches that may be open: in all, and of one client.
    pub fn max_streams(mut self, in_all: usize, by_client: usize) -> Self {
        self.streams = share::Limits { of_one: by_client, in_all };
        self
    }

    /// Connections that may be open: in all, and of one address.
    pub fn max_connections(mut self, in_all: usize, by_address: usize) -> Self {
        self.connections = Limits { connections: in_all, by_address, ..self.connections };
        self
    }

    /// Tokens that the cluster does not know, of one address: so many at once, and so many more each second. Many users
    /// behind one address, like a proxy's, have one share. A token that is good does not count.
    pub fn max_unknown_tokens(mut self, at_once: u32, each_second: u32) -> Self {
        self.unknown_tokens = UnknownTokens { at_once, each_second };
        self
    }

    /// A name under which the gateway may be asked, beside its address and `localhost`.
    pub fn allow_host(mut self, host: AllowedHost) -> Self {
        self.hosts.push(host);
        self
    }

    /// In which forms the cluster is asked for its objects, instead of protobuf and gzip.
    pub fn wire(mut self, options: WireOptions) -> Self {
        self.wire = options;
        self
    }

    /// Serves HTTPS.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// The gateway. Nothing is asked of the cluster yet.
    pub fn build(self) -> Result<Gateway, FactoryError> {
        let stop = CancellationToken::new();
        let mut registry = Registry::default();
        let tally = Arc::new(Tally::new(&mut registry));
        let discovery = Discovery::new(self.client.clone());
        let secrets = match (self.secrets, self.auth) {
            (false, _) => Secrets::Hidden,
            (true, Auth::None) => Secrets::Metadata,
            (true, Auth::Kubernetes) => Secrets::Whole,
        };
        let factory = |transform: Option<Transform<Stored>>| {
            let builder: FactoryBuilder = SharedInformerFactory::builder(self.client.clone());
            let builder = builder.discovery(discovery.clone()).wire(self.wire);
            let mut builder = builder.metrics(Arc::clone(&tally) as _);
            if let Some(transform) = transform {
                builder = builder.transform(transform);
            }
            match self.namespaces.is_empty() {
                true => builder.build(),
                false => builder.namespaces(&self.namespaces).build(),
            }
        };
        let packing = self.packing.transform();
        let (factory, secrets_factory) = (factory(packing.clone())?, factory(Some(secrets.transform()))?);
        let access = match self.auth {
            Auth::None => Access::Open,
            Auth::Kubernetes => {
                Access::Kubernetes(Arc::new(Reviewer::new(self.client.clone(), self.unknown_tokens)))
            }
        };
        let (streams, connection_limits) =
            (Shares::new(self.streams), ConnectionLimits::new(&self.connections));
        let present = Present { streams: Arc::clone(&streams), connections: Arc::clone(&connection_limits) };
        registry.register_collector(Box::new(present));
        registry.register_collector(Box::new(ProcessMetrics));
        let work = Work::default();
        let whole = self.namespaces.is_empty();
        let cache = Cache::new(discovery, factory, packing, secrets, secrets_factory, self.limits, whole);
        let cache = Arc::new(cache);
        registry.register_collector(Box::new(Objects(Arc::clone(&cache))));
        let app = App {
            cache,
            access,
            pages: Pages::new(work.clone()),
            work,
            namespaces: self.namespaces,
            streams,
            answers: Shares::new(ANSWERS),
            unknown_kinds: Allowances::new(UNKNOWN_KINDS, UNKNOWN_KIND_EVERY),
            metrics: RequestMetrics::new(&mut registry),
            registry,
            tally,
            preloaded: AtomicBool::new(true),
            stop,
        };
        let Self { auth, tls, hosts, connections, .. } = self;
        let options = Options { auth, tls, hosts, connections, connection_limits };
        Ok(Gateway { app: Arc::new(app), options: Arc::new(options) })
    }
}

impl Gateway {
    /// A gateway to the cluster of this client.
    pub fn builder(client: Client) -> GatewayBuilder {
        GatewayBuilder {
            client,
            wire: WireOptions::default(),
            namespaces: Vec::new(),
            secrets: false,
            auth: Auth::None,
            limits: CacheLimits::default(),
            packing: Packing::default(),
            streams: STREAMS,
            hosts: Vec::new(),
            tls: None,
            connections: Limits::default(),
            unknown_tokens: UnknownTokens::default(),
        }
    }

    /// Takes these into memory, where they stay. Not ready until all of them are there: what fails is reported and
    /// tried again. `report` hears of each how many objects it has, or why not.
    pub async fn preload(
        &self,
        resources: &[ResourceArg],
        report: impl Fn(&ResourceArg, Result<usize, String>),
    ) {
        self.app.preloaded.store(false, Ordering::Release);
        let load = async |resource: &ResourceArg| {
            loop {
                match self.app.cache.preload(resource).await {
                    Ok(collection) => return report(resource, Ok(collection.store.len())),
                    Err(status) => report(resource, Err(status.message)),
                }
                sleep(PRELOAD_AGAIN).await;
            }
        };
        tokio::select! {
            _ = join_all(resources.iter().map(load)) => self.app.preloaded.store(true, Ordering::Release),
            () = self.app.stopping() => {}
        }
    }

    /// Whether this address may be served on: one that other machines can reach needs TLS and [`Auth::Kubernetes`].
    pub fn check_address(&self, address: SocketAddr) -> Result<(), ServeError> {
        let (tls, auth) = (self.options.tls.is_some(), self.options.auth == Auth::Kubernetes);
        listener::check_exposure(address, tls, auth).map_err(|error| ServeError::Exposed(error.to_string()))
    }

    /// What answers, for a server of your own that listens on `address`; [`serve`](Self::serve) is one. It takes a whole
    /// host, from `/` on. What it does not do: limit connections, and let go of what nobody asks for any more.
    ///
    /// ```
    /// # use informer_gateway::Gateway;
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = informer_apiserver::ApiServer::builder().build().client();
    /// let gateway = Gateway::builder(client).build()?;
    /// let own = axum::Router::new().route("/own", axum::routing::get(async || "hello"));
    /// let router = own.merge(gateway.router("127.0.0.1:8888".parse()?)?);
    /// # drop(router);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As of [`check_address`](Self::check_address).
    pub fn router(&self, address: SocketAddr) -> Result<Router, ServeError> {
        self.check_address(address)?;
        let Options { tls, hosts, .. } = &*self.options;
        Ok(routes::router(&self.app, Arc::new(Guard::new(address, hosts.clone(), tls.is_some()))))
    }

    /// Serves until [`stop`](Self::stop) is called: then nothing new is taken in, streams are told, and what is being
    /// sent gets some seconds to end.
    pub async fn serve(&self, listener: TcpListener) -> Result<(), ServeError> {
        let router = self.router(listener.local_addr()?)?;
        let Options { tls, connections, connection_limits, .. } = &*self.options;
        let (connection_limits, stop) = (Arc::clone(connection_limits), self.app.stop.clone());
        let serving =
            listener::serve(listener, tls.clone(), router, connections.clone(), connection_limits, stop);
        tokio::select! {
            () = serving => {}
            () = self.housekeeping() => {}
        }
        self.app.cache.shutdown().await;
        Ok(())
    }

    /// Lets go of what nobody uses, for ever.
    async fn housekeeping(&self) {
        let sweep = async {
            loop {
                sleep(SWEEP).await;
                self.app.pages.sweep();
            }
        };
        tokio::join!(self.app.cache.end_idle(), sweep);
    }

    /// Waits until [`stop`](Self::stop) is called.
    pub async fn stopped(&self) {
        self.app.stopping().await;
    }

    /// Ends [`serve`](Self::serve), in this clone and in all others.
    pub fn stop(&self) {
        self.app.stop.cancel();
    }
}
