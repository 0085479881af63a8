//! A gateway before an API server in the same process, and a client that sees everything: codes, headers, bytes. The
//! gateway is on a port, or, where time is to stand still, called without one.

use std::net::SocketAddr;

use axum::{Router, body::Body};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use informer::source::WireOptions;
use informer_apiserver::{ApiServer, DemoCluster};
use informer_gateway::{Gateway, GatewayBuilder};
use informer_testing::socket;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tower_service::Service;

/// An API server, and a gateway to it.
pub(crate) struct Stage {
    pub(crate) server: ApiServer,
    pub(crate) gateway: Gateway,
    pub(crate) address: SocketAddr,
    door: Door,
}

enum Door {
    Port(JoinHandle<()>),
    Inside(Router),
}

/// What came back, to its end.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// An answer that goes on.
pub(crate) struct Stream {
    pub(crate) code: u16,
    body: Body,
}

/// A path with a query, encoded as it must be.
pub(crate) fn query(path: &str, parameters: &[(&str, &str)]) -> String {
    let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    format!("{path}?{query}")
}

/// A server with nothing in it.
pub(crate) fn mk_server() -> ApiServer {
    ApiServer::builder().seed(1).build()
}

/// A server with a demo cluster of so many pods.
pub(crate) fn mk_demo(pods: usize) -> ApiServer {
    let server = mk_server();
    server.load_demo(&DemoCluster::new(1, pods)).expect("a demo cluster");
    server
}

/// A namespace.
pub(crate) fn mk_namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A pod with labels.
pub(crate) fn mk_pod(namespace: &str, name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        "status": {"phase": "Running"},
    })
}

/// A gateway on a port, until this is dropped.
pub(crate) struct Served {
    pub(crate) gateway: Gateway,
    pub(crate) address: SocketAddr,
}

impl Served {
    pub(crate) async fn of(gateway: Gateway) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let served = gateway.clone();
        tokio::spawn(async move { served.serve(listener).await });
        Self { gateway, address }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.gateway.stop();
    }
}

/// In JSON: objects here have fields that their kinds do not have.
fn builder(server: &ApiServer) -> GatewayBuilder {
    Gateway::builder(server.client()).wire(WireOptions::default().json())
}

impl Stage {
    /// A gateway as it is by default.
    pub(crate) async fn open(server: ApiServer) -> Self {
        Self::open_with(server, |builder| builder).await
    }

    pub(crate) async fn open_with(
        server: ApiServer,
        configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
    ) -> Self {
        let gateway = configure(builder(&server)).build().expect("a gateway");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let serving = gateway.clone();
        let serving = tokio::spawn(async move { serving.serve(listener).await.expect("the gateway serves") });
        Self { server, gateway, address, door: Door::Port(serving) }
    }

