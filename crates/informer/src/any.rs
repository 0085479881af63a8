//! Informers of different kinds, side by side.

use std::{any::Any, fmt, time::Duration};

use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use tokio_util::sync::CancellationToken;

use crate::{
    SharedInformer,
    health::{Health, SyncError},
    shared::RunError,
    source::Unusable,
};

/// What can be asked of a [`SharedInformer`] without knowing of what kind its objects are.
pub trait AnyInformer: Any + Send + Sync + sealed::Sealed {
    /// As [`SharedInformer::name`].
    fn name(&self) -> &str;
    /// As [`SharedInformer::run`].
    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>>;
    /// As [`SharedInformer::has_synced`].
    fn has_synced(&self) -> bool;
    /// As [`SharedInformer::wait_until_synced`].
    fn wait_until_synced(&self, within: Duration) -> BoxFuture<'_, Result<(), SyncError>>;
    /// As [`SharedInformer::is_stopped`].
    fn is_stopped(&self) -> bool;
    /// As [`SharedInformer::health`].
    fn health(&self) -> Health;
    /// As [`SharedInformer::quarantined`].
    fn quarantined(&self) -> Vec<Unusable>;
    /// Whether both are handles of the same informer.
    fn is_same(&self, other: &dyn AnyInformer) -> bool;
}

impl<K: Send + Sync + 'static> AnyInformer for SharedInformer<K> {
    fn name(&self) -> &str {
        self.name()
    }

    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), RunError>> {
        self.run(stop).boxed()
    }

    fn has_synced(&self) -> bool {
        self.has_synced()
    }

    fn wait_until_synced(&self, within: Duration) -> BoxFuture<'_, Result<(), SyncError>> {
        self.wait_until_synced(within).boxed()
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped()
    }

    fn health(&self) -> Health {
        self.health()
    }

    fn quarantined(&self) -> Vec<Unusable> {
        self.quarantined()
    }

    fn is_same(&self, other: &dyn AnyInformer) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref().is_some_and(|other| self.ptr_eq(other))
    }
}

mod sealed {
    /// Only informers are informers.
    pub trait Sealed {}

    impl<K> Sealed for crate::SharedInformer<K> {}
}

/// Waits until all of these informers have their first list in the cache, for so long at most.
///
/// ```
/// use std::time::Duration;
///
/// use informer::{SharedInformer, source::MemorySource, wait_for_cache_sync};
/// use k8s_openapi::api::core::v1::{Node, Pod};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pods = SharedInformer::builder(MemorySource::<Pod>::new()).name("pods").build()?;
/// let nodes = SharedInformer::builder(MemorySource::<Node>::new()).name("nodes").build()?;
/// // Neither runs.
/// let error = wait_for_cache_sync(&[&pods, &nodes], Duration::from_millis(1)).await.unwrap_err();
/// assert!(error.to_string().contains("pods: not started"));
/// # Ok(()) }
/// ```
pub async fn wait_for_cache_sync(
    informers: &[&dyn AnyInformer],
    within: Duration,
) -> Result<SyncReport, NotSynced> {
    let waits = informers.iter().map(|informer| async move {
        let synced = informer.wait_until_synced(within).await;
        (informer.name().to_owned(), synced)
    });
    SyncReport { informers: join_all(waits).await, not_started: Vec::new() }.judged()
}

/// What became of waiting for several informers. Printed, it is a sentence.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SyncReport {
    /// Each informer by its name: synced, or why not.
    pub informers: Vec<(String, Result<(), SyncError>)>,
    /// The informers of the factory that were not waited for, because they have not been started.
    pub not_started: Vec<String>,
}

/// Some informers have not synced; the report says which and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct NotSynced(pub SyncReport);

impl SyncReport {
    /// Those that have not synced, and why.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &SyncError)> {
        self.informers.iter().filter_map(|(name, synced)| Some((name.as_str(), synced.as_ref().err()?)))
    }

    pub(crate) fn judged(self) -> Result<Self, NotSynced> {
        if self.failures().next().is_some() { Err(NotSynced(self)) } else { Ok(self) }
    }
}

impl fmt::Display for SyncReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, failed) = (self.informers.len(), self.failures().count());
        write!(f, "{} of {all} informers synced", all - failed)?;
        for (_, error) in self.failures() {
            write!(f, "; {error}")?;
        }
        if !self.not_started.is_empty() {
            write!(f, "; not started yet: {}", self.not_started.join(", "))?;
        }
        Ok(())
    }
}
