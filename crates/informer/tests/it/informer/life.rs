//! How an informer starts and stops, and what is left of it.

use std::{sync::Arc, time::Duration};

use informer::{
    Handler, SharedInformer, SyncError,
    model::Status,
    shared::{AddHandlerError, HandlerSyncError, RunError},
    source::{MemorySource, SourceError},
    store::WaitError,
};
use k8s_openapi::api::core::v1::ConfigMap;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    stage::{Log, MINUTE, QUEUES, Stage, Stuck, builder, forbidden, informer, put, seconds, server, settle},
    support::key,
    validator::Validator,
};

fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn an_informer_runs_once() {
    let server = server(&["a/x"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let again = stage.informer.clone();
    assert_eq!(again.run(CancellationToken::new()).await, Err(RunError::Running));
    stage.end().await;
    assert_eq!(again.run(CancellationToken::new()).await, Err(RunError::Stopped));
    assert!(again.is_stopped());
    assert_eq!(again.store().len(), 1, "the cache stays as it was");
    assert!(again.health().to_string().contains("stopped"), "{}", again.health());
}

#[tokio::test(start_paused = true)]
async fn a_stopped_informer_takes_no_handler_and_says_so() {
    let server = server(&[]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let informer = stage.informer.clone();
    stage.end().await;
    let error = informer.add_handler(Handler::new().name("late")).unwrap_err();
    assert_eq!(error, AddHandlerError::Stopped { handler: "late".to_owned() });
    assert!(error.to_string().contains("the informer has stopped"), "{error}");
    assert!(informer.subscribe().is_err());
}

#[tokio::test(start_paused = true)]
async fn stopped_before_it_starts_it_neither_lists_nor_watches() {
    let (server, log) = (server(&["a/x"]), Log::default());
    let informer = informer(&server);
    let registration = informer.add_handler(log.handler()).unwrap();
    let stop = CancellationToken::new();
    stop.cancel();
    informer.run(stop).await.unwrap();
    assert_eq!(server.requests(), []);
    assert!(informer.is_stopped() && !informer.has_synced() && log.take().is_empty());
    let error = registration.wait_until_synced(MINUTE).await.unwrap_err();
    assert!(matches!(error, HandlerSyncError::Stopped { .. }), "{error}");
    assert_eq!(alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn f29_it_stops_at_once_whatever_it_is_doing() {
    type Arrange = fn(&MemorySource<ConfigMap>) -> SharedInformer<ConfigMap>;
    let states: [(&str, Arrange); 7] = [
        ("listing", |server| {
            SharedInformer::builder(Stuck { server: server.clone(), lists: true, watches: false })
                .streaming(false)
                .build()
                .unwrap()
        }),
        ("streaming", |server| {
            server.stall_watches(true);
            informer(server)
        }),
        ("streaming the list", |server| SharedInformer::builder(stuck_watches(server)).build().unwrap()),
        ("watching", |server| {
            SharedInformer::builder(stuck_watches(server)).streaming(false).build().unwrap()
        }),
        ("watching", informer),
        ("watching", |server| builder(server).streaming(false).build().unwrap()),
        ("waiting", |server| {
            server.fail_next_lists(1_000, forbidden());
            server.fail_next_watches(1_000, forbidden());
            informer(server)
        }),
    ];
    for (doing, arrange) in states {
        let server = server(&["a/x"]);
        let stage = Stage::start(&server, arrange(&server));
        settle().await;
        let health = stage.informer.health().to_string();
        assert!(health.contains(doing), "{health}");
        let began = Instant::now();
        stage.stop.cancel();
        stage.running.await.unwrap().unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO, "{doing}");
        assert_eq!((alive_tasks(), server.open_watches()), (0, 0), "{doing}");
    }
}

fn stuck_watches(server: &MemorySource<ConfigMap>) -> Stuck {
    Stuck { server: server.clone(), lists: false, watches: true }
}

#[tokio::test(start_paused = true)]
async fn f29_who_waits_for_a_stopped_informer_is_told() {
    let server = server(&[]);
    server.stall_watches(true);
    let stage = Stage::start(&server, informer(&server));
    let registration = stage.informer.add_handler(Handler::new()).unwrap();
    let informer = stage.informer.clone();
    let waiting = tokio::spawn(async move {
        let synced = informer.wait_until_synced(MINUTE).await;
        (synced, informer.wait_for_resource_version(&"9".into(), MINUTE).await)
    });
    settle().await;
    stage.end().await;
    let (synced, reached) = waiting.await.unwrap();
    assert!(matches!(synced, Err(SyncError::Stopped { .. })), "{synced:?}");
    assert!(matches!(reached, Err(WaitError::Stopped { .. })), "{reached:?}");
    assert!(matches!(registration.wait_until_synced(MINUTE).await, Err(HandlerSyncError::Stopped { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_leaves_nothing_behind() {
    for queue in QUEUES {
        let server = server(&["a/x"]);
        let held = Arc::new(());
        let stage = Stage::synced(&server, builder(&server).queue(queue).build().unwrap()).await;
        let holding = Arc::clone(&held);
        let handler = Handler::<ConfigMap>::new().on_add(move |_, _| drop(Arc::clone(&holding)));
        let registration = stage.informer.add_handler(handler).unwrap();
        registration.wait_until_synced(MINUTE).await.unwrap();
        assert_eq!(Arc::strong_count(&held), 2);
        stage.running.abort();
        settle().await;
        assert_eq!((alive_tasks(), server.open_watches()), (0, 0));
        assert_eq!(Arc::strong_count(&held), 1, "the handler is dropped");
        assert!(stage.informer.is_stopped());
        assert!(stage.informer.add_handler(Handler::new()).is_err());
        registration.remove().await.unwrap();
        assert_eq!(stage.informer.run(CancellationToken::new()).await, Err(RunError::Stopped));
    }
}

#[tokio::test(start_paused = true)]
async fn no_life_leaves_a_task_or_a_watch() {
    for failing in [0, 2] {
        let server = server(&["a/x"]);
        server.fail_next_lists(failing, SourceError::Broken("as planned".to_owned()));
        server.fail_next_watches(failing, Status::service_unavailable("as planned").into());
        let stage = Stage::synced(&server, informer(&server)).await;
        let registration = stage.informer.add_handler(Handler::new()).unwrap();
        stage.informer.add_handler(Handler::new()).unwrap();
        let subscription = stage.informer.subscribe().unwrap();
        settle().await;
        registration.remove().await.unwrap();
        server.break_watches();
        seconds(400).await;
        stage.end().await;
        assert_eq!((alive_tasks(), server.open_watches()), (0, 0));
        drop(subscription);
    }
}

#[tokio::test(start_paused = true)]
async fn three_writers_and_three_handlers_end_with_the_same_view() {
    for queue in QUEUES {
        let server = server(&[]);
        let informer = builder(&server).queue(queue).build().unwrap();
        let validators = ["one", "two", "three"].map(|name| Validator::add(&informer, name));
        let stage = Stage::synced(&server, informer).await;
        let writers: Vec<_> = (0..3)
            .map(|seed| {
                let server = server.clone();
                tokio::spawn(async move {
                    let mut rng = Pcg32::seed_from_u64(seed);
                    for _ in 0..100 {
                        let object = format!("a/{}", rng.random_range(0..5));
                        match rng.random_range(0..3) {
                            0 => drop(server.delete(&key(&object))),
                            _ => put(&server, &object),
                        }
                        sleep(Duration::from_millis(rng.random_range(0..20))).await;
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        settle().await;
        let cache = stage.informer.store();
        assert_eq!(
            super::validator::versions(&server.objects()),
            super::validator::versions(cache.snapshot().iter())
        );
        for validator in &validators {
            validator.check_last_word(&cache);
            assert!(validator.events() > 100);
        }
        stage.end().await;
    }
}
