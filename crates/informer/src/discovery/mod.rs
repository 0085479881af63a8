//! What a server serves, and which of it a name means.
//!
//! In: a client, and names as people write them (`po`, `deployments.apps`, `example.com/v1/websites`). Out: the
//! [`ServedResource`] that is meant, or a [`ResolveError`] that says which names are near.
//!
//! ```
//! use informer::discovery::Discovery;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = informer_apiserver::ApiServer::builder().build(); // a cluster in this process
//! let discovery = Discovery::new(server.client());
//! let deployments = discovery.resolve(&"deploy".parse()?).await?;
//! assert_eq!((deployments.api.kind.as_str(), deployments.name().as_str()), ("Deployment", "deployments.apps"));
//!
//! let error = discovery.resolve(&"psd".parse()?).await.unwrap_err();
//! assert_eq!(error.to_string(), "the server has no resource \"psd\"; did you mean pods?");
//! # Ok(()) }
//! ```

mod catalog;
mod documents;
mod error;
mod nearest;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwapOption;
use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use informer_model::ResourceArg;
use kube::Client;

pub use catalog::{Catalog, ServedResource};
pub use error::ResolveError;

use crate::request::SourceError;

/// What a server serves, asked for once and kept. It is cheap to clone (an `Arc`).
///
/// A resource that is new since then is found, because a name that is not known is asked for again. One that is gone
/// since stays known until a [`refresh`](Self::refresh).
///
/// Callers at the same time share the requests, each of which is given up after 30 s. Every wait may be given up
/// at any time; to limit one, put it into a [`tokio::time::timeout`].
#[derive(Clone)]
pub struct Discovery {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    known: ArcSwapOption<Catalog>,
    rounds: Mutex<Rounds>,
}

type Answer = Result<Arc<Catalog>, SourceError>;

/// A round of requests. Whoever waits for it drives it on, and it ends with the last who does.
type Round = BoxFuture<'static, Answer>;

/// There is one round at a time.
#[derive(Default)]
struct Rounds {
    /// The requests of this one have begun: it is too old for whoever comes now.
    begun: Option<WeakShared<Round>>,
    /// This one begins when that has ended.
    next: Option<WeakShared<Round>>,
}

impl Discovery {
    /// What the server of this client serves. Nothing is asked yet.
    pub fn new(client: Client) -> Self {
        let (known, rounds) = (ArcSwapOption::empty(), Mutex::default());
        Self { inner: Arc::new(Inner { client, known, rounds }) }
    }

    /// The resource that is meant, if it can be listed and watched.
    ///
    /// The server is asked at first, and again when the name is not among what is known. If that fails, all that was
    /// known stays so.
    pub async fn resolve(&self, resource: &ResourceArg) -> Result<ServedResource, ResolveError> {
        if let Some(known) = self.inner.known.load_full() {
            match known.find(resource) {
                Err(ResolveError::Unknown { .. }) => {}
                found => return found.cloned(),
            }
        }
        self.refresh().await?.find(resource).cloned()
    }

    /// All that is served, as far as it is known; asked for if nothing is.
    pub async fn catalog(&self) -> Result<Arc<Catalog>, SourceError> {
        match self.inner.known.load_full() {
            Some(known) => Ok(known),
            None => self.refresh().await,
        }
    }

    /// All that is served, asked for now.
    pub async fn refresh(&self) -> Result<Arc<Catalog>, SourceError> {
        self.round().await
    }

    /// Asks again before the next answer: something is known to have changed.
    pub(crate) fn forget(&self) {
        self.inner.known.store(None);
    }

    /// A round that has not begun yet.
    fn round(&self) -> Shared<Round> {
        let mut rounds = self.inner.rounds();
        if let Some(next) = rounds.next.as_ref().and_then(WeakShared::upgrade) {
            return next;
        }
        let before = rounds.begun.as_ref().and_then(WeakShared::upgrade);
        let inner = Arc::clone(&self.inner);
        let round = async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            {
                let mut rounds = inner.rounds();
                rounds.begun = rounds.next.take();
            }
            let catalog = Arc::new(documents::ask(&inner.client).await?);
            inner.known.store(Some(Arc::clone(&catalog)));
            Ok(catalog)
        };
        let round = round.boxed().shared();
        rounds.next = round.downgrade();
        round
    }
}

impl Inner {
    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery").field("known", &self.inner.known.load()).finish_non_exhaustive()
    }
}
