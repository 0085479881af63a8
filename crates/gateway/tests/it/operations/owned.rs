//! What an object owns.

use serde_json::{Value, json};

use crate::support::*;

fn mk_owned(kind: &str, name: &str, owners: &[&str]) -> Value {
    let group = if kind == "Pod" { "v1" } else { "apps/v1" };
    let owners: Vec<Value> = owners
        .iter()
        .map(|uid| json!({"apiVersion": "apps/v1", "kind": "Any", "name": "any", "uid": uid}))
        .collect();
    json!({
        "apiVersion": group,
        "kind": kind,
        "metadata": {"namespace": "default", "name": name, "uid": format!("uid-{name}"), "ownerReferences": owners},
    })
}

/// A deployment with two generations of pods, and something of somebody else.
async fn with_owners() -> Stage {
    let stage = Stage::open(mk_server()).await;
    stage.put([
        mk_owned("Deployment", "web", &[]),
        mk_owned("ReplicaSet", "web-1", &["uid-web"]),
        mk_owned("ReplicaSet", "web-2", &["uid-web"]),
        mk_owned("Pod", "web-2-a", &["uid-web-2"]),
        mk_owned("Pod", "web-2-b", &["uid-web-2"]),
        mk_owned("Pod", "web-1-a", &["uid-web-1"]),
        mk_owned("Pod", "stranger", &["uid-other"]),
    ]);
    stage
}

/// Each item as `depth owner name`.
fn tree(answer: &Answer) -> Vec<String> {
    let document = answer.ok();
    let items = document["items"].as_array().expect("items").iter();
    let text = |value: &Value| value.as_str().expect("a text").trim_start_matches("uid-").to_owned();
    items.map(|item| format!("{} {} {}", item["depth"], text(&item["owner"]), text(&item["name"]))).collect()
}

#[tokio::test]
async fn everything_that_an_object_owns_is_found_breadth_first() {
    let stage = with_owners().await;
    let answer = stage.get("/_owned/uid-web?resources=pods,replicasets.apps").await;
    assert_eq!(
        tree(&answer),
        ["1 web web-1", "1 web web-2", "2 web-1 web-1-a", "2 web-2 web-2-a", "2 web-2 web-2-b"]
    );
    let document = answer.ok();
    assert_eq!((&document["uid"], &document["complete"]), (&json!("uid-web"), &json!(true)));
    assert_eq!(document["searched"], json!(["apps/v1/replicasets", "core/v1/pods"]));
    assert_eq!(
        document["items"][2],
        json!({
            "depth": 2, "owner": "uid-web-1", "path": "core/v1/pods", "kind": "Pod", "namespace": "default",
            "name": "web-1-a", "uid": "uid-web-1-a",
        })
    );
    stage.close().await;
}

#[tokio::test]
async fn only_what_is_in_memory_is_searched_unless_more_is_named() {
    let stage = with_owners().await;
    assert_eq!(stage.get("/_owned/uid-web").await.ok()["searched"], json!([]));
    stage.get("/apps/v1/replicasets").await.ok();
    assert_eq!(tree(&stage.get("/_owned/uid-web").await), ["1 web web-1", "1 web web-2"]);
    assert_eq!(tree(&stage.get("/_owned/uid-web?resources=po").await).len(), 5, "a short name is a name");
    stage.close().await;
}

#[tokio::test]
async fn the_index_follows_what_changes() {
    let stage = with_owners().await;
    assert_eq!(tree(&stage.get("/_owned/uid-web-2?resources=pods").await).len(), 2);
    stage.discard("pods", "default/web-2-a");
    let version = stage.put([mk_owned("Pod", "web-1-a", &["uid-web-2"]), mk_owned("Pod", "web-2-b", &[])]);
    stage.ask("/core/v1/pods", &[("minResourceVersion", &version)]).await.ok();
    assert_eq!(tree(&stage.get("/_owned/uid-web-2").await), ["1 web-2 web-1-a"]);
    assert_eq!(tree(&stage.get("/_owned/uid-web-1").await), [] as [String; 0]);
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn to_be_searched_is_no_use_of_what_nobody_asks_for() {
    let stage = Stage::inside(mk_demo(5), |builder| builder);
    stage.get("/core/v1/pods").await.ok();
    for minutes in 1..5 {
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        stage.get("/_owned/uid-web").await.ok();
        let about = stage.get("/_informers").await.ok();
        let idle = about["informers"][0]["idleSeconds"].as_u64().expect("seconds");
        assert!(idle >= 60 * minutes, "{about}");
    }
}

#[tokio::test]
async fn depth_ends_the_search() {
    let stage = with_owners().await;
    let path = "/_owned/uid-web?resources=pods,replicasets&depth=";
    assert_eq!(tree(&stage.get(&format!("{path}1")).await).len(), 2);
    assert_eq!(tree(&stage.get(&format!("{path}2")).await).len(), 5);
    for bad in ["0", "11", "-1", "x", "", "99999999999999999999"] {
        stage.get(&format!("{path}{bad}")).await.fails(400);
    }
    stage.close().await;
}

#[tokio::test]
async fn owners_that_own_each_other_are_told_once() {
    let stage = with_owners().await;
    stage.put([
        mk_owned("Pod", "a", &["uid-b", "uid-a"]),
        mk_owned("Pod", "b", &["uid-a"]),
        mk_owned("Pod", "c", &["uid-a", "uid-b", "uid-b"]),
    ]);
    let found = tree(&stage.get("/_owned/uid-a?resources=pods").await);
    assert_eq!(found, ["1 a b", "1 a c"]);
    stage.close().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let stage = with_owners().await;
    assert_eq!(tree(&stage.get("/_owned/nobody?resources=pods").await), [] as [String; 0]);
    stage.get("/_owned/uid-web?resources=nothing").await.fails(404);
    stage.get("/_owned/uid-web?resources=a/b/c/d").await.fails(400);
    stage.get("/_owned/uid-web?limit=1").await.fails(400);
    let many: Vec<String> = (0..21).map(|n| format!("kind{n}")).collect();
    stage.get(&format!("/_owned/uid-web?resources={}", many.join(","))).await.fails(400);
    stage.get("/_owned/").await.fails(404);
    stage.close().await;
}
