//! Handlers of events: the trait that a program implements, and a handler made of closures.

use std::{
    fmt,
    future::{Future, ready},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use informer_model::ObjectKey;

use super::filter::Filtered;
use crate::{Event, Object, Tombstone};

/// An event on its way to a handler.
#[derive(Debug)]
pub struct Notice<K> {
    /// What happened.
    pub event: Event<K>,
    /// An `Added` that tells of what existed before: it was in the first list, or in the cache when the
    /// handler came.
    pub initial: bool,
}

impl<K> Notice<K> {
    /// The key of the object that this is about.
    pub fn key(&self) -> &ObjectKey {
        self.event.key()
    }

    /// Whether nothing has happened and the object is only shown again.
    pub fn is_resync(&self) -> bool {
        self.event.is_resync()
    }
}

impl<K> Clone for Notice<K> {
    fn clone(&self) -> Self {
        Self { event: self.event.clone(), initial: self.initial }
    }
}

/// Hears of every change of a cache, after the cache has changed.
///
/// Events come one at a time, those of one object in their order, and no handler waits for another. One that
/// falls more than 1,024 events behind hears less often, but always ends with the right last state: what
/// waits for one object becomes one event. A panic is reported and counted, and the next event goes on.
///
/// A callback may await whatever it likes. If it blocks its thread instead, say so with
/// [`blocking`](Self::blocking).
///
/// ```
/// use informer::{EventHandler, Object, Tombstone};
/// use k8s_openapi::api::core::v1::Pod;
/// use tokio::sync::mpsc;
///
/// /// Sends the key of every pod that came or went to a worker, and waits if the worker is busy.
/// struct Forward(mpsc::Sender<String>);
///
/// impl EventHandler<Pod> for Forward {
///     async fn on_add(&mut self, pod: &Object<Pod>, _initial: bool) {
///         let _ = self.0.send(pod.key().to_string()).await;
///     }
///     async fn on_delete(&mut self, gone: &Tombstone<Pod>) {
///         let _ = self.0.send(gone.key().to_string()).await;
///     }
/// }
/// ```
pub trait EventHandler<K>: Send + 'static {
    /// The object is in the cache and was not before. `initial`: it existed before this handler listened.
    fn on_add(&mut self, object: &Object<K>, initial: bool) -> impl Future<Output = ()> + Send {
        let _ = (object, initial);
        ready(())
    }

    /// The object has changed, or, with an unchanged version, is shown again by a resync.
    fn on_update(&mut self, old: &Object<K>, new: &Object<K>) -> impl Future<Output = ()> + Send {
        let _ = (old, new);
        ready(())
    }

    /// The object is no longer in the cache.
    fn on_delete(&mut self, gone: &Tombstone<K>) -> impl Future<Output = ()> + Send {
        let _ = gone;
        ready(())
    }

    /// What the handler is called in reports and metrics; `None` numbers it: `handler-3`.
    fn name(&self) -> Option<&str> {
        None
    }

    /// How often all objects of the cache are to be shown again; `None` is the informer's default, zero
    /// is never. A second is the least, and a handler that comes after the start cannot ask for more often
    /// than the informer checks.
    fn resync(&self) -> Option<Duration> {
        None
    }

    /// Whether the callbacks may block their thread. They then run on tokio's pool for that.
    fn blocking(&self) -> bool {
        false
    }

    /// Whether what waits for one object may become one event when the handler is far behind. A handler that says no
    /// hears of everything, and what waits for it has no bound: it must be quick.
    fn merges(&self) -> bool {
        true
    }

    /// This handler, for those objects only that pass a test.
    ///
    /// An object that begins to pass is added, one that no longer passes is deleted: the handler hears of a
    /// world that has only these objects.
    fn filter<F>(self, keep: F) -> Filtered<Self, F>
    where
        Self: Sized,
        F: FnMut(&Object<K>) -> bool + Send + 'static,
    {
        Filtered::new(self, keep)
    }
}

/// What is left to await of a callback, if it is asynchronous.
type Rest = Option<BoxFuture<'static, ()>>;
type OnAdd<K> = Box<dyn FnMut(&Object<K>, bool) -> Rest + Send>;
type OnUpdate<K> = Box<dyn FnMut(&Object<K>, &Object<K>) -> Rest + Send>;
type OnDelete<K> = Box<dyn FnMut(&Tombstone<K>) -> Rest + Send>;

