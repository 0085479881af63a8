//! The queue that tasks share: the core behind a lock, a clock, and who is woken when.

use std::{
    fmt, future::pending, hash::Hash, ops::Deref, pin::pin, sync::atomic::Ordering, thread, time::Duration,
};

use tokio::sync::Notify;

use super::{
    core::{Core, Id, Moment, Taken},
    limiter::{RateLimiter, default_limiter},
    stats::{QueueProbe, QueueStats, Totals},
};
use crate::{
    metrics::{self, Measurement, Metrics},
    sync::{Arc, Instant, Mutex, MutexGuard, PoisonError, sleep_until},
};

/// So many items take milliseconds to drop.
const MANY: usize = 100_000;

/// A queue of work. It is cheap to clone (an `Arc`).
///
/// ```
/// use std::time::Duration;
/// use informer::workqueue::WorkQueue;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let queue = WorkQueue::new();
/// queue.add("default/web");
/// queue.add("default/web"); // still one
/// queue.add_after("default/db", Duration::from_secs(10));
///
/// let work = queue.get().await.expect("the queue is open");
/// assert_eq!(*work, "default/web");
/// queue.retry(*work); // it failed: once more, a little later
/// drop(work); // done
///
/// queue.shut_down();
/// assert!(queue.get().await.is_none());
/// # }
/// ```
pub struct WorkQueue<T>(Arc<Shared<T>>);

struct Shared<T> {
    name: String,
    state: Mutex<State<T>>,
    totals: Arc<Totals>,
    limiter: Box<dyn RateLimiter<T>>,
    metrics: Option<Arc<dyn Metrics>>,
    began: Instant,
    /// Tells one of those who wait in `get` that there may be something.
    ready: Notify,
    /// Tells the caller that waits for the next delay that there is an earlier one.
    earlier: Notify,
    /// Tells those who drain that a worker is done.
    idle: Notify,
}

struct State<T> {
    core: Core<T>,
    /// Somebody waits until all is done.
    draining: bool,
    /// Somebody in `get` sleeps until the next delay ends.
    minded: bool,
    /// Somebody was woken because of what is queued and has not looked yet. Whoever it is wakes the next one if there is more: so
    /// many are not woken for what those who are awake will have taken by then.
    waking: bool,
}

/// Sets a queue up.
pub struct WorkQueueBuilder<T> {
    name: Option<String>,
    limiter: Box<dyn RateLimiter<T>>,
    metrics: Option<Arc<dyn Metrics>>,
}

impl<T: Hash + Eq + Clone + Send + 'static> WorkQueueBuilder<T> {
    /// The name in metrics: `workqueue` unless set here, or that of the controller that uses it.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The name, if it has none yet.
    pub(crate) fn name_by_default(mut self, name: &str) -> Self {
        self.name.get_or_insert_with(|| name.to_owned());
        self
    }

    /// What decides how long an item waits that is tried again; the [default one](default_limiter) otherwise.
    #[must_use]
    pub fn limiter(mut self, limiter: impl RateLimiter<T> + 'static) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Who is told what the queue measures, and can ask it for the rest.
    #[must_use]
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// The queue.
    pub fn build(self) -> WorkQueue<T> {
        let state = State { core: Core::new(), draining: false, minded: false, waking: false };
        let shared = Arc::new(Shared {
            name: self.name.unwrap_or_else(|| "workqueue".to_owned()),
            state: Mutex::new(state),
            totals: Arc::default(),
            limiter: self.limiter,
            metrics: self.metrics,
            began: Instant::now(),
            ready: Notify::new(),
            earlier: Notify::new(),
            idle: Notify::new(),
        });
        if let Some(metrics) = &shared.metrics {
            let queue = Arc::downgrade(&shared);
            let ask = move || queue.upgrade().map(|shared| WorkQueue(shared).stats());
            let probe = QueueProbe::new(Arc::clone(&shared.totals), ask);
            metrics::guarded(&shared.name, || metrics.queue(&shared.name, probe));
        }
        WorkQueue(shared)
    }
}

