//! Starting and stopping without a task of one's own, and what does not end when it is told to.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use informer::{
    EventHandler, Handler, Object,
    queue::Transform,
    shared::{AddHandlerError, BuildError, RunError},
    source::Request,
};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    stage::{Log, MINUTE, Stage, builder, informer, put, server, settle},
    support::Config,
};

/// A handler whose first callback never returns.
pub(crate) struct Endless;

impl EventHandler<ConfigMap> for Endless {
    async fn on_add(&mut self, _: &Object<ConfigMap>, _: bool) {
        pending::<()>().await;
    }

    fn name(&self) -> Option<&str> {
        Some("endless")
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_starts_and_stops_without_a_task_of_its_users() {
    let (server, log) = (server(&["a/x"]), Log::default());
    let informer = informer(&server);
    informer.add_handler(log.handler()).unwrap();
    informer.start().unwrap();
    assert_eq!(informer.start(), Err(RunError::Running));
    assert_eq!(informer.run(CancellationToken::new()).await, Err(RunError::Running));
    informer.wait_until_synced(MINUTE).await.unwrap();
    put(&server, "a/y");
    settle().await;
    assert_eq!(log.take(), "*a/x@2 +a/y@3");
    informer.stop().await.unwrap();
    informer.stop().await.unwrap();
    assert_eq!(informer.start(), Err(RunError::Stopped));
    assert!(informer.is_stopped() && server.open_watches() == 0);
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_was_stopped_before_it_ran_never_runs() {
    let server = server(&["a/x"]);
    let informer = informer(&server);
    informer.stop().await.unwrap();
    assert_eq!(informer.start(), Err(RunError::Stopped));
    let late = informer.add_handler(Handler::new()).unwrap_err();
    assert!(matches!(late, AddHandlerError::Stopped { .. }) && server.requests().is_empty());
    let synced = informer.wait_until_synced(MINUTE).await.unwrap_err();
    assert!(synced.to_string().contains("stopped"), "{synced}");
}

#[tokio::test(start_paused = true)]
async fn whoever_runs_it_stop_ends_it_and_a_handler_may_do_so() {
    let server = server(&["a/x"]);
    let stage = Stage::start(&server, informer(&server));
    let ending = stage.informer.clone();
    struct Ends(informer::SharedInformer<ConfigMap>);
    impl EventHandler<ConfigMap> for Ends {
        async fn on_add(&mut self, _: &Config, _: bool) {
            self.0.stop().await.expect("from inside it does not wait for itself");
        }
    }
    stage.informer.add_handler(Ends(ending)).unwrap();
    assert_eq!(stage.running.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn c30_a_handler_that_never_returns_is_waited_for_no_longer_than_the_grace_and_named() {
    for grace in [None, Some(Duration::from_secs(5)), Some(Duration::ZERO)] {
        let server = server(&["a/x"]);
        let builder = builder(&server);
        let informer =
            grace.into_iter().fold(builder, |builder, grace| builder.grace(grace)).build().unwrap();
        let log = Log::default();
        informer.add_handler(log.handler()).unwrap();
        let removed = informer.add_handler(Endless).unwrap();
        let stage = Stage::synced(&server, informer).await;
        // Who removes it gives up waiting; its callback goes on.
        tokio::time::timeout(Duration::from_secs(1), removed.remove()).await.unwrap_err();
        let began = Instant::now();
        let error = stage.informer.stop().await.unwrap_err();
        let grace = grace.unwrap_or(Duration::from_secs(30)).max(Duration::from_millis(100));
        assert_eq!(error, RunError::Stuck { who: vec!["handler \"endless\"".to_owned()], grace });
        assert_eq!(began.elapsed(), grace);
        assert_eq!(stage.running.await.unwrap(), Err(error), "whoever runs it hears the same");
        assert_eq!(log.take(), "*a/x@2");
        assert!(stage.informer.is_stopped());
        // What is left of it was dropped with the run.
        removed.remove().await.unwrap();
    }
}

/// Blocks a thread until the test is over.
fn block(entered: &Sender<()>, gate: &Receiver<()>) {
    let _ = entered.send(());
    let _ = gate.recv();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn c30_a_function_that_blocks_its_thread_does_not_keep_run_from_returning() {
    let grace = Duration::from_millis(10);
    for (what, named) in [("index", "index functions"), ("transform", "transforms"), ("handler", "\"slow\"")]
    {
        let server = server(&["a/x"]);
        let (entered, inside) = mpsc::channel();
        let (release, gate) = mpsc::channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let wait = move || block(&entered, &gate.lock().unwrap());
        let builder = builder(&server).grace(grace);
        let informer = match what {
            "index" => builder.index("slow", move |_| {
                wait();
                None::<String>
            }),
            "transform" => builder.transform(Transform::new(move |_| wait())),
            _ => {
                let informer = builder.build().unwrap();
                let handler = Handler::new().name("slow").blocking().on_add(move |_, _| wait());
                informer.add_handler(handler).unwrap();
                informer.start().unwrap();
                inside.recv().unwrap();
                let error = informer.stop().await.unwrap_err();
                assert!(error.to_string().contains(named), "{error}");
                continue;
            }
        };
        let informer = informer.build().unwrap();
        informer.start().unwrap();
        inside.recv().unwrap();
        let error = informer.stop().await.unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
        drop(release);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn c30_a_reflector_that_does_not_end_leaves_handlers_a_grace_of_their_own() {
    let server = server(&["a/x"]);
    let (entered, inside) = mpsc::channel();
    let (release, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let transform = Transform::new(move |object: &mut ConfigMap| {
        if object.metadata.name.as_deref() == Some("y") {
            block(&entered, &gate.lock().unwrap());
        }
    });
    let informer = builder(&server).grace(Duration::from_secs(2)).transform(transform).build().unwrap();
    let handler = informer.add_handler(Handler::new().name("idle")).unwrap();
    informer.start().unwrap();
    handler.wait_until_synced(MINUTE).await.unwrap();
    put(&server, "a/y");
    inside.recv().unwrap();
    let Err(RunError::Stuck { who, .. }) = informer.stop().await else {
        panic!("the reflector does not end")
    };
    assert!(who.len() == 1 && who[0].contains("transforms"), "{who:?}");
    drop(release);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c29_a_handler_of_closures_that_is_not_merged_hears_every_event() {
    for unmerged in [true, false] {
        let server = server(&["a/x"]);
        let (entered, inside) = mpsc::channel();
        let (release, gate) = mpsc::channel::<()>();
        let updates = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&updates);
        let handler = Handler::<ConfigMap>::new()
            .blocking()
            .on_add(move |_, _| block(&entered, &gate))
            .on_update(move |_, _| {
                counting.fetch_add(1, Ordering::Relaxed);
            });
        let informer = informer(&server);
        let handler = if unmerged { handler.unmerged() } else { handler };
        let registration = informer.add_handler(handler).unwrap();
        informer.start().unwrap();
        inside.recv().unwrap();
        for _ in 0..3_000 {
            put(&server, "a/x");
        }
        informer.wait_for_resource_version(&server.version(), MINUTE).await.unwrap();
        drop(release);
        let heard = || updates.load(Ordering::Relaxed);
        // The last batch is in the cache a moment before it is told.
        let all = async {
            while registration.pending() > 0 || (unmerged && heard() < 3_000) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(MINUTE, all).await.unwrap_or_else(|_| panic!("{} updates", heard()));
        let heard = heard();
        assert_eq!(heard == 3_000, unmerged, "{heard} updates");
        informer.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn settings_change_what_they_name_and_nothing_that_was_chosen_before() {
    let server = server(&["a/x", "a/y"]);
    let builder = builder(&server).streaming(false).page_size(1);
    let informer = builder.settings(|settings| settings.probe_period = None).build().unwrap();
    let stage = Stage::synced(&server, informer).await;
    let requests = server.requests();
    assert!(
        matches!(&requests[..], [Request::List(first), Request::Watch(_)] if first.limit == Some(1)),
        "{requests:?}"
    );
    stage.end().await;
    let zero = super::stage::builder(&server).settings(|settings| settings.page_size = Some(0)).build();
    assert_eq!(zero.unwrap_err(), BuildError::PageSize);
}
