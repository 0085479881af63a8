//! One informer over a list of namespaces, each with a watch of its own.

use std::time::Duration;

use informer::{
    Handler, SharedInformer,
    shared::BuildError,
    source::{ListWatch, MemorySource},
};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::Instant;

use super::{
    stage::{Log, MINUTE, QUEUES, Stage, forbidden, force_list, put, seconds, server, settle},
    support::{key, show},
};

#[tokio::test(start_paused = true)]
async fn c33_several_namespaces_are_one_cache_with_one_watch_each() {
    for queue in QUEUES {
        for streaming in [true, false] {
            let (server, log) = (server(&["a/x", "b/x", "c/x"]), Log::default());
            let builder = SharedInformer::builder(server.scoped("a")).source(server.scoped("b"));
            let informer = builder.queue(queue).streaming(streaming).build().unwrap();
            informer.add_handler(log.handler()).unwrap();
            let stage = Stage::synced(&server, informer).await;
            assert_eq!(stage.cached(), "a/x@2 b/x@3");
            assert_eq!(server.open_watches(), 2);
            log.take();
            put(&server, "b/y");
            put(&server, "c/y");
            server.delete(&key("a/x"));
            settle().await;
            assert_eq!(stage.cached(), "b/x@3 b/y@5");
            let mut heard: Vec<String> = log.take().split(' ').map(str::to_owned).collect();
            heard.sort();
            assert_eq!(heard, ["+b/y@5", "-a/x@7"]);
            force_list(&server, || {
                server.delete(&key("b/x"));
            });
            seconds(5).await;
            assert_eq!(stage.cached(), "b/y@5", "a list of one namespace leaves the other alone");
            assert_eq!(log.take(), "?b/x@3");
            stage.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c33_one_namespace_that_fails_is_named_and_the_others_go_on() {
    let (good, bad) = (server(&["a/x"]), server(&["b/x"]));
    bad.fail_next_lists(20, forbidden());
    bad.fail_next_watches(20, forbidden());
    let builder = SharedInformer::builder(good.scoped("a")).source(bad.scoped("b")).name("two");
    let stage = Stage::start(&good, builder.build().unwrap());
    let error = stage.informer.wait_until_synced(MINUTE).await.unwrap_err().to_string();
    assert!(error.contains("namespace \"b\"") && error.contains("forbidden"), "{error}");
    put(&good, "a/y");
    settle().await;
    assert_eq!(stage.cached(), "a/x@2 a/y@3");
    stage.informer.wait_until_synced(30 * MINUTE).await.expect("it is allowed in the end");
    assert_eq!(stage.informer.store().len(), 3);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c33_the_version_of_several_is_what_all_of_them_have_reached() {
    let server = server(&["a/x", "b/x"]);
    let builder = SharedInformer::builder(server.scoped("a")).source(server.scoped("b"));
    let stage = Stage::synced(&server, builder.build().unwrap()).await;
    put(&server, "a/x");
    settle().await;
    assert_eq!(stage.cached(), "a/x@4 b/x@3");
    assert_eq!(stage.informer.last_sync_resource_version(), "3".into(), "the other has not told of it");
    let reached = stage.informer.wait_for_resource_version(&server.version(), 2 * MINUTE).await;
    assert_eq!(reached, Ok("4".into()), "the bookmark of the other did");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c21_who_waits_for_an_object_waits_for_its_namespace_and_no_other() {
    for queue in QUEUES {
        let server = server(&["a/x", "b/x"]);
        let builder = SharedInformer::builder(server.scoped("a")).source(server.scoped("b")).queue(queue);
        let stage = Stage::synced(&server, builder.build().unwrap()).await;
        let (informer, began) = (&stage.informer, Instant::now());
        put(&server, "a/x");
        let written = server.version();
        assert_eq!(informer.wait_for(&key("a/x"), &written, MINUTE).await, Ok(written.clone()));
        assert_eq!(show(informer.store().get(&key("a/x")).iter()), "a/x@4");
        let deleted = server.delete(&key("a/x")).unwrap();
        assert_eq!(informer.wait_for(&key("a/x"), &deleted, MINUTE).await, Ok(deleted.clone()));
        assert!(informer.store().get(&key("a/x")).is_none());
        assert_eq!(began.elapsed(), Duration::ZERO, "the other namespace was not waited for");
        let other = informer.wait_for(&key("b/x"), &deleted, Duration::from_secs(1)).await.unwrap_err();
        assert!(other.to_string().contains("it is at \"3\""), "{other}");
        // An object that is there already answers for itself, also when the informer has stopped.
        let there = informer.clone();
        stage.end().await;
        let cached = there.store().get(&key("b/x")).unwrap().resource_version().clone();
        assert_eq!(there.wait_for(&key("b/x"), &cached, MINUTE).await, Ok(cached));
        assert!(
            there
                .wait_for(&key("b/x"), &"99".into(), MINUTE)
                .await
                .unwrap_err()
                .to_string()
                .contains("stopped")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn c26_a_resync_of_several_namespaces_brings_nothing_back_that_changed_meanwhile() {
    const OBJECTS: usize = 600;
    for queue in QUEUES {
        let server = server(&[]);
        for namespace in ["a", "b"] {
            (0..OBJECTS).for_each(|name| put(&server, &format!("{namespace}/o{name}")));
        }
        let builder = SharedInformer::builder(server.scoped("a")).source(server.scoped("b")).queue(queue);
        let stage = Stage::synced(&server, builder.resync(Duration::from_secs(1)).build().unwrap()).await;
        // The first word of each resync is followed by changes, while most of it is still on its way.
        let (busy, mut resyncs) = (server.clone(), 0);
        let handler = Handler::<ConfigMap>::new().on_update(move |old, new| {
            if old.ptr_eq(new) && new.key().as_str() == "a/o0" {
                resyncs += 1;
                (0..20).for_each(|name| put(&busy, &format!("b/o{}", name * 30)));
                (0..20).for_each(|name| drop(busy.delete(&key(&format!("b/o{}", name * 30 + resyncs)))));
            }
        });
        stage.informer.add_handler(handler).unwrap();
        for _ in 0..10 {
            seconds(1).await;
            assert_eq!(stage.cached(), show(&server.objects()), "{queue:?}");
        }
        assert!(server.objects().len() < 2 * OBJECTS - 100, "there were resyncs, and changes");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c23_only_what_a_first_list_told_is_initial_whatever_becomes_of_other_namespaces() {
    for queue in QUEUES {
        for streaming in [true, false] {
            let (good, bad, log) = (server(&["a/x", "a/y"]), server(&["b/x"]), Log::default());
            bad.fail_next_lists(20, forbidden());
            bad.fail_next_watches(20, forbidden());
            let builder = SharedInformer::builder(good.scoped("a")).source(bad.scoped("b")).queue(queue);
            let informer = builder.streaming(streaming).seed(1).build().unwrap();
            informer.add_handler(log.handler()).unwrap();
            let stage = Stage::start(&good, informer);
            settle().await;
            assert_eq!(log.take(), "*a/x@2 *a/y@3");
            put(&good, "a/z");
            settle().await;
            assert_eq!(log.take(), "+a/z@4", "{queue:?}: the other namespace is forbidden");
            force_list(&good, || put(&good, "a/relisted"));
            seconds(5).await;
            assert_eq!(log.take(), "+a/relisted@5", "{queue:?}: not the first list");
            stage.informer.wait_until_synced(30 * MINUTE).await.expect("it is allowed in the end");
            settle().await;
            assert_eq!(log.take(), "*b/x@2", "{queue:?}: the first list of its namespace");
            stage.end().await;
        }
    }
}

#[test]
fn c33_sources_that_cover_the_same_objects_are_refused() {
    let server = MemorySource::<ConfigMap>::new();
    let twice = SharedInformer::builder(server.scoped("a")).source(server.scoped("a")).build().unwrap_err();
    assert!(matches!(twice, BuildError::Overlap { .. }), "{twice}");
    let all = SharedInformer::builder(server.scoped("a")).source(server.clone()).build().unwrap_err();
    assert!(all.to_string().contains(&server.description()), "{all}");
}
