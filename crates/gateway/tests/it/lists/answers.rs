//! How an answer travels: how fresh it is, when it need not be sent again, and in which encoding.

use std::io::Read;

use informer_apiserver::DemoCluster;
use serde_json::json;
use tokio::join;

use crate::support::*;

const PODS: &str = "/core/v1/pods";

#[tokio::test]
async fn every_list_says_its_version_its_age_and_its_length() {
    let stage = Stage::open(mk_demo(30)).await;
    let version = stage.put([mk_pod("default", "newest", json!({}))]);
    for path in [PODS, "/api/v1/pods", "/core/v1/pods?fields=metadata.name", "/core/v1/pods?as=table"] {
        let answer = stage.get(path).await;
        assert_eq!(answer.items().len(), 31, "{path}");
        assert_eq!(answer.header("x-resource-version"), version, "{path}");
        assert_eq!(answer.header("x-total-count"), "31", "{path}");
        assert_eq!(answer.header("x-cache-age"), "0", "{path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    }
    for path in [PODS, "/api/v1/pods"] {
        let answer = stage.get(path).await;
        assert_eq!(answer.header("content-length"), answer.body.len().to_string(), "{path}");
    }
    stage.close().await;
}

#[tokio::test]
async fn a_list_waits_for_the_version_it_is_asked_for() {
    let stage = Stage::open(mk_demo(5)).await;
    assert_eq!(stage.get(PODS).await.items().len(), 5);
    let next = (stage.server.version() + 1).to_string();
    let parameters = [("minResourceVersion", next.as_str()), ("labelSelector", "late=yes")];
    let (answer, ()) = join!(stage.ask(PODS, &parameters), async {
        stage.put([mk_pod("default", "late", json!({"late": "yes"}))]);
    });
    assert_eq!(answer.names(), ["late"]);
    assert_eq!(answer.header("x-resource-version"), next);
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_does_not_come_is_504_with_the_current_one() {
    let stage = Stage::inside(mk_demo(5), |builder| builder);
    let current = stage.get(PODS).await.header("x-resource-version").to_owned();
    let message = stage.get("/core/v1/pods?minResourceVersion=999999999").await.says(504);
    assert!(message.contains("999999999") && message.contains(&format!("current: {current}")), "{message}");
    let answer = stage.get("/api/v1/pods?resourceVersion=999999999").await;
    answer.fails(504);
    assert_eq!(answer.json()["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

#[tokio::test]
async fn what_the_client_has_is_not_sent_again_until_it_changes() {
    let stage = Stage::open(mk_demo(5)).await;
    for path in [PODS, "/core/v1/pods?fields=metadata.name", "/api/v1/pods"] {
        let first = stage.get(path).await;
        let etag = first.header("etag");
        assert!(etag.starts_with("W/\"") && etag.ends_with('"'), "{path}: {etag}");
        let again = stage.get_with(path, &[("if-none-match", &format!("\"other\", {etag}"))]).await;
        assert_eq!((again.code, again.body.len(), again.header("etag")), (304, 0, etag), "{path}");
        assert_eq!(again.header("x-resource-version"), first.header("x-resource-version"), "{path}");
        assert_eq!(stage.get_with(path, &[("if-none-match", "\"other\"")]).await.code, 200, "{path}");
    }
    let etag = async |path: &str| stage.get(path).await.header("etag").to_owned();
    let before = etag(PODS).await;
    assert_ne!(before, etag("/core/v1/pods?namespace=default").await, "another question has another tag");
    assert_ne!(before, etag("/api/v1/pods").await, "another shape has another tag");
    let version = stage.put([mk_pod("default", "new", json!({}))]);
    let path = query(PODS, &[("minResourceVersion", &version)]);
    let changed = stage.get_with(&path, &[("if-none-match", &before)]).await;
    assert_eq!(changed.code, 200);
    assert_ne!(changed.header("etag"), before);
    stage.close().await;
}

#[tokio::test]
async fn a_compressed_answer_is_the_plain_one() {
    let stage = Stage::open(mk_demo(200)).await;
    for path in [PODS, "/api/v1/pods", "/core/v1/pods?fields=metadata", "/deploy"] {
        let plain = stage.get(path).await;
        assert_eq!(plain.header("content-encoding"), "");
        let gzip = stage.get_with(path, &[("accept-encoding", "gzip")]).await;
        assert_eq!(gzip.header("content-encoding"), "gzip", "{path}");
        assert!(gzip.header("vary").contains("accept-encoding"), "{path}");
        assert!(gzip.body.len() * 2 < plain.body.len(), "{path}");
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&gzip.body[..]).read_to_end(&mut text).expect("gzip");
        assert!(text == plain.body, "{path}");
        let zstd = stage.get_with(path, &[("accept-encoding", "gzip;q=0.5, zstd")]).await;
        assert_eq!(zstd.header("content-encoding"), "zstd", "{path}");
        assert_eq!(zstd.body[..4], [0x28, 0xb5, 0x2f, 0xfd], "{path}");
        assert_eq!(zstd.header("x-total-count"), plain.header("x-total-count"), "{path}");
    }
    let small = stage.get_with("/core/v1/pods?labelSelector=nobody", &[("accept-encoding", "gzip")]).await;
    assert_eq!(small.header("content-encoding"), "", "what is small is not worth it");
    stage.close().await;
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let stage = Stage::open(mk_demo(20)).await;
    for path in [PODS, "/deploy", "/api/v1/pods", "/api/v1/namespaces/default", "/version", "/", "/livez"] {
        let (get, head) = (stage.get(path).await, stage.send("HEAD", path, &[]).await);
        assert_eq!((head.code, head.body.len()), (200, 0), "{path}");
        for header in ["content-length", "content-type", "etag", "x-resource-version", "x-total-count"] {
            assert_eq!(head.header(header), get.header(header), "{path} {header}");
        }
    }
    assert_eq!(stage.send("HEAD", "/core/v1/podz", &[]).await.code, 404);
    stage.close().await;
}

#[tokio::test]
async fn managed_fields_are_in_no_answer() {
    let demo = DemoCluster::new(1, 20);
    assert!(
        demo.objects().all(|object| object["metadata"]["managedFields"].is_array()),
        "the cluster has them"
    );
    let stage = Stage::open(mk_demo(20)).await;
    for path in [
        PODS,
        "/deploy",
        "/api/v1/pods",
        "/apis/apps/v1/deployments",
        "/core/v1/pods?fields=metadata",
        "/core/v1/pods?fields=metadata.managedFields",
    ] {
        let answer = stage.get(path).await;
        assert_eq!(answer.code, 200);
        assert!(!answer.text().contains("managedFields"), "{path}");
    }
    stage.close().await;
}
