//! One of those who take keys from the queue and call the function.

use std::{fmt, future::Future, hash::Hash, panic::AssertUnwindSafe};

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Action, Failure, OnFailure};
use crate::{panic_message, sync::Arc, workqueue::WorkQueue};

pub(super) struct Worker<T, R> {
    pub(super) name: String,
    pub(super) queue: WorkQueue<T>,
    pub(super) reconcile: Arc<R>,
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
        E: fmt::Display,
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
            match call.instrument(span).await {
                Ok(Ok(action)) => self.succeeded(&work, action),
                Ok(Err(error)) => self.failed(&work, &error.to_string(), false),
                Err(panic) => self.failed(&work, &panic_message(&*panic), true),
            }
        }
    }

    fn succeeded(&self, item: &T, action: Action) {
        match action {
            Action::RequeueAfter(delay) if delay.is_zero() => return self.queue.retry(item.clone()),
            Action::RequeueAfter(delay) => self.queue.add_after(item.clone(), delay),
            Action::AwaitChange => {}
        }
        self.queue.forget(item);
    }

    fn failed(&self, item: &T, error: &str, panicked: bool) {
        self.queue.retry(item.clone());
        let times = self.queue.failures(item);
        match &self.on_failure {
            Some(tell) => tell(item, Failure { error, panicked, times }),
            None if panicked => {
                tracing::error!(controller = self.name, key = ?item, times, "reconciling panicked, it is tried again: {error}");
            }
            None => {
                tracing::warn!(controller = self.name, key = ?item, times, "reconciling failed, it is tried again: {error}");
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
            on_failure: self.on_failure.clone(),
            stop: self.stop.clone(),
        }
    }
}
