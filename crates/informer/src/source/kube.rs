//! Lists and watches of an API server, through a [`kube::Client`](::kube::Client).
//!
//! Requests go out as the [`ListOptions`] say. Answers are read as they arrive: an object is decoded when its
//! last byte is there, and no list is ever held as a whole. Retrying is left to the reflector.

mod reading;

use std::{
    any::TypeId,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use ::kube::{
    Client, Resource,
    client::Body,
    core::{ClusterResourceScope, NamespaceResourceScope},
};
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use http::{HeaderValue, Request, StatusCode, header};
use informer_model::{
    BUILTIN_KINDS, FieldSelector, FrameDecoder, Framing, GroupVersionResource, Labels, Selector,
    qualified_name,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ListOptions, ListStream, ListWatch, SourceError, WatchStream};
use crate::{
    request::{Answer, open},
    wire::{Codec, Wire},
};
use reading::Reading;

type Tweak = Arc<dyn Fn(&mut ListOptions) + Send + Sync>;

/// Lists and watches the objects of one kind on an API server, all of them or those of one namespace.
///
/// A source of [`PartialObjectMeta<K>`](::kube::core::PartialObjectMeta) asks for the metadata of objects alone. A
/// server that cannot do that sends whole objects, of which the metadata is kept.
///
/// Kinds of Kubernetes itself are asked for in protobuf, which costs the server a third of the CPU and everybody less
/// memory, and all answers are asked for compressed; [`WireOptions`] say otherwise.
/// A server that has neither sends what it has. Leave kube's own feature `gzip` off: it stops reading at the first of
/// the many pieces in which a server compresses a stream.
///
/// Give it a client that does not retry on its own, as kube's does unless told otherwise: the informer retries, and
/// says so.
///
/// ```no_run
/// use informer::source::KubeListWatch;
/// use k8s_openapi::api::core::v1::Pod;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let mut config = kube::Config::infer().await?;
/// config.default_retry = false;
/// let client = kube::Client::try_from(config)?;
/// let everywhere = KubeListWatch::<Pod>::all(client.clone());
/// let in_shop = KubeListWatch::<Pod>::all(client.clone()).in_namespace("shop").label_selector(&"app=web".parse()?);
/// let in_two = ["shop", "bank"].map(|name| KubeListWatch::<Pod>::all(client.clone()).in_namespace(name));
/// # Ok(()) }
/// ```
pub struct KubeListWatch<K: Resource> {
    client: Client,
    kind: K::DynamicType,
    namespace: Option<String>,
    label_selector: Option<String>,
    field_selector: Option<String>,
    tweaks: Vec<Tweak>,
    keep_managed_fields: bool,
    compressed: bool,
    /// Whether protobuf is asked for. Cleared by a server that refuses it.
    protobuf: Arc<AtomicBool>,
}

// Derived, it would ask for `K: Clone`.
impl<K: Resource<DynamicType: Clone>> Clone for KubeListWatch<K> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            label_selector: self.label_selector.clone(),
            field_selector: self.field_selector.clone(),
            tweaks: self.tweaks.clone(),
            keep_managed_fields: self.keep_managed_fields,
            compressed: self.compressed,
            protobuf: Arc::clone(&self.protobuf),
        }
    }
}

/// In which forms the answers of a server are asked for. A server that does not have one of them sends another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireOptions {
    /// Protobuf before JSON, for kinds of Kubernetes itself and for metadata.
    pub protobuf: bool,
    /// Compressed with gzip. That saves nine tenths of what goes over a network, and costs CPU on both sides.
    pub gzip: bool,
}

impl Default for WireOptions {
    fn default() -> Self {
        Self { protobuf: true, gzip: true }
    }
}

impl WireOptions {
    /// JSON alone.
    #[must_use]
    pub fn json(self) -> Self {
        Self { protobuf: false, ..self }
    }

    /// As it is, for a server on the same machine.
    #[must_use]
    pub fn uncompressed(self) -> Self {
        Self { gzip: false, ..self }
    }
}

impl<K: Resource> KubeListWatch<K> {
    /// All objects of the kind that `K` is.
    pub fn all(client: Client) -> Self
    where
        K::DynamicType: Default,
    {
        Self::of_kind(client, K::DynamicType::default())
    }

    /// All objects of a kind that is known only at run time: `K` is [`DynamicObject`](crate::DynamicObject) or the
    /// like.
    pub fn of_kind(client: Client, kind: K::DynamicType) -> Self {
        Self {
            client,
            kind,
            namespace: None,
            label_selector: None,
            field_selector: None,
            tweaks: Vec::new(),
            keep_managed_fields: false,
            compressed: true,
            protobuf: Arc::new(AtomicBool::new(true)),
        }
    }

