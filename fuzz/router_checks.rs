//! What must hold for any sequence of requests to the gateway.
//!
//! `cargo fuzz` drives it with libFuzzer; `crates/gateway/tests/it/fuzz_corpus.rs` drives it on stable Rust with the
//! seeds in `fuzz/seeds/router` and random mutations of them. An input is text: requests between `\x1e`, each
//! `METHOD path` and headers. `$v` stands for the newest version of the cluster, `$t` and `$e` for the continue
//! token and the tag of the last answer that had one. Between two requests the cluster changes.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use informer_apiserver::ApiServer;
use informer_gateway::Gateway;
use informer_model::{FrameDecoder, Framing};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_service::Service;

/// So many requests are made of one input, and so many pieces of one answer are read: a stream has no end.
const MOST_REQUESTS: usize = 12;
const MOST_PIECES: usize = 8;
/// No answer takes longer to begin. Time is paused: this passes at once when nothing else happens.
const PATIENCE: Duration = Duration::from_secs(120);
/// Where the gateway believes to be served.
const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 8888);

/// What the last answers said, for the next request.
#[derive(Default)]
struct Told {
    token: String,
    etag: String,
}

/// Every request is answered, in time, with a code that fits; every failure is JSON that says what is wrong.
pub(crate) fn router(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let server = ApiServer::builder().seed(1).build();
        for (n, app) in ["web", "web", "api"].into_iter().enumerate() {
            server.put(mk_pod(n, app)).expect("a pod");
        }
        let gateway = Gateway::builder(server.client()).changes_kept(8).build().expect("a gateway");
        let mut told = Told::default();
        for (n, input) in data.split(|byte| *byte == 0x1e).take(MOST_REQUESTS).enumerate() {
            drive(&gateway, &server, input, &mut told).await;
            server.put(mk_pod(n % 4, if n % 2 == 0 { "api" } else { "web" })).expect("a pod");
        }
        gateway.stop();
    });
}

fn mk_pod(n: usize, app: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "default",
            "name": format!("pod-{n}"),
            "labels": {"app": app},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "pod-0", "uid": "uid-0"}],
        },
        "spec": {"containers": [{"name": "a", "image": "nginx"}], "nodeName": format!("node-{n}")},
        "status": {"phase": "Running"},
    })
}

/// Reads a request from text and makes it, unless it is none that HTTP could carry.
async fn drive(gateway: &Gateway, server: &ApiServer, input: &[u8], told: &mut Told) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let text = text
        .replace("$v", &server.version().to_string())
        .replace("$t", &told.token)
        .replace("$e", &told.etag);
    let mut lines = text.split('\n');
    let Some((method, path)) = lines.next().and_then(|line| line.split_once(' ')) else { return };
    let mut request = Request::builder().method(method).uri(path);
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    if headers.iter().all(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        request = request.header("host", "127.0.0.1:8888");
    }
    for (name, value) in headers {
        request = request.header(name, value.trim());
    }
    let Ok(request) = request.body(Empty::<Bytes>::new()) else { return };
    let what = format!("{method} {path}");
    let mut router = gateway.router(ADDRESS.into()).expect("a router");
    let response = in_time(router.call(request), &what).await.expect("an answer");
    let header =
        |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (token, etag) = (header("x-continue"), header("etag"));
    told.token = token.unwrap_or_else(|| std::mem::take(&mut told.token));
    told.etag = etag.unwrap_or_else(|| std::mem::take(&mut told.etag));
    check(response.map(|body| body.map_err(|error| error.to_string())), method, &what).await;
}

async fn in_time<T>(work: impl Future<Output = T>, what: &str) -> T {
    timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("{what} is not answered"))
}

/// Reads an answer, or its beginning, and looks whether it is well-formed.
async fn check<B>(response: Response<B>, method: &str, what: &str)
where
    B: http_body::Body<Data = Bytes, Error = String> + Unpin,
{
    let (parts, mut body) = response.into_parts();
    let (mut text, mut is_whole) = (Vec::new(), false);
    for _ in 0..MOST_PIECES {
        // Nobody knows how long a stream is silent.
        let Ok(piece) = timeout(PATIENCE, body.frame()).await else { break };
        match piece {
            Some(piece) => text.extend_from_slice(&piece.expect("no cut").into_data().expect("no trailers")),
            None => {
                is_whole = true;
                break;
            }
        }
    }
    let fits = matches!(parts.status.as_u16(), 200 | 304 | 400..500 | 503 | 504);
    assert!(fits, "{what}: {}", parts.status);
    if method == "HEAD" || parts.status == StatusCode::NOT_MODIFIED {
        assert!(text.is_empty() && is_whole, "{what}: {} has a body", parts.status);
        return;
    }
    if let (true, Some(length)) = (is_whole, parts.headers.get("content-length")) {
        assert_eq!(length, text.len().to_string().as_str(), "{what}");
    }
    let says = |name: &str, value: &str| says(&parts.headers, name, value);
    assert!(says("x-content-type-options", "nosniff") && says("x-frame-options", "DENY"), "{what}");
    if parts.headers.contains_key("content-encoding") {
        return;
    }
    let documents = match says("content-type", "application/json") {
        true => documents(&text, is_whole, what),
        false => Vec::new(),
    };
    if parts.status.as_u16() >= 400 {
        // Probes are for machines that read the code alone.
        let is_probe = parts.status == StatusCode::SERVICE_UNAVAILABLE && what.contains("/readyz");
        assert!(is_probe || is_failure(&documents, parts.status.as_u16()), "{what}: {documents:?}");
    }
}

fn says(headers: &HeaderMap, name: &str, value: &str) -> bool {
    headers.get(name).is_some_and(|said| said.as_bytes().starts_with(value.as_bytes()))
}

/// The JSON documents of a text; the last one may be cut if there was more.
fn documents(text: &[u8], is_whole: bool, what: &str) -> Vec<Value> {
    let mut decoder = FrameDecoder::new(Framing::Json);
    decoder.push(text.to_vec());
    let mut documents = Vec::new();
    while let Some(frame) = decoder.next_frame().unwrap_or_else(|error| panic!("{what}: {error}")) {
        documents.push(serde_json::from_slice(&frame).unwrap_or_else(|error| panic!("{what}: {error}")));
    }
    assert!(!is_whole || decoder.finish().is_ok_and(|rest| rest.is_none()), "{what}: the end is cut");
    documents
}

/// Whether this is one `Status` of this code, or the message of a plain list.
fn is_failure(documents: &[Value], code: u16) -> bool {
    let [document] = documents else { return false };
    let is_text = |member: &str| document[member].as_str().is_some_and(|text| !text.is_empty());
    let is_status = document["kind"] == "Status" && document["code"] == code && is_text("message");
    is_status || (is_text("msg") && document.as_object().is_some_and(|members| members.len() == 1))
}
