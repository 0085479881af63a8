//! The sources of one informer, each with its reflector and its queue, side by side.
//!
//! An informer has one lane, or one for each namespace of a list. Lanes fail and recover on their own. What
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
    reflector::{Phase, Problem, Reflector, Remedy, Settings},
    source::ListWatch,
    store::{Batch, Store},
    until,
};

/// How many deltas are applied in one step.
const BATCH: usize = 256;
/// After a reflector panicked, which only what measures can bring about, it begins anew so much later.
const AFTER_PANIC: Duration = Duration::from_secs(5);

pub(crate) type LaneQueue<K> = SharedQueue<K, AnyQueue<K>>;
pub(crate) type LaneBatch<K> = Popped<K, AnyQueue<K>>;

/// What a lane needs to begin, and to begin anew.
pub(crate) struct Route<K> {
    pub(crate) sources: Vec<Arc<dyn ListWatch<K>>>,
    pub(crate) settings: Settings,
    pub(crate) seed: Option<u64>,
    pub(crate) queue: QueueKind,
    pub(crate) transform: Option<Transform<K>>,
}

pub(crate) struct Lanes<K> {
    route: Route<K>,
    store: Store<K>,
    monitor: Arc<Monitor>,
    queues: Vec<LaneQueue<K>>,
    /// Whether each lane's first list is still to be applied.
    first_lists: Vec<FirstList>,
    /// The version that each lane has reached.
    versions: Vec<ResourceVersion>,
    /// Each ends with its lane, and with what a panic said if it died of one.
    reflectors: JoinSet<(usize, Option<String>)>,
    stop: CancellationToken,
    /// The lane that is looked at first, so that none of them is forgotten for a busy one.
    turn: usize,
}

impl<K: Send + Sync + 'static> Lanes<K> {
    /// Starts the reflectors.
    pub(crate) fn start(
        route: Route<K>,
        store: Store<K>,
        monitor: Arc<Monitor>,
        stop: CancellationToken,
    ) -> Self {
        let count = route.sources.len();
        let queue = || SharedQueue::new(AnyQueue::new(route.queue, &store));
        let mut lanes = Self {
            queues: (0..count).map(|_| queue()).collect(),
            first_lists: vec![FirstList::default(); count],
            versions: vec![ResourceVersion::UNSET; count],
            route,
            store,
            monitor,
            reflectors: JoinSet::new(),
            stop,
            turn: 0,
        };
        for lane in 0..count {
            lanes.reflect(lane, Duration::ZERO);
        }
        lanes
    }

    fn reflect(&mut self, lane: usize, delay: Duration) {
        let Some(source) = self.route.sources.get(lane) else { return };
        let (settings, queue) = (self.route.settings.clone(), self.queues[lane].clone());
        let monitor = Arc::clone(&self.monitor);
        let seed = self.route.seed.map(|seed| seed.wrapping_add(lane as u64));
        let reflector = Reflector::lane(Arc::clone(source), queue, settings, seed, monitor, lane)
            .transform(self.route.transform.clone())
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
            (lane, ended.err().map(|panic| panic_message(&*panic)))
        };
        self.reflectors.spawn(reflecting.instrument(span));
    }

    /// The next batch of any lane, or `None` when all are closed and nothing is left. May be dropped and
    /// called again.
    pub(crate) async fn next(&mut self) -> Option<(usize, LaneBatch<K>)> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, LaneBatch<K>)>> {
        while let Poll::Ready(Some(ended)) = self.reflectors.poll_join_next(context) {
            if let Ok((lane, Some(message))) = ended {
                self.monitor.phase(lane, Phase::Waiting, &self.monitor.version(lane), 0);
                self.monitor.problem(lane, Problem::Panicked(message), Remedy::Relist(AFTER_PANIC));
                self.reflect(lane, AFTER_PANIC);
            }
        }
        let count = self.queues.len();
        let mut closed = 0;
        for offset in 0..count {
            let lane = (self.turn + offset) % count;
            match self.queues[lane].poll_pop(context, BATCH) {
                Poll::Ready(Some(batch)) => {
                    self.turn = (lane + 1) % count;
                    return Poll::Ready(Some((lane, batch)));
                }
                Poll::Ready(None) => closed += 1,
                Poll::Pending => {}
            }
        }
        if closed == count { Poll::Ready(None) } else { Poll::Pending }
    }

    /// Applies a batch of a lane, and tells with each event whether it adds an object of that lane's first list.
    pub(crate) fn apply(
        &mut self,
        lane: usize,
        deltas: Vec<Delta<K>>,
        batch: &mut Batch<'_, K>,
        tell: impl FnMut(Event<K>, bool),
    ) {
        // What the batch says of versions.
        let reached = deltas.iter().rev().find_map(|delta| match delta {
            Delta::Bookmark(version) => Some(version.clone()),
            Delta::ReplacedAll(list) => Some(list.version.clone()),
            _ => None,
        });
        self.first_lists[lane].apply(deltas, batch, tell);
        if let Some(reached) = reached {
            self.versions[lane] = reached;
        }
        self.settle_version(lane, batch);
    }

    /// Sets the store to the version that every lane has reached, and the lane's namespace to its own. With one lane the
    /// batch did it itself.
    fn settle_version(&self, lane: usize, batch: &mut Batch<'_, K>) {
        if let [first, rest @ ..] = &self.versions[..]
            && !rest.is_empty()
        {
            if let Some(namespace) = self.route.sources[lane].namespace() {
                batch.set_namespace_version(namespace, self.versions[lane].clone());
            }
            let least =
                rest.iter().fold(
                    first,
                    |least, version| {
                        if version.is_unset() || version < least { version } else { least }
                    },
                );
            batch.set_resource_version(least.clone());
        }
    }

    /// Whether every lane's first list has been applied.
    pub(crate) fn has_synced(&self) -> bool {
        self.queues.iter().all(SharedQueue::has_synced)
    }

    /// The queue of each lane.
    pub(crate) fn queues(&self) -> Vec<LaneQueue<K>> {
        self.queues.clone()
    }

    /// Has all of the cache shown to the handlers again. It is the cache of all lanes: one of them is enough.
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
                    Some(Ok((lane, _))) => drop(running.remove(&lane)),
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
        let left = |lane: usize| {
            let source = self.route.sources.get(lane).map(|source| source.description()).unwrap_or_default();
            format!("the reflector of {source}, which calls transforms and the watch-error handler")
        };
        running.into_iter().map(left).collect()
    }
}
