//! Predicates, owners, indexes, streams, clocks and priorities.

use std::time::Duration;

use futures_util::stream;
use informer::{
    Handler, KubeListWatch, SharedInformer,
    controller::{Controller, Feed, Predicate},
    model::ObjectKey,
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::sleep};

use super::{
    client::stage::{LIMIT, Stage, mk_server},
    stage::{Log, Running},
    support::key,
};

async fn settle() {
    sleep(Duration::from_millis(5)).await;
}

async fn deployments(client: &Client) -> SharedInformer<Deployment> {
    let informer = SharedInformer::builder(KubeListWatch::<Deployment>::all(client.clone())).build().unwrap();
    informer.start().unwrap();
    informer.wait_until_synced(LIMIT).await.unwrap();
    informer
}

fn mk_deployment(finalizer: Option<&str>) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "shop", "finalizers": finalizer.into_iter().collect::<Vec<_>>() },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "web", "image": "web:1" }] } },
        },
    })
}

#[tokio::test(start_paused = true)]
async fn c39_a_predicate_lets_through_the_changes_that_it_names_and_all_that_is_no_update() {
    let server = mk_server(1);
    let informer = deployments(&server.client()).await;
    let log = Log::default();
    let feed = |of: Predicate<Deployment>| Controller::new("web").feed(Feed::of(&informer).when(of));
    let noting = |name: &'static str, of| {
        let log = log.clone();
        Running::start(feed(of), move |_| {
            log.note(name);
            async { Ok::<_, String>(informer::controller::Action::AwaitChange) }
        })
    };
    let ready = |deployment: &informer::Object<Deployment>| deployment.status.as_ref()?.ready_replicas;
    let both = Predicate::labels_changed().and(Predicate::annotations_changed());
    let controllers = [
        noting("generation", Predicate::generation_changed()),
        noting("labels", Predicate::labels_changed()),
        noting("annotations", Predicate::annotations_changed()),
        noting("field", Predicate::field_changed("/spec/replicas").unwrap()),
        noting("ready", Predicate::changed(ready)),
        noting("both", both),
        noting("none", Predicate::new(|_| true).not()),
    ];
    settle().await;
    let api = Api::<Deployment>::namespaced(server.client(), "shop");
    let sorted = || {
        let mut heard: Vec<String> = log.take().split_whitespace().map(str::to_owned).collect();
        heard.sort();
        heard.join(" ")
    };
    let change = async |patch: Value| {
        api.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        settle().await;
        sorted()
    };
    let held = serde_json::from_value(mk_deployment(Some("example.com/held"))).unwrap();
    api.create(&Default::default(), &held).await.unwrap();
    settle().await;
    let all = "annotations both field generation labels ready";
    assert_eq!(sorted(), all, "an addition");
    assert_eq!(change(json!({ "metadata": { "labels": { "a": "b" } } })).await, "labels");
    assert_eq!(change(json!({ "metadata": { "annotations": { "a": "b" } } })).await, "annotations");
    assert_eq!(change(json!({ "spec": { "replicas": 7 } })).await, "field generation");
    assert_eq!(change(json!({ "spec": { "paused": true } })).await, "generation");
    let two = json!({ "metadata": { "labels": { "a": "c" }, "annotations": { "a": "c" } } });
    assert_eq!(change(two).await, "annotations both labels");
    let status = json!({ "status": { "replicas": 7, "readyReplicas": 3 } });
    api.patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    settle().await;
    assert_eq!(sorted(), "ready");
    // The mark of a deletion: whoever holds it with a finalizer has to hear of it.
    api.delete("web", &Default::default()).await.unwrap();
    settle().await;
    assert_eq!(sorted(), all);
    assert_eq!(change(json!({ "metadata": { "finalizers": null } })).await, all, "it is gone");
    for controller in controllers {
        controller.end().await.unwrap();
    }
    informer.stop().await.unwrap();
}

