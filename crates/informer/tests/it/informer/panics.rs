//! Code of a user that panics where no handler is: sources, and what measures.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use informer::{
    SharedInformer,
    metrics::{Measurement, Metrics},
    model::ResourceVersion,
    source::{ListOptions, ListStream, ListWatch, MemorySource, SourceError, WatchStream},
};
use k8s_openapi::api::core::v1::ConfigMap;

use super::stage::{Log, MINUTE, QUEUES, Stage, put, seconds, server, settle};

/// A source whose lists at any version are those of a replica that lags behind, and that panics when it is told to.
#[derive(Clone)]
struct Brittle {
    server: MemorySource<ConfigMap>,
    replica: MemorySource<ConfigMap>,
    /// How many more requests panic, and how many items.
    requests: Arc<AtomicUsize>,
    items: Arc<AtomicUsize>,
}

impl Brittle {
    /// Both have `a/x@2`; on the server it is at version 4.
    fn new() -> Self {
        let (server, replica) = (server(&["a/x"]), server(&["a/x"]));
        put(&server, "a/x");
        put(&server, "a/x");
        Self { server, replica, requests: Arc::default(), items: Arc::default() }
    }
}

/// Panics, if that is still to happen.
fn lose_it(times: &AtomicUsize) {
    let left = times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    assert!(left.is_err(), "the source panics as planned");
}

impl ListWatch<ConfigMap> for Brittle {
    fn description(&self) -> String {
        "brittle config maps".to_owned()
    }

    fn list(&self, options: ListOptions) -> BoxFuture<'static, Result<ListStream<ConfigMap>, SourceError>> {
        lose_it(&self.requests);
        let any = options.resource_version == ResourceVersion::ANY;
        if any { self.replica.list(options) } else { self.server.list(options) }
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'static, Result<WatchStream<ConfigMap>, SourceError>> {
        lose_it(&self.requests);
        let (opening, items) = (self.server.watch(options), Arc::clone(&self.items));
        async move { Ok(opening.await?.inspect(move |_| lose_it(&items)).boxed()) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn c01_after_a_panic_of_the_source_the_list_is_repeated_from_the_last_version() {
    for queue in QUEUES {
        let (source, log, told) = (Brittle::new(), Log::default(), Log::default());
        let noted = told.clone();
        let builder = SharedInformer::builder(source.clone()).queue(queue).streaming(false).seed(1);
        let builder = builder.watch_error_handler(move |problem, _| noted.note(problem.cause()));
        let informer = builder.build().unwrap();
        informer.add_handler(log.handler()).unwrap();
        let stage = Stage::synced(&source.server, informer).await;
        assert_eq!(log.take(), "*a/x@2 ~a/x@2>3 ~a/x@3>4");
        source.items.store(1, Ordering::SeqCst);
        source.requests.store(2, Ordering::SeqCst);
        put(&source.server, "a/x");
        settle().await;
        let health = stage.informer.health();
        assert!(health.to_string().contains("panicked: the source panics as planned"), "{health}");
        assert!(!health.is_healthy());
        seconds(60).await;
        assert_eq!(log.take(), "~a/x@4>5", "{queue:?}: it never goes back in time");
        assert_eq!(told.take(), "panic panic panic", "the watch-error handler was told");
        let health = stage.informer.health();
        assert!(health.is_healthy(), "{health}");
        stage.end().await;
    }
}

/// Panics when a watch has been opened, once.
struct Shaky(AtomicUsize);

impl Metrics for Shaky {
    fn record(&self, _informer: &str, measurement: Measurement<'_>) {
        if matches!(measurement, Measurement::WatchOpened) {
            lose_it(&self.0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c01_a_reflector_that_panicked_begins_anew_from_the_last_version() {
    let (source, log, told) = (Brittle::new(), Log::default(), Log::default());
    let (shaky, noted) = (Arc::new(Shaky(AtomicUsize::new(0))), told.clone());
    let builder = SharedInformer::builder(source.clone()).streaming(false).seed(1).metrics(shaky.clone());
    let builder = builder.watch_error_handler(move |problem, _| noted.note(problem.cause()));
    let stage = Stage::synced(&source.server, builder.build().unwrap()).await;
    stage.informer.add_handler(log.handler()).unwrap();
    settle().await;
    assert_eq!(log.take(), "*a/x@4");
    shaky.0.store(1, Ordering::SeqCst);
    source.server.break_watches();
    put(&source.server, "a/x");
    settle().await;
    let health = stage.informer.health();
    assert!(health.to_string().contains("panicked: the source panics as planned"), "{health}");
    seconds(10).await;
    assert_eq!(log.take(), "~a/x@4>5");
    assert_eq!(told.take(), "connection broken panic");
    stage.informer.wait_for_resource_version(&source.server.version(), MINUTE).await.unwrap();
    stage.end().await;
}
