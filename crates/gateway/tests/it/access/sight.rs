//! What the caller sees depends on the rules of the cluster, not on what happens to be in memory.

use std::time::Duration;

use http_body_util::BodyExt;
use informer_testing::Deadline;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::TcpStream,
};
use tower_service::Service;

use super::{mk_gateway, mk_pod, mk_stream, until};

#[tokio::test]
async fn what_is_empty_is_an_empty_list_and_not_forbidden() {
    let (cluster, served) = mk_gateway().await;
    cluster.grant("ann", "services", "shop");
    for _ in 0..3 {
        let (code, _, body) = served.get("/core/v1/services", "ann-token").await;
        assert_eq!((code, body.as_str()), (200, r#"{"msg":[]}"#), "in memory or not");
    }
    cluster.remove("pods", "shop/web-0");
    cluster.remove("pods", "shop/web-1");
    let (code, _, body) = served.get("/core/v1/pods?minResourceVersion=0", "ann-token").await;
    assert_eq!(code, 200, "{body}");
}

#[tokio::test]
async fn a_stream_goes_on_when_its_last_object_is_deleted() {
    let (cluster, served) = mk_gateway().await;
    let mut lines = mk_stream(&served).await;
    cluster.remove("pods", "shop/web-0");
    cluster.remove("pods", "shop/web-1");
    until(&mut lines, "event: deleted").await;
    until(&mut lines, "event: deleted").await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(30)).await;
    tokio::time::resume();
    cluster.put(mk_pod("shop", "web-9"));
    let read = until(&mut lines, "event: added").await;
    assert!(!read.iter().any(|line| line == "event: end"), "{read:#?}");
}

#[tokio::test]
async fn a_namespace_that_is_deleted_or_made_does_not_end_a_stream() {
    let (cluster, served) = mk_gateway().await;
    cluster.grant("ann", "pods", "lab");
    cluster.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}}));
    let mut lines = mk_stream(&served).await;
    cluster.remove("namespaces", "lab");
    cluster.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foreign"}}));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(30)).await;
    tokio::time::resume();
    cluster.put(mk_pod("shop", "web-9"));
    let read = until(&mut lines, "event: added").await;
    assert!(!read.iter().any(|line| matches!(line.as_str(), "event: end" | "event: reset")), "{read:#?}");
}

#[tokio::test]
async fn who_may_see_more_or_less_than_before_is_told_everything_again() {
    let (cluster, served) = mk_gateway().await;
    let mut lines = mk_stream(&served).await;
    tokio::time::pause();
    cluster.grant("ann", "pods", "bank");
    until(&mut lines, "event: reset").await;
    let read = until(&mut lines, "event: synced").await;
    assert!(read.iter().any(|line| line.contains("vault-0")), "{read:#?}");
    cluster.revoke("ann", "pods", "shop");
    until(&mut lines, "event: reset").await;
    let read = until(&mut lines, "event: synced").await;
    assert!(!read.iter().any(|line| line.contains("web-0")), "{read:#?}");
}

