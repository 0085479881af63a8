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
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Action, Failure, OnFailure};
use crate::{
    panic_message,
    sync::Arc,
    workqueue::{ItemExponential, RateLimiter, Work, WorkQueue},
};

/// How long a key waits of which nobody said when it is to be tried again, because what says so panicked.
const AFTER_PANIC: Duration = Duration::from_secs(5);

pub(super) struct Worker<T, R> {
    pub(super) name: String,
    pub(super) queue: WorkQueue<T>,
    pub(super) reconcile: Arc<R>,
    /// How long a key waits that wants to be looked at again at once, over and over. These are no failures.
    pub(super) eager: Arc<ItemExponential<T>>,
    pub(super) on_failure: Option<OnFailure<T>>,
    pub(super) stop: CancellationToken,
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
            let item = T::clone(&work);
            let span = tracing::info_span!("reconcile", controller = self.name, key = ?item);
            // The function itself may panic too, not only what it returns.
            let call = AssertUnwindSafe(async { (self.reconcile)(item).await }).catch_unwind();
            let outcome = call.instrument(span).await;
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

    /// Calls something of a user's that is not the function. A panic there must not end the worker.
    fn guarded(&self, work: &Work<T>, what: &str, call: impl FnOnce()) -> bool {
        let called = catch_unwind(AssertUnwindSafe(call));
        if let Err(panic) = &called {
            let panic = panic_message(&**panic);
            tracing::error!(controller = self.name, key = ?**work, panic, "{what} panicked; the controller goes on");
        }
        called.is_ok()
    }

    fn succeeded(&self, work: &Work<T>, action: Action) {
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
        work.retry();
        let (key, panicked, times) = (&**work, cause.is_none(), self.queue.failures(work));
        match &self.on_failure {
            Some(tell) => {
                let failure = Failure { error, cause, panicked, times };
                self.guarded(work, "on_failure", || tell(key, failure));
            }
            None if panicked => {
                tracing::error!(
                    controller = self.name,
                    ?key,
                    times,
                    "reconciling panicked, it is tried again: {error}"
                );
            }
            None => {
                tracing::warn!(
                    controller = self.name,
                    ?key,
                    times,
                    "reconciling failed, it is tried again: {error}"
                );
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
            eager: Arc::clone(&self.eager),
            on_failure: self.on_failure.clone(),
            stop: self.stop.clone(),
        }
    }
}
