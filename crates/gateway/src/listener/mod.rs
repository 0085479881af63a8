//! The port: connections in, requests to the router, and an end to clients that only hold a place.
//!
//! In: a socket that listens, the router, a token that ends it all. Every connection has a permit, every wait has a limit:
//! for TLS, for the head of a request, for a client that does not read. When there is no permit left, a client gets a 503.

mod connection_limits;
mod multiplex;
mod write_timeout;

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::{Router, body::Body};
use http::{
    HeaderValue, Request, Response,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use informer_model::Status;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use crate::{
    guard::{HEADER_COUNT_LIMIT, Local, accompany},
    log_limit::LogLimit,
    share::Full,
    tls::{self, Tls},
};
pub(crate) use connection_limits::ConnectionLimits;
use connection_limits::{Permit, reason};
use multiplex::{Answers, Tasks};
use write_timeout::WriteTimeout;

/// The longest head of a request. The guard allows less; this is what is read to be able to say so.
const HEAD_BUFFER: usize = 64 * 1024;

/// How many requests one connection of HTTP/2 may have at a time, and how many bytes of an answer wait in it to be sent.
const AT_A_TIME: u32 = 100;
const SEND_BUFFER: usize = 64 * 1024;

/// How many bytes that are not on their way yet the system may take for one connection. Without a limit it takes
/// megabytes for a client that does not read, and writing them keeps others waiting.
#[cfg(any(target_os = "android", target_os = "linux"))]
const UNSENT: u32 = 64 * 1024;

/// How many connections may wait to be accepted. Beyond that the system does not answer, and a client tries again a second
/// later: a crowd that comes at once would keep others waiting so long.
const WAITING: i32 = 4_096;

/// How long somebody without a permit has for a request to refuse.
const REFUSAL: Duration = Duration::from_secs(2);

/// How long to wait when the system has no more files: others have to close theirs first.
const OUT_OF_FILES: Duration = Duration::from_secs(1);

/// The address that a request came from, in the extensions of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// What connections may take.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Connections in all.
    pub(crate) connections: usize,
    /// Connections of one client: an IPv4 address, or 64 bits of an IPv6 address.
    pub(crate) by_address: usize,
    /// For the handshake of TLS.
    pub(crate) handshake: Duration,
    /// For the whole head of the next request, from the end of the one before. Who sends nothing holds a permit as well
    /// as who sends a byte now and then, so there is one limit for both.
    pub(crate) head: Duration,
    /// For a client that takes nothing of an answer.
    pub(crate) stall: Duration,
    /// For answers to end when the gateway does.
    pub(crate) shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4_096,
            by_address: 1_024,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            stall: Duration::from_secs(60),
            shutdown: Duration::from_secs(10),
        }
    }
}

/// Somebody wants to show the cluster to a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot listen on {address}: others could reach it and would see the cluster; {missing}, or listen on 127.0.0.1"
)]
pub(crate) struct Exposed {
    address: SocketAddr,
    missing: &'static str,
}

/// An address that others can reach needs both TLS and authentication.
pub(crate) fn check_exposure(address: SocketAddr, tls: bool, auth: bool) -> Result<(), Exposed> {
    if address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let missing = match (tls, auth) {
        (true, true) => return Ok(()),
        (true, false) => "add --auth kubernetes",
        (false, true) => "add --tls-cert and --tls-key, or --tls-self-signed",
        (false, false) => "add --auth kubernetes, and --tls-cert and --tls-key or --tls-self-signed",
    };
    Err(Exposed { address, missing })
}