#[tokio::test]
async fn a_client_of_kubernetes_lists_again_when_it_may_see_more_or_less() {
    let (cluster, served) = mk_gateway().await;
    let stream = served.send("/api/v1/pods?watch=1", "ann-token").await;
    let mut lines = tokio::io::BufReader::new(stream).lines();
    let deadline = Deadline::start();
    while !lines.next_line().await.expect("a line").expect("an event").contains("web-1") {
        deadline.check("web-1");
    }
    tokio::time::pause();
    cluster.revoke("ann", "pods", "shop");
    cluster.grant("ann", "pods", "bank");
    let line = event(&mut lines).await;
    assert!(line.contains(r#""code":410"#) && line.contains("what you may see has changed"), "{line}");
}

#[tokio::test]
async fn access_that_cannot_be_checked_ends_a_stream_that_can_go_on_later() {
    let (cluster, served) = mk_gateway().await;
    let mut lines = mk_stream(&served).await;
    tokio::time::pause();
    cluster.break_reviews(true);
    let read = until(&mut lines, "event: end").await;
    assert!(!read.iter().any(|line| line == "id:"), "the client keeps its place: {read:#?}");
    let data = lines.next_line().await.expect("a line").expect("data");
    assert!(data.contains("access cannot be checked"), "{data}");
    assert_eq!(served.code("/core/v1/pods", "ann-token").await, 503, "nothing is told meanwhile");
    cluster.break_reviews(false);
    assert_eq!(served.code("/core/v1/pods", "ann-token").await, 200);
}

#[tokio::test]
async fn who_may_see_one_object_may_list_and_watch_it_by_its_name() {
    let (cluster, served) = mk_gateway().await;
    cluster.grant_named("eve", "pods", "shop", "web-1");
    let named = "fieldSelector=metadata.name%3Dweb-1";
    for path in [
        format!("/api/v1/namespaces/shop/pods?{named}"),
        format!("/api/v1/pods?{named}"),
        format!("/core/v1/pods?namespace=shop&{named}"),
        "/api/v1/namespaces/shop/pods/web-1".to_owned(),
    ] {
        let (code, _, body) = served.get(&path, "eve-token").await;
        assert_eq!(code, 200, "{path}: {body}");
        assert!(body.contains("web-1") && !body.contains("web-0"), "{path}: {body}");
    }
    for path in [
        "/api/v1/namespaces/shop/pods",
        "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dweb-0",
        "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name!%3Dweb-0",
        "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name+in+(web-0,web-1)",
        "/api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3Dweb-1",
        "/api/v1/namespaces/shop/pods/web-0",
    ] {
        assert_eq!(served.code(path, "eve-token").await, 403, "{path}");
    }
    let stream = served.send(&format!("/_stream/core/v1/pods?{named}"), "eve-token").await;
    let mut lines = tokio::io::BufReader::new(stream).lines();
    let read = until(&mut lines, "event: synced").await;
    assert!(read.iter().any(|line| line.contains("web-1")), "{read:#?}");
}

/// The next event of a watch that comes over a socket, between the lengths of its pieces.
async fn event(lines: &mut Lines<BufReader<TcpStream>>) -> String {
    let deadline = Deadline::start();
    loop {
        deadline.check("an event");
        let line = lines.next_line().await.expect("a line").expect("an event, not the end");
        if line.starts_with('{') {
            return line;
        }
    }
}

#[tokio::test]
async fn who_may_see_one_object_may_watch_it_by_its_name_and_hears_of_no_other() {
    let (cluster, served) = mk_gateway().await;
    cluster.grant_named("eve", "pods", "shop", "web-1");
    let named = "watch=1&fieldSelector=metadata.name%3Dweb-1";
    for path in [format!("/api/v1/namespaces/shop/pods?{named}"), format!("/api/v1/pods?{named}")] {
        let mut lines = BufReader::new(served.send(&path, "eve-token").await).lines();
        let first = event(&mut lines).await;
        assert!(first.contains("ADDED") && first.contains("web-1"), "{path}: {first}");
        cluster.put(mk_pod("shop", "web-0"));
        cluster.put(mk_pod("bank", "web-1"));
        cluster.put(mk_pod("shop", "web-1"));
        let next = event(&mut lines).await;
        assert!(next.contains("MODIFIED") && next.contains(r#""namespace":"shop""#), "{path}: {next}");
        assert!(next.contains("web-1"), "{path}: {next}");
    }
    for path in [
        "/api/v1/namespaces/shop/pods?watch=1",
        "/api/v1/pods?watch=1",
        "/api/v1/namespaces/shop/pods?watch=1&fieldSelector=metadata.name%3Dweb-0",
        "/api/v1/namespaces/bank/pods?watch=1&fieldSelector=metadata.name%3Dweb-1",
        "/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dvault-0",
        "/api/v1/namespaces/shop/pods?watch=1&fieldSelector=metadata.name!%3Dweb-0",
        "/api/v1/namespaces/shop/pods?watch=1&fieldSelector=metadata.name+in+(web-0,web-1)",
    ] {
        let (code, _, body) = served.get(path, "eve-token").await;
        assert_eq!(code, 403, "{path}: {body}");
    }
}

#[tokio::test]
async fn access_that_cannot_be_checked_ends_a_watch_in_these_words() {
    let (cluster, served) = mk_gateway().await;
    let path = "/api/v1/namespaces/shop/pods?watch=1";
    let mut lines = BufReader::new(served.send(path, "ann-token").await).lines();
    for name in ["web-0", "web-1"] {
        let line = event(&mut lines).await;
        assert!(line.contains(name), "{line}");
    }
    tokio::time::pause();
    cluster.break_reviews(true);
    let end = event(&mut lines).await;
    let end: Value = serde_json::from_str(&end).expect("JSON");
    assert_eq!((&end["type"], &end["object"]["code"]), (&json!("ERROR"), &json!(503)), "{end}");
    let words = end["object"]["message"].as_str().expect("a message");
    assert!(words.contains("access cannot be checked") && !words.contains("revoked"), "{words}");
    let deadline = Deadline::start();
    while let Some(line) = lines.next_line().await.expect("a line") {
        deadline.check("the end");
        assert!(!line.starts_with('{'), "nothing more is told: {line}");
    }
    cluster.break_reviews(false);
    let mut lines = BufReader::new(served.send(path, "ann-token").await).lines();
    assert!(event(&mut lines).await.contains("web-0"), "the client comes back");
}

#[tokio::test]
async fn an_explanation_counts_nothing_that_the_caller_may_not_see() {
    let (cluster, served) = mk_gateway().await;
    cluster.grant_named("eve", "pods", "shop", "web-1");
    cluster.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "bank", "name": "vault-1", "labels": {"app": "vault"}},
    }));
    let explained = async |query: &str, token: &str| {
        let (code, _, body) = served.get(&format!("/core/v1/pods?explain=1&{query}"), token).await;
        assert_eq!(code, 200, "{body}");
        let explanation = serde_json::from_str::<Value>(&body).expect("JSON")["explain"].take();
        json!([explanation["index"], explanation["scanned"], explanation["matched"]])
    };
    let elsewhere = explained("labelSelector=app%3Dvault", "ann-token").await;
    assert_eq!(elsewhere, explained("labelSelector=app%3Dnowhere", "ann-token").await);
    assert_eq!(elsewhere, json!(["namespace", 2, 0]));
    let named = explained("namespace=shop&fieldSelector=metadata.name%3Dweb-1", "eve-token").await;
    assert_eq!(named, json!(["namespace", 1, 1]), "others in the namespace are not counted");
}