    /// A gateway without a port: nothing of it depends on real time, so that paused time passes at once.
    pub(crate) fn inside(
        server: ApiServer,
        configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
    ) -> Self {
        let gateway = configure(builder(&server)).build().expect("a gateway");
        let address = SocketAddr::from(([127, 0, 0, 1], 8888));
        let router = gateway.router(address).expect("a router");
        Self { server, gateway, address, door: Door::Inside(router) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Puts objects into the cluster. The version after that, for `minResourceVersion=`.
    pub(crate) fn put(&self, objects: impl IntoIterator<Item = Value>) -> String {
        for object in objects {
            self.server.put(object).expect("an object");
        }
        self.server.version().to_string()
    }

    /// Takes an object of the core group out of the cluster. The version after that.
    pub(crate) fn discard(&self, resource: &str, key: &str) -> String {
        assert!(self.server.discard("", resource, &key.parse().expect("a key")), "{key} was there");
        self.server.version().to_string()
    }

    async fn call(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        if headers.iter().all(|(name, _)| !name.eq_ignore_ascii_case("host")) {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        if let Door::Inside(router) = &self.door {
            return router.clone().call(request).await.expect("an answer");
        }
        let stream = TcpStream::connect(self.address).await.expect("a connection");
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        sender.send_request(request).await.expect("an answer").map(Body::new)
    }

    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let (parts, body) = self.call(method, path, headers).await.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        Answer { code: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("GET", path, headers).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    /// The answer to a path with parameters.
    pub(crate) async fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Answer {
        self.get(&query(path, parameters)).await
    }

    /// An answer that is read piece by piece.
    pub(crate) async fn stream(&self, path: &str, headers: &[(&str, &str)]) -> Stream {
        let (parts, body) = self.call("GET", path, headers).await.into_parts();
        Stream { code: parts.status.as_u16(), body }
    }

    /// Writes bytes to a connection of their own, and reads until the other side ends it. Whoever sends a request
    /// that is understood asks for that with `Connection: close`.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        socket::exchange(self.address, bytes, false).await
    }

    /// The same, and says that nothing more will come: for whoever waits for the rest of a request.
    pub(crate) async fn raw_then_end(&self, bytes: &[u8]) -> Vec<u8> {
        socket::exchange(self.address, bytes, true).await
    }

    /// Stops the gateway, and waits for its end.
    pub(crate) async fn close(self) {
        self.gateway.stop();
        if let Door::Port(serving) = self.door {
            serving.await.expect("the gateway ends without a panic");
        }
    }
}

impl Stream {
    /// The next piece; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let frame = self.body.frame().await?.expect("the stream is not cut");
            if let Ok(data) = frame.into_data() {
                return Some(data);
            }
        }
    }

    /// All that comes until the end, as text.
    pub(crate) async fn rest(mut self) -> String {
        let mut text = Vec::new();
        while let Some(piece) = self.next().await {
            text.extend_from_slice(&piece);
        }
        String::from_utf8(text).expect("text")
    }
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.beginning()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The beginning of it, for failures.
    fn beginning(&self) -> String {
        self.text().chars().take(500).collect()
    }

    /// The text of a header; empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// The document of an answer that must be a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.code, 200, "{}", self.beginning());
        self.json()
    }

    /// The message of an answer that must be this failure, as a well-formed `Status`.
    #[track_caller]
    pub(crate) fn fails(&self, code: u16) -> String {
        assert_eq!(self.code, code, "{}", self.beginning());
        assert_eq!(self.header("content-type"), "application/json");
        let status = self.json();
        assert_eq!((&status["kind"], &status["apiVersion"]), (&"Status".into(), &"v1".into()), "{status}");
        assert_eq!((&status["status"], &status["code"]), (&"Failure".into(), &code.into()), "{status}");
        let message = status["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty(), "{status}");
        message.to_owned()
    }

    /// The message of an answer that must be this failure, in the shape of the plain lists: nothing else is in it.
    #[track_caller]
    pub(crate) fn says(&self, code: u16) -> String {
        assert_eq!(self.code, code, "{}", self.beginning());
        assert_eq!(self.header("content-type"), "application/json");
        let answer = self.json();
        let message = answer["msg"].as_str().unwrap_or_else(|| panic!("{answer} has a message"));
        assert_eq!(answer, json!({"msg": message}));
        message.to_owned()
    }

    /// The objects of a list in any of its shapes.
    #[track_caller]
    pub(crate) fn items(&self) -> Vec<Value> {
        let mut list = self.ok();
        let shape = ["msg", "data", "items", "rows"].into_iter().find(|shape| list[*shape].is_array());
        let Value::Array(items) = list[shape.expect("a list")].take() else { return Vec::new() };
        items
    }

    /// The names of the objects of a list, in its order.
    #[track_caller]
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |item: &Value| {
            item.pointer("/metadata/name")
                .or(item.get("name"))
                .and_then(Value::as_str)
                .expect("a name")
                .to_owned()
        };
        self.items().iter().map(name).collect()
    }
}
