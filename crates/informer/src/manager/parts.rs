//! Parts of a program that run until they are told to stop.

use std::{
    collections::BTreeMap,
    error::Error,
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_util::sync::CancellationToken;

use super::ManagerError;
use crate::panic_message;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// Something that is to run, with what it needs from the beginning.
pub(super) struct Part<N> {
    pub(super) name: String,
    #[cfg_attr(not(feature = "leader"), expect(dead_code, reason = "there are no terms"))]
    pub(super) needs_term: bool,
    begin: Box<dyn FnOnce(N, CancellationToken) -> BoxFuture<'static, Outcome> + Send>,
}

impl<N: Send + 'static> Part<N> {
    pub(super) fn new<M, F, E>(name: String, needs_term: bool, begin: M) -> Self
    where
        M: FnOnce(N, CancellationToken) -> F + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        // The function itself may panic too, not only what it returns.
        let begin = |needs, stop| async move { begin(needs, stop).await.map_err(Into::into) }.boxed();
        Self { name, needs_term, begin: Box::new(begin) }
    }
}

/// What runs, and what went wrong first.
#[derive(Clone, Default)]
pub(super) struct Running(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Cancelled by the stop, and by the first failure.
    stopping: CancellationToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    begun: usize,
    names: BTreeMap<usize, String>,
    failed: Option<ManagerError>,
}

impl Running {
    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Something runs under this name, until it is said to have ended.
    pub(super) fn enter(&self, name: &str) -> Entry {
        let mut state = self.lock();
        state.begun += 1;
        let nth = state.begun;
        state.names.insert(nth, name.to_owned());
        Entry { running: self.clone(), nth }
    }

    /// Runs a part to its end. Its failure stops everything.
    pub(super) async fn attend<N>(self, part: Part<N>, needs: N, stop: CancellationToken) {
        let entry = self.enter(&part.name);
        let ended = AssertUnwindSafe((part.begin)(needs, stop)).catch_unwind().await;
        entry.ended();
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail(ManagerError::Part { part: part.name, error }),
            Err(panic) => {
                self.fail(ManagerError::Panicked { part: part.name, panic: panic_message(&*panic) });
            }
        }
    }

    /// Something went wrong: everything ends.
    pub(super) fn fail(&self, error: ManagerError) {
        tracing::error!(%error, "everything ends");
        self.lock().failed.get_or_insert(error);
        self.0.stopping.cancel();
    }

    /// What has begun and not ended.
    pub(super) fn unended(&self) -> Vec<String> {
        self.lock().names.values().cloned().collect()
    }

    pub(super) fn failure(&self) -> Option<ManagerError> {
        self.lock().failed.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that runs. It is unfinished for as long as it is not said to have ended, also when this was dropped.
pub(super) struct Entry {
    running: Running,
    nth: usize,
}

impl Entry {
    pub(super) fn ended(self) {
        self.running.lock().names.remove(&self.nth);
    }
}
