//! kube-rs works against the embedded server as it does against a real one: `Api`, both strategies of its
//! `watcher`, and a `Controller`.

use std::{collections::BTreeSet, pin::pin, sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt};
use informer_apiserver::ApiServer;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    runtime::{
        Controller,
        controller::Action,
        watcher::{self, Event, watcher},
    },
};
use serde_json::json;

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(
        json!({ "metadata": { "name": name, "labels": { "app": "web" } }, "data": { "a": value } }),
    )
    .expect("a ConfigMap")
}

fn config_maps(client: Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}

#[tokio::test]
async fn api_creates_reads_changes_and_deletes() {
    let server = ApiServer::builder().build();
    let maps = config_maps(server.client());
    let created = maps.create(&PostParams::default(), &config_map("one", "1")).await.expect("created");
    assert!(created.uid().is_some() && created.creation_timestamp().is_some());
    let again = maps.create(&PostParams::default(), &config_map("one", "1")).await;
    assert!(matches!(again, Err(kube::Error::Api(status)) if status.is_already_exists()));

    let mut changed = maps.get("one").await.expect("there");
    changed.data = Some([("a".to_owned(), "2".to_owned())].into());
    let stale = changed.clone();
    let changed = maps.replace("one", &PostParams::default(), &changed).await.expect("replaced");
    assert_ne!(changed.resource_version(), created.resource_version());
    let conflict = maps.replace("one", &PostParams::default(), &stale).await;
    assert!(matches!(conflict, Err(kube::Error::Api(status)) if status.is_conflict()));

    let patch = Patch::Merge(json!({ "data": { "b": "3" } }));
    let patched = maps.patch("one", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!(patched.data.as_ref().map(|data| data.len()), Some(2));
    let listed = maps.list(&ListParams::default().labels("app in (web)")).await.expect("listed");
    assert_eq!(listed.items.len(), 1);
    assert_eq!(listed.metadata.resource_version, patched.resource_version());

    let metadata = maps.get_metadata("one").await.expect("metadata");
    assert_eq!(metadata.uid(), created.uid());
    assert!(maps.delete("one", &DeleteParams::default()).await.expect("deleted").is_right());
    assert!(maps.get_opt("one").await.expect("an answer").is_none());
}

#[tokio::test]
async fn status_and_scale_are_parts_of_their_own() {
    let server = ApiServer::builder().build();
    let deployments: Api<Deployment> = Api::default_namespaced(server.client());
    let deployment = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
        "status": { "replicas": 7 },
    }))
    .expect("a Deployment");
    let created = deployments.create(&PostParams::default(), &deployment).await.expect("created");
    assert_eq!(created.metadata.generation, Some(1));
    assert!(created.status.and_then(|status| status.replicas).is_none(), "a new object has no status");

    let status = Patch::Merge(json!({ "status": { "replicas": 2 }, "spec": { "replicas": 9 } }));
    let patched = deployments.patch_status("web", &PatchParams::default(), &status).await.expect("patched");
    assert_eq!(patched.metadata.generation, Some(1), "the status is no part of the generation");
    assert_eq!(patched.spec.replicas, Some(2), "only the status was meant");

    let scale = deployments.get_scale("web").await.expect("a scale");
    assert_eq!((scale.spec.and_then(|s| s.replicas), scale.status.map(|s| s.replicas)), (Some(2), Some(2)));
    let scale = Patch::Merge(json!({ "spec": { "replicas": 5 } }));
    deployments.patch_scale("web", &PatchParams::default(), &scale).await.expect("scaled");
    let scaled = deployments.get("web").await.expect("there");
    assert_eq!((scaled.metadata.generation, scaled.spec.replicas), (Some(2), Some(5)));
    assert_eq!(scaled.status.and_then(|s| s.replicas), Some(2));
}

