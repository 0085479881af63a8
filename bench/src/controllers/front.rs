//! What stands between a controller and the server: it counts requests and answers, and makes trouble on demand.
//!
//! It is an HTTP server on loopback that passes everything on with a client, so that every server is counted the same way.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response, StatusCode, header, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, client::Body};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// It listens until it is dropped.
pub(crate) struct Front {
    url: String,
    passing: Arc<Passing>,
    task: JoinHandle<()>,
}

struct Passing {
    client: Client,
    counts: Mutex<Counts>,
    /// So many writes are answered with an error.
    failing: AtomicU64,
    /// For so many milliseconds what a watch says is on its way.
    delay: AtomicU64,
    cut: watch::Sender<()>,
}

/// What was asked for, and answered.
#[derive(Clone)]
pub(crate) struct Counts {
    /// By verb.
    requests: BTreeMap<&'static str, u64>,
    /// Writes that were answered with an error, by verb, resource and code.
    refused: BTreeMap<(&'static str, String, u16), u64>,
    last: Instant,
}

impl Default for Counts {
    fn default() -> Self {
        Self { requests: BTreeMap::new(), refused: BTreeMap::new(), last: Instant::now() }
    }
}

impl Counts {
    /// All but lists and watches, of which there are a few for each kind, however many objects there are.
    pub(crate) fn all(&self) -> u64 {
        self.requests.iter().filter(|(verb, _)| !matches!(**verb, "list" | "watch")).map(|(_, n)| n).sum()
    }

