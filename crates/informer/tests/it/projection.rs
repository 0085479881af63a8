//! Structs of a few fields as kinds of objects.

use std::time::Duration;

use informer::{
    DynamicObject, KubeListWatch, SharedInformer, model::ObjectKey, queue::Transform, source::ListWatch,
};
use informer_apiserver::ApiServer;
use informer_testing::custom_resource;
use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Resource,
    api::PostParams,
    core::{ApiResource, PartialObjectMeta},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const MINUTE: Duration = Duration::from_secs(60);

/// Where a pod runs.
#[derive(Clone, Debug, Deserialize)]
struct PodPlace {
    metadata: ObjectMeta,
    spec: Place,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    node_name: String,
}

informer::projection!(PodPlace of Pod);

/// How a pod is.
#[derive(Clone, Debug, Deserialize)]
struct PodPhase {
    metadata: ObjectMeta,
    status: Phase,
}

#[derive(Clone, Debug, Deserialize)]
struct Phase {
    phase: String,
}

informer::projection!(PodPhase of k8s_openapi::api::core::v1::Pod);

#[derive(Clone, Debug, Deserialize)]
struct Labelled {
    metadata: ObjectMeta,
}

informer::projection!(Labelled of PartialObjectMeta<Pod>);

/// Anything with a number of replicas.
#[derive(Clone, Debug, Deserialize)]
struct Scaled {
    metadata: ObjectMeta,
    spec: Replicas,
}

#[derive(Clone, Debug, Deserialize)]
struct Replicas {
    replicas: u32,
}

informer::projection!(Scaled of DynamicObject);

#[derive(Clone, Debug, Deserialize)]
struct Website {
    metadata: ObjectMeta,
    spec: WebsiteSpec,
}

#[derive(Clone, Debug, Deserialize)]
struct WebsiteSpec {
    domain: String,
}

informer::projection!(Website of {
    group: "example.com",
    version: "v1",
    kind: "Website",
    plural: "websites",
    scope: Namespaced,
});

struct NodeName {
    metadata: ObjectMeta,
}

informer::projection!(NodeName of { group: "", version: "v1", kind: "Node", plural: "nodes", scope: Cluster });

/// A server with a pod of which each projection sees another part.
fn mk_server() -> ApiServer {
    let server = ApiServer::builder().seed(1).build();
    server.put(mk_pod("node-1", "Pending")).expect("written");
    server
}

fn mk_pod(node: &str, phase: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web", "namespace": "default", "labels": { "app": "shop" } },
        "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "nginx" }] },
        "status": { "phase": phase },
    })
}

fn web() -> ObjectKey {
    "default/web".parse().expect("a key")
}

/// What an informer has of `default/web`: when it is synced, and when it has seen what `change` does.
async fn before_and_after<K: Clone + Send + Sync + 'static>(
    server: &ApiServer,
    source: impl ListWatch<K>,
    change: impl FnOnce(),
) -> [K; 2] {
    let informer = SharedInformer::builder(source).seed(1).build().expect("settings that go together");
    let (runner, stop) = (informer.clone(), CancellationToken::new());
    let stopped = stop.clone();
    let running = tokio::spawn(async move { runner.run(stopped).await });
    informer.wait_until_synced(MINUTE).await.expect("it syncs");
    let before = informer.store().get(&web()).expect("an object");
    change();
    informer.wait_for_resource_version(&server.version().into(), MINUTE).await.expect("it catches up");
    let after = informer.store().get(&web()).expect("an object");
    assert_eq!(informer.quarantined(), []);
    stop.cancel();
    running.await.expect("no panic").expect("it ran once");
    [(*before).clone(), (*after).clone()]
}

#[tokio::test(start_paused = true)]
async fn two_projections_of_one_kind_are_two_kinds_each_with_its_fields() {
    let server = mk_server();
    let places = before_and_after(&server, KubeListWatch::<PodPlace>::all(server.client()), || {
        server.put(mk_pod("node-2", "Running")).expect("written");
    });
    assert_eq!(places.await.map(|pod| pod.spec.node_name), ["node-1", "node-2"]);
    let phases = before_and_after(&server, KubeListWatch::<PodPhase>::all(server.client()), || {
        server.put(mk_pod("node-2", "Failed")).expect("written");
    });
    assert_eq!(phases.await.map(|pod| pod.status.phase), ["Running", "Failed"]);
}

