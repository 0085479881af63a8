//! Namespaces that come and go while an informer runs.

use std::{sync::Arc, time::Duration};

use informer::{
    Handler, Namespaces, SharedInformer,
    factory::ScopeError,
    queue::QueueKind,
    shared::{BuildError, SharedInformerBuilder},
    source::MemorySource,
};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::{runtime::Handle, sync::Semaphore};

use super::{
    stage::{Log, MINUTE, QUEUES, Stage, forbidden, put, seconds, server, settle},
    support::key,
};

fn following(server: &MemorySource<ConfigMap>, namespaces: &Namespaces) -> SharedInformerBuilder<ConfigMap> {
    let server = server.clone();
    SharedInformer::following(namespaces, move |name| server.scoped(name)).name("maps").seed(1)
}

/// A handler that notes deletions with their reason.
fn departures(log: &Log) -> Handler<ConfigMap> {
    let log = log.clone();
    Handler::new().on_delete(move |gone| {
        log.note(format!("{} {:?} {}", gone.key(), gone.departure(), gone.final_state_known()));
    })
}

/// Waits for a condition that needs no more than a few minutes.
async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("it never came to this: {what}");
}

#[tokio::test(start_paused = true)]
async fn c43_a_namespace_that_is_added_is_listed_alone_and_told_as_initial_additions() {
    for queue in QUEUES {
        for streaming in [true, false] {
            let (server, log) = (server(&["a/x", "b/x", "b/y"]), Log::default());
            let namespaces = Namespaces::of(["a"]).unwrap();
            let informer = following(&server, &namespaces).queue(queue).streaming(streaming).build().unwrap();
            informer.add_handler(log.handler()).unwrap();
            let stage = Stage::synced(&server, informer).await;
            assert_eq!((stage.cached().as_str(), log.take().as_str()), ("a/x@2", "*a/x@2"));
            let asked = server.requests().len();
            assert_eq!(namespaces.add("b"), Ok(true));
            assert_eq!(namespaces.add("b"), Ok(false), "added twice it is there once");
            stage.informer.wait_until_namespace_synced("b", MINUTE).await.unwrap();
            settle().await;
            assert_eq!(stage.cached(), "a/x@2 b/x@3 b/y@4");
            assert_eq!(log.take(), "*b/x@3 *b/y@4", "{queue:?}");
            assert_eq!(server.open_watches(), 2);
            let new = server.requests().len() - asked;
            assert!(
                new <= 2,
                "{queue:?}, streaming: {streaming}: {new} requests, of the new namespace alone"
            );
            put(&server, "b/z");
            settle().await;
            assert_eq!(log.take(), "+b/z@5");
            stage.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c43_a_namespace_that_is_taken_out_leaves_as_deletions_that_say_so_and_is_not_asked_again() {
    for queue in QUEUES {
        let (server, log) = (server(&["a/x", "b/x", "b/y"]), Log::default());
        let namespaces = Namespaces::of(["a", "b"]).unwrap();
        let informer = following(&server, &namespaces).queue(queue).build().unwrap();
        informer.add_handler(departures(&log)).unwrap();
        let stage = Stage::synced(&server, informer).await;
        assert!(namespaces.remove("b") && !namespaces.remove("b"));
        settle().await;
        assert_eq!(stage.cached(), "a/x@2");
        assert_eq!(log.take(), "b/x Some(Namespace) false b/y Some(Namespace) false");
        assert_eq!(server.open_watches(), 1);
        put(&server, "b/z");
        seconds(900).await;
        assert_eq!((stage.cached().as_str(), log.take().as_str()), ("a/x@2", ""));
        let health = stage.informer.health();
        assert_eq!(health.sources.len(), 1, "{health}");
        assert!(health.is_healthy(), "{health}");
        server.delete(&key("a/x"));
        settle().await;
        assert_eq!(log.take(), "a/x None true", "what was deleted is told as ever");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c43_taken_out_while_its_list_is_going_on_nothing_of_it_comes() {
    for streaming in [true, false] {
        let (server, log) = (server(&["a/x", "b/x"]), Log::default());
        let namespaces = Namespaces::of(["a"]).unwrap();
        let informer = following(&server, &namespaces).streaming(streaming).build().unwrap();
        informer.add_handler(log.handler()).unwrap();
        let stage = Stage::synced(&server, informer).await;
        log.take();
        // Its lists and watches fail for a while: the first list stays under way.
        server.fail_next_lists(5, forbidden());
        server.fail_next_watches(5, forbidden());
        namespaces.add("b").unwrap();
        settle().await;
        assert_eq!(stage.informer.health().sources.len(), 2);
        assert!(stage.informer.health().trouble().is_some() && stage.informer.has_synced());
        namespaces.remove("b");
        seconds(300).await;
        assert_eq!((stage.cached().as_str(), log.take().as_str()), ("a/x@2", ""));
        assert!(stage.informer.health().is_healthy(), "{}", stage.informer.health());
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c43_added_again_while_it_is_being_taken_out_it_is_listed_anew() {
    for queue in QUEUES {
        let (server, log) = (server(&["a/x", "b/x"]), Log::default());
        let namespaces = Namespaces::of(["a", "b"]).unwrap();
        let informer = following(&server, &namespaces).queue(queue).build().unwrap();
        // A handler that is busy with the deletion.
        let (turn, told) = (Arc::new(Semaphore::new(0)), log.clone());
        let gate = Arc::clone(&turn);
        struct Slow(Arc<Semaphore>, Log);
        impl informer::EventHandler<ConfigMap> for Slow {
            async fn on_delete(&mut self, gone: &informer::Tombstone<ConfigMap>) {
                self.1.note(format!("-{}", gone.key()));
                self.0.acquire().await.expect("open").forget();
            }
            async fn on_add(&mut self, object: &informer::Object<ConfigMap>, initial: bool) {
                self.1.note(format!("{}{}", if initial { '*' } else { '+' }, object.key()));
            }
        }
        informer.add_handler(Slow(gate, told)).unwrap();
        let stage = Stage::synced(&server, informer).await;
        log.take();
        namespaces.remove("b");
        settle().await;
        namespaces.add("b").unwrap();
        settle().await;
        assert_eq!(stage.cached(), "a/x@2 b/x@3", "the cache waits for no handler");
        assert_eq!(log.take(), "-b/x");
        turn.add_permits(1);
        settle().await;
        assert_eq!(log.take(), "*b/x");
        assert_eq!(server.open_watches(), 2, "{queue:?}");
        // In one go it has never been away.
        namespaces.remove("b");
        namespaces.add("b").unwrap();
        settle().await;
        assert_eq!((log.take().as_str(), server.open_watches()), ("", 2));
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c43_the_version_never_goes_back_and_the_informer_stays_synced() {
    let (server, slow) = (server(&["a/x"]), server(&["b/x"]));
    let namespaces = Namespaces::of(["a"]).unwrap();
    let (one, other) = (server.clone(), slow.clone());
    let source = move |name: &str| if name == "b" { other.scoped(name) } else { one.scoped(name) };
    let informer = SharedInformer::following(&namespaces, source).seed(1).build().unwrap();
    let stage = Stage::synced(&server, informer).await;
    (0..10).for_each(|_| put(&server, "a/x"));
    settle().await;
    let reached = stage.informer.last_sync_resource_version();
    assert_eq!(reached, server.version());
    // The new one is far behind, as with a replica: its version counts when it has caught up.
    namespaces.add("b").unwrap();
    stage.informer.wait_until_namespace_synced("b", MINUTE).await.unwrap();
    assert!(stage.informer.has_synced());
    assert_eq!(stage.informer.last_sync_resource_version(), reached);
    assert_eq!(stage.informer.store().snapshot().rewinds(), 0);
    let late = stage.informer.wait_for(&key("b/x"), &reached, Duration::from_secs(1)).await.unwrap_err();
    assert!(late.to_string().contains("it is at \"2\""), "its own namespace is not there yet: {late}");
    (0..10).for_each(|_| put(&slow, "b/x"));
    settle().await;
    assert_eq!(
        stage.informer.last_sync_resource_version(),
        reached,
        "it counts now, and the other is behind it"
    );
    put(&server, "a/x");
    settle().await;
    assert_eq!(stage.informer.last_sync_resource_version(), slow.version(), "the least of both");
    // Without it, the others decide alone.
    let behind = slow.version();
    (0..5).for_each(|_| put(&server, "a/x"));
    settle().await;
    assert_eq!(stage.informer.last_sync_resource_version(), behind);
    namespaces.remove("b");
    settle().await;
    assert_eq!(stage.informer.last_sync_resource_version(), server.version());
    namespaces.remove("a");
    settle().await;
    assert_eq!(stage.informer.last_sync_resource_version(), server.version(), "it stays where it was");
    assert!(stage.informer.has_synced() && stage.informer.store().is_empty());
    assert_eq!(stage.informer.store().snapshot().rewinds(), 0);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c43_who_waits_for_an_object_of_a_new_namespace_waits_for_its_first_list() {
    let (good, bad) = (server(&["a/x"]), server(&["b/x"]));
    let namespaces = Namespaces::of(["a"]).unwrap();
    let (one, other) = (good.clone(), bad.clone());
    let source = move |name: &str| if name == "b" { other.scoped(name) } else { one.scoped(name) };
    let informer = SharedInformer::following(&namespaces, source).build().unwrap();
    let stage = Stage::synced(&good, informer).await;
    bad.fail_next_lists(3, forbidden());
    bad.fail_next_watches(3, forbidden());
    namespaces.add("b").unwrap();
    settle().await;
    let early = stage.informer.wait_for(&key("b/x"), &"2".into(), Duration::from_millis(1)).await;
    assert!(early.is_err(), "the version of the others says nothing about it: {early:?}");
    let error = stage.informer.wait_until_namespace_synced("b", Duration::from_millis(1)).await.unwrap_err();
    assert!(
        error.to_string().contains("namespace \"b\"") && error.to_string().contains("forbidden"),
        "{error}"
    );
    stage.informer.wait_for(&key("b/x"), &"2".into(), 10 * MINUTE).await.unwrap();
    assert!(stage.informer.store().get(&key("b/x")).is_some());
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c43_a_set_without_namespaces_is_synced_and_one_that_cannot_be_listed_holds_up_until_it_is_taken_out()
{
    let server = server(&["a/x", "b/x"]);
    let namespaces = Namespaces::of(Vec::<String>::new()).unwrap();
    let stage = Stage::synced(&server, following(&server, &namespaces).build().unwrap()).await;
    assert!(stage.informer.has_synced() && server.requests().is_empty());
    let log = Log::default();
    stage.informer.add_handler(log.handler()).unwrap().wait_until_synced(MINUTE).await.unwrap();
    namespaces.set(["a", "b"]).unwrap();
    settle().await;
    assert_eq!((stage.cached().as_str(), log.take().as_str()), ("a/x@2 b/x@3", "*a/x@2 *b/x@3"));
    stage.end().await;

    let broken = MemorySource::<ConfigMap>::new();
    broken.fail_next_lists(1_000, forbidden());
    broken.fail_next_watches(1_000, forbidden());
    let namespaces = Namespaces::of(["a", "b"]).unwrap();
    let (one, other) = (server.clone(), broken.clone());
    let source = move |name: &str| if name == "b" { other.scoped(name) } else { one.scoped(name) };
    let stage = Stage::start(&server, SharedInformer::following(&namespaces, source).build().unwrap());
    assert!(stage.informer.wait_until_synced(MINUTE).await.is_err(), "it is waited for");
    namespaces.set(["a", "c"]).unwrap();
    stage.informer.wait_until_synced(Duration::from_secs(1)).await.expect("it is not any more");
    assert_eq!(stage.informer.last_sync_resource_version(), server.version());
    assert_eq!(stage.informer.store().snapshot().rewinds(), 0);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c43_a_source_that_has_more_than_its_namespace_takes_nothing_of_others() {
    for queue in QUEUES {
        let (server, log) = (server(&["a/x", "b/x", "c/x"]), Log::default());
        let (namespaces, all) = (Namespaces::of(["a", "b"]).unwrap(), server.clone());
        let builder = SharedInformer::following(&namespaces, move |_| all.clone());
        let informer = builder.queue(queue).build().unwrap();
        informer.add_handler(departures(&log)).unwrap();
        let stage = Stage::synced(&server, informer).await;
        assert_eq!(stage.cached(), "a/x@2 b/x@3");
        namespaces.remove("b");
        settle().await;
        assert_eq!((stage.cached().as_str(), log.take().as_str()), ("a/x@2", "b/x Some(Namespace) false"));
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c43_a_resync_survives_the_namespace_that_it_came_with() {
    for queue in QUEUES {
        let (server, log) = (server(&["a/x", "b/x"]), Log::default());
        let namespaces = Namespaces::of(["a", "b"]).unwrap();
        let informer =
            following(&server, &namespaces).queue(queue).resync(Duration::from_secs(10)).build().unwrap();
        informer.add_handler(log.handler()).unwrap();
        let stage = Stage::synced(&server, informer).await;
        namespaces.remove("a");
        settle().await;
        log.take();
        seconds(10).await;
        assert_eq!(log.take(), ".b/x@3", "{queue:?}");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c43_a_thousand_namespaces_that_come_and_go_leave_nothing_behind() {
    for queue in [QueueKind::InOrder, QueueKind::PerKey] {
        let (server, log) = (server(&["home/x"]), Log::default());
        let namespaces = Namespaces::of(["home"]).unwrap();
        let informer = following(&server, &namespaces).queue(queue).build().unwrap();
        informer.add_handler(departures(&log)).unwrap();
        let stage = Stage::synced(&server, informer).await;
        let (tasks, sources) =
            (Handle::current().metrics().num_alive_tasks(), stage.informer.health().sources.len());
        for cycle in 0..1_000 {
            // Half of them under a name of their own, half of them again and again.
            let name = if cycle % 2 == 0 { format!("n{cycle}") } else { "again".to_owned() };
            put(&server, &format!("{name}/x"));
            namespaces.add(name.as_str()).unwrap();
            // Some are taken out at once, some while they are listed, some after that.
            match cycle % 5 {
                0 => {}
                1 => tokio::task::yield_now().await,
                _ => stage.informer.wait_until_namespace_synced(&name, MINUTE).await.unwrap(),
            }
            namespaces.remove(&name);
            if cycle % 5 > 1 {
                let store = stage.informer.store();
                until("its object is gone", || store.len() == 1).await;
            }
            server.delete(&key(&format!("{name}/x")));
        }
        settle().await;
        assert!(log.take().split("false").count() > 600);
        assert_eq!(stage.cached(), "home/x@2");
        assert_eq!(server.open_watches(), 1, "{queue:?}");
        assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks, "{queue:?}: tasks are left");
        assert_eq!(stage.informer.health().sources.len(), sources);
        let asked = server.requests().len();
        seconds(240).await;
        let by_home = server.requests().len() - asked;
        assert!(by_home <= 20, "{by_home} requests in four minutes: somebody asks for what is gone");
        assert_eq!(stage.informer.store().snapshot().index_values("namespace").unwrap(), ["home"]);
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c43_bad_names_and_forms_that_cannot_follow_are_refused_in_words() {
    let namespaces = Namespaces::of(["a"]).unwrap();
    for name in ["", "A", "a/b", "..", &"x".repeat(64)] {
        assert_eq!(namespaces.add(name), Err(ScopeError::Namespace { name: name.to_owned() }));
    }
    assert!(namespaces.set(["b", "no/such"]).is_err());
    assert_eq!(namespaces.list(), ["a"], "what is refused changes nothing");
    let server = server(&[]);
    let both = following(&server, &namespaces).source(server.scoped("b")).build().unwrap_err();
    assert!(matches!(both, BuildError::Overlap { .. }), "{both}");
    let unshared = following(&server, &namespaces).build_unshared(Handler::new()).err().unwrap();
    assert_eq!(unshared, BuildError::Unshared);
}
