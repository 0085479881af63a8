//! What handlers hear, when, and what becomes of those that are slow or panic.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, StreamExt};
use informer::{
    EventHandler, Handler, Object, Registration, SharedInformer, Tombstone,
    metrics::{Measurement, Metrics},
};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};

use super::{
    stage::{
        Log, MINUTE, QUEUES, Stage, builder, force_list, informer, put, put_with, seconds, server, settle,
    },
    support::{Config, key},
    validator::Validator,
};

/// A handler that needs a permit for each event.
pub(crate) struct Gated<H> {
    gate: Arc<Semaphore>,
    inner: H,
}

impl Gated<Handler<ConfigMap>> {
    pub(crate) fn add(informer: &SharedInformer<ConfigMap>) -> (Arc<Semaphore>, Log, Registration) {
        let (gate, log) = (Arc::new(Semaphore::new(0)), Log::default());
        let handler = Self { gate: Arc::clone(&gate), inner: log.handler() };
        let registration = informer.add_handler(handler).expect("it has not stopped");
        (gate, log, registration)
    }
}

impl<H> Gated<H> {
    async fn pass(&mut self) -> &mut H {
        self.gate.acquire().await.expect("an open gate").forget();
        &mut self.inner
    }
}

impl<H: EventHandler<ConfigMap>> EventHandler<ConfigMap> for Gated<H> {
    async fn on_add(&mut self, object: &Config, initial: bool) {
        self.pass().await.on_add(object, initial).await;
    }

    async fn on_update(&mut self, old: &Config, new: &Config) {
        self.pass().await.on_update(old, new).await;
    }

    async fn on_delete(&mut self, gone: &Tombstone<ConfigMap>) {
        self.pass().await.on_delete(gone).await;
    }
}

