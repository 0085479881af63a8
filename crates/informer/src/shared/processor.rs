//! Tells all handlers of what has changed.
//!
//! In come the events of each batch, from the task that has applied it to the store. They are put into the
//! inbox of every handler, where each handler's own task finds them: distributing waits for nobody. New
//! handlers are taken in between two batches, so that what they find in the store and what they hear later
//! fit together.

use std::{collections::HashMap, time::Duration};

use tokio::{
    task::{self, JoinSet},
    time::Instant,
};
use tracing::Instrument;

use super::{
    delivery::Reporter,
    handler::Notice,
    inbox::{Inbox, batches},
    joining::{Joining, Newcomer},
    registration::{End, Member},
    resync::ResyncSchedule,
};
use crate::{
    metrics::Metrics,
    store::Store,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    trace::Changes,
    until,
};

/// The handlers, each with its inbox: for the task that delivers, and for metrics.
pub(super) struct Members<K>(Arc<Mutex<Vec<Told<K>>>>);

type Told<K> = (Arc<Member>, Arc<Inbox<K>>);

impl<K> Members<K> {
    fn lock(&self) -> MutexGuard<'_, Vec<Told<K>>> {
        // Nothing of a user's runs under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of each handler, and how many events it was told.
    pub(super) fn told(&self) -> Vec<(String, u64)> {
        let there = self.lock();
        let there = there.iter().filter(|(_, inbox)| !inbox.is_closed());
        there.map(|(member, inbox)| (member.name.to_string(), inbox.told())).collect()
    }

    /// The name of each handler, and how many events wait for it.
    pub(super) fn lags(&self) -> Vec<(String, usize)> {
        let there = self.lock();
        let there = there.iter().filter(|(_, inbox)| !inbox.is_closed());
        there.map(|(member, inbox)| (member.name.to_string(), inbox.pending())).collect()
    }
}

/// All handlers of one informer. Owned by the task that writes the store.
pub(crate) struct Processor<K> {
    joining: Arc<Joining<K>>,
    members: Members<K>,
    tasks: JoinSet<()>,
    /// Whose task is which, of those that have not ended.
    running: HashMap<task::Id, Arc<Member>>,
    schedule: ResyncSchedule,
    /// Whether the first list has been distributed to its end.
    listed: bool,
    reporter: Reporter,
}

impl<K> Processor<K> {
    /// A processor for those who join here. `informer` is the name in reports.
    pub(crate) fn new(
        joining: Arc<Joining<K>>,
        default_resync: Duration,
        informer: impl Into<Arc<str>>,
        metrics: Option<Arc<dyn Metrics>>,
    ) -> Self {
        Self {
            joining,
            members: Members(Arc::new(Mutex::new(Vec::new()))),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            schedule: ResyncSchedule::new(default_resync),
            listed: false,
            reporter: Reporter { informer: informer.into(), metrics },
        }
    }

    /// Takes in those who have come. Each hears first of what is in the store now, then of what is distributed
    /// later; so everything that is in the store must have been distributed. The first call is the start, for
    /// the periods of resyncs.
    pub(crate) fn admit(&mut self, store: &Store<K>) {
        self.prune();
        let newcomers = self.joining.take();
        let now = Instant::now();
        if !newcomers.is_empty() {
            let snapshot = store.snapshot();
            for Newcomer { member, inbox, resync, start } in newcomers {
                self.schedule.join(member.id, resync, now);
                if !snapshot.is_empty() {
                    inbox.replay(snapshot.clone());
                }
                if self.listed {
                    inbox.mark_synced();
                }
                if let Some(start) = start {
                    let span = tracing::info_span!("handler", name = &*member.name);
                    let task = self.tasks.spawn(start(self.reporter.clone()).instrument(span));
                    self.running.insert(task.id(), Arc::clone(&member));
                }
                self.members.lock().push((member, inbox));
            }
        }
        self.schedule.start(now);
    }

    /// Tells everybody, but for resyncs: those go to the handlers that were due at the last
    /// [`tick`](Self::tick). Handlers run when the calling task lets them: it should yield after each batch.
    pub(crate) fn distribute(&mut self, notices: Vec<Notice<K>>, changes: &Changes) {
        self.prune();
        if !notices.iter().any(Notice::is_resync) {
            let all = batches(notices, changes);
            self.members.lock().iter().for_each(|(_, inbox)| inbox.push(&all));
            return;
        }
        let real = notices.iter().filter(|notice| !notice.is_resync()).cloned().collect();
        let (real, all) = (batches(real, &None), batches(notices, &None));
        for (member, inbox) in &*self.members.lock() {
            inbox.push(if self.schedule.is_due(member.id) { &all } else { &real });
        }
        self.schedule.tell();
    }

    /// The first list has been distributed to its end.
    pub(crate) fn initial_list_done(&mut self) {
        if !self.listed {
            self.listed = true;
            self.members.lock().iter().for_each(|(_, inbox)| inbox.mark_synced());
        }
    }

    /// When to [`tick`](Self::tick) next; `None` while no handler wants a resync.
    pub(crate) fn next_check(&self) -> Option<Instant> {
        self.schedule.next_check()
    }

    /// Looks which handlers are due a resync, and says whether any is.
    pub(crate) fn tick(&mut self, now: Instant) -> bool {
        self.prune();
        self.schedule.tick(now)
    }

    /// Who is told.
    pub(super) fn members(&self) -> Members<K> {
        Members(Arc::clone(&self.members.0))
    }

    /// Lets every running callback end, drops what waits, and returns when no handler is left or the time is up. Says who
    /// is left.
    pub(crate) async fn stop(mut self, deadline: Option<Instant>) -> Vec<String> {
        self.close();
        let all = async {
            while let Some(ended) = self.tasks.join_next_with_id().await {
                self.running.remove(&ended.map_or_else(|error| error.id(), |(id, ())| id));
            }
        };
        tokio::select! {
            biased;
            () = all => {}
            () = until(deadline) => {}
        }
        let mut stuck: Vec<_> =
            self.running.values().map(|member| format!("handler {:?}", member.name)).collect();
        stuck.sort();
        stuck
    }

    fn close(&mut self) {
        self.joining.stop();
        let members = std::mem::take(&mut *self.members.lock());
        for (member, inbox) in members {
            member.end(End::Stopped);
            inbox.close();
        }
    }

    /// Forgets handlers that were removed.
    fn prune(&mut self) {
        let mut members = self.members.lock();
        let gone = members.extract_if(.., |(_, inbox)| inbox.is_closed()).collect::<Vec<_>>();
        drop(members);
        gone.iter().for_each(|(member, _)| self.schedule.leave(member.id));
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.running.remove(&ended.map_or_else(|error| error.id(), |(id, ())| id));
        }
    }
}

impl<K> Drop for Processor<K> {
    fn drop(&mut self) {
        // Aborting the tasks, as `tasks` does, is not enough: a blocking callback goes on.
        self.close();
    }
}

#[cfg(test)]
mod tests;
