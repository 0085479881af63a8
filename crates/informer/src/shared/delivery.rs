//! The task that tells one handler of its events, one after another.

use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use futures_util::FutureExt;
use informer_model::ObjectKey;
use tokio::task;
use tracing::Span;

use super::{
    handler::{EventHandler, Notice},
    inbox::{Batch, Inbox, LIMIT, Work},
    registration::Member,
};
use crate::{
    Event, Object, Tombstone,
    metrics::{self, Measurement, Metrics},
    panic_message,
    sync::Arc,
    trace,
};

/// After so many events a handler lets others run. Several batches, so that one who is behind catches up with
/// a task that brings one each time.
const REST: usize = 4 * LIMIT;

tokio::task_local! {
    /// The handler whose callback is running here.
    static INSIDE: Arc<Member>;
}

/// The handler from whose callback this is called, if it is.
pub(super) fn inside() -> Option<Arc<Member>> {
    INSIDE.try_with(Arc::clone).ok()
}

/// Whether this is called from inside some handler's callback.
pub(crate) fn is_inside_a_handler() -> bool {
    INSIDE.try_with(|_| ()).is_ok()
}

/// Where panics are told.
#[derive(Clone)]
pub(super) struct Reporter {
    pub(super) informer: Arc<str>,
    pub(super) metrics: Option<Arc<dyn Metrics>>,
}

/// An event as a callback gets it.
#[derive(Clone, Copy)]
enum News<'a, K> {
    Added(&'a Object<K>, bool),
    Updated(&'a Object<K>, &'a Object<K>),
    Deleted(&'a Tombstone<K>),
}

impl<'a, K> From<&'a Notice<K>> for News<'a, K> {
    fn from(notice: &'a Notice<K>) -> Self {
        match &notice.event {
            Event::Added(object) => Self::Added(object, notice.initial),
            Event::Updated { old, new } => Self::Updated(old, new),
            Event::Deleted(tombstone) => Self::Deleted(tombstone),
        }
    }
}

/// Runs a future on this thread. Unlike the runtime's own way of doing so, this lets a callback use that.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// A handler and its inbox. Fields are dropped in this order: whoever waits for the end of the task waits for
/// the end of the handler too.
pub(super) struct Delivery<K, H> {
    handler: H,
    inbox: Arc<Inbox<K>>,
    reporter: Reporter,
    running: Running,
}

/// Says at the end of a task, however it ends, that no callback is running.
struct Running(Arc<Member>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.set_running(false);
    }
}

impl<K: Send + Sync + 'static, H: EventHandler<K>> Delivery<K, H> {
    pub(super) fn new(handler: H, inbox: Arc<Inbox<K>>, member: Arc<Member>, reporter: Reporter) -> Self {
        Self { handler, inbox, reporter, running: Running(member) }
    }

    /// Tells the handler everything until its inbox is closed.
    pub(super) async fn run(self) {
        let member = Arc::clone(&self.running.0);
        if self.handler.blocking() {
            self.run_blocking().await;
        } else {
            INSIDE.scope(member, self.run_here()).await;
        }
    }

    async fn run_here(mut self) {
        let mut since_rest = 0;
        while let Some(work) = self.inbox.take().await {
            since_rest += self.handle(&work).await;
            drop(work);
            if since_rest < REST {
                task::consume_budget().await;
            } else {
                task::yield_now().await;
                since_rest = 0;
            }
        }
    }

    /// Work by work goes to a thread that may be blocked.
    async fn run_blocking(mut self) {
        while let Some(work) = self.inbox.take().await {
            let member = Arc::clone(&self.running.0);
            let handled = task::spawn_blocking(move || {
                block_on(INSIDE.scope(member, async {
                    self.handle(&work).await;
                    self
                }))
            });
            // It fails only if the runtime is shutting down.
            let Ok(delivery) = handled.await else { return };
            self = delivery;
        }
    }

    /// Tells the handler of some events, until it is removed, and returns how many there were.
    async fn handle(&mut self, work: &Work<K>) -> usize {
        match work {
            Work::Replay(snapshot) => {
                for (told, object) in (1..).zip(snapshot.iter()) {
                    if !self.tell(News::Added(object, true)).await {
                        break;
                    }
                    if told % LIMIT == 0 {
                        task::yield_now().await;
                    }
                }
                LIMIT
            }
            Work::Shared(Batch { notices, changes: Some(changes), .. }) => {
                Box::pin(self.handle_traced(notices, changes)).await
            }
            Work::Shared(batch) => self.handle_notices(&batch.notices).await,
            Work::Merged(notices) => self.handle_notices(notices).await,
            Work::Synced => {
                self.running.0.synced();
                0
            }
        }
    }

    async fn handle_notices(&mut self, notices: &[Notice<K>]) -> usize {
        for notice in notices {
            if !self.tell(notice.into()).await {
                break;
            }
        }
        notices.len()
    }

    async fn handle_traced(&mut self, notices: &[Notice<K>], changes: &[Span]) -> usize {
        let member = Arc::clone(&self.running.0);
        for (notice, change) in notices.iter().zip(changes) {
            if !trace::told(&member.name, change, self.tell(notice.into())).await {
                break;
            }
        }
        notices.len()
    }

    /// Tells the handler of one event; `false` if it is removed and must hear nothing more.
    async fn tell(&mut self, news: News<'_, K>) -> bool {
        if self.inbox.is_closed() {
            return false;
        }
        let handler = &mut self.handler;
        let told = AssertUnwindSafe(async {
            match news {
                News::Added(object, initial) => handler.on_add(object, initial).await,
                News::Updated(old, new) => handler.on_update(old, new).await,
                News::Deleted(tombstone) => handler.on_delete(tombstone).await,
            }
        });
        if let Err(panic) = told.catch_unwind().await {
            let (event, key) = match news {
                News::Added(object, _) => ("add", object.key()),
                News::Updated(_, object) => ("update", object.key()),
                News::Deleted(tombstone) => ("delete", tombstone.key()),
            };
            self.report(event, key, &panic_message(&*panic));
        }
        self.inbox.handled();
        true
    }

    #[cold]
    fn report(&self, event: &'static str, key: &ObjectKey, panic: &str) {
        let Reporter { informer, metrics } = &self.reporter;
        let handler = &*self.running.0.name;
        tracing::error!(
            %informer, handler, event, %key, panic,
            "a handler panicked; the event counts as handled and the next one goes on"
        );
        if let Some(metrics) = metrics {
            metrics::guarded(informer, || {
                metrics.record(informer, Measurement::HandlerPanicked { handler });
            });
        }
    }
}