#[tokio::test]
async fn what_is_in_a_later_namespace_of_the_same_name_is_not_told() {
    for path in ["/_stream/core/v1/pods", "/api/v1/pods?watch=1"] {
        let (cluster, served) = mk_gateway().await;
        let lab = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}});
        cluster.put(lab.clone());
        cluster.put(mk_pod("lab", "old-0"));
        cluster.grant("ann", "pods", "lab");
        let mut lines = tokio::io::BufReader::new(served.send(path, "ann-token").await).lines();
        let mut until = async |wanted: &str| {
            let (mut read, deadline) = (String::new(), Deadline::start());
            while !read.contains(wanted) {
                deadline.check(wanted);
                read.push_str(&lines.next_line().await.expect("a line").expect("no end"));
            }
            read
        };
        until("web-1").await;
        cluster.remove("pods", "lab/old-0");
        cluster.remove("namespaces", "lab");
        cluster.revoke("ann", "pods", "lab");
        assert!(until("old-0").await.to_lowercase().contains("deleted"), "{path}");
        tokio::time::pause();
        tokio::time::sleep(Duration::from_secs(20)).await;
        cluster.put(lab);
        cluster.put(mk_pod("lab", "new-0"));
        cluster.put(mk_pod("shop", "web-9"));
        let read = until("web-9").await;
        assert!(!read.contains("new-0"), "{path}: {read}");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn who_reads_late_is_told_nothing_more_of_a_namespace_that_has_gone() {
    let (cluster, served) = mk_gateway().await;
    cluster.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}}));
    cluster.put(mk_pod("lab", "old-0"));
    cluster.grant("ann", "pods", "lab");
    let request = http::Request::get("/_stream/core/v1/pods")
        .header("host", served.address.to_string())
        .header("authorization", "Bearer ann-token")
        .body(axum::body::Body::empty());
    let mut router = served.gateway.router(served.address).expect("a router");
    let mut body = router.call(request.expect("a request")).await.expect("an answer").into_body();
    let mut read = async || {
        let piece = body.frame().await.expect("no end").expect("no cut").into_data().expect("data");
        String::from_utf8_lossy(&piece).into_owned()
    };
    let deadline = Deadline::start();
    while !read().await.contains("event: synced") {
        deadline.check("synced");
    }
    tokio::time::pause();
    cluster.revoke("ann", "pods", "lab");
    tokio::time::sleep(Duration::from_secs(20)).await;
    // What has become of it since is for others.
    cluster.put(mk_pod("lab", "old-0"));
    cluster.remove("pods", "lab/old-0");
    cluster.remove("namespaces", "lab");
    tokio::time::sleep(Duration::from_secs(20)).await;
    let text = read().await;
    assert!(text.contains("event: reset") && !text.contains("old-0"), "{text}");
}

