//! Requests that are not meant well, against a whole gateway: the right code, a `Status`, and headers that keep every
//! answer where it belongs.

use informer_apiserver::ApiServer;
use informer_gateway::Gateway;
use informer_testing::socket::{self, Answer};
use serde_json::{Value, json};

use crate::support::Served;

async fn mk_gateway() -> Served {
    let server = ApiServer::builder().seed(1).build();
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "namespace": "default"}});
    server.put(pod).expect("a pod");
    let gateway = Gateway::builder(server.client())
        .allow_host("gateway.example.com".parse().expect("a host"))
        .build()
        .expect("a gateway");
    Served::of(gateway).await
}

fn has(answer: &Answer, header: &str) -> bool {
    answer.head.lines().any(|line| line.eq_ignore_ascii_case(header))
}

/// Sends a request line and headers, with the right `Host` unless there is one.
async fn send(served: &Served, line: &str, headers: &[&str]) -> Answer {
    let mut request = format!("{line}\r\nconnection: close\r\n");
    if !headers.iter().any(|header| header.to_lowercase().starts_with("host:")) {
        request += &format!("host: {}\r\n", served.address);
    }
    headers.iter().for_each(|header| request += &format!("{header}\r\n"));
    request += "\r\n";
    socket::send(served.address, &request).await
}

async fn get(served: &Served, path: &str, headers: &[&str]) -> Answer {
    send(served, &format!("GET {path} HTTP/1.1"), headers).await
}

/// What every answer has.
fn assert_hardened(answer: &Answer) {
    for header in [
        "x-content-type-options: nosniff",
        "x-frame-options: DENY",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(has(answer, header), "{header} is missing: {}", answer.head);
    }
    let head = answer.head.to_lowercase();
    assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
    assert!(head.contains("cache-control: no-"), "{head}");
    assert!(!head.contains("access-control-"), "{head}");
}

#[tokio::test]
async fn a_refusal_has_the_right_code_and_says_why() {
    let served = mk_gateway().await;
    let (long_url, long_selector) = ("x".repeat(17 * 1024), "x".repeat(9 * 1024));
    let long_header = format!("x: {}", "x".repeat(40 * 1024));
    let many_headers = vec!["x: 1"; 120];
    for (line, headers, code) in [
        ("GET /core/v1/pods HTTP/1.1", &["host: evil.example"][..], 421),
        ("GET /core/v1/pods HTTP/1.1", &["host: localhost:1"], 421),
        ("GET http://evil.example/core/v1/pods HTTP/1.1", &[], 421),
        ("GET /core/v1/pods HTTP/1.1", &["host: a", "host: b"], 400),
        ("GET /core/v1/pods HTTP/1.1", &["origin: http://evil.example"], 403),
        ("GET /core/v1/pods HTTP/1.1", &["origin: null"], 403),
        ("GET /core/v1/pods HTTP/1.1", &["sec-fetch-site: cross-site", "sec-fetch-mode: no-cors"], 403),
        ("POST /core/v1/pods HTTP/1.1", &["content-length: 0"], 405),
        ("DELETE /api/v1/namespaces/default/pods/web-0 HTTP/1.1", &[], 405),
        ("OPTIONS /core/v1/pods HTTP/1.1", &[], 405),
        ("GET /core/v1/pods HTTP/1.1", &["content-length: 5"], 400),
        ("GET /core/v1/pods HTTP/1.1", &["transfer-encoding: chunked"], 400),
        ("GET /core/v1/../../etc/passwd HTTP/1.1", &[], 400),
        ("GET /api/v1/namespaces/default/pods/%2e%2e%2f%2e%2e HTTP/1.1", &[], 400),
        ("GET /core/v1/pods%00 HTTP/1.1", &[], 400),
        ("GET /core/v1/%c0%af HTTP/1.1", &[], 400),
        ("GET /core\\v1\\pods HTTP/1.1", &[], 400),
        ("GET /core/v1/pods HTTP/1.1", &[&long_header], 431),
        ("GET /core/v1/pods HTTP/1.1", &many_headers, 431),
        (&format!("GET /{long_url} HTTP/1.1"), &[], 414),
        (&format!("GET /core/v1/pods?labelSelector={long_selector} HTTP/1.1"), &[], 400),
    ] {
        let answer = send(&served, line, headers).await;
        let shown: String = line.chars().take(80).collect();
        assert_eq!(answer.code, code, "{shown} {headers:.3?}: {}", answer.body);
        let status: Value = serde_json::from_str(&answer.body).expect("JSON");
        assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)), "{shown}");
        assert!(answer.body.len() < 1_000, "{shown}: a refusal is short");
        assert_hardened(&answer);
        assert_eq!(has(&answer, "allow: GET, HEAD"), code == 405, "{shown}: {}", answer.head);
    }
}

#[tokio::test]
async fn a_request_without_a_host_is_refused_in_every_version() {
    let served = mk_gateway().await;
    for version in ["1.0", "1.1"] {
        let request = format!("GET /core/v1/pods HTTP/{version}\r\nconnection: close\r\n\r\n");
        let answer = socket::send(served.address, &request).await;
        assert!(answer.head.starts_with(&format!("HTTP/{version} 400")), "{answer:?}");
    }
}

#[tokio::test]
async fn what_is_meant_well_is_answered() {
    let served = mk_gateway().await;
    let port = served.address.port();
    let localhost = format!("host: localhost:{port}");
    let origin = format!("origin: http://{}", served.address);
    for headers in [
        &[][..],
        &[&*localhost],
        &["host: gateway.example.com"],
        &["host: gateway.example.com:8443", "origin: https://gateway.example.com:8443"],
        &[&*origin],
        &["sec-fetch-site: same-origin", "sec-fetch-mode: cors", "sec-fetch-dest: empty"],
        &["sec-fetch-site: none", "sec-fetch-mode: navigate", "sec-fetch-dest: document"],
    ] {
        let answer = get(&served, "/core/v1/pods", headers).await;
        assert_eq!(answer.code, 200, "{headers:?}: {}", answer.body);
        assert!(answer.body.contains("web-0"));
        assert_hardened(&answer);
    }
    let head = send(&served, "HEAD /core/v1/pods HTTP/1.1", &[]).await;
    assert_eq!((head.code, head.body.as_str()), (200, ""));
}

#[tokio::test]
async fn a_link_on_another_site_leads_to_the_page_and_not_to_data() {
    let served = mk_gateway().await;
    let link = ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate", "sec-fetch-dest: document"];
    let page = get(&served, "/", &link).await;
    assert_eq!(page.code, 200);
    assert_hardened(&page);
    for path in ["/core/v1/pods", "/api/v1/pods", "/_stream/core/v1/pods", "/_informers", "/metrics"] {
        assert_eq!(get(&served, path, &link).await.code, 403, "{path}");
    }
    let frame = ["sec-fetch-site: cross-site", "sec-fetch-mode: navigate", "sec-fetch-dest: iframe"];
    assert_eq!(get(&served, "/", &frame).await.code, 403);
}
