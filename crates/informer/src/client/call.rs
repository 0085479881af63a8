//! What one call of a controller has written.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use informer_model::ObjectKey;

use super::Behind;

tokio::task_local! {
    static CALL: Written;
}

/// Where writes are remembered, of one kind or another.
pub(crate) trait Remembered: Send + Sync {
    fn is_shown(&self, key: &ObjectKey) -> bool;
    fn wait<'a>(&'a self, key: &'a ObjectKey) -> BoxFuture<'a, Result<(), Behind>>;
    /// Of an object that was made and that the cache does not have: whether it is gone when the cache has come that far.
    fn missed(self: Arc<Self>, key: &ObjectKey) -> Option<BoxFuture<'static, bool>>;
}

/// What a call has written: objects, and where the versions of their writes are remembered.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Objects>>);

type Objects = Vec<(Arc<dyn Remembered>, ObjectKey)>;

impl Written {
    /// Runs something whose writes are noted here.
    pub(crate) async fn noting<F: Future>(&self, work: F) -> F::Output {
        CALL.scope(self.clone(), work).await
    }

    /// Notes a write in the call that is running, if one is.
    pub(super) fn note(by: impl FnOnce() -> Arc<dyn Remembered>, key: &ObjectKey) {
        let _ = CALL.try_with(|call| call.lock().push((by(), key.clone())));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether the caches show all of it.
    pub(crate) fn is_shown(&self) -> bool {
        self.lock().iter().all(|(by, key)| by.is_shown(key))
    }

    /// Waits until the caches show all of it, or until the limits of the writes are over, and says what is missing then.
    pub(crate) async fn wait(&self) -> Vec<Behind> {
        let written = self.lock().clone();
        let mut missing = Vec::new();
        for (by, key) in &written {
            missing.extend(by.wait(key).await.err());
        }
        missing
    }

    /// Waits until the caches have come to what was made, and says whether some of it was gone before that: no event tells of that, as it was never
    /// in a cache. None if they have all of it.
    pub(crate) fn missed(&self) -> Option<impl Future<Output = bool> + Send + use<>> {
        let made: FuturesUnordered<_> =
            self.lock().iter().filter_map(|(by, key)| Arc::clone(by).missed(key)).collect();
        (!made.is_empty()).then(|| made.any(|missed| async move { missed }))
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For a task that a controller's call spawns and awaits: what it writes counts as written by the call, so that the next call for the key waits
/// for it too. What the call writes in its own task counts anyway. Outside of a call this does nothing.
///
/// ```
/// # use informer::client::within_call;
/// # async fn write() {}
/// # async fn call() {
/// let writing = tokio::spawn(within_call(write()));
/// # let _ = writing.await;
/// # }
/// ```
pub fn within_call<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let call = CALL.try_with(Clone::clone).ok();
    async move {
        match call {
            Some(call) => CALL.scope(call, work).await,
            None => work.await,
        }
    }
}