#[tokio::test]
async fn a_stream_that_has_waited_is_asked_about_before_it_tells_anything() {
    let (cluster, served) = mk_gateway().await;
    drop(mk_stream(&served).await);
    tokio::time::pause();
    cluster.revoke_all();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let path = format!("/_stream/core/v1/pods?minResourceVersion={}", cluster.version() + 1);
    let stream = served.send(&path, "ann-token").await;
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    cluster.put(mk_pod("shop", "web-9"));
    let mut lines = tokio::io::BufReader::new(stream).lines();
    let read = until(&mut lines, "event: end").await;
    assert!(!read.iter().any(|line| line.contains("web-")), "{read:#?}");
}

#[tokio::test]
async fn who_may_not_read_which_kinds_there_are_does_not_learn_it_from_refusals() {
    let (_cluster, served) = mk_gateway().await;
    let named =
        |path: &str, plural: &str, group: &str| path.replace("PLURAL", plural).replace("GROUP", group);
    for path in [
        "/GROUP/v1/PLURAL",
        "/GROUP/v1/PLURAL?namespace=bank",
        "/_stream/GROUP/v1/PLURAL?namespace=bank",
        "/_stream/GROUP/v1/PLURAL?namespace=bank&namespace=shop",
        "/apis/GROUP/v1/PLURAL",
        "/apis/GROUP/v1/PLURAL?watch=1",
        "/apis/GROUP/v1/namespaces/bank/PLURAL",
        "/apis/GROUP/v1/namespaces/bank/PLURAL/one",
        "/apis/GROUP/v1/namespaces/bank/PLURAL?fieldSelector=metadata.name%3Done",
        "/_owned/uid?resources=GROUP/v1/PLURAL",
    ] {
        let (code, _, there) = served.get(&named(path, "deployments", "apps"), "ann-token").await;
        assert_eq!(code, 403, "{path}: {there}");
        for (plural, group) in [("deploymentz", "apps"), ("tests", "example.com")] {
            let (code, _, missing) = served.get(&named(path, plural, group), "ann-token").await;
            let expected = there.replace("deployments", plural).replace("apps", group);
            assert_eq!((code, missing), (403, expected), "{path}");
            let (code, _, told) = served.get(&named(path, plural, group), "root-token").await;
            assert_eq!(code, 404, "who may read discovery is told the truth: {path}: {told}");
        }
    }
    // What a short name means is known to those who may read discovery.
    for path in ["/apps/v1/PLURAL", "/_stream/apps/v1/PLURAL", "/_owned/uid?resources=PLURAL"] {
        let (code, _, there) = served.get(&named(path, "deploy", ""), "ann-token").await;
        let (_, _, missing) = served.get(&named(path, "yolped", ""), "ann-token").await;
        assert_eq!((code, there.replace("deploy", "yolped")), (403, missing), "{path}");
    }
    // Names that a path of Kubernetes does not have, though they mean something elsewhere.
    for path in ["/apis/apps/v1/deploy", "/api/v1/namespaces/bank/nodes", "/api/v1/namespaces/bank/bindings"]
    {
        assert_eq!(served.code(path, "ann-token").await, 403, "{path}");
        assert_ne!(served.code(path, "root-token").await, 403, "{path}");
    }
}
