//! The factory: informers of any number of kinds over one client, each of them once.
//!
//! Ask it for informers, add handlers and indexes to them, then [start](SharedInformerFactory::start) them all. Whoever
//! asks for the same type in the same [`Scope`] gets the same informer: one list and watch, one cache.

mod builder;
pub mod groups;
mod kinds;
mod matching;
mod registry;
mod resource;
mod scope;

use std::{fmt, sync::Arc, time::Duration};

use informer_model::ResourceArg;
use kube::{
    Client, Resource,
    core::{ApiResource, PartialObjectMeta},
};

use crate::{
    AnyInformer, DynamicObject, Health, NotSynced, SharedInformer, SyncReport,
    discovery::ResolveError,
    shared::{BuildError, SharedInformerBuilder},
    source::KubeListWatch,
    wait_for_cache_sync,
};
use builder::Options;
use kinds::Kinds;
use matching::Matching;
use registry::Registry;

pub use builder::{FactoryBuilder, FactoryError};
pub use resource::{GenericInformer, GenericLister, Kind, ResourceInformer};
pub use scope::{Scope, ScopeError};

/// Makes shared informers, one for each type and scope, and starts and stops them together.
///
/// It is cheap to clone (an `Arc`). Dropping the last clone stops nothing, so that a lister may outlive it: informers run
/// until [`shutdown`](Self::shutdown), or until the builder's
/// [`cancellation_token`](FactoryBuilder::cancellation_token) is cancelled.
///
/// ```
/// use std::time::Duration;
///
/// use informer::{Handler, SharedInformerFactory, model::Selector};
/// use k8s_openapi::api::core::v1::Pod;
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = informer_apiserver::ApiServer::builder().build().client();
/// let factory = SharedInformerFactory::builder(client).namespace("shop").build()?;
/// let pods = factory.core().v1().pods();
/// let by_node = pods.informer().add_index("node", |pod| pod.spec.as_ref()?.node_name.clone())?;
/// pods.informer().add_handler(Handler::<Pod>::new().on_add(|pod, _| println!("+ {}", pod.key())))?;
///
/// factory.start()?;
/// factory.wait_for_cache_sync(Duration::from_secs(10)).await?; // names what cannot sync, and why
/// let web = pods.lister().list(&"app=web".parse()?);
/// let here = by_node.get("node-1");
///
/// let deployments = factory.for_resource("deployments.apps").await?; // any resource by name, custom ones too
/// let all = deployments.lister().list(&Selector::everything());
/// factory.start()?; // starts what is new
/// # assert!(web.is_empty() && here.is_empty() && all.is_empty());
/// factory.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SharedInformerFactory {
    inner: Arc<Inner>,
    scope: Arc<Scope>,
}

struct Inner {
    options: Options,
    registry: Registry,
    /// Which kinds there are, if they are followed.
    kinds: Option<Arc<Kinds>>,
    matching: Matching,
}

/// The factory is shut down: nothing can be started any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the informer factory is shut down; build a new one to start again")]
pub struct ShutDown;

impl SharedInformerFactory {
    /// A factory of informers in all namespaces. `resync` is how often handlers are shown everything again, zero
    /// for never.
    pub fn new(client: Client, resync: Duration) -> Self {
        Self::builder(client).resync(resync).unchecked()
    }

