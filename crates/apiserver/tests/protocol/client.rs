//! A client that sees everything: codes, headers and raw JSON. Whatever it is sent, each failure must be a
//! well-formed `v1.Status`; this is checked here once for all tests.

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use informer_apiserver::{ApiServer, Body};
use informer_model::{FrameDecoder, Framing};
use serde_json::Value;
use tower_service::Service;

pub(crate) const JSON: &str = "application/json";
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
    ) -> http::Response<Body> {
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
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
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
        let response = self.call("GET", path, &[("accept", accept)], Bytes::new()).await;
        assert_eq!(response.status(), 200, "{path}");
        Watch { body: response.into_body(), frames: FrameDecoder::new(Framing::Json) }
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

/// The names of the items of a list, in its order.
pub(crate) fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().expect("items").iter();
    items.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
}

/// The version of an object or of a list.
pub(crate) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().expect("a version").parse().expect("a number")
}

impl Watch {
    /// The next event; none at the end of the watch.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(frame) = self.frames.next_frame().expect("a frame") {
                return Some(serde_json::from_slice(&frame).expect("JSON"));
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

    /// The types and names of the next events, as `ADDED a`.
    pub(crate) async fn lines(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for _ in 0..count {
            let (r#type, name, _) = self.seen().await;
            lines.push(format!("{type} {name}"));
        }
        lines
    }

    /// Whether there is nothing to read now, and no end.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.next().now_or_never().is_none()
    }
}