#[test]
fn what_is_no_pointer_is_an_error_that_says_what_one_is() {
    for wrong in ["spec.replicas", "spec/replicas", "/a~b", "/a~"] {
        let error = Predicate::<ConfigMap>::field_changed(wrong).unwrap_err().to_string();
        assert!(error.contains(wrong) && error.contains("/spec/replicas"), "{error}");
    }
    assert!(
        Predicate::<ConfigMap>::field_changed("").is_ok()
            && Predicate::<ConfigMap>::field_changed("/a~1b").is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn c39_without_a_generation_every_change_counts_and_a_resync_is_none() {
    let stage = Stage::new().await;
    let resyncing = SharedInformer::builder(KubeListWatch::<ConfigMap>::all(stage.server.client()));
    let resyncing = resyncing.resync(Duration::from_secs(30)).build().unwrap();
    resyncing.start().unwrap();
    resyncing.wait_until_synced(LIMIT).await.unwrap();
    let log = Log::default();
    let feed = Feed::of(&resyncing).when(Predicate::generation_changed());
    let controller = Running::noting(Controller::new("configs").feed(feed), &log);
    stage.create("shop/a").await;
    settle().await;
    assert_eq!(log.take(), "a");
    let blue = Patch::Merge(json!({ "data": { "colour": "blue" } }));
    stage.maps.patch(&key("shop/a"), &PatchParams::default(), &blue).await.unwrap();
    settle().await;
    assert_eq!(log.take(), "a");
    sleep(Duration::from_secs(100)).await;
    assert_eq!(log.take(), "", "it was only shown again");
    controller.end().await.unwrap();
    resyncing.stop().await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c39_every_owner_or_the_one_that_controls() {
    let stage = Stage::new().await;
    let log = Log::default();
    let every = Controller::new("every").feed(Feed::every_owner::<Deployment>(&stage.informer));
    let one = Controller::new("one").feed(Feed::owns::<Deployment>(&stage.informer));
    let controllers = [Running::noting(every, &log), Running::noting(one, &log)];
    settle().await;
    let reference = |name: &str, controller: bool| json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": name, "controller": controller });
    let owners = [reference("one", false), reference("two", true), reference("three", false)];
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "shop", "ownerReferences": owners } });
    stage.server.put(map).unwrap();
    settle().await;
    let mut heard: Vec<String> = log.take().split_whitespace().map(str::to_owned).collect();
    heard.sort();
    assert_eq!(heard, ["one", "three", "two", "two"]);
    for controller in controllers {
        controller.end().await.unwrap();
    }
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c39_a_change_is_about_all_that_an_index_has_under_it() {
    let stage = Stage::new().await;
    let informer = deployments(&stage.server.client()).await;
    let by_map =
        informer.add_index("map", |deployment| deployment.metadata.annotations.clone()?.remove("map"));
    let feed = Feed::indexed(&stage.informer, by_map.unwrap(), |map| Some(map.key().name().to_owned()));
    let log = Log::default();
    let controller = Running::noting(Controller::new("web").feed(feed), &log);
    for (name, map) in [("one", "colours"), ("two", "colours"), ("three", "sizes")] {
        let mut deployment = mk_deployment(None);
        deployment["metadata"]["name"] = name.into();
        deployment["metadata"]["annotations"] = json!({ "map": map });
        stage.server.put(deployment).unwrap();
    }
    settle().await;
    assert_eq!(log.take(), "");
    stage.create("shop/colours").await;
    settle().await;
    assert_eq!(log.take(), "one two");
    controller.end().await.unwrap();
    informer.stop().await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c39_streams_and_clocks_feed_as_long_as_the_controller_runs() {
    let stage = Stage::new().await;
    let log = Log::default();
    let (sender, mut receiver) = mpsc::channel(8);
    let panicking = stream::iter([1, 2]).map_panicking();
    let controller = Controller::new("configs")
        .of(&stage.informer)
        .stream(stream::poll_fn(move |context| receiver.poll_recv(context)))
        .stream(panicking)
        .every(Duration::from_secs(60), || [key("shop/tick")]);
    let controller = Running::noting(controller, &log);
    sender.send(key("shop/sent")).await.unwrap();
    settle().await;
    assert_eq!(log.take(), "sent one");
    sleep(Duration::from_secs(59)).await;
    assert_eq!(log.take(), "");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(log.take(), "tick");
    sleep(Duration::from_secs(120)).await;
    assert_eq!(log.take(), "tick tick");
    controller.end().await.unwrap();
    settle().await;
    assert!(sender.is_closed(), "nobody reads it any more");
    stage.end().await;

    let never = Controller::new("configs").every(Duration::ZERO, || [key("shop/tick")]);
    let error = Running::noting(never, &log).end().await.unwrap_err().to_string();
    assert_eq!(error, r#"controller "configs" is to reconcile every 0 s; a period is longer than zero"#);
}

/// The first is a key, the second a panic.
trait MapPanicking {
    fn map_panicking(self) -> impl futures_util::Stream<Item = ObjectKey> + Send + 'static;
}

impl<S: futures_util::Stream<Item = i32> + Send + 'static> MapPanicking for S {
    fn map_panicking(self) -> impl futures_util::Stream<Item = ObjectKey> + Send + 'static {
        futures_util::StreamExt::map(self, |nth| match nth {
            1 => key("shop/one"),
            _ => panic!("for this test: a stream"),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn c39_items_of_a_feed_with_a_higher_priority_come_first() {
    let stage = Stage::new().await;
    for name in ["shop/a", "shop/b"] {
        stage.create(name).await;
    }
    let informer = deployments(&stage.server.client()).await;
    stage.server.put(mk_deployment(None)).unwrap();
    settle().await;
    let log = Log::default();
    let urgent = Feed::of(&informer).priority(50);
    let controller = Controller::new("both").feed(Feed::of(&stage.informer)).feed(urgent);
    let noted = log.clone();
    let controller = Running::start(controller, move |key| {
        noted.note(key.name());
        async {
            sleep(Duration::from_secs(10)).await;
            Ok::<_, String>(informer::controller::Action::AwaitChange)
        }
    });
    sleep(Duration::from_secs(1)).await;
    // All existed before. What is urgent is first among them too, and what changes before all of them.
    stage.create("shop/new").await;
    sleep(Duration::from_secs(100)).await;
    assert_eq!(log.take(), "web new a b");
    controller.end().await.unwrap();
    informer.stop().await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c39_asynchronous_closures_of_a_handler_are_awaited_one_after_the_other() {
    let stage = Stage::new().await;
    let log = Log::default();
    let (added, updated, deleted) = (log.clone(), log.clone(), log.clone());
    let handler = Handler::<ConfigMap>::new()
        .on_add_async(move |object, initial| {
            let log = added.clone();
            async move {
                sleep(Duration::from_secs(1)).await;
                log.note(format!("+{}:{initial}", object.key().name()));
            }
        })
        .on_update_async(move |old, new| {
            let log = updated.clone();
            async move { log.note(format!("~{}:{}", new.key().name(), old.ptr_eq(&new))) }
        })
        .on_delete_async(move |gone| {
            let log = deleted.clone();
            async move { log.note(format!("-{}", gone.key().name())) }
        });
    stage.informer.add_handler(handler).unwrap();
    stage.create("shop/a").await;
    let blue = Patch::Merge(json!({ "data": { "colour": "blue" } }));
    stage.maps.patch(&key("shop/a"), &PatchParams::default(), &blue).await.unwrap();
    stage.maps.delete(&key("shop/a"), &Default::default()).await.unwrap();
    settle().await;
    assert_eq!(log.take(), "", "the first one is awaited");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(log.take(), "+a:false ~a:false -a");
    stage.end().await;
}
