//! Code of a user that panics where no handler is: sources, and what measures.

use std::sync::{
    Arc,
    atomic::{AtomicIsize, AtomicUsize, Ordering},
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use informer::{
    Handler, Namespaces, SharedInformer,
    health::Life,
    metrics::{Levels, Measurement, Metrics, Probe},
    model::ResourceVersion,
    shared::RunError,
    source::{ListOptions, ListStream, ListWatch, MemorySource, SourceError, WatchStream},
};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio_util::sync::CancellationToken;
use tracing::Level;

use super::{
    log_lines::LogLines,
    stage::{Log, MINUTE, QUEUES, Stage, builder, put, seconds, server, settle},
    support::key,
};

/// A source whose lists at any version are those of a replica that lags behind, and that panics when it is told to.
#[derive(Clone)]
struct Brittle {
    server: MemorySource<ConfigMap>,
    replica: MemorySource<ConfigMap>,
    /// How many more requests panic, and how many items.
    requests: Arc<AtomicUsize>,
    items: Arc<AtomicUsize>,
    /// Which of the next questions for its namespace panics; none if it is zero or less.
    namespaces: Arc<AtomicIsize>,
}

impl Brittle {
    /// Both have `a/x@2`; on the server it is at version 4.
    fn new() -> Self {
        let (server, replica) = (server(&["a/x"]), server(&["a/x"]));
        put(&server, "a/x");
        put(&server, "a/x");
        let (requests, items, namespaces) = Default::default();
        Self { server, replica, requests, items, namespaces }
    }
}

/// Panics, if that is still to happen.
fn lose_it(times: &AtomicUsize) {
    let left = times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    assert!(left.is_err(), "the source panics as planned");
}

impl ListWatch<ConfigMap> for Brittle {
    fn namespace(&self) -> Option<&str> {
        assert!(self.namespaces.fetch_sub(1, Ordering::SeqCst) != 1, "the source panics as planned");
        None
    }

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

#[tokio::test(start_paused = true)]
async fn c01_a_reflector_that_panicked_begins_anew_from_the_last_version() {
    let (source, log, told) = (Brittle::new(), Log::default(), Log::default());
    let noted = told.clone();
    let builder = SharedInformer::builder(source.clone()).streaming(false).seed(1);
    let builder = builder.watch_error_handler(move |problem, _| noted.note(problem.cause()));
    let stage = Stage::synced(&source.server, builder.build().unwrap()).await;
    stage.informer.add_handler(log.handler()).unwrap();
    settle().await;
    assert_eq!(log.take(), "*a/x@4");
    source.namespaces.store(1, Ordering::SeqCst);
    put(&source.server, "a/x");
    settle().await;
    let health = stage.informer.health();
    assert!(health.to_string().contains("panicked: the source panics as planned"), "{health}");
    seconds(10).await;
    assert_eq!(log.take(), "~a/x@4>5");
    assert_eq!(told.take(), "panic");
    stage.informer.wait_for_resource_version(&source.server.version(), MINUTE).await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c12_an_informer_whose_own_task_panicked_says_so_to_everybody() {
    for own in [true, false] {
        let (server, lines) = (server(&["a/x"]), LogLines::default());
        let (namespaces, sources) = (Namespaces::of(["a"]).unwrap(), server.clone());
        let _listening = lines.listen();
        // The task that writes is also the one that asks for the source of a namespace.
        let source = move |name: &str| {
            assert!(name == "a", "the source panics as planned");
            sources.scoped(name)
        };
        let informer =
            SharedInformer::following(&namespaces, source).name("configs").seed(1).build().unwrap();
        let running = own.then(|| {
            let informer = informer.clone();
            tokio::spawn(async move { informer.run(CancellationToken::new()).await })
        });
        if !own {
            informer.start().unwrap();
        }
        informer.wait_until_synced(MINUTE).await.unwrap();
        settle().await;
        namespaces.add("b").unwrap();
        settle().await;
        let panicked = RunError::Panicked { message: "the source panics as planned".to_owned() };
        assert_eq!(informer.stop().await, Err(panicked.clone()));
        if let Some(running) = running {
            assert_eq!(running.await.expect("the panic stays inside"), Err(panicked));
        }
        let health = informer.health();
        assert_eq!((health.life, health.is_healthy()), (Life::Failed, false));
        assert_eq!(health.to_string(), "configs: stopped by a panic, 1 objects");
        assert!(informer.is_stopped() && informer.add_handler(Handler::new()).is_err());
        assert_eq!((server.open_watches(), informer.start()), (0, Err(RunError::Stopped)));
        let errors = lines.take(Level::ERROR);
        assert!(errors.len() == 1 && errors[0].contains("its task panicked"), "{errors:?}");
    }
}

/// Panics at every measurement.
struct Clumsy;

impl Metrics for Clumsy {
    fn record(&self, _: &str, _: Measurement<'_>) {
        panic!("a measurement, as planned");
    }

    fn informer(&self, _: &str, _: Probe<Levels>) {
        panic!("a probe, as planned");
    }
}

#[tokio::test(start_paused = true)]
async fn c28_measurements_that_panic_cost_nothing_but_themselves() {
    for queue in QUEUES {
        let (server, log, lines) = (server(&["a/x"]), Log::default(), LogLines::default());
        let _listening = lines.listen();
        let informer = builder(&server).queue(queue).metrics(Arc::new(Clumsy)).build().unwrap();
        informer.add_handler(log.handler()).unwrap();
        informer.add_handler(Handler::<ConfigMap>::new().on_add(|_, _| panic!("as planned"))).unwrap();
        let stage = Stage::synced(&server, informer).await;
        put(&server, "a/y");
        server.break_watches();
        seconds(60).await;
        server.delete(&key("a/x"));
        settle().await;
        assert_eq!(log.take(), "*a/x@2 +a/y@3 -a/x@4", "{queue:?}");
        assert!(stage.informer.health().is_healthy(), "{}", stage.informer.health());
        let errors = lines.take(Level::ERROR);
        let told = errors.iter().filter(|line| line.contains("a measurement panicked")).count();
        assert!(told > 5 && errors.iter().any(|line| line.contains("a probe, as planned")), "{errors:#?}");
        stage.end().await;
    }
}
