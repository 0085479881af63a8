//! Writes that are remembered.

use std::{fmt, fmt::Debug, sync::Arc, time::Duration};

use http::Request as HttpRequest;
use informer_model::{KeyError, ObjectKey};
use kube::{
    Client, Resource,
    api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Request},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Behind, FreshLister,
    apply::AppliedConfigurations,
    fenced::{Guard, Write},
    ledger::{Ledger, is_last_state},
};
use crate::{Lister, Object, ObjectError, SharedInformer, store::Store};

/// For so long after a write the cache is waited for.
const WITHIN: Duration = Duration::from_secs(10);

/// Writes objects of one kind, and remembers what the cache of an informer does not show yet. It is cheap to clone (an `Arc`); clones
/// remember together.
///
/// The writes are those of kube's `Api`, for all namespaces; they wait for nothing. Who reads waits: a [`FreshLister`],
/// [`ensure_ready`](Self::ensure_ready), and the next call of a [`Controller`](crate::controller::Controller) for the same key.
///
/// ```
/// use std::time::Duration;
///
/// use informer::{SharedInformerFactory, client::Writes};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::api::{Patch, PatchParams};
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = informer_apiserver::ApiServer::builder().build();
/// # let map = serde_json::json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "colours", "namespace": "default" } });
/// # server.put(map)?;
/// # let client = server.client();
/// let factory = SharedInformerFactory::new(client.clone(), Duration::ZERO);
/// let maps = Writes::new(client, &factory.informer_for::<ConfigMap>());
/// factory.start()?;
///
/// let (key, blue) = ("default/colours".parse()?, serde_json::json!({ "data": { "sky": "blue" } }));
/// maps.patch(&key, &PatchParams::default(), &Patch::Merge(blue)).await?;
/// let map = maps.lister().get(&key).await?; // it has waited for the write
/// assert_eq!(map.data.as_ref().unwrap()["sky"], "blue");
/// # factory.shutdown().await;
/// # Ok(()) }
/// ```
///
/// What is not waited for:
///
/// - A write that failed, and one whose answer was lost or not awaited: whether it was carried out is not known. The object may be read as it was
///   before. A write of that state is refused by the server, if it carries the version that was read.
/// - A write to an object that the informer does not select, unless its cache has the object. A [source](crate::source::ListWatch) of your own
///   says that by `covers`.
/// - A dry run, and versions that are no numbers.
///
/// `K` should be the type of the whole object: one with a few fields of it would replace it by these.
pub struct Writes<K: Resource> {
    client: Client,
    kind: Arc<K::DynamicType>,
    ledger: Arc<Ledger<K>>,
    within: Duration,
    guard: Guard,
    params: PostParams,
    applied: Arc<AppliedConfigurations>,
}

