//! What must hold for any sequence of requests to the embedded server.
//!
//! `cargo fuzz` drives it with libFuzzer; `crates/apiserver/tests/it/fuzz_corpus.rs` drives it on stable Rust with
//! the seeds in `fuzz/seeds/requests` and random mutations of them. An input is text: requests between `\x1e`,
//! each `METHOD path`, headers, an empty line and a body. `$v`, `$u` and `$t` stand for the newest version, and
//! for the uid and the continue token that the last answer named.

use std::{collections::BTreeMap, future::Future};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use informer_apiserver::{ApiServer, Body};
use informer_model::{FrameDecoder, Framing, decode_protobuf};
use serde_json::{Value, json};
use tower_service::Service;

/// So many requests are made of one input, and so many pieces of one answer are read: a watch has no end.
const MOST_REQUESTS: usize = 20;
const MOST_PIECES: usize = 20;
/// What is watched from the beginning.
const WATCHED: [&str; 4] =
    ["/api/v1/configmaps", "/api/v1/namespaces", "/apis/apps/v1/deployments", "/apis/example.com/v1/widgets"];

/// Every answer is well-formed and none tells of a panic. In the end a list has what a watch from the
/// beginning has told.
pub(crate) fn requests(data: &[u8]) {
    // Waiting for a version or for the end of a watch takes no time.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let server = ApiServer::builder().seed(1).build();
        server.put(widgets()).expect("a definition");
        let initial = server.version();
        let mut watches = Vec::new();
        for path in WATCHED {
            // Longer than all waiting together.
            let query = "watch=true&timeoutSeconds=2000000000";
            watches.push((path, call(&server, "GET", &format!("{path}?{query}"), &[], Bytes::new()).await));
        }
        let mut last = Value::Null;
        for input in data.split(|byte| *byte == 0x1e).take(MOST_REQUESTS) {
            if let Some(answer) = drive(&server, input, &last).await {
                last = answer;
            }
        }
        for (path, watch) in watches {
            compare(&server, path, watch.expect("an answer"), initial).await;
        }
    });
}

fn widgets() -> Value {
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let parts = json!({
        "status": {},
        "scale": { "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size" },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": schema, "subresources": parts },
                { "name": "v2", "served": true, "storage": false, "schema": schema },
            ],
        },
    })
}

/// Makes one request, unless it is none that HTTP could carry.
fn call<'s>(
    server: &'s ApiServer,
    method: &str,
    path: &str,
    headers: &[(&str, &[u8])],
    body: Bytes,
) -> impl Future<Output = Option<Response<Body>>> + use<'s> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body)).ok();
    async { Some(server.service().call(request?).await.expect("no fault refuses")) }
}

/// Reads a request from text, makes it, and returns what its answer says.
async fn drive(server: &ApiServer, input: &[u8], last: &Value) -> Option<Value> {
    let input = expand(server, input, last);
    let end = input.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = end.map_or((&input[..], &[][..]), |end| (&input[..end], &input[end + 2..]));
    let mut lines = head.split(|byte| *byte == b'\n');
    let (method, path) = std::str::from_utf8(lines.next()?).ok()?.split_once(' ')?;
    let headers: Vec<(&str, &[u8])> = lines
        .filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((std::str::from_utf8(&line[..colon]).ok()?, line[colon + 1..].trim_ascii()))
        })
        .collect();
    let response = call(server, method, path, &headers, Bytes::copy_from_slice(body)).await?;
    Some(check(response, &format!("{method} {path}")).await)
}

fn expand(server: &ApiServer, input: &[u8], last: &Value) -> Vec<u8> {
    let text = |pointer: &str| last.pointer(pointer).and_then(Value::as_str).unwrap_or("none").to_owned();
    let mut out = Vec::with_capacity(input.len());
    let mut bytes = input.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let value = match (byte, bytes.peek()) {
            (b'$', Some(b'v')) => server.version().to_string(),
            (b'$', Some(b'u')) => text("/metadata/uid"),
            (b'$', Some(b't')) => text("/metadata/continue"),
            _ => {
                out.push(byte);
                continue;
            }
        };
        bytes.next();
        out.extend_from_slice(value.as_bytes());
    }
    out
}

