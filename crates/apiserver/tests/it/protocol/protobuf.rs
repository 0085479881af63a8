//! Answers in protobuf: the same as in JSON, for kinds that have it.

use std::{collections::BTreeSet, time::Duration};

use informer_apiserver::{ApiServer, DemoCluster, Fault, Rule};
use informer_model::{BUILTIN_KINDS, Status, complete_fields, encode_protobuf};
use serde_json::{Value, json};

use crate::{
    client::{Answer, Api, JSON, MERGE_PATCH, PROTOBUF, names, query, version},
    objects::{
        CRDS, DEPLOYMENTS, MAPS, PODS, WIDGETS, mk_config_map, mk_crd, mk_deployment, mk_held, mk_pod,
        mk_widget,
    },
};

const EITHER: &str = "application/vnd.kubernetes.protobuf,application/json";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// An answer that must be in protobuf.
#[track_caller]
fn protobuf(answer: Answer) -> Answer {
    assert_eq!(answer.headers["content-type"], PROTOBUF, "{}", answer.body);
    answer
}

/// What protobuf can tell of JSON: an object with all that its kind always has.
fn complete(mut object: Value) -> Value {
    let text = |field: &str| object[field].as_str().expect("text").to_owned();
    complete_fields(&text("apiVersion"), &text("kind"), &mut object);
    object
}

/// The same for what is within: it has no kind of its own, and a list that is empty is none.
fn told(value: Value) -> Value {
    match value {
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Array(items) => items.into_iter().map(told).collect(),
        Value::Object(fields) => {
            let is_claim = fields.get("kind").is_some_and(|kind| kind == "PersistentVolumeClaim");
            let fields =
                fields.into_iter().filter(|(name, _)| !is_claim || name != "kind" && name != "apiVersion");
            fields.map(|(name, value)| (name, told(value))).collect()
        }
        value => value,
    }
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().expect("items")
}

async fn with_widget() -> Api {
    let api = Api::new();
    api.post(CRDS, &mk_crd()).await.ok();
    api.post(WIDGETS, &mk_widget("a", "red")).await.ok();
    api
}

