//! Which objects a list has, in which order, and which part of each.

use serde_json::{Value, json};

use crate::support::*;

const PODS: &str = "/core/v1/pods";

fn mk_shop_pod(name: &str, phase: &str, cpu: Value, labels: Value) -> Value {
    let mut pod = mk_pod("shop", name, labels);
    pod["status"] = json!({"phase": phase});
    pod["spec"]["cpu"] = cpu;
    pod
}

/// Pods of two namespaces whose fields have all kinds of values.
async fn with_pods() -> Stage {
    let stage = Stage::open(mk_server()).await;
    let mut api = mk_pod("bank", "api-0", json!({"app": "api", "tier": "back"}));
    api["spec"]["nodeName"] = "n1".into();
    api["spec"]["containers"] = json!([{"name": "a", "image": "api:1"}, {"name": "b", "image": "envoy"}]);
    stage.put([
        mk_namespace("bank"),
        mk_namespace("shop"),
        api,
        mk_shop_pod("db-0", "Running", json!("2"), json!({"app": "db", "tier": "back"})),
        mk_shop_pod("web-0", "Running", json!("250m"), json!({"app": "web", "example.com/team": "a"})),
        mk_shop_pod("web-1", "Pending", json!(0.1), json!({"app": "web", "tier": "front"})),
        mk_shop_pod("web-2", "Failed", json!("1500m"), json!({"app": "web", "tier": "front"})),
    ]);
    stage
}

/// The parameters of a query, and the names that it finds.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

