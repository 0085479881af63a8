//! What an informer covers: sources that are fixed, or that come and go with namespaces and with the kind itself.

use std::{collections::BTreeSet, future::pending, sync::Arc};

use futures_util::future::BoxFuture;
use informer_model::GroupVersionResource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    Departure, Namespaces,
    namespaces::Names,
    source::{ListOptions, ListStream, ListWatch, SourceError, WatchStream},
};

/// Makes the source of a namespace.
pub(crate) type SourceOf<K> = Arc<dyn Fn(&str) -> Arc<dyn ListWatch<K>> + Send + Sync>;

/// Whether the server serves a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Presence {
    /// That is still to be found out.
    Unknown,
    /// It does, and this is which of all that have had the name.
    Served(u64),
    /// It does not. These words say why.
    Absent(Arc<str>),
}

pub(crate) struct Coverage<K> {
    /// The sources that there are whatever namespaces come and go.
    pub(crate) fixed: Vec<Arc<dyn ListWatch<K>>>,
    followed: Option<(watch::Receiver<Names>, SourceOf<K>)>,
    kind: Option<watch::Receiver<Presence>>,
    /// Which resource of an API the sources that are made are of, where that is known before.
    resource: Option<GroupVersionResource>,
}

/// Which of the sources of an informer one is. What was made of a definition is another one than what was made of its successor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    kind: u64,
    which: Which,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Which {
    Fixed(usize),
    Namespace(Arc<str>),
}

/// What is to be listed and watched at a moment.
pub(crate) struct Wanted {
    kind: Presence,
    /// `None` for the fixed sources.
    names: Option<Arc<BTreeSet<Arc<str>>>>,
}

/// A source that was made for a namespace, whatever it says of itself: what it has of others is nobody's.
pub(crate) struct Within<S> {
    pub(crate) namespace: Arc<str>,
    pub(crate) source: S,
}

impl<K, S: ListWatch<K>> ListWatch<K> for Within<S> {
    fn namespace(&self) -> Option<&str> {
        Some(&self.namespace)
    }

    fn resource(&self) -> Option<GroupVersionResource> {
        self.source.resource()
    }

    fn covers(&self, metadata: &ObjectMeta, object: &dyn Fn() -> Value) -> bool {
        self.source.covers(metadata, object)
    }

    fn description(&self) -> String {
        self.source.description()
    }

    fn list(&self, options: ListOptions) -> BoxFuture<'static, Result<ListStream<K>, SourceError>> {
        self.source.list(options)
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'static, Result<WatchStream<K>, SourceError>> {
        self.source.watch(options)
    }
}

impl Wanted {
    /// Why there is nothing, if the kind is what is missing.
    pub(crate) fn absent(&self) -> Option<Arc<str>> {
        if let Presence::Absent(why) = &self.kind { Some(Arc::clone(why)) } else { None }
    }

    /// Why a source is not to go on, if it is not.
    pub(crate) fn departure(&self, slot: &Slot) -> Option<Departure> {
        if !matches!(self.kind, Presence::Served(kind) if kind == slot.kind) {
            return Some(Departure::Kind);
        }
        match (&slot.which, &self.names) {
            (Which::Namespace(name), Some(names)) if !names.contains(name) => Some(Departure::Namespace),
            _ => None,
        }
    }
}

impl<K> Clone for Coverage<K> {
    fn clone(&self) -> Self {
        let Self { fixed, followed, kind, resource } = self;
        let (fixed, followed) = (fixed.clone(), followed.clone());
        Self { fixed, followed, kind: kind.clone(), resource: resource.clone() }
    }
}

impl<K: 'static> Coverage<K> {
    pub(crate) fn fixed(sources: Vec<Arc<dyn ListWatch<K>>>) -> Self {
        Self { fixed: sources, followed: None, kind: None, resource: None }
    }

    pub(crate) fn following(
        namespaces: &Namespaces,
        source: SourceOf<K>,
        resource: Option<GroupVersionResource>,
    ) -> Self {
        Self { fixed: Vec::new(), followed: Some((namespaces.follow(), source)), kind: None, resource }
    }

    /// Covers something only while its kind is there.
    pub(crate) fn of_kind(mut self, kind: watch::Receiver<Presence>) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Whether a watch of any source tells of an object with this metadata now; see [`ListWatch::covers`].
    #[cfg(feature = "controller")]
    pub(crate) fn covers(&self, metadata: &ObjectMeta, object: &dyn Fn() -> Value) -> bool {
        if self.kind.as_ref().is_some_and(|kind| matches!(*kind.borrow(), Presence::Absent(_))) {
            return false;
        }
        let Some((names, source)) = &self.followed else {
            return self.fixed.iter().any(|source| source.covers(metadata, object));
        };
        let Some(namespace) = metadata.namespace.as_deref() else { return false };
        names.borrow().as_ref().is_none_or(|names| names.contains(namespace))
            && source(namespace).covers(metadata, object)
    }

    /// Which resource of an API all sources are of, where they say so.
    pub(crate) fn resource(&self) -> Option<GroupVersionResource> {
        self.resource.clone().or_else(|| self.fixed.first()?.resource())
    }

    pub(crate) fn follows_namespaces(&self) -> bool {
        self.followed.is_some()
    }

    /// Whether it can change.
    pub(crate) fn changes(&self) -> bool {
        self.followed.is_some() || self.kind.is_some()
    }

    /// Returns when it may have changed since it was last looked at.
    pub(crate) async fn changed(&mut self) {
        async fn next<T>(receiver: Option<&mut watch::Receiver<T>>) {
            match receiver {
                // With nobody left who could change it, it stays as it is.
                Some(receiver) => {
                    if receiver.changed().await.is_err() {
                        pending::<()>().await;
                    }
                }
                None => pending().await,
            }
        }
        tokio::select! {
            () = next(self.followed.as_mut().map(|(names, _)| names)) => {}
            () = next(self.kind.as_mut()) => {}
        }
    }

    /// What is wanted now; what is not known yet if that is not.
    pub(crate) fn wanted(&mut self) -> Result<Wanted, &'static str> {
        let kind = match &mut self.kind {
            Some(kind) => kind.borrow_and_update().clone(),
            None => Presence::Served(0),
        };
        let names = self.followed.as_mut().map(|(names, _)| names.borrow_and_update().clone());
        match (&kind, names) {
            (Presence::Unknown, _) => Err("whether the server has this kind is not known yet"),
            (Presence::Served(_), Some(None)) => Err("the namespaces to list are not known yet"),
            // A kind that is not there has no objects in any namespace.
            (Presence::Absent(_), _) | (_, None) => Ok(Wanted { kind, names: None }),
            (_, Some(names)) => Ok(Wanted { kind, names }),
        }
    }

    /// The sources that are wanted, but for those that are there.
    pub(crate) fn missing(
        &self,
        wanted: &Wanted,
        is_there: impl Fn(&Slot) -> bool,
    ) -> Vec<(Slot, Arc<dyn ListWatch<K>>)> {
        let Presence::Served(kind) = wanted.kind else { return Vec::new() };
        let slot = |which| Slot { kind, which };
        let mut missing = Vec::new();
        for (at, source) in self.fixed.iter().enumerate() {
            let slot = slot(Which::Fixed(at));
            if !is_there(&slot) {
                missing.push((slot, Arc::clone(source)));
            }
        }
        if let (Some(names), Some((_, source))) = (&wanted.names, &self.followed) {
            for name in names.iter() {
                let slot = slot(Which::Namespace(Arc::clone(name)));
                if !is_there(&slot) {
                    missing.push((slot, source(name)));
                }
            }
        }
        missing
    }
}
