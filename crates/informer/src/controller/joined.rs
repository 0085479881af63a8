//! What fills a controller's queue: handlers of informers that know which items an event is about, streams, and clocks.

use std::{
    future::{Future, ready},
    hash::Hash,
    panic::AssertUnwindSafe,
    time::Duration,
};

use futures_util::{FutureExt, Stream, StreamExt, future::try_join_all, stream::BoxStream};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;

use super::traced::Traces;
use crate::{
    AnyInformer, Event, EventHandler, Object, Registration, SharedInformer, Tombstone, panic_message,
    shared::{AddHandlerError, HandlerSyncError},
    sync::Arc,
    trace,
    workqueue::WorkQueue,
};

/// What existed before, and what is only shown again, waits behind what changes.
pub(crate) const NOT_NEWS: i32 = -100;

/// Something that fills a queue.
pub(super) trait Source<T>: Send + Sync {
    /// The informer whose cache has to be complete first.
    fn informer(&self) -> Option<&dyn AnyInformer> {
        None
    }

    fn join(&self, queue: &WorkQueue<T>, traces: &Traces<T>) -> Result<Joined, AddHandlerError>;
}

/// For as long as this is kept, the queue is filled.
pub(super) enum Joined {
    Handler(Registration),
    Task(#[expect(dead_code, reason = "dropping it ends the task")] AbortOnDropHandle<()>),
}

pub(super) struct OfInformer<K, F> {
    name: String,
    informer: SharedInformer<K>,
    items: Arc<F>,
    priority: i32,
}

impl<K: Send + Sync + 'static, F> OfInformer<K, F> {
    pub(super) fn source<T>(
        controller: &str,
        informer: SharedInformer<K>,
        items: F,
        priority: i32,
    ) -> Box<dyn Source<T>>
    where
        T: Hash + Eq + Clone + Send + 'static,
        F: Fn(&Event<K>) -> Vec<T> + Send + Sync + 'static,
    {
        let name = format!("controller {controller}");
        Box::new(Self { name, informer, items: Arc::new(items), priority })
    }
}

impl<T, K, F> Source<T> for OfInformer<K, F>
where
    T: Hash + Eq + Clone + Send + 'static,
    K: Send + Sync + 'static,
    F: Fn(&Event<K>) -> Vec<T> + Send + Sync + 'static,
{
    fn informer(&self) -> Option<&dyn AnyInformer> {
        Some(&self.informer)
    }

    fn join(&self, queue: &WorkQueue<T>, traces: &Traces<T>) -> Result<Joined, AddHandlerError> {
        let (name, queue, items) = (self.name.clone(), queue.clone(), Arc::clone(&self.items));
        let filler = Filler { name, queue, traces: traces.clone(), items, priority: self.priority };
        self.informer.add_handler(filler).map(Joined::Handler)
    }
}

/// Hears of changes and adds what they are about to the queue.
struct Filler<T, F> {
    name: String,
    queue: WorkQueue<T>,
    traces: Traces<T>,
    items: Arc<F>,
    priority: i32,
}

impl<T: Hash + Eq + Clone + Send + 'static, F> Filler<T, F> {
    fn add<K>(&self, event: &Event<K>, is_news: bool)
    where
        F: Fn(&Event<K>) -> Vec<T>,
    {
        let priority = if is_news { self.priority } else { self.priority.saturating_add(NOT_NEWS) };
        let change = trace::change();
        for item in (self.items)(event) {
            if let Some(change) = &change {
                self.traces.queued(&self.name, &item, change);
            }
            self.queue.add_with_priority(item, priority);
        }
    }
}

