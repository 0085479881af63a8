//! Custom resources: served as soon as they are defined, as they are defined.

use serde_json::{Value, json};

use crate::{
    client::{Api, TABLE, query, version},
    objects::{CRDS, WIDGETS, mk_crd, mk_widget},
};

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
const BETA: &str = "/apis/example.com/v1beta1/namespaces/default/widgets";
const A: &str = "/apis/example.com/v1/namespaces/default/widgets/a";

async fn with_widgets(widgets: &[(&str, &str)]) -> Api {
    let api = Api::new();
    api.post(CRDS, &mk_crd()).await.ok();
    for (name, color) in widgets {
        api.post(WIDGETS, &mk_widget(name, color)).await.ok();
    }
    api
}

#[tokio::test]
async fn a_definition_is_served_at_once() {
    let api = Api::new();
    assert!(api.get(WIDGETS).await.is_nowhere());
    let crd = api.post(CRDS, &mk_crd()).await.ok();
    let conditions = crd["status"]["conditions"].as_array().expect("conditions");
    for r#type in ["Established", "NamesAccepted"] {
        assert!(conditions.iter().any(|c| c["type"] == r#type && c["status"] == "True"), "{type}");
    }
    assert_eq!(
        (&crd["status"]["storedVersions"], &crd["spec"]["names"]["listKind"]),
        (&json!(["v1"]), &"WidgetList".into())
    );
    let created = api.post(WIDGETS, &mk_widget("a", "red")).await.ok();
    assert_eq!((&created["metadata"]["generation"], &created["spec"]["color"]), (&1.into(), &"red".into()));
    let list = api.get(WIDGETS).await.ok();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&"WidgetList".into(), &"example.com/v1".into()));
    assert_eq!(list["items"], json!([created]), "items of a custom resource say their kind");
}

#[tokio::test]
async fn every_served_version_shows_every_object() {
    let api = with_widgets(&[("a", "red")]).await;
    let object = api.get(&format!("{BETA}/a")).await.ok();
    assert_eq!(
        (&object["apiVersion"], &object["spec"]["color"]),
        (&"example.com/v1beta1".into(), &"red".into())
    );
    let mut sent = mk_widget("b", "blue");
    sent["apiVersion"] = "example.com/v1beta1".into();
    api.post(BETA, &sent).await.ok();
    for (path, expected) in [(WIDGETS, "example.com/v1"), (BETA, "example.com/v1beta1")] {
        let list = api.get(path).await.ok();
        let versions: Vec<&Value> =
            list["items"].as_array().expect("items").iter().map(|i| &i["apiVersion"]).collect();
        assert_eq!(versions, [expected, expected]);
        let mut watch = api.watch(&query(path, &[("watch", "true")])).await;
        assert_eq!(watch.event().await.1["apiVersion"], expected);
    }
    api.post(WIDGETS, &sent).await.fails(400, "BadRequest");
}

#[tokio::test]
async fn a_version_that_is_not_served_is_404() {
    let api = Api::new();
    let mut crd = mk_crd();
    crd["spec"]["versions"][1]["served"] = false.into();
    api.post(CRDS, &crd).await.ok();
    api.get(BETA).await.fails(404, "NotFound");
    api.get(WIDGETS).await.ok();
}

#[tokio::test]
async fn additional_printer_columns_are_columns_of_the_table() {
    let api = with_widgets(&[("a", "red")]).await;
    let table = api.get_as(WIDGETS, TABLE).await.ok();
    let titles: Vec<&Value> =
        table["columnDefinitions"].as_array().expect("columns").iter().map(|c| &c["name"]).collect();
    assert_eq!(titles, ["Name", "Size", "Color"]);
    assert_eq!(table["rows"][0]["cells"], json!(["a", 2, "red"]));
    assert_eq!(table["columnDefinitions"][2]["priority"], 1);
    let table = api.get_as(BETA, TABLE).await.ok();
    let titles: Vec<&Value> =
        table["columnDefinitions"].as_array().expect("columns").iter().map(|c| &c["name"]).collect();
    assert_eq!(titles, ["Name", "Age"], "a version without columns of its own");
}

