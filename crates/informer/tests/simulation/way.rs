//! The way to the server in a simulated life. It panics, leads to a replica that lags behind, or is forbidden, when the
//! world says so; and it remembers what has been there from the beginning.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, ready},
};
use informer::{
    model::{ResourceVersion, Status},
    source::{
        ListItem, ListOptions, ListStream, ListWatch, MemorySource, SourceError, VersionMatch, WatchItem,
        WatchStream,
    },
};
use k8s_openapi::api::core::v1::ConfigMap;

use crate::{listeners::PLANNED, support::Config};

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
        async move { Ok(opening.await?.inspect(noted).boxed()) }.boxed()
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
        async move { Ok(opening.await?.inspect(noted).boxed()) }.boxed()
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
