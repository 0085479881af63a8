//! Server-side apply and managers, as far as `e2e/suite` does not show them beside a real server.

use serde_json::{Value, json};

use crate::{
    client::{Api, query},
    objects::{MAPS, PODS, mk_pod},
};

const A: &str = "/api/v1/namespaces/default/configmaps/a";
const APPLY: &str = "application/apply-patch+yaml";

fn by(path: &str, manager: &str) -> String {
    query(path, &[("fieldManager", manager)])
}

fn map(data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data })
}

fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |entry: &Value| {
        let [manager, operation] =
            ["manager", "operation"].map(|field| entry[field].as_str().unwrap_or("-").to_owned());
        format!("{manager} {operation}")
    };
    entries.iter().map(text).collect()
}

#[tokio::test]
async fn the_same_twice_changes_nothing_not_even_the_version_and_is_no_event() {
    let api = Api::new();
    let first = api.patch(&by(A, "one"), APPLY, &map(json!({ "a": "1" }))).await;
    assert_eq!(first.code, 201);
    let again = api.patch(&by(A, "one"), APPLY, &map(json!({ "a": "1" }))).await;
    assert_eq!((again.code, &again.body), (200, &first.body));
    assert_eq!(managers(&again.body), ["one Apply"]);
}

#[tokio::test]
async fn an_object_is_what_its_defaults_make_of_what_was_applied_and_these_are_nobodys() {
    let api = Api::new();
    let path = format!("{PODS}/a");
    let pod = mk_pod("a");
    let made = api.patch(&by(&path, "one"), APPLY, &pod).await.ok();
    assert_eq!(made["spec"]["restartPolicy"], "Always");
    let fields = made["metadata"]["managedFields"][0]["fieldsV1"].to_string();
    assert!(fields.contains("f:image") && !fields.contains("f:restartPolicy"), "{fields}");
    let again = api.patch(&by(&path, "one"), APPLY, &pod).await.ok();
    assert_eq!(again, made);
    // Whoever creates it otherwise has its defaults, too.
    api.post(&by(PODS, "two"), &mk_pod("b")).await.ok();
    let fields =
        api.get(&format!("{PODS}/b")).await.ok()["metadata"]["managedFields"][0]["fieldsV1"].to_string();
    assert!(
        fields.contains("f:restartPolicy") && !fields.contains("f:uid") && !fields.contains("f:status"),
        "{fields}"
    );
}

#[tokio::test]
async fn what_comes_with_managers_keeps_those_that_still_have_something() {
    let api = Api::new();
    api.patch(&by(A, "one"), APPLY, &map(json!({ "a": "1", "b": "1" }))).await.ok();
    let mut object = api.get(A).await.ok();
    object["data"]["a"] = "2".into();
    let updated = api.put(&by(A, "two"), &object).await.ok();
    assert_eq!(managers(&updated), ["one Apply", "two Update"]);
    object = updated;
    object["metadata"]["managedFields"][0]["manager"] = "renamed".into();
    let renamed = api.put(&by(A, "two"), &object).await.ok();
    assert_eq!(managers(&renamed), ["renamed Apply", "two Update"]);
    object = renamed;
    object["metadata"]["managedFields"] = json!([{ "manager": "odd", "operation": "Burn" }]);
    assert_eq!(managers(&api.put(&by(A, "two"), &object).await.ok()), ["renamed Apply", "two Update"]);
    object = api.get(A).await.ok();
    object["metadata"]["managedFields"] = json!([]);
    let reset = api.put(&by(A, "two"), &object).await.ok();
    assert_eq!(managers(&reset), [""; 0]);
}

#[tokio::test]
async fn a_status_and_a_scale_are_applied_on_their_own() {
    let api = Api::new();
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let spec = json!({ "replicas": 1, "selector": { "matchLabels": { "a": "b" } }, "template": {
        "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "m", "image": "i" }] } } });
    let web =
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" }, "spec": spec });
    let at = format!("{path}/web");
    api.patch(&by(&at, "one"), APPLY, &web).await.ok();
    let status = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "replicas": 9 }, "status": { "replicas": 1 } });
    let updated = api.patch(&by(&format!("{at}/status"), "two"), APPLY, &status).await.ok();
    assert_eq!((&updated["spec"]["replicas"], &updated["status"]["replicas"]), (&json!(1), &json!(1)));
    let entry = &updated["metadata"]["managedFields"][1];
    assert_eq!(
        (&entry["subresource"], &entry["fieldsV1"]),
        (&json!("status"), &json!({ "f:status": { "f:replicas": {} } }))
    );
    let scale = json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "web" }, "spec": { "replicas": 3 } });
    let at_scale = format!("{at}/scale");
    let refused = api.patch(&by(&at_scale, "three"), APPLY, &scale).await.fails(409, "Conflict");
    assert_eq!(refused["details"]["causes"][0]["field"], ".spec.replicas");
    api.patch(&query(&at_scale, &[("fieldManager", "three"), ("force", "true")]), APPLY, &scale).await.ok();
    let scaled = api.get(&at).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 3);
    let entries = scaled["metadata"]["managedFields"].as_array().unwrap();
    let of = |name: &str| entries.iter().find(|entry| entry["manager"] == name).unwrap();
    let three = of("three");
    assert!(three.get("time").is_none(), "as a real server has it");
    assert_eq!(
        (&three["subresource"], &three["fieldsV1"]),
        (&json!("scale"), &json!({ "f:spec": { "f:replicas": {} } }))
    );
    assert!(!of("one")["fieldsV1"]["f:spec"].as_object().unwrap().contains_key("f:replicas"));
}

#[tokio::test]
async fn no_body_of_an_apply_ends_in_anything_but_an_answer() {
    let api = Api::new();
    for body in ["", "{}", "[]", "null", "5", "\"", "a: [", "apiVersion: v1\nkind: ConfigMap\n", "&a [*a]"] {
        let answer = api.send("PATCH", &by(A, "one"), &[("content-type", APPLY)], body).await;
        assert!([400, 422].contains(&answer.code), "{body:?}: {} {}", answer.code, answer.body);
    }
    let many: Vec<Value> = (0..20_000).map(|n| json!(format!("e.com/{n}"))).collect();
    let object =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "finalizers": many } });
    assert_eq!(api.patch(&by(A, "one"), APPLY, &object).await.code, 201);
    assert_eq!(api.patch(&by(A, "one"), APPLY, &map(json!({}))).await.code, 200);
    assert!(api.get(A).await.ok()["metadata"].get("finalizers").is_none());
    api.post(MAPS, &json!({ "metadata": { "name": "b" } })).await.ok();
}
