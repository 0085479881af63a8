//! Objects that are kept packed: the same as any other, but smaller.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use informer::{
    DynamicObject, Handler, KubeListWatch, Object, Packed, RawObject, SharedInformerFactory,
    discovery::Discovery, kube::Resource, model::Selector, packed::packed_kinds, queue::Transform,
    source::WireOptions,
};
use informer_apiserver::{ApiServer, DemoCluster};
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::canned::{list, objects};

const MINUTE: Duration = Duration::from_secs(60);

fn packed(object: &Value) -> Object<Packed<Pod>> {
    Object::new(serde_json::from_value::<Packed<Pod>>(object.clone()).unwrap()).unwrap()
}

fn web() -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web", "labels": { "app": "shop" } },
        "spec": { "nodeName": "n1", "containers": [] }, "status": { "phase": "Running" } })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Placed {
    spec: Place,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    node_name: Option<String>,
}

/// Waits until a dictionary was trained, which takes a thread of its own some tens of milliseconds.
fn trained(kind: &str) {
    let deadline = Instant::now() + MINUTE;
    while !packed_kinds().iter().any(|packed| packed.kind == kind && packed.trainings > 0) {
        assert!(Instant::now() < deadline, "no dictionary for {kind}: {:?}", packed_kinds());
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn every_object_of_a_demo_cluster_is_the_same_after_packing_and_unpacking() {
    let server = ApiServer::builder().seed(7).build();
    server.load_demo(&DemoCluster::new(7, 300)).expect("a cluster");
    let catalog = Discovery::new(server.client()).catalog().await.expect("a catalog");
    let listed = catalog.resources.iter().filter(|served| served.verbs.iter().any(|verb| verb == "list"));
    let (mut compared, mut plain, mut kept) = (0, 0, 0);
    for served in listed {
        for json in [false, true] {
            // The first objects of a kind are the samples of its dictionary.
            for round in ["plain", "packed"] {
                let wire = || if json { WireOptions::default().json() } else { WireOptions::default() };
                let raw = KubeListWatch::<RawObject>::of_kind(server.client(), served.api.clone());
                let packed =
                    KubeListWatch::<Packed<DynamicObject>>::of_kind(server.client(), served.api.clone());
                let (raw, packed) = (list(&raw.wire(wire())).await, list(&packed.wire(wire())).await);
                assert!(raw.1.is_none() && packed.1.is_none(), "{}", served.api.plural);
                for (raw, packed) in objects(&raw.0).iter().zip(objects(&packed.0)) {
                    assert_eq!((raw.key(), raw.labels()), (packed.key(), packed.labels()));
                    assert_eq!(raw.resource_version(), packed.resource_version());
                    assert_eq!(packed.project::<RawObject>().unwrap().json(), raw.json());
                    assert_eq!(packed.meta(), raw.meta());
                    let decoded = serde_json::from_str::<DynamicObject>(raw.json()).unwrap();
                    assert_eq!(packed.decode().unwrap().data, decoded.data);
                    compared += 1;
                    if served.api.kind == "Pod" && round == "packed" {
                        plain += raw.json().len();
                        kept += packed.packed_bytes();
                    }
                }
                if served.api.kind == "Pod" {
                    trained("v1/Pod");
                }
            }
        }
    }
    assert!(compared > 1_500, "{compared}");
    assert!(kept * 4 < plain, "{plain} bytes of JSON became {kept}");
}

#[tokio::test]
async fn a_factory_keeps_pods_packed_and_everything_works_on_them() {
    let server = ApiServer::builder().seed(5).build();
    server.load_demo(&DemoCluster::new(5, 60)).expect("a cluster");
    let factory = SharedInformerFactory::builder(server.client()).build().unwrap();
    let (typed, packed) = (factory.core().v1().pods().lister(), factory.packed::<Pod>());
    let node = |pod: &Object<Packed<Pod>>| pod.project::<Placed>().ok()?.spec.node_name;
    let by_node = packed.informer().add_index("node", node).unwrap();
    let (sender, heard) = std::sync::mpsc::channel();
    let handler = Handler::<Packed<Pod>>::new().on_update(move |old, new| {
        let phase = |pod: &Packed<Pod>| pod.decode().unwrap().status.clone().unwrap().phase;
        sender.send((phase(old), phase(new))).unwrap();
    });
    packed.informer().add_handler(handler).unwrap();
    factory.start().unwrap();
    factory.wait_for_cache_sync(MINUTE).await.unwrap();

    let some = typed.list(&Selector::everything());
    let label = some.iter().find_map(|pod| Some(pod.labels().iter().next()?.pair().to_owned()));
    let web = label.expect("a label").parse().unwrap();
    let (one, other) = (typed.list(&web), packed.lister().list(&web));
    assert!(!one.is_empty() && one.len() == other.len());
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one.key(), other.key());
        assert_eq!(**one, **other.decode().unwrap());
        let node = one.spec.as_ref().unwrap().node_name.clone().unwrap_or_default();
        assert!(node.is_empty() || by_node.get(&node).iter().any(|pod| pod.key() == one.key()));
    }
    let mut changed = serde_json::to_value(&**one.first().unwrap()).unwrap();
    let before = changed["status"]["phase"].as_str().map(str::to_owned);
    changed["status"]["phase"] = "Unknown".into();
    server.put(changed).unwrap();
    packed.informer().wait_for_resource_version(&server.version().into(), MINUTE).await.unwrap();
    assert_eq!(heard.recv_timeout(MINUTE).unwrap(), (before, Some("Unknown".to_owned())));
    factory.shutdown().await;
}

