//! The shared informer: one list and watch, one cache, any number of handlers.
//!
//! [`SharedInformer::run`] is the whole of it: reflectors fill queues, the controller applies what comes out to
//! the store, and the processor tells the handlers, each of which has its own task and its own pace.

mod backlog;
mod builder;
mod controller;
mod delivery;
mod filter;
mod handler;
mod inbox;
mod joining;
pub(crate) mod options;
mod processor;
mod registration;
mod resync;
mod subscription;

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use informer_model::{ObjectKey, ResourceVersion};
use tokio::task::JoinError;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::Instrument;

use crate::{
    Namespaces, Object,
    coverage::{Coverage, SourceOf, Within},
    health::{Health, Life, SyncError},
    monitor::Monitor,
    panic_message,
    pipelines::PipelineConfig,
    source::{ListWatch, Unusable},
    store::{IndexError, IndexHandle, Store, StoreWriter, WaitError},
};
use controller::Controller;
use joining::Joining;

pub use builder::{BuildError, SharedInformerBuilder};
pub(crate) use delivery::is_inside_a_handler;
pub use filter::Filtered;
pub use handler::{EventHandler, Handler, Notice};
pub use joining::AddHandlerError;
pub use registration::{HandlerSyncError, Registration, RemoveError};
pub use subscription::Subscription;

/// One list and watch of a kind, shared by all parts of a process.
///
/// It is cheap to clone. Handlers and indexes may be added before it runs and while it does. It runs once:
/// an informer that has stopped stays stopped, with its cache as it was.
///
/// ```
/// use informer::{Handler, SharedInformer, source::MemorySource};
/// use k8s_openapi::api::core::v1::Pod;
/// # use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// # fn pod(name: &str) -> Pod {
/// #     let metadata = ObjectMeta { name: Some(name.into()), namespace: Some("shop".into()), ..Default::default() };
/// #     Pod { metadata, ..Default::default() }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let source = MemorySource::<Pod>::new(); // or KubeListWatch::all(client)
/// source.put(pod("web-0"))?;
/// let pods = SharedInformer::builder(source.clone()).name("pods").build()?;
/// let by_node = pods.add_index("node", |pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()))?;
/// let watching = pods.add_handler(
///     Handler::<Pod>::new()
///         .on_add(|pod, initial| println!("+ {} {initial}", pod.key()))
///         .on_update(|old, new| println!("~ {} {} → {}", new.key(), old.resource_version(), new.resource_version()))
///         .on_delete(|gone| println!("- {} (final state known: {})", gone.key(), gone.final_state_known())),
/// )?;
///
/// pods.start()?; // or pods.run(stop).await, in a task of yours
/// pods.wait_until_synced(std::time::Duration::from_secs(10)).await?;
/// assert_eq!(pods.store().len(), 1);
/// assert!(by_node.get("node-1").is_empty());
///
/// watching.remove().await?;
/// pods.stop().await?;
/// # Ok(()) }
/// ```
pub struct SharedInformer<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    store: Store<K>,
    #[cfg(feature = "controller")]
    coverage: Coverage<K>,
    monitor: Arc<Monitor>,
    joining: Arc<Joining<K>>,
    /// What it needs to run; gone once it does.
    plan: Mutex<Option<Plan<K>>>,
    /// Ends it, whichever task runs it.
    stop: CancellationToken,
    /// How it ended, if not as it should.
    failure: OnceLock<RunError>,
}

impl<K> Inner<K> {
    fn health(&self) -> Health {
        let mut health = self.monitor.health(self.store.len());
        health.bytes = self.monitor.metrics().map(|_| self.store.wire_bytes());
        if let Some(RunError::Panicked { .. }) = self.failure.get() {
            health.life = Life::Failed;
        }
        health
    }
}

/// Everything that is used up by running.
pub(crate) struct Plan<K> {
    pub(crate) coverage: Coverage<K>,
    pub(crate) config: PipelineConfig<K>,
    pub(crate) writer: StoreWriter<K>,
    pub(crate) resync: Duration,
    pub(crate) grace: Duration,
}

/// How much longer the informer's own task has, which waits itself for all others.
const OWN_GRACE: Duration = Duration::from_secs(1);

