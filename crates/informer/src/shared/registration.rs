//! What a program holds of a handler that it has added.

use std::{
    fmt,
    sync::{Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use super::{delivery, inbox::Inbox};
use crate::{sync::Arc, until};

/// A handler that was added to an informer. It is cheap to clone (an `Arc`).
///
/// Dropping it does not remove the handler; [`remove`](Self::remove) does.
#[derive(Clone)]
pub struct Registration {
    member: Arc<Member>,
    inbox: Arc<dyn ErasedInbox>,
    pending: Weak<dyn PendingHandlers>,
}

/// Why a handler is not synced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandlerSyncError {
    /// The informer stopped before.
    #[error("the informer has stopped before handler {handler:?} had heard of all that existed")]
    Stopped {
        /// The handler's name.
        handler: String,
    },
    /// The handler was removed before.
    #[error("handler {handler:?} was removed before it had heard of all that existed")]
    Removed {
        /// The handler's name.
        handler: String,
    },
    /// It has not happened in the time that was given.
    #[error(
        "handler {handler:?} has not heard of all that existed after {within:?} (events waiting for it: {pending})"
    )]
    TimedOut {
        /// The handler's name.
        handler: String,
        /// How long was waited.
        within: Duration,
        /// How many events wait for the handler.
        pending: usize,
    },
}

/// What a removal could not wait for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// The handler's running callback waits itself, directly or not, for the handler from which it is removed. It
    /// hears nothing more once that callback has returned.
    #[error(
        "handler {handler:?} was removed while its callback is running, which waits for the one that removes it"
    )]
    Circle {
        /// The handler's name.
        handler: String,
    },
    /// The handler removes itself. It hears nothing more once its running callback has returned.
    #[error("handler {handler:?} was removed from inside its own callback, which is still running")]
    InsideHandler {
        /// The handler's name.
        handler: String,
    },
}

impl Registration {
    pub(super) fn new<K>(
        member: Arc<Member>,
        inbox: Arc<Inbox<K>>,
        pending: Weak<dyn PendingHandlers>,
    ) -> Self
    where
        K: Send + Sync + 'static,
    {
        Self { member, inbox, pending }
    }

    /// The handler's name.
    pub fn name(&self) -> &str {
        &self.member.name
    }

    /// Whether the handler has handled an event for each object that existed when it came, or, if it came
    /// before the first list was complete, for each object of that list.
    pub fn has_synced(&self) -> bool {
        self.member.progress.borrow().synced
    }

    /// Waits for [`has_synced`](Self::has_synced), at most so long.
    pub async fn wait_until_synced(&self, within: Duration) -> Result<(), HandlerSyncError> {
        let mut progress = self.member.progress.subscribe();
        let handler = || self.name().to_owned();
        let decided = tokio::select! {
            biased;
            decided = progress.wait_for(|now| now.synced || now.ended.is_some()) => decided,
            // What is later than any moment is never.
            () = until(Instant::now().checked_add(within)) => {
                let (handler, pending) = (handler(), self.pending());
                return Err(HandlerSyncError::TimedOut { handler, within, pending });
            }
        };
        let now = decided.map(|now| *now).unwrap_or_default();
        match now.ended {
            _ if now.synced => Ok(()),
            Some(End::Removed) => Err(HandlerSyncError::Removed { handler: handler() }),
            Some(End::Stopped) | None => Err(HandlerSyncError::Stopped { handler: handler() }),
        }
    }

    /// How many events wait for the handler.
    pub fn pending(&self) -> usize {
        self.inbox.pending()
    }

