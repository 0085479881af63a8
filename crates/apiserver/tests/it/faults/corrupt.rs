//! Objects that nobody can decode.

use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};

use crate::{
    client::{get_json, names, send},
    objects::mk_server,
};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn mk_pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "main:1" }] },
    })
}

/// Two pods and between them one whose fields have the wrong types.
fn mk_corrupt() -> (ApiServer, Value) {
    let server = mk_server();
    let mut corrupt = mk_pod("b");
    corrupt["spec"] = json!("not a spec");
    corrupt["status"] = json!([1, 2]);
    corrupt["metadata"]["creationTimestamp"] = json!(17);
    for pod in [mk_pod("a"), corrupt.clone(), mk_pod("c")] {
        server.put(pod).expect("written");
    }
    (server, corrupt)
}

fn assert_corrupt(seen: &Value, corrupt: &Value) {
    assert_eq!((&seen["spec"], &seen["status"]), (&corrupt["spec"], &corrupt["status"]));
    assert_eq!(seen["metadata"]["creationTimestamp"], 17);
    assert!(seen["metadata"]["resourceVersion"].is_string(), "it has a version like every object");
}

#[tokio::test(start_paused = true)]
async fn get_list_and_watch_show_a_corrupt_object_as_it_is_beside_good_ones() {
    let (server, corrupt) = mk_corrupt();
    assert_corrupt(&get_json(&server, &format!("{PODS}/b")).await, &corrupt);
    let list = get_json(&server, PODS).await;
    assert_eq!(names(&list), ["a", "b", "c"]);
    assert_corrupt(&list["items"][1], &corrupt);
    let path = format!("{PODS}?watch=1&resourceVersion=0&timeoutSeconds=1");
    let watch = send(&mut server.service(), &path).await.expect("a watch");
    let (events, _) = crate::client::read(watch.into_body()).await;
    let events: Vec<Value> =
        serde_json::Deserializer::from_slice(&events).into_iter().collect::<Result<_, _>>().expect("JSON");
    assert_eq!(events.len(), 3);
    assert_corrupt(&events[1]["object"], &corrupt);
}

#[tokio::test]
async fn a_typed_client_fails_on_a_corrupt_object_and_reads_its_neighbours() {
    let (server, _) = mk_corrupt();
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    assert!(matches!(pods.get("b").await, Err(kube::Error::SerdeError(_))));
    assert!(pods.list(&ListParams::default()).await.is_err(), "one bad item spoils the list");
    assert!(pods.get("a").await.is_ok() && pods.get("c").await.is_ok());
    assert_eq!(
        pods.list_metadata(&ListParams::default().fields("metadata.name!=b"))
            .await
            .expect("a list")
            .items
            .len(),
        2
    );
}

#[tokio::test]
async fn a_corrupt_object_can_be_shown_as_a_table_selected_repaired_and_deleted() {
    let (server, _) = mk_corrupt();
    let request = http::Request::get(PODS).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).expect("a request");
    let table = tower_service::Service::call(&mut server.service(), request).await.expect("an answer");
    assert_eq!(table.status(), 200);
    let (table, error) = crate::client::read(table.into_body()).await;
    let table: Value = serde_json::from_slice(&table).expect("JSON");
    assert_eq!((table["rows"].as_array().map(Vec::len), error.is_none()), (Some(3), true));

    let running = get_json(&server, &format!("{PODS}?fieldSelector=status.phase%3DPending")).await;
    assert_eq!(names(&running), ["a", "c"], "it has no phase");
    server.put(mk_pod("b")).expect("repaired");
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    assert_eq!(pods.list(&ListParams::default()).await.expect("a list").items.len(), 3);

    let (server, _) = mk_corrupt();
    let key = informer_model::ObjectKey::new(Some("default"), "b").expect("a key");
    assert!(server.discard("", "pods", &key));
    assert_eq!(names(&get_json(&server, PODS).await), ["a", "c"]);
}

#[tokio::test]
async fn what_is_no_object_of_a_served_kind_is_refused() {
    let server = mk_server();
    for odd in
        [json!(null), json!("text"), json!([]), json!(7), json!({}), json!({ "kind": 7, "apiVersion": [] })]
    {
        assert_eq!(server.put(odd.clone()).expect_err("refused").code, 400, "{odd}");
    }
    let version = server.version();
    for metadata in
        [json!(null), json!("text"), json!([]), json!({}), json!({ "name": 7 }), json!({ "name": "" })]
    {
        let mut pod = mk_pod("a");
        pod["metadata"] = metadata;
        let status = server.put(pod.clone()).expect_err("refused");
        assert!(matches!(status.code, 400 | 422), "{pod}: {status}");
    }
    let mut homeless = mk_pod("a");
    homeless["metadata"]["namespace"] = "nowhere".into();
    assert_eq!(server.put(homeless).expect_err("refused").code, 404);
    assert_eq!(server.version(), version, "nothing was written");
}
