//! Probes, metrics and the version.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    time::Duration,
};

use informer_apiserver::{Fault, Rule};
use informer_model::{ResourceArg, Status};
use serde_json::json;
use tokio::join;

use crate::support::*;

fn pods() -> Vec<ResourceArg> {
    vec!["pods".parse().expect("a resource")]
}

#[tokio::test]
async fn a_gateway_that_answers_is_alive_and_ready() {
    let stage = Stage::open(mk_server()).await;
    for path in ["/livez", "/healthz", "/readyz"] {
        let answer = stage.get(path).await;
        assert_eq!((answer.code, answer.text().as_str()), (200, "ok\n"), "{path}");
    }
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn it_is_not_ready_until_all_that_was_to_be_loaded_is() {
    let stage = Stage::inside(mk_demo(5), |builder| builder);
    stage.server.faults().add(Rule::new(Fault::Delay(Duration::from_secs(3))).resource("pods").times(1));
    let (resources, heard) = (pods(), Mutex::new(Vec::new()));
    let preload = stage.gateway.preload(&resources, |resource, loaded| {
        heard.lock().unwrap().push((resource.to_string(), loaded));
    });
    join!(preload, async {
        let before = stage.get("/readyz").await;
        assert_eq!(before.code, 503);
        assert!(
            before.text().starts_with("[-] preloaded\n") && before.text().ends_with("not ready\n"),
            "{}",
            before.text()
        );
        assert_eq!(stage.get("/livez").await.code, 200);
    });
    assert_eq!(*heard.lock().unwrap(), [("pods".to_owned(), Ok(5))]);
    assert_eq!(stage.get("/readyz").await.text(), "ok\n");
    let verbose = stage.get("/readyz?verbose").await.text();
    let lines: Vec<&str> = verbose.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[2]), (3, "[+] preloaded", "ok"), "{verbose}");
    assert!(lines[1].starts_with("[+] pods") && lines[1].contains(": 5 objects; watching"), "{verbose}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_loaded_is_told_and_tried_again() {
    let stage = Stage::inside(mk_demo(5), |builder| builder);
    let forbidden = Status::forbidden("pods", "", "", "no rights yet");
    let rule = stage.server.faults().add(Rule::new(Fault::Status(forbidden)).resource("pods"));
    let (resources, heard) = (pods(), Mutex::new(Vec::new()));
    let preload = stage.gateway.preload(&resources, |_, loaded| {
        if loaded.is_err() {
            stage.server.faults().remove(rule);
        }
        heard.lock().unwrap().push(loaded);
    });
    preload.await;
    let heard = heard.into_inner().unwrap();
    assert!(heard.len() >= 2 && heard.last() == Some(&Ok(5)), "{heard:?}");
    assert!(heard[0].as_ref().is_err_and(|why| why.contains("no rights yet")), "{heard:?}");
    assert_eq!(stage.get("/readyz").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_what_the_cluster_refuses_is_told_so() {
    let stage = Stage::inside(mk_demo(5), |builder| builder);
    let forbidden = Status::forbidden("pods", "", "", "no rights");
    stage.server.faults().add(Rule::new(Fault::Status(forbidden)).resource("pods"));
    let message = stage.get("/core/v1/pods").await.says(403);
    assert!(
        message.contains("the cluster refuses it to the gateway") && message.contains("no rights"),
        "{message}"
    );
    stage.get("/api/v1/pods").await.fails(403);
    assert_eq!(stage.get("/apis/apps/v1/deployments").await.code, 200, "others are not concerned");
}

/// Reads the text format: the families, and each sample with its labels.
fn read_metrics(text: &str) -> (BTreeMap<String, String>, BTreeMap<String, f64>) {
    let (mut families, mut samples) = (BTreeMap::new(), BTreeMap::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').expect("a type");
            assert!(families.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} comes twice");
        } else if line == "# EOF" {
            assert!(lines.peek().is_none(), "nothing comes after the end");
            return (families, samples);
        } else if !line.starts_with("# ") {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            assert!(
                samples.insert(name.to_owned(), value.parse().expect("a number")).is_none(),
                "{name} twice"
            );
            let base = name.split('{').next().unwrap_or_default();
            let belongs = families.keys().any(|family| base.starts_with(family.as_str()));
            assert!(belongs, "{name} is of a family");
        }
    }
    panic!("the text has no end");
}

async fn open_metrics(stage: &Stage) -> Answer {
    stage.get_with("/metrics", &[("accept", "application/openmetrics-text;version=1.0.0,*/*;q=0.1")]).await
}

#[tokio::test]
async fn metrics_tell_of_informers_and_of_requests() {
    let stage = Stage::open(mk_demo(30)).await;
    stage.get("/core/v1/pods").await.ok();
    stage.get("/core/v1/podz").await.says(404);
    stage.get("/api/v1/pods").await.ok();
    let answer = open_metrics(&stage).await;
    assert!(answer.header("content-type").starts_with("application/openmetrics-text"));
    let (families, samples) = read_metrics(&answer.text());
    let is_ours = |family: &String| family.starts_with("informer_") || family.starts_with("process_");
    assert!(families.keys().all(is_ours), "{families:?}");
    assert_eq!(families["informer_gateway_requests"], "counter");
    for (route, code) in [("resource", 200), ("resource", 404), ("kubernetes", 200)] {
        let name = format!("informer_gateway_requests_total{{route=\"{route}\",code=\"{code}\"}}");
        assert_eq!(samples.get(&name), Some(&1.0), "{name} in {samples:?}");
    }
    let told: BTreeSet<&str> = samples
        .keys()
        .filter(|name| name.contains("informer=\"pods"))
        .filter_map(|n| n.split('{').next())
        .collect();
    assert!(told.len() > 3, "{told:?}");
    let again = open_metrics(&stage).await;
    let (_, samples) = read_metrics(&again.text());
    assert_eq!(samples["informer_gateway_requests_total{route=\"operations\",code=\"200\"}"], 1.0);
    stage.close().await;
}

#[tokio::test]
async fn who_asks_for_plain_text_gets_the_format_of_prometheus() {
    let stage = Stage::open(mk_demo(5)).await;
    let stream = stage.stream("/_stream/core/v1/pods", &[]).await;
    for accept in ["text/plain", "*/*"] {
        let answer = stage.get_with("/metrics", &[("accept", accept)]).await;
        assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
        let text = answer.text();
        assert!(!text.contains("# EOF"), "{text}");
        for line in [
            "# TYPE informer_gateway_requests_total counter",
            "informer_gateway_requests_total{route=\"stream\",code=\"200\"} 1",
            "# TYPE informer_gateway_request_duration_seconds histogram",
            "informer_gateway_request_duration_seconds_count{route=\"stream\"} 1",
            "informer_gateway_streams 1",
            "# TYPE informer_gateway_connections gauge",
            "# TYPE process_cpu_seconds_total counter",
            "# TYPE process_resident_memory_bytes gauge",
            "# TYPE process_open_fds gauge",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is missing in {text}");
        }
    }
    drop(stream);
    stage.close().await;
}

#[tokio::test]
async fn what_the_last_changes_take_is_told_by_resource() {
    let stage = Stage::open(mk_demo(5)).await;
    stage.get("/core/v1/pods").await.ok();
    let taken = async || {
        let (_, samples) = read_metrics(&open_metrics(&stage).await.text());
        ["objects", "written"].map(|form| {
            let name = format!("informer_gateway_change_bytes{{resource=\"core/v1/pods\",form=\"{form}\"}}");
            *samples.get(&name).unwrap_or_else(|| panic!("{name} in {samples:?}"))
        })
    };
    let before = taken().await;
    stage.server.put(mk_pod("default", "new", json!({}))).expect("a pod");
    stage.get(&format!("/core/v1/pods?minResourceVersion={}", stage.server.version())).await.ok();
    let after = taken().await;
    assert!(after[0] > before[0] && after[1] == before[1], "{before:?}, {after:?}: nobody was told of it");
    stage.close().await;
}

#[tokio::test]
async fn paths_of_strangers_make_no_new_metrics() {
    let stage = Stage::open(mk_server()).await;
    for n in 0..20 {
        stage.get(&format!("/a{n}/b/c")).await;
        stage.get(&format!("/nothing-{n}")).await;
    }
    let (_, samples) = read_metrics(&open_metrics(&stage).await.text());
    let routes = samples.keys().filter(|name| name.starts_with("informer_gateway_requests_total")).count();
    assert!(routes <= 3, "{samples:?}");
    stage.close().await;
}

#[tokio::test]
async fn the_version_is_the_clusters_with_the_gateways() {
    let stage = Stage::open(mk_server()).await;
    let version = stage.get("/version").await.ok();
    let own = stage.server.client().apiserver_version().await.expect("a version");
    assert_eq!(version["gitVersion"], own.git_version);
    assert_eq!(version["informer"], env!("CARGO_PKG_VERSION"));
    stage.close().await;
}
