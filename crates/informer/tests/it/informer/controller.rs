//! A controller: from events to calls of a function.

use std::{
    collections::HashSet,
    future::{Future, pending},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use informer::{
    SharedInformer,
    controller::{Action, Controller, ControllerError},
    model::ObjectKey,
    source::MemorySource,
    workqueue::{ItemExponential, RateLimiter, WorkQueue},
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Node, Secret},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use tokio::{
    runtime::Handle,
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use super::{
    log_lines::LogLines,
    stage::{Log, MINUTE, Stage, informer, put, put_with, seconds, server, settle},
    support::key,
};

pub(crate) type Ended = Result<(), ControllerError>;

/// A controller that runs.
pub(crate) struct Running {
    stop: CancellationToken,
    ended: JoinHandle<Ended>,
}

impl Running {
    pub(crate) fn start<F, R>(controller: Controller, reconcile: F) -> Self
    where
        F: Fn(ObjectKey) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, String>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let ended = tokio::spawn(controller.run(stop.clone(), reconcile));
        Self { stop, ended }
    }

    /// Notes every key, and that is all.
    fn noting(controller: Controller, log: &Log) -> Self {
        let log = log.clone();
        Self::start(controller, move |key| {
            log.note(key.as_str());
            async { Ok(Action::AwaitChange) }
        })
    }

    pub(crate) async fn end(self) -> Ended {
        self.stop.cancel();
        self.ended.await.expect("it does not panic")
    }
}

/// With a limiter that counts in seconds.
pub(crate) fn slow(controller: Controller) -> Controller {
    let limiter = ItemExponential::new(Duration::from_secs(1), MINUTE);
    controller.with_queue(WorkQueue::builder().limiter(limiter))
}

/// An informer that runs, of objects that a closure makes.
fn owned(source: &MemorySource<Secret>) -> SharedInformer<Secret> {
    let informer = SharedInformer::builder(source.clone()).name("secrets").build().unwrap();
    tokio::spawn({
        let informer = informer.clone();
        async move { informer.run(CancellationToken::new()).await }
    });
    informer
}

fn secret(name: &str, owners: &[(&str, &str, &str, bool)]) -> Secret {
    let reference = |(api_version, kind, name, controller): &(&str, &str, &str, bool)| OwnerReference {
        api_version: (*api_version).to_owned(),
        kind: (*kind).to_owned(),
        name: (*name).to_owned(),
        controller: Some(*controller),
        ..OwnerReference::default()
    };
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("shop".to_owned()),
        owner_references: Some(owners.iter().map(reference).collect()),
        ..ObjectMeta::default()
    };
    Secret { metadata, ..Secret::default() }
}

