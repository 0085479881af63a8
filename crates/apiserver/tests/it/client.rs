//! A client that sees everything: codes, headers and bodies, from JSON or protobuf, packed or not. Whatever it is sent, each failure must be a
//! well-formed `v1.Status`; this is checked here once for all tests.

use std::io::Read;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use futures_util::FutureExt;
use http::{HeaderMap, Request, Response, response::Parts};
use http_body_util::{BodyExt, Empty, Full};
use informer_apiserver::{ApiServer, Body, BoxError, Connection, Refused};
use informer_model::{FrameDecoder, Framing, decode_protobuf};
use serde_json::Value;
use tower_service::Service;

use crate::objects::MAPS;

pub(crate) const JSON: &str = "application/json";
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
pub(crate) const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
pub(crate) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// A server and the way to it.
pub(crate) struct Api {
    pub server: ApiServer,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

/// A watch that was accepted.
pub(crate) struct Watch {
    pub headers: HeaderMap,
    body: Body,
    frames: FrameDecoder,
}

/// A path with a query, encoded as it must be.
pub(crate) fn query(path: &str, parameters: &[(&str, &str)]) -> String {
    let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    format!("{path}?{query}")
}

impl Api {
    pub(crate) fn new() -> Self {
        Self::of(ApiServer::builder().seed(1).build())
    }

    pub(crate) fn of(server: ApiServer) -> Self {
        Self { server }
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).expect("a request");
        self.server.service().call(request).await.expect("an answer")
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let response = self.call(method, path, headers, body.into()).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a whole body").to_bytes();
        let body = decoded(&parts.headers, bytes);
        let answer = Answer { code: parts.status.as_u16(), headers: parts.headers, body };
        if answer.code >= 400 && !answer.is_nowhere() {
            answer.check_status(&format!("{method} {path}"));
        }
        answer
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.send("GET", path, &[("accept", accept)], "").await
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> Answer {
        self.send("POST", path, &[("content-type", JSON)], object.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, object: &Value) -> Answer {
        self.send("PUT", path, &[("content-type", JSON)], object.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, r#type: &str, patch: &Value) -> Answer {
        self.send("PATCH", path, &[("content-type", r#type)], patch.to_string()).await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Answer {
        self.patch(path, MERGE_PATCH, patch).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], "").await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.send("DELETE", path, &[("content-type", JSON)], options.to_string()).await
    }

    /// The names in a list, in its order, and its version.
    pub(crate) async fn names(&self, path: &str) -> Vec<String> {
        self.get(path).await.names()
    }

    pub(crate) async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, JSON).await
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        self.watch_with(path, &[("accept", accept)]).await
    }

    pub(crate) async fn watch_with(&self, path: &str, headers: &[(&str, &str)]) -> Watch {
        Watch::new(self.call("GET", path, headers, Bytes::new()).await, path)
    }
}

impl Answer {
    /// Every failure is a `Status` that says what failed and has the code of the answer.
    fn check_status(&self, request: &str) {
        let Self { code, body, .. } = self;
        assert_eq!(
            (&body["kind"], &body["apiVersion"]),
            (&"Status".into(), &"v1".into()),
            "{request}: {code} {body}"
        );
        assert_eq!(body["status"], "Failure", "{request}: {body}");
        assert_eq!(body["code"], *code, "{request}: {body}");
        // For 501 Kubernetes has no reason.
        let fields = if *code == 501 { &["message"][..] } else { &["message", "reason"] };
        for field in fields {
            assert!(body[field].as_str().is_some_and(|text| !text.is_empty()), "{request}: {body}");
        }
        assert!(!body["message"].as_str().unwrap_or_default().contains("panicked"), "{request}: {body}");
        let wait = body["details"]["retryAfterSeconds"].as_u64().map(|wait| wait.to_string());
        let header = self.headers.get("retry-after").map(|wait| wait.to_str().expect("text").to_owned());
        assert_eq!(header, wait, "{request}: Retry-After mirrors the details");
    }

    /// Whether there is nothing at all under the path: that alone is not answered by a `Status`.
    pub(crate) fn is_nowhere(&self) -> bool {
        let r#type = self.headers.get("content-type").and_then(|r#type| r#type.to_str().ok());
        self.code == 404 && r#type == Some("text/plain; charset=utf-8")
    }

    /// The object of an answer that must be a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!((200..300).contains(&self.code), "{} {}", self.code, self.body);
        self.body
    }

    /// The `Status` of an answer that must be this failure.
    #[track_caller]
    pub(crate) fn fails(self, code: u16, reason: &str) -> Value {
        assert_eq!((self.code, &self.body["reason"]), (code, &reason.into()), "{}", self.body);
        self.body
    }

