//! The sources of one informer, each with its reflector and its queue, side by side.
//!
//! An informer has one pipeline, or one for each namespace of a list. Pipelines fail and recover on their own. What
//! comes out of them goes through one hand, which knows the version that all of them have reached.

use std::{
    collections::BTreeSet,
    future::poll_fn,
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::FutureExt;
use informer_model::ResourceVersion;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    Event,
    monitor::Monitor,
    panic_message,
    queue::{AnyQueue, Delta, FirstList, Popped, QueueKind, SharedQueue, Transform},
    reflector::{Phase, Problem, Reflector, ReflectorSettings, Remedy},
    source::ListWatch,
    store::{Batch, Store},
    until,
};

/// How many deltas are applied in one step: the more, the fewer leaves of the store are copied for each.
const BATCH: usize = 1_024;
/// After a reflector panicked, which only what a source says of itself can bring about, it begins anew so much later.
const AFTER_PANIC: Duration = Duration::from_secs(5);

/// After this long without a change, what only readers of the cache hold is left to them.
pub(crate) const QUIET: Duration = Duration::from_secs(1);

pub(crate) type PipelineQueue<K> = SharedQueue<K, AnyQueue<K>>;
pub(crate) type PipelineBatch<K> = Popped<K, AnyQueue<K>>;

/// What a pipeline needs to begin, and to begin anew.
pub(crate) struct PipelineConfig<K> {
    pub(crate) sources: Vec<Arc<dyn ListWatch<K>>>,
    pub(crate) settings: ReflectorSettings,
    pub(crate) seed: Option<u64>,
    pub(crate) queue: QueueKind,
    pub(crate) transform: Option<Transform<K>>,
}

pub(crate) struct Pipelines<K> {
    config: PipelineConfig<K>,
    store: Store<K>,
    monitor: Arc<Monitor>,
    queues: Vec<PipelineQueue<K>>,
    /// Whether each pipeline's first list is still to be applied.
    first_lists: Vec<FirstList>,
    /// The version that each pipeline has reached.
    versions: Vec<ResourceVersion>,
    /// Each ends with its pipeline, and with what a panic said if it died of one.
    reflectors: JoinSet<(usize, Option<String>)>,
    stop: CancellationToken,
    /// The pipeline that is looked at first, so that none of them is forgotten for a busy one.
    turn: usize,
}