#[tokio::test]
async fn selectable_fields_select() {
    let api = with_widgets(&[("a", "red"), ("b", "blue")]).await;
    for (selector, expected) in [("spec.color=red", "a"), ("spec.color!=red", "b"), ("metadata.name=b", "b")]
    {
        assert_eq!(api.names(&query(WIDGETS, &[("fieldSelector", selector)])).await.concat(), expected);
    }
    api.get(&query(WIDGETS, &[("fieldSelector", "spec.size=2")])).await.fails(400, "BadRequest");
}

#[tokio::test]
async fn a_field_that_becomes_selectable_selects_objects_that_were_there_before() {
    let api = with_widgets(&[("a", "red")]).await;
    let fields = json!([{ "jsonPath": ".spec.size" }, { "jsonPath": ".spec.color" }]);
    let patch = json!([{ "op": "replace", "path": "/spec/versions/0/selectableFields", "value": fields }]);
    api.patch(CRD, "application/json-patch+json", &patch).await.ok();
    for selector in ["spec.size=2", "spec.color=red"] {
        assert_eq!(api.names(&query(WIDGETS, &[("fieldSelector", selector)])).await, ["a"], "{selector}");
    }
}

#[tokio::test]
async fn the_status_of_a_custom_resource_is_a_part_of_its_own() {
    let api = Api::new();
    api.post(CRDS, &mk_crd()).await.ok();
    let mut sent = mk_widget("a", "red");
    sent["status"] = json!({ "size": 9 });
    assert!(api.post(WIDGETS, &sent).await.ok().get("status").is_none());
    let patched = api
        .merge(&format!("{A}/status"), &json!({ "status": { "size": 1 }, "spec": { "size": 7 } }))
        .await
        .ok();
    assert_eq!(
        (&patched["status"]["size"], &patched["spec"]["size"], &patched["metadata"]["generation"]),
        (&1.into(), &2.into(), &1.into())
    );
    let patched = api.merge(A, &json!({ "status": { "size": 5 }, "spec": { "size": 3 } })).await.ok();
    assert_eq!(
        (&patched["status"]["size"], &patched["spec"]["size"], &patched["metadata"]["generation"]),
        (&1.into(), &3.into(), &2.into())
    );
    api.get(&format!("{BETA}/a/status")).await.fails(404, "NotFound");
}

#[tokio::test]
async fn scale_uses_the_paths_of_the_definition() {
    let api = with_widgets(&[("a", "red")]).await;
    api.merge(&format!("{A}/status"), &json!({ "status": { "size": 1, "selector": "app=a" } })).await.ok();
    let scale = api.get(&format!("{A}/scale")).await.ok();
    assert_eq!(
        (&scale["spec"], &scale["status"]),
        (&json!({ "replicas": 2 }), &json!({ "replicas": 1, "selector": "app=a" }))
    );
    api.merge(&format!("{A}/scale"), &json!({ "spec": { "replicas": 6 } })).await.ok();
    assert_eq!(api.get(A).await.ok()["spec"]["size"], 6);
    api.get(&format!("{BETA}/a/scale")).await.fails(404, "NotFound");
}

#[tokio::test]
async fn a_definition_that_breaks_the_rules_is_422_with_the_field() {
    let api = Api::new();
    for (pointer, value, field) in [
        ("/metadata/name", json!("wrong.example.com"), "metadata.name"),
        ("/spec/scope", json!("Galaxy"), "spec.scope"),
        ("/spec/names/kind", json!(""), "spec.names.kind"),
        ("/spec/versions/1/storage", json!(true), "spec.versions"),
        ("/spec/versions/1/name", json!("v1"), "spec.versions"),
        ("/spec/versions/0/schema", json!(null), "spec.versions[0].schema.openAPIV3Schema"),
        (
            "/spec/versions/0/additionalPrinterColumns/0/type",
            json!("color"),
            "spec.versions[0].additionalPrinterColumns[0].type",
        ),
        (
            "/spec/versions/0/selectableFields/0/jsonPath",
            json!(".metadata.name"),
            "spec.versions[0].selectableFields[0].jsonPath",
        ),
    ] {
        let mut crd = mk_crd();
        *crd.pointer_mut(pointer).expect("a field") = value;
        let status = api.post(CRDS, &crd).await.fails(422, "Invalid");
        let causes = status["details"]["causes"].as_array().expect("causes");
        assert!(causes.iter().any(|cause| cause["field"] == field), "{field}: {status}");
    }
    let mut crd = mk_crd();
    crd["spec"]["versions"] = json!("none");
    api.post(CRDS, &crd).await.fails(400, "BadRequest");
    assert!(api.get(WIDGETS).await.is_nowhere());
}

