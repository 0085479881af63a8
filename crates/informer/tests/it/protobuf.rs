//! Protobuf on the wire: the same objects as from JSON, whatever happens on the way.

use std::{
    io::Write,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use futures_util::future::BoxFuture;
use informer::{
    KubeListWatch, RawObject, SharedInformer,
    discovery::Discovery,
    source::{ListOptions, ListStream, ListWatch, SourceError, WatchItem, WatchStream, WireOptions},
};
use informer_apiserver::{ApiServer, DemoCluster};
use informer_model::{complete_fields, encode_protobuf, encode_watch_event};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::{Value, json};

use crate::support::{
    canned::{Canned, events, lines, list, objects, watch},
    validator::Validator,
};

const MINUTE: Duration = Duration::from_secs(60);
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn json() -> WireOptions {
    WireOptions::default().json()
}

/// Protobuf cannot tell an empty list from none.
fn without_empty_lists(value: Value) -> Value {
    match value {
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Array(items) => items.into_iter().map(without_empty_lists).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, without_empty_lists(value))).collect()
        }
        value => value,
    }
}

#[tokio::test]
async fn every_object_of_a_demo_cluster_is_the_same_from_protobuf_and_from_json() {
    let server = ApiServer::builder().seed(7).build();
    server.load_demo(&DemoCluster::new(7, 120)).expect("a cluster");
    let catalog = Discovery::new(server.client()).catalog().await.expect("a catalog");
    // The generator makes autoscalers of v2, and the server does not convert between versions.
    let listed = catalog.resources.iter().filter(|served| {
        served.verbs.iter().any(|verb| verb == "list") && served.api.api_version != "autoscaling/v1"
    });
    let mut compared = 0;
    for served in listed {
        let source = || KubeListWatch::<RawObject>::of_kind(server.client(), served.api.clone());
        for kept in [false, true] {
            let source = || if kept { source().keep_managed_fields() } else { source() };
            let (from_protobuf, error) = list(&source()).await;
            assert!(error.is_none(), "{}: {error:?}", served.api.plural);
            let (from_json, _) = list(&source().wire(json())).await;
            assert_eq!(lines(&from_protobuf), lines(&from_json));
            for (one, other) in objects(&from_protobuf).iter().zip(objects(&from_json)) {
                // The generator writes some zeros that a server leaves out.
                let mut other_value = other.value().unwrap();
                complete_fields(&served.api.api_version, &served.api.kind, &mut other_value);
                let told = |value| without_empty_lists(value).to_string();
                assert_eq!(told(one.value().unwrap()), told(other_value), "{}", served.api.plural);
                assert_eq!(one.labels(), other.labels());
                compared += 1;
            }
        }
    }
    assert!(compared > 300, "{compared}");
    let pods = || KubeListWatch::<Pod>::all(server.client());
    let ((one, _), (other, _)) = (list(&pods()).await, list(&pods().wire(json())).await);
    let (one, other) = (objects(&one), objects(&other));
    assert_eq!((one.len(), other.len()), (120, 120));
    for (one, other) in one.iter().zip(&other) {
        let [one, mut other] = [one, other].map(|pod| serde_json::to_value(&**pod).unwrap());
        complete_fields("v1", "Pod", &mut other);
        assert_eq!(one["spec"], other["spec"]);
    }
}

#[tokio::test]
async fn a_server_that_refuses_protobuf_is_asked_for_it_once() {
    let server = Canned::json(r#"{"kind":"Status","code":406,"status":"Failure"}"#).code(406).serve();
    let pods = KubeListWatch::<Pod>::all(server.client());
    for _ in 0..2 {
        assert!(matches!(list(&pods).await.1, Some(SourceError::Status(status)) if status.code == 406));
    }
    let asked = |head: &String| head.contains(PROTOBUF);
    assert_eq!(server.requests().iter().map(asked).collect::<Vec<_>>(), [true, false, false]);
}

#[tokio::test]
async fn an_error_in_protobuf_is_told_in_its_own_words() {
    let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
        "reason": "Forbidden", "message": "pods is forbidden" });
    let bytes = encode_protobuf(&status).unwrap();
    let server = Canned::new(403, bytes).header("content-type", PROTOBUF).serve();
    let error = list(&KubeListWatch::<Pod>::all(server.client())).await.1.expect("an error");
    assert!(error.to_string().contains("pods is forbidden"), "{error}");
    let server = Canned::new(200, encode_watch_event("ERROR", &status).unwrap())
        .header("content-type", "application/vnd.kubernetes.protobuf;stream=watch")
        .serve();
    let (items, error) = watch(&KubeListWatch::<Pod>::all(server.client()), ListOptions::default()).await;
    assert!(error.is_none());
    assert!(matches!(&items[..], [WatchItem::Error(status)] if status.code == 403), "{}", items.len());
}

fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "k": name.repeat(20) },
        "metadata": { "name": name, "namespace": "shop", "resourceVersion": "7" } })
}