    /// How many writes were answered with an error; the terminal hears which.
    pub(crate) fn refusals(&self) -> u64 {
        if !self.refused.is_empty() {
            eprintln!("  refused: {:?}", self.refused);
        }
        self.refused.values().sum()
    }
}

impl Front {
    pub(crate) async fn of(client: Client) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (failing, delay) = (AtomicU64::new(0), AtomicU64::new(0));
        let (counts, cut) = (Mutex::default(), watch::Sender::new(()));
        let passing = Arc::new(Passing { client, counts, failing, delay, cut });
        let task = tokio::spawn({
            let passing = Arc::clone(&passing);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    // Otherwise small answers wait for acknowledgements.
                    let _ = stream.set_nodelay(true);
                    let passing = Arc::clone(&passing);
                    let service = service_fn(move |request| Arc::clone(&passing).pass(request));
                    tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
                }
            }
        });
        Ok(Self { url, passing, task })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What was counted since the last time.
    pub(crate) fn take(&self) -> Counts {
        self.passing.with_counts(std::mem::take)
    }

    /// Waits until there was no request for so long.
    pub(crate) async fn quiet(&self, time: Duration) {
        loop {
            let idle = self.passing.with_counts(|counts| counts.last.elapsed());
            match time.checked_sub(idle) {
                Some(rest) if !rest.is_zero() => sleep(rest).await,
                _ => return,
            }
        }
    }

    /// How late watches are from now on.
    pub(crate) fn delay_watches(&self, by: Duration) {
        self.passing.delay.store(by.as_millis() as u64, Ordering::Relaxed);
    }

    /// Breaks the connections of all watches.
    pub(crate) fn cut_watches(&self) {
        self.passing.cut.send_replace(());
    }

    /// The next write is answered with an error, and not carried out.
    pub(crate) fn fail_a_write(&self) {
        self.passing.failing.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Passing {
    fn with_counts<R>(&self, act: impl FnOnce(&mut Counts) -> R) -> R {
        act(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn pass(self: Arc<Self>, request: Request<Incoming>) -> Result<Answer, Infallible> {
        let (mut parts, body) = request.into_parts();
        let (verb, resource) = (verb(&parts), resource(parts.uri.path()));
        // These are about the connection to here.
        parts.headers.remove(header::HOST);
        parts.headers.remove(header::CONNECTION);
        let answer = self.ask(verb, parts, body).await;
        let answer = answer.unwrap_or_else(|error| {
            let mut answer = Response::new(full(error.to_string().into()));
            *answer.status_mut() = StatusCode::BAD_GATEWAY;
            answer
        });
        self.with_counts(|counts| {
            counts.last = Instant::now();
            *counts.requests.entry(verb).or_default() += 1;
            let code = answer.status();
            if !matches!(verb, "get" | "list" | "watch") && !code.is_success() {
                *counts.refused.entry((verb, resource, code.as_u16())).or_default() += 1;
            }
        });
        Ok(answer)
    }

    async fn ask(self: &Arc<Self>, verb: &str, parts: Parts, body: Incoming) -> Result<Answer, BoxError> {
        let body = body.collect().await?.to_bytes();
        let one_less = |failing: u64| failing.checked_sub(1);
        let fails = || self.failing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
        if !matches!(verb, "get" | "list" | "watch") && fails() {
            return Err("the server is asked to fail".into());
        }
        // What was cut before an answer is cut, too.
        let cut = self.cut.subscribe();
        let answer = self.client.send(Request::from_parts(parts, Body::from(body))).await?;
        let (mut parts, body) = answer.into_parts();
        parts.headers.remove(header::TRANSFER_ENCODING);
        if verb != "watch" || !parts.status.is_success() {
            return Ok(Response::from_parts(parts, full(body.collect_bytes().await?)));
        }
        Ok(Response::from_parts(parts, self.late(body, cut)))
    }

    /// A body whose frames come as late as it is said at that moment, until it is cut.
    fn late(
        self: &Arc<Self>,
        mut body: Body,
        mut cut: watch::Receiver<()>,
    ) -> UnsyncBoxBody<Bytes, BoxError> {
        let this = Arc::clone(self);
        let (sender, receiver) = mpsc::unbounded_channel::<(Instant, Result<Frame<Bytes>, BoxError>)>();
        tokio::spawn(async move {
            loop {
                let frame = tokio::select! {
                    frame = body.frame() => frame,
                    _ = cut.changed() => Some(Err(kube::Error::Service("the watch is cut".into()))),
                    () = sender.closed() => return,
                };
                let Some(frame) = frame else { return };
                let is_end = frame.is_err();
                let delay = Duration::from_millis(this.delay.load(Ordering::Relaxed));
                if sender.send((Instant::now() + delay, frame.map_err(Into::into))).is_err() || is_end {
                    return;
                }
            }
        });
        let frames = stream::unfold(receiver, |mut receiver| async {
            let (at, frame) = receiver.recv().await?;
            sleep_until(at).await;
            Some((frame, receiver))
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

fn full(body: Bytes) -> UnsyncBoxBody<Bytes, BoxError> {
    http_body_util::Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

/// What a request asks for, as the API server names it in its own counts.
fn verb(parts: &Parts) -> &'static str {
    let query = parts.uri.query().unwrap_or_default();
    let is_watch = query.split('&').any(|option| matches!(option, "watch=true" | "watch=1"));
    match parts.method {
        Method::GET if is_watch => "watch",
        // A name has an even number of parts after its group, with a namespace or without.
        Method::GET => {
            if names_one(parts.uri.path()) {
                "get"
            } else {
                "list"
            }
        }
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

/// The resource of a path, with its subresource.
fn resource(path: &str) -> String {
    let parts = path.split('/').skip_while(|part| *part != "namespaces").skip(2);
    let named: Vec<&str> = parts.enumerate().filter(|(nth, _)| *nth != 1).map(|(_, part)| part).collect();
    named.join("/")
}

/// Whether a path names one object, and not a collection.
fn names_one(path: &str) -> bool {
    let mut parts = path.trim_matches('/').split('/');
    let skipped = if parts.next() == Some("api") { 1 } else { 2 };
    let rest: Vec<&str> = parts.skip(skipped).collect();
    let rest = if rest.len() > 2 && rest[0] == "namespaces" { &rest[2..] } else { &rest[..] };
    rest.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_verb_of_the_api_server() {
        for (method, path, expected) in [
            (Method::GET, "/api/v1/configmaps", "list"),
            (Method::GET, "/api/v1/namespaces/default/configmaps?limit=500", "list"),
            (Method::GET, "/api/v1/configmaps?a=b&watch=true&c=d", "watch"),
            (Method::GET, "/apis/apps/v1/deployments?watch=1", "watch"),
            (Method::GET, "/apis/apps/v1/namespaces/default/deployments/web", "get"),
            (Method::GET, "/api/v1/namespaces/default", "get"),
            (Method::POST, "/api/v1/namespaces/default/configmaps", "create"),
            (Method::PUT, "/api/v1/namespaces/default/configmaps/web", "update"),
            (Method::PATCH, "/apis/apps/v1/namespaces/default/deployments/web/status", "patch"),
            (Method::DELETE, "/api/v1/namespaces/default/configmaps/web", "delete"),
        ] {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            assert_eq!(verb(&request.into_parts().0), expected, "{path}");
        }
        assert_eq!(resource("/apis/apps/v1/namespaces/default/deployments/web/status"), "deployments/status");
        assert_eq!(resource("/api/v1/namespaces/default/configmaps"), "configmaps");
    }
}
