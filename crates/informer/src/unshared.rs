//! Informers that are not shared: one list and watch, one function or handler, called in place.
//!
//! [`Controller`] hands the raw deltas to a function. [`Informer`] is a controller that keeps a store and
//! tells one handler. Most programs want a [`SharedInformer`](crate::SharedInformer) instead: these are for
//! those who want no task beside the one that runs them, and a panic of theirs to come out of `run`.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    Event, EventHandler, Object,
    health::{Health, SyncError},
    monitor::Monitor,
    pipelines::{PipelineConfig, Pipelines},
    queue::{Delta, FirstList, QueueKind, Transform},
    reflector::Settings,
    shared::GRACE,
    source::ListWatch,
    store::{self, IndexError, IndexHandle, Store, StoreWriter},
    until,
};

/// Lists and watches a source and hands batches of [`Delta`]s to a function.
///
/// The function answers with the deltas that it could not process: they are queued again.
///
/// ```
/// use informer::{unshared::Controller, queue::Delta, source::MemorySource, store};
/// use k8s_openapi::api::core::v1::Node;
/// use tokio_util::sync::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (_writer, known) = store::new::<Node>();
/// let stop = CancellationToken::new();
/// let ending = stop.clone();
/// let controller = Controller::new(MemorySource::<Node>::new(), known, move |deltas: Vec<Delta<Node>>| {
///     println!("{} deltas", deltas.len());
///     ending.cancel();
///     async { Vec::new() }
/// });
/// controller.run(stop).await;
/// # }
/// ```
pub struct Controller<K, P> {
    config: PipelineConfig<K>,
    known: Store<K>,
    process: P,
    resync: Duration,
    monitor: Arc<Monitor>,
}

/// Tells how far a controller has come, while it runs. It is cheap to clone.
#[derive(Clone)]
pub struct Progress(Arc<Monitor>);

impl Progress {
    /// Whether the first list has been processed.
    pub fn has_synced(&self) -> bool {
        self.0.progress().synced
    }

    /// Waits until the first list has been processed; if that takes too long, the error says why.
    pub async fn wait_until_synced(&self, within: Duration) -> Result<(), SyncError> {
        self.0.wait_until_synced(within, || 0).await
    }

    /// What the controller is doing, since when, and what went wrong last.
    pub fn health(&self) -> Health {
        self.0.health(0)
    }
}

impl<K, P, F> Controller<K, P>
where
    K: Send + Sync + 'static,
    P: FnMut(Vec<Delta<K>>) -> F,
    F: Future<Output = Vec<Delta<K>>>,
{
    /// A controller of a source. `known` is the store that the function maintains, if it does: a
    /// [`QueueKind::PerKey`] queue finds there what a list no longer has.
    pub fn new(source: impl ListWatch<K>, known: Store<K>, process: P) -> Self {
        let source: Arc<dyn ListWatch<K>> = Arc::new(source);
        let description = source.description();
        let monitor = Arc::new(Monitor::new(description.clone(), vec![description]));
        let config = PipelineConfig {
            sources: vec![source],
            settings: Settings::default(),
            seed: None,
            queue: QueueKind::default(),
            transform: None,
        };
        Self { config, known, process, resync: Duration::ZERO, monitor }
    }

    /// In which order deltas come.
    #[must_use]
    pub fn queue(mut self, kind: QueueKind) -> Self {
        self.config.queue = kind;
        self
    }

    /// How often everything known is to be processed again. Default: never.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = period;
        self
    }

    /// Changes every object once before it is processed.
    #[must_use]
    pub fn transform(mut self, transform: Transform<K>) -> Self {
        self.config.transform = Some(transform);
        self
    }

    /// How to list and watch.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.config.settings = settings;
        self
    }

    /// Tells how far it has come, while it runs.
    pub fn progress(&self) -> Progress {
        Progress(Arc::clone(&self.monitor))
    }

    /// Runs until it is told to stop. A panic of the function comes out of here.
    pub async fn run(mut self, stop: CancellationToken) {
        let _ending = Ending(Arc::clone(&self.monitor));
        // It was not started before: running takes it.
        let _ = self.monitor.start();
        let monitor = Arc::clone(&self.monitor);
        let mut pipelines = Pipelines::start(self.config, self.known.clone(), monitor, stop.child_token());
        let next = |period: Duration| Instant::now().checked_add(period).filter(|_| !period.is_zero());
        let mut next_resync = next(self.resync);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = until(next_resync) => {
                    pipelines.resync();
                    next_resync = next(self.resync);
                }
                batch = pipelines.next() => {
                    let Some((_, mut batch)) = batch else { break };
                    let again = (self.process)(batch.take()).await;
                    batch.retry(again);
                    drop(batch);
                    if !self.monitor.progress().synced && pipelines.has_synced() {
                        self.monitor.synced(self.known.len());
                    }
                }
            }
        }
        let stuck = pipelines.stop(Instant::now().checked_add(GRACE)).await;
        for who in stuck {
            tracing::error!(informer = self.monitor.name(), who, "ended without waiting any longer");
        }
    }
}

