//! The one task that changes the cache and tells the processor what changed.

use std::{sync::Arc, time::Duration};

use informer_model::GroupVersionResource;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Notice, Plan,
    joining::Joining,
    processor::{Members, Processor},
};
use crate::{
    Event,
    coverage::Coverage,
    delta::Delta,
    metrics::{self, Levels, Measurement, Probe},
    monitor::Monitor,
    pipelines::{PipelineBatch, Pipelines, QUIET, Queues},
    store::{Store, StoreWriter},
    trace, until,
};

pub(super) struct Controller<K: Send + Sync + 'static> {
    coverage: Coverage<K>,
    pipelines: Pipelines<K>,
    writer: StoreWriter<K>,
    store: Store<K>,
    processor: Processor<K>,
    joining: Arc<Joining<K>>,
    monitor: Arc<Monitor>,
    synced: bool,
    grace: Duration,
    /// What measures can ask for, as long as this runs.
    _gauges: Option<Arc<Gauges<K>>>,
}

/// Where to look for what the informer holds.
struct Gauges<K> {
    resource: Option<GroupVersionResource>,
    store: Store<K>,
    queues: Queues<K>,
    members: Members<K>,
}

impl<K: Send + Sync + 'static> Gauges<K> {
    fn read(&self) -> Levels {
        Levels {
            resource: self.resource.clone(),
            version: self.store.resource_version(),
            objects: self.store.len(),
            bytes: self.store.wire_bytes(),
            index_bytes: self.store.snapshot().index_bytes(),
            queued: self.queues.len(),
            handlers: self.members.lags(),
            told: self.members.told(),
        }
    }
}

impl<K: Send + Sync + 'static> Controller<K> {
    pub(super) fn start(
        mut plan: Plan<K>,
        monitor: Arc<Monitor>,
        joining: Arc<Joining<K>>,
        stop: &CancellationToken,
    ) -> Self {
        // It was not started before: the plan is taken once.
        let _ = monitor.start();
        monitor.heard().open();
        let store = plan.writer.store();
        if monitor.metrics().is_some() {
            plan.writer.count_wire_bytes();
        }
        let resource = plan.coverage.resource();
        let pipelines = Pipelines::new(plan.config, store.clone(), Arc::clone(&monitor), stop.child_token());
        let name = monitor.name().to_owned();
        let processor = Processor::new(Arc::clone(&joining), plan.resync, name, monitor.metrics().cloned());
        let gauges = monitor.metrics().map(|metrics| {
            let (store, queues, members) = (store.clone(), pipelines.queues(), processor.members());
            let gauges = Arc::new(Gauges { resource, store, queues, members });
            let asked = Arc::downgrade(&gauges);
            let probe = Probe::new(move || Some(asked.upgrade()?.read()));
            metrics::guarded(monitor.name(), || metrics.informer(monitor.name(), probe));
            gauges
        });
        Self {
            coverage: plan.coverage,
            pipelines,
            writer: plan.writer,
            store,
            processor,
            joining,
            monitor,
            synced: false,
            grace: plan.grace,
            _gauges: gauges,
        }
    }

    /// Runs until it is told to stop, and says who did not end in time then.
    pub(super) async fn run(mut self, stop: CancellationToken) -> Vec<String> {
        let joining = Arc::clone(&self.joining);
        let mut rest = None;
        self.cover();
        loop {
            // Pending handlers are admitted between two batches: what they are shown first is exactly what was told
            // before them.
            self.processor.admit(&self.store);
            let check = self.processor.next_check();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = joining.arrived() => {}
                () = self.coverage.changed() => {
                    self.cover();
                    rest = Some(Instant::now() + QUIET);
                    tokio::task::yield_now().await;
                }
                () = until(check) => {
                    if self.processor.tick(Instant::now()) {
                        self.pipelines.resync();
                    }
                }
                batch = self.pipelines.next() => match batch {
                    Some((pipeline, batch)) => {
                        self.apply(pipeline, batch);
                        rest = Some(Instant::now() + QUIET);
                        // Handlers have their turn before more comes.
                        tokio::task::yield_now().await;
                    }
                    None => break,
                },
                () = until(rest) => {
                    rest = None;
                    self.writer.rest();
                }
            }
        }
        // Reflectors have at most half of it: handlers are to have a grace of their own, however long those take.
        let stopped = Instant::now();
        let mut stuck = self.pipelines.stop(stopped.checked_add(self.grace / 2)).await;
        while let Some((pipeline, batch)) = self.pipelines.next().await {
            self.apply(pipeline, batch);
        }
        let Self { processor, writer, .. } = self;
        stuck.extend(processor.stop(stopped.checked_add(self.grace)).await);
        drop(writer);
        stuck
    }

    /// First the cache changes, then the handlers hear of it.
    fn apply(&mut self, pipeline: usize, mut batch: PipelineBatch<K>) {
        let taken = Instant::now();
        let deltas = batch.take();
        // A list is one delta, of which each object may be news.
        let news = deltas.iter().map(|delta| match delta {
            Delta::ReplacedAll(list) => list.objects.len(),
            _ => 1,
        });
        let mut notices = Vec::with_capacity(news.sum());
        let (mut added, mut updated, mut deleted) = (0, 0, 0);
        self.writer.write(|batch| {
            self.pipelines.apply(pipeline, deltas, batch, |event, initial| {
                match &event {
                    Event::Added(_) => added += 1,
                    Event::Updated { old, new } => updated += usize::from(!old.ptr_eq(new)),
                    Event::Deleted(_) => deleted += 1,
                }
                notices.push(Notice { event, initial });
            });
        });
        drop(batch);
        let changes = if trace::is_wanted() { self.monitor.heard().take(&notices) } else { None };
        self.processor.distribute(notices, &changes);
        self.note_synced();
        self.monitor.measure(Measurement::Applied { added, updated, deleted, took: taken.elapsed() });
    }

    /// What is covered has changed: what is not covered any more leaves the cache, then handlers hear of it.
    fn cover(&mut self) {
        let taken = Instant::now();
        let mut notices = Vec::new();
        let Self { coverage, pipelines, synced, .. } = self;
        let lost_resync = self.writer.write(|batch| {
            pipelines.cover(coverage, *synced, batch, |event| notices.push(Notice { event, initial: false }))
        });
        if lost_resync {
            pipelines.resync();
        }
        let deleted = notices.len();
        self.processor.distribute(notices, &None);
        // What is not to be listed is not waited for.
        self.note_synced();
        if deleted > 0 {
            self.monitor.measure(Measurement::Applied {
                added: 0,
                updated: 0,
                deleted,
                took: taken.elapsed(),
            });
        }
    }

    fn note_synced(&mut self) {
        if !self.synced && self.pipelines.has_synced() {
            self.synced = true;
            self.processor.initial_list_done();
            self.monitor.synced(self.store.len());
        }
    }
}
