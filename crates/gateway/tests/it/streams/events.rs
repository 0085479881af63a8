//! A gateway without a socket, so that its time can be a test's, and a reader of its events.

use axum::{Router, body::Body};
use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use informer_apiserver::ApiServer;
use informer_gateway::{Gateway, GatewayBuilder};
use informer_testing::Deadline;
use serde_json::{Value, json};
use tower_service::Service;

use crate::support::{Stage, mk_server, query};

const ADDRESS: &str = "127.0.0.1:8888";
pub(crate) const MAPS: &str = "/_stream/core/v1/configmaps";

/// A gateway that is called, not connected to.
pub(crate) struct Rig {
    pub(crate) server: ApiServer,
    pub(crate) gateway: Gateway,
    router: Router,
}

/// What a gateway answers to a request that comes over no socket.
pub(crate) async fn call(router: &Router, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
    let mut request = Request::get(path).header("host", ADDRESS);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).expect("a request");
    router.clone().call(request).await.expect("an answer")
}

pub(crate) fn router(gateway: &Gateway) -> Router {
    gateway.router(ADDRESS.parse().expect("an address")).expect("a loopback address")
}

/// The namespaces that maps of tests are in.
pub(crate) fn mk_cluster() -> ApiServer {
    let server = mk_server();
    for name in ["a", "b"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        server.put(namespace).expect("a namespace");
    }
    server
}

/// A config map, the smallest of objects.
pub(crate) fn mk_map(key: &str, labels: Value, text: &str) -> Value {
    let (namespace, name) = key.split_once('/').expect("a namespace and a name");
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "data": {"text": text},
    })
}

pub(crate) fn put(server: &ApiServer, key: &str, text: &str) {
    server.put(mk_map(key, json!({}), text)).expect("a map");
}

pub(crate) fn discard(server: &ApiServer, key: &str) {
    assert!(server.discard("", "configmaps", &key.parse().expect("a key")), "{key} was there");
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder) -> Self {
        let server = mk_cluster();
        let gateway = configure(Gateway::builder(server.client())).build().expect("a gateway");
        Self { router: router(&gateway), server, gateway }
    }

    /// Opens a stream, or is told why not.
    pub(crate) async fn try_open(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Events, (StatusCode, HeaderMap, Value)> {
        let (head, body) = call(&self.router, path, headers).await.into_parts();
        if head.status != StatusCode::OK {
            let body = body.collect().await.expect("a body").to_bytes();
            return Err((head.status, head.headers, serde_json::from_slice(&body).expect("JSON")));
        }
        assert_eq!(head.headers["content-type"], "text/event-stream");
        Ok(Events::in_body(body))
    }

    pub(crate) async fn open(&self, path: &str, headers: &[(&str, &str)]) -> Events {
        self.try_open(path, headers).await.expect("a stream")
    }

    /// A stream of config maps, after its snapshot. The id of that is told, too.
    pub(crate) async fn follow(&self, parameters: &[(&str, &str)]) -> (Events, String) {
        let mut events = self.open(&query(MAPS, parameters), &[]).await;
        let (_, id) = events.snapshot().await;
        (events, id)
    }

    pub(crate) async fn resume(&self, id: &str) -> Events {
        self.open(MAPS, &[("last-event-id", id)]).await
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    /// Empty for a comment.
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Event {
    fn parse(text: &str) -> Self {
        let (mut id, mut name, mut data) = (None, String::new(), Value::Null);
        for line in text.lines() {
            match line.split_once(':').expect("a field") {
                ("id", value) => id = Some(value.trim_start().to_owned()),
                ("event", value) => name = value.trim_start().to_owned(),
                ("data", value) => data = serde_json::from_str(value).expect("JSON"),
                ("", _) => {}
                (other, _) => panic!("{other} is no field of an event"),
            }
        }
        Self { id, name, data }
    }

    /// `added c-1 text`
    pub(crate) fn show(&self) -> String {
        let text = |pointer: &str| self.data.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
        format!("{} {} {}", self.name, text("/object/metadata/name"), text("/object/data/text"))
    }

    pub(crate) fn id(&self) -> &str {
        self.id.as_deref().expect("an id")
    }
}

/// The events of a stream as they come.
pub(crate) struct Events {
    pieces: BoxStream<'static, Bytes>,
    text: String,
}

impl Events {
    pub(crate) fn in_body(body: Body) -> Self {
        let pieces = body.into_data_stream().map(|piece| piece.expect("a piece"));
        Self { pieces: pieces.boxed(), text: String::new() }
    }

    /// A stream over a socket.
    pub(crate) async fn of(stage: &Stage, path: &str, headers: &[(&str, &str)]) -> Self {
        let stream = stage.stream(path, headers).await;
        assert_eq!(stream.code, 200);
        let pieces = futures_util::stream::unfold(stream, async |mut stream| {
            let piece = stream.next().await?;
            Some((piece, stream))
        });
        Self { pieces: pieces.boxed(), text: String::new() }
    }

    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event = Event::parse(&self.text[..end]);
                self.text.drain(..end + 2);
                return Some(event);
            }
            let Some(piece) = self.pieces.next().await else {
                assert_eq!(self.text, "", "the stream ends between two events");
                return None;
            };
            self.text.push_str(std::str::from_utf8(&piece).expect("text"));
        }
    }

    /// The next event that is no heartbeat.
    pub(crate) async fn event(&mut self) -> Event {
        let deadline = Deadline::start();
        loop {
            deadline.check("an event that is no heartbeat");
            let event = self.next().await.expect("the stream goes on");
            if !event.name.is_empty() {
                return event;
            }
        }
    }

    pub(crate) async fn shown(&mut self, count: usize) -> Vec<String> {
        let mut shown = Vec::new();
        for _ in 0..count {
            shown.push(self.event().await.show());
        }
        shown
    }

    /// A whole snapshot: its items, and the id to go on from.
    pub(crate) async fn snapshot(&mut self) -> (Vec<Value>, String) {
        let head = self.event().await;
        assert_eq!(head.name, "snapshot");
        self.snapshot_after(&head).await
    }

    /// The rest of a snapshot that began with this.
    pub(crate) async fn snapshot_after(&mut self, head: &Event) -> (Vec<Value>, String) {
        let mut items = Vec::new();
        loop {
            let event = self.event().await;
            match &*event.name {
                "items" => {
                    let more = event.data["items"].as_array().expect("items");
                    assert!(!more.is_empty() && more.len() <= 250, "{} items at once", more.len());
                    items.extend(more.iter().cloned());
                }
                "synced" => {
                    assert_eq!(event.data["count"], items.len());
                    assert_eq!(head.data["total"], items.len());
                    assert_eq!(head.data["resourceVersion"], event.data["resourceVersion"]);
                    assert_eq!(event.data["resourceVersion"], event.id());
                    return (items, event.id().to_owned());
                }
                other => panic!("{other} in a snapshot"),
            }
        }
    }
}

/// The names of objects, in order.
pub(crate) fn names(items: &[Value]) -> Vec<&str> {
    let mut names: Vec<&str> =
        items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    names
}
