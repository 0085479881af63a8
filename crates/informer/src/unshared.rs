//! Informers that are not shared: one list and watch, one function or handler, called in place.
//!
//! [`DeltaProcessor`] hands the raw deltas to a function. [`Informer`] keeps a store and tells one handler. Most programs want a [`SharedInformer`](crate::SharedInformer) instead: these are for
//! programs that want no other task than the one that calls `run`, and panics of handlers to come out of it.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    Event, EventHandler, Object,
    coverage::Coverage,
    health::{Health, SyncError},
    monitor::Monitor,
    pipelines::{PipelineBatch, PipelineConfig, Pipelines, QUIET},
    queue::Delta,
    shared::{Plan, SharedInformerBuilder, options::LEAST_GRACE},
    source::ListWatch,
    store::{IndexError, IndexHandle, Store},
    until,
};

/// Lists and watches a source and hands batches of [`Delta`]s to a function.
///
/// The function answers with the deltas that it could not process: they are queued again.
///
/// ```
/// use informer::{unshared::DeltaProcessor, queue::Delta, source::MemorySource, store};
/// use k8s_openapi::api::core::v1::Node;
/// use tokio_util::sync::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (_writer, known) = store::new::<Node>();
/// let stop = CancellationToken::new();
/// let ending = stop.clone();
/// let processor = DeltaProcessor::new(MemorySource::<Node>::new(), known, move |deltas: Vec<Delta<Node>>| {
///     println!("{} deltas", deltas.len());
///     ending.cancel();
///     async { Vec::new() }
/// });
/// processor.run(stop).await;
/// # }
/// ```
pub struct DeltaProcessor<K, P> {
    coverage: Coverage<K>,
    config: PipelineConfig<K>,
    known: Store<K>,
    process: P,
    resync: Duration,
    grace: Duration,
    monitor: Arc<Monitor>,
}

/// Tells how far one of these has come, while it runs. It is cheap to clone.
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

    /// What it is doing, since when, and what went wrong last.
    pub fn health(&self) -> Health {
        self.0.health(0)
    }
}

impl<K, P, F> DeltaProcessor<K, P>
where
    K: Send + Sync + 'static,
    P: FnMut(Vec<Delta<K>>) -> F,
    F: Future<Output = Vec<Delta<K>>>,
{
    /// One with every default; [`build_processor`](SharedInformerBuilder::build_processor) has the options. `known` is the
    /// store that the function maintains, if it does: a [`QueueKind::PerKey`](crate::queue::QueueKind::PerKey) queue finds
    /// there what a list no longer has.
    pub fn new(source: impl ListWatch<K>, known: Store<K>, process: P) -> Self {
        Self::of(SharedInformerBuilder::new(source), known, process)
    }

    pub(crate) fn of(builder: SharedInformerBuilder<K>, known: Store<K>, process: P) -> Self {
        let (Plan { coverage, config, resync, grace, .. }, monitor) = builder.into_parts();
        Self { coverage, config, known, process, resync, grace, monitor: Arc::new(monitor) }
    }

    /// Tells how far it has come, while it runs.
    pub fn progress(&self) -> Progress {
        Progress(Arc::clone(&self.monitor))
    }

    /// Runs until it is told to stop. A panic of the function comes out of here. If the function does not return, it is
    /// dropped when the [grace](SharedInformerBuilder::grace) is over.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut running = Running::start(
            self.coverage,
            self.config,
            self.known,
            self.resync,
            self.grace,
            self.monitor,
            stop,
        );
        while let Some((_, mut batch)) = running.next().await {
            let Some(again) = running.finish("the function", (self.process)(batch.take())).await else {
                break;
            };
            batch.retry(again);
            drop(batch);
            running.applied();
        }
        running.end().await;
    }
}

/// The pipelines of one of these, while it runs. However it ends, nobody waits for it in vain.
struct Running<K> {
    pipelines: Pipelines<K>,
    known: Store<K>,
    resync: Duration,
    next_resync: Option<Instant>,
    /// How much longer what runs may go on after the stop.
    grace: Duration,
    monitor: Arc<Monitor>,
    stop: CancellationToken,
}