/// However a controller ends, nobody waits for it in vain.
struct Ending(Arc<Monitor>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Lists and watches a source, keeps a store, and tells one handler in place.
///
/// The cache changes before the handler hears of it. While the handler works nothing else is done, and its
/// panic comes out of [`run`](Self::run).
///
/// ```
/// use informer::{Handler, unshared::Informer, source::MemorySource};
/// use k8s_openapi::api::core::v1::Node;
/// use tokio_util::sync::CancellationToken;
/// # use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (source, stop) = (MemorySource::<Node>::new(), CancellationToken::new());
/// # source.put(Node { metadata: ObjectMeta { name: Some("a".into()), ..Default::default() }, ..Default::default() }).unwrap();
/// let ending = stop.clone();
/// let informer = Informer::new(source, Handler::new().on_add(move |_, _| ending.cancel()));
/// let store = informer.store();
/// informer.run(stop).await;
/// assert_eq!(store.len(), 1);
/// # }
/// ```
pub struct Informer<K, H> {
    config: PipelineConfig<K>,
    writer: StoreWriter<K>,
    handler: H,
    resync: Duration,
    monitor: Arc<Monitor>,
}

impl<K, H> Informer<K, H>
where
    K: Send + Sync + 'static,
    H: EventHandler<K>,
{
    /// An informer of a source with its one handler.
    pub fn new(source: impl ListWatch<K>, handler: H) -> Self {
        let (writer, known) = store::new();
        let Controller { config, resync, monitor, .. } =
            Controller::new(source, known, |_: Vec<Delta<K>>| async { Vec::new() });
        let resync = handler.resync().unwrap_or(resync);
        Self { config, writer, handler, resync, monitor }
    }

    /// In which order changes reach the cache.
    #[must_use]
    pub fn queue(mut self, kind: QueueKind) -> Self {
        self.config.queue = kind;
        self
    }

    /// Changes every object once before it is kept.
    #[must_use]
    pub fn transform(mut self, transform: Transform<K>) -> Self {
        self.config.transform = Some(transform);
        self
    }

    /// How to list and watch.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.config.settings = settings;
        self
    }

    /// Adds an index; see [`Store::add_index`].
    pub fn add_index<F, I>(&self, name: &str, function: F) -> Result<IndexHandle<K>, IndexError>
    where
        F: Fn(&Object<K>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item: AsRef<str>>,
    {
        self.writer.store().add_index(name, function)
    }

    /// The cache.
    pub fn store(&self) -> Store<K> {
        self.writer.store()
    }

    /// Tells how far it has come, while it runs.
    pub fn progress(&self) -> Progress {
        Progress(Arc::clone(&self.monitor))
    }

    /// Runs until it is told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let Self { config, writer, handler, resync, monitor } = self;
        let known = writer.store();
        // The function is called again only after its future has ended, so the lock is always free.
        let work = Arc::new(tokio::sync::Mutex::new((writer, handler, FirstList::default())));
        let process = move |deltas: Vec<Delta<K>>| {
            let work = Arc::clone(&work);
            async move {
                let (writer, handler, first_list) = &mut *work.lock().await;
                let mut events = Vec::with_capacity(deltas.len());
                writer.write(|batch| {
                    first_list.apply(deltas, batch, |event, initial| events.push((event, initial)));
                });
                for (event, initial) in events {
                    match &event {
                        Event::Added(object) => handler.on_add(object, initial).await,
                        Event::Updated { old, new } => handler.on_update(old, new).await,
                        Event::Deleted(gone) => handler.on_delete(gone).await,
                    }
                }
                Vec::new()
            }
        };
        Controller { config, known, process, resync, monitor }.run(stop).await;
    }
}