impl<T: Hash + Eq + Clone + Send + 'static> WorkQueue<T> {
    /// A queue with the default limiter.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Sets a queue up.
    pub fn builder() -> WorkQueueBuilder<T> {
        WorkQueueBuilder { name: None, limiter: Box::new(default_limiter()), metrics: None }
    }

    /// Queues an item, unless it is queued. A worker that has it now finishes first.
    ///
    /// Does nothing when the queue is shut down.
    pub fn add(&self, item: T) {
        self.add_with_priority(item, 0);
    }

    /// Queues an item before those of lower priority. What [`add`](Self::add) queues has priority 0; an item that is queued
    /// already gets the higher of both.
    pub fn add_with_priority(&self, item: T, priority: i32) {
        self.change(self.0.metrics.is_some(), |state, now| state.core.add(item, priority, now));
    }

    /// Queues an item after a delay, or at once if it is zero. Of several delays of one item, the one that ends first
    /// counts.
    pub fn add_after(&self, item: T, delay: Duration) {
        self.add_after_with_priority(item, delay, 0);
    }

    /// The same with a priority; see [`add_with_priority`](Self::add_with_priority).
    pub fn add_after_with_priority(&self, item: T, delay: Duration, priority: i32) {
        if delay.is_zero() {
            return self.add_with_priority(item, priority);
        }
        self.delay(delay, |core, due| core.add_at(item, priority, due));
    }

    /// Delays something, and tells who has to know. `set` says whether the earliest moment of all has come closer.
    fn delay(&self, delay: Duration, set: impl FnOnce(&mut Core<T>, Moment) -> bool) {
        let (earlier, minded) = self.change(true, |state, now| {
            (set(&mut state.core, now.saturating_add(nanoseconds(delay))), state.minded)
        });
        match (earlier, minded) {
            (true, true) => self.0.earlier.notify_one(),
            (true, false) => self.0.ready.notify_one(),
            (false, _) => {}
        }
    }

    /// Queues an item again that has failed, after the delay that the limiter gives.
    pub fn retry(&self, item: T) {
        let delay = self.next_try(&item);
        self.add_after(item, delay);
    }

    /// The item has failed: how long it has to wait.
    fn next_try(&self, item: &T) -> Duration {
        self.0.totals.retries.fetch_add(1, Ordering::Relaxed);
        self.0.limiter.next_delay(item)
    }

    /// The item has succeeded, or is given up: its failures no longer count.
    pub fn forget(&self, item: &T) {
        self.0.limiter.forget(item);
    }

    /// How often the item was [retried](Self::retry) since it was last forgotten.
    pub fn failures(&self, item: &T) -> u32 {
        self.0.limiter.failures(item)
    }

    /// The next item. Waits until there is one; `None` when the queue is shut down and nothing is left.
    ///
    /// Nothing is lost when the future is dropped.
    pub async fn get(&self) -> Option<Work<T>> {
        // A busy worker waits for nothing.
        if let Some(work) = self.try_get() {
            return Some(work);
        }
        let shared = &*self.0;
        let mut minding = None;
        loop {
            let mut ready = pin!(shared.ready.notified());
            // From here on nothing that happens is missed.
            ready.as_mut().enable();
            let next_due = match self.look(true) {
                Found::Work(work) => return Some(work),
                Found::End => return None,
                Found::Nothing { next_due } => next_due,
            };
            if minding.is_none() && next_due.is_some() {
                minding = self.mind();
            }
            if minding.is_none() {
                ready.await;
                continue;
            }
            let due = async {
                match next_due {
                    Some(due) => sleep_until(due).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = ready => {}
                // Also when nothing is delayed any more: who delays something now tells only the one who minds.
                () = shared.earlier.notified() => {}
                () = due => {}
            }
        }
    }

    /// The next item if there is one now.
    pub fn try_get(&self) -> Option<Work<T>> {
        match self.look(false) {
            Found::Work(work) => Some(work),
            Found::End | Found::Nothing { .. } => None,
        }
    }

    /// How many items are queued, not counting those that are delayed or with a worker.
    pub fn len(&self) -> usize {
        self.stats().depth
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the queue has measured.
    pub fn stats(&self) -> QueueStats {
        self.change(true, |State { core, .. }, now| {
            let (unfinished, longest) = core.unfinished(now);
            QueueStats {
                depth: core.queued(),
                delayed: core.delayed(),
                processing: core.taken(),
                adds: core.adds(),
                retries: self.0.totals.retries.load(Ordering::Relaxed),
                unfinished: Duration::from_nanos(unfinished),
                longest_running: Duration::from_nanos(longest),
            }
        })
    }

    /// Takes nothing more in and drops what is delayed. Workers get what is queued and then `None`; nobody waits for those
    /// that are at work, and [`drain`](Self::drain) stops waiting.
    pub fn shut_down(&self) {
        self.close(false);
    }

    /// Shuts the queue down and waits until everything that is queued has been taken and every worker is done.
    pub async fn drain(&self) {
        self.close(true);
        loop {
            let mut idle = pin!(self.0.idle.notified());
            idle.as_mut().enable();
            if self.is_drained() {
                return;
            }
            idle.await;
        }
    }

    fn is_drained(&self) -> bool {
        let state = self.lock();
        !state.draining || state.core.is_idle()
    }

    /// Whether the queue is shut down.
    pub fn is_shut_down(&self) -> bool {
        self.lock().core.is_closed()
    }

    fn close(&self, drain: bool) {
        self.change(false, |state, _| {
            state.core.close();
            state.draining = drain;
        });
        self.0.ready.notify_waiters();
        self.0.idle.notify_waiters();
    }

    /// Takes the next item, if there is one. `woken`: the caller may be the one who was woken for it.
    fn look(&self, woken: bool) -> Found<T> {
        let found = self.change(true, |State { core, waking, .. }, now| {
            *waking &= !woken;
            match core.take(now) {
                Some(taken) => Ok(taken),
                None if core.is_closed() => Err(Found::End),
                None => {
                    let next_due = core.next_due().map(|due| self.0.began + Duration::from_nanos(due));
                    Err(Found::Nothing { next_due })
                }
            }
        });
        match found {
            Ok(Taken { id, item, waited }) => {
                self.record(Measurement::WorkStarted { waited: Duration::from_nanos(waited) });
                Found::Work(Work { item, id, queue: self.clone() })
            }
            Err(nothing) => nothing,
        }
    }

    /// Makes the caller the one who sleeps until the next delay ends, unless there is one.
    fn mind(&self) -> Option<Minding<'_, T>> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.minded, true) { None } else { Some(Minding(self)) }
    }

    /// Queues what is due, then does something else, and then wakes somebody if there is something to take.
    ///
    /// Reading a clock costs as much as all the rest. Who needs no moment, because nobody asks how long things took, is given one
    /// only if something is delayed.
    fn change<R>(&self, timed: bool, change: impl FnOnce(&mut State<T>, Moment) -> R) -> R {
        let before = timed.then(|| self.now());
        let mut state = self.lock();
        let now = before.or_else(|| (state.core.delayed() > 0).then(|| self.now())).unwrap_or_default();
        state.core.promote(now);
        let result = change(&mut state, now);
        let wake = state.core.queued() > 0 && !std::mem::replace(&mut state.waking, true);
        let remains = state.core.take_remains();
        self.0.totals.adds.store(state.core.adds(), Ordering::Relaxed);
        drop(state);
        // What takes long to drop is dropped by a thread that nobody waits for, or here if there can be none.
        if let Some(remains) = remains.filter(|remains| remains.len() >= MANY) {
            let _ = thread::Builder::new().name("workqueue".to_owned()).spawn(move || drop(remains));
        }
        if wake {
            self.0.ready.notify_one();
        }
        result
    }

    fn done(&self, id: Id) {
        let (worked, idle) = self.change(self.0.metrics.is_some(), |State { core, .. }, now| {
            let worked = core.done(id, now);
            (worked, core.is_closed() && core.is_idle())
        });
        if idle {
            self.0.idle.notify_waiters();
        }
        self.record(Measurement::WorkDone { took: Duration::from_nanos(worked) });
    }

    fn record(&self, measurement: Measurement<'_>) {
        if let Some(metrics) = &self.0.metrics {
            metrics::guarded(&self.0.name, || metrics.record(&self.0.name, measurement));
        }
    }
}

