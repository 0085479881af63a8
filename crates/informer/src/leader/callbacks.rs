//! Callbacks for what happens in an election.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use futures_util::{FutureExt, future::BoxFuture};

use super::{Leadership, leadership::Lost};
use crate::panic_message;

type OnStarted<'a> = Box<dyn FnMut(Leadership) -> BoxFuture<'a, ()> + Send + 'a>;
type OnStopped<'a> = Box<dyn FnMut(&Lost) + Send + 'a>;
type OnNewLeader<'a> = Box<dyn FnMut(&str) + Send + 'a>;

/// What to do when a term begins, when it is over, and when somebody else begins to lead.
///
/// The functions are called one at a time, in the order of what happened. One that is not given does nothing.
#[derive(Default)]
#[must_use]
pub struct Callbacks<'a> {
    on_started: Option<OnStarted<'a>>,
    on_stopped: Option<OnStopped<'a>>,
    on_new_leader: Option<OnNewLeader<'a>>,
}

impl<'a> Callbacks<'a> {
    /// No callbacks.
    pub fn new() -> Self {
        Self::default()
    }

    /// What to do while this one leads. It is dropped when the term is over; if it ends before, the term goes on.
    pub fn on_started<F, W>(mut self, mut work: F) -> Self
    where
        F: FnMut(Leadership) -> W + Send + 'a,
        W: Future<Output = ()> + Send + 'a,
    {
        self.on_started = Some(Box::new(move |leadership| work(leadership).boxed()));
        self
    }

    /// What to do when a term is over, and why it is. It is called once for each time that
    /// [`on_started`](Self::on_started) was, after its work was dropped and before the Lease is given back.
    pub fn on_stopped(mut self, tell: impl FnMut(&Lost) + Send + 'a) -> Self {
        self.on_stopped = Some(Box::new(tell));
        self
    }

    /// Is told the identity of each new leader, this one included.
    pub fn on_new_leader(mut self, tell: impl FnMut(&str) + Send + 'a) -> Self {
        self.on_new_leader = Some(Box::new(tell));
        self
    }

    pub(super) fn started(&mut self, leadership: Leadership) -> BoxFuture<'a, ()> {
        match &mut self.on_started {
            Some(work) => work(leadership),
            None => async {}.boxed(),
        }
    }

    pub(super) fn stopped(&mut self, why: &Lost) {
        if let Some(tell) = &mut self.on_stopped {
            isolated("on_stopped", || tell(why));
        }
    }

    pub(super) fn new_leader(&mut self, leader: &str) {
        if let Some(tell) = &mut self.on_new_leader {
            isolated("on_new_leader", || tell(leader));
        }
    }
}

/// A function that is only told something must not end the election.
fn isolated(name: &'static str, tell: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(tell)) {
        let message = panic_message(&*panic);
        tracing::error!(name, message, "a callback of the election panicked");
    }
}

impl fmt::Debug for Callbacks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks")
            .field("on_started", &self.on_started.is_some())
            .field("on_stopped", &self.on_stopped.is_some())
            .field("on_new_leader", &self.on_new_leader.is_some())
            .finish()
    }
}
