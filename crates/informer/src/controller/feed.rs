//! What fills a controller's queue: a handler of an informer that knows which items an event is about.

use std::{
    future::{Future, ready},
    hash::Hash,
    time::Duration,
};

use futures_util::future::try_join_all;

use crate::{
    AnyInformer, Event, EventHandler, Object, Registration, SharedInformer, Tombstone,
    shared::{AddHandlerError, HandlerSyncError},
    sync::Arc,
    workqueue::WorkQueue,
};

/// What existed before, and what is only shown again, waits behind what changes.
pub(crate) const NOT_NEWS: i32 = -100;

/// An informer, and how it fills a queue.
pub(super) trait Feed<T>: Send + Sync {
    fn informer(&self) -> &dyn AnyInformer;
    fn join(&self, queue: &WorkQueue<T>) -> Result<Registration, AddHandlerError>;
}

pub(super) fn new<T, K, F, I>(controller: &str, informer: &SharedInformer<K>, items: F) -> Box<dyn Feed<T>>
where
    T: Hash + Eq + Clone + Send + 'static,
    K: Send + Sync + 'static,
    F: Fn(&Event<K>) -> I + Send + Sync + 'static,
    I: IntoIterator<Item = T>,
{
    let add = move |event: &Event<K>, queue: &WorkQueue<T>, priority| {
        items(event).into_iter().for_each(|item| queue.add_with_priority(item, priority));
    };
    Box::new(OfInformer {
        name: format!("controller {controller}"),
        informer: informer.clone(),
        add: Arc::new(add),
    })
}

struct OfInformer<K, F> {
    name: String,
    informer: SharedInformer<K>,
    add: Arc<F>,
}

impl<T, K, F> Feed<T> for OfInformer<K, F>
where
    T: Send + 'static,
    K: Send + Sync + 'static,
    F: Fn(&Event<K>, &WorkQueue<T>, i32) + Send + Sync + 'static,
{
    fn informer(&self) -> &dyn AnyInformer {
        &self.informer
    }

    fn join(&self, queue: &WorkQueue<T>) -> Result<Registration, AddHandlerError> {
        let (name, queue, add) = (self.name.clone(), queue.clone(), Arc::clone(&self.add));
        self.informer.add_handler(Filler { name, queue, add })
    }
}

/// Hears of changes and adds what they are about to the queue.
struct Filler<T, F> {
    name: String,
    queue: WorkQueue<T>,
    add: Arc<F>,
}

impl<T, K, F> EventHandler<K> for Filler<T, F>
where
    T: Send + 'static,
    K: Send + Sync + 'static,
    F: Fn(&Event<K>, &WorkQueue<T>, i32) + Send + Sync + 'static,
{
    fn on_add(&mut self, object: &Object<K>, initial: bool) -> impl Future<Output = ()> + Send {
        let priority = if initial { NOT_NEWS } else { 0 };
        (self.add)(&Event::Added(object.clone()), &self.queue, priority);
        ready(())
    }

    fn on_update(&mut self, old: &Object<K>, new: &Object<K>) -> impl Future<Output = ()> + Send {
        let event = Event::Updated { old: old.clone(), new: new.clone() };
        let priority = if event.is_resync() { NOT_NEWS } else { 0 };
        (self.add)(&event, &self.queue, priority);
        ready(())
    }

    fn on_delete(&mut self, gone: &Tombstone<K>) -> impl Future<Output = ()> + Send {
        (self.add)(&Event::Deleted(gone.clone()), &self.queue, 0);
        ready(())
    }

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// A queue that informers fill. When this is dropped they no longer do, and the queue is shut down.
pub(super) struct Fed<T: Hash + Eq + Clone + Send + 'static> {
    registrations: Vec<Registration>,
    queue: WorkQueue<T>,
}

impl<T: Hash + Eq + Clone + Send + 'static> Fed<T> {
    pub(super) fn join(feeds: &[Box<dyn Feed<T>>], queue: &WorkQueue<T>) -> Result<Self, AddHandlerError> {
        let mut fed = Self { registrations: Vec::with_capacity(feeds.len()), queue: queue.clone() };
        for feed in feeds {
            fed.registrations.push(feed.join(queue)?);
        }
        Ok(fed)
    }

    /// Waits until all that exists is in the queue.
    pub(super) async fn synced(&self) -> Result<(), HandlerSyncError> {
        let each =
            self.registrations.iter().map(|registration| registration.wait_until_synced(Duration::MAX));
        try_join_all(each).await.map(drop)
    }
}

impl<T: Hash + Eq + Clone + Send + 'static> Drop for Fed<T> {
    fn drop(&mut self) {
        self.registrations.iter().for_each(Registration::withdraw);
        self.queue.shut_down();
    }
}