    /// Only objects in this namespace; the empty text stands for all.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into()).filter(|namespace| !namespace.is_empty());
        self
    }

    /// Only objects with these labels.
    #[must_use]
    pub fn label_selector(mut self, selector: &Selector) -> Self {
        self.label_selector = joined(Some(selector.to_string()), None);
        self
    }

    /// Only objects with these fields.
    #[must_use]
    pub fn field_selector(mut self, selector: &FieldSelector) -> Self {
        self.field_selector = joined(Some(selector.to_string()), None);
        self
    }

    /// Has the last word on what every list and watch asks for. May be said several times; each sees what the
    /// one before it left.
    #[must_use]
    pub fn tweak(mut self, tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static) -> Self {
        self.tweaks.push(Arc::new(tweak));
        self
    }

    /// Keeps `metadata.managedFields`, half of most objects, which are left out before decoding otherwise.
    #[must_use]
    pub fn keep_managed_fields(mut self) -> Self {
        self.keep_managed_fields = true;
        self
    }

    /// In which forms answers are asked for, instead of protobuf and gzip.
    #[must_use]
    pub fn wire(mut self, options: WireOptions) -> Self {
        self.compressed = options.gzip;
        self.protobuf.store(options.protobuf, Relaxed);
        self
    }

    /// What is listed, in words, in a place in words.
    pub(crate) fn described(&self, place: &str) -> String {
        let (group, plural) = (K::group(&self.kind), K::plural(&self.kind));
        let metadata = if K::metadata_api() { "metadata of " } else { "" };
        let mut words = format!("{metadata}{}{place}", qualified_name(&plural, &group));
        if let Some(selector) = &self.label_selector {
            words += &format!(" with labels {selector:?}");
        }
        if let Some(selector) = &self.field_selector {
            words += &format!(" with fields {selector:?}");
        }
        words
    }

    /// What is asked for in the end.
    fn options(&self, options: ListOptions) -> ListOptions {
        let mut options = ListOptions {
            label_selector: joined(self.label_selector.clone(), options.label_selector),
            field_selector: joined(self.field_selector.clone(), options.field_selector),
            ..options
        };
        for tweak in &self.tweaks {
            tweak(&mut options);
        }
        options
    }

    fn request(&self, options: ListOptions, watch: bool) -> Result<Request<()>, SourceError> {
        let options = self.options(options);
        let path = K::url_path(&self.kind, self.namespace.as_deref());
        let uri = match query(&options, watch) {
            query if query.is_empty() => path,
            query => format!("{path}?{query}"),
        };
        let mut request = Request::get(&uri);
        if self.compressed {
            request = request.header(header::ACCEPT_ENCODING, "gzip");
        }
        request
            .body(())
            .map_err(|error| SourceError::Unreachable(format!("{uri:?} cannot be asked for: {error}")))
    }
}

impl<K> ListWatch<K> for KubeListWatch<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
{
    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn resource(&self) -> Option<GroupVersionResource> {
        let kind = &self.kind;
        GroupVersionResource::new(&K::group(kind), &K::version(kind), &K::plural(kind)).ok()
    }

    fn covers(&self, metadata: &ObjectMeta, object: &dyn Fn() -> Value) -> bool {
        let ListOptions { label_selector, field_selector, .. } = self.options(ListOptions::default());
        let labels = metadata.labels.as_ref().map(Labels::from).unwrap_or_default();
        // What cannot be read here, the server may understand.
        let matches =
            |text: String| Selector::parse(&text).map_or(true, |selector| selector.matches(&labels));
        let has = |text: String| FieldSelector::parse(&text).map_or(true, |fields| fields.matches(&object()));
        self.namespace().is_none_or(|namespace| metadata.namespace.as_deref() == Some(namespace))
            && label_selector.is_none_or(matches)
            && field_selector.is_none_or(has)
    }

    fn description(&self) -> String {
        match (&self.namespace, is_namespaced::<K>(&self.kind)) {
            (Some(namespace), _) => self.described(&format!(" in namespace {namespace:?}")),
            (None, Some(true)) => self.described(" in all namespaces"),
            (None, Some(false)) => self.described(""),
            // Whether a custom resource lies in namespaces is not known here.
            (None, None) => self.described(" in the whole cluster"),
        }
    }

    fn list(&self, options: ListOptions) -> BoxFuture<'static, Result<ListStream<K>, SourceError>> {
        let (asked, wire) = (self.ask(options, false), Wire::<K>::new(&self.kind, self.keep_managed_fields));
        async move {
            let mut answer = Reading::new(asked.await?);
            Ok(stream::poll_fn(move |cx| answer.poll_list(cx, &wire)).boxed())
        }
        .boxed()
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'static, Result<WatchStream<K>, SourceError>> {
        let (asked, wire) = (self.ask(options, true), Wire::<K>::new(&self.kind, self.keep_managed_fields));
        async move {
            let mut answer = Reading::new(asked.await?);
            Ok(stream::poll_fn(move |cx| answer.poll_watch(cx, &wire)).boxed())
        }
        .boxed()
    }
}