    /// A factory with options.
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder::new(client)
    }

    fn assemble(options: Options, scope: Scope) -> Self {
        let registry = Registry::new(&options.stop);
        let kinds = options.follow_kinds.map(|ask_every| {
            let kinds = Arc::new(Kinds::new(options.discovery.clone(), ask_every));
            let definitions = KubeListWatch::all(options.client.clone()).wire(options.wire);
            registry.accompany(Arc::clone(&kinds).run(definitions));
            kinds
        });
        let inner = Inner { options, registry, kinds, matching: Matching::default() };
        Self { inner: Arc::new(inner), scope: Arc::new(scope) }
    }

    /// The same factory for other objects: what is asked of it has this scope, while starting, waiting and stopping
    /// are those of the whole factory.
    ///
    /// ```
    /// use informer::{SharedInformerFactory, factory::Scope};
    /// # fn look(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let factory = SharedInformerFactory::builder(client).build()?;
    /// let here = factory.scoped(Scope::everything().fields(&"spec.nodeName=node-1".parse()?));
    /// let (nodes, pods_here) = (factory.core().v1().nodes(), here.core().v1().pods());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn scoped(&self, scope: Scope) -> Self {
        Self { inner: Arc::clone(&self.inner), scope: Arc::new(scope) }
    }

    /// The client that all informers share.
    pub fn client(&self) -> Client {
        self.inner.options.client.clone()
    }

    /// The informer of a type. The same type in the same scope is the same informer, until it stops.
    pub fn informer_for<K>(&self) -> SharedInformer<K>
    where
        K: Kind + Resource<DynamicType: Default>,
    {
        ResourceInformer::typed(self.clone()).informer()
    }

    /// The informer and lister of a type whose objects are kept [packed](crate::Packed): a tenth of the memory.
    ///
    /// ```
    /// # use informer::SharedInformerFactory;
    /// use k8s_openapi::api::core::v1::Pod;
    /// # fn look(factory: &SharedInformerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// let pods = factory.packed::<Pod>();
    /// for pod in pods.lister().list(&"app=web".parse()?) {
    ///     println!("{} on {:?}", pod.key(), pod.decode()?.spec.as_ref().and_then(|spec| spec.node_name.as_deref()));
    /// }
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "packed")]
    pub fn packed<K>(&self) -> ResourceInformer<crate::Packed<K>>
    where
        K: Kind + Resource<DynamicType: Default>,
    {
        ResourceInformer::typed(self.clone())
    }

    /// The informer of a type, made in a way of its own if there is none yet. The first constructor wins: when there
    /// is an informer, `make` is not called, and when two calls make one at the same time, one of the two is
    /// dropped.
    ///
    /// ```
    /// # use informer::SharedInformerFactory;
    /// use k8s_openapi::api::core::v1::Pod;
    /// # fn look(factory: &SharedInformerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// let pods = factory.informer_for_with::<Pod>(|factory| {
    ///     let builder = factory.builder_for::<Pod>(); // what the factory would begin with
    ///     builder.index("node", |pod| pod.spec.as_ref()?.node_name.clone()).build()
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn informer_for_with<K>(
        &self,
        make: impl FnOnce(&Self) -> Result<SharedInformer<K>, BuildError>,
    ) -> Result<SharedInformer<K>, BuildError>
    where
        K: Kind + Resource<DynamicType: Default>,
    {
        let key = ResourceInformer::<K>::typed(self.clone()).key();
        match self.inner.registry.get(&key) {
            Some(informer) => Ok(informer),
            None => Ok(self.inner.registry.insert(key, make(self)?)),
        }
    }

    /// An informer's builder with the factory's options and scope in it, for
    /// [`informer_for_with`](Self::informer_for_with).
    pub fn builder_for<K>(&self) -> SharedInformerBuilder<K>
    where
        K: Kind + Resource<DynamicType: Default>,
    {
        ResourceInformer::typed(self.clone()).builder()
    }

    /// The informer and lister of any resource by name, custom ones too: `deployments.v1.apps`, `deployments.apps`,
    /// `apps/v1/deployments`, a short name like `po`, or a
    /// [`GroupVersionResource`](informer_model::GroupVersionResource). The server is asked what it serves, once, and
    /// again for a name that is not among that.
    ///
    /// ```no_run
    /// # async fn look(factory: informer::SharedInformerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// let sites = factory.for_resource("websites.v1.example.com").await?;
    /// let lister = sites.lister();
    /// factory.start()?;
    /// factory.wait_for_cache_sync(std::time::Duration::from_secs(30)).await?;
    /// println!("{:?}", lister.namespace("shop").get("blog")?.data["spec"]);
    /// # Ok(()) }
    /// ```
    pub async fn for_resource(
        &self,
        resource: impl TryInto<ResourceArg, Error: Into<ResolveError>>,
    ) -> Result<GenericInformer, ResolveError> {
        self.for_resource_as(resource).await
    }

    /// The same with only the metadata of each object, which is all that is sent and kept. For a type of its own
    /// the same is `informer_for::<PartialObjectMeta<K>>()`.
    pub async fn metadata_for(
        &self,
        resource: impl TryInto<ResourceArg, Error: Into<ResolveError>>,
    ) -> Result<ResourceInformer<PartialObjectMeta<DynamicObject>>, ResolveError> {
        self.for_resource_as(resource).await
    }

    /// The same with objects of your own type, which must leave its kind open as [`DynamicObject`] does.
    pub async fn for_resource_as<K>(
        &self,
        resource: impl TryInto<ResourceArg, Error: Into<ResolveError>>,
    ) -> Result<ResourceInformer<K>, ResolveError>
    where
        K: Kind + Resource<DynamicType = ApiResource>,
    {
        let resource = resource.try_into().map_err(Into::into)?;
        let served = self.inner.options.discovery.resolve(&resource).await?;
        Ok(ResourceInformer::of_kind(self.clone(), served.api, served.namespaced))
    }

    /// Runs every informer that was asked for and does not run yet. May be called again, for those that came later.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn start(&self) -> Result<(), ShutDown> {
        self.inner.registry.start()
    }

    /// Does something once the informers that the next start leaves running have their first lists in the cache.
    pub(crate) fn after_sync(&self, then: impl FnOnce() + Send + 'static) {
        let (factory, scope) = (Arc::downgrade(&self.inner), Arc::clone(&self.scope));
        self.inner.registry.accompany(async move {
            let Some(inner) = factory.upgrade() else { return };
            if (Self { inner, scope }).wait_for_cache_sync(Duration::MAX).await.is_ok() {
                then();
            }
        });
    }

    /// Waits until every informer that was started has its first list in the cache, for so long at most. The report
    /// has one line for each: synced, or what is wrong and what can be done.
    pub async fn wait_for_cache_sync(&self, within: Duration) -> Result<SyncReport, NotSynced> {
        let (started, others) = self.inner.registry.all();
        let not_started = others.iter().map(|informer| informer.name().to_owned()).collect();
        let started: Vec<&dyn AnyInformer> = started.iter().map(|informer| &**informer).collect();
        match wait_for_cache_sync(&started, within).await {
            Ok(report) => Ok(SyncReport { not_started, ..report }),
            Err(NotSynced(report)) => Err(NotSynced(SyncReport { not_started, ..report })),
        }
    }

    /// What each informer is doing, by name: those that were started, then the others.
    pub fn health(&self) -> Vec<Health> {
        let (started, others) = self.inner.registry.all();
        started.iter().chain(&others).map(|informer| informer.health()).collect()
    }

    /// Stops the informer of a type in this scope and waits for its end, while all others go on. Says whether there was
    /// one. Whoever holds it keeps its cache as it was; the next request makes a new one. Called from inside a handler
    /// it does not wait, as that could be for ever.
    pub async fn stop_informer<K>(&self) -> bool
    where
        K: Kind + Resource<DynamicType: Default>,
    {
        let meant = ResourceInformer::<K>::typed(self.clone()).key();
        self.inner.registry.stop(|key, _| *key == meant).await
    }

    /// Stops this very informer in the same way, whatever its type and scope.
    pub async fn stop(&self, informer: &impl AnyInformer) -> bool {
        self.inner.registry.stop(|_, other| other.is_same(informer)).await
    }

    /// Stops all informers, waits until the last handler has returned, and lets nothing start after that. Called from
    /// inside a handler it does not wait, as that would be for ever.
    pub async fn shutdown(&self) {
        self.inner.registry.shutdown().await;
    }

    /// Whether it is shut down, or has been told to be.
    pub fn is_shut_down(&self) -> bool {
        self.inner.registry.is_shut_down()
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (started, others) = self.inner.registry.all();
        let (started, others) = (started.len(), others.len());
        write!(f, "SharedInformerFactory({started} informers started, {others} not, scope {:?})", self.scope)
    }
}
