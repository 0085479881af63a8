//! The sources of one informer, each with its reflector and its queue, side by side.
//!
//! An informer has one pipeline, or one for each namespace, which may come and go. Pipelines fail and recover on their own. What
//! comes out of them goes through one hand, which knows the version that all of them have reached.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::FutureExt;
use informer_model::ResourceVersion;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    Event, Tombstone,
    coverage::{Coverage, Slot},
    monitor::Monitor,
    panic_message,
    queue::{AnyQueue, Delta, FirstList, Popped, QueueKind, SharedQueue, Transform},
    reflector::{Phase, Problem, Reflector, ReflectorSettings, Remedy},
    source::ListWatch,
    store::{Batch, Store},
    until,
};

/// How many deltas are applied in one step. More of them copy fewer leaves of the store for each, but 1,024 cost 100 handlers four
/// times as much, and reach the limit at which events are merged.
const BATCH: usize = 256;
/// After a reflector panicked, which only what a source says of itself can bring about, it begins anew so much later.
const AFTER_PANIC: Duration = Duration::from_secs(5);

/// After this long without a change, what only readers of the cache hold is left to them.
pub(crate) const QUIET: Duration = Duration::from_secs(1);

pub(crate) type PipelineQueue<K> = SharedQueue<K, AnyQueue<K>>;
pub(crate) type PipelineBatch<K> = Popped<K, AnyQueue<K>>;

/// What every pipeline needs to begin, and to begin anew.
pub(crate) struct PipelineConfig<K> {
    pub(crate) settings: ReflectorSettings,
    pub(crate) seed: Option<u64>,
    pub(crate) queue: QueueKind,
    pub(crate) transform: Option<Transform<K>>,
}

pub(crate) struct Pipelines<K> {
    config: PipelineConfig<K>,
    store: Store<K>,
    monitor: Arc<Monitor>,
    running: Vec<Pipeline<K>>,
    /// The number of the next pipeline.
    next_id: usize,
    /// Whether it is known which pipelines there are to be.
    known: bool,
    /// The version that the store has reached.
    reached: ResourceVersion,
    queues: Queues<K>,
    /// Each ends with its pipeline, and with what a panic said if it died of one.
    reflectors: JoinSet<(usize, Option<String>)>,
    /// The reflectors that have not ended, also those of pipelines that are gone: what each lists.
    reflecting: BTreeMap<usize, String>,
    stop: CancellationToken,
    ending: bool,
    /// The pipeline that is looked at first, so that none of them is forgotten for a busy one.
    turn: usize,
}

struct Pipeline<K> {
    /// Its number, which no other one has after it.
    id: usize,
    slot: Slot,
    source: Arc<dyn ListWatch<K>>,
    namespace: Option<Arc<str>>,
    queue: PipelineQueue<K>,
    /// Whether its first list is still to be applied.
    first_list: FirstList,
    /// The version that it has reached.
    version: ResourceVersion,
    /// Whether the store's version waits for this one. One that comes later has to catch up first.
    counts: bool,
    stop: CancellationToken,
}

/// The queues of all pipelines, for metrics.
pub(crate) struct Queues<K>(Arc<Mutex<Vec<Numbered<K>>>>);

/// A queue, and the number of its pipeline.
type Numbered<K> = (usize, PipelineQueue<K>);

impl<K> Queues<K> {
    fn lock(&self) -> MutexGuard<'_, Vec<Numbered<K>>> {
        // Nothing of a user's runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Send + Sync + 'static> Queues<K> {
    /// How many entries wait in all of them.
    pub(crate) fn len(&self) -> usize {
        self.lock().iter().map(|(_, queue)| queue.len()).sum()
    }
}