#[test]
fn a_decoded_object_is_shared_while_somebody_holds_it() {
    let pod = packed(&web());
    let (one, other) = (pod.decode().unwrap(), pod.decode().unwrap());
    assert!(Arc::ptr_eq(&one, &other));
    let gone = Arc::downgrade(&one);
    drop((one, other));
    assert!(gone.upgrade().is_none(), "nothing keeps it");
    assert_eq!(pod.decode().unwrap().spec.as_ref().unwrap().node_name.as_deref(), Some("n1"));
}

#[test]
fn a_body_that_does_not_decode_is_an_error_for_whoever_reads_it() {
    let mut broken = web();
    broken["spec"]["containers"] = 5.into();
    let pod = packed(&broken);
    assert_eq!((pod.key().name(), pod.labels().get("app")), ("web", Some("shop")));
    let error = pod.decode().unwrap_err().to_string();
    assert!(error.contains("spec.containers") && error.contains("cannot be read"), "{error}");
    assert_eq!(
        pod.project::<Placed>().unwrap().spec.node_name.as_deref(),
        Some("n1"),
        "nobody looked at them"
    );
    let named = |broken: &mut Packed<Pod>| {
        broken.meta_mut().name = Some("other".to_owned());
        Ok::<(), ()>(())
    };
    assert!(pod.modify(named).unwrap().decode().is_err());
    for json in ["[]", "7", "{", r#""text""#] {
        assert!(serde_json::from_str::<Packed<Pod>>(json).is_err(), "{json}");
    }
}

#[test]
fn c16_a_transform_changes_what_is_packed() {
    let without_status = Transform::new(|packed: &mut Packed<Pod>| {
        let mut pod = (**packed.decode()?).clone();
        pod.status = None;
        packed.replace(&pod)?;
        Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    });
    let pod = without_status.apply(packed(&web())).unwrap();
    assert!(pod.decode().unwrap().status.is_none());
    let relabelled = Transform::new(|packed: &mut Packed<Pod>| {
        packed.meta_mut().labels = Some([("app".to_owned(), "other".to_owned())].into());
    });
    let held = pod.decode().unwrap();
    let pod = relabelled.apply(pod).unwrap();
    assert_eq!(pod.labels().get("app"), Some("other"));
    assert_eq!(pod.decode().unwrap().metadata.labels.as_ref().unwrap()["app"], "other");
    assert_eq!(pod.meta().labels.as_ref().unwrap()["app"], "other");
    assert_eq!(held.metadata.labels.as_ref().unwrap()["app"], "shop", "who holds it keeps it");
}

#[tokio::test]
async fn json_that_is_packed_is_shown_byte_for_byte_whatever_it_came_as() {
    let server = ApiServer::builder().seed(8).build();
    server.load_demo(&DemoCluster::new(8, 60)).expect("a cluster");
    let catalog = Discovery::new(server.client()).catalog().await.expect("a catalog");
    let pods = catalog.resources.iter().find(|served| served.api.plural == "pods").expect("pods").api.clone();
    for wire in [WireOptions::default(), WireOptions::default().json()] {
        let raw = KubeListWatch::<RawObject>::of_kind(server.client(), pods.clone()).wire(wire);
        let came = KubeListWatch::<Packed<RawObject>>::of_kind(server.client(), pods.clone()).wire(wire);
        let (raw, came) = (list(&raw).await, list(&came).await);
        for (raw, came) in objects(&raw.0).iter().zip(objects(&came.0)) {
            let written = Packed::of_json(raw);
            let alone = Packed::alone(raw);
            assert!(alone.is_compressed() && alone.packed_bytes() < raw.json().len(), "{alone:?}");
            for packed in [&*came, &written, &alone] {
                assert_eq!(packed.with_json(str::to_owned).as_deref(), Ok(raw.json()));
                assert_eq!(packed.with_metadata_json(str::to_owned).as_deref(), Ok(raw.metadata_json()));
                assert_eq!(packed.json_bytes(), raw.json().len());
                let mut out = b"[".to_vec();
                packed.append_json(&mut out).unwrap();
                assert_eq!(out, ["[", raw.json()].concat().as_bytes());
                assert_eq!(packed.meta(), raw.meta());
            }
        }
    }
}
