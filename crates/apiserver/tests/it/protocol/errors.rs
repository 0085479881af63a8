//! Failures: that each is a `v1.Status` is checked by the client of these tests; here is what they say.

use std::time::Duration;

use informer_apiserver::{Fault, Rule};
use informer_model::Status;
use serde_json::json;

use crate::{
    client::{Api, query},
    objects::{DEPLOYMENTS, MAPS, PODS, mk_config_map, mk_pod},
};

#[tokio::test]
async fn a_method_that_no_resource_has_is_405() {
    let api = Api::new();
    for method in ["HEAD", "OPTIONS", "TRACE", "PROPFIND"] {
        let answer = api.send(method, MAPS, &[], "").await;
        assert_eq!(answer.code, 405, "{method}");
    }
}

#[tokio::test]
async fn a_verb_that_discovery_does_not_name_is_405() {
    let api = Api::new();
    let statuses = "/api/v1/componentstatuses";
    assert_eq!(api.get(statuses).await.code, 200);
    let body = json!({ "apiVersion": "v1", "kind": "ComponentStatus", "metadata": { "name": "a" } });
    api.post(statuses, &body).await.fails(405, "MethodNotAllowed");
    api.send("DELETE", statuses, &[], "").await.fails(405, "MethodNotAllowed");
}

#[tokio::test]
async fn what_needs_nodes_or_controllers_is_501() {
    let api = Api::new();
    api.post(PODS, &mk_pod("a")).await.ok();
    for part in
        ["log", "exec", "attach", "portforward", "eviction", "binding", "proxy", "ephemeralcontainers"]
    {
        let answer = api.get(&format!("{PODS}/a/{part}")).await;
        assert_eq!(answer.code, 501, "{part}");
        assert!(answer.body["message"].as_str().expect("text").contains(part), "{}", answer.body);
    }
    let token = "/api/v1/namespaces/default/serviceaccounts/default/token";
    assert_eq!(api.post(token, &json!({})).await.code, 501);
}

#[tokio::test]
async fn details_say_what_a_failure_is_about() {
    let api = Api::new();
    api.post(MAPS, &mk_config_map("a")).await.ok();
    let missing = api.get(&format!("{DEPLOYMENTS}/none")).await.fails(404, "NotFound");
    assert_eq!(missing["details"], json!({ "name": "none", "group": "apps", "kind": "deployments" }));
    let exists = api.post(MAPS, &mk_config_map("a")).await.fails(409, "AlreadyExists");
    assert_eq!(exists["details"], json!({ "name": "a", "kind": "configmaps" }));
    let invalid = api.post(MAPS, &mk_config_map("Not Valid")).await.fails(422, "Invalid");
    assert_eq!(
        (&invalid["details"]["name"], &invalid["details"]["kind"]),
        (&"Not Valid".into(), &"ConfigMap".into())
    );
    let cause = &invalid["details"]["causes"][0];
    assert_eq!((&cause["reason"], &cause["field"]), (&"FieldValueInvalid".into(), &"metadata.name".into()));
    assert!(invalid["message"].as_str().expect("text").starts_with("ConfigMap \"Not Valid\" is invalid: "));
}

#[tokio::test]
async fn a_server_that_is_not_ready_says_when_to_come_back() {
    let api = Api::new();
    let fault = Fault::Status(Status::too_many_requests("storage is (re)initializing", 2));
    let rule = api.server.faults().add(Rule::new(fault));
    let answer = api.get(&query(MAPS, &[("watch", "true")])).await;
    assert_eq!(answer.headers["retry-after"], "2");
    assert_eq!(answer.fails(429, "TooManyRequests")["details"]["retryAfterSeconds"], 2);
    api.server.faults().remove(rule);
    api.get(MAPS).await.ok();
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_be_late() {
    let api = Api::new();
    api.server.faults().add(Rule::new(Fault::Delay(Duration::from_secs(7))));
    let start = tokio::time::Instant::now();
    api.get(MAPS).await.ok();
    assert_eq!(start.elapsed().as_secs(), 7);
}

#[tokio::test]
async fn an_object_with_a_namespace_is_reached_through_it_only() {
    let api = Api::new();
    api.post(MAPS, &mk_config_map("a")).await.ok();
    api.get("/api/v1/configmaps/a").await.fails(404, "NotFound");
    api.get("/api/v1/namespaces/default/namespaces/default").await.fails(404, "NotFound");
    api.get("/api/v1/namespaces/default/configmaps/a/b/c").await.fails(404, "NotFound");
}
