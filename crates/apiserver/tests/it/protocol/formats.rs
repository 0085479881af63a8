//! `Accept`, and the forms in which objects are shown.

use serde_json::{Value, json};

use crate::{
    client::{Api, JSON, METADATA, METADATA_LIST, PROTOBUF, TABLE, query, version},
    objects::{MAPS, PODS, mk_config_map, mk_pod},
};

async fn with_pod() -> Api {
    let api = Api::new();
    api.post(PODS, &mk_pod("a")).await.ok();
    api
}

fn titles(table: &Value) -> Vec<&str> {
    let columns = table["columnDefinitions"].as_array().expect("columns").iter();
    columns.map(|column| column["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn json_is_what_everybody_gets_who_does_not_exclude_it() {
    let api = with_pod().await;
    for accept in [
        "application/json",
        "*/*",
        "text/html, */*;q=0.1",
        "application/json,application/vnd.kubernetes.protobuf",
        "application/json; charset=utf-8",
    ] {
        let answer = api.get_as(PODS, accept).await;
        assert_eq!(answer.headers["content-type"], JSON, "{accept}");
        assert_eq!(answer.ok()["kind"], "PodList", "{accept}");
    }
    assert_eq!(api.get(PODS).await.ok()["kind"], "PodList", "no Accept at all");
}

#[tokio::test]
async fn what_is_not_served_is_406() {
    let api = with_pod().await;
    let pod = format!("{PODS}/a");
    for (path, accept) in [
        (PODS, "text/html"),
        (PODS, "application/*"),
        (PODS, "application/json;q=0"),
        (PODS, "application/json;as=Table;v=v7;g=meta.k8s.io"),
        (PODS, "application/json;as=Table;v=v1;g=example.com"),
        (PODS, "application/json;as=Nothing;v=v1;g=meta.k8s.io"),
        (PODS, METADATA),
        (&pod, METADATA_LIST),
        (PODS, "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io"),
        (PODS, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
        (PODS, "application/vnd.kubernetes.protobuf;q=0"),
    ] {
        api.get_as(path, accept).await.fails(406, "NotAcceptable");
    }
    api.get_as(&format!("{PODS}?watch=true"), "application/cbor-seq").await.fails(406, "NotAcceptable");
}

#[tokio::test]
async fn a_write_whose_answer_could_not_be_read_is_not_carried_out() {
    let api = with_pod().await;
    let before = api.server.version();
    let headers = [("accept", "text/html"), ("content-type", JSON)];
    api.send("POST", PODS, &headers, mk_pod("b").to_string()).await.fails(406, "NotAcceptable");
    api.send("DELETE", &format!("{PODS}/a"), &headers, "").await.fails(406, "NotAcceptable");
    api.send("DELETE", PODS, &headers, "").await.fails(406, "NotAcceptable");
    assert_eq!(api.server.version(), before);
}

#[tokio::test]
async fn the_best_quality_wins_and_the_order_decides_among_equals() {
    let api = with_pod().await;
    for (accept, kind) in [
        (format!("application/json;q=0.3,{TABLE};q=0.9"), "Table"),
        (format!("application/json,{TABLE};q=0.9"), "PodList"),
        (format!("{TABLE},application/json"), "Table"),
        (format!("application/json,{TABLE}"), "PodList"),
        (
            format!("application/json;as=Table;v=v9;g=meta.k8s.io,{METADATA_LIST},application/json"),
            "PartialObjectMetadataList",
        ),
        (format!("{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,{TABLE}"), "Table"),
    ] {
        assert_eq!(api.get_as(PODS, &accept).await.ok()["kind"], kind, "{accept}");
    }
}

#[tokio::test]
async fn metadata_is_the_metadata_of_objects_and_nothing_else() {
    let api = with_pod().await;
    let full = api.get(&format!("{PODS}/a")).await.ok();
    let expected = json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": full["metadata"] });
    assert_eq!(api.get_as(&format!("{PODS}/a"), METADATA).await.ok(), expected);
    let list = api.get_as(PODS, METADATA_LIST).await.ok();
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&"PartialObjectMetadataList".into(), &"meta.k8s.io/v1".into())
    );
    assert_eq!((version(&list), &list["items"]), (api.server.version(), &json!([expected])));
    let (r#type, object) = api.watch_as(&format!("{PODS}?watch=true"), METADATA).await.event().await;
    assert_eq!((r#type.as_str(), object), ("ADDED", expected));
}

#[tokio::test]
async fn a_table_has_the_columns_of_its_kind_and_a_row_for_each_object() {
    let api = with_pod().await;
    for path in [PODS.to_owned(), format!("{PODS}/a")] {
        let table = api.get_as(&path, TABLE).await.ok();
        assert_eq!((&table["kind"], &table["apiVersion"]), (&"Table".into(), &"meta.k8s.io/v1".into()));
        assert_eq!(titles(&table)[..5], ["Name", "Ready", "Status", "Restarts", "Age"]);
        let definition = &table["columnDefinitions"][0];
        assert_eq!(
            (&definition["type"], &definition["format"], &definition["priority"]),
            (&"string".into(), &"name".into(), &0.into())
        );
        let rows = table["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), 1);
        let cells = rows[0]["cells"].as_array().expect("cells");
        assert_eq!(cells.len(), titles(&table).len());
        assert_eq!(cells[..3], [json!("a"), json!("0/1"), json!("Pending")]);
        assert_eq!(version(&table), api.server.version());
    }
}

#[tokio::test]
async fn include_object_says_what_each_row_carries() {
    let api = with_pod().await;
    let full = api.get(&format!("{PODS}/a")).await.ok();
    for (include, kind) in
        [("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", "Pod")]
    {
        for path in [PODS.to_owned(), format!("{PODS}/a")] {
            let table = api.get_as(&query(&path, &[("includeObject", include)]), TABLE).await.ok();
            let object = &table["rows"][0]["object"];
            assert_eq!(
                (&object["kind"], &object["metadata"]),
                (&kind.into(), &full["metadata"]),
                "{include}"
            );
            assert_eq!(object.get("spec").is_some(), kind == "Pod", "{include}");
        }
    }
    let table = api.get_as(&query(PODS, &[("includeObject", "None")]), TABLE).await.ok();
    assert!(table["rows"][0]["object"].is_null());
    api.get_as(&query(PODS, &[("includeObject", "Everything")]), TABLE).await.fails(400, "BadRequest");
}

#[tokio::test]
async fn a_watch_in_table_form_has_columns_in_its_first_event_only() {
    let api = with_pod().await;
    let mut watch =
        api.watch_as(&query(PODS, &[("watch", "true"), ("includeObject", "Object")]), TABLE).await;
    let (r#type, first) = watch.event().await;
    assert_eq!((r#type.as_str(), &first["kind"], titles(&first)[0]), ("ADDED", &"Table".into(), "Name"));
    assert_eq!(first["rows"][0]["object"]["kind"], "Pod");
    api.merge(&format!("{PODS}/a"), &json!({ "metadata": { "labels": { "x": "y" } } })).await.ok();
    api.delete(&format!("{PODS}/a")).await.ok();
    for expected in ["MODIFIED", "DELETED"] {
        let (r#type, table) = watch.event().await;
        assert_eq!((r#type.as_str(), &table["rows"][0]["cells"][0]), (expected, &"a".into()));
        assert!(
            table["columnDefinitions"].as_array().is_none_or(Vec::is_empty),
            "{expected} repeats the columns"
        );
    }
}

#[tokio::test]
async fn a_table_has_pages_like_a_list() {
    let api = Api::new();
    for name in ["a", "b", "c"] {
        api.post(MAPS, &mk_config_map(name)).await.ok();
    }
    let page = api.get_as(&query(MAPS, &[("limit", "2")]), TABLE).await.ok();
    assert_eq!(
        (page["rows"].as_array().map(Vec::len), &page["metadata"]["remainingItemCount"]),
        (Some(2), &1.into())
    );
    let token = page["metadata"]["continue"].as_str().expect("a token");
    let rest = api.get_as(&query(MAPS, &[("continue", token)]), TABLE).await.ok();
    assert_eq!(rest["rows"][0]["cells"][0], "c");
}

#[tokio::test]
async fn the_answer_to_a_write_has_the_form_that_was_asked_for() {
    let api = Api::new();
    let headers = [("accept", METADATA), ("content-type", JSON)];
    let created = api.send("POST", MAPS, &headers, mk_config_map("a").to_string()).await;
    assert_eq!(created.code, 201);
    assert_eq!((&created.body["kind"], created.body.get("data")), (&"PartialObjectMetadata".into(), None));
}