/// A handler made of closures, each of which may be left out.
///
/// ```
/// use informer::Handler;
/// use k8s_openapi::api::core::v1::Pod;
/// # fn add_handler(_: impl informer::EventHandler<Pod>) {}
/// add_handler(
///     Handler::<Pod>::new()
///         .on_add(|pod, initial| println!("+ {}{}", pod.key(), if initial { " (was there)" } else { "" }))
///         .on_update(|_old, new| println!("~ {}", new.key()))
///         .on_delete_async(async |gone| println!("- {} (final state known: {})", gone.key(), gone.final_state_known())),
/// );
/// ```
pub struct Handler<K> {
    name: Option<String>,
    resync: Option<Duration>,
    blocking: bool,
    unmerged: bool,
    on_add: Option<OnAdd<K>>,
    on_update: Option<OnUpdate<K>>,
    on_delete: Option<OnDelete<K>>,
}

impl<K> Handler<K> {
    /// A handler that does nothing yet.
    #[must_use]
    pub fn new() -> Self {
        let (blocking, unmerged) = (false, false);
        Self { name: None, resync: None, blocking, unmerged, on_add: None, on_update: None, on_delete: None }
    }

    /// What the handler is called in reports and metrics.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How often all objects are to be shown again; see [`EventHandler::resync`].
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// The closures may block their thread; see [`EventHandler::blocking`].
    #[must_use]
    pub fn blocking(mut self) -> Self {
        self.blocking = true;
        self
    }

    /// Every event is told, however many wait; see [`EventHandler::merges`].
    #[must_use]
    pub fn unmerged(mut self) -> Self {
        self.unmerged = true;
        self
    }

    /// Called with each object that is new, and whether it existed before the handler listened.
    #[must_use]
    pub fn on_add(mut self, mut call: impl FnMut(&Object<K>, bool) + Send + 'static) -> Self {
        self.on_add = Some(Box::new(move |object, initial| {
            call(object, initial);
            None
        }));
        self
    }

    /// The same, asynchronous: the next event is told when the future has ended. It has the handles to keep.
    #[must_use]
    pub fn on_add_async<F>(mut self, mut call: impl FnMut(Object<K>, bool) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_add = Some(Box::new(move |object, initial| Some(call(object.clone(), initial).boxed())));
        self
    }

    /// Called with the old and the new state of each object that has changed.
    #[must_use]
    pub fn on_update(mut self, mut call: impl FnMut(&Object<K>, &Object<K>) + Send + 'static) -> Self {
        self.on_update = Some(Box::new(move |old, new| {
            call(old, new);
            None
        }));
        self
    }

    /// The same, asynchronous.
    #[must_use]
    pub fn on_update_async<F>(
        mut self,
        mut call: impl FnMut(Object<K>, Object<K>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_update = Some(Box::new(move |old, new| Some(call(old.clone(), new.clone()).boxed())));
        self
    }

    /// Called with each object that is gone.
    #[must_use]
    pub fn on_delete(mut self, mut call: impl FnMut(&Tombstone<K>) + Send + 'static) -> Self {
        self.on_delete = Some(Box::new(move |gone| {
            call(gone);
            None
        }));
        self
    }

    /// The same, asynchronous.
    #[must_use]
    pub fn on_delete_async<F>(mut self, mut call: impl FnMut(Tombstone<K>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_delete = Some(Box::new(move |gone| Some(call(gone.clone()).boxed())));
        self
    }
}

impl<K> Default for Handler<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for Handler<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, resync, blocking, .. } = self;
        let mut text = f.debug_struct("Handler");
        text.field("name", name).field("resync", resync).field("blocking", blocking).finish_non_exhaustive()
    }
}

impl<K: Send + Sync + 'static> EventHandler<K> for Handler<K> {
    async fn on_add(&mut self, object: &Object<K>, initial: bool) {
        if let Some(rest) = self.on_add.as_mut().and_then(|call| call(object, initial)) {
            rest.await;
        }
    }

    async fn on_update(&mut self, old: &Object<K>, new: &Object<K>) {
        if let Some(rest) = self.on_update.as_mut().and_then(|call| call(old, new)) {
            rest.await;
        }
    }

    async fn on_delete(&mut self, gone: &Tombstone<K>) {
        if let Some(rest) = self.on_delete.as_mut().and_then(|call| call(gone)) {
            rest.await;
        }
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn resync(&self) -> Option<Duration> {
        self.resync
    }

    fn blocking(&self) -> bool {
        self.blocking
    }

    fn merges(&self) -> bool {
        !self.unmerged
    }
}
