//! An API server without a network: for tests of programs that use informers, and for our own.
//!
//! In come writes, and misbehaviour that a test asks for. Out come lists and watches, by the rules of a real
//! server: versions, pages, expiry, bookmarks, selectors. Nothing here is left to chance, and time is tokio's:
//! with a paused clock a day of watching takes no time.

mod listing;
mod misbehaviour;
mod request;
mod state;
mod watching;

use std::{
    any::type_name,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{
    future::{BoxFuture, FutureExt},
    stream::{self, StreamExt},
};
use informer_model::{ObjectKey, ResourceVersion};
use kube::Resource;
use tokio::sync::Notify;

use super::{ListOptions, ListStream, ListWatch, SourceError, WatchStream};
use crate::{Object, ObjectError};
use request::Filter;
use state::State;
use watching::Watching;

pub use request::Request;

/// An API server in memory, for one kind. It is cheap to clone (an `Arc`); all clones are the same server.
///
/// Everything that was written can be listed and watched at any later time: history is kept until
/// [`compact`](Self::compact). The misbehaviour that a client has to live with is had by asking for it.
///
/// ```
/// use futures_util::StreamExt;
/// use informer::source::{ListOptions, ListWatch, MemorySource, WatchChange, WatchItem};
/// use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = MemorySource::new();
/// let metadata = ObjectMeta { name: Some("node-1".into()), ..Default::default() };
/// let version = server.put(Node { metadata, ..Default::default() })?;
///
/// let mut watch = server.watch(ListOptions { resource_version: version, ..Default::default() }).await?;
/// server.delete(&"node-1".parse()?);
/// let Some(Ok(WatchItem::Object(WatchChange::Deleted, node))) = watch.next().await else { panic!() };
/// assert_eq!(node.key().name(), "node-1");
/// # Ok(())
/// # }
/// ```
pub struct MemorySource<K> {
    shared: Arc<Shared<K>>,
    namespace: Option<Arc<str>>,
}

/// What all clones of a source and their watches have in common.
struct Shared<K> {
    state: Mutex<State<K>>,
    /// Wakes the watches in the order in which they wait: there may be something new for them.
    changed: Notify,
}

impl<K> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and lets the watches look.
    fn change<R>(&self, change: impl FnOnce(&mut State<K>) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_waiters();
        result
    }
}

impl<K> MemorySource<K> {
    /// An empty server.
    pub fn new() -> Self {
        let shared = Shared { state: Mutex::new(State::new()), changed: Notify::new() };
        Self { shared: Arc::new(shared), namespace: None }
    }

    /// The same server, of which one namespace is listed and watched. Writes and all else are the server's,
    /// whatever the namespace.
    #[must_use]
    pub fn scoped(&self, namespace: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), namespace: Some(namespace.into()) }
    }

    /// The newest version.
    pub fn version(&self) -> ResourceVersion {
        self.shared.lock().version().into()
    }

    /// An object as it is now.
    pub fn get(&self, key: &ObjectKey) -> Option<Object<K>> {
        self.shared.lock().get(key)
    }

    /// All objects as they are now, those of the namespace if there is one, in the order of keys.
    pub fn objects(&self) -> Vec<Object<K>> {
        let filter = Filter::of_namespace(self.namespace.clone());
        self.shared.lock().objects().filter(|object| filter.matches(object)).cloned().collect()
    }

    /// How many lists were asked for, one for each page, whatever the answer was.
    pub fn lists(&self) -> usize {
        self.shared.lock().requests.iter().filter(|request| matches!(request, Request::List(_))).count()
    }

    /// How many watches were asked for, whatever the answer was.
    pub fn watches(&self) -> usize {
        self.shared.lock().requests.iter().filter(|request| matches!(request, Request::Watch(_))).count()
    }

    /// How many watches are open now: neither ended by this server nor dropped by the client.
    pub fn open_watches(&self) -> usize {
        self.shared.lock().open_watches()
    }

    /// Everything that was asked for, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }
}

impl<K: Resource + Clone> MemorySource<K> {
    /// Creates an object, or changes the one with its key, and returns the version that this has.
    ///
    /// The object gets that version. If it has no uid it keeps the one that it had, or gets one.
    pub fn put(&self, object: K) -> Result<ResourceVersion, ObjectError> {
        self.shared.change(|state| state.put(object)).map(Into::into)
    }

    /// Deletes an object, and returns the version of the deletion; none if there is no such object.
    pub fn delete(&self, key: &ObjectKey) -> Option<ResourceVersion> {
        self.shared.change(|state| state.delete(key)).map(Into::into)
    }
}

impl<K: Resource + Clone + Send + Sync + 'static> ListWatch<K> for MemorySource<K> {
    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn description(&self) -> String {
        let path = type_name::<K>().split('<').next().unwrap_or_default();
        let kind = path.rsplit("::").next().unwrap_or_default();
        match &self.namespace {
            Some(namespace) => format!("{kind} objects in memory, in namespace {namespace:?}"),
            None => format!("{kind} objects in memory"),
        }
    }

    fn list(&self, options: ListOptions) -> BoxFuture<'static, Result<ListStream<K>, SourceError>> {
        let source = self.clone();
        async move {
            let items = source.shared.lock().list(source.namespace, options)?;
            Ok(stream::iter(items).boxed())
        }
        .boxed()
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'static, Result<WatchStream<K>, SourceError>> {
        let source = self.clone();
        async move { Ok(Watching::open(source.shared, source.namespace, options)?.into_stream().boxed()) }
            .boxed()
    }
}

impl<K> Default for MemorySource<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Clone for MemorySource<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), namespace: self.namespace.clone() }
    }
}

impl<K> fmt::Debug for MemorySource<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        write!(f, "MemorySource({} objects at version {})", state.objects().count(), state.version())
    }
}
