//! A controller that runs over a server in this process.

use std::{
    future::Future,
    sync::{Arc, Mutex},
};

use informer::{
    controller::{Action, Controller, ControllerError},
    model::ObjectKey,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What was noted, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// What was noted since the last time.
    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap()).join(" ")
    }
}

pub(crate) struct Running {
    pub(crate) stop: CancellationToken,
    ended: JoinHandle<Result<(), ControllerError>>,
}

impl Running {
    pub(crate) fn start<F, R, E>(controller: Controller, reconcile: F) -> Self
    where
        F: Fn(ObjectKey) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, E>> + Send + 'static,
        E: std::fmt::Display + Send + 'static,
    {
        let stop = CancellationToken::new();
        let ended = tokio::spawn(controller.run(stop.clone(), reconcile));
        Self { stop, ended }
    }

    /// Notes every key, and that is all.
    pub(crate) fn noting(controller: Controller, log: &Log) -> Self {
        let log = log.clone();
        Self::start(controller, move |key| {
            log.note(key.name());
            async { Ok::<_, String>(Action::AwaitChange) }
        })
    }

    /// As if the process were killed.
    pub(crate) async fn kill(self) {
        self.ended.abort();
        assert!(self.ended.await.unwrap_err().is_cancelled());
    }

    pub(crate) async fn end(self) -> Result<(), ControllerError> {
        self.stop.cancel();
        self.ended.await.expect("it does not panic")
    }
}
