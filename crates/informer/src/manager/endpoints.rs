//! `/healthz`, `/readyz` and `/metrics` over HTTP, for probes and scrapes.

use std::{convert::Infallible, fmt, io, net::SocketAddr, pin, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{HealthReport, ManagerObserver};

#[cfg(feature = "prometheus")]
type Registry = std::sync::Arc<prometheus_client::registry::Registry>;

/// How long a client may take for a request, and an idle connection is kept.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long an answer may still take after the stop.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// More clients than this wait: probes and scrapes are few.
const CONNECTIONS: usize = 64;

/// An address at which probes and scrapes are answered, in plain HTTP: `/healthz` and `/readyz`, with `?verbose` in words, and `/metrics`.
///
/// ```
/// use informer::manager::{Endpoints, Manager};
/// # async fn run(stop: informer::CancellationToken) -> Result<(), Box<dyn std::error::Error>> {
/// let endpoints = Endpoints::bind(([0, 0, 0, 0], 8080)).await?; // or an error that says that the port is in use
/// Manager::new().endpoints(endpoints).run(stop).await?;
/// # Ok(()) }
/// ```
pub struct Endpoints {
    listener: TcpListener,
    address: SocketAddr,
    #[cfg(feature = "prometheus")]
    registry: Option<Registry>,
}

/// Nobody can be answered at an address.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// What the system says.
    pub source: io::Error,
}

impl Endpoints {
    /// Takes the address. Port 0 is a free one.
    pub async fn bind(address: impl Into<SocketAddr>) -> Result<Self, ListenError> {
        let address = address.into();
        let failed = |source| ListenError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            #[cfg(feature = "prometheus")]
            registry: None,
        })
    }

    /// What `/metrics` answers with. Without it there is no such path.
    #[cfg(feature = "prometheus")]
    #[must_use]
    pub fn metrics(mut self, registry: impl Into<Registry>) -> Self {
        self.registry = Some(registry.into());
        self
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the stop.
    pub(super) async fn serve(self, observer: ManagerObserver, stop: CancellationToken) {
        let Self { listener, .. } = self;
        let answering = Answering {
            observer,
            #[cfg(feature = "prometheus")]
            registry: self.registry,
        };
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                    Ok((stream, _)) => drop(connections.spawn(answering.clone().converse(stream, stop.clone()))),
                    Err(error) => {
                        // Out of files, most likely: others have to close theirs first.
                        tracing::warn!(%error, "cannot accept a connection, trying again in a second");
                        sleep(Duration::from_secs(1)).await;
                    }
                },
            }
        }
        drop(listener);
        let _ = timeout(LAST_ANSWERS, async { while connections.join_next().await.is_some() {} }).await;
    }
}

#[derive(Clone)]
struct Answering {
    observer: ManagerObserver,
    #[cfg(feature = "prometheus")]
    registry: Option<Registry>,
}

impl Answering {
    async fn converse(self, stream: TcpStream, stop: CancellationToken) {
        let answer = service_fn(move |request: Request<Incoming>| {
            let answer = self.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        });
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .serve_connection(TokioIo::new(stream), answer);
        let ended = tokio::select! {
            ended = &mut connection => ended,
            () = stop.cancelled() => {
                pin::Pin::new(&mut connection).graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered".to_owned());
        }
        let query = request.uri().query().unwrap_or_default();
        let verbose = query
            .split('&')
            .any(|option| matches!(option, "verbose" | "verbose=" | "verbose=1" | "verbose=true"));
        match request.uri().path() {
            "/healthz" | "/livez" => report(&self.observer.health(), verbose),
            "/readyz" => report(&self.observer.ready(), verbose),
            #[cfg(feature = "prometheus")]
            "/metrics" if self.registry.is_some() => self.metrics(),
            _ => plain(
                StatusCode::NOT_FOUND,
                "there are /healthz, /readyz and, if it was given one, /metrics".to_owned(),
            ),
        }
    }

    #[cfg(feature = "prometheus")]
    fn metrics(&self) -> Response<Full<Bytes>> {
        let mut text = String::new();
        let encoded = self
            .registry
            .iter()
            .try_for_each(|registry| prometheus_client::encoding::text::encode(&mut text, registry));
        match encoded {
            Ok(()) => {
                answer(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", text)
            }
            Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}

fn report(report: &HealthReport, verbose: bool) -> Response<Full<Bytes>> {
    match report.is_ok() {
        true if !verbose => plain(StatusCode::OK, "ok".to_owned()),
        true => plain(StatusCode::OK, report.to_string()),
        false => plain(StatusCode::SERVICE_UNAVAILABLE, report.to_string()),
    }
}

fn plain(code: StatusCode, text: String) -> Response<Full<Bytes>> {
    answer(code, "text/plain; charset=utf-8", text)
}

fn answer(code: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text + "\n"));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoints").field(&self.address).finish()
    }
}
