//! Many pods, many watchers, many changes: everybody sees every change once and in order.

use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use informer_apiserver::{ApiServer, DemoCluster};
use kube::client::Body;
use tokio::task::JoinSet;

/// How much of it.
pub(crate) struct Load {
    pub pods: usize,
    pub watchers: usize,
    pub changes: usize,
}

/// What it took.
pub(crate) struct Figures {
    pub creating: Duration,
    pub watching: Duration,
    /// Bytes of memory of the process: before, with all pods, and the most while watching.
    pub memory: [u64; 3],
    /// Bytes of the pods as JSON.
    pub stored: usize,
    /// Bytes that all watchers were sent.
    pub delivered: u64,
}

impl Load {
    /// Creates the pods over the in-process client, then changes some of them under everybody's eyes.
    pub(crate) async fn run(&self) -> Figures {
        // Nobody may be cut off: history holds all changes.
        let server = ApiServer::builder().seed(1).history(self.changes.max(1_000)).build();
        let before = memory();
        let (creating, pods) = self.create(&server).await;
        let (stored, created) = (server.size().bytes, memory());
        let from = server.version();
        let started = Instant::now();
        let mut watchers = JoinSet::new();
        for _ in 0..self.watchers {
            watchers.spawn(watch(server.client(), from, self.changes));
        }
        self.change(&server, &pods).await;
        let mut delivered = 0;
        let mut most = memory();
        while let Some(bytes) = watchers.join_next().await {
            delivered += bytes.expect("a watcher that saw every change in order");
            most = most.max(memory());
        }
        Figures { creating, watching: started.elapsed(), memory: [before, created, most], stored, delivered }
    }

    /// Only the requests are timed, not making up the pods.
    async fn create(&self, server: &ApiServer) -> (Duration, Vec<String>) {
        let client = server.client();
        let mut took = Duration::ZERO;
        let mut paths = Vec::new();
        for mut object in DemoCluster::new(1, self.pods).objects() {
            if object["kind"] != "Pod" {
                server.put(object).expect("what belongs to the pods");
                continue;
            }
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            let path = format!("/api/v1/namespaces/{}/pods", text("namespace"));
            paths.push(format!("{path}/{}", text("name")));
            object["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
            let body = serde_json::to_vec(&object).expect("JSON");
            let started = Instant::now();
            let request = Request::builder().method(Method::POST).uri(path);
            let request = request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body));
            let answer = client.send(request.expect("a request")).await.expect("an answer");
            took += started.elapsed();
            assert_eq!(answer.status(), StatusCode::CREATED);
        }
        assert_eq!(paths.len(), self.pods);
        (took, paths)
    }

    async fn change(&self, server: &ApiServer, pods: &[String]) {
        let client = server.client();
        for (change, path) in (0..self.changes).zip(pods.iter().cycle()) {
            let patch = format!("{{\"metadata\":{{\"annotations\":{{\"change\":\"{change}\"}}}}}}");
            let request = Request::builder().method(Method::PATCH).uri(path);
            let request = request.header(header::CONTENT_TYPE, "application/merge-patch+json");
            let answer = client.send(request.body(Body::from(patch.into_bytes())).expect("a request")).await;
            assert_eq!(answer.expect("an answer").status(), StatusCode::OK);
        }
    }
}

/// Watches all pods until it has seen all changes, each once and in the order of versions. Returns how many
/// bytes that were.
async fn watch(client: kube::Client, from: u64, changes: usize) -> u64 {
    let path = format!("/api/v1/pods?watch=true&resourceVersion={from}");
    let request = Request::get(path).body(Body::empty()).expect("a request");
    let mut body = client.send(request).await.expect("a watch").into_body();
    let (mut seen, mut version, mut bytes) = (0, from, 0);
    let mut rest = Vec::new();
    while seen < changes {
        let piece = body.frame().await.expect("more to come").expect("no error");
        let Ok(piece) = piece.into_data() else { continue };
        bytes += piece.len() as u64;
        // A watch writes no newline but the one after an event.
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            if line.last() != Some(&b'\n') {
                rest.extend_from_slice(line);
                continue;
            }
            let whole = std::mem::take(&mut rest);
            let whole = if whole.is_empty() { line.into() } else { Cow::from([&whole, line].concat()) };
            let event: Event<'_> = serde_json::from_slice(&whole).expect("an event");
            assert_eq!(event.r#type, "MODIFIED");
            let next: u64 = event.object.metadata.resource_version.parse().expect("a version");
            assert_eq!(next, version + 1, "a change was lost, came twice or out of order");
            version = next;
            seen += 1;
        }
    }
    bytes
}

#[derive(serde::Deserialize)]
struct Event<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: Object<'a>,
}

#[derive(serde::Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    resource_version: &'a str,
}

/// The memory of this process in bytes; 0 where that cannot be found out.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}
