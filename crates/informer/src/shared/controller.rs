//! The one task that changes the cache and tells the processor what changed.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Notice, Plan, joining::Joining, processor::Processor};
use crate::{
    Event,
    lanes::{LaneBatch, Lanes},
    metrics::Measurement,
    monitor::Monitor,
    store::{Store, StoreWriter},
    until,
};

/// After this long without a change, what only readers of the cache hold is left to them.
const QUIET: Duration = Duration::from_secs(1);

pub(super) struct Controller<K: Send + Sync + 'static> {
    lanes: Lanes<K>,
    writer: StoreWriter<K>,
    store: Store<K>,
    processor: Processor<K>,
    joining: Arc<Joining<K>>,
    monitor: Arc<Monitor>,
    synced: bool,
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
        let store = plan.writer.store();
        if monitor.metrics().is_some() {
            plan.writer.count_wire_bytes();
        }
        let lanes = Lanes::start(plan.route, store.clone(), Arc::clone(&monitor), stop.child_token());
        let name = monitor.name().to_owned();
        let processor = Processor::new(Arc::clone(&joining), plan.resync, name, monitor.metrics().cloned());
        Self { lanes, writer: plan.writer, store, processor, joining, monitor, synced: false }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        let _ending = Ending(Arc::clone(&self.monitor), Arc::clone(&self.joining));
        let joining = Arc::clone(&self.joining);
        let mut rest = None;
        loop {
            // Newcomers are taken in between two batches: what they are shown first is exactly what was told
            // before them.
            self.processor.admit(&self.store);
            let check = self.processor.next_check();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = joining.arrived() => {}
                () = until(check) => {
                    if self.processor.tick(Instant::now()) {
                        self.lanes.resync();
                    }
                }
                batch = self.lanes.next() => match batch {
                    Some((lane, batch)) => {
                        self.apply(lane, batch);
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
        self.lanes.stop().await;
        while let Some((lane, batch)) = self.lanes.next().await {
            self.apply(lane, batch);
        }
        let Self { processor, writer, .. } = self;
        processor.stop().await;
        drop(writer);
    }

    /// First the cache changes, then the handlers hear of it.
    fn apply(&mut self, lane: usize, mut batch: LaneBatch<K>) {
        let deltas = batch.take();
        let mut notices = Vec::with_capacity(deltas.len());
        let (mut added, mut updated, mut deleted) = (0, 0, 0);
        let bytes = self.writer.write(|batch| {
            self.lanes.apply(lane, deltas, batch, |event, initial| {
                match &event {
                    Event::Added(_) => added += 1,
                    Event::Updated { old, new } => updated += usize::from(!old.ptr_eq(new)),
                    Event::Deleted(_) => deleted += 1,
                }
                notices.push(Notice { event, initial });
            });
            batch.wire_bytes()
        });
        drop(batch);
        self.processor.distribute(notices);
        if !self.synced && self.lanes.has_synced() {
            self.synced = true;
            self.processor.initial_list_done();
            self.monitor.synced(self.store.len());
        }
        if self.monitor.metrics().is_some() {
            self.monitor.measure(Measurement::Applied { added, updated, deleted });
            self.measure(bytes);
        }
    }

    fn measure(&self, bytes: u64) {
        self.monitor.measure(Measurement::QueueDepth(self.lanes.depth()));
        for (handler, pending) in self.processor.lags() {
            self.monitor.measure(Measurement::HandlerLag { handler, pending });
        }
        self.monitor.measure(Measurement::StoreSize { objects: self.store.len(), bytes });
    }
}

/// However the controller ends, also when it is dropped in the middle, nobody waits for it in vain.
struct Ending<K: Send + Sync + 'static>(Arc<Monitor>, Arc<Joining<K>>);

impl<K: Send + Sync + 'static> Drop for Ending<K> {
    fn drop(&mut self) {
        self.1.stop();
        self.0.stop();
    }
}
