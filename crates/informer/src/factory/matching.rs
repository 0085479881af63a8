//! The namespaces that have certain labels, as sets that informers follow.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt};
use informer_model::Selector;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;

use super::{Scope, SharedInformerFactory, scope::Which};
use crate::{Namespaces, SharedInformer};

type Meta = PartialObjectMeta<Namespace>;

/// One set for each selector, with the informer that fills it.
#[derive(Default)]
pub(super) struct Matching(Mutex<HashMap<Selector, (Namespaces, SharedInformer<Meta>)>>);

impl SharedInformerFactory {
    /// The namespaces that a scope follows, if it follows any.
    pub(super) fn followed_namespaces(&self, scope: &Scope) -> Option<Namespaces> {
        match scope.which_namespaces() {
            Which::Fixed(_) => None,
            Which::Followed(namespaces) => Some(namespaces.clone()),
            Which::Matching(selector) => Some(self.matching(selector)),
        }
    }

    fn matching(&self, selector: &Selector) -> Namespaces {
        let informer = self.scoped(Scope::everything().labels(selector)).informer_for::<Meta>();
        let mut sets = self.inner.matching.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (namespaces, filled_by) = match sets.get(selector) {
            Some((namespaces, filled_by)) if filled_by.ptr_eq(&informer) => return namespaces.clone(),
            // The informer was stopped: another one takes over.
            Some((namespaces, _)) => (namespaces.clone(), informer),
            None => (Namespaces::unknown(), informer),
        };
        self.inner.registry.accompany(fill(namespaces.clone(), filled_by.clone()));
        sets.insert(selector.clone(), (namespaces.clone(), filled_by));
        namespaces
    }
}

/// Keeps a set to what an informer of namespaces has, from its first list until it stops.
async fn fill(namespaces: Namespaces, informer: SharedInformer<Meta>) {
    let Ok(mut news) = informer.subscribe() else { return };
    if informer.wait_until_synced(Duration::MAX).await.is_err() {
        return;
    }
    loop {
        let names: Vec<String> =
            informer.store().snapshot().iter().map(|it| it.key().name().to_owned()).collect();
        if let Err(error) = namespaces.set(names) {
            tracing::error!(%error, "the server has a namespace that cannot be; the others are followed as they were");
        }
        if news.next().await.is_none() {
            return;
        }
        // What has come together is looked at once.
        while news.next().now_or_never().flatten().is_some() {}
    }
}
