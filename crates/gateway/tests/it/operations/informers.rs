//! What is in memory, for how long, and how much may be.

use std::time::Duration;

use informer_testing::Deadline;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::*;

async fn informers(stage: &Stage) -> Vec<Value> {
    stage.get("/_informers").await.ok()["informers"].as_array().expect("informers").clone()
}

async fn paths(stage: &Stage) -> Vec<String> {
    let path = |informer: &Value| informer["path"].as_str().expect("a path").to_owned();
    informers(stage).await.iter().map(path).collect()
}

#[tokio::test]
async fn an_informer_begins_with_the_first_request_and_tells_how_it_is() {
    let stage = Stage::open_with(mk_demo(25), |builder| builder.memory_limit(1 << 40)).await;
    assert!(informers(&stage).await.is_empty(), "nothing is asked of the cluster before somebody asks");
    let list = stage.get("/core/v1/pods").await;
    let stream = stage.stream("/_stream/core/v1/pods", &[]).await;
    let about = stage.get("/_informers").await.ok();
    assert_eq!((&about["memory"]["limit"], &about["memory"]["objects"]), (&json!(1u64 << 40), &json!(25)));
    assert!(about["memory"]["resident"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{about}");
    let pods = &about["informers"][0];
    let expected = json!({
        "path": "core/v1/pods", "kind": "Pod", "objects": 25, "state": "synced", "reason": null, "lagSeconds": 0.0,
        "resourceVersion": list.header("x-resource-version"), "quarantined": [], "streams": 1, "idleSeconds": 0,
    });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(pods[member], *value, "{member} of {pods}");
    }
    let bytes = pods["bytes"].as_u64().expect("bytes");
    let whole: usize = list.items().iter().map(|pod| pod.to_string().len()).sum();
    assert!(bytes.abs_diff(whole as u64) < bytes / 10, "{bytes} and {whole}");
    assert!(
        pods["ageSeconds"].is_f64() && pods["eventsTotal"].is_u64() && pods["relists"].is_u64(),
        "{pods}"
    );
    drop(stream);
    stage.close().await;
}

#[tokio::test]
async fn an_object_of_an_odd_shape_is_served_and_not_quarantined() {
    let server = mk_demo(5);
    let stage = Stage::open(server).await;
    let mut odd = mk_pod("default", "odd", json!({}));
    odd["spec"] = json!("not a spec");
    stage.put([odd]);
    let list = stage.get("/core/v1/pods").await;
    assert_eq!(list.items().len(), 6, "the gateway needs no more than metadata");
    assert_eq!(informers(&stage).await[0]["quarantined"], json!([]));
    stage.close().await;
}

#[tokio::test]
async fn resources_are_all_that_can_be_asked_for_with_their_states() {
    let stage = Stage::open(mk_demo(5)).await;
    stage.get("/apps/v1/deployments").await.ok();
    let about = stage.get("/_resources").await.ok();
    assert_eq!(about["silent"], json!([]));
    let resources = about["resources"].as_array().expect("resources");
    let of = |path: &str| {
        resources.iter().find(|r| r["path"] == path).unwrap_or_else(|| panic!("{path} is served"))
    };
    assert_eq!(
        *of("core/v1/pods"),
        json!({
            "group": "", "version": "v1", "resource": "pods", "kind": "Pod", "singular": "pod", "shortNames": ["po"],
            "categories": ["all"], "namespaced": true, "path": "core/v1/pods", "state": "idle",
        })
    );
    assert_eq!(of("apps/v1/deployments")["state"], "synced");
    assert_eq!(of("core/v1/nodes")["namespaced"], false);
    for resource in resources {
        let path = resource["path"].as_str().expect("a path");
        assert_eq!(stage.get(&format!("/{path}?limit=1")).await.code, 200, "{path}");
    }
    assert_eq!(paths(&stage).await.len(), resources.len());
    stage.close().await;
}

#[tokio::test]
async fn what_nobody_asks_for_ends_and_comes_back() {
    let stage =
        Stage::open_with(mk_demo(5), |builder| builder.idle_timeout(Duration::from_millis(300))).await;
    stage.gateway.preload(&["nodes".parse().expect("a resource")], |_, _| ()).await;
    let followed = stage.stream("/_stream/apps/v1/deployments", &[]).await;
    assert_eq!(stage.get("/core/v1/pods").await.items().len(), 5);
    let deadline = Deadline::start();
    while paths(&stage).await.contains(&"core/v1/pods".to_owned()) {
        deadline.check("pods end");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(
        paths(&stage).await,
        ["apps/v1/deployments", "core/v1/nodes"],
        "what is followed or preloaded stays"
    );
    stage.put([mk_pod("default", "meanwhile", json!({}))]);
    assert_eq!(stage.get("/core/v1/pods").await.items().len(), 6, "it begins anew");
    drop(followed);
    while paths(&stage).await != ["core/v1/nodes"] {
        deadline.check("deployments end");
        sleep(Duration::from_millis(20)).await;
    }
    stage.close().await;
}

#[tokio::test]
async fn with_too_much_in_memory_nothing_new_is_begun() {
    let stage = Stage::open_with(mk_demo(5), |builder| builder.memory_limit(1 << 20)).await;
    let message = stage.get("/core/v1/pods").await.says(507);
    assert!(
        message.contains("pods would not fit") && message.contains("--memory-limit is 1 MiB"),
        "{message}"
    );
    stage.get("/api/v1/pods").await.fails(507);
    stage.get("/_stream/core/v1/pods").await.fails(507);
    assert!(informers(&stage).await.is_empty());
    assert_eq!(stage.get("/livez").await.code, 200);
    stage.get("/_resources").await.ok();
    stage.close().await;
}

#[tokio::test]
async fn only_the_namespaces_of_the_gateway_are_served() {
    let stage = Stage::open_with(mk_server(), |builder| builder.namespaces(["shop"])).await;
    stage.put([
        mk_namespace("shop"),
        mk_namespace("bank"),
        mk_pod("shop", "web-0", json!({})),
        mk_pod("bank", "api-0", json!({})),
    ]);
    assert_eq!(stage.get("/core/v1/pods").await.names(), ["web-0"]);
    assert_eq!(stage.get("/core/v1/pods?namespace=bank").await.items(), [] as [Value; 0]);
    stage.get("/api/v1/namespaces/bank/pods/api-0").await.fails(404);
    assert!(
        stage.get("/core/v1/namespaces").await.names().contains(&"bank".to_owned()),
        "those in none are there"
    );
    stage.close().await;
}
