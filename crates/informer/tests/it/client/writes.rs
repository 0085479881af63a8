//! Reads that wait for what was written.

use std::time::Duration;

use futures_util::FutureExt;
use informer::{client::ReadError, model::Selector};
use informer_apiserver::{Fault, Rule, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    stage::{LIMIT, Stage, mk},
    support::key,
};

fn patch(what: serde_json::Value) -> Patch<serde_json::Value> {
    Patch::Merge(what)
}

fn coloured(colour: &str) -> Patch<serde_json::Value> {
    patch(json!({ "data": { "colour": colour } }))
}

#[tokio::test(start_paused = true)]
async fn c38_a_read_waits_for_what_was_written_to_the_object_and_for_nothing_else() {
    let stage = Stage::new().await;
    stage.create("shop/old").await;
    stage.settle().await;
    stage.lateness.hold(true);
    stage.create("shop/new").await;
    stage.maps.patch(&key("shop/old"), &PatchParams::default(), &coloured("blue")).await.unwrap();
    let lister = stage.maps.lister();
    assert!(lister.get("shop/new").now_or_never().is_none(), "it waits");
    assert!(lister.list(&Selector::everything()).now_or_never().is_none(), "a list waits");
    assert!(lister.list_namespace("shop", &Selector::everything()).now_or_never().is_none());
    let bank = lister.list_namespace("bank", &Selector::everything()).now_or_never();
    assert_eq!(bank.expect("a quiet namespace is not waited for").unwrap().len(), 0);
    let other = lister.get_opt(&key("shop/other")).now_or_never().expect("another object is not waited for");
    assert!(other.unwrap().is_none());
    assert!(lister.at_once().get("shop/new").is_err(), "the cache is behind");

    let began = Instant::now();
    let opened = async {
        sleep(Duration::from_secs(3)).await;
        stage.lateness.hold(false);
    };
    let (old, ()) = tokio::join!(lister.get("shop/old"), opened);
    assert_eq!(old.unwrap().data.as_ref().unwrap()["colour"], "blue");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(lister.get("shop/new").await.is_ok());
    assert_eq!(lister.list(&Selector::everything()).await.unwrap().len(), 2);
    assert!(format!("{:?}", stage.maps).contains("remembered: 0"), "{:?}", stage.maps);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c38_a_deletion_is_waited_for_by_uid_and_finalizers_by_version() {
    let stage = Stage::new().await;
    let (lister, at) = (stage.maps.lister(), key("shop/a"));
    stage.create("shop/a").await;
    let held = patch(json!({ "metadata": { "finalizers": ["example.com/held"] } }));
    stage.maps.patch(&at, &PatchParams::default(), &held).await.unwrap();
    lister.get("shop/a").await.unwrap();

    stage.lateness.hold(true);
    let there = stage.maps.delete(&at, &DeleteParams::default()).await.unwrap();
    assert!(there.expect("the finalizer holds it").metadata.deletion_timestamp.is_some());
    assert!(lister.get_opt(&at).now_or_never().is_none());
    stage.lateness.hold(false);
    let marked = lister.get_opt(&at).await.unwrap().expect("it is there");
    assert!(marked.metadata.deletion_timestamp.is_some());

    // The last finalizer goes, and the object with it.
    stage.lateness.hold(true);
    let freed = patch(json!({ "metadata": { "finalizers": null } }));
    stage.maps.patch(&at, &PatchParams::default(), &freed).await.unwrap();
    assert!(lister.get_opt(&at).now_or_never().is_none());
    stage.lateness.hold(false);
    assert!(lister.get_opt(&at).await.unwrap().is_none());

    // One that is made and deleted before the cache has seen anything: it is not seen to come and go afterwards.
    stage.lateness.hold(true);
    stage.create("shop/b").await;
    let gone = stage.maps.delete(&key("shop/b"), &DeleteParams::default()).await.unwrap();
    assert!(gone.is_none());
    let again = key("shop/b");
    let read = lister.get_opt(&again);
    tokio::pin!(read);
    assert!((&mut read).now_or_never().is_none());
    stage.lateness.hold(false);
    assert!(read.await.unwrap().is_none());
    sleep(LIMIT).await;
    assert!(lister.at_once().get("shop/b").is_err());

    // A new one of the name, after a deletion that the cache has not seen.
    let first = stage.create("shop/c").await;
    lister.get("shop/c").await.unwrap();
    stage.lateness.hold(true);
    stage.maps.delete(&key("shop/c"), &DeleteParams::default()).await.unwrap();
    let second = stage.create("shop/c").await;
    assert!(lister.get("shop/c").now_or_never().is_none());
    stage.lateness.hold(false);
    let read = lister.get("shop/c").await.unwrap();
    assert_eq!((read.uid(), read.uid() == first.uid()), (second.uid(), false));
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c38_a_wait_ends_ten_seconds_after_the_write_and_says_what_is_missing() {
    let stage = Stage::new().await;
    stage.lateness.hold(true);
    let (began, lister) = (Instant::now(), stage.maps.lister());
    let written = stage.create("shop/a").await;
    sleep(Duration::from_secs(4)).await;
    let error = lister.get("shop/a").await.unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 10);
    let ReadError::Behind(behind) = &error else { panic!("{error}") };
    assert_eq!(behind.wanted.to_string(), written.resource_version().unwrap());
    assert!(
        error.to_string().contains("does not show version") && error.to_string().contains("of shop/a"),
        "{error}"
    );
    let at_once = lister.get("shop/a").now_or_never().expect("there is no second wait");
    assert!(matches!(at_once, Err(ReadError::Behind(_))), "and nothing out of date");
    stage.lateness.hold(false);
    stage.settle().await;
    assert!(lister.get("shop/a").await.is_ok());

    // What will never come is said too.
    stage.lateness.hold(true);
    stage.create("shop/b").await;
    stage.informer.stop().await.unwrap();
    let text = lister.get("shop/b").await.unwrap_err().to_string();
    assert!(text.contains("its informer has stopped"), "{text}");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c38_what_the_informer_does_not_select_is_not_waited_for_and_what_leaves_it_is() {
    let web: Selector = "app=web".parse().unwrap();
    let stage = Stage::selecting(|source| source.label_selector(&web).in_namespace("shop")).await;
    let lister = stage.maps.lister();
    stage.lateness.hold(true);
    stage.create("shop/other").await;
    stage.create("bank/elsewhere").await;
    assert_eq!(format!("{:?}", stage.maps), r#"Writes { of: "configmaps", applied: 0, remembered: 0 }"#);
    stage.lateness.hold(false);

    let mut mine = mk("shop/mine");
    mine.labels_mut().insert("app".to_owned(), "web".to_owned());
    stage.maps.create(&PostParams::default(), &mine).await.unwrap();
    assert!(lister.get("shop/mine").await.is_ok());
    stage.lateness.hold(true);
    let unlabelled = patch(json!({ "metadata": { "labels": null } }));
    stage.maps.patch(&key("shop/mine"), &PatchParams::default(), &unlabelled).await.unwrap();
    let read = key("shop/mine");
    let read = lister.get_opt(&read);
    tokio::pin!(read);
    assert!((&mut read).now_or_never().is_none());
    stage.lateness.hold(false);
    assert!(read.await.unwrap().is_none());
    stage.end().await;

    // By fields, also through the hook that has the last word.
    for tweaked in [false, true] {
        let stage = Stage::selecting(|source| match tweaked {
            true => source.tweak(|options| options.field_selector = Some("metadata.name=mine".to_owned())),
            false => source.field_selector(&"metadata.name=mine".parse().unwrap()),
        })
        .await;
        stage.lateness.hold(true);
        stage.create("shop/other").await;
        assert!(format!("{:?}", stage.maps).contains("remembered: 0"));
        stage.create("shop/mine").await;
        assert!(format!("{:?}", stage.maps).contains("remembered: 1"));
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c38_what_did_not_change_anything_or_is_not_known_is_not_waited_for() {
    let stage = Stage::new().await;
    let lister = stage.maps.lister();
    stage.create("shop/a").await;
    lister.get("shop/a").await.unwrap();
    stage.lateness.hold(true);
    // A patch without a change, a dry run, a refusal, a lost answer.
    let at = key("shop/a");
    stage.maps.patch(&at, &PatchParams::default(), &patch(json!({}))).await.unwrap();
    assert!(lister.get("shop/a").now_or_never().is_some());
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    stage.maps.create(&dry, &mk("shop/b")).await.unwrap();
    stage.maps.delete(&at, &DeleteParams { dry_run: true, ..DeleteParams::default() }).await.unwrap();
    assert!(stage.maps.create(&PostParams::default(), &mk("shop/a")).await.unwrap_err().is_already_exists());
    stage.server.faults().add(Rule::new(Fault::Reset).verb(Verb::Create).times(1));
    assert!(stage.maps.create(&PostParams::default(), &mk("shop/c")).await.is_err());
    let maps = Api::<ConfigMap>::namespaced(stage.server.client(), "shop");
    assert!(maps.get("c").await.is_ok(), "it was carried out all the same");
    for name in ["shop/a", "shop/b", "shop/c"] {
        assert!(lister.get(name).now_or_never().is_some(), "{name}");
    }
    // One that was made another way can be remembered.
    let answer = maps.patch("a", &PatchParams::default(), &coloured("red")).await.unwrap();
    assert!(lister.get("shop/a").now_or_never().is_some());
    stage.maps.wrote_at(&answer).unwrap();
    assert!(stage.maps.ensure_ready(&at).now_or_never().is_none());
    stage.lateness.hold(false);
    stage.maps.ensure_ready(&at).await.unwrap();
    assert_eq!(lister.get("shop/a").await.unwrap().data.as_ref().unwrap()["colour"], "red");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_is_bounded_by_what_the_cache_does_not_show() {
    let stage = Stage::new().await;
    for number in 0..2_000 {
        stage.create(&format!("shop/{number}")).await;
        stage.settle().await;
    }
    let remembered = format!("{:?}", stage.maps);
    let count: usize = remembered.trim_end_matches(" }").rsplit(' ').next().unwrap().parse().unwrap();
    assert!(count < 200, "{remembered}");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_name_is_an_error_that_says_so() {
    let stage = Stage::new().await;
    let mut nameless = mk("shop/a");
    nameless.metadata.name = None;
    let error = stage.maps.replace(&PostParams::default(), &nameless).await.unwrap_err();
    assert!(error.to_string().contains("no metadata.name"), "{error}");
    // The server names it.
    nameless.metadata.generate_name = Some("gen-".to_owned());
    let named = stage.maps.create(&PostParams::default(), &nameless).await.unwrap();
    assert!(stage.maps.lister().get(&format!("shop/{}", named.name_any())).await.is_ok());
    stage.end().await;
}