/// Why an informer does not run, or did not end as it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It runs already.
    #[error("the informer is running already; an informer runs once")]
    Running,
    /// It has run and stopped.
    #[error("the informer has stopped; build a new one to start again")]
    Stopped,
    /// It has stopped, and did not wait any longer for those that have not returned within the grace.
    #[error("the informer has stopped without {}, which did not return within {grace:?}", who.join(", "))]
    Stuck {
        /// Each in words: `handler "audit"`.
        who: Vec<String>,
        /// How long they were waited for, a reflector half as long; see [`SharedInformerBuilder::grace`].
        grace: Duration,
    },
    /// It has stopped because its own task panicked, in something of a user's that it calls: nothing changes its cache any more.
    #[error("the informer has stopped, its task panicked: {message}")]
    Panicked {
        /// What the panic said.
        message: String,
    },
}

impl<K: Send + Sync + 'static> SharedInformer<K> {
    /// An informer of a source, with nothing else chosen yet.
    pub fn builder(source: impl ListWatch<K>) -> SharedInformerBuilder<K> {
        SharedInformerBuilder::new(source)
    }

    /// An informer of namespaces that may come and go while it runs, each with a source of its own. What a source has of another
    /// namespace than the one that it was made for is skipped.
    pub fn following<S: ListWatch<K>>(
        namespaces: &Namespaces,
        source: impl Fn(&str) -> S + Send + Sync + 'static,
    ) -> SharedInformerBuilder<K> {
        let source: SourceOf<K> =
            Arc::new(move |name| Arc::new(Within { namespace: name.into(), source: source(name) }));
        SharedInformerBuilder::covering(Coverage::following(namespaces, source, None))
    }

    /// Runs until it is told to stop: first the reflectors end, then what they have brought is put into the
    /// cache, then the handlers end. It returns after the last handler has. Events that a handler
    /// has not heard by then are dropped.
    ///
    /// A handler, or a function of yours in the informer, that has not returned when the [grace](SharedInformerBuilder::grace) is over
    /// is left behind, and the error names it. (One that blocks the only thread of a runtime also blocks this.)
    pub async fn run(&self, stop: CancellationToken) -> Result<(), RunError> {
        self.carry_out(self.plan()?, stop).await
    }

    /// Runs in a task of its own until [`stop`](Self::stop).
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn start(&self) -> Result<(), RunError> {
        let (this, plan) = (self.clone(), self.plan()?);
        tokio::spawn(async move { this.carry_out(plan, CancellationToken::new()).await });
        Ok(())
    }

    /// Stops it, whichever task runs it, and waits for its end, as [`run`](Self::run) does. Stopping it twice does no harm; one
    /// that never ran will not. Called from inside a handler this does not wait: the end waits for its handlers.
    pub async fn stop(&self) -> Result<(), RunError> {
        self.inner.stop.cancel();
        if let Ok(plan) = self.plan() {
            let _ending = Ending(self);
            drop(plan);
        }
        if !is_inside_a_handler() {
            self.inner.monitor.wait_until_stopped().await;
        }
        self.inner.failure.get().cloned().map_or(Ok(()), Err)
    }

    /// Takes the plan, if it is still there.
    fn plan(&self) -> Result<Plan<K>, RunError> {
        let plan = self.inner.plan.lock().unwrap_or_else(PoisonError::into_inner).take();
        plan.ok_or_else(|| match self.inner.monitor.progress().life {
            Life::Stopped => RunError::Stopped,
            _ => RunError::Running,
        })
    }

    async fn carry_out(&self, plan: Plan<K>, stop: CancellationToken) -> Result<(), RunError> {
        let _ending = Ending(self);
        let (monitor, joining) = (Arc::clone(&self.inner.monitor), Arc::clone(&self.inner.joining));
        let (grace, ending) = (plan.grace, self.inner.stop.child_token());
        let until = ending.clone();
        // A task of its own, so that a function which blocks it does not block the one who runs this.
        let controller = async move { Controller::start(plan, monitor, joining, &until).run(until).await };
        let span = tracing::info_span!("informer", name = self.name());
        let mut running = AbortOnDropHandle::new(tokio::spawn(controller.instrument(span)));
        let given_up = async {
            tokio::select! {
                () = stop.cancelled() => ending.cancel(),
                () = ending.cancelled() => {}
            }
            tokio::time::sleep(grace.saturating_add(OWN_GRACE)).await;
        };
        let stuck = |who| RunError::Stuck { who, grace };
        let error = tokio::select! {
            biased;
            ended = &mut running => match ended.map_err(JoinError::try_into_panic) {
                // A failure to join that is no panic: the runtime is shutting down.
                Ok(who) if who.is_empty() => return Ok(()),
                Err(Err(_)) => return Ok(()),
                Ok(who) => stuck(who),
                Err(Ok(panic)) => RunError::Panicked { message: panic_message(&*panic) },
            },
            () = given_up => stuck(vec!["its own task, which calls index functions and measurements".to_owned()]),
        };
        tracing::error!(informer = self.name(), %error, "ended, but not as it should");
        Err(self.inner.failure.get_or_init(|| error).clone())
    }

    /// Adds a handler. It first hears of every object that is in the cache, then of every change.
    pub fn add_handler(&self, handler: impl EventHandler<K>) -> Result<Registration, AddHandlerError> {
        self.inner.joining.add(handler)
    }

    /// What a handler would hear, as a stream. It begins with every object that is in the cache.
    pub fn subscribe(&self) -> Result<Subscription<K>, AddHandlerError> {
        self.inner.joining.subscribe()
    }

    /// Adds an index, at any time; see [`Store::add_index`].
    pub fn add_index<F, I>(&self, name: &str, function: F) -> Result<IndexHandle<K>, IndexError>
    where
        F: Fn(&Object<K>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item: AsRef<str>>,
    {
        self.inner.store.add_index(name, function)
    }

    /// The cache.
    pub fn store(&self) -> Store<K> {
        self.inner.store.clone()
    }

    /// The cache by its indexes: client-go has another type for that, here it is the [`store`](Self::store).
    pub fn indexer(&self) -> Store<K> {
        self.store()
    }

    /// What it lists and watches.
    #[cfg(feature = "controller")]
    pub(crate) fn coverage(&self) -> Coverage<K> {
        self.inner.coverage.clone()
    }

    /// The informer's name.
    pub fn name(&self) -> &str {
        self.inner.monitor.name()
    }

    /// Whether the first list is in the cache.
    pub fn has_synced(&self) -> bool {
        self.inner.monitor.progress().synced
    }

    /// Waits until the first list is in the cache. When the time is up first, the error says what
    /// the informer is doing and what is wrong.
    pub async fn wait_until_synced(&self, within: Duration) -> Result<(), SyncError> {
        self.inner.monitor.wait_until_synced(within, || self.inner.store.len()).await
    }

    /// Waits until the first list of one [namespace](Namespaces) is in the cache, also of one that was added later. When the
    /// time is up first, the error says what the informer is doing and what is wrong.
    pub async fn wait_until_namespace_synced(
        &self,
        namespace: &str,
        within: Duration,
    ) -> Result<(), SyncError> {
        match tokio::time::timeout(within, self.inner.store.wait_until_listed(namespace)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(SyncError::Stopped { informer: self.name().to_owned() }),
            Err(_) => Err(SyncError::Deadline { waited: within, health: Box::new(self.health()) }),
        }
    }

    /// The version that the cache has reached; unset before the first list.
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.inner.store.resource_version()
    }

    /// Waits until the cache has this version; see [`Store::wait_for_resource_version`].
    pub async fn wait_for_resource_version(
        &self,
        wanted: &ResourceVersion,
        within: Duration,
    ) -> Result<ResourceVersion, WaitError> {
        self.inner.store.wait_for_resource_version(wanted, within).await
    }

    /// Waits until the cache has this version of one object, or its deletion; see [`Store::wait_for`].
    pub async fn wait_for(
        &self,
        key: &ObjectKey,
        wanted: &ResourceVersion,
        within: Duration,
    ) -> Result<ResourceVersion, WaitError> {
        self.inner.store.wait_for(key, wanted, within).await
    }

    /// Whether two handles are of the same informer.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether it has run and stopped.
    pub fn is_stopped(&self) -> bool {
        self.inner.monitor.progress().life == Life::Stopped
    }

    /// What the informer is doing, since when, and what went wrong last.
    pub fn health(&self) -> Health {
        self.inner.health()
    }

    /// The objects that exist but cannot be used, with the reason. The next good version of one releases it.
    pub fn quarantined(&self) -> Vec<Unusable> {
        self.inner.monitor.quarantined()
    }
}

/// However an informer ends, also when running it is given up in the middle, nobody waits for it in vain.
struct Ending<'a, K: Send + Sync + 'static>(&'a SharedInformer<K>);

impl<K: Send + Sync + 'static> Drop for Ending<'_, K> {
    fn drop(&mut self) {
        self.0.inner.joining.stop();
        self.0.inner.monitor.stop();
    }
}

impl<K> Clone for SharedInformer<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<K> fmt::Debug for SharedInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedInformer({})", self.inner.health())
    }
}