/// An answer is JSON documents if it says that it is JSON, an object or frames if it says that it is protobuf, and
/// one `Status` of the same code if it is a failure.
async fn check(response: Response<Body>, request: &str) -> Value {
    let (parts, mut body) = response.into_parts();
    let header = |name: &str| parts.headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    let r#type = header("content-type");
    let json = r#type.starts_with(b"application/json");
    let protobuf = r#type == b"application/vnd.kubernetes.protobuf";
    let framing = if r#type.ends_with(b";stream=watch") { Framing::LengthDelimited } else { Framing::Json };
    let gzip = header("content-encoding") == b"gzip";
    let mut decoder = if gzip { FrameDecoder::new(framing).gzip() } else { FrameDecoder::new(framing) };
    let (mut bytes, mut whole) = (Vec::new(), true);
    let mut pieces = 0;
    while let Some(piece) = body.frame().await {
        let piece = piece.expect("no fault cuts").into_data().expect("no trailers");
        if protobuf {
            bytes.extend_from_slice(&piece);
        } else {
            decoder.push(piece);
        }
        pieces += 1;
        if pieces == MOST_PIECES {
            whole = false;
            break;
        }
    }
    let mut documents = Vec::new();
    if json {
        while let Some(frame) = decoder.next_frame().expect("JSON") {
            documents.push(serde_json::from_slice::<Value>(&frame).expect("JSON"));
        }
        if whole {
            assert!(decoder.finish().is_ok_and(|rest| rest.is_none()), "{request}: the end is cut");
        }
    } else if protobuf && whole && !gzip {
        documents.push(decode_protobuf(&bytes).unwrap_or_else(|error| panic!("{request}: {error}")));
    } else if framing == Framing::LengthDelimited {
        while decoder.next_frame().expect("a frame").is_some() {}
    }
    let code = parts.status.as_u16();
    // Under some paths there is nothing at all: these alone are answered by a text.
    if code >= 400 && (json || protobuf || code != 404) {
        let [status] = documents.as_slice() else { panic!("{request}: {code} with {documents:?}") };
        assert_eq!(
            (&status["kind"], &status["code"]),
            (&"Status".into(), &code.into()),
            "{request}: {status}"
        );
        assert_eq!(status["status"], "Failure", "{request}: {status}");
        assert!(status["message"].is_string(), "{request}: {status}");
        assert_ne!(code, 500, "{request}: {status}");
    }
    documents.into_iter().next().unwrap_or_default()
}

/// Compares what a watch from the beginning told with what a list shows. What was there at `initial` comes in
/// no order, what happened later in the order of versions.
async fn compare(server: &ApiServer, path: &str, watch: Response<Body>, initial: u64) {
    let mut body = watch.into_body();
    let mut decoder = FrameDecoder::new(Framing::Json);
    loop {
        match body.frame().now_or_never() {
            None => break,
            // What was watched is no longer served.
            Some(None) => return,
            Some(Some(piece)) => {
                decoder.push(piece.expect("no fault cuts").into_data().expect("no trailers"));
            }
        }
    }
    let mut told = BTreeMap::new();
    let mut newest = initial;
    while let Some(frame) = decoder.next_frame().expect("a frame") {
        let mut event: Value = serde_json::from_slice(&frame).expect("JSON");
        let (key, version) = identity(&event["object"]);
        match event["type"].as_str() {
            Some("ADDED") => assert!(told.insert(key, event["object"].take()).is_none(), "{event}"),
            Some("MODIFIED") => assert!(told.insert(key, event["object"].take()).is_some(), "{event}"),
            Some("DELETED") => assert!(told.remove(&key).is_some(), "{event}"),
            _ => panic!("{event}"),
        }
        assert!(version <= initial || version > newest, "{path}: {version} after {newest}");
        newest = newest.max(version);
    }
    let list = call(server, "GET", path, &[], Bytes::new()).await.expect("an answer");
    let list = check(list, path).await;
    let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).expect("a list");
    let listed: BTreeMap<_, _> = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| {
            let mut item = item.clone();
            (item["kind"], item["apiVersion"]) = (kind.into(), list["apiVersion"].clone());
            (identity(&item).0, item)
        })
        .collect();
    assert_eq!(told, listed, "{path}");
}

fn identity(object: &Value) -> ((String, String), u64) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    ((text("namespace"), text("name")), text("resourceVersion").parse().expect("a version"))
}