/// Serves until `shutdown`, then lets answers end for a while and cuts the rest.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    service: Router,
    limits: Limits,
    connection_limits: Arc<ConnectionLimits>,
    shutdown: CancellationToken,
) {
    let server = Arc::new(Server { tls, service, limits, connection_limits, shutdown });
    // It listens already. A system that has a smaller limit keeps that.
    let _ = socket2::SockRef::from(&listener).listen(WAITING);
    let log = LogLimit::default();
    let mut connections = JoinSet::new();
    while let Some(accepted) = server.shutdown.run_until_cancelled(listener.accept()).await {
        // Those that have ended.
        while connections.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_about_one_connection(&error) => continue,
            Err(error) => {
                if let Some(suppressed) = log.admit("accept") {
                    tracing::warn!(%error, suppressed, "cannot accept connections, trying again in a second");
                }
                server.shutdown.run_until_cancelled(tokio::time::sleep(OUT_OF_FILES)).await;
                continue;
            }
        };
        let permit = server.connection_limits.take(peer.ip());
        let full = permit.as_ref().map_or_else(|full| Some(*full), |permit| permit.full);
        if let Some(full) = full
            && let Some(suppressed) = log.admit(reason(full))
        {
            tracing::warn!(client = %peer.ip(), suppressed, "a connection was refused: {}", reason(full));
        }
        if let Ok(permit) = permit {
            connections.spawn(Arc::clone(&server).receive(stream, peer, permit));
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// What all connections have in common.
struct Server {
    tls: Option<Tls>,
    service: Router,
    limits: Limits,
    connection_limits: Arc<ConnectionLimits>,
    shutdown: CancellationToken,
}

impl Server {
    async fn receive(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, permit: Permit) {
        // Without this an event waits for the client's acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        #[cfg(any(target_os = "android", target_os = "linux"))]
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
        let Ok(local) = stream.local_addr() else { return };
        let Some(tls) = &self.tls else {
            return self.converse(TokioIo::new(stream), peer, local, &permit).await;
        };
        let handshake = timeout(self.limits.handshake, tls.acceptor().accept(stream));
        match self.shutdown.run_until_cancelled(handshake).await {
            Some(Ok(Ok(stream))) => match stream.get_ref().1.alpn_protocol() {
                Some(tls::HTTP_2) => self.multiplex(TokioIo::new(stream), peer, local).await,
                _ => self.converse(TokioIo::new(stream), peer, local, &permit).await,
            },
            Some(Ok(Err(error))) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
            Some(Err(_)) | None => tracing::debug!(%peer, "a TLS handshake did not end"),
        }
    }

    /// Answers the requests of one connection of HTTP/2, each of which has a permit of its own.
    async fn multiplex<IO>(&self, io: IO, peer: SocketAddr, local: SocketAddr)
    where
        IO: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let answers = Arc::new(Answers::default());
        let service = service_fn(|mut request: Request<Incoming>| {
            let (mut router, answers) = (self.service.clone(), Arc::clone(&answers));
            let permit = self.connection_limits.take(peer.ip());
            async move {
                let open = match permit {
                    Ok(Permit { full: Some(full), .. }) | Err(full) => {
                        return Ok::<_, Infallible>(refusal(full));
                    }
                    Ok(permit) => answers.begin(permit),
                };
                request.extensions_mut().insert(Peer(peer));
                request.extensions_mut().insert(Local(local));
                let answer = Service::<Request<Incoming>>::call(&mut router, request).await?;
                Ok(answer.map(|body| open.body(body)))
            }
        });
        let connection = http2::Builder::new(Tasks)
            .timer(TokioTimer::new())
            .max_concurrent_streams(AT_A_TIME)
            .max_header_list_size(HEAD_BUFFER as u32)
            .max_send_buf_size(SEND_BUFFER)
            .keep_alive_interval(self.limits.head)
            .keep_alive_timeout(self.limits.stall)
            .serve_connection(WriteTimeout::new(io, self.limits.stall), service);
        let mut connection = pin!(connection);
        tokio::select! {
            ended = &mut connection => return tell(peer, ended),
            () = answers.watch(&self.limits) => {}
            () = self.shutdown.cancelled() => {}
        }
        connection.as_mut().graceful_shutdown();
        match timeout(self.limits.shutdown, &mut connection).await {
            Ok(ended) => tell(peer, ended),
            Err(_) => tracing::debug!(%peer, "a connection was cut at the end"),
        }
    }

    /// Answers the requests of one connection, one after the other.
    async fn converse<IO>(&self, io: IO, peer: SocketAddr, local: SocketAddr, permit: &Permit)
    where
        IO: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let full = permit.full;
        let service = service_fn(|mut request: Request<Incoming>| {
            let mut router = self.service.clone();
            async move {
                if let Some(full) = full {
                    return Ok::<_, Infallible>(refusal(full));
                }
                request.extensions_mut().insert(Peer(peer));
                request.extensions_mut().insert(Local(local));
                Service::<Request<Incoming>>::call(&mut router, request).await
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(if full.is_some() { REFUSAL } else { self.limits.head })
            .keep_alive(full.is_none())
            .max_buf_size(HEAD_BUFFER)
            // More may come at once than the buffer is meant for.
            .max_header_size(HEAD_BUFFER)
            // The guard says it in words when there are too many, so it must get to see them.
            .max_headers(2 * HEADER_COUNT_LIMIT)
            .serve_connection(WriteTimeout::new(io, self.limits.stall), service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = &mut connection => ended,
            () = self.shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let Ok(ended) = timeout(self.limits.shutdown, &mut connection).await else {
                    return tracing::debug!(%peer, "a connection was cut at the end");
                };
                ended
            }
        };
        tell(peer, ended);
    }
}

fn tell(peer: SocketAddr, ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}

/// 503 for somebody without a permit.
fn refusal(full: Full) -> Response<Body> {
    let status = Status::service_unavailable(reason(full)).with_retry_after(10);
    let mut response = Response::new(Body::from(serde_json::to_string(&status).unwrap_or_default()));
    *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    accompany(&status, headers);
    response
}

/// The client went away before it was accepted. The next one can be accepted at once.
fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Who counts as one client: of IPv6 a household has 64 bits.
pub(crate) fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests;
