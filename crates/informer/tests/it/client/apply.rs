//! Server-side apply by `Writes`: sent where something would change.

use informer::client::{OperationResult, WriteError};
use informer::leader::LeaderElection;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{stage::Stage, support::key};

fn coloured(name: &str, colour: &str) -> Value {
    json!({ "metadata": { "namespace": "shop", "name": name }, "data": { "colour": colour } })
}

fn painter() -> PatchParams {
    PatchParams::apply("painter")
}

/// How many patches were sent.
fn sent(stage: &Stage) -> u64 {
    stage.server.requests().get(&("patch", "configmaps".to_owned())).copied().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn c41_apply_sends_nothing_where_nothing_would_change_and_everything_where_something_would() {
    let stage = Stage::new().await;
    let users = Api::<ConfigMap>::namespaced(stage.server.client(), "shop");
    let change = async |what: Value| {
        users.patch("a", &PatchParams::default(), &Patch::Merge(what)).await.unwrap();
        stage.settle().await;
    };
    let apply = async |colour: &str| stage.maps.apply(&painter(), &coloured("a", colour)).await;
    let (result, map) = apply("blue").await.unwrap();
    assert_eq!((result, map.data.as_ref().unwrap()["colour"].as_str()), (OperationResult::Created, "blue"));
    for _ in 0..3 {
        let (result, map) = apply("blue").await.unwrap();
        assert_eq!((result, map.data.as_ref().unwrap().len(), sent(&stage)), (OperationResult::None, 1, 1));
    }
    // What others do elsewhere does not count.
    change(json!({ "metadata": { "labels": { "a": "b" } }, "data": { "more": "x" } })).await;
    assert_eq!((apply("blue").await.unwrap().0, sent(&stage)), (OperationResult::None, 2));
    // What they do here does: it is theirs now, unless it is taken by force.
    change(json!({ "data": { "colour": "red" } })).await;
    let refused = apply("blue").await.unwrap_err();
    assert!(refused.is_conflict() && refused.to_string().contains(".data.colour"), "{refused}");
    let (result, map) = stage.maps.apply(&painter().force(), &coloured("a", "blue")).await.unwrap();
    assert_eq!((result, map.data.as_ref().unwrap()["colour"].as_str()), (OperationResult::Updated, "blue"));
    let before = sent(&stage);
    assert_eq!((apply("blue").await.unwrap().0, sent(&stage)), (OperationResult::None, before));
    // A field that is gone comes again, another configuration is sent, and what it leaves out goes.
    change(json!({ "data": { "colour": null } })).await;
    assert_eq!(apply("blue").await.unwrap().0, OperationResult::Updated);
    assert_eq!(apply("green").await.unwrap().0, OperationResult::Updated);
    let nothing = json!({ "metadata": { "namespace": "shop", "name": "a" } });
    let (_, map) = stage.maps.apply(&painter(), &nothing).await.unwrap();
    assert!(!map.data.as_ref().unwrap().contains_key("colour") && map.labels().get("a") == Some("b"));
    // An object of the same name is another one.
    apply("blue").await.unwrap();
    stage.maps.delete(&key("shop/a"), &DeleteParams::default()).await.unwrap();
    assert_eq!(apply("blue").await.unwrap().0, OperationResult::Created);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c41_apply_waits_for_what_was_written_and_is_waited_for() {
    let stage = Stage::new().await;
    stage.lateness.hold(true);
    stage.maps.apply(&painter(), &coloured("a", "blue")).await.unwrap();
    let (painter_again, blue) = (painter(), coloured("a", "blue"));
    let again = stage.maps.apply(&painter_again, &blue);
    let opened = async {
        stage.settle().await;
        assert_eq!(sent(&stage), 1, "the cache does not have it yet: it is waited for");
        stage.lateness.hold(false);
    };
    let (again, ()) = tokio::join!(again, opened);
    assert_eq!((again.unwrap().0, sent(&stage)), (OperationResult::None, 1));
    assert_eq!(stage.maps.lister().get("shop/a").await.unwrap().data.as_ref().unwrap()["colour"], "blue");
    // Another manager, another part, and a dry run are requests of their own.
    let other = PatchParams::apply("other");
    stage.maps.apply(&other, &coloured("a", "blue")).await.unwrap();
    stage.maps.apply(&painter().force().dry_run(), &coloured("a", "red")).await.unwrap();
    assert_eq!(sent(&stage), 3);
    stage.maps.apply(&other, &coloured("a", "blue")).await.unwrap();
    stage.maps.apply(&painter(), &coloured("a", "blue")).await.unwrap();
    assert_eq!(sent(&stage), 3);
    let nameless = stage.maps.apply(&painter(), &json!({ "data": {} })).await.unwrap_err();
    assert!(matches!(nameless, WriteError::Object(_)), "{nameless}");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c41_an_apply_with_a_fence_is_for_the_version_that_was_checked() {
    let stage = Stage::new().await;
    let election = LeaderElection::builder(stage.server.client(), "default", "painter").build().unwrap();
    let annotation = "painter.default.lease.informer/fence";
    let leadership = election
        .run_while_leader(CancellationToken::new(), async |leadership| {
            let maps = stage.maps.clone().fenced(leadership.clone());
            let (_, map) = maps.apply(&painter(), &coloured("a", "blue")).await.unwrap();
            assert_eq!(map.annotations()[annotation], leadership.token().to_string());
            assert_eq!(
                maps.apply(&painter(), &coloured("a", "blue")).await.unwrap().0,
                OperationResult::None
            );
            stage.lateness.hold(true);
            let users = Api::<ConfigMap>::namespaced(stage.server.client(), "shop");
            let later = json!({ "metadata": { "annotations": { (annotation): "99999999" } } });
            users.patch("a", &PatchParams::default(), &Patch::Merge(later)).await.unwrap();
            let forced = maps.apply(&painter().force(), &coloured("a", "red")).await.unwrap_err();
            assert!(forced.is_conflict(), "{forced}");
            stage.lateness.hold(false);
            stage.settle().await;
            let stale = maps.apply(&painter().force(), &coloured("a", "red")).await.unwrap_err();
            assert!(matches!(&stale, WriteError::Stale(_)), "{stale}");
            leadership
        })
        .await
        .unwrap();
    let maps = stage.maps.clone().fenced(leadership);
    let over = maps.apply(&painter(), &coloured("b", "blue")).await.unwrap_err();
    assert!(matches!(&over, WriteError::Lost(_)), "{over}");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_applied_is_forgotten_with_the_object() {
    let stage = Stage::new().await;
    for number in 0..500 {
        let name = format!("n{number}");
        stage.maps.apply(&painter(), &coloured(&name, "blue")).await.unwrap();
        stage.maps.delete(&key(&format!("shop/{name}")), &DeleteParams::default()).await.unwrap();
        stage.settle().await;
    }
    let remembered = format!("{:?}", stage.maps);
    let count = remembered.split("applied: ").nth(1).unwrap().split(',').next().unwrap();
    assert!(count.parse::<usize>().unwrap() < 200, "{remembered}");
    stage.end().await;
}