#[tokio::test]
async fn json_and_protobuf_say_the_same_of_every_kind_of_a_cluster() {
    let cluster = DemoCluster::new(7, 150);
    let api = Api::new();
    api.server.load_demo(&cluster).expect("a cluster");
    let text = |object: &Value, field: &str| object[field].as_str().expect("text").to_owned();
    let kinds: BTreeSet<_> = cluster.objects().map(|o| (text(&o, "apiVersion"), text(&o, "kind"))).collect();
    assert!(kinds.len() > 15, "{kinds:?}");
    for (api_version, kind) in kinds {
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let mut known = BUILTIN_KINDS.iter();
        let plural = known.find(|k| (k.group, k.version, k.kind) == (group, version, kind.as_str()));
        let Some(plural) = plural.map(|kind| kind.plural) else {
            assert!(group.contains('.'), "{api_version} {kind} is a custom resource");
            continue;
        };
        let path = format!("/{}/{api_version}/{plural}", if group.is_empty() { "api" } else { "apis" });
        let list = told(complete(api.get(&path).await.ok()));
        let in_protobuf = told(protobuf(api.get_as(&path, PROTOBUF).await).ok());
        assert_eq!(items(&in_protobuf), items(&list), "{kind}");
        assert_eq!((&in_protobuf["kind"], &in_protobuf["metadata"]), (&list["kind"], &list["metadata"]));
        let mut watch = api.watch_as(&query(&path, &[("watch", "true")]), PROTOBUF).await;
        for item in items(&list) {
            let (r#type, mut object) = watch.event().await;
            let fields = object.as_object_mut().expect("an object");
            let is = [fields.remove("kind"), fields.remove("apiVersion")];
            assert_eq!(is, [Some(kind.as_str().into()), Some(api_version.as_str().into())]);
            assert_eq!((r#type.as_str(), &told(object)), ("ADDED", item), "{kind}");
        }
        let metadata = api.get_as(&path, &METADATA_LIST.replace(PROTOBUF, JSON)).await.ok();
        let in_protobuf = protobuf(api.get_as(&path, METADATA_LIST).await).ok();
        assert_eq!(in_protobuf["metadata"], metadata["metadata"]);
        let of = |list: &Value| items(list).iter().map(|item| item["metadata"].clone()).collect::<Vec<_>>();
        assert_eq!(of(&in_protobuf), of(&metadata), "{kind}");
    }
}

#[tokio::test]
async fn one_object_and_its_metadata_are_what_json_shows() {
    let api = Api::new();
    let created = api.post(PODS, &mk_pod("a")).await.ok();
    let path = format!("{PODS}/a");
    for accept in [PROTOBUF, EITHER, "application/json;q=0.5,application/vnd.kubernetes.protobuf"] {
        assert_eq!(protobuf(api.get_as(&path, accept).await).ok(), complete(created.clone()), "{accept}");
    }
    assert_eq!(
        protobuf(api.get_as(&path, METADATA).await).ok(),
        json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": created["metadata"] })
    );
}

#[tokio::test]
async fn a_list_has_pages_and_may_be_long_or_empty() {
    let api = Api::new();
    let empty = protobuf(api.get_as(MAPS, PROTOBUF).await).ok();
    assert_eq!((&empty["kind"], &empty["items"]), (&"ConfigMapList".into(), &json!([])));
    for i in 0..200 {
        let mut map = mk_config_map(&format!("map-{i:03}"));
        map["data"]["filler"] = "x".repeat(1000).into();
        api.post(MAPS, &map).await.ok();
    }
    assert_eq!(protobuf(api.get_as(MAPS, PROTOBUF).await).ok(), api.get(MAPS).await.ok());
    let page = protobuf(api.get_as(&query(MAPS, &[("limit", "150")]), PROTOBUF).await).ok();
    assert_eq!((names(&page).len(), &page["metadata"]["remainingItemCount"]), (150, &50.into()));
    let token = page["metadata"]["continue"].as_str().expect("a token");
    let rest = protobuf(api.get_as(&query(MAPS, &[("continue", token)]), PROTOBUF).await).ok();
    assert_eq!((names(&rest).len(), version(&rest)), (50, version(&page)));
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_a_stream_of_frames_with_bookmarks_and_changes() {
    let api = Api::of(ApiServer::builder().seed(1).bookmark_interval(Duration::from_secs(60)).build());
    let a = api.post(MAPS, &mk_config_map("a")).await.ok();
    let streaming = [
        ("watch", "true"),
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
        ("allowWatchBookmarks", "true"),
    ];
    let mut watch = api.watch_as(&query(MAPS, &streaming), PROTOBUF).await;
    assert_eq!(watch.headers["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
    assert_eq!(watch.event().await, ("ADDED".to_owned(), a.clone()));
    let (r#type, end) = watch.event().await;
    assert_eq!(
        (r#type.as_str(), &end["kind"], version(&end)),
        ("BOOKMARK", &"ConfigMap".into(), version(&a))
    );
    assert_eq!(end["metadata"]["annotations"], json!({ "k8s.io/initial-events-end": "true" }));
    let mut others = [
        api.watch_as(&query(MAPS, &streaming), METADATA).await,
        api.watch_as(&query(MAPS, &streaming), JSON).await,
        api.watch_as(&query(MAPS, &streaming), EITHER).await,
    ];
    for other in &mut others {
        other.lines(2).await;
    }
    let changed = api.merge(&format!("{MAPS}/a"), &json!({ "data": { "b": "2" } })).await.ok();
    assert_eq!(watch.event().await, ("MODIFIED".to_owned(), changed.clone()));
    let [metadata, json, either] = &mut others;
    let (r#type, object) = metadata.event().await;
    assert_eq!((r#type.as_str(), &object["kind"]), ("MODIFIED", &"PartialObjectMetadata".into()));
    assert_eq!(object["metadata"], changed["metadata"]);
    for other in [json, either] {
        assert_eq!(other.event().await, ("MODIFIED".to_owned(), changed.clone()), "each in its own encoding");
    }
    api.delete(&format!("{MAPS}/a")).await.ok();
    assert_eq!(watch.line().await, "DELETED a");
    let (r#type, regular) = watch.event().await;
    assert_eq!((r#type.as_str(), version(&regular)), ("BOOKMARK", api.server.version()), "after a minute");
}

#[tokio::test]
async fn an_object_that_leaves_a_selection_is_deleted_in_protobuf_too() {
    let api = Api::new();
    let mut map = mk_config_map("a");
    map["metadata"]["labels"] = json!({ "on": "yes" });
    api.post(MAPS, &map).await.ok();
    let mut watch =
        api.watch_as(&query(MAPS, &[("watch", "true"), ("labelSelector", "on=yes")]), PROTOBUF).await;
    assert_eq!(watch.line().await, "ADDED a");
    let changed =
        api.merge(&format!("{MAPS}/a"), &json!({ "metadata": { "labels": { "on": "no" } } })).await.ok();
    let (r#type, last) = watch.event().await;
    assert_eq!((r#type.as_str(), version(&last)), ("DELETED", version(&changed)));
    assert_eq!(last["metadata"]["labels"]["on"], "yes");
}

#[tokio::test]
async fn failures_are_a_status_in_protobuf() {
    let api = Api::new();
    for accept in [PROTOBUF, EITHER] {
        let missing = protobuf(api.get_as(&format!("{MAPS}/none"), accept).await).fails(404, "NotFound");
        assert_eq!(missing["details"], json!({ "name": "none", "kind": "configmaps" }));
        protobuf(api.get_as(&query(MAPS, &[("limit", "x")]), accept).await).fails(400, "BadRequest");
        protobuf(api.get_as("/api/v1/nothing", accept).await).fails(404, "NotFound");
    }
    let json = api.get_as(&format!("{MAPS}/none"), METADATA).await;
    assert_eq!(json.headers["content-type"], JSON, "a Status has no metadata to be reduced to");
    let status = Status::too_many_requests("slow down", 7);
    api.server.faults().add(Rule::new(Fault::Status(status)));
    let slow = protobuf(api.get_as(MAPS, PROTOBUF).await);
    assert_eq!(slow.headers["retry-after"], "7");
    slow.fails(429, "TooManyRequests");
}

#[tokio::test]
async fn an_error_event_is_a_status_in_protobuf() {
    let api = Api::new();
    api.post(MAPS, &mk_config_map("a")).await.ok();
    api.server.compact();
    let old = query(MAPS, &[("watch", "true"), ("resourceVersion", "1")]);
    let (r#type, status) = api.watch_as(&old, PROTOBUF).await.event().await;
    assert_eq!((r#type.as_str(), &status["kind"], &status["code"]), ("ERROR", &"Status".into(), &410.into()));
    api.server.faults().add(Rule::new(Fault::StreamError(Status::expired("too old"))));
    let mut watch = api.watch_as(&query(MAPS, &[("watch", "true")]), PROTOBUF).await;
    let (r#type, status) = watch.event().await;
    assert_eq!((r#type.as_str(), &status["reason"]), ("ERROR", &"Expired".into()));
    assert_eq!(watch.line().await, "end");
}

#[tokio::test]
async fn writes_are_answered_in_protobuf_whatever_they_are_sent_in() {
    let api = Api::new();
    let body = encode_protobuf(&mk_pod("a")).expect("protobuf");
    let created = api.send("POST", PODS, &[("accept", PROTOBUF), ("content-type", PROTOBUF)], body).await;
    assert_eq!(created.code, 201);
    let created = protobuf(created).ok();
    assert_eq!(created, complete(api.get(&format!("{PODS}/a")).await.ok()));

    let a = format!("{MAPS}/a");
    let send = async |method: &str, path: &str, r#type: &str, body: Value| {
        protobuf(
            api.send(method, path, &[("accept", EITHER), ("content-type", r#type)], body.to_string()).await,
        )
    };
    let mut map = send("POST", MAPS, JSON, mk_held("a")).await.ok();
    map["data"]["a"] = "2".into();
    let updated = send("PUT", &a, JSON, map).await.ok();
    assert_eq!((&updated["data"]["a"], &updated), (&"2".into(), &api.get(&a).await.ok()));
    let patched = send("PATCH", &a, MERGE_PATCH, json!({ "data": { "a": "3" } })).await.ok();
    assert_eq!(patched, api.get(&a).await.ok());
    send("POST", MAPS, JSON, mk_config_map("a")).await.fails(409, "AlreadyExists");
    let held = send("DELETE", &a, JSON, json!({})).await.ok();
    assert!(held["metadata"]["deletionTimestamp"].is_string(), "{held}");
    send("POST", MAPS, JSON, mk_config_map("b")).await.ok();
    let deleted = send("DELETE", &format!("{MAPS}/b"), JSON, json!({})).await.ok();
    assert_eq!(
        (&deleted["kind"], &deleted["status"], &deleted["details"]["name"]),
        (&"Status".into(), &"Success".into(), &"b".into())
    );
    let all = send("DELETE", MAPS, JSON, json!({})).await.ok();
    assert_eq!((&all["kind"], names(&all)), (&"ConfigMapList".into(), vec!["a".to_owned()]));
}

#[tokio::test]
async fn a_scale_is_protobuf_for_every_kind_that_has_one() {
    let api = Api::new();
    api.post(DEPLOYMENTS, &mk_deployment("a", 2)).await.ok();
    let path = format!("{DEPLOYMENTS}/a/scale");
    let scale = protobuf(api.get_as(&path, PROTOBUF).await).ok();
    assert_eq!(scale, api.get(&path).await.ok());
    let headers = [("accept", PROTOBUF), ("content-type", PROTOBUF)];
    let mut sent = scale;
    sent["spec"]["replicas"] = 5.into();
    let answer =
        protobuf(api.send("PUT", &path, &headers, encode_protobuf(&sent).expect("protobuf")).await).ok();
    assert_eq!(answer["spec"]["replicas"], 5);
    let before = api.server.version();
    let refused = [("accept", "text/html"), ("content-type", MERGE_PATCH)];
    let patch = json!({ "spec": { "replicas": 6 } }).to_string();
    api.send("PATCH", &path, &refused, patch).await.fails(406, "NotAcceptable");
    assert_eq!(api.server.version(), before, "nothing was written");
}

#[tokio::test]
async fn custom_resources_are_json_or_nothing_and_their_metadata_is_protobuf() {
    let api = with_widget().await;
    let a = format!("{WIDGETS}/a");
    let whole = api.get(&a).await.ok();
    let either = api.get_as(&a, EITHER).await;
    assert_eq!((&either.headers["content-type"], &either.body), (&JSON.parse().unwrap(), &whole));
    for path in [WIDGETS.to_owned(), a.clone(), query(WIDGETS, &[("watch", "true")])] {
        let refused = protobuf(api.get_as(&path, PROTOBUF).await).fails(406, "NotAcceptable");
        let message = refused["message"].as_str().expect("text");
        assert!(
            message.starts_with("only the following media types are accepted: application/json"),
            "{message}"
        );
    }
    let before = api.server.version();
    let headers = [("accept", PROTOBUF), ("content-type", JSON)];
    let body = mk_widget("b", "blue").to_string();
    protobuf(api.send("POST", WIDGETS, &headers, body).await).fails(406, "NotAcceptable");
    assert_eq!(api.server.version(), before, "nothing was written");
    let metadata = protobuf(api.get_as(&a, METADATA).await).ok();
    assert_eq!(
        (&metadata["kind"], &metadata["metadata"]),
        (&"PartialObjectMetadata".into(), &whole["metadata"])
    );
    let list = protobuf(api.get_as(WIDGETS, METADATA_LIST).await).ok();
    assert_eq!(list["items"], json!([{ "metadata": whole["metadata"] }]));
    let (_, event) = api.watch_as(&query(WIDGETS, &[("watch", "true")]), METADATA).await.event().await;
    assert_eq!(event["metadata"], whole["metadata"]);
    let gone = api.send("DELETE", &a, &[("accept", EITHER)], "").await;
    assert_eq!(
        (&gone.headers["content-type"], &gone.body["status"]),
        (&JSON.parse().unwrap(), &"Success".into())
    );
}

#[tokio::test]
async fn a_table_is_json() {
    let api = Api::new();
    let table = format!("{PROTOBUF};as=Table;v=v1;g=meta.k8s.io");
    let refused = api.get_as(PODS, &table).await;
    assert_eq!(refused.headers["content-type"], JSON);
    refused.fails(406, "NotAcceptable");
    let answer = api.get_as(PODS, &format!("{table},{}", crate::client::TABLE)).await;
    assert_eq!(
        (&answer.headers["content-type"], &answer.body["kind"]),
        (&JSON.parse().unwrap(), &"Table".into())
    );
    let answer = api.get_as(PODS, &format!("{table},{EITHER}")).await;
    assert_eq!(protobuf(answer).ok()["kind"], "PodList");
}

#[tokio::test]
async fn an_object_that_is_none_of_its_kind_is_a_failure_with_its_name() {
    let api = Api::new();
    for name in ["a", "b"] {
        let mut pod = mk_pod(name);
        if name == "b" {
            pod["spec"] = json!("not a spec");
        }
        api.server.put(pod).expect("written");
    }
    assert_eq!(protobuf(api.get_as(&format!("{PODS}/a"), PROTOBUF).await).code, 200);
    for path in [format!("{PODS}/b"), PODS.to_owned()] {
        let failure = protobuf(api.get_as(&path, EITHER).await).fails(500, "InternalError");
        let message = failure["message"].as_str().expect("text");
        assert!(message.contains("default/b") && message.contains("expected an object"), "{message}");
    }
    let mut watch = api.watch_as(&query(PODS, &[("watch", "true")]), PROTOBUF).await;
    assert_eq!(watch.lines(3).await, ["ADDED a", "ERROR", "end"]);
    let mut watch =
        api.watch_as(&query(PODS, &[("watch", "true"), ("resourceVersion", "1")]), PROTOBUF).await;
    assert_eq!(watch.lines(3).await, ["ADDED a", "ERROR", "end"]);
    assert_eq!(names(&protobuf(api.get_as(PODS, METADATA_LIST).await).ok()), ["a", "b"]);
}
