//! Watching the metadata of objects alone.

use std::{fmt::Debug, time::Duration};

use crate::support::canned::{Canned, events, lines, list, watch};
use informer::{
    Object, SharedInformer,
    model::{ObjectKey, ResourceVersion},
    source::{KubeListWatch, ListItem, ListOptions, ListWatch, SourceError},
};
use informer_apiserver::ApiServer;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
};
use kube::core::{ApiResource, PartialObjectMeta};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const MINUTE: Duration = Duration::from_secs(60);

type Metadata<K> = KubeListWatch<PartialObjectMeta<K>>;

/// A pod with an owner, a label and much in it that is no metadata.
fn mk_pod(name: &str, app: &str) -> Value {
    let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-1", "controller": true });
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "resourceVersion": "7", "labels": { "app": app },
            "ownerReferences": [owner],
        },
        "spec": { "containers": [{ "name": "main", "image": "nginx", "args": vec!["long"; 200] }] },
    })
}

/// An informer that runs, and how to stop it.
struct Running<K: Send + Sync + 'static> {
    informer: SharedInformer<K>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl<K: Send + Sync + 'static> Running<K> {
    async fn synced(source: impl ListWatch<K>, streaming: bool) -> Self {
        let builder = SharedInformer::builder(source).seed(1).streaming(streaming).page_size(2);
        let informer = builder.build().expect("settings that go together");
        let (runner, stop) = (informer.clone(), CancellationToken::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move { runner.run(stopped).await.expect("it runs once") });
        informer.wait_until_synced(MINUTE).await.expect("it syncs");
        Self { informer, stop, task }
    }

    /// An object of the cache.
    fn get(&self, name: &str) -> Option<Object<K>> {
        self.informer.store().get(&key(name))
    }

    /// Waits until the cache has seen all that the server has.
    async fn caught_up(&self, server: &ApiServer) {
        self.informer
            .wait_for_resource_version(&server.version().into(), MINUTE)
            .await
            .expect("it catches up");
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("no panic");
    }
}

fn key(name: &str) -> ObjectKey {
    format!("default/{name}").parse().expect("a key")
}

/// A server with three pods.
fn mk_server() -> ApiServer {
    let server = ApiServer::builder().seed(1).build();
    ["a", "b", "c"].iter().for_each(|name| server.put(mk_pod(name, "web")).expect("written"));
    server
}

