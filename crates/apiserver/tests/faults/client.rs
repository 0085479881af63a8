//! A client that sees how an answer ends, and whether it ends at all.

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response, response::Parts};
use http_body_util::{BodyExt, Empty};
use informer_apiserver::{ApiServer, Body, BoxError, Connection, Refused};
use informer_model::{FrameDecoder, Framing};
use serde_json::{Value, json};
use tower_service::Service;

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) fn mk_server() -> ApiServer {
    ApiServer::builder().seed(1).build()
}

pub(crate) fn mk_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" } })
}

/// Writes ConfigMaps of these names, each one version after the other.
pub(crate) fn put_maps(server: &ApiServer, names: &[&str]) {
    for name in names {
        server.put(mk_map(name)).expect("written");
    }
}

pub(crate) fn discard_map(server: &ApiServer, name: &str) {
    let key = informer_model::ObjectKey::new(Some("default"), name).expect("a key");
    assert!(server.discard("", "configmaps", &key), "{name} was there");
}

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

/// The names of the items of a list, in its order.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items").iter();
    items.map(|item| item["metadata"]["name"].as_str().expect("a name")).collect()
}

/// The version of an object or of a list.
pub(crate) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().expect("a version").parse().expect("a number")
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

/// A watch of which nothing but its body is known.
pub(crate) struct Watch {
    body: Body,
    frames: FrameDecoder,
}

impl Watch {
    /// A watch of ConfigMaps with these parameters.
    pub(crate) async fn open(service: &mut Connection, parameters: &str) -> Self {
        let response = send(service, &format!("{MAPS}?watch=1&{parameters}")).await.expect("an answer");
        assert_eq!(response.status(), 200);
        let frames = FrameDecoder::new(Framing::Json);
        let gzip = response.headers().get("content-encoding").is_some_and(|encoding| encoding == "gzip");
        Self { frames: if gzip { frames.gzip() } else { frames }, body: response.into_body() }
    }

    pub(crate) async fn of(server: &ApiServer, parameters: &str) -> Self {
        Self::open(&mut server.service(), parameters).await
    }

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

    /// The next event, as `ADDED a`; `end` at the end.
    pub(crate) async fn line(&mut self) -> String {
        let Some(event) = self.next().await else { return "end".into() };
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        format!("{} {}", text("/type"), text("/object/metadata/name")).trim_end().to_owned()
    }

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
}
