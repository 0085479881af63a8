//! One trace for each change: from the event of the watch to the end of its reconcile.
//!
//! The span `change` begins when a reflector has heard of a change, and ends with the last thing that was done about it. In it are `handler`, for each
//! handler that is told, `queued`, until a worker of a controller takes the key, and `reconcile`. What existed before, resyncs, and what a handler that
//! is far behind hears merged have no trace.
//!
//! While no subscriber wants spans of [`TARGET`], all of this is one comparison for each event.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use informer_model::{ObjectKey, ResourceVersion};
use tracing::{Span, trace_span};

use crate::{shared::Notice, sync::Arc};

/// What subscribers choose these spans by.
pub(crate) const TARGET: &str = "informer::trace";

/// More changes than this never wait between a reflector and its cache, unless something was left out on the way: then they are forgotten.
const WAITING: usize = 100_000;

tokio::task_local! {
    /// The change that a handler is told here.
    static CHANGE: Span;
}

/// Whether anybody wants to hear of changes.
pub(crate) fn is_wanted() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::TRACE)
}

/// The change that the handler is told from which this is called.
#[cfg(feature = "controller")]
pub(crate) fn change() -> Option<Span> {
    if !is_wanted() {
        return None;
    }
    CHANGE.try_with(Span::clone).ok()
}

/// The spans of some changes, in their order; a span of nothing where there is none.
pub(crate) type Changes = Option<Arc<[Span]>>;

/// The changes of an informer that are on their way from a reflector to the cache. Without a cache there are none.
#[derive(Default)]
pub(crate) struct Heard(OnceLock<Mutex<HashMap<ObjectKey, Span>>>);

impl Heard {
    /// There is a cache, which takes them.
    pub(crate) fn open(&self) {
        let _ = self.0.set(Mutex::default());
    }

    fn lock(&self) -> Option<MutexGuard<'_, HashMap<ObjectKey, Span>>> {
        Some(self.0.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A reflector has heard that an object has changed. Changes of one object that wait together are one.
    pub(crate) fn begin(&self, informer: &str, key: &ObjectKey, version: &ResourceVersion) {
        let Some(mut waiting) = self.lock() else { return };
        if waiting.len() >= WAITING {
            waiting.clear();
        }
        waiting
            .entry(key.clone())
            .or_insert_with(|| trace_span!(target: TARGET, parent: None, "change", informer, %key, %version));
    }

    /// The changes that are in the cache now, of which handlers are told.
    pub(crate) fn take<K>(&self, notices: &[Notice<K>]) -> Changes {
        let mut waiting = self.lock().filter(|waiting| !waiting.is_empty())?;
        let take = |notice: &Notice<K>| {
            let change = waiting.remove(notice.key()).unwrap_or_else(Span::none);
            tracing::trace!(target: TARGET, parent: &change, "in the cache");
            change
        };
        Some(notices.iter().map(take).collect())
    }
}

/// Tells a handler of a change.
pub(crate) async fn told<T>(handler: &str, change: &Span, tell: impl Future<Output = T>) -> T {
    if change.is_none() {
        return tell.await;
    }
    let span = trace_span!(target: TARGET, parent: change, "handler", name = handler);
    CHANGE.scope(change.clone(), tracing::Instrument::instrument(tell, span)).await
}
