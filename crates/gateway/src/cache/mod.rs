//! Everything that is in memory: one [`Collection`] for each resource that was asked for.
//!
//! A collection begins with the first request for its resource and ends when nobody has asked for long enough. What is
//! not to be served at all never gets here.

pub(crate) mod beside;
pub(crate) mod changes;
pub(crate) mod collection;
mod past;
pub(crate) mod room;
mod secrets;
pub(crate) mod snapshots;
mod stored;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use informer::{
    SharedInformerFactory,
    discovery::{Catalog, Discovery, ResolveError, ServedResource},
    queue::Transform,
    source::{KubeListWatch, SourceError},
};
use informer_model::{BUILTIN_KINDS, Reason, ResourceArg, Status};
use informer_serving::table::{Columns, PrinterColumn};
use kube::Client;
use serde_json::Value;
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, sleep, timeout},
};

use crate::{process, work::apart};
use changes::Depth;
use collection::Collection;
use past::Past;

pub(crate) use secrets::Secrets;
pub use stored::Packing;
pub(crate) use stored::Stored;

/// How long a CustomResourceDefinition is waited for. Without it the table has fewer columns.
const DEFINITION_WITHIN: Duration = Duration::from_secs(5);

/// How old the list of all resources may be when somebody asks for it.
const CATALOG_AGE: Duration = Duration::from_secs(20);

/// All collections.
pub(crate) struct Cache {
    discovery: Discovery,
    factory: SharedInformerFactory,
    /// What it does to objects before they are stored.
    packing: Option<Transform<Stored>>,
    secrets: Secrets,
    /// The factory of secrets, which keeps only what may be shown of them.
    secrets_factory: SharedInformerFactory,
    collections: Mutex<BTreeMap<String, Entry>>,
    /// Held while one begins or ends, so that nothing begins with an informer that is about to end.
    changing: AsyncMutex<()>,
    limits: CacheLimits,
    /// Whether the objects are those of all namespaces.
    whole: bool,
    /// When the catalog was last asked for.
    asked: Mutex<Option<Instant>>,
}

#[derive(Clone)]
struct Entry {
    collection: Arc<Collection>,
    /// It stays, whether somebody asks or not.
    stays: bool,
}

/// How much a [`Cache`] may hold, and for how long.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CacheLimits {
    /// Resident memory above which nothing new begins.
    pub(crate) memory: Option<u64>,
    /// What nobody has asked for in this time ends.
    pub(crate) idle: Option<Duration>,
    /// What is kept of the changes of each resource.
    pub(crate) depth: Depth,
}

impl Cache {
    pub(crate) fn new(
        discovery: Discovery,
        factory: SharedInformerFactory,
        packing: Option<Transform<Stored>>,
        secrets: Secrets,
        secrets_factory: SharedInformerFactory,
        limits: CacheLimits,
        whole: bool,
    ) -> Self {
        let (collections, changing) = (Mutex::default(), AsyncMutex::default());
        let asked = Mutex::default();
        Self {
            discovery,
            factory,
            packing,
            secrets,
            secrets_factory,
            collections,
            changing,
            limits,
            whole,
            asked,
        }
    }

    pub(crate) fn limits(&self) -> &CacheLimits {
        &self.limits
    }

    pub(crate) fn client(&self) -> Client {
        self.factory.client()
    }

    /// What can be asked for.
    pub(crate) async fn catalog(&self) -> Result<Arc<Catalog>, Status> {
        let mut catalog = self.discovery.catalog().await.map_err(|error| unreachable(&error))?;
        if self.secrets == Secrets::Hidden {
            Arc::make_mut(&mut catalog).resources.retain(|served| !secrets::is_secret(served));
        }
        Ok(catalog)
    }

    /// The same, asked for anew if that was not done in the last seconds: a new kind of resource shows soon.
    pub(crate) async fn recent_catalog(&self) -> Result<Arc<Catalog>, Status> {
        let is_due = {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let is_due = asked.is_none_or(|asked| asked.elapsed() > CATALOG_AGE);
            if is_due {
                *asked = Some(Instant::now());
            }
            is_due
        };
        // Where that fails, what was known is shown.
        if is_due && let Err(error) = self.discovery.refresh().await {
            tracing::warn!(%error, "the cluster does not say what it serves");
        }
        self.catalog().await
    }