/// Follows the pods of a server through a source of their metadata.
async fn follow<K>(source: impl Fn(&ApiServer) -> Metadata<K>)
where
    K: Debug + Send + Sync + 'static,
    PartialObjectMeta<K>: kube::Resource + Clone + serde::de::DeserializeOwned,
    Metadata<K>: ListWatch<PartialObjectMeta<K>>,
{
    for streaming in [true, false] {
        let server = mk_server();
        let whole = Running::synced(KubeListWatch::<Pod>::all(server.client()), streaming).await;
        let lists = || server.requests().get(&("list", "pods".to_owned())).copied().unwrap_or_default();
        let lists_of_whole = lists();
        // A server answers from its cache without pages: only the newest version comes in pages.
        let paged = source(&server).tweak(|options| {
            if options.limit.is_some() {
                options.resource_version = ResourceVersion::default();
            }
        });
        let metadata = Running::synced(paged, streaming).await;
        assert_eq!(lists() - lists_of_whole, if streaming { 0 } else { 2 }, "two pages");

        let (pod, partial) = (whole.get("a").expect("a pod"), metadata.get("a").expect("its metadata"));
        assert_eq!(metadata.informer.store().len(), 3);
        assert_eq!((partial.labels().get("app"), partial.key()), (Some("web"), pod.key()));
        assert_eq!(partial.metadata, pod.metadata);
        assert_eq!(partial.metadata.owner_references.as_ref().expect("owners")[0].name, "web");
        assert!(partial.wire_bytes() * 3 < pod.wire_bytes(), "{} bytes", partial.wire_bytes());

        server.put(mk_pod("a", "shop")).expect("written");
        server.put(mk_pod("d", "web")).expect("written");
        assert!(server.discard("", "pods", &key("b")));
        metadata.caught_up(&server).await;
        let app = |name| metadata.get(name).and_then(|pod| pod.labels().get("app").map(str::to_owned));
        assert_eq!(
            ["a", "b", "c", "d"].map(app),
            ["shop", "", "web", "web"].map(|app| Some(app.to_owned()).filter(|app| !app.is_empty()))
        );
        assert_eq!(metadata.informer.quarantined(), []);
        whole.end().await;
        metadata.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_of_a_typed_kind_is_followed_in_fewer_bytes() {
    follow::<Pod>(|server| KubeListWatch::all(server.client())).await;
}

#[tokio::test(start_paused = true)]
async fn metadata_of_a_kind_known_at_run_time_is_followed_in_fewer_bytes() {
    let kind = ApiResource::erase::<Pod>(&());
    follow::<informer::DynamicObject>(|server| KubeListWatch::of_kind(server.client(), kind.clone())).await;
    follow::<kube::core::DynamicObject>(|server| KubeListWatch::of_kind(server.client(), kind.clone())).await;
}

#[tokio::test]
async fn a_request_for_metadata_takes_whole_objects_too() {
    let server = Canned::json(r#"{"kind":"PodList","apiVersion":"v1","items":[]}"#).serve();
    let pods = Metadata::<Pod>::all(server.client());
    list(&pods).await;
    drop(pods.watch(ListOptions::default()).await.expect("a watch"));
    let accepted: Vec<String> = server
        .requests()
        .iter()
        .filter_map(|head| head.lines().find_map(|line| line.strip_prefix("accept: ").map(str::to_owned)))
        .collect();
    assert_eq!(
        accepted,
        ["PartialObjectMetadataList", "PartialObjectMetadata"].map(|kind| format!(
            "application/vnd.kubernetes.protobuf;as={kind};g=meta.k8s.io;v=v1,\
             application/json;as={kind};g=meta.k8s.io;v=v1,application/json"
        ))
    );
}

#[tokio::test]
async fn a_source_of_metadata_says_so_in_words() {
    let client = || Canned::json("").serve().client();
    assert_eq!(Metadata::<Pod>::all(client()).description(), "metadata of pods in all namespaces");
    assert_eq!(
        Metadata::<Deployment>::all(client()).in_namespace("shop").description(),
        "metadata of deployments.apps in namespace \"shop\""
    );
    assert_eq!(Metadata::<Node>::all(client()).description(), "metadata of nodes");
}

fn mk_partial(api_version: &str, name: &str) -> Value {
    let metadata = json!({ "name": name, "namespace": "default", "resourceVersion": "7" });
    json!({ "apiVersion": api_version, "kind": "PartialObjectMetadata", "metadata": metadata })
}

fn mk_list(kind: &str, api_version: &str, items: &[Value]) -> Vec<u8> {
    let list = json!({ "kind": kind, "apiVersion": api_version, "metadata": { "resourceVersion": "9" }, "items": items });
    list.to_string().into()
}

#[tokio::test]
async fn a_list_of_metadata_has_partial_or_whole_objects_and_no_foreign_ones() {
    let mut foreign = mk_pod("foreign", "web");
    foreign["kind"] = "Node".into();
    let items = [
        mk_partial("meta.k8s.io/v1", "new"),
        mk_partial("meta.k8s.io/v1beta1", "old"),
        mk_partial("meta.k8s.io/v2", "later"),
        mk_partial("v1", "odd"),
        json!({ "metadata": { "name": "short", "namespace": "default", "resourceVersion": "7" } }),
        mk_pod("whole", "web"),
        foreign,
    ];
    let expected = [
        "default/new@7",
        "default/old@7",
        "! default/later",
        "! default/odd",
        "default/short@7",
        "default/whole@7",
        "! default/foreign",
        "end 9",
    ];
    for (kind, api_version) in [
        ("PartialObjectMetadataList", "meta.k8s.io/v1"),
        ("PartialObjectMetadataList", "meta.k8s.io/v1beta1"),
        ("PodList", "v1"),
    ] {
        let server = Canned::json(mk_list(kind, api_version, &items)).serve();
        let (items, error) = list(&Metadata::<Pod>::all(server.client())).await;
        assert_eq!((lines(&items), error), (expected.map(str::to_owned).to_vec(), None));
        let ListItem::Unusable(foreign) = &items[6] else { panic!("{items:?}") };
        assert_eq!(foreign.error, "Node (v1) in a list of metadata of Pod (v1)");
    }
    for (kind, api_version) in
        [("NodeList", "v1"), ("PartialObjectMetadataList", "v1"), ("Table", "meta.k8s.io/v1")]
    {
        let server = Canned::json(mk_list(kind, api_version, &[])).serve();
        let (_, error) = list(&Metadata::<Pod>::all(server.client())).await;
        let words = format!("expected a list of metadata of Pod (v1), found {kind} ({api_version})");
        assert_eq!(error, Some(SourceError::Malformed(words)));
    }
}

#[tokio::test]
async fn whole_kinds_take_no_partial_objects() {
    let server = Canned::json(mk_list("PodList", "v1", &[mk_partial("meta.k8s.io/v1", "a")])).serve();
    let (items, _) = list(&KubeListWatch::<Pod>::all(server.client())).await;
    assert_eq!(lines(&items), ["! default/a", "end 9"]);
}

fn mk_event(change: &str, object: &Value) -> String {
    json!({ "type": change, "object": object }).to_string() + "\n"
}

/// The bookmark that closes the initial events, of this kind.
fn mk_bookmark(kind: &str, api_version: &str) -> String {
    let metadata = json!({ "resourceVersion": "9", "annotations": { "k8s.io/initial-events-end": "true" } });
    mk_event("BOOKMARK", &json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata }))
}

#[tokio::test]
async fn a_watch_of_metadata_has_partial_or_whole_objects_and_no_foreign_ones() {
    let frames = [
        mk_event("ADDED", &mk_partial("meta.k8s.io/v1", "a")),
        mk_event("MODIFIED", &mk_partial("meta.k8s.io/v1beta1", "a")),
        mk_event("DELETED", &mk_pod("b", "web")),
        mk_event("ADDED", &mk_partial("example.com/v1", "a")),
        mk_bookmark("PartialObjectMetadata", "meta.k8s.io/v1"),
        mk_bookmark("Pod", "v1"),
        mk_bookmark("Node", "v1"),
    ];
    let server = Canned::json(frames.concat()).serve();
    let (items, error) = watch(&Metadata::<Pod>::all(server.client()), ListOptions::default()).await;
    assert_eq!(
        events(&items),
        [
            "Added default/a@7",
            "Modified default/a@7",
            "Deleted default/b@7",
            "Foreign ADDED of PartialObjectMetadata (example.com/v1) in a watch of metadata of Pod (v1)",
            "Bookmark 9 initial",
            "Bookmark 9 initial",
            "Foreign BOOKMARK of Node (v1) in a watch of metadata of Pod (v1)",
        ]
    );
    assert_eq!(error, None);
}

#[tokio::test]
async fn a_server_that_knows_whole_objects_alone_is_followed_too() {
    let body = mk_event("ADDED", &mk_pod("a", "web")) + &mk_bookmark("Pod", "v1");
    let server = Canned::json(body).serve();
    let running = Running::synced(Metadata::<Pod>::all(server.client()), true).await;
    let pod = running.get("a").expect("a pod");
    assert_eq!((pod.labels().get("app"), running.informer.quarantined().len()), (Some("web"), 0));
    assert_eq!(pod.metadata.owner_references.as_ref().map(Vec::len), Some(1));
    running.end().await;
}
