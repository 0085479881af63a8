//! Where new handlers wait until the informer's task takes them in, between two batches.

use std::{sync::Weak, time::Duration};

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::{
    delivery::{Delivery, Reporter},
    handler::EventHandler,
    inbox::Inbox,
    registration::{End, Member, PendingHandlers, Registration},
    subscription::Subscription,
};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why a handler was not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddHandlerError {
    /// The informer has stopped.
    #[error("handler {handler:?} was not added: the informer has stopped and would never call it")]
    Stopped {
        /// The handler's name.
        handler: String,
    },
}

/// The pending handlers: shared by everything that adds one and the task that admits them.
pub(crate) struct Joining<K> {
    state: Mutex<State<K>>,
    arrived: Notify,
}

struct State<K> {
    last_id: u64,
    newcomers: Vec<Newcomer<K>>,
    stopped: bool,
}

/// Makes the task that tells a handler of its events.
type Start = Box<dyn FnOnce(Reporter) -> BoxFuture<'static, ()> + Send>;

/// A handler or subscription that hears nothing yet.
pub(super) struct Newcomer<K> {
    pub(super) member: Arc<Member>,
    pub(super) inbox: Arc<Inbox<K>>,
    pub(super) resync: Option<Duration>,
    /// `None` for a subscription: polling the stream takes the events out.
    pub(super) start: Option<Start>,
}

impl<K: Send + Sync + 'static> Joining<K> {
    /// Adds a handler, before the start or at any time until the stop.
    pub(crate) fn add<H: EventHandler<K>>(
        self: &Arc<Self>,
        handler: H,
    ) -> Result<Registration, AddHandlerError> {
        let (name, resync) = (handler.name().map(str::to_owned), handler.resync());
        self.register(name.as_deref(), resync, handler.merges(), |member, inbox| {
            let (member, inbox) = (Arc::clone(member), Arc::clone(inbox));
            Some(Box::new(|reporter| Box::pin(Delivery::new(handler, inbox, member, reporter).run())))
        })
        .map(|(registration, _)| registration)
    }

    /// Adds a stream of all events.
    pub(crate) fn subscribe(self: &Arc<Self>) -> Result<Subscription<K>, AddHandlerError> {
        let (registration, inbox) = self.register(None, None, true, |_, _| None)?;
        Ok(Subscription::new(registration, inbox))
    }

    fn register(
        self: &Arc<Self>,
        name: Option<&str>,
        resync: Option<Duration>,
        merges: bool,
        start: impl FnOnce(&Arc<Member>, &Arc<Inbox<K>>) -> Option<Start>,
    ) -> Result<(Registration, Arc<Inbox<K>>), AddHandlerError> {
        let mut state = self.lock();
        state.last_id += 1;
        let member = Arc::new(Member::new(state.last_id, name));
        if state.stopped {
            return Err(AddHandlerError::Stopped { handler: member.name.to_string() });
        }
        let inbox = Arc::new(Inbox::new(merges));
        let start = start(&member, &inbox);
        let pending: Weak<Self> = Arc::downgrade(self);
        let registration = Registration::new(Arc::clone(&member), Arc::clone(&inbox), pending);
        state.newcomers.push(Newcomer { member, inbox: Arc::clone(&inbox), resync, start });
        drop(state);
        self.arrived.notify_one();
        Ok((registration, inbox))
    }
}

impl<K> Joining<K> {
    pub(crate) fn new() -> Arc<Self> {
        let state = State { last_id: 0, newcomers: Vec::new(), stopped: false };
        Arc::new(Self { state: Mutex::new(state), arrived: Notify::new() })
    }

    /// Returns when handlers may have come since it last returned.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Takes the newcomers out, to be started at once.
    pub(super) fn take(&self) -> Vec<Newcomer<K>> {
        let mut state = self.lock();
        for newcomer in &state.newcomers {
            // A removal that comes now finds no newcomer here, and has to wait for the task.
            newcomer.member.set_running(newcomer.start.is_some());
        }
        std::mem::take(&mut state.newcomers)
    }

    /// Admits no more handlers, and tells those that are pending.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        let newcomers = std::mem::take(&mut state.newcomers);
        drop(state);
        for Newcomer { member, inbox, .. } in newcomers {
            member.end(End::Stopped);
            inbox.close();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        // Nothing of a user's runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Send + Sync + 'static> PendingHandlers for Joining<K> {
    fn withdraw(&self, id: u64) {
        let mut state = self.lock();
        let newcomer = state.newcomers.iter().position(|newcomer| newcomer.member.id == id);
        let newcomer = newcomer.map(|at| state.newcomers.remove(at));
        // The handler's own `drop` may do anything.
        drop(state);
        drop(newcomer);
    }
}

impl<K> Drop for Joining<K> {
    fn drop(&mut self) {
        self.stop();
    }
}