    /// What a name means. What is not known is asked for.
    pub(crate) async fn resolve(&self, resource: &ResourceArg) -> Result<ServedResource, Status> {
        self.resolve_if(resource, || true).await
    }

    /// The same, where the cluster is asked about a name that is not known only if that may be.
    pub(crate) async fn resolve_if(
        &self,
        resource: &ResourceArg,
        may_ask: impl FnOnce() -> bool,
    ) -> Result<ServedResource, Status> {
        let known = self.discovery.catalog().await.map_err(|error| unreachable(&error))?;
        let served = match known.find(resource) {
            Err(ResolveError::Unknown { .. }) if may_ask() => self.discovery.resolve(resource).await,
            found => found.cloned(),
        };
        let served = served.map_err(|error| match error {
            ResolveError::Name(_) => Status::bad_request(error.to_string()),
            ResolveError::Unknown { .. } => Status::failure(Reason::NotFound, error.to_string()),
            ResolveError::Verbs { .. } => Status::failure(Reason::MethodNotAllowed, error.to_string()),
            ResolveError::Server(error) => unreachable(&error),
            other => Status::internal_error(other),
        })?;
        if self.secrets == Secrets::Hidden && secrets::is_secret(&served) {
            let why =
                "this gateway does not serve secrets; it does when it is started with --include-secrets";
            return Err(Status::forbidden("secrets", "", "", why));
        }
        Ok(served)
    }

    /// The objects of a resource, complete.
    pub(crate) async fn collection(
        self: &Arc<Self>,
        served: &ServedResource,
    ) -> Result<Arc<Collection>, Status> {
        let collection = self.begin(served, false).await?;
        collection.ready().await?;
        Ok(collection)
    }

    /// Begins with a resource that stays, and waits for it.
    pub(crate) async fn preload(self: &Arc<Self>, resource: &ResourceArg) -> Result<Arc<Collection>, Status> {
        let collection = self.begin(&self.resolve(resource).await?, true).await?;
        collection.ready().await?;
        Ok(collection)
    }

    /// All that are in memory now, by path.
    pub(crate) fn all(&self) -> Vec<Arc<Collection>> {
        self.collections().values().map(|entry| Arc::clone(&entry.collection)).collect()
    }

    /// How many objects they have.
    pub(crate) fn objects(&self) -> usize {
        self.all().iter().map(|collection| collection.store.len()).sum()
    }

    /// One that is in memory now; asking for it is no use of it.
    pub(crate) fn peek(&self, path: &str) -> Option<Arc<Collection>> {
        self.collections().get(path).map(|entry| Arc::clone(&entry.collection))
    }

    async fn begin(
        self: &Arc<Self>,
        served: &ServedResource,
        stays: bool,
    ) -> Result<Arc<Collection>, Status> {
        if let Some(running) = self.running(&collection::path(served), stays) {
            return Ok(running);
        }
        let (cache, served) = (Arc::clone(self), served.clone());
        apart(async move { cache.begin_anew(&served, stays).await }).await
    }

    async fn begin_anew(&self, served: &ServedResource, stays: bool) -> Result<Arc<Collection>, Status> {
        let path = collection::path(served);
        let columns = self.columns(served).await;
        let _changing = self.changing.lock().await;
        if let Some(running) = self.running(&path, stays) {
            return Ok(running);
        }
        self.check_memory(served)?;
        let (factory, transform) = match secrets::is_secret(served) {
            true => (&self.secrets_factory, Some(self.secrets.transform())),
            false => (&self.factory, self.packing.clone()),
        };
        let resource = served.resource().map_err(Status::internal_error)?;
        let resource = factory.for_resource_as::<Stored>(resource).await;
        let informer =
            resource.map_err(|error| Status::failure(Reason::NotFound, error.to_string()))?.informer();
        let source = KubeListWatch::of_kind(self.client(), served.api.clone());
        let past = self.whole.then(|| Past::new(source, transform, self.limits.depth));
        let collection = Collection::new(served.clone(), informer, columns, self.limits.depth, past)?;
        let collection = Arc::new(collection);
        factory.start().map_err(|_| Status::service_unavailable("the gateway is shutting down"))?;
        tracing::info!(resource = path, "listing and watching");
        self.collections().insert(path, Entry { collection: Arc::clone(&collection), stays });
        Ok(collection)
    }