impl<T> WorkQueue<T> {
    fn now(&self) -> Moment {
        nanoseconds(self.0.began.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nanoseconds(duration: Duration) -> Moment {
    Moment::try_from(duration.as_nanos()).unwrap_or(Moment::MAX)
}

/// What there is for a worker.
enum Found<T: Hash + Eq + Clone + Send + 'static> {
    Work(Work<T>),
    /// Nothing yet, but something will be due at a moment.
    Nothing {
        next_due: Option<Instant>,
    },
    /// Nothing will ever come.
    End,
}

/// The caller is the one who sleeps until the next delay ends. When it no longer does, another one must.
struct Minding<'a, T>(&'a WorkQueue<T>);

impl<T> Drop for Minding<'_, T> {
    fn drop(&mut self) {
        self.0.lock().minded = false;
        self.0.0.ready.notify_one();
    }
}

/// An item that a worker has. The worker is done with it when this is dropped, also by a panic.
pub struct Work<T: Hash + Eq + Clone + Send + 'static> {
    item: T,
    id: Id,
    queue: WorkQueue<T>,
}

/// What a worker wants for its item afterwards. The next worker of the item decides again: this delay is over then.
impl<T: Hash + Eq + Clone + Send + 'static> Work<T> {
    /// Queues the item after a delay, unless somebody adds it before.
    pub(crate) fn requeue_after(&self, delay: Duration) {
        self.queue.delay(delay, |core, due| core.requeue_at(self.id, due));
    }

    /// The item has failed: queues it after the delay that the limiter gives.
    pub(crate) fn retry(&self) {
        self.requeue_after(self.queue.next_try(&self.item));
    }
}

impl<T: Hash + Eq + Clone + Send + 'static> Deref for Work<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T: Hash + Eq + Clone + Send + fmt::Debug + 'static> fmt::Debug for Work<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Work").field(&self.item).finish()
    }
}

impl<T: Hash + Eq + Clone + Send + 'static> Drop for Work<T> {
    fn drop(&mut self) {
        self.queue.done(self.id);
    }
}

impl<T> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Hash + Eq + Clone + Send + 'static> Default for WorkQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue").field("name", &self.0.name).finish_non_exhaustive()
    }
}