impl<K: Send + Sync + 'static> Pipelines<K> {
    /// None yet.
    pub(crate) fn new(
        config: PipelineConfig<K>,
        store: Store<K>,
        monitor: Arc<Monitor>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            config,
            store,
            monitor,
            running: Vec::new(),
            next_id: 0,
            known: false,
            reached: ResourceVersion::UNSET,
            queues: Queues(Arc::default()),
            reflectors: JoinSet::new(),
            reflecting: BTreeMap::new(),
            stop,
            ending: false,
            turn: 0,
        }
    }

    /// Begins those of what is covered for ever.
    pub(crate) fn begin_all(&mut self, coverage: &mut Coverage<K>) {
        if let Ok(wanted) = coverage.wanted() {
            self.known = true;
            for (slot, source) in coverage.missing(&wanted, |_| false) {
                self.begin(slot, source, true);
            }
        }
    }

    /// Ends the pipelines that are not wanted any more and takes what they have brought out of the store; then begins those
    /// that are new. Says whether a resync was on its way in one that has ended.
    ///
    /// Pipelines that come when the others have synced keep nobody waiting.
    pub(crate) fn cover(
        &mut self,
        coverage: &mut Coverage<K>,
        has_synced: bool,
        batch: &mut Batch<'_, K>,
        mut tell: impl FnMut(Event<K>),
    ) -> bool {
        let wanted = match coverage.wanted() {
            Ok(wanted) => wanted,
            Err(unknown) => {
                self.monitor.absent(Some(unknown.into()));
                return false;
            }
        };
        self.known = true;
        self.monitor.absent(wanted.absent());
        batch.set_absent(wanted.absent());
        let (mut at, mut lost_resync) = (0, false);
        while let Some(pipeline) = self.running.get(at) {
            let Some(why) = wanted.departure(&pipeline.slot) else {
                at += 1;
                continue;
            };
            let gone = self.running.remove(at);
            lost_resync |= at == 0 && !gone.queue.is_empty();
            self.end(&gone);
            if let Some(namespace) = &gone.namespace {
                batch.set_namespace_version(Arc::clone(namespace), None);
            }
            for last_seen in batch.evict(gone.namespace.as_deref()) {
                tell(Event::Deleted(Tombstone::Left { last_seen, why }));
            }
        }
        let is_there = |slot: &Slot| self.running.iter().any(|pipeline| pipeline.slot == *slot);
        for (slot, source) in coverage.missing(&wanted, is_there) {
            if let Some(namespace) = source.namespace() {
                batch.set_namespace_version(namespace.into(), Some(ResourceVersion::UNSET));
            }
            self.begin(slot, source, !has_synced);
        }
        // What was waited for may be gone.
        if let Some(least) = self.least() {
            self.reached.clone_from(&least);
            batch.set_resource_version(least);
        }
        lost_resync
    }

    fn begin(&mut self, slot: Slot, source: Arc<dyn ListWatch<K>>, counts: bool) {
        let (id, namespace) = (self.next_id, source.namespace().map(Arc::from));
        self.next_id += 1;
        self.monitor.join(id, source.description());
        let queue = SharedQueue::new(AnyQueue::new(self.config.queue, &self.store));
        self.queues.lock().push((id, queue.clone()));
        let (first_list, version) = (FirstList::default(), ResourceVersion::UNSET);
        let stop = self.stop.child_token();
        self.running.push(Pipeline { id, slot, source, namespace, queue, first_list, version, counts, stop });
        self.reflect(self.running.len() - 1, Duration::ZERO);
    }

    /// What its reflector still says while it ends is not heard.
    fn end(&mut self, pipeline: &Pipeline<K>) {
        pipeline.stop.cancel();
        pipeline.queue.close();
        self.queues.lock().retain(|(id, _)| *id != pipeline.id);
        self.monitor.leave(pipeline.id);
        self.turn = 0;
    }

    fn reflect(&mut self, pipeline: usize, delay: Duration) {
        let Some(Pipeline { id, source, queue, stop, .. }) = self.running.get(pipeline) else { return };
        let (id, queue, stop) = (*id, queue.clone(), stop.clone());
        let (settings, monitor) = (self.config.settings.clone(), Arc::clone(&self.monitor));
        let seed = self.config.seed.map(|seed| seed.wrapping_add(id as u64));
        let reflector = Reflector::pipeline(Arc::clone(source), queue, settings, seed, monitor, id)
            .transform(self.config.transform.clone())
            .reuse(self.store.clone());
        let span = tracing::info_span!("reflector", source = source.description());
        let reflecting = async move {
            let running = async {
                if stop.run_until_cancelled(tokio::time::sleep(delay)).await.is_some() {
                    reflector.run(stop.clone()).await;
                }
            };
            let ended = AssertUnwindSafe(running).catch_unwind().await;
            (id, ended.err().map(|panic| panic_message(&*panic)))
        };
        self.reflecting.insert(id, source.description());
        self.reflectors.spawn(reflecting.instrument(span));
    }

    /// The next batch of any pipeline, or `None` when all are closed and nothing is left. May be dropped and
    /// called again.
    pub(crate) async fn next(&mut self) -> Option<(usize, PipelineBatch<K>)> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, PipelineBatch<K>)>> {
        while let Poll::Ready(Some(ended)) = self.reflectors.poll_join_next(context) {
            let Ok((id, panic)) = ended else { continue };
            self.reflecting.remove(&id);
            let pipeline = self.running.iter().position(|pipeline| pipeline.id == id);
            if let (Some(message), Some(pipeline)) = (panic, pipeline) {
                self.monitor.phase(id, Phase::Waiting, &self.monitor.version(id), 0, Instant::now());
                self.monitor.problem(id, Problem::Panicked(message), Remedy::Relist(AFTER_PANIC));
                self.reflect(pipeline, AFTER_PANIC);
            }
        }
        let count = self.running.len();
        let mut closed = 0;
        for offset in 0..count {
            let pipeline = (self.turn + offset) % count;
            match self.running[pipeline].queue.poll_pop(context, BATCH) {
                Poll::Ready(Some(batch)) => {
                    self.turn = (pipeline + 1) % count;
                    return Poll::Ready(Some((pipeline, batch)));
                }
                Poll::Ready(None) => closed += 1,
                Poll::Pending => {}
            }
        }
        // Without any, there may be some later.
        if closed == count && self.ending { Poll::Ready(None) } else { Poll::Pending }
    }

    /// Applies a batch of a pipeline, and tells with each event whether it adds an object of that pipeline's first list.
    pub(crate) fn apply(
        &mut self,
        pipeline: usize,
        mut deltas: Vec<Delta<K>>,
        batch: &mut Batch<'_, K>,
        tell: impl FnMut(Event<K>, bool),
    ) {
        for delta in &mut deltas {
            match delta {
                Delta::Bookmark(version) => self.reach(pipeline, version),
                Delta::ReplacedAll(list) => self.reach(pipeline, &mut list.version),
                _ => {}
            }
        }
        let pipeline = &mut self.running[pipeline];
        pipeline.first_list.apply(deltas, batch, tell);
        if let Some(namespace) = &pipeline.namespace {
            batch.set_namespace_version(Arc::clone(namespace), Some(pipeline.version.clone()));
        }
    }

    /// Makes the version of one pipeline the one that all have reached: the store is there when they are. One that came
    /// later counts once it has caught up, so that the store does not go back for it.
    fn reach(&mut self, pipeline: usize, version: &mut ResourceVersion) {
        let is_first = !self.running.iter().any(|pipeline| pipeline.counts);
        let this = &mut self.running[pipeline];
        this.version.clone_from(version);
        this.counts |= is_first || self.reached.is_unset() || *version >= self.reached;
        if let Some(least) = self.least() {
            self.reached = least;
        }
        version.clone_from(&self.reached);
    }

    /// The version that all have reached which count, if there are any. One that has no version yet has reached none.
    fn least(&self) -> Option<ResourceVersion> {
        let mut counting =
            self.running.iter().filter(|pipeline| pipeline.counts).map(|pipeline| &pipeline.version);
        let first = counting.next()?;
        Some(
            counting
                .fold(first, |least, other| if other.is_unset() || other < least { other } else { least })
                .clone(),
        )
    }

    /// Whether every pipeline's first list has been applied.
    pub(crate) fn has_synced(&self) -> bool {
        self.known && self.running.iter().all(|pipeline| pipeline.queue.has_synced())
    }

    /// The queue of each pipeline.
    pub(crate) fn queues(&self) -> Queues<K> {
        Queues(Arc::clone(&self.queues.0))
    }

    /// Has all of the cache shown to the handlers again. It is the cache of all pipelines: one of them is enough.
    pub(crate) fn resync(&self) {
        if let Some(pipeline) = self.running.first() {
            // Closed, it is ending: nobody needs a resync any more.
            let _ = pipeline.queue.resync();
        }
    }

    /// Ends the reflectors, then closes the queues. What waits in them can still be taken out. Says who did not end in time.
    pub(crate) async fn stop(&mut self, deadline: Option<Instant>) -> Vec<String> {
        self.stop.cancel();
        self.ending = true;
        loop {
            tokio::select! {
                biased;
                ended = self.reflectors.join_next() => match ended {
                    Some(Ok((id, _))) => drop(self.reflecting.remove(&id)),
                    Some(Err(_)) => {}
                    None => {
                        self.reflecting.clear();
                        break;
                    }
                },
                () = until(deadline) => break,
            }
        }
        self.reflectors.abort_all();
        for pipeline in &self.running {
            pipeline.queue.close();
        }
        let left = |source: &String| {
            format!("the reflector of {source}, which calls transforms and the watch-error handler")
        };
        self.reflecting.values().map(left).collect()
    }
}