impl<K: Send + Sync + 'static> Pipelines<K> {
    /// Starts the reflectors.
    pub(crate) fn start(
        config: PipelineConfig<K>,
        store: Store<K>,
        monitor: Arc<Monitor>,
        stop: CancellationToken,
    ) -> Self {
        let count = config.sources.len();
        let queue = || SharedQueue::new(AnyQueue::new(config.queue, &store));
        let mut pipelines = Self {
            queues: (0..count).map(|_| queue()).collect(),
            first_lists: vec![FirstList::default(); count],
            versions: vec![ResourceVersion::UNSET; count],
            config,
            store,
            monitor,
            reflectors: JoinSet::new(),
            stop,
            turn: 0,
        };
        for pipeline in 0..count {
            pipelines.reflect(pipeline, Duration::ZERO);
        }
        pipelines
    }

    fn reflect(&mut self, pipeline: usize, delay: Duration) {
        let Some(source) = self.config.sources.get(pipeline) else { return };
        let (settings, queue) = (self.config.settings.clone(), self.queues[pipeline].clone());
        let monitor = Arc::clone(&self.monitor);
        let seed = self.config.seed.map(|seed| seed.wrapping_add(pipeline as u64));
        let reflector = Reflector::pipeline(Arc::clone(source), queue, settings, seed, monitor, pipeline)
            .transform(self.config.transform.clone())
            .reuse(self.store.clone());
        let stop = self.stop.clone();
        let span = tracing::info_span!("reflector", source = source.description());
        let reflecting = async move {
            let running = async {
                if stop.run_until_cancelled(tokio::time::sleep(delay)).await.is_some() {
                    reflector.run(stop.clone()).await;
                }
            };
            let ended = AssertUnwindSafe(running).catch_unwind().await;
            (pipeline, ended.err().map(|panic| panic_message(&*panic)))
        };
        self.reflectors.spawn(reflecting.instrument(span));
    }

    /// The next batch of any pipeline, or `None` when all are closed and nothing is left. May be dropped and
    /// called again.
    pub(crate) async fn next(&mut self) -> Option<(usize, PipelineBatch<K>)> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, PipelineBatch<K>)>> {
        while let Poll::Ready(Some(ended)) = self.reflectors.poll_join_next(context) {
            if let Ok((pipeline, Some(message))) = ended {
                let version = self.monitor.version(pipeline);
                self.monitor.phase(pipeline, Phase::Waiting, &version, 0, Instant::now());
                self.monitor.problem(pipeline, Problem::Panicked(message), Remedy::Relist(AFTER_PANIC));
                self.reflect(pipeline, AFTER_PANIC);
            }
        }
        let count = self.queues.len();
        let mut closed = 0;
        for offset in 0..count {
            let pipeline = (self.turn + offset) % count;
            match self.queues[pipeline].poll_pop(context, BATCH) {
                Poll::Ready(Some(batch)) => {
                    self.turn = (pipeline + 1) % count;
                    return Poll::Ready(Some((pipeline, batch)));
                }
                Poll::Ready(None) => closed += 1,
                Poll::Pending => {}
            }
        }
        if closed == count { Poll::Ready(None) } else { Poll::Pending }
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
        self.first_lists[pipeline].apply(deltas, batch, tell);
        if let ([_, _, ..], Some(namespace)) = (&self.versions[..], self.config.sources[pipeline].namespace())
        {
            batch.set_namespace_version(namespace, self.versions[pipeline].clone());
        }
    }

    /// Makes the version of one pipeline the one that all have reached: the store is there when they are. One that has
    /// no version yet has reached none.
    fn reach(&mut self, pipeline: usize, version: &mut ResourceVersion) {
        self.versions[pipeline].clone_from(version);
        for reached in &self.versions {
            if reached.is_unset() || *reached < *version {
                version.clone_from(reached);
            }
        }
    }

    /// Whether every pipeline's first list has been applied.
    pub(crate) fn has_synced(&self) -> bool {
        self.queues.iter().all(SharedQueue::has_synced)
    }

    /// The queue of each pipeline.
    pub(crate) fn queues(&self) -> Vec<PipelineQueue<K>> {
        self.queues.clone()
    }

    /// Has all of the cache shown to the handlers again. It is the cache of all pipelines: one of them is enough.
    pub(crate) fn resync(&self) {
        if let Some(queue) = self.queues.first() {
            // Closed, it is ending: nobody needs a resync any more.
            let _ = queue.resync();
        }
    }

    /// Ends the reflectors, then closes the queues. What waits in them can still be taken out. Says who did not end in time.
    pub(crate) async fn stop(&mut self, deadline: Option<Instant>) -> Vec<String> {
        self.stop.cancel();
        let mut running: BTreeSet<usize> = (0..self.queues.len()).collect();
        loop {
            tokio::select! {
                biased;
                ended = self.reflectors.join_next() => match ended {
                    Some(Ok((pipeline, _))) => drop(running.remove(&pipeline)),
                    Some(Err(_)) => {}
                    None => {
                        running.clear();
                        break;
                    }
                },
                () = until(deadline) => break,
            }
        }
        self.reflectors.abort_all();
        for queue in &self.queues {
            queue.close();
        }
        let left = |pipeline: usize| {
            let source =
                self.config.sources.get(pipeline).map(|source| source.description()).unwrap_or_default();
            format!("the reflector of {source}, which calls transforms and the watch-error handler")
        };
        running.into_iter().map(left).collect()
    }
}
