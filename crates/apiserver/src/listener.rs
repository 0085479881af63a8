//! A port on the loopback interface, for kubectl and other programs.

use std::{error::Error, io, net::SocketAddr, pin, time::Duration};

use http::{Request, Response, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use informer_model::Status;
use informer_serving::media::status_encoding;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tower_service::Service;

use crate::{
    ApiServer,
    respond::{self, Body},
    service::{Connection, Refused},
};

/// How long an answer may still take after [`ApiServer::shutdown`].
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a connection waits for the next request: longer than clients keep idle connections, which is a minute
/// and a half, so that none is closed while a request is on its way.
const IDLE: Duration = Duration::from_secs(150);

/// Why there is no port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Somebody wants more than loopback.
    #[error(
        "cannot listen on {0}: the server has no passwords and no encryption, so everybody who can reach it may do \
         everything; it listens on 127.0.0.1 or [::1] only"
    )]
    NotLoopback(SocketAddr),
    /// The port cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// A port that is being served. It is closed when this is dropped, or when the server shuts down.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl ApiServer {
    /// Serves a port of the loopback interface; port 0 takes a free one.
    pub async fn listen(&self, address: SocketAddr) -> Result<Listener, ListenError> {
        if !address.ip().is_loopback() {
            return Err(ListenError::NotLoopback(address));
        }
        let bind = |source| ListenError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let task = tokio::spawn(accept(self.clone(), listener));
        Ok(Listener { address, task })
    }
}

impl Listener {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig for this server.
    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: informer
  cluster:
    server: {}
users:
- name: informer
  user: {{}}
contexts:
- name: informer
  context:
    cluster: informer
    user: informer
    namespace: default
current-context: informer
",
            self.url()
        )
    }

    /// Waits until the port and all connections are closed, after [`ApiServer::shutdown`]. An answer that its
    /// client does not take is given up after some seconds.
    pub async fn closed(mut self) {
        // It ends by itself, or has panicked and is over, too.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(server: ApiServer, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = server.0.stopped() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(converse(server.clone(), stream))),
                Err(error) => {
                    // Out of files, most likely: others have to close theirs first.
                    tracing::warn!(%error, "cannot accept a connection, trying again in a second");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Answers the requests of one connection until it or the server ends.
async fn converse(server: ApiServer, stream: TcpStream) {
    // Without this an event waits for the client's acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let service = server.service();
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(stream), service_fn(move |request| answer(service.clone(), request)));
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = server.0.stopped() => {
            pin::Pin::new(&mut connection).graceful_shutdown();
            // A client that does not read, or an answer that a fault has stalled, must not keep the port.
            let Ok(ended) = tokio::time::timeout(PATIENCE, &mut connection).await else { return };
            ended
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        if source.is_some_and(|source| source.kind() == io::ErrorKind::ConnectionReset) {
            // The fault `Reset`. Without this the client would see an end and no reset.
            let _ = connection.into_parts().io.inner().set_zero_linger();
        }
    }
}

async fn answer(mut service: Connection, request: Request<Incoming>) -> Result<Response<Body>, Refused> {
    if let Some(host) = request.headers().get(header::HOST).filter(|host| !is_local(host.as_bytes())) {
        let message = format!(
            "the request names the host {host:?}: this server answers only requests to localhost, so that a page in a \
             browser cannot reach it under a name of its own"
        );
        let encoding = status_encoding(request.headers());
        return Ok(respond::status(&Status::forbidden("", "", "", message), encoding));
    }
    service.call(request).await
}

/// Whether a `Host` header names this machine.
fn is_local(host: &[u8]) -> bool {
    let host = std::str::from_utf8(host).unwrap_or_default();
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