    fn running(&self, path: &str, stays: bool) -> Option<Arc<Collection>> {
        let mut collections = self.collections();
        let entry = collections.get_mut(path)?;
        entry.stays |= stays;
        entry.collection.touch();
        Some(Arc::clone(&entry.collection))
    }

    fn check_memory(&self, served: &ServedResource) -> Result<(), Status> {
        let Some(limit) = self.limits.memory else { return Ok(()) };
        let used = process::resident()
            .unwrap_or_else(|| self.all().iter().map(|collection| collection.snapshot().wire_bytes()).sum());
        if used < limit {
            return Ok(());
        }
        let mut status = Status::failure(
            Reason::from("InsufficientStorage"),
            format!(
                "{} would not fit: the gateway has {} MiB in memory and --memory-limit is {} MiB; raise it, or wait for idle resources to go",
                served.name(),
                used >> 20,
                limit >> 20
            ),
        );
        status.code = 507;
        Err(status)
    }

    /// The columns of a resource's table; those of a custom one are in its definition.
    async fn columns(&self, served: &ServedResource) -> Columns {
        let api = &served.api;
        if BUILTIN_KINDS.iter().any(|builtin| builtin.group == api.group && builtin.plural == api.plural) {
            return Columns::of(&api.group, &api.plural);
        }
        let uri =
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}.{}", api.plural, api.group);
        let definition = async {
            let request = http::Request::get(uri).body(Vec::new()).ok()?;
            self.client().request::<Value>(request).await.ok()
        };
        match timeout(DEFINITION_WITHIN, definition).await {
            Ok(Some(definition)) => Columns::custom(&PrinterColumn::of_crd(&definition, &api.version)),
            _ => {
                tracing::debug!(
                    resource = served.name(),
                    "no definition, so its table shows name and age only"
                );
                Columns::custom(&[])
            }
        }
    }

    /// Ends what nobody has asked for in a long time, for as long as it is polled.
    pub(crate) async fn end_idle(&self) {
        let Some(limit) = self.limits.idle else { return std::future::pending().await };
        let look = (limit / 4).clamp(Duration::from_millis(100), Duration::from_secs(30));
        loop {
            sleep(look).await;
            self.end_idle_since(limit).await;
        }
    }

    async fn end_idle_since(&self, limit: Duration) {
        let _changing = self.changing.lock().await;
        let is_idle =
            |entry: &Entry| !entry.stays && entry.collection.idle().is_some_and(|idle| idle >= limit);
        let idle: Vec<Arc<Collection>> = {
            let mut collections = self.collections();
            let (idle, rest) =
                std::mem::take(&mut *collections).into_iter().partition(|(_, entry)| is_idle(entry));
            *collections = rest;
            let idle: BTreeMap<String, Entry> = idle;
            idle.into_values().map(|entry| entry.collection).collect()
        };
        for collection in idle {
            tracing::info!(resource = collection.path, "nobody asks for it: no longer in memory");
            for factory in [&self.factory, &self.secrets_factory] {
                factory.stop(&collection.informer).await;
            }
        }
    }

    /// Ends everything.
    pub(crate) async fn shutdown(&self) {
        self.factory.shutdown().await;
        self.secrets_factory.shutdown().await;
    }

    fn collections(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.collections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unreachable(error: &SourceError) -> Status {
    match error.status() {
        Some(status) if matches!(status.code, 401 | 403) => Status::failure(
            Reason::Forbidden,
            format!("the cluster refuses discovery to the gateway: {error}"),
        ),
        _ => Status::service_unavailable(format!("the cluster does not say what it serves: {error}"))
            .with_retry_after(5),
    }
}

#[cfg(test)]
pub(crate) mod tests;
