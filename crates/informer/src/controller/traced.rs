//! The changes that keys are queued for, as spans.

use std::{collections::HashMap, fmt, hash::Hash};

use tracing::{Span, info_span, trace_span};

use crate::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    trace::{self, TARGET},
};

/// So many of the changes that a call is about are linked to it, besides the first one, of whose trace it is a part.
const LINKS: usize = 16;

/// What the keys in a queue are queued for. Empty while nobody wants to hear of it.
pub(super) struct Traces<T>(Arc<Mutex<HashMap<T, Queued>>>);

struct Queued {
    change: Span,
    /// Lasts until a worker takes the key.
    #[expect(dead_code, reason = "dropping it ends the span")]
    waiting: Span,
    others: Vec<Span>,
}

/// The changes that a call is about.
pub(super) struct About {
    change: Span,
    others: Vec<Span>,
}

impl<T: Hash + Eq + Clone> Traces<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<T, Queued>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A key is about to be queued for a change.
    pub(super) fn queued(&self, controller: &str, item: &T, change: &Span) {
        let mut traces = self.lock();
        match traces.get_mut(item) {
            Some(Queued { others, .. }) if others.len() < LINKS => others.push(change.clone()),
            Some(_) => {}
            None => {
                let waiting = trace_span!(target: TARGET, parent: change, "queued", controller);
                traces.insert(item.clone(), Queued { change: change.clone(), waiting, others: Vec::new() });
            }
        }
    }

    /// A worker has taken a key.
    pub(super) fn taken(&self, item: &T) -> Option<About> {
        if !trace::is_wanted() {
            return None;
        }
        let Queued { change, others, .. } = self.lock().remove(item)?;
        Some(About { change, others })
    }
}

impl About {
    /// The span of a call.
    pub(super) fn reconcile(&self, controller: &str, item: &impl fmt::Debug) -> Span {
        let span = info_span!(parent: &self.change, "reconcile", controller, key = ?item);
        for other in &self.others {
            span.follows_from(other);
        }
        span
    }
}

impl<T> Clone for Traces<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Traces<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}