/// The bytes as they are, in one gzip member, and in a member for each few bytes.
fn packings(plain: &[u8]) -> Vec<(bool, Vec<u8>)> {
    let mut packings = vec![(false, plain.to_vec())];
    for size in [plain.len(), 50] {
        let mut packed = Vec::new();
        for part in plain.chunks(size) {
            let mut member = GzEncoder::new(&mut packed, Compression::fast());
            member.write_all(part).unwrap();
            member.finish().unwrap();
        }
        packings.push((true, packed));
    }
    packings
}

fn canned(gzip: bool, bytes: &[u8]) -> informer::kube::Client {
    let canned = Canned::new(200, bytes).header("content-type", PROTOBUF);
    if gzip { canned.header("content-encoding", "gzip") } else { canned }.serve().client()
}

#[tokio::test]
async fn a_list_that_is_cut_at_any_byte_is_whole_or_an_error() {
    let maps: Vec<Value> = ["a", "b", "c"].map(config_map).into();
    let whole = json!({ "apiVersion": "v1", "kind": "ConfigMapList", "items": maps,
        "metadata": { "resourceVersion": "8" } });
    let expected = ["shop/a@7", "shop/b@7", "shop/c@7", "end 8"];
    for (gzip, bytes) in packings(&encode_protobuf(&whole).unwrap()) {
        for cut in 0..=bytes.len() {
            let maps = KubeListWatch::<ConfigMap>::all(canned(gzip, &bytes[..cut]));
            let (items, error) = list(&maps).await;
            let lines = lines(&items);
            assert!(expected.starts_with(&lines.iter().map(String::as_str).collect::<Vec<_>>()), "{lines:?}");
            assert_eq!(error.is_none(), lines.len() == expected.len(), "cut at {cut}: {error:?}");
            assert!(cut < bytes.len() || error.is_none());
        }
    }
}

#[tokio::test]
async fn a_watch_that_is_cut_at_any_byte_tells_whole_events_alone() {
    let bookmark = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "resourceVersion": "9",
        "annotations": { "k8s.io/initial-events-end": "true" } } });
    let stream = [
        encode_watch_event("ADDED", &config_map("a")).unwrap(),
        encode_watch_event("BOOKMARK", &bookmark).unwrap(),
        encode_watch_event("DELETED", &config_map("b")).unwrap(),
    ];
    let mut all = Vec::new();
    for (gzip, bytes) in packings(&stream.concat()) {
        for cut in (0..=bytes.len()).rev() {
            let maps = KubeListWatch::<ConfigMap>::all(canned(gzip, &bytes[..cut]));
            let (items, error) = watch(&maps, ListOptions::default()).await;
            let told = events(&items);
            if cut == bytes.len() {
                assert_eq!((told.len(), error.is_none()), (3, true), "{told:?} {error:?}");
                assert!(matches!(&items[1], WatchItem::Bookmark { initial_events_end: true, .. }));
                all.clone_from(&told);
            }
            assert!(all.starts_with(&told), "cut at {cut}: {told:?}");
        }
    }
}

/// Asks in JSON and in protobuf by turns.
struct Fickle {
    sources: [KubeListWatch<ConfigMap>; 2],
    turn: AtomicUsize,
}

impl Fickle {
    fn next(&self) -> &KubeListWatch<ConfigMap> {
        &self.sources[self.turn.fetch_add(1, Relaxed) % 2]
    }
}

impl ListWatch<ConfigMap> for Fickle {
    fn description(&self) -> String {
        self.sources[0].description()
    }

    fn list(&self, options: ListOptions) -> BoxFuture<'static, Result<ListStream<ConfigMap>, SourceError>> {
        self.next().list(options)
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'static, Result<WatchStream<ConfigMap>, SourceError>> {
        self.next().watch(options)
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_changes_its_mind_changes_no_object() {
    for streaming in [true, false] {
        let server = ApiServer::builder().seed(3).build();
        let put = |name: &str, value: &str| {
            let mut map = config_map(name);
            (map["metadata"]["namespace"], map["data"]["k"]) = ("default".into(), value.into());
            map["metadata"].as_object_mut().unwrap().remove("resourceVersion");
            server.put(map).expect("written");
        };
        ["a", "b", "c"].iter().for_each(|name| put(name, "1"));
        let source = || KubeListWatch::<ConfigMap>::all(server.client()).in_namespace("default");
        let fickle = Fickle { sources: [source(), source().wire(json())], turn: AtomicUsize::new(0) };
        let informer = SharedInformer::builder(fickle).streaming(streaming).build().unwrap();
        let heard = Validator::add(&informer, "heard");
        informer.start().unwrap();
        informer.wait_until_synced(MINUTE).await.unwrap();
        for round in 0..6 {
            put("b", &round.to_string());
            informer.wait_for_resource_version(&server.version().into(), MINUTE).await.unwrap();
            let told = heard.events();
            // Everything is listed again, in the other form.
            server.compact();
            server.break_watches();
            tokio::time::sleep(MINUTE).await;
            assert_eq!(heard.events(), told, "{:?}", heard.story());
        }
        heard.check();
        informer.stop().await.unwrap();
    }
}