    #[track_caller]
    pub(crate) fn names(self) -> Vec<String> {
        names(&self.ok())
    }
}

/// Whether an answer, or each event of a watch, is in protobuf.
fn is_protobuf(headers: &HeaderMap) -> bool {
    headers.get("content-type").is_some_and(|r#type| r#type.as_bytes().starts_with(PROTOBUF.as_bytes()))
}

fn is_gzip(headers: &HeaderMap) -> bool {
    headers.get("content-encoding").is_some_and(|encoding| encoding == "gzip")
}

/// What is in a body; null if it is neither JSON nor protobuf.
fn decoded(headers: &HeaderMap, mut bytes: Bytes) -> Value {
    if is_gzip(headers) {
        let mut plain = Vec::new();
        MultiGzDecoder::new(bytes.as_ref()).read_to_end(&mut plain).expect("gzip");
        bytes = plain.into();
    }
    if is_protobuf(headers) {
        return decode_protobuf(&bytes).unwrap_or_else(|error| panic!("{error}"));
    }
    serde_json::from_slice(&bytes).unwrap_or(Value::Null)
}

/// An event in protobuf, which has no envelope: here it gets one.
fn decoded_event(frame: &[u8]) -> Value {
    let mut body = b"k8s\0\x0a\x10\x0a\x02v1\x12\x0aWatchEvent\x12".to_vec();
    let mut length = frame.len();
    while length >= 0x80 {
        body.push(length as u8 | 0x80);
        length >>= 7;
    }
    body.push(length as u8);
    body.extend_from_slice(frame);
    decode_protobuf(&body).unwrap_or_else(|error| panic!("{error}"))
}

/// The names of the items of a list, in its order.
pub(crate) fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("items").iter();
    items.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}

/// The version of an object or of a list.
pub(crate) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().expect("a version").parse().expect("a number")
}

/// Asks on a connection that a fault may refuse.
pub(crate) async fn send(service: &mut Connection, path: &str) -> Result<Response<Body>, Refused> {
    service.call(Request::get(path).body(Empty::<Bytes>::new()).expect("a request")).await
}

/// The head and the body of an answer that comes and ends well.
pub(crate) async fn get(server: &ApiServer, path: &str) -> (Parts, Bytes) {
    let (parts, body) = send(&mut server.service(), path).await.expect("an answer").into_parts();
    let (bytes, error) = read(body).await;
    assert!(error.is_none(), "{path}: {error:?}");
    (parts, bytes)
}

/// The code of an answer.
pub(crate) async fn code(server: &ApiServer, path: &str) -> u16 {
    get(server, path).await.0.status.as_u16()
}

/// The JSON of an answer.
pub(crate) async fn get_json(server: &ApiServer, path: &str) -> Value {
    serde_json::from_slice(&get(server, path).await.1).expect("JSON")
}

/// Everything that comes of a body, and the failure that ends it, if one does.
pub(crate) async fn read(mut body: Body) -> (Bytes, Option<BoxError>) {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes.extend_from_slice(&frame.into_data().expect("data")),
            Err(error) => return (bytes.into(), Some(error)),
        }
    }
    (bytes.into(), None)
}

impl Watch {
    fn new(response: Response<Body>, path: &str) -> Self {
        assert_eq!(response.status(), 200, "{path}");
        let (parts, body) = response.into_parts();
        let is_protobuf = is_protobuf(&parts.headers);
        let frames = FrameDecoder::new(if is_protobuf { Framing::LengthDelimited } else { Framing::Json });
        let frames = if is_gzip(&parts.headers) { frames.gzip() } else { frames };
        Self { headers: parts.headers, frames, body }
    }

    /// A watch of ConfigMaps with these parameters, on a connection of one's own.
    pub(crate) async fn open(service: &mut Connection, parameters: &str) -> Self {
        let path = format!("{MAPS}?watch=1&{parameters}");
        Self::new(send(service, &path).await.expect("an answer"), &path)
    }

    /// A watch of ConfigMaps with these parameters.
    pub(crate) async fn of(server: &ApiServer, parameters: &str) -> Self {
        Self::open(&mut server.service(), parameters).await
    }

    /// The next event; none at the end of the watch.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(frame) = self.frames.next_frame().expect("a frame") {
                return Some(if is_protobuf(&self.headers) {
                    decoded_event(&frame)
                } else {
                    serde_json::from_slice(&frame).expect("JSON")
                });
            }
            let frame = self.body.frame().await?.expect("no failure of the stream");
            self.frames.push(frame.into_data().expect("data"));
        }
    }

    /// The type and the object of an event that must come.
    pub(crate) async fn event(&mut self) -> (String, Value) {
        let mut event = self.next().await.expect("an event, not the end");
        (event["type"].as_str().expect("a type").to_owned(), event["object"].take())
    }

    /// The type, the name and the version of an event that must come.
    pub(crate) async fn seen(&mut self) -> (String, String, u64) {
        let (r#type, object) = self.event().await;
        (r#type, object["metadata"]["name"].as_str().unwrap_or_default().to_owned(), version(&object))
    }

    /// The next event, as `ADDED a`; `end` at the end.
    pub(crate) async fn line(&mut self) -> String {
        let Some(event) = self.next().await else { return "end".into() };
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        format!("{} {}", text("/type"), text("/object/metadata/name")).trim_end().to_owned()
    }

    /// The types and names of the next events.
    pub(crate) async fn lines(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.len() < count {
            lines.push(self.line().await);
        }
        lines
    }

    /// Everything that can be read now, without waiting.
    pub(crate) fn now(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = self.line().now_or_never() {
            let ended = line == "end";
            lines.push(line);
            if ended {
                break;
            }
        }
        lines
    }

    /// Whether there is nothing to read now, and no end.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.next().now_or_never().is_none()
    }
}