/// Why an object was not written, as far as is known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The server refused, or could not be asked.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The object has no usable name.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// It was to be read first, and the cache is behind an earlier write.
    #[error(transparent)]
    Behind(#[from] Behind),
    /// This process does not lead any more.
    #[cfg(feature = "leader")]
    #[error(transparent)]
    Lost(#[from] crate::leader::Lost),
    /// A later leader has written the object.
    #[cfg(feature = "leader")]
    #[error(transparent)]
    Stale(#[from] crate::leader::Stale),
    /// It cannot carry the term of a leader.
    #[error("{0}")]
    Unfenced(&'static str),
}

impl WriteError {
    /// Somebody else has written it since it was read.
    pub fn is_conflict(&self) -> bool {
        self.is_because(kube::core::Status::is_conflict) && !self.is_already_exists()
    }

    /// There is no such object on the server.
    pub fn is_not_found(&self) -> bool {
        self.is_because(kube::core::Status::is_not_found)
    }

    /// There is an object of that name already.
    pub fn is_already_exists(&self) -> bool {
        self.is_because(kube::core::Status::is_already_exists)
    }

    fn is_because(&self, reason: impl FnOnce(&kube::core::Status) -> bool) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if reason(status))
    }
}

impl From<KeyError> for WriteError {
    fn from(error: KeyError) -> Self {
        Self::Object(error.into())
    }
}

impl<K> Writes<K>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    /// Writes of the kind that `K` is, for readers of an informer's cache.
    pub fn new(client: Client, informer: &SharedInformer<K>) -> Self
    where
        K::DynamicType: Default,
    {
        Self::of_kind(client, informer, K::DynamicType::default())
    }

    /// Writes of a kind that is known only at run time.
    pub fn of_kind(client: Client, informer: &SharedInformer<K>, kind: K::DynamicType) -> Self {
        let ledger = Arc::new(Ledger::new(informer.store(), informer.coverage()));
        let (guard, params) = (Guard::default(), PostParams::default());
        let applied = Arc::default();
        Self { client, kind: Arc::new(kind), ledger, within: WITHIN, guard, params, applied }
    }

    /// The same, and every write carries a [fence](crate::leader::Fence) of this term: it is sent only while the term lasts, refused here if a later leader
    /// has written the object, and refused by the server if anybody has since it was read.
    ///
    /// A patch and a deletion are for the version that the cache has. A server-side apply of an object that the cache does not have is checked by
    /// the term alone, and a JSON patch is refused.
    #[cfg(feature = "leader")]
    #[must_use]
    pub fn fenced(mut self, leadership: crate::leader::Leadership) -> Self {
        self.guard.leadership = Some(leadership);
        self
    }

    /// The field manager of what the helpers write ([`create_or_update`](Self::create_or_update) and the like).
    #[must_use]
    pub fn field_manager(mut self, name: impl Into<String>) -> Self {
        self.params.field_manager = Some(name.into());
        self
    }

    pub(super) fn post_params(&self) -> &PostParams {
        &self.params
    }

    pub(super) fn applied(&self) -> &AppliedConfigurations {
        &self.applied
    }

    pub(super) fn kind(&self) -> &K::DynamicType {
        &self.kind
    }

    pub(super) fn store(&self) -> &Store<K> {
        self.ledger.store()
    }

    /// For how long after a write readers wait for the cache. Default: 10 seconds; ten minutes at most.
    #[must_use]
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// Reads the cache after these writes.
    pub fn lister(&self) -> FreshLister<K> {
        let (group, plural) = (K::group(&self.kind).into_owned(), K::plural(&self.kind).into_owned());
        FreshLister::new(Arc::clone(&self.ledger), Lister::named(self.ledger.store().clone(), group, plural))
    }

    /// Creates an object.
    pub async fn create(&self, params: &PostParams, object: &K) -> Result<K, WriteError> {
        let body = bytes(&*self.guard.object(object, Write::Create)?)?;
        let namespace = object.meta().namespace.as_deref();
        self.send(params.dry_run, self.request(namespace).create(params, body)).await
    }

    /// Replaces an object; with a version in it, only if it has that version still.
    pub async fn replace(&self, params: &PostParams, object: &K) -> Result<K, WriteError> {
        let (key, body) = (key_of(object)?, bytes(&*self.guard.object(object, Write::Replace)?)?);
        self.send(params.dry_run, self.request(key.namespace()).replace(key.name(), params, body)).await
    }

    /// Replaces the status of an object.
    pub async fn replace_status(&self, params: &PostParams, object: &K) -> Result<K, WriteError> {
        let (key, body) = (key_of(object)?, bytes(&*self.guard.object(object, Write::Status)?)?);
        let request = self.request(key.namespace()).replace_subresource("status", key.name(), params, body);
        self.send(params.dry_run, request).await
    }

    /// Changes an object by a patch.
    pub async fn patch<P: Serialize + Debug>(
        &self,
        key: &ObjectKey,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, WriteError> {
        let (now, request) = (self.seen(key).await?, self.request(key.namespace()));
        let request = match self.guard.patch(now.as_ref().map(|now| now.meta()), patch)? {
            Some(fenced) => request.patch(key.name(), params, &fenced),
            None => request.patch(key.name(), params, patch),
        };
        self.send(params.dry_run, request).await
    }

    /// Changes the status of an object by a patch.
    pub async fn patch_status<P: Serialize + Debug>(
        &self,
        key: &ObjectKey,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, WriteError> {
        let (now, request) = (self.seen(key).await?, self.request(key.namespace()));
        let request = match self.guard.patch(now.as_ref().map(|now| now.meta()), patch)? {
            Some(fenced) => request.patch_subresource("status", key.name(), params, &fenced),
            None => request.patch_subresource("status", key.name(), params, patch),
        };
        self.send(params.dry_run, request).await
    }

    /// Deletes an object. The answer is the object if it is there still, for as long as finalizers hold it or it has time to end.
    pub async fn delete(&self, key: &ObjectKey, params: &DeleteParams) -> Result<Option<K>, WriteError> {
        let now = self.seen(key).await?;
        let params = self.guard.delete(now.as_ref().map(|now| now.meta()), params)?;
        let request = self.request(key.namespace()).delete(key.name(), &params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let answer = self.client.request_status::<K>(request).await?;
        if params.dry_run {
            return Ok(answer.left());
        }
        let gone = match answer.as_ref().right() {
            Some(status) => status.details.as_ref().map(|details| details.uid.clone()),
            None => None,
        };
        let Some(object) = answer.left() else {
            self.deleted(key, &gone.unwrap_or_default());
            return Ok(None);
        };
        if is_last_state(object.meta(), &|| value(&object)) {
            self.deleted(key, object.meta().uid.as_deref().unwrap_or_default());
            return Ok(None);
        }
        self.wrote_at(&object)?;
        Ok(Some(object))
    }

    /// Reads an object from the server. From then on readers of the cache wait for what was read, as for a write.
    pub async fn get_live(&self, key: &ObjectKey) -> Result<K, WriteError> {
        self.send(false, self.request(key.namespace()).get(key.name(), &GetParams::default())).await
    }

    /// Remembers a write that was made another way: this is what the server answered.
    pub fn wrote_at(&self, answer: &K) -> Result<(), ObjectError> {
        let key = key_of(answer)?;
        if let Ok(Some(term)) = self.guard.term(answer.meta())
            && term.wrote
        {
            let version = answer.meta().resource_version.as_deref().unwrap_or_default();
            self.ledger.wrote_in_term(term.token, &version.into());
        }
        if self.ledger.wrote(&key, answer, &|| value(answer), self.within) {
            self.ledger.note(&key);
        }
        Ok(())
    }

    /// Remembers a deletion that was made another way: the object with this uid is gone.
    pub fn deleted(&self, key: &ObjectKey, uid: &str) {
        if !uid.is_empty() && self.ledger.deleted(key, Some(uid), self.within) {
            self.ledger.note(key);
        }
    }

    /// Waits until the cache shows what was written to an object, or until the limit of that write is over.
    pub async fn ensure_ready(&self, key: &ObjectKey) -> Result<(), Behind> {
        self.ledger.ready(key).await
    }

    /// An object to work on, in a version that no earlier leader has changed. The cache may be behind an earlier leader, as that was behind nobody. Where it is not known
    /// to show what was before this term, the term is written into the object first, and the server refuses that if the object has changed.
    pub(crate) async fn in_this_term(&self, object: &Object<K>) -> Result<Object<K>, WriteError> {
        let meta = object.meta();
        match self.guard.term(meta)? {
            Some(term) if !term.wrote && !self.ledger.shows_term(term.token, object) => {}
            _ => return Ok(object.clone()),
        }
        let seen = json!({ "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version } });
        let answer = self.patch(object.key(), &PatchParams::default(), &Patch::Merge(seen)).await?;
        Ok(Object::new(answer)?)
    }

    /// What the cache has of an object that is to be checked for a later leader.
    async fn seen(&self, key: &ObjectKey) -> Result<Option<Object<K>>, WriteError> {
        if !self.guard.is_fenced() {
            return Ok(None);
        }
        self.ledger.ready(key).await?;
        Ok(self.ledger.store().get(key))
    }

    fn request(&self, namespace: Option<&str>) -> Request {
        Request::new(K::url_path(&self.kind, namespace.filter(|namespace| !namespace.is_empty())))
    }

    async fn send(
        &self,
        dry_run: bool,
        request: Result<HttpRequest<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<K, WriteError> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        let answer = self.client.request::<K>(request).await?;
        if !dry_run {
            self.wrote_at(&answer)?;
        }
        Ok(answer)
    }
}

/// The key of an object that has a name.
pub(super) fn key_of(object: &impl Resource) -> Result<ObjectKey, ObjectError> {
    let meta = object.meta();
    let Some(name) = &meta.name else {
        return Err(ObjectError::NoName { namespace: meta.namespace.clone() });
    };
    Ok(ObjectKey::new(meta.namespace.as_deref(), name)?)
}

fn bytes(object: &impl Serialize) -> Result<Vec<u8>, WriteError> {
    Ok(serde_json::to_vec(object).map_err(kube::Error::SerdeError)?)
}

fn value(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

impl<K: Resource> Clone for Writes<K> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            kind: Arc::clone(&self.kind),
            ledger: Arc::clone(&self.ledger),
            within: self.within,
            guard: self.guard.clone(),
            params: self.params.clone(),
            applied: Arc::clone(&self.applied),
        }
    }
}

impl<K: Resource + 'static> fmt::Debug for Writes<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = K::plural(&self.kind);
        let applied = self.applied.len();
        f.debug_struct("Writes")
            .field("of", &plural)
            .field("applied", &applied)
            .field("remembered", &self.ledger.len())
            .finish()
    }
}