async fn check(stage: &Stage, cases: &[Case<'_>]) {
    for (parameters, names) in cases {
        let answer = stage.ask(PODS, parameters).await;
        assert_eq!(answer.names(), *names, "{parameters:?}");
        assert_eq!(answer.header("x-total-count"), names.len().to_string(), "{parameters:?}");
        // The Kubernetes side answers the same question in the same way.
        let kubernetes = stage.ask("/api/v1/pods", parameters).await;
        assert_eq!(kubernetes.names(), *names, "{parameters:?}");
    }
}

#[tokio::test]
async fn a_label_selector_selects() {
    let stage = with_pods().await;
    check(
        &stage,
        &[
            (&[("labelSelector", "app=web")], &["web-0", "web-1", "web-2"]),
            (&[("labelSelector", "app==web,tier=front")], &["web-1", "web-2"]),
            (&[("labelSelector", "app!=web")], &["api-0", "db-0"]),
            (&[("labelSelector", "app in (db, api)")], &["api-0", "db-0"]),
            (&[("labelSelector", "tier notin (front)")], &["api-0", "db-0", "web-0"]),
            (&[("labelSelector", "tier")], &["api-0", "db-0", "web-1", "web-2"]),
            (&[("labelSelector", "!tier")], &["web-0"]),
            (&[("labelSelector", "example.com/team=a")], &["web-0"]),
            (&[("labelSelector", "app=nobody")], &[]),
            (&[("labelSelector", "")], &["api-0", "db-0", "web-0", "web-1", "web-2"]),
        ],
    )
    .await;
    stage.close().await;
}

#[tokio::test]
async fn a_field_selector_selects_by_any_path_with_every_operator() {
    let stage = with_pods().await;
    check(
        &stage,
        &[
            (&[("fieldSelector", "status.phase=Running")], &["api-0", "db-0", "web-0"]),
            (&[("fieldSelector", "status.phase==Pending")], &["web-1"]),
            (&[("fieldSelector", "status.phase!=Running")], &["web-1", "web-2"]),
            (&[("fieldSelector", "status.phase in (Pending, Failed)")], &["web-1", "web-2"]),
            (&[("fieldSelector", "status.phase notin (Pending,Failed)")], &["api-0", "db-0", "web-0"]),
            (&[("fieldSelector", "spec.nodeName exists")], &["api-0"]),
            (&[("fieldSelector", "!spec.nodeName")], &["db-0", "web-0", "web-1", "web-2"]),
            (&[("fieldSelector", "metadata.name=web-0")], &["web-0"]),
            (&[("fieldSelector", "metadata.namespace!=shop")], &["api-0"]),
            (&[("fieldSelector", "spec.containers[*].image=envoy")], &["api-0"]),
            (&[("fieldSelector", "spec.containers[0].image=envoy")], &[]),
            (&[("fieldSelector", "spec.cpu=0.1")], &["web-1"]),
            (&[("fieldSelector", "metadata.labels['example.com/team']=a")], &["web-0"]),
            (&[("fieldSelector", "status.phase=Running,spec.cpu exists,metadata.name!=db-0")], &["web-0"]),
            (&[("fieldSelector", "no.such.path=x")], &[]),
            (&[("labelSelector", "app=web"), ("fieldSelector", "status.phase=Failed")], &["web-2"]),
        ],
    )
    .await;
    stage.close().await;
}

#[tokio::test]
async fn namespaces_are_named_one_or_several_times() {
    let stage = with_pods().await;
    check(
        &stage,
        &[
            (&[("namespace", "bank")], &["api-0"]),
            (&[("namespace", "shop"), ("labelSelector", "app=db")], &["db-0"]),
            (&[("namespace", "shop"), ("namespace", "bank")], &["api-0", "db-0", "web-0", "web-1", "web-2"]),
            (&[("namespace", "bank"), ("namespace", "bank")], &["api-0"]),
            (&[("namespace", "")], &["api-0", "db-0", "web-0", "web-1", "web-2"]),
            (&[("namespace", "nowhere")], &[]),
        ],
    )
    .await;
    stage.close().await;
}

#[tokio::test]
async fn an_order_compares_quantities_by_value_and_has_several_keys() {
    let stage = with_pods().await;
    check(
        &stage,
        &[
            (&[("sort", "spec.cpu")], &["web-1", "web-0", "web-2", "db-0", "api-0"]),
            (&[("sort", "-spec.cpu")], &["db-0", "web-2", "web-0", "web-1", "api-0"]),
            (&[("sort", "status.phase,-metadata.name")], &["web-2", "web-1", "web-0", "db-0", "api-0"]),
            (&[("sort", "-status.phase,spec.cpu")], &["web-0", "db-0", "api-0", "web-1", "web-2"]),
            (&[("sort", "metadata.labels.app,-spec.cpu")], &["api-0", "db-0", "web-2", "web-0", "web-1"]),
            (&[("sort", "-metadata.name"), ("labelSelector", "tier=back")], &["db-0", "api-0"]),
            (&[("sort", "no.such.path")], &["api-0", "db-0", "web-0", "web-1", "web-2"]),
        ],
    )
    .await;
    stage.close().await;
}

#[tokio::test]
async fn only_the_fields_that_are_asked_for_are_answered() {
    let stage = with_pods().await;
    let answer = stage
        .ask(
            PODS,
            &[("labelSelector", "app in (api,db)"), ("fields", "metadata.name,spec.containers[*].image")],
        )
        .await;
    let expected = json!([
        {"metadata": {"name": "api-0"}, "spec": {"containers": [{"image": "api:1"}, {"image": "envoy"}]}},
        {"metadata": {"name": "db-0"}, "spec": {"containers": [{"image": "nginx"}]}},
    ]);
    assert_eq!(answer.ok(), json!({"msg": expected}));
    let nothing = stage.ask(PODS, &[("namespace", "bank"), ("fields", "no.such.path")]).await;
    assert_eq!(nothing.ok(), json!({"msg": [{}]}));
    stage.close().await;
}

#[tokio::test]
async fn an_explanation_names_the_index_and_what_was_looked_at() {
    let stage = with_pods().await;
    let explained = async |parameters: &[(&str, &str)]| {
        let parameters: Vec<_> = parameters.iter().copied().chain([("explain", "1")]).collect();
        let answer = stage.ask(PODS, &parameters).await;
        let explanation = answer.ok()["explain"].clone();
        let header: Value = serde_json::from_str(answer.header("x-explain")).unwrap();
        assert_eq!(header, explanation);
        assert!(explanation["micros"].is_u64(), "{explanation}");
        json!([explanation["index"], explanation["scanned"], explanation["matched"]])
    };
    assert_eq!(explained(&[]).await, json!([null, 5, 5]));
    assert_eq!(explained(&[("labelSelector", "app=web")]).await, json!(["label", 3, 3]));
    assert_eq!(explained(&[("namespace", "bank")]).await, json!(["namespace", 1, 1]));
    assert_eq!(explained(&[("fieldSelector", "status.phase=Failed")]).await, json!([null, 5, 1]));
    assert!(stage.get(PODS).await.ok().get("explain").is_none(), "only who asks is told");
    stage.close().await;
}

#[tokio::test]
async fn a_table_has_rows_that_line_up_with_its_columns() {
    let stage = with_pods().await;
    let answer = stage.ask(PODS, &[("as", "table"), ("sort", "-metadata.name"), ("limit", "2")]).await;
    let table = answer.ok();
    assert_eq!(table["resourceVersion"], answer.header("x-resource-version"));
    assert_eq!((&table["total"], &table["continue"]), (&json!(5), &json!(answer.header("x-continue"))));
    let columns = table["columns"].as_array().unwrap();
    assert_eq!(columns[0]["name"], "Name");
    for column in columns {
        let members: Vec<_> = column.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(["name", "type", "description", "priority"].iter().all(|m| members.contains(m)), "{column}");
    }
    assert_eq!(answer.names(), ["web-2", "web-1"]);
    for row in table["rows"].as_array().unwrap() {
        assert_eq!(row["cells"].as_array().unwrap().len(), columns.len());
        assert_eq!((&row["cells"][0], &row["namespace"]), (&row["name"], &json!("shop")));
        assert!(row["uid"].is_string() && row["created"].is_string(), "{row}");
        assert_eq!(row["labels"]["app"], "web");
    }
    let nodes = stage.ask("/core/v1/namespaces", &[("as", "table"), ("labelSelector", "!x")]).await;
    assert!(nodes.items().iter().all(|row| row.get("namespace").is_none()), "{}", nodes.text());
    stage.close().await;
}