impl<T, K, F> EventHandler<K> for Filler<T, F>
where
    T: Hash + Eq + Clone + Send + 'static,
    K: Send + Sync + 'static,
    F: Fn(&Event<K>) -> Vec<T> + Send + Sync + 'static,
{
    fn on_add(&mut self, object: &Object<K>, initial: bool) -> impl Future<Output = ()> + Send {
        self.add(&Event::Added(object.clone()), !initial);
        ready(())
    }

    fn on_update(&mut self, old: &Object<K>, new: &Object<K>) -> impl Future<Output = ()> + Send {
        let event = Event::Updated { old: old.clone(), new: new.clone() };
        self.add(&event, !event.is_resync());
        ready(())
    }

    fn on_delete(&mut self, gone: &Tombstone<K>) -> impl Future<Output = ()> + Send {
        self.add(&Event::Deleted(gone.clone()), true);
        ready(())
    }

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// A stream of items. It is read as long as the controller runs; its end ends nothing else.
pub(super) struct OfStream<T> {
    controller: String,
    items: crate::sync::Mutex<Option<BoxStream<'static, T>>>,
    priority: i32,
}

impl<T> OfStream<T> {
    pub(super) fn new(
        controller: &str,
        items: impl Stream<Item = T> + Send + 'static,
        priority: i32,
    ) -> Self {
        let items = crate::sync::Mutex::new(Some(items.boxed()));
        Self { controller: controller.to_owned(), items, priority }
    }

    /// The items that a function says after each period.
    pub(super) fn periodic<I>(
        controller: &str,
        period: Duration,
        items: impl Fn() -> I + Send + 'static,
    ) -> Self
    where
        I: IntoIterator<Item = T>,
        T: Send + 'static,
    {
        let ticks = async_ticks(period);
        let items = ticks.flat_map(move |()| {
            let items: Vec<T> = items().into_iter().collect();
            futures_util::stream::iter(items)
        });
        Self::new(controller, items, NOT_NEWS)
    }
}

/// The moments after each period; those that were missed are left out. The clock begins with the first look.
fn async_ticks(period: Duration) -> impl Stream<Item = ()> + Send {
    futures_util::stream::unfold(None, move |ticks| async move {
        let mut ticks = match ticks {
            Some(ticks) => ticks,
            None => {
                let mut ticks = interval(period);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
                ticks.tick().await;
                ticks
            }
        };
        ticks.tick().await;
        Some(((), Some(ticks)))
    })
}

impl<T: Hash + Eq + Clone + Send + 'static> Source<T> for OfStream<T> {
    fn join(&self, queue: &WorkQueue<T>, _: &Traces<T>) -> Result<Joined, AddHandlerError> {
        let items = self.items.lock().unwrap_or_else(crate::sync::PoisonError::into_inner).take();
        let (controller, queue, priority) = (self.controller.clone(), queue.clone(), self.priority);
        let filling = async move {
            let Some(mut items) = items else { return };
            let reading = async {
                while let Some(item) = items.next().await {
                    queue.add_with_priority(item, priority);
                }
            };
            if let Err(panic) = AssertUnwindSafe(reading).catch_unwind().await {
                let panic = panic_message(&*panic);
                tracing::error!(controller, panic, "a stream of items panicked and is not read any more");
            }
        };
        Ok(Joined::Task(AbortOnDropHandle::new(tokio::spawn(filling))))
    }
}

/// A queue that is filled. When this is dropped it no longer is, and the queue is shut down.
pub(super) struct Fed<T: Hash + Eq + Clone + Send + 'static> {
    joined: Vec<Joined>,
    queue: WorkQueue<T>,
}

impl<T: Hash + Eq + Clone + Send + 'static> Fed<T> {
    pub(super) fn join(
        sources: &[Box<dyn Source<T>>],
        queue: &WorkQueue<T>,
        traces: &Traces<T>,
    ) -> Result<Self, AddHandlerError> {
        let mut fed = Self { joined: Vec::with_capacity(sources.len()), queue: queue.clone() };
        for source in sources {
            fed.joined.push(source.join(queue, traces)?);
        }
        Ok(fed)
    }

    fn handlers(&self) -> impl Iterator<Item = &Registration> {
        self.joined.iter().filter_map(|joined| match joined {
            Joined::Handler(registration) => Some(registration),
            Joined::Task(_) => None,
        })
    }

    /// Waits until all that exists is in the queue.
    pub(super) async fn synced(&self) -> Result<(), HandlerSyncError> {
        let each = self.handlers().map(|registration| registration.wait_until_synced(Duration::MAX));
        try_join_all(each).await.map(drop)
    }
}

impl<T: Hash + Eq + Clone + Send + 'static> Drop for Fed<T> {
    fn drop(&mut self) {
        self.handlers().for_each(Registration::withdraw);
        self.queue.shut_down();
    }
}
