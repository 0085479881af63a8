//! `Accept`, and the forms in which objects are shown.

use serde_json::json;

use crate::{
    objects::mk_map,
    stage::{Ask, JSON, Stage, play},
};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

async fn with_maps(stage: &Stage) -> String {
    for name in ["a", "b"] {
        stage.make(&stage.maps(), mk_map(name)).await;
    }
    stage.maps()
}

#[test]
fn the_best_form_that_is_accepted_is_served() {
    play("accept", async |stage| {
        let path = with_maps(stage).await;
        for accept in [
            "application/json",
            "*/*",
            "application/*",
            "text/html, */*;q=0.1",
            "application/json; charset=utf-8",
            &format!("application/json;q=0.3,{TABLE};q=0.9"),
            &format!("application/json,{TABLE};q=0.9"),
            &format!("{TABLE},application/json"),
            &format!("application/json,{TABLE}"),
            &format!("application/json;as=Table;v=v9;g=meta.k8s.io,{METADATA_LIST},application/json"),
        ] {
            let headers = &[("accept", accept)];
            let answer = stage.send(&Ask { method: "GET", path: &path, headers, ..Ask::default() }).await;
            let r#type =
                answer.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
            stage.note(format!("{accept}: {} {type} {}", answer.code, answer.body["kind"]));
        }
    });
}

#[test]
fn what_is_not_served_is_406() {
    play("not_acceptable", async |stage| {
        let path = with_maps(stage).await;
        let a = format!("{path}/a");
        for (path, accept) in [
            (&path, "text/html"),
            (&path, "application/xml;q=0.5"),
            (&path, "application/json;as=Table;v=v7;g=meta.k8s.io"),
            (&path, "application/json;as=Table;v=v1;g=example.com"),
            (&path, "application/json;as=Nothing;v=v1;g=meta.k8s.io"),
            (&path, METADATA),
            (&a, METADATA_LIST),
        ] {
            let headers = &[("accept", accept)];
            let ask = Ask { method: "GET", path, headers, own_words: true, ..Ask::default() };
            stage.ask(ask).await;
        }
        stage.note("a write whose answer could not be read");
        let headers = &[("accept", "text/html"), ("content-type", JSON)];
        let body = mk_map("c").to_string();
        stage
            .ask(Ask { method: "POST", path: &path, headers, body, own_words: true, ..Ask::default() })
            .await;
        stage.get(&format!("{path}/c"), &[]).await;
    });
}

#[test]
fn metadata_is_the_metadata_of_objects() {
    play("metadata", async |stage| {
        let path = with_maps(stage).await;
        stage.get_as(&format!("{path}/a"), &[], METADATA).await;
        let list = stage.get_as(&path, &[], METADATA_LIST).await;
        let first = stage.transcript().stable(list.body["items"][0].clone());
        stage.note(format!("  the first: {first}"));
        let mut watch = stage.watch_as(&path, &[("fieldSelector", "metadata.name=a")], METADATA).await;
        watch.events(1).await;
        stage.note("the answer to a write");
        let headers = &[("accept", METADATA), ("content-type", JSON)];
        let body = mk_map("c").to_string();
        stage.ask(Ask { method: "POST", path: &path, headers, body, ..Ask::default() }).await;
    });
}

#[test]
fn a_table_has_columns_and_rows() {
    play("table", async |stage| {
        let path = with_maps(stage).await;
        stage.get_as(&path, &[], TABLE).await;
        stage.get_as(&format!("{path}/a"), &[], TABLE).await;
        for include in ["None", "Metadata", "Object"] {
            stage.get_as(&format!("{path}/a"), &[("includeObject", include)], TABLE).await;
        }
        let (parameters, headers) = (&[("includeObject", "Everything")], &[("accept", TABLE)]);
        stage
            .ask(Ask { method: "GET", path: &path, parameters, headers, own_words: true, ..Ask::default() })
            .await;
        stage.note("a watch has columns in its first event only");
        let mut watch = stage.watch_as(&path, &[("fieldSelector", "metadata.name=a")], TABLE).await;
        stage.change(&format!("{path}/a"), json!({ "data": { "b": "2" } })).await;
        stage.remove(&format!("{path}/a")).await;
        watch.events(3).await;
    });
}

#[test]
fn protobuf_is_what_built_in_kinds_have() {
    play("protobuf", async |stage| {
        let path = with_maps(stage).await;
        let a = format!("{path}/a");
        let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
        for (path, parameters, accept) in [
            (&path, &[][..], PROTOBUF),
            (&a, &[], PROTOBUF),
            (&a, &[], &metadata),
            (&path, &[], &format!("{PROTOBUF},application/json")),
            (&path, &[], &format!("{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,{TABLE}")),
            (&path, &[("watch", "true"), ("timeoutSeconds", "1")], &format!("{PROTOBUF};stream=watch")),
            (&path, &[("watch", "true"), ("timeoutSeconds", "1"), ("labelSelector", "none")], PROTOBUF),
        ] {
            let headers = &[("accept", accept)];
            let ask = Ask { method: "GET", path, parameters, headers, ..Ask::default() };
            let answer = stage.send(&ask).await;
            let r#type =
                answer.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
            let begin = if answer.bytes.starts_with(b"k8s\0") { "k8s\\0…" } else { "-" };
            stage.note(format!("{accept} {parameters:?}: {} {type} {begin}", answer.code));
        }
        stage.note("a failure is protobuf, too");
        let headers = &[("accept", PROTOBUF)];
        let path = format!("{path}/none");
        let answer = stage.send(&Ask { method: "GET", path: &path, headers, ..Ask::default() }).await;
        let r#type =
            answer.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        stage.note(format!("  {} {type}", answer.code));
    });
}
