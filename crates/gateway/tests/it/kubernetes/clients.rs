//! Clients of Kubernetes that know nothing of the gateway: kube-rs, and the informers of this library.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use futures_util::TryStreamExt;
use informer::{RawObject, SharedInformer, SharedInformerFactory, source::WireOptions};
use informer_apiserver::DemoCluster;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};

use crate::support::*;

/// Long: it is only waited so long when the test is about to fail.
const PATIENCE: Duration = Duration::from_secs(30);

/// When the demo cluster was made.
const NEW_YEAR: Timestamp = Timestamp::constant(1_767_225_600, 0);

fn client(stage: &Stage) -> Client {
    Client::try_from(Config::new(stage.url().parse().expect("a URL"))).expect("a client")
}

#[tokio::test]
async fn kube_reads_lists_pages_objects_and_metadata() {
    let stage = Stage::open(mk_demo(50)).await;
    let pods: Api<Pod> = Api::all(client(&stage));
    let all = pods.list(&ListParams::default()).await.expect("a list");
    assert_eq!(all.items.len(), 50);
    let (mut names, mut token) = (Vec::new(), None);
    loop {
        let mut page = ListParams::default().limit(7);
        page.continue_token = token;
        let page = pods.list(&page).await.expect("a page");
        assert_eq!(page.metadata.resource_version, all.metadata.resource_version);
        names.extend(page.items.iter().map(|pod| pod.name_any()));
        token = page.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            break;
        }
    }
    assert_eq!(names, all.items.iter().map(|pod| pod.name_any()).collect::<Vec<_>>());
    let one = &all.items[0];
    let own: Api<Pod> = Api::namespaced(client(&stage), &one.namespace().expect("a namespace"));
    assert_eq!(own.get(&one.name_any()).await.expect("the pod").uid(), one.uid());
    assert_eq!(own.get_metadata(&one.name_any()).await.expect("its metadata").labels(), one.labels());
    assert!(own.get_opt("nobody").await.expect("an answer").is_none());
    let metadata = pods.list_metadata(&ListParams::default()).await.expect("a list");
    assert_eq!(metadata.items.len(), 50);
    let system: Api<Namespace> = Api::all(client(&stage));
    assert!(system.get("kube-system").await.is_ok());
    stage.close().await;
}

#[tokio::test]
async fn kube_is_told_that_nothing_can_be_written() {
    let stage = Stage::open(mk_demo(5)).await;
    let before = stage.server.version();
    let pods: Api<Pod> = Api::namespaced(client(&stage), "default");
    let pod: Pod = serde_json::from_value(mk_pod("default", "new", json!({}))).expect("a pod");
    let created = pods.create(&PostParams::default(), &pod).await.expect_err("no creating");
    let deleted = pods.delete("new", &DeleteParams::default()).await.expect_err("no deleting");
    for error in [created, deleted] {
        assert!(matches!(&error, kube::Error::Api(status) if status.code == 405), "{error:?}");
    }
    assert_eq!(stage.server.version(), before, "nothing has changed");
    stage.close().await;
}

#[tokio::test]
async fn kube_watches() {
    let stage = Stage::open(mk_server()).await;
    stage.put([mk_pod("default", "a", json!({}))]);
    let pods: Api<Pod> = Api::all(client(&stage));
    let version = pods.list(&ListParams::default()).await.expect("a list").metadata.resource_version;
    let parameters = WatchParams::default().timeout(290);
    let mut events = pin!(pods.watch(&parameters, &version.expect("a version")).await.expect("a watch"));
    stage.put([mk_pod("default", "b", json!({})), mk_pod("default", "a", json!({"new": "yes"}))]);
    stage.discard("pods", "default/b");
    let mut seen = Vec::new();
    while seen.len() < 3 {
        seen.push(match events.try_next().await.expect("an event").expect("more") {
            WatchEvent::Added(pod) => format!("+{}", pod.name_any()),
            WatchEvent::Modified(pod) => format!("~{}", pod.name_any()),
            WatchEvent::Deleted(pod) => format!("-{}", pod.name_any()),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(seen, ["+b", "~a", "-b"]);
    let streaming = WatchParams::default().initial_events();
    let mut events = pin!(pods.watch(&streaming, "0").await.expect("a watch"));
    assert!(matches!(events.try_next().await, Ok(Some(WatchEvent::Added(pod))) if pod.name_any() == "a"));
    let Ok(Some(WatchEvent::Bookmark(end))) = events.try_next().await else { panic!("no bookmark") };
    assert_eq!(end.metadata.annotations.get("k8s.io/initial-events-end").map(String::as_str), Some("true"));
    stage.close().await;
}

async fn follow(client: Client, streaming: bool) -> (SharedInformerFactory, SharedInformer<RawObject>) {
    // In JSON on both sides: the generator writes some zeros that protobuf leaves out.
    let builder = SharedInformerFactory::builder(client).wire(WireOptions::default().json());
    let factory = builder.streaming(streaming).build().expect("a factory");
    let informer = factory.for_resource_as::<RawObject>("pods").await.expect("pods").informer();
    factory.start().expect("started");
    informer.wait_until_synced(PATIENCE).await.expect("synced");
    (factory, informer)
}

fn objects(informer: &SharedInformer<RawObject>) -> BTreeMap<String, Value> {
    let snapshot = informer.store().snapshot();
    snapshot.iter().map(|object| (object.key().to_string(), object.value().expect("an object"))).collect()
}

#[tokio::test]
async fn an_informer_behind_the_gateway_has_what_one_before_it_has() {
    for streaming in [true, false] {
        let demo = DemoCluster::new(7, 60);
        let server = mk_server();
        server.load_demo(&demo).expect("a cluster");
        let stage = Stage::open(server).await;
        let (direct_factory, direct) = follow(stage.server.client(), streaming).await;
        let (behind_factory, behind) = follow(client(&stage), streaming).await;
        assert_eq!(objects(&behind), objects(&direct));
        assert_eq!(objects(&direct).len(), 60);
        let (mut churn, mut now) = (demo.churn(), NEW_YEAR);
        for round in 0..5 {
            for _ in 0..60 {
                now += Duration::from_secs(1);
                if let Some(change) = churn.next(now, &stage.server) {
                    stage.server.apply(change).expect("it applies");
                }
            }
            let version = stage.put([mk_pod("default", "last", json!({"round": round.to_string()}))]);
            for informer in [&direct, &behind] {
                let store = informer.store();
                store
                    .wait_for_resource_version(&version.as_str().into(), PATIENCE)
                    .await
                    .expect("the version");
            }
            assert_eq!(objects(&behind), objects(&direct), "round {round}");
        }
        behind_factory.shutdown().await;
        direct_factory.shutdown().await;
        stage.close().await;
    }
}
