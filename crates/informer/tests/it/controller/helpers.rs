//! Writes that send nothing where nothing changes, and carry the term of a leader.

use std::cell::Cell;

use futures_util::FutureExt;
use informer::{
    client::{OperationResult, WriteError, Writes, retry_on_conflict},
    controller::{is_controlled_by, set_controller_reference, set_owner_reference},
    leader::LeaderElection,
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    client::stage::{Stage, mk},
    support::key,
};

fn paint(colour: &'static str) -> impl FnOnce(&mut ConfigMap) {
    move |map| drop(map.data.get_or_insert_default().insert("colour".to_owned(), colour.to_owned()))
}

/// How many requests there were that write.
fn writes(stage: &Stage) -> u64 {
    let requests = stage.server.requests();
    let of = |verb| requests.get(&(verb, "configmaps".to_owned())).copied().unwrap_or(0);
    ["create", "update", "patch", "delete"].into_iter().map(of).sum()
}

#[tokio::test(start_paused = true)]
async fn c41_create_or_update_sends_nothing_where_nothing_changes_and_sees_its_own_writes() {
    let stage = Stage::new().await;
    stage.lateness.hold(true);
    let maps = stage.maps.clone().field_manager("painter");
    let (result, map) = maps.create_or_update(mk("shop/a"), paint("blue")).await.unwrap();
    assert_eq!((result, map.data.as_ref().unwrap()["colour"].as_str()), (OperationResult::Created, "blue"));
    // The cache does not have it yet: it is waited for, and not created twice.
    assert!(maps.create_or_update(mk("shop/a"), paint("blue")).now_or_never().is_none());
    stage.lateness.hold(false);
    let (result, _) = maps.create_or_update(mk("shop/a"), paint("blue")).await.unwrap();
    assert_eq!((result, writes(&stage)), (OperationResult::None, 1));
    // What it does not touch stays.
    let label = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    maps.patch(&key("shop/a"), &PatchParams::default(), &label).await.unwrap();
    let (result, map) = maps.create_or_update(mk("shop/a"), paint("red")).await.unwrap();
    assert_eq!((result, map.labels().get("a")), (OperationResult::Updated, Some("b")));
    stage.settle().await;
    let managers = Api::<ConfigMap>::namespaced(stage.server.client(), "shop").get("a").await.unwrap();
    assert_eq!(managers.data.unwrap()["colour"], "red");

    let seen = maps.lister().get("shop/a").await.unwrap();
    maps.create_or_update(mk("shop/a"), paint("green")).await.unwrap();
    assert!(maps.delete_seen(&seen).await.unwrap_err().is_conflict(), "it has changed since");
    let seen = maps.lister().get("shop/a").await.unwrap();
    assert!(!maps.delete_seen(&seen).await.unwrap());
    assert!(!maps.delete_seen(&seen).await.unwrap(), "it is gone already");
    assert!(maps.lister().get("shop/a").await.is_err());
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c41_a_status_is_written_only_if_it_changes() {
    let stage = Stage::new().await;
    let informer =
        informer::SharedInformer::builder(informer::KubeListWatch::<Deployment>::all(stage.server.client()));
    let informer = informer.build().unwrap();
    informer.start().unwrap();
    let deployments = Writes::new(stage.server.client(), &informer);
    let deployment = json!({ "metadata": { "name": "web", "namespace": "shop" }, "spec": {
        "selector": { "matchLabels": { "app": "web" } },
        "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "web", "image": "web" }] } } } });
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
    let ready = |deployment: &mut Deployment| deployment.status.get_or_insert_default().replicas = Some(3);
    for expected in [OperationResult::Updated, OperationResult::None] {
        let seen = deployments.lister().get("shop/web").await.unwrap();
        assert_eq!(deployments.update_status(&seen, ready).await.unwrap(), expected);
    }
    let seen = deployments.lister().get("shop/web").await.unwrap();
    assert_eq!(seen.status.as_ref().unwrap().replicas, Some(3));
    informer.stop().await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c41_a_conflict_is_tried_again_with_what_the_server_has_and_not_for_ever() {
    let stage = Stage::new().await;
    stage.create("shop/a").await;
    stage.maps.lister().get("shop/a").await.unwrap();
    let (maps, at, tries) = (&stage.maps, key("shop/a"), Cell::new(0));
    let users = Api::<ConfigMap>::namespaced(stage.server.client(), "shop");
    let meddle = async |times: u32| {
        tries.set(0);
        retry_on_conflict(async || {
            let mut map = maps.get_live(&at).await?;
            tries.set(tries.get() + 1);
            if tries.get() <= times {
                let patch = Patch::Merge(json!({ "data": { "user": tries.get().to_string() } }));
                users.patch("a", &PatchParams::default(), &patch).await?;
            }
            paint("blue")(&mut map);
            maps.replace(&PostParams::default(), &map).await
        })
        .await
    };
    let map = meddle(3).await.unwrap();
    assert_eq!((map.data.unwrap()["user"].as_str(), tries.get()), ("3", 4));
    assert!(meddle(99).await.unwrap_err().is_conflict());
    assert_eq!(tries.get(), 5);
    // What was read from the server is waited for as well.
    stage.lateness.hold(true);
    let patch = Patch::Merge(json!({ "data": { "user": "again" } }));
    users.patch("a", &PatchParams::default(), &patch).await.unwrap();
    maps.get_live(&at).await.unwrap();
    assert!(maps.lister().get("shop/a").now_or_never().is_none());
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c41_writes_with_a_fence_cannot_undo_what_a_later_leader_wrote_and_end_with_the_term() {
    let stage = Stage::new().await;
    let election = LeaderElection::builder(stage.server.client(), "default", "painter").build().unwrap();
    let (stop, at) = (CancellationToken::new(), key("shop/a"));
    let annotation = "painter.default.lease.informer/fence";
    let leadership = election
        .run_while_leader(stop, async |leadership| {
            let maps = stage.maps.clone().fenced(leadership.clone());
            let token = leadership.token().to_string();
            let (_, map) = maps.create_or_update(mk("shop/a"), paint("blue")).await.unwrap();
            assert_eq!(map.annotations()[annotation], token);
            let merge = Patch::Merge(json!({ "data": { "colour": "red" } }));
            let map = maps.patch(&at, &PatchParams::default(), &merge).await.unwrap();
            assert_eq!(map.annotations()[annotation], token);
            // Behind the cache's back: the server refuses.
            maps.ensure_ready(&at).await.unwrap();
            stage.lateness.hold(true);
            let users = Api::<ConfigMap>::namespaced(stage.server.client(), "shop");
            let later = Patch::Merge(json!({ "metadata": { "annotations": { (annotation): "99999999" } }, "data": { "colour": "later" } }));
            users.patch("a", &PatchParams::default(), &later).await.unwrap();
            assert!(maps.patch(&at, &PatchParams::default(), &merge).await.unwrap_err().is_conflict());
            assert!(maps.create_or_update(mk("shop/a"), paint("green")).await.unwrap_err().is_conflict());
            assert!(maps.delete(&at, &DeleteParams::default()).await.unwrap_err().is_conflict());
            // Seen: it is refused here.
            stage.lateness.hold(false);
            stage.settle().await;
            let refused = [
                maps.patch(&at, &PatchParams::default(), &merge).await.unwrap_err(),
                maps.create_or_update(mk("shop/a"), paint("green")).await.unwrap_err(),
                maps.delete(&at, &DeleteParams::default()).await.unwrap_err(),
            ];
            for error in refused {
                assert!(matches!(&error, WriteError::Stale(_)), "{error}");
            }
            assert_eq!(users.get("a").await.unwrap().data.unwrap()["colour"], "later");
            // Nothing is overwritten that was not read.
            let unseen = maps.replace(&PostParams::default(), &mk("shop/a")).await.unwrap_err();
            assert!(matches!(&unseen, WriteError::Unfenced(_)), "{unseen}");
            let missing = maps.patch(&key("shop/none"), &PatchParams::default(), &merge).await.unwrap_err();
            assert!(matches!(&missing, WriteError::Unfenced(_)), "{missing}");
            leadership
        })
        .await
        .unwrap();
    let maps = stage.maps.clone().fenced(leadership);
    let over = maps.create(&PostParams::default(), &mk("shop/b")).await.unwrap_err();
    assert!(matches!(&over, WriteError::Lost(_)), "{over}");
    stage.end().await;
}

#[test]
fn c41_an_object_has_one_controller_by_uid() {
    let owner = |name: &str, uid: &str| {
        let mut owner = mk(&format!("shop/{name}"));
        owner.metadata.uid = Some(uid.to_owned());
        owner
    };
    let (first, again, other) = (owner("a", "1"), owner("a", "2"), owner("b", "3"));
    let mut meta = mk("shop/child").metadata;
    set_owner_reference(&mut meta, &other);
    set_controller_reference(&mut meta, &first).unwrap();
    set_controller_reference(&mut meta, &first).unwrap();
    assert_eq!(meta.owner_references.as_ref().unwrap().len(), 2);
    assert!(is_controlled_by(&meta, &first.metadata) && !is_controlled_by(&meta, &other.metadata));
    assert!(!is_controlled_by(&meta, &again.metadata), "another object of the same name");
    let error = set_controller_reference(&mut meta, &again).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"it cannot be controlled by ConfigMap "a": ConfigMap "a" controls it already"#
    );
    set_controller_reference(&mut meta, &mk("shop/unborn")).unwrap();
    assert_eq!(meta.owner_references.unwrap().len(), 2);
}
