//! Reads of the cache that wait for our own writes.

use std::{borrow::Borrow, fmt, sync::Arc};

use informer_model::{ObjectKey, Selector};
use kube::Resource;

use super::{Behind, ledger::Ledger};
use crate::{Lister, NotFound, Object};

/// Reads the cache after our own writes; made by [`Writes::lister`](super::Writes::lister). It is cheap to clone (an `Arc`).
///
/// A read of an object waits until the cache shows what was written to that object, a list for what was written to all that it is about. What
/// the cache does not show when the limit of a write is over is an error, at once from then on: no read is answered with what
/// was before.
pub struct FreshLister<K> {
    ledger: Arc<Ledger<K>>,
    lister: Lister<K>,
}

/// Why an object cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no such object.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// The cache is behind a write of ours.
    #[error(transparent)]
    Behind(#[from] Behind),
}

impl<K: Resource + 'static> FreshLister<K> {
    pub(super) fn new(ledger: Arc<Ledger<K>>, lister: Lister<K>) -> Self {
        Self { ledger, lister }
    }

    /// One object by its key, which is an [`ObjectKey`] or a text.
    pub async fn get<Q: Borrow<str> + ?Sized>(&self, key: &Q) -> Result<Object<K>, ReadError> {
        if let Ok(parsed) = key.borrow().parse() {
            self.ledger.ready(&parsed).await?;
        }
        Ok(self.lister.get(key)?)
    }

    /// One object by its key, if there is one.
    pub async fn get_opt(&self, key: &ObjectKey) -> Result<Option<Object<K>>, Behind> {
        self.ledger.ready(key).await?;
        Ok(self.ledger.store().get(key))
    }

    /// All objects whose labels match, at one point in time, in the order of keys.
    pub async fn list(&self, selector: &Selector) -> Result<Vec<Object<K>>, Behind> {
        self.ledger.all_ready(|_| true).await?;
        Ok(self.lister.list(selector))
    }

    /// All objects of a namespace whose labels match, at one point in time, in the order of names.
    pub async fn list_namespace(
        &self,
        namespace: &str,
        selector: &Selector,
    ) -> Result<Vec<Object<K>>, Behind> {
        self.ledger.all_ready(|key| namespace.is_empty() || key.namespace() == Some(namespace)).await?;
        Ok(self.lister.namespace(namespace).list(selector))
    }

    /// The lister that waits for nothing.
    pub fn at_once(&self) -> &Lister<K> {
        &self.lister
    }
}

impl<K> Clone for FreshLister<K> {
    fn clone(&self) -> Self {
        Self { ledger: Arc::clone(&self.ledger), lister: self.lister.clone() }
    }
}

impl<K> fmt::Debug for FreshLister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FreshLister").field(&self.lister).finish()
    }
}
