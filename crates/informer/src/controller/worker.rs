//! A worker: takes keys from the queue and calls the function.

use std::{
    any::Any,
    fmt,
    future::Future,
    hash::Hash,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use futures_util::FutureExt;
use hashbrown::HashMap;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Action, ControllerObserver, Decide, Failure, OnError, OnFailure, traced::Traces};
use crate::{
    client::Written,
    metrics::{self, Measurement, Metrics, Outcome},
    panic_message,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    workqueue::{ItemExponential, RateLimiter, Work, WorkQueue},
};

/// How long a key waits of which nobody said when it is to be tried again, because what says so panicked.
const AFTER_PANIC: Duration = Duration::from_secs(5);

pub(super) struct Worker<T, R> {
    pub(super) name: String,
    pub(super) queue: WorkQueue<T>,
    pub(super) reconcile: Arc<R>,
    /// What the last call for a key has written, for as long as the caches may not show it.
    pub(super) written: Arc<Mutex<HashMap<T, Written>>>,
    /// What the keys in the queue are queued for, if anybody wants to hear of it.
    pub(super) traces: Traces<T>,
    /// How long a key waits that wants to be looked at again at once, over and over. These are no failures.
    pub(super) eager: Arc<ItemExponential<T>>,
    pub(super) on_failure: Option<OnFailure<T>>,
    pub(super) error_policy: Option<Arc<Decide<T>>>,
    pub(super) metrics: Option<Arc<dyn Metrics>>,
    pub(super) observer: ControllerObserver,
    pub(super) stop: CancellationToken,
    /// Ends what waits for caches.
    pub(super) waiting: CancellationToken,
}