    /// Removes the handler, and waits for the callback that is running.
    ///
    /// What waits for the handler is dropped. Removing it again, or after the informer has stopped, does no
    /// harm. Called from inside the handler's own callback, or from that of a handler for which it is waiting itself,
    /// this does not wait, as that would be for ever, and says so.
    pub async fn remove(&self) -> Result<(), RemoveError> {
        self.withdraw();
        let handler = || self.name().to_owned();
        let _waiting = match delivery::inside() {
            Some(inside) if Arc::ptr_eq(&inside, &self.member) => {
                return Err(RemoveError::InsideHandler { handler: handler() });
            }
            Some(inside) => {
                Some(Waiting::begin(inside, &self.member).ok_or(RemoveError::Circle { handler: handler() })?)
            }
            None => None,
        };
        // The sender is in `self`, so this ends only when the task has.
        let _ = self.member.progress.subscribe().wait_for(|now| !now.running).await;
        Ok(())
    }

    /// Removes the handler without waiting.
    pub(crate) fn withdraw(&self) {
        self.member.end(End::Removed);
        self.inbox.close();
        if let Some(pending) = self.pending.upgrade() {
            pending.withdraw(self.member.id);
        }
    }

    pub(super) fn member(&self) -> &Member {
        &self.member
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (synced, pending) = (self.has_synced(), self.pending());
        write!(f, "Registration({}, synced: {synced}, {pending} events pending)", self.name())
    }
}

/// Which handlers' callbacks wait for the end of which. Removals from inside a handler are rare: one lock for all
/// will do.
static WAITS: Mutex<Vec<(Arc<Member>, Arc<Member>)>> = Mutex::new(Vec::new());

/// A callback that waits for the end of a handler.
struct Waiting(Arc<Member>, Arc<Member>);

impl Waiting {
    /// `None` if it would wait for itself in the end.
    fn begin(who: Arc<Member>, whom: &Arc<Member>) -> Option<Self> {
        let mut waits = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reached = vec![whom];
        while let Some(next) = reached.pop() {
            if Arc::ptr_eq(next, &who) {
                return None;
            }
            reached
                .extend(waits.iter().filter(|(waiting, _)| Arc::ptr_eq(waiting, next)).map(|(_, whom)| whom));
        }
        waits.push((Arc::clone(&who), Arc::clone(whom)));
        Some(Self(who, Arc::clone(whom)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waits = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
        let at = waits.iter().position(|(who, whom)| Arc::ptr_eq(who, &self.0) && Arc::ptr_eq(whom, &self.1));
        at.map(|at| waits.swap_remove(at));
    }
}

/// An inbox as a registration sees it, whatever the kind of its objects.
trait ErasedInbox: Send + Sync {
    fn pending(&self) -> usize;
    fn close(&self);
}

impl<K: Send + Sync + 'static> ErasedInbox for Inbox<K> {
    fn pending(&self) -> usize {
        self.pending()
    }

    fn close(&self) {
        self.close();
    }
}

/// The pending handlers, as a registration sees them.
pub(super) trait PendingHandlers: Send + Sync {
    /// Drops a handler that is still pending.
    fn withdraw(&self, id: u64);
}

/// A handler's identity and progress.
pub(super) struct Member {
    pub(super) id: u64,
    pub(super) name: Box<str>,
    progress: watch::Sender<Progress>,
}

#[derive(Clone, Copy, Default)]
struct Progress {
    synced: bool,
    /// Its task exists, so a callback may be running.
    running: bool,
    ended: Option<End>,
}

/// Why a handler hears nothing more.
#[derive(Clone, Copy)]
pub(super) enum End {
    Removed,
    Stopped,
}

impl Member {
    pub(super) fn new(id: u64, name: Option<&str>) -> Self {
        let name = name.map_or_else(|| format!("handler-{id}").into(), Into::into);
        Self { id, name, progress: watch::Sender::default() }
    }

    pub(super) fn synced(&self) {
        self.progress.send_modify(|now| now.synced = true);
    }

    pub(super) fn set_running(&self, running: bool) {
        self.progress.send_modify(|now| now.running = running);
    }

    /// The first end counts.
    pub(super) fn end(&self, end: End) {
        self.progress.send_modify(|now| now.ended = now.ended.or(Some(end)));
    }
}