#[tokio::test(start_paused = true)]
async fn c22_the_cache_changes_before_a_handler_hears_of_it() {
    for queue in QUEUES {
        let server = server(&["a/x"]);
        let stage = Stage::synced(&server, builder(&server).queue(queue).build().unwrap()).await;
        let (cache, log) = (stage.informer.store(), Log::default());
        let (on_add, on_delete) = ((cache.clone(), log.clone()), (cache, log.clone()));
        let handler = Handler::<ConfigMap>::new()
            .on_add(move |object, _| {
                let cached = on_add.0.get(object.key()).expect("it is in the cache");
                on_add.1.note(format!("{}", cached.ptr_eq(object)));
            })
            .on_delete(move |gone| on_delete.1.note(format!("{}", on_delete.0.get(gone.key()).is_none())));
        stage.informer.add_handler(handler).unwrap();
        put(&server, "a/y");
        settle().await;
        server.delete(&key("a/y"));
        settle().await;
        assert_eq!(log.take(), "true true true");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c22_a_handler_hears_one_event_at_a_time_in_order_and_waits_for_no_other() {
    let server = server(&[]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let (gate, slow, _) = Gated::add(&stage.informer);
    let quick = Log::default();
    stage.informer.add_handler(quick.handler()).unwrap();
    put(&server, "a/x");
    put(&server, "a/x");
    server.delete(&key("a/x"));
    settle().await;
    assert_eq!((quick.take().as_str(), slow.take().as_str()), ("+a/x@2 ~a/x@2>3 -a/x@4", ""));
    for heard in ["+a/x@2", "~a/x@2>3", "-a/x@4"] {
        gate.add_permits(1);
        settle().await;
        assert_eq!(slow.take(), heard);
    }
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c23_a_late_handler_hears_first_of_what_is_there_and_then_of_every_change() {
    for queue in QUEUES {
        let server = server(&["a/x", "a/y"]);
        let stage = Stage::synced(&server, builder(&server).queue(queue).build().unwrap()).await;
        put(&server, "a/x");
        settle().await;
        let late = Log::default();
        let registration = stage.informer.add_handler(late.handler()).unwrap();
        put(&server, "a/z");
        server.delete(&key("a/y"));
        registration.wait_until_synced(MINUTE).await.unwrap();
        settle().await;
        assert_eq!(late.take(), "*a/x@4 *a/y@3 +a/z@5 -a/y@6");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c23_a_registration_is_synced_after_the_last_of_what_was_there_has_been_handled() {
    let server = server(&["a/x", "a/y"]);
    let informer = informer(&server);
    let (early_gate, _, early) = Gated::add(&informer);
    let stage = Stage::synced(&server, informer).await;
    let (late_gate, _, late) = Gated::add(&stage.informer);
    for (gate, registration) in [(early_gate, early), (late_gate, late)] {
        gate.add_permits(1);
        settle().await;
        assert!(!registration.has_synced(), "{registration:?}");
        assert_eq!(registration.pending(), 1);
        gate.add_permits(1);
        settle().await;
        assert!(registration.has_synced(), "{registration:?}");
    }
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c23_the_first_list_is_initial_and_nothing_after_it_is() {
    for streaming in [true, false] {
        let (server, log) = (server(&["a/x"]), Log::default());
        let informer = builder(&server).streaming(streaming).build().unwrap();
        let registration = informer.add_handler(log.handler()).unwrap();
        assert!(!registration.has_synced());
        let stage = Stage::synced(&server, informer).await;
        put(&server, "a/y");
        settle().await;
        assert_eq!(log.take(), "*a/x@2 +a/y@3");
        // What a broken watch missed is told later, and was not there before.
        stage.server.break_watches();
        put(&server, "a/z");
        put(&server, "a/x");
        settle().await;
        assert_eq!(log.take(), "+a/z@4 ~a/x@2>5");
        force_list(&server, || put(&server, "b/x"));
        seconds(2).await;
        assert_eq!(log.take(), "+b/x@6 +zz/forced@7");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c24_what_a_list_finds_is_told_with_what_is_known_of_it() {
    for queue in QUEUES {
        for streaming in [true, false] {
            let server = server(&["a/gone", "a/new", "a/same"]);
            let builder = builder(&server).queue(queue).streaming(streaming);
            let stage = Stage::synced(&server, builder.build().unwrap()).await;
            let (log, uids) = (Log::default(), Log::default());
            let handler = {
                let uids = uids.clone();
                Handler::<ConfigMap>::new().on_update(move |old, new| {
                    uids.note(format!("{}", old.metadata.uid == new.metadata.uid));
                })
            };
            stage.informer.add_handler(handler).unwrap();
            let registration = stage.informer.add_handler(log.handler()).unwrap();
            registration.wait_until_synced(MINUTE).await.unwrap();
            log.take();
            force_list(&server, || {
                server.delete(&key("a/gone"));
                server.delete(&key("a/new"));
                put(&server, "a/new");
            });
            seconds(2).await;
            assert_eq!(
                log.take(),
                "?a/gone@2 ~a/new@3>7 +zz/forced@8",
                "deleted, made anew, and not told otherwise"
            );
            assert_eq!(uids.take(), "false", "another object of the same name");
            stage.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_filtered_handler_hears_of_a_world_that_has_only_what_passes() {
    let server = server(&[]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let log = Log::default();
    let passes =
        |object: &Object<ConfigMap>| object.data.as_ref().is_some_and(|data| data.contains_key("yes"));
    let registration = stage.informer.add_handler(log.handler().filter(passes)).unwrap();
    for data in ["no", "yes", "yes", "no", "yes"] {
        put_with(&server, "a/x", &[(data, "")]);
    }
    server.delete(&key("a/x"));
    put_with(&server, "a/y", &[("no", "")]);
    server.delete(&key("a/y"));
    settle().await;
    assert_eq!(log.take(), "+a/x@3 ~a/x@3>4 -a/x@4 +a/x@6 -a/x@7");
    assert!(registration.has_synced());
    stage.end().await;
}

/// Counts panics.
#[derive(Default)]
struct Panics(Mutex<Vec<String>>);

impl Metrics for Panics {
    fn record(&self, informer: &str, measurement: Measurement<'_>) {
        if let Measurement::HandlerPanicked { handler } = measurement {
            self.0.lock().unwrap().push(format!("{informer}/{handler}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c28_a_panicking_handler_is_reported_and_goes_on_and_leaves_the_others_alone() {
    let (server, panics, log) = (server(&["a/x", "a/y"]), Arc::new(Panics::default()), Log::default());
    let informer = builder(&server).metrics(panics.clone()).build().unwrap();
    let noted = log.clone();
    let bad = Handler::new().name("bad").on_add(move |object: &Config, _| {
        noted.note(object.key().name());
        panic!("as planned");
    });
    let bad = informer.add_handler(bad).unwrap();
    let good = Validator::add(&informer, "good");
    let stage = Stage::synced(&server, informer).await;
    put(&server, "a/z");
    settle().await;
    assert_eq!(log.take(), "x y z");
    assert!(bad.has_synced() && bad.pending() == 0);
    assert_eq!(*panics.0.lock().unwrap(), vec!["configs/bad"; 3]);
    good.check_last_word(&stage.informer.store());
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c29_a_blocked_handler_costs_one_entry_for_each_key_and_ends_with_the_right_last_state() {
    for queue in QUEUES {
        let server = server(&["a/gone"]);
        let stage = Stage::synced(&server, builder(&server).queue(queue).build().unwrap()).await;
        let gate = Arc::new(Semaphore::new(0));
        let validator = Validator::add_as(&stage.informer, "blocked", |listening| Gated {
            gate: Arc::clone(&gate),
            inner: listening,
        });
        settle().await;
        for round in 0..1_000 {
            for object in 0..10 {
                put(&server, &format!("a/{object}"));
            }
            put(&server, &format!("b/{round}"));
            server.delete(&key(&format!("b/{round}")));
            settle().await;
        }
        server.delete(&key("a/gone"));
        settle().await;
        let pending = validator.registration.pending();
        assert!(pending <= 12, "{pending} wait, for 11 objects and the one in hand");
        gate.add_permits(20_000);
        settle().await;
        assert_eq!(validator.registration.pending(), 0);
        assert!(validator.registration.has_synced());
        validator.check_last_word(&stage.informer.store());
        let story = validator.story();
        assert!(story.iter().all(|event| !event.contains("b/")), "came and went unheard: {story:?}");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c30_run_returns_after_the_last_handler_and_drops_what_it_has_not_heard() {
    let server = server(&[]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let (done, heard) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let slow = Dawdling { done: Arc::clone(&done), heard: Arc::clone(&heard) };
    stage.informer.add_handler(slow).unwrap();
    put(&server, "a/x");
    put(&server, "a/y");
    settle().await;
    let began = Instant::now();
    stage.stop.cancel();
    settle().await;
    assert_eq!(server.open_watches(), 0, "the reflector ends first");
    assert!(!stage.running.is_finished() && !done.load(Ordering::SeqCst), "the callback still runs");
    stage.running.await.unwrap().unwrap();
    assert!(done.load(Ordering::SeqCst) && began.elapsed() > Duration::from_secs(9));
    assert_eq!(heard.load(Ordering::SeqCst), 1, "the second event was dropped");
    assert_eq!(stage.informer.store().len(), 2, "the cache stays as it was");
}

/// A handler that takes ten seconds.
struct Dawdling {
    done: Arc<AtomicBool>,
    heard: Arc<AtomicUsize>,
}

impl EventHandler<ConfigMap> for Dawdling {
    async fn on_add(&mut self, _: &Config, _: bool) {
        self.heard.fetch_add(1, Ordering::SeqCst);
        sleep(Duration::from_secs(10)).await;
        self.done.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_a_handler_that_is_polled_and_ends_with_the_informer() {
    let server = server(&["a/x"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let mut subscription = stage.informer.subscribe().unwrap();
    let first = subscription.next().await.unwrap();
    assert!(first.initial && first.key() == &key("a/x"));
    assert!(subscription.next().now_or_never().is_none() && subscription.registration().has_synced());
    put(&server, "a/y");
    let second = subscription.next().await.unwrap();
    assert!(!second.initial && second.key() == &key("a/y"));
    let dropped = stage.informer.subscribe().unwrap();
    let registration = dropped.registration().clone();
    drop(dropped);
    put(&server, "a/z");
    settle().await;
    assert_eq!(registration.pending(), 0, "it was removed with the stream");
    stage.end().await;
    assert!(subscription.next().await.is_none());
}

#[tokio::test]
async fn a_handler_that_blocks_its_thread_holds_up_nobody() {
    let (server, log) = (server(&["a/x"]), Log::default());
    let stage = Stage::synced(&server, informer(&server)).await;
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocking = Handler::<ConfigMap>::new().blocking().on_add(move |_, _| {
        let _ = blocked.recv();
    });
    let blocking = stage.informer.add_handler(blocking).unwrap();
    let quick = stage.informer.add_handler(log.handler()).unwrap();
    quick.wait_until_synced(MINUTE).await.unwrap();
    assert_eq!(log.take(), "*a/x@2");
    let late = blocking.wait_until_synced(Duration::from_millis(1)).await.unwrap_err().to_string();
    assert!(
        late.ends_with("has not heard of all that existed after 1ms (events waiting for it: 1)"),
        "{late}"
    );
    release.send(()).unwrap();
    blocking.wait_until_synced(MINUTE).await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c23_what_comes_just_behind_a_streaming_list_is_not_initial() {
    for queue in QUEUES {
        let (server, log) = (server(&["a/x", "a/y"]), Log::default());
        let informer = builder(&server).queue(queue).build().unwrap();
        informer.add_handler(log.handler()).unwrap();
        server.stall_watches(true);
        let stage = Stage::start(&server, informer);
        settle().await;
        put(&server, "a/z");
        server.stall_watches(false);
        settle().await;
        assert_eq!(log.take(), "*a/x@2 *a/y@3 +a/z@4", "{queue:?}");
        stage.end().await;
    }
}