impl<T, R> Worker<T, R>
where
    T: Hash + Eq + Clone + fmt::Debug + Send + 'static,
{
    /// Works until the stop, or until the queue has ended.
    pub(super) async fn run<F, E>(self)
    where
        R: Fn(T) -> F,
        F: Future<Output = Result<Action, E>>,
        E: fmt::Display + 'static,
    {
        loop {
            let work = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                work = self.queue.get() => work,
            };
            let Some(work) = work else { return };
            let Some(work) = self.when_ready(work) else { continue };
            let item = T::clone(&work);
            let about = self.traces.taken(&item);
            let span = match &about {
                Some(about) => about.reconcile(&self.name, &item),
                None => tracing::info_span!("reconcile", controller = self.name, key = ?item),
            };
            // The function itself may panic too, not only what it returns.
            let call = AssertUnwindSafe(async { (self.reconcile)(item).await }).catch_unwind();
            let written = Written::default();
            let running = self.observer.call(&*work);
            let outcome = written.noting(call.instrument(span)).await;
            drop(running);
            self.remember(&work, written);
            let follow = || match outcome {
                Ok(Ok(action)) => self.succeeded(&work, action),
                Ok(Err(error)) => self.failed(&work, &error.to_string(), Some(&error)),
                Err(panic) => self.failed(&work, &panic_message(&*panic), None),
            };
            if !self.guarded(&work, "the queue's limiter, or the error's text,", follow) {
                work.requeue_after(AFTER_PANIC);
            }
        }
    }

    /// The work, if the caches show what the last call for its key has written. Otherwise it comes back when they do, and no worker waits.
    fn when_ready(&self, work: Work<T>) -> Option<Work<T>> {
        let written = {
            let mut written = self.lock_written();
            if written.is_empty() { None } else { written.remove(&*work) }
        };
        let Some(written) = written.filter(|written| !written.is_shown()) else { return Some(work) };
        let (name, stop) = (self.name.clone(), self.waiting.clone());
        tokio::spawn(async move {
            if let Some(missing) = stop.run_until_cancelled(written.wait()).await {
                for behind in missing {
                    tracing::warn!(controller = name, key = ?*work, "it is reconciled although {behind}");
                }
                work.requeue_after(Duration::ZERO);
            }
        });
        None
    }

    /// Keeps what a call has written, for as long as the caches may not show it. What it has made and is gone before a cache has it brings the
    /// key back: a list that comes too late knows nothing of it.
    fn remember(&self, item: &T, written: Written) {
        if written.is_empty() {
            return;
        }
        if let Some(missed) = written.missed() {
            let (queue, key, waiting) = (self.queue.clone(), item.clone(), self.waiting.clone());
            tokio::spawn(async move {
                if waiting.run_until_cancelled(missed).await == Some(true) {
                    queue.add(key);
                }
            });
        }
        let mut all = self.lock_written();
        if all.len() == all.capacity() {
            all.retain(|_, written| !written.is_shown());
        }
        all.insert(item.clone(), written);
    }

    fn lock_written(&self) -> MutexGuard<'_, HashMap<T, Written>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls something of a user's that is not the function. A panic there must not end the worker.
    fn guarded(&self, work: &Work<T>, what: &str, call: impl FnOnce()) -> bool {
        let called = catch_unwind(AssertUnwindSafe(call));
        if let Err(panic) = &called {
            let panic = panic_message(&**panic);
            tracing::error!(controller = self.name, key = ?**work, panic, "{what} panicked; the controller goes on");
        }
        called.is_ok()
    }

    fn measure(&self, outcome: Outcome) {
        if let Some(metrics) = &self.metrics {
            metrics::guarded(&self.name, || metrics.record(&self.name, Measurement::Reconciled { outcome }));
        }
    }

    fn succeeded(&self, work: &Work<T>, action: Action) {
        self.measure(match action {
            Action::AwaitChange => Outcome::Success,
            Action::RequeueAfter(_) => Outcome::RequeueAfter,
        });
        self.queue.forget(work);
        if let Action::RequeueAfter(Duration::ZERO) = action {
            return work.requeue_after(self.eager.next_delay(work));
        }
        self.eager.forget(work);
        if let Action::RequeueAfter(delay) = action {
            work.requeue_after(delay);
        }
    }

    /// Without a cause it is a panic.
    fn failed(&self, work: &Work<T>, error: &str, cause: Option<&dyn Any>) {
        let (key, panicked) = (&**work, cause.is_none());
        let policy = self.error_policy.as_ref().zip(cause);
        let on_error = policy.map_or(OnError::Retry, |(decide, cause)| decide(key, cause));
        match on_error {
            OnError::Retry => work.retry(),
            OnError::RetryAfter(Duration::ZERO) => work.requeue_after(self.eager.next_delay(work)),
            OnError::RetryAfter(delay) => work.requeue_after(delay),
            OnError::Terminal => self.queue.forget(work),
        }
        self.measure(match on_error {
            _ if panicked => Outcome::Panic,
            OnError::Terminal => Outcome::TerminalError,
            OnError::Retry | OnError::RetryAfter(_) => Outcome::Error,
        });
        let (times, terminal) = (self.queue.failures(work), on_error == OnError::Terminal);
        if let Some(tell) = &self.on_failure {
            let failure = Failure { error, cause, panicked, times, terminal };
            self.guarded(work, "on_failure", || tell(key, failure));
            return;
        }
        let (name, what) = (&self.name, if terminal { "it waits for a change" } else { "it is tried again" });
        match (panicked, on_error) {
            (true, _) => {
                tracing::error!(controller = name, ?key, times, "reconciling panicked, {what}: {error}");
            }
            // The policy expects it and knows when to look again.
            (false, OnError::RetryAfter(_)) => {
                tracing::debug!(controller = name, ?key, times, "reconciling failed, {what}: {error}");
            }
            (false, _) => {
                tracing::warn!(controller = name, ?key, times, "reconciling failed, {what}: {error}");
            }
        }
    }
}

// Derived, this would ask for `R: Clone`.
impl<T, R> Clone for Worker<T, R> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            queue: self.queue.clone(),
            reconcile: Arc::clone(&self.reconcile),
            written: Arc::clone(&self.written),
            traces: self.traces.clone(),
            eager: Arc::clone(&self.eager),
            on_failure: self.on_failure.clone(),
            error_policy: self.error_policy.clone(),
            metrics: self.metrics.clone(),
            observer: self.observer.clone(),
            stop: self.stop.clone(),
            waiting: self.waiting.clone(),
        }
    }
}