#[tokio::test]
async fn a_watch_tells_what_happens_in_order() {
    let server = ApiServer::builder().build();
    let maps = config_maps(server.client());
    maps.create(&PostParams::default(), &config_map("one", "1")).await.expect("created");
    let version = maps.list(&ListParams::default()).await.expect("listed").metadata.resource_version;
    let mut events =
        pin!(maps.watch(&WatchParams::default(), &version.expect("a version")).await.expect("watched"));
    maps.create(&PostParams::default(), &config_map("two", "1")).await.expect("created");
    let patch = Patch::Merge(json!({ "data": { "a": "2" } }));
    maps.patch("one", &PatchParams::default(), &patch).await.expect("patched");
    maps.delete("two", &DeleteParams::default()).await.expect("deleted");
    let mut seen = Vec::new();
    while seen.len() < 3 {
        seen.push(match events.try_next().await.expect("an event").expect("more") {
            WatchEvent::Added(map) => format!("+{}", map.name_any()),
            WatchEvent::Modified(map) => format!("~{}", map.name_any()),
            WatchEvent::Deleted(map) => format!("-{}", map.name_any()),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(seen, ["+two", "~one", "-two"]);
}

async fn watcher_follows(config: watcher::Config) {
    let server = ApiServer::builder().build();
    let maps = config_maps(server.client());
    for name in ["a", "b"] {
        maps.create(&PostParams::default(), &config_map(name, "1")).await.expect("created");
    }
    let mut events = pin!(watcher(maps.clone(), config));
    let mut initial = BTreeSet::new();
    loop {
        match events.try_next().await.expect("an event").expect("more") {
            Event::Init => {}
            Event::InitApply(map) => drop(initial.insert(map.name_any())),
            Event::InitDone => break,
            other => panic!("{other:?} before the initial list was over"),
        }
    }
    assert_eq!(initial, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
    maps.create(&PostParams::default(), &config_map("c", "1")).await.expect("created");
    maps.delete("a", &DeleteParams::default()).await.expect("deleted");
    assert!(matches!(events.try_next().await, Ok(Some(Event::Apply(map))) if map.name_any() == "c"));
    assert!(matches!(events.try_next().await, Ok(Some(Event::Delete(map))) if map.name_any() == "a"));
}

#[tokio::test]
async fn watcher_works_by_list_and_watch() {
    watcher_follows(watcher::Config::default()).await;
}

#[tokio::test]
async fn watcher_works_by_streaming_list() {
    watcher_follows(watcher::Config::default().streaming_lists()).await;
}

#[tokio::test]
async fn a_controller_reconciles_what_it_watches() {
    let server = ApiServer::builder().build();
    let maps = config_maps(server.client());
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    maps.create(&PostParams::default(), &config_map("wanted", "1")).await.expect("created");
    // For every ConfigMap there shall be a Pod of its name.
    let reconcile = |map: Arc<ConfigMap>, client: Arc<Client>| async move {
        let pods: Api<Pod> = Api::default_namespaced(client.as_ref().clone());
        if pods.get_opt(&map.name_any()).await?.is_none() {
            let pod = serde_json::from_value(json!({
                "metadata": { "name": map.name_any() },
                "spec": { "containers": [{ "name": "main", "image": "main:1" }] },
            }));
            pods.create(&PostParams::default(), &pod.expect("a Pod")).await?;
        }
        Ok::<_, kube::Error>(Action::await_change())
    };
    let controller = Controller::new(maps.clone(), watcher::Config::default())
        .owns(pods.clone(), watcher::Config::default());
    let mut reconciled = pin!(controller.run(
        reconcile,
        |_, _, _| Action::requeue(Duration::from_secs(1)),
        Arc::new(server.client())
    ));
    assert!(reconciled.next().await.is_some_and(|result| result.is_ok()));
    assert!(pods.get_opt("wanted").await.expect("an answer").is_some());
    maps.create(&PostParams::default(), &config_map("later", "1")).await.expect("created");
    assert!(reconciled.next().await.is_some_and(|result| result.is_ok()));
    assert!(pods.get_opt("later").await.expect("an answer").is_some());
}
