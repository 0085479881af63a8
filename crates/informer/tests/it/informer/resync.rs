//! Handlers that want to be shown everything again from time to time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use informer::{Handler, SharedInformer, queue::Transform};
use k8s_openapi::api::core::v1::ConfigMap;

use super::stage::{Log, QUEUES, Stage, builder, force_list, put, seconds, server};

fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Adds a handler with this period, and counts what it is shown again.
fn counting(informer: &SharedInformer<ConfigMap>, period: Option<Duration>) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let mut handler = Handler::<ConfigMap>::new().on_update(move |old, new| {
        assert_eq!(old.resource_version(), new.resource_version());
        counted.fetch_add(1, Ordering::SeqCst);
    });
    if let Some(period) = period {
        handler = handler.resync(period);
    }
    informer.add_handler(handler).expect("it has not stopped");
    count
}

#[tokio::test(start_paused = true)]
async fn c26_each_handler_gets_its_own_resyncs_and_no_request_is_made_for_them() {
    for queue in QUEUES {
        let server = server(&["a/x"]);
        let transforms = Arc::new(AtomicUsize::new(0));
        let transform = {
            let transforms = Arc::clone(&transforms);
            Transform::new(move |_: &mut ConfigMap| {
                transforms.fetch_add(1, Ordering::SeqCst);
                Ok::<(), std::convert::Infallible>(())
            })
        };
        let informer = builder(&server).queue(queue).resync(secs(1)).transform(transform).build().unwrap();
        let periods = [Some(secs(0)), Some(secs(2)), Some(secs(3)), None, Some(Duration::from_millis(1))];
        let counts = periods.map(|period| counting(&informer, period));
        let stage = Stage::synced(&server, informer).await;
        let requests = server.requests().len();
        seconds(12).await;
        assert_eq!(counts.map(|count| count.load(Ordering::SeqCst)), [0, 6, 4, 12, 12], "{queue:?}");
        assert_eq!(server.requests().len(), requests, "{queue:?}");
        assert_eq!(transforms.load(Ordering::SeqCst), 1, "a resync does not repeat the transform");
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c26_a_shorter_period_lowers_the_check_period_before_the_start_and_is_raised_to_it_after() {
    let server = server(&["a/x"]);
    let informer = builder(&server).resync(secs(12 * 60 * 60)).build().unwrap();
    let early = [60, 55, 5].map(|period| counting(&informer, Some(secs(period))));
    let default = counting(&informer, None);
    let stage = Stage::synced(&server, informer).await;
    let late = [1, 7].map(|period| counting(&stage.informer, Some(secs(period))));
    seconds(120).await;
    assert_eq!(early.map(|count| count.load(Ordering::SeqCst)), [2, 2, 24]);
    assert_eq!(default.load(Ordering::SeqCst), 0);
    let late = late.map(|count| count.load(Ordering::SeqCst));
    assert!((23..=24).contains(&late[0]), "raised to the check period of 5 s: {late:?}");
    assert!((11..=12).contains(&late[1]), "due at the first look after its period: {late:?}");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c25_a_list_that_repeats_an_unchanged_object_tells_nobody_of_it_who_is_not_due() {
    for queue in QUEUES {
        for streaming in [true, false] {
            let server = server(&["a/x", "a/y"]);
            let builder = builder(&server).queue(queue).streaming(streaming);
            let stage = Stage::synced(&server, builder.build().unwrap()).await;
            let log = Log::default();
            stage.informer.add_handler(log.handler()).unwrap();
            force_list(&server, || put(&server, "a/y"));
            seconds(2).await;
            assert_eq!(log.take(), "*a/x@2 *a/y@3 ~a/y@3>4 +zz/forced@5");
            stage.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c25_a_list_between_two_resyncs_shows_unchanged_objects_to_nobody() {
    for queue in QUEUES {
        let server = server(&["a/x", "a/y"]);
        let stage = Stage::synced(&server, builder(&server).queue(queue).build().unwrap()).await;
        let log = Log::default();
        stage.informer.add_handler(log.handler().resync(secs(60))).unwrap();
        seconds(61).await;
        assert_eq!(log.take(), "*a/x@2 *a/y@3 .a/x@2 .a/y@3", "{queue:?}");
        force_list(&server, || put(&server, "a/y"));
        seconds(20).await;
        assert_eq!(log.take(), "~a/y@3>4 +zz/forced@5", "{queue:?}");
        stage.end().await;
    }
}