#[tokio::test(start_paused = true)]
async fn a_projection_of_metadata_has_the_server_leave_out_the_rest() {
    let server = mk_server();
    let source = KubeListWatch::<Labelled>::all(server.client());
    assert_eq!(source.description(), "metadata of pods in all namespaces");
    let pods =
        before_and_after(&server, source, || server.put(mk_pod("node-2", "Running")).expect("written"));
    assert_eq!(
        pods.await.map(|pod| pod.metadata.labels.map(|labels| labels["app"].clone())),
        [Some("shop".into()), Some("shop".into())]
    );
}

#[tokio::test(start_paused = true)]
async fn one_projection_of_dynamic_objects_serves_several_kinds() {
    let server = mk_server();
    for (kind, replicas) in [("Deployment", 3), ("StatefulSet", 5)] {
        let put = |replicas: u32| {
            let metadata = json!({ "name": "web", "namespace": "default" });
            server
                .put(json!({ "apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": { "replicas": replicas } }))
                .expect("written");
        };
        put(replicas);
        let of = ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("apps", "v1", kind));
        let source = KubeListWatch::<Scaled>::of_kind(server.client(), of);
        let scaled = before_and_after(&server, source, || put(replicas + 1)).await;
        assert_eq!(scaled.map(|object| object.spec.replicas), [replicas, replicas + 1]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_rust_type_is_told_by_its_names() {
    let server = ApiServer::builder().seed(1).build();
    let crd: CustomResourceDefinition =
        serde_json::from_value(custom_resource("Website", &[])).expect("a definition");
    Api::all(server.client()).create(&PostParams::default(), &crd).await.expect("written");
    let put = |domain: &str| {
        let metadata = json!({ "name": "web", "namespace": "default" });
        let spec = json!({ "domain": domain, "theme": { "colour": "blue" } });
        server
            .put(json!({ "apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata, "spec": spec }))
            .expect("written");
    };
    put("old.example");
    let source = KubeListWatch::<Website>::all(server.client()).in_namespace("default");
    assert_eq!(source.description(), "websites.example.com in namespace \"default\"");
    let sites = before_and_after(&server, source, || put("new.example")).await;
    assert_eq!(sites.map(|site| site.spec.domain), ["old.example", "new.example"]);
}

#[tokio::test(start_paused = true)]
async fn c20_what_is_known_beside_an_object_need_not_be_kept_in_it_too() {
    let server = mk_server();
    let mut pod = mk_pod("node-1", "Running");
    pod["metadata"]["labels"] = json!({ "app": "web" });
    pod["metadata"]["annotations"] = json!({ "note": "x".repeat(1_000) });
    server.put(pod).unwrap();
    let builder = SharedInformer::builder(KubeListWatch::<PodPlace>::all(server.client()));
    let pods = builder.transform(Transform::drop_metadata()).build().unwrap();
    pods.start().unwrap();
    pods.wait_until_synced(MINUTE).await.unwrap();
    let found = pods.store().list(&"app=web".parse().unwrap());
    assert_eq!(found.iter().map(|pod| pod.key().clone()).collect::<Vec<_>>(), [web()]);
    assert_eq!((&found[0].metadata, &*found[0].spec.node_name), (&ObjectMeta::default(), "node-1"));
    assert!(!found[0].resource_version().is_unset() && found[0].labels().get("app") == Some("web"));
    // A change reaches it as before.
    server.put(mk_pod("node-2", "Running")).unwrap();
    pods.wait_for_resource_version(&server.version().into(), MINUTE).await.unwrap();
    assert_eq!(pods.store().get(&web()).unwrap().spec.node_name, "node-2");
    pods.stop().await.unwrap();
}

#[test]
fn a_projection_is_the_kind_that_it_is_of() {
    fn face<K: Resource<DynamicType = ()>>() -> [String; 6] {
        let names = [K::kind(&()), K::group(&()), K::version(&()), K::api_version(&()), K::plural(&())];
        let [a, b, c, d, e] = names.map(|name| name.into_owned());
        [a, b, c, d, e, K::url_path(&(), None)]
    }
    fn same_scope<A: Resource, B: Resource<Scope = A::Scope>>() {}
    assert_eq!(face::<PodPlace>(), face::<Pod>());
    assert_eq!(face::<NodeName>(), face::<Node>());
    same_scope::<PodPlace, Pod>();
    same_scope::<Website, Pod>();
    same_scope::<NodeName, Node>();
    assert!(!PodPlace::metadata_api() && Labelled::metadata_api());
    let mut node = NodeName { metadata: ObjectMeta::default() };
    node.meta_mut().name = Some("n".to_owned());
    assert_eq!(node.meta().name.as_deref(), Some("n"));
}