#[tokio::test]
async fn scope_and_kind_of_a_definition_do_not_change() {
    let api = with_widgets(&[("a", "red")]).await;
    api.merge(CRD, &json!({ "spec": { "scope": "Cluster" } })).await.fails(422, "Invalid");
    api.merge(CRD, &json!({ "spec": { "names": { "kind": "Gadget", "listKind": "GadgetList" } } }))
        .await
        .fails(422, "Invalid");
    assert_eq!(api.names(WIDGETS).await, ["a"]);
}

#[tokio::test]
async fn a_definition_sent_again_without_its_defaults_changes_nothing() {
    let api = Api::new();
    let created = api.post(CRDS, &mk_crd()).await.ok();
    assert_eq!(api.put(CRD, &mk_crd()).await.ok(), created);
    assert_eq!(api.server.version(), version(&created));
}

#[tokio::test]
async fn a_dry_run_of_a_definition_defines_nothing() {
    let api = Api::new();
    api.post(&query(CRDS, &[("dryRun", "All")]), &mk_crd()).await.ok();
    assert!(api.get(WIDGETS).await.is_nowhere());
    api.post(CRDS, &mk_crd()).await.ok();
    api.delete(&query(CRD, &[("dryRun", "All")])).await.ok();
    api.get(WIDGETS).await.ok();
}

#[tokio::test]
async fn what_a_deleted_definition_defined_is_gone() {
    let api = with_widgets(&[("a", "red")]).await;
    api.delete(CRD).await.ok();
    for path in [WIDGETS, BETA, A] {
        assert!(api.get(path).await.is_nowhere(), "{path}");
    }
    assert!(api.post(WIDGETS, &mk_widget("b", "red")).await.is_nowhere());
    api.post(CRDS, &mk_crd()).await.ok();
    assert!(api.names(WIDGETS).await.is_empty());
}

#[tokio::test]
async fn a_definition_of_a_built_in_resource_is_refused() {
    let api = Api::new();
    let mut crd = mk_crd();
    crd["metadata"] = json!({
        "name": "ingresses.networking.k8s.io",
        "annotations": { "api-approved.kubernetes.io": "unapproved" },
    });
    crd["spec"]["group"] = "networking.k8s.io".into();
    crd["spec"]["names"] = json!({ "plural": "ingresses", "kind": "Ingress" });
    api.post(CRDS, &crd).await.fails(409, "Conflict");
    api.get("/apis/networking.k8s.io/v1/ingresses").await.ok();
}

#[tokio::test]
async fn a_cluster_wide_resource_has_no_namespaces() {
    let api = Api::new();
    let mut crd = mk_crd();
    crd["spec"]["scope"] = "Cluster".into();
    api.post(CRDS, &crd).await.ok();
    api.post(WIDGETS, &mk_widget("a", "red")).await.fails(404, "NotFound");
    let created = api.post("/apis/example.com/v1/widgets", &mk_widget("a", "red")).await.ok();
    assert!(created["metadata"].get("namespace").is_none());
    assert_eq!(api.get("/apis/example.com/v1/widgets/a").await.ok(), created);
}

#[tokio::test]
async fn custom_objects_have_the_same_metadata_rules_as_others() {
    let api = with_widgets(&[("a", "red")]).await;
    for (field, value) in [
        ("name", json!(5)),
        ("labels", json!([])),
        ("labels", json!({ "a": 1 })),
        ("annotations", json!("x")),
        ("finalizers", json!("x")),
        ("resourceVersion", json!(5)),
        ("uid", json!(5)),
    ] {
        let mut sent = mk_widget("a", "blue");
        sent["metadata"][field] = value.clone();
        let answer = api.put(A, &sent).await;
        assert!([400, 422].contains(&answer.code), "{field}: {value}: {} {}", answer.code, answer.body);
    }
    let mut sent = mk_widget("a", "blue");
    sent["metadata"] = json!("a");
    let answer = api.put(A, &sent).await;
    assert!([400, 422].contains(&answer.code), "{} {}", answer.code, answer.body);
    assert_eq!(api.get(A).await.ok()["spec"]["color"], "red");
}
