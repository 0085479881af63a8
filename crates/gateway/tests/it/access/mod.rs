//! Who sees what, against a whole gateway and a cluster with rules.

mod hostile;
mod model;
mod requests;
mod reviews;
mod sight;
mod world;

use std::time::Duration;

use informer_gateway::{Auth, Gateway};
use informer_testing::{Deadline, socket};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::TcpStream,
    time::Instant,
};

use crate::{cluster::Cluster, support::Served};

/// Pods in two namespaces; `ann` may list, watch and get pods in `shop`, `root` everything.
async fn mk_gateway() -> (Cluster, Served) {
    let cluster = Cluster::new();
    for name in ["shop", "bank"] {
        cluster.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }
    for (namespace, name) in [("shop", "web-0"), ("shop", "web-1"), ("bank", "vault-0")] {
        cluster.put(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}),
        );
    }
    cluster.grant("ann", "pods", "shop");
    cluster.grant("root", "*", "");
    let gateway = Gateway::builder(cluster.client()).auth(Auth::Kubernetes).build().expect("a gateway");
    (cluster, Served::of(gateway).await)
}

fn authorization(token: &str) -> Option<String> {
    (!token.is_empty()).then(|| format!("authorization: Bearer {token}"))
}

impl Served {
    /// Asks for a path with a token, if there is one.
    async fn send(&self, path: &str, token: &str) -> TcpStream {
        let request = socket::get_request(self.address, path, authorization(token).as_deref().as_slice());
        socket::open(self.address, request.as_bytes()).await
    }

    /// The code, the head and the body of an answer.
    async fn get(&self, path: &str, token: &str) -> (u16, String, String) {
        let answer = socket::get(self.address, path, authorization(token).as_deref().as_slice()).await;
        (answer.code, answer.head.to_lowercase(), answer.body)
    }

    async fn code(&self, path: &str, token: &str) -> u16 {
        self.get(path, token).await.0
    }
}

/// Everything that tells something about the cluster.
const ABOUT_THE_CLUSTER: [&str; 12] = [
    "/core/v1/pods",
    "/deploy",
    "/api",
    "/apis",
    "/api/v1",
    "/api/v1/pods",
    "/api/v1/namespaces/shop/pods/web-0",
    "/_stream/core/v1/pods",
    "/_resources",
    "/_informers",
    "/_owned/some-uid",
    "/metrics",
];

#[tokio::test]
async fn without_a_good_token_nothing_is_told_about_the_cluster() {
    let (_cluster, served) = mk_gateway().await;
    for path in ABOUT_THE_CLUSTER {
        for token in ["", "bad-token"] {
            let (code, head, body) = served.get(path, token).await;
            assert_eq!(code, 401, "{path}: {body}");
            assert!(head.contains("\r\nwww-authenticate: bearer"), "{path}: {head}");
            assert!(!body.contains("web-0"), "{path}: {body}");
        }
    }
    for path in ["/", "/livez", "/openapi.json"] {
        assert_eq!(served.code(path, "").await, 200, "{path}");
    }
}

#[tokio::test]
async fn a_probe_hears_whether_it_is_ready_and_no_more() {
    let (_cluster, served) = mk_gateway().await;
    assert_eq!(served.code("/core/v1/pods", "root-token").await, 200);
    assert_eq!(served.get("/readyz", "").await.2, "ok\n");
    for token in ["", "bad-token", "ann-token"] {
        let (code, _, body) = served.get("/readyz?verbose", token).await;
        assert_eq!(code, 200, "{body}");
        assert!(!body.contains("pods"), "{token:?}: {body}");
        assert!(body.contains("a token that may get /_informers") && body.ends_with("\nok\n"), "{body}");
    }
    let (_, _, body) = served.get("/readyz?verbose", "root-token").await;
    assert!(body.contains("[+] pods"), "{body}");
    // It waits for a resource that there is not.
    let never = ["podz".parse().expect("a name")];
    let gateway = served.gateway.clone();
    let loading = tokio::spawn(async move { gateway.preload(&never, |_, _| {}).await });
    let (mut code, mut body, deadline) = (200, String::new(), Deadline::start());
    while code == 200 {
        deadline.check("not ready");
        (code, _, body) = served.get("/readyz", "").await;
    }
    assert_eq!(code, 503);
    assert!(!body.contains("pods") && body.ends_with("not ready\n"), "{body}");
    loading.abort();
}

#[tokio::test]
async fn when_the_cluster_does_not_answer_nothing_is_told_about_it() {
    let (cluster, served) = mk_gateway().await;
    assert_eq!(served.code("/core/v1/pods", "root-token").await, 200);
    cluster.break_reviews(true);
    for path in ABOUT_THE_CLUSTER {
        let (code, _, body) = served.get(path, "ann-token").await;
        assert_eq!(code, 503, "{path}: {body}");
    }
}