#[tokio::test(start_paused = true)]
async fn c36_what_exists_what_changes_and_what_goes_is_reconciled_by_its_key() {
    let server = server(&["shop/a", "shop/b"]);
    let log = Log::default();
    let stage = Stage::start(&server, informer(&server));
    let controller = Running::noting(Controller::new("configs").of(&stage.informer), &log);
    settle().await;
    assert_eq!(log.take(), "shop/a shop/b");
    put(&server, "shop/a");
    settle().await;
    server.delete(&key("shop/b"));
    settle().await;
    assert_eq!(log.take(), "shop/a shop/b");
    controller.end().await.unwrap();
    put(&server, "shop/a");
    settle().await;
    assert_eq!(log.take(), "", "it hears nothing more");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_nothing_is_reconciled_before_all_caches_are_complete() {
    let (server, late) = (server(&["shop/a"]), server(&[]));
    let log = Log::default();
    let stage = Stage::start(&server, informer(&server));
    let late = informer(&late);
    let controller = Controller::new("configs").of(&stage.informer).watches(&late, |_| None);
    let lines = LogLines::default();
    let listening = lines.listen();
    let controller = Running::noting(controller, &log);
    seconds(40).await;
    assert_eq!(log.take(), "");
    let said = lines.lines(Level::WARN).join("\n");
    assert!(said.contains("controller waits for its caches: configs: not started"), "{said}");
    drop(listening);
    let late = Stage::start(&MemorySource::new(), late);
    settle().await;
    assert_eq!(log.take(), "shop/a");
    controller.end().await.unwrap();
    late.end().await;
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_a_change_of_what_is_owned_is_about_the_owner_that_controls_it() {
    let (server, secrets) = (server(&[]), MemorySource::new());
    let log = Log::default();
    let stage = Stage::start(&server, informer(&server));
    let owned = owned(&secrets);
    let controller = Controller::new("configs").of(&stage.informer).owns::<ConfigMap, _>(&owned);
    let controller = Running::noting(controller, &log);
    settle().await;
    let put = async |owners: &[(&str, &str, &str, bool)]| {
        secrets.put(secret("tls", owners)).unwrap();
        settle().await;
        log.take()
    };
    let of_one = [("v1", "ConfigMap", "one", true)];
    assert_eq!(put(&[("v1", "ConfigMap", "other", false), of_one[0]]).await, "shop/one");
    assert_eq!(
        put(&[("v1", "ConfigMap", "two", true)]).await,
        "shop/one shop/two",
        "the old one and the new"
    );
    assert_eq!(put(&[("example.com/v1", "ConfigMap", "one", true)]).await, "shop/two", "of another group");
    assert_eq!(put(&[("v1", "Pod", "one", true)]).await, "", "of another kind");
    assert_eq!(put(&[("v1", "ConfigMap", "a/b", true)]).await, "", "no name at all");
    assert_eq!(put(&of_one).await, "shop/one");
    secrets.delete(&key("shop/tls"));
    settle().await;
    assert_eq!(log.take(), "shop/one");
    controller.end().await.unwrap();
    stage.end().await;
}

#[test]
fn an_owner_without_a_namespace_has_a_key_without_one() {
    let meta = secret("tls", &[("v1", "Node", "node-1", true)]).metadata;
    let owner = informer::controller::owner_of::<Node>(&meta, &());
    assert_eq!(owner, Some(key("node-1")));
}

#[tokio::test(start_paused = true)]
async fn c36_any_mapping_chooses_what_an_object_or_an_event_is_about() {
    let server = server(&["shop/a"]);
    let calls = Arc::new(Mutex::new(Vec::new()));
    let stage = Stage::synced(&server, informer(&server)).await;
    // Items need not be keys of objects.
    let controller = Controller::new("names")
        .watches(&stage.informer, |config| {
            config.data.iter().flatten().map(|(key, _)| key.len()).collect::<Vec<_>>()
        })
        .watches_events(&stage.informer, |event| event.objects().1.is_none().then_some(0));
    let queue = controller.queue();
    let stop = CancellationToken::new();
    let noted = Arc::clone(&calls);
    let ended = tokio::spawn(controller.run(stop.clone(), move |item: usize| {
        noted.lock().unwrap().push(item);
        async { Ok::<_, String>(Action::AwaitChange) }
    }));
    settle().await;
    put_with(&server, "shop/a", &[("four", ""), ("sixsix", "")]);
    settle().await;
    server.delete(&key("shop/a"));
    settle().await;
    queue.add(99);
    settle().await;
    // Of the update, what the object was counts too.
    assert_eq!(*calls.lock().unwrap(), ["written".len(), 7, 4, 6, 4, 6, 0, 99]);
    stop.cancel();
    ended.await.unwrap().unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_what_changes_does_not_wait_behind_what_existed() {
    let server = server(&["shop/a", "shop/b", "shop/c"]);
    let log = Log::default();
    let stage = Stage::synced(&server, informer(&server)).await;
    let noted = log.clone();
    let controller = Running::start(Controller::new("configs").of(&stage.informer), move |key| {
        noted.note(key.as_str());
        async {
            seconds(10).await;
            Ok(Action::AwaitChange)
        }
    });
    seconds(1).await;
    put(&server, "shop/c");
    put(&server, "shop/new");
    seconds(60).await;
    assert_eq!(log.take(), "shop/a shop/c shop/new shop/b");
    controller.end().await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_a_failing_key_is_tried_again_later_and_later_until_it_succeeds() {
    let server = server(&["shop/a"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let failures = Log::default();
    let told = failures.clone();
    let controller = slow(Controller::new("configs")).of(&stage.informer).on_failure(move |key, failure| {
        told.note(format!(
            "{key}:{}×{}{}",
            failure.error,
            failure.times,
            if failure.panicked { "!" } else { "" }
        ));
    });
    let queue = controller.queue();
    let times = Arc::new(Mutex::new(Vec::new()));
    let (began, noted) = (Instant::now(), Arc::clone(&times));
    let controller = Running::start(controller, move |_| {
        let mut times = noted.lock().unwrap();
        times.push(began.elapsed().as_secs());
        let fails = times.len() < 4;
        async move { if fails { Err("no".to_owned()) } else { Ok(Action::AwaitChange) } }
    });
    seconds(100).await;
    assert_eq!(*times.lock().unwrap(), [0, 1, 3, 7]);
    assert_eq!(failures.take(), "shop/a:no×1 shop/a:no×2 shop/a:no×3");
    assert_eq!(queue.failures(&key("shop/a")), 0, "forgotten");
    controller.end().await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_a_panic_is_a_failure_of_that_key_and_of_nothing_else() {
    let server = server(&["shop/a", "shop/b", "shop/c"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let log = Log::default();
    let noted = log.clone();
    let lines = LogLines::default();
    let listening = lines.listen();
    let tries = AtomicUsize::new(0);
    let controller = Running::start(Controller::new("configs").of(&stage.informer), move |key| {
        let first = tries.fetch_add(1, Ordering::SeqCst) < 2;
        // Before it returns a future, and inside of that.
        assert!(!(first && key.name() == "a"), "for this test: a");
        let noted = noted.clone();
        async move {
            assert!(!(first && key.name() == "b"), "for this test: b");
            noted.note(key.as_str());
            Ok(Action::AwaitChange)
        }
    });
    seconds(10).await;
    assert_eq!(log.take(), "shop/c shop/a shop/b");
    let said = lines.lines(Level::ERROR).join("\n");
    assert!(said.contains("reconciling panicked, it is tried again: for this test: a"), "{said}");
    assert!(said.contains("reconciling panicked, it is tried again: for this test: b"), "{said}");
    drop(listening);
    controller.end().await.unwrap();
    stage.end().await;
}

/// Panics whenever it is asked how long a key has to wait.
struct Clumsy;

impl RateLimiter<ObjectKey> for Clumsy {
    fn next_delay(&self, _: &ObjectKey) -> Duration {
        panic!("for this test: the limiter")
    }
}

#[tokio::test(start_paused = true)]
async fn c36_what_is_told_of_failures_and_the_limiter_may_panic_and_the_controller_goes_on() {
    let server = server(&["shop/a", "shop/b"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    for limiter in [false, true] {
        let (log, lines) = (Log::default(), LogLines::default());
        let _listening = lines.listen();
        let noted = log.clone();
        let controller = slow(Controller::new("configs")).of(&stage.informer);
        let controller = match limiter {
            true => controller.with_queue(WorkQueue::builder().limiter(Clumsy)),
            false => controller.on_failure(|_, _| panic!("for this test: on_failure")),
        };
        let tries = AtomicUsize::new(0);
        let controller = Running::start(controller, move |key| {
            noted.note(key.name());
            let fails = key.name() == "a" && tries.fetch_add(1, Ordering::SeqCst) < 2;
            async move { if fails { Err("no".to_owned()) } else { Ok(Action::AwaitChange) } }
        });
        seconds(30).await;
        assert_eq!(log.take(), "a b a a", "it is tried again");
        put(&server, "shop/b");
        settle().await;
        assert_eq!(log.take(), "b", "the worker is there");
        let errors = lines.take(Level::ERROR);
        assert_eq!(errors.len(), 2, "{errors:?}");
        let cause = if limiter { "limiter" } else { "on_failure" };
        assert!(
            errors.iter().all(|line| line.contains(&format!("for this test: {cause}"))
                || line.contains(&format!("for this test: the {cause}"))),
            "{errors:?}"
        );
        controller.end().await.unwrap();
    }
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_a_key_is_looked_at_again_when_it_asked_for_it_and_a_zero_does_not_spin() {
    let server = server(&["shop/a", "shop/busy"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let (calm, busy) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&calm), Arc::clone(&busy));
    let controller = Running::start(Controller::new("configs").of(&stage.informer), move |key| {
        let (count, after) = if key.name() == "a" { (&counts.0, 10) } else { (&counts.1, 0) };
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok(Action::RequeueAfter(Duration::from_secs(after))) }
    });
    seconds(35).await;
    assert_eq!(calm.load(Ordering::SeqCst), 4);
    let busy = busy.load(Ordering::SeqCst);
    assert!((5..30).contains(&busy), "{busy} calls in 35 s");
    controller.end().await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_as_many_keys_at_once_as_there_are_workers_and_never_one_key_twice() {
    let keys: Vec<String> = (0..20).map(|number| format!("shop/{number:02}")).collect();
    let server = server(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    let stage = Stage::synced(&server, informer(&server)).await;
    let at_work = Arc::new(Mutex::new(HashSet::new()));
    let most = Arc::new(AtomicUsize::new(0));
    let shared = (Arc::clone(&at_work), Arc::clone(&most));
    let controller = Running::start(Controller::new("configs").of(&stage.informer).workers(5), move |key| {
        let (at_work, most) = shared.clone();
        async move {
            assert!(at_work.lock().unwrap().insert(key.clone()), "{key} is with two workers");
            most.fetch_max(at_work.lock().unwrap().len(), Ordering::SeqCst);
            seconds(1).await;
            at_work.lock().unwrap().remove(&key);
            Ok(Action::AwaitChange)
        }
    });
    for _ in 0..20 {
        for key in &keys[..3] {
            put(&server, key);
        }
        sleep(Duration::from_millis(300)).await;
    }
    assert_eq!(most.load(Ordering::SeqCst), 5);
    controller.end().await.unwrap();
    assert!(at_work.lock().unwrap().is_empty(), "those that ran have ended");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_after_the_stop_no_call_begins_and_those_that_run_may_end() {
    let server = server(&["shop/a", "shop/b"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let log = Log::default();
    let noted = log.clone();
    let controller = Running::start(Controller::new("configs").of(&stage.informer), move |key| {
        let noted = noted.clone();
        async move {
            noted.note(format!("begin:{key}"));
            seconds(20).await;
            noted.note(format!("end:{key}"));
            Ok(Action::AwaitChange)
        }
    });
    seconds(1).await;
    controller.end().await.unwrap();
    assert_eq!(log.take(), "begin:shop/a end:shop/a");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_calls_that_do_not_end_in_time_are_dropped_and_that_is_said() {
    let server = server(&["shop/a", "shop/b", "shop/c"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let controller = Controller::new("configs").of(&stage.informer).workers(2).grace(Duration::from_secs(7));
    let controller = Running::start(controller, move |_| {
        let held = Arc::clone(&held);
        async move {
            pending::<()>().await;
            drop(held);
            Ok(Action::AwaitChange)
        }
    });
    seconds(1).await;
    let stopped = Instant::now();
    let error = controller.end().await.unwrap_err();
    assert_eq!(stopped.elapsed(), Duration::from_secs(7));
    let text = "controller \"configs\": 2 calls had not ended 7s after the stop and were dropped";
    assert_eq!(error.to_string(), text);
    assert_eq!(Arc::strong_count(&alive), 1, "nothing of them is left");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_controller_that_runs_leaves_nothing_behind() {
    let server = server(&["shop/a"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let before = Handle::current().metrics().num_alive_tasks();
    let controller = Controller::new("configs").of(&stage.informer).workers(3);
    let queue = controller.queue();
    let running = Running::start(controller, |_| pending());
    seconds(1).await;
    running.ended.abort();
    settle().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), before);
    assert!(queue.is_shut_down());
    put(&server, "shop/b");
    settle().await;
    assert_eq!(queue.len(), 0);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_run_says_why() {
    let server = server(&["shop/a"]);
    let never = informer(&server);
    let run = async |controller: Controller| {
        Running::noting(controller, &Log::default()).ended.await.unwrap().unwrap_err().to_string()
    };
    let controller = || Controller::new("configs").of(&never);
    assert_eq!(
        run(controller().workers(0)).await,
        "controller \"configs\" has no workers; give it at least one"
    );
    let text = run(controller().sync_within(MINUTE)).await;
    assert!(
        text.starts_with("controller \"configs\" did not start, its caches were not complete after 60s: configs: not started"),
        "{text}"
    );
    let shut_down = controller();
    shut_down.queue().shut_down();
    assert_eq!(
        run(shut_down).await,
        "the queue of controller \"configs\" is shut down already; a controller needs a new one to run again"
    );
    let stage = Stage::synced(&server, informer(&server)).await;
    let gone = stage.informer.clone();
    stage.end().await;
    assert_eq!(
        run(Controller::new("configs").of(&gone)).await,
        "controller \"configs\": handler \"controller configs\" was not added: the informer has stopped and would never call it"
    );
}

#[tokio::test(start_paused = true)]
async fn durations_without_end_are_taken_as_such() {
    let server = server(&["shop/a"]);
    let log = Log::default();
    let stage = Stage::start(&server, informer(&server));
    let controller = Controller::new("configs").of(&stage.informer);
    let controller = controller.sync_within(Duration::MAX).grace(Duration::MAX);
    let noted = log.clone();
    let controller = Running::start(controller, move |key| {
        noted.note(key.as_str());
        async { Ok(Action::RequeueAfter(Duration::MAX)) }
    });
    seconds(10).await;
    assert_eq!(log.take(), "shop/a");
    controller.end().await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_it_waits_for_caches_is_an_end_like_any_other() {
    let never = informer(&server(&[]));
    let controller = Running::noting(Controller::new("configs").of(&never), &Log::default());
    seconds(1).await;
    controller.end().await.unwrap();
}
