//! The way to the server in a simulated life. It panics, leads to a replica that lags behind, or is forbidden, when the
//! world says so; what cannot be used makes its type panic when it is decoded; and it remembers what has been there from
//! the beginning.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, Ready, ready},
};
use http::{Request, Response};
use http_body_util::Full;
use informer::{
    KubeListWatch,
    model::{ResourceVersion, Status},
    source::{
        ListItem, ListOptions, ListStream, ListWatch, MemorySource, SourceError, Unusable, VersionMatch,
        WatchChange, WatchItem, WatchStream,
    },
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::client::Body;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tower_service::Service;

use super::{listeners::PLANNED, support::Config};

/// A source of the informer: the server, or one namespace of it, with what goes wrong on the way.
#[derive(Clone)]
pub(crate) struct Way {
    server: MemorySource<ConfigMap>,
    pub(crate) mishaps: Arc<Mishaps>,
}

#[derive(Default)]
pub(crate) struct Mishaps {
    /// How many of the next requests panic, and of the next items of a list or watch.
    pub(crate) requests: AtomicUsize,
    pub(crate) items: AtomicUsize,
    /// A list at any version is answered at this one, unless it is 0.
    pub(crate) replica: AtomicU64,
    pub(crate) forbidden: AtomicBool,
    /// The version of the first list.
    first_list: OnceLock<u64>,
}

impl Way {
    pub(crate) fn new(server: MemorySource<ConfigMap>) -> Self {
        Self { server, mishaps: Arc::default() }
    }

    fn is_forbidden(&self) -> Option<SourceError> {
        let forbidden = self.mishaps.forbidden.load(Ordering::SeqCst);
        forbidden.then(|| Status::forbidden("configmaps", "", "", "no rights in this namespace").into())
    }
}

impl Mishaps {
    fn listed(&self, version: &ResourceVersion) {
        self.first_list.get_or_init(|| version.to_string().parse().expect("a number"));
    }
}

fn lose_it(times: &AtomicUsize) {
    let left = times.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    assert!(left.is_err(), "{PLANNED}");
}

impl ListWatch<ConfigMap> for Way {
    fn namespace(&self) -> Option<&str> {
        self.server.namespace()
    }

    fn description(&self) -> String {
        self.server.description()
    }

    fn list(
        &self,
        mut options: ListOptions,
    ) -> BoxFuture<'static, Result<ListStream<ConfigMap>, SourceError>> {
        lose_it(&self.mishaps.requests);
        if let Some(forbidden) = self.is_forbidden() {
            return ready(Err(forbidden)).boxed();
        }
        let replica = self.mishaps.replica.load(Ordering::SeqCst);
        if options.resource_version == ResourceVersion::ANY && replica > 0 {
            options.resource_version = replica.into();
            options.resource_version_match = Some(VersionMatch::Exact);
        }
        let (opening, mishaps) = (self.server.list(options), Arc::clone(&self.mishaps));
        let noted = move |item: &Result<ListItem<ConfigMap>, SourceError>| {
            lose_it(&mishaps.items);
            match item {
                Ok(ListItem::End(end)) if end.continue_token.is_none() => mishaps.listed(&end.version),
                _ => {}
            }
        };
        let received = async |item| match item {
            Ok(ListItem::Unusable(unusable)) => Ok(ListItem::Unusable(received(unusable).await)),
            other => other,
        };
        async move { Ok(opening.await?.then(received).inspect(noted).boxed()) }.boxed()
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'static, Result<WatchStream<ConfigMap>, SourceError>> {
        lose_it(&self.mishaps.requests);
        if let Some(forbidden) = self.is_forbidden() {
            return ready(Err(forbidden)).boxed();
        }
        let (opening, mishaps) = (self.server.watch(options), Arc::clone(&self.mishaps));
        let noted = move |item: &Result<WatchItem<ConfigMap>, SourceError>| {
            lose_it(&mishaps.items);
            if let Ok(WatchItem::Bookmark { version, initial_events_end: true }) = item {
                mishaps.listed(version);
            }
        };
        let received = async |item| match item {
            Ok(WatchItem::Unusable(change, unusable)) => {
                let (change, unusable) = received_event(change, unusable).await;
                Ok(WatchItem::Unusable(change, unusable))
            }
            other => other,
        };
        async move { Ok(opening.await?.then(received).inspect(noted).boxed()) }.boxed()
    }
}

/// A config map at which decoding panics, whatever it contains.
#[derive(Debug, Clone)]
struct Thorny {
    metadata: ObjectMeta,
}

impl<'de> Deserialize<'de> for Thorny {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("{PLANNED}")
    }
}

informer::projection!(Thorny of ConfigMap);

fn metadata(unusable: &Unusable) -> Value {
    let key = unusable.key.as_ref().expect("the server knows it");
    json!({ "namespace": key.namespace(), "name": key.name(), "resourceVersion": unusable.version.to_string() })
}

fn answering(answer: &Value) -> KubeListWatch<Thorny> {
    KubeListWatch::all(kube::Client::new(Answer(answer.to_string()), "default"))
}

/// The same, as the library receives it in a list of a server: it comes as bytes, and its type panics.
async fn received(unusable: Unusable) -> Unusable {
    let list = json!({
        "kind": "ConfigMapList", "apiVersion": "v1", "metadata": { "resourceVersion": "1" },
        "items": [{ "metadata": metadata(&unusable) }],
    });
    let mut items = answering(&list).list(ListOptions::default()).await.expect("an answer");
    match items.next().await {
        Some(Ok(ListItem::Unusable(unusable))) => unusable,
        other => panic!("{} was received as {other:?}", unusable.name),
    }
}

/// The same, as the library receives it in a watch.
async fn received_event(change: WatchChange, unusable: Unusable) -> (WatchChange, Unusable) {
    let kind = format!("{change:?}").to_uppercase();
    let object = json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata(&unusable) });
    let event = json!({ "type": kind, "object": object });
    let mut items = answering(&event).watch(ListOptions::default()).await.expect("an answer");
    match items.next().await {
        Some(Ok(WatchItem::Unusable(change, unusable))) => (change, unusable),
        other => panic!("{} was received as {other:?}", unusable.name),
    }
}

/// A server with one answer.
#[derive(Clone)]
struct Answer(String);

impl Service<Request<Body>> for Answer {
    type Response = Response<Full<bytes::Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let response = Response::builder().header("content-type", "application/json");
        ready(Ok(response.body(Full::from(self.0.clone())).expect("an answer")))
    }
}

/// What was there when: for the word `initial`.
#[derive(Clone, Default)]
pub(crate) struct Births {
    ways: Vec<Way>,
    versions: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Births {
    pub(crate) fn new(ways: Vec<Way>) -> Self {
        Self { ways, versions: Arc::default() }
    }

    /// Notes an object that was written.
    pub(crate) fn note(&self, object: &Config) {
        let version = object.resource_version().to_string().parse().expect("a number");
        self.versions.lock().unwrap().entry(uid(object)).or_insert(version);
    }

    /// Whether an object was there when the server had a version, or in the first list of its source.
    pub(crate) fn existed(&self, object: &Config, at: u64) -> bool {
        let covers = |way: &&Way| way.namespace().is_none_or(|one| object.key().namespace() == Some(one));
        let listed = self.ways.iter().find(covers).and_then(|way| way.mishaps.first_list.get());
        let born = self.versions.lock().unwrap().get(&uid(object)).copied();
        born.is_some_and(|born| born <= at || listed.is_some_and(|listed| born <= *listed))
    }
}

fn uid(object: &Config) -> String {
    object.metadata.uid.clone().expect("the server gives one")
}