#[tokio::test]
async fn a_list_over_all_namespaces_has_what_the_caller_may_see_and_counts_no_more() {
    let (_cluster, served) = mk_gateway().await;
    for (token, total, sees_bank) in [("ann-token", 2, false), ("root-token", 3, true)] {
        for path in
            ["/core/v1/pods", "/core/v1/pods?limit=1", "/core/v1/pods?as=table", "/core/v1/pods?explain=1"]
        {
            let (code, head, body) = served.get(path, token).await;
            assert_eq!(code, 200, "{path}: {body}");
            assert!(head.contains(&format!("\r\nx-total-count: {total}\r\n")), "{path}: {head}");
            if !path.contains("limit") {
                assert!(body.contains("web-1"), "{path}: {body}");
                assert_eq!(body.contains("vault-0"), sees_bank, "{path}: {body}");
            }
        }
        let (_, _, body) = served.get("/api/v1/pods", token).await;
        let list: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(list["items"].as_array().map(Vec::len), Some(total), "{body}");
        let (_, _, body) = served.get("/api/v1/pods?limit=1", token).await;
        let list: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(list["metadata"]["remainingItemCount"], json!(total - 1), "{body}");
    }
}

#[tokio::test]
async fn what_is_elsewhere_is_forbidden_whether_it_is_there_or_not() {
    let (_cluster, served) = mk_gateway().await;
    for path in [
        "/core/v1/pods?namespace=bank",
        "/api/v1/namespaces/bank/pods",
        "/api/v1/namespaces/bank/pods/vault-0",
        "/api/v1/namespaces/bank/pods/no-such-pod",
        "/api/v1/namespaces/bank/pods?watch=1",
        "/_stream/core/v1/pods?namespace=bank",
        "/api/v1/nodes",
        "/api/v1/configmaps",
        "/apis/apps/v1/namespaces/shop/deployments",
        "/_informers",
        "/metrics",
    ] {
        let (code, _, body) = served.get(path, "ann-token").await;
        assert_eq!(code, 403, "{path}: {body}");
        assert!(body.contains("User \\\"ann\\\" cannot "), "{path}: {body}");
    }
    assert_eq!(served.code("/api/v1/namespaces/shop/pods/web-0", "ann-token").await, 200);
    assert_eq!(served.code("/api/v1/namespaces/shop/pods/no-such-pod", "ann-token").await, 404);
}

/// Reads lines until one is this.
async fn until(lines: &mut Lines<BufReader<TcpStream>>, wanted: &str) -> Vec<String> {
    let (mut read, deadline) = (Vec::new(), Deadline::start());
    while let Some(line) = lines.next_line().await.expect("a line") {
        deadline.check(wanted);
        read.push(line);
        if read.last().is_some_and(|line| line == wanted) {
            return read;
        }
    }
    panic!("the stream ended before {wanted:?}: {read:#?}");
}

fn mk_pod(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}})
}

async fn mk_stream(served: &Served) -> Lines<BufReader<TcpStream>> {
    let stream = served.send("/_stream/core/v1/pods", "ann-token").await;
    let mut lines = BufReader::new(stream).lines();
    let snapshot = until(&mut lines, "event: synced").await;
    assert!(!snapshot.iter().any(|line| line.contains("vault-0")), "{snapshot:#?}");
    lines
}

#[tokio::test]
async fn a_stream_has_what_the_caller_may_see() {
    let (cluster, served) = mk_gateway().await;
    let mut lines = mk_stream(&served).await;
    for (namespace, name) in [("bank", "vault-1"), ("shop", "web-2")] {
        cluster.put(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}),
        );
    }
    let read = until(&mut lines, "event: added").await;
    let data = lines.next_line().await.expect("a line").expect("data");
    assert!(data.contains("web-2"), "{data}");
    assert!(!read.iter().any(|line| line.contains("vault-1")), "{read:#?}");
}

#[tokio::test]
async fn a_stream_ends_within_ten_seconds_when_access_is_taken_away() {
    for take_away in [Cluster::revoke_all as fn(&Cluster), Cluster::end_tokens] {
        let (cluster, served) = mk_gateway().await;
        let mut lines = mk_stream(&served).await;
        tokio::time::pause();
        let begun = Instant::now();
        take_away(&cluster);
        until(&mut lines, "event: end").await;
        assert!(begun.elapsed() <= Duration::from_secs(10), "{:?}", begun.elapsed());
        let data = lines.next_line().await.expect("a line").expect("data");
        assert!(data.contains("access revoked"), "{data}");
        tokio::time::resume();
    }
}
