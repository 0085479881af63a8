//! Something large that a client reads piece by piece, for a limited time.
//!
//! The objects of an old moment stay in memory for as long as somebody holds them. A client that takes a byte now and then would
//! hold them for ever, and many would hold many moments. A timer ends that, whether the client is heard of or not.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};

/// How long a client has for all that a stream or a watch begins with.
pub(crate) const READ_WITHIN: Duration = Duration::from_secs(5 * 60);

/// Why a stream ends whose client took longer.
pub(crate) const NOT_READ: &str = "the snapshot was not read within five minutes";

/// Holds something until its time is over.
pub(crate) struct Lease<T> {
    held: Arc<Mutex<Option<Arc<T>>>>,
    _timer: JoinSet<()>,
}

impl<T: Send + Sync + 'static> Lease<T> {
    /// From now on.
    pub(crate) fn new(value: T) -> Self {
        let held = Arc::new(Mutex::new(Some(Arc::new(value))));
        let ends = Arc::clone(&held);
        let mut timer = JoinSet::new();
        timer.spawn(async move {
            sleep(READ_WITHIN).await;
            let over = lock(&ends).take();
            drop(over);
        });
        Self { held, _timer: timer }
    }

    /// What is held, unless its time is over. Not to be kept while something is waited for.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        lock(&self.held).clone()
    }
}

fn lock<T>(held: &Mutex<Option<Arc<T>>>) -> MutexGuard<'_, Option<Arc<T>>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_not_read_in_time_is_let_go_of_though_nobody_asks_for_it() {
        let lease = Lease::new("all there is".to_owned());
        let held = lease.get().map(|held| Arc::downgrade(&held)).expect("it is held");
        sleep(READ_WITHIN - Duration::from_millis(1)).await;
        assert!(held.upgrade().is_some());
        sleep(Duration::from_millis(2)).await;
        assert!(held.upgrade().is_none());
        assert!(lease.get().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_been_read_is_let_go_of_at_once() {
        let lease = Lease::new("all there is".to_owned());
        let held = lease.get().map(|held| Arc::downgrade(&held)).expect("it is held");
        drop(lease);
        tokio::task::yield_now().await;
        assert!(held.upgrade().is_none());
    }
}