impl<K: Resource + DeserializeOwned> KubeListWatch<K> {
    /// Asks in protobuf first where objects can come in it, and without once a server has refused that.
    fn ask(
        &self,
        options: ListOptions,
        watch: bool,
    ) -> impl Future<Output = Result<Answer, SourceError>> + Send + 'static {
        let (client, request, protobuf) =
            (self.client.clone(), self.request(options, watch), Arc::clone(&self.protobuf));
        let known = Wire::<K>::new(&self.kind, false).knows_protobuf();
        let send = move |client: Client, request: &Request<()>, protobuf: bool| {
            let mut asked = Request::new(Body::empty());
            (*asked.uri_mut(), *asked.headers_mut()) = (request.uri().clone(), request.headers().clone());
            asked.headers_mut().insert(header::ACCEPT, accept::<K>(watch, protobuf));
            open(client, asked, move |codec| items(codec, watch))
        };
        async move {
            let request = request?;
            let with_protobuf = known && protobuf.load(Relaxed);
            match send(client.clone(), &request, with_protobuf).await {
                Err(SourceError::Status(status))
                    if with_protobuf && status.code == StatusCode::NOT_ACCEPTABLE.as_u16() =>
                {
                    tracing::info!(uri = %request.uri(), "the server refuses protobuf, JSON is asked for from now on");
                    protobuf.store(false, Relaxed);
                    send(client, &request, false).await
                }
                answer => answer,
            }
        }
    }
}

/// Whether the objects of a type are in namespaces, where that is known: the type says so, or its name is that of a
/// kind that Kubernetes has built in.
pub(crate) fn is_namespaced<K: Resource + 'static>(kind: &K::DynamicType) -> Option<bool> {
    let scope = TypeId::of::<K::Scope>();
    if scope == TypeId::of::<NamespaceResourceScope>() {
        return Some(true);
    }
    if scope == TypeId::of::<ClusterResourceScope>() {
        return Some(false);
    }
    let (group, plural) = (K::group(kind), K::plural(kind));
    let builtin = BUILTIN_KINDS.iter().find(|builtin| builtin.group == group && builtin.plural == plural);
    builtin.map(|builtin| builtin.namespaced)
}

/// In which form objects are asked for.
fn accept<K: Resource>(watch: bool, protobuf: bool) -> HeaderValue {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    let kind = if watch { "PartialObjectMetadata" } else { "PartialObjectMetadataList" };
    let medias = [PROTOBUF, "application/json"];
    let mut accepted: Vec<String> =
        medias[usize::from(!protobuf)..].iter().map(|media| (*media).to_owned()).collect();
    if K::metadata_api() {
        accepted.iter_mut().for_each(|media| *media += &format!(";as={kind};g=meta.k8s.io;v=v1"));
        accepted.push("application/json".to_owned());
    }
    HeaderValue::try_from(accepted.join(",")).expect("media types are ASCII")
}

/// One item at a time. One that is too large or too deep is left out and spoils nothing else.
fn items(codec: Codec, watch: bool) -> FrameDecoder {
    let framing = match (codec, watch) {
        (Codec::Json, false) => Framing::JsonList,
        (Codec::Json, true) => Framing::Json,
        (Codec::Protobuf, false) => Framing::ProtobufList,
        (Codec::Protobuf, true) => Framing::LengthDelimited,
    };
    FrameDecoder::new(framing).skipping()
}

/// Both selectors: what matches the one and the other.
fn joined(one: Option<String>, other: Option<String>) -> Option<String> {
    let one = one.filter(|text| !text.is_empty());
    let other = other.filter(|text| !text.is_empty());
    match (one, other) {
        (Some(one), Some(other)) => Some(format!("{one},{other}")),
        (one, other) => one.or(other),
    }
}

/// The options as the API spells them. What is not set is not sent.
fn query(options: &ListOptions, watch: bool) -> String {
    let ListOptions {
        label_selector,
        field_selector,
        resource_version,
        resource_version_match,
        limit,
        continue_token,
        timeout,
        allow_watch_bookmarks,
        send_initial_events,
    } = options;
    let flag = |set: bool| set.then(|| "true".to_owned());
    let parameters = [
        ("watch", watch.then(|| "1".to_owned())),
        ("labelSelector", label_selector.clone()),
        ("fieldSelector", field_selector.clone()),
        ("resourceVersion", (!resource_version.is_unset()).then(|| resource_version.to_string())),
        ("resourceVersionMatch", resource_version_match.map(|meant| meant.as_str().to_owned())),
        ("limit", limit.map(|limit| limit.to_string())),
        ("continue", continue_token.clone()),
        ("timeoutSeconds", timeout.map(|timeout| timeout.as_secs().to_string())),
        ("allowWatchBookmarks", flag(*allow_watch_bookmarks)),
        ("sendInitialEvents", flag(*send_initial_events)),
    ];
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters {
        if let Some(value) = value {
            query.append_pair(name, &value);
        }
    }
    query.finish()
}