impl<K: Send + Sync + 'static> Running<K> {
    fn start(
        mut coverage: Coverage<K>,
        config: PipelineConfig<K>,
        known: Store<K>,
        resync: Duration,
        grace: Duration,
        monitor: Arc<Monitor>,
        stop: CancellationToken,
    ) -> Self {
        // It was not started before: running takes it.
        let _ = monitor.start();
        // Unshared forms cover the same for ever: nobody looks at it again.
        let mut pipelines = Pipelines::new(config, known.clone(), Arc::clone(&monitor), stop.child_token());
        pipelines.begin_all(&mut coverage);
        Self { pipelines, known, resync, next_resync: after(resync), grace, monitor, stop }
    }

    /// The next batch, with the number of its pipeline; `None` when it is time to end. May be dropped and called again.
    async fn next(&mut self) -> Option<(usize, PipelineBatch<K>)> {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                () = until(self.next_resync) => {
                    self.pipelines.resync();
                    self.next_resync = after(self.resync);
                }
                batch = self.pipelines.next() => return batch,
            }
        }
    }

    /// A batch has been processed and dropped.
    fn applied(&self) {
        if !self.monitor.progress().synced && self.pipelines.has_synced() {
            self.monitor.synced(self.known.len());
        }
    }

    /// Lets something of a user's end, unless that takes longer than the grace after the stop. Then there is no answer, and
    /// reflectors, which were told to stop at the same time, have had their grace as well.
    async fn finish<T>(&mut self, who: &str, work: impl Future<Output = T>) -> Option<T> {
        let given_up = async {
            self.stop.cancelled().await;
            tokio::time::sleep(self.grace).await;
        };
        tokio::select! {
            biased;
            done = work => return Some(done),
            () = given_up => {}
        }
        self.left_behind(who);
        self.grace = LEAST_GRACE;
        None
    }

    async fn end(mut self) {
        for who in self.pipelines.stop(Instant::now().checked_add(self.grace)).await {
            self.left_behind(&who);
        }
    }

    fn left_behind(&self, who: &str) {
        tracing::error!(informer = self.monitor.name(), who, "ended without waiting any longer");
    }
}

impl<K> Drop for Running<K> {
    fn drop(&mut self) {
        self.monitor.stop();
    }
}

/// When a period has passed; never if it is zero.
fn after(period: Duration) -> Option<Instant> {
    Instant::now().checked_add(period).filter(|_| !period.is_zero())
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
    plan: Plan<K>,
    handler: H,
    monitor: Arc<Monitor>,
}

impl<K, H> Informer<K, H>
where
    K: Send + Sync + 'static,
    H: EventHandler<K>,
{
    /// One with every default; [`build_unshared`](SharedInformerBuilder::build_unshared) has the options.
    pub fn new(source: impl ListWatch<K>, handler: H) -> Self {
        Self::of(SharedInformerBuilder::new(source), handler)
    }

    pub(crate) fn of(builder: SharedInformerBuilder<K>, handler: H) -> Self {
        let (mut plan, monitor) = builder.into_parts();
        plan.resync = handler.resync().unwrap_or(plan.resync);
        Self { plan, handler, monitor: Arc::new(monitor) }
    }

    /// Adds an index; see [`Store::add_index`].
    pub fn add_index<F, I>(&self, name: &str, function: F) -> Result<IndexHandle<K>, IndexError>
    where
        F: Fn(&Object<K>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item: AsRef<str>>,
    {
        self.plan.writer.store().add_index(name, function)
    }

    /// The cache.
    pub fn store(&self) -> Store<K> {
        self.plan.writer.store()
    }

    /// Tells how far it has come, while it runs.
    pub fn progress(&self) -> Progress {
        Progress(Arc::clone(&self.monitor))
    }

    /// Runs until it is told to stop. Events that the handler has not heard by then are dropped. If it does not return from the
    /// one that it is hearing of, that is dropped when the [grace](SharedInformerBuilder::grace) is over.
    pub async fn run(self, stop: CancellationToken) {
        let Self { plan: Plan { coverage, config, mut writer, resync, grace }, mut handler, monitor } = self;
        let mut running =
            Running::start(coverage, config, writer.store(), resync, grace, monitor, stop.clone());
        let mut rest = None;
        loop {
            let (pipeline, mut batch) = tokio::select! {
                biased;
                batch = running.next() => match batch {
                    Some(batch) => batch,
                    None => break,
                },
                () = until(rest) => {
                    rest = None;
                    writer.rest();
                    continue;
                }
            };
            let mut events = Vec::with_capacity(batch.len());
            writer.write(|changes| {
                let tell = |event, initial| events.push((event, initial));
                running.pipelines.apply(pipeline, batch.take(), changes, tell);
            });
            let telling = async {
                for (event, initial) in events {
                    match &event {
                        Event::Added(object) => handler.on_add(object, initial).await,
                        Event::Updated { old, new } => handler.on_update(old, new).await,
                        Event::Deleted(gone) => handler.on_delete(gone).await,
                    }
                    if stop.is_cancelled() {
                        break;
                    }
                }
            };
            if running.finish("the handler", telling).await.is_none() {
                break;
            }
            drop(batch);
            running.applied();
            rest = after(QUIET);
        }
        running.end().await;
    }
}
