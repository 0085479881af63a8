//! The RBAC objects of the cluster, watched: to ask less, and never to allow more.
//!
//! They are used where two things hold: the gateway may read them, and the cluster says that its rules can be listed in
//! full (`SelfSubjectRulesReview`), so that no webhook decides as well. Then a namespace that no binding reaches is not
//! asked about, and an answer stays good for as long as no RBAC object changes. Otherwise everything is asked.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::try_join_all;
use informer_model::{ResourceArg, Status};
use k8s_openapi::api::authorization::v1::{SelfSubjectRulesReview, SelfSubjectRulesReviewSpec};
use kube::{Api, api::PostParams};
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout},
};

use super::rbac::Rules;
use crate::{
    cache::{Cache, collection::Collection},
    work::apart,
};

/// The kinds that decide.
const KINDS: [&str; 4] = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"];
/// How long to wait for the cluster.
const WITHIN: Duration = Duration::from_secs(5);
/// How long a word about the authorizers of the cluster counts, or that the RBAC objects may not be read. While the cluster
/// cannot be asked it counts for twice as long.
const RECHECK: Duration = Duration::from_secs(60);
/// How soon it is asked again after it did not answer.
const RETRY: Duration = Duration::from_secs(5);
/// For how long the watches may have been down.
const STALE: Duration = Duration::from_secs(3);
/// An API server hears of a change by a watch of its own: so long after one its answers may still be of before.
const SETTLES: Duration = Duration::from_secs(10);

/// What the RBAC objects say, kept up to date while somebody asks.
#[derive(Default)]
pub(crate) struct Authority {
    state: Mutex<State>,
    /// Held by the one who reads them, for all who wait.
    reading: AsyncMutex<()>,
}

#[derive(Default)]
struct State {
    /// When the cluster was last asked whether RBAC decides alone, and what it said.
    alone: Option<(Instant, bool)>,
    /// It did not answer, and is not asked again before.
    ask_after: Option<Instant>,
    /// The objects could not be read, and are not before.
    read_after: Option<Instant>,
    read: Option<Read>,
    /// A number for what the objects say: another one after every change.
    epoch: u64,
}

struct Read {
    collections: Vec<Arc<Collection>>,
    /// The changes of each that the rules have.
    totals: Vec<u64>,
    rules: Arc<Rules>,
    since: Instant,
}

impl State {
    /// Whether RBAC decided alone when the cluster last said so, not too long ago.
    fn was_alone(&self) -> bool {
        self.alone.is_some_and(|(asked, alone)| alone && asked.elapsed() < 2 * RECHECK)
    }
}

fn is_ahead(moment: Option<Instant>) -> bool {
    moment.is_some_and(|moment| Instant::now() < moment)
}

impl Read {
    fn is_current(&self) -> bool {
        let is_watched =
            |collection: &Arc<Collection>| collection.age() < STALE && !collection.informer.is_stopped();
        self.totals == totals(&self.collections) && self.collections.iter().all(is_watched)
    }
}

fn totals(collections: &[Arc<Collection>]) -> Vec<u64> {
    collections.iter().map(|collection| collection.changes.total()).collect()
}

impl Authority {
    /// What the RBAC objects say, where they decide alone and can be read.
    pub(crate) async fn rules(self: &Arc<Self>, cache: &Arc<Cache>) -> Option<Arc<Rules>> {
        let (authority, cache) = (Arc::clone(self), Arc::clone(cache));
        apart(async move { authority.read(&cache).await }).await
    }

    async fn read(&self, cache: &Arc<Cache>) -> Option<Arc<Rules>> {
        let _reading = self.reading.lock().await;
        if is_ahead(self.state().read_after) || !self.decides_alone(cache).await {
            return None;
        }
        let read = timeout(WITHIN, try_join_all(KINDS.map(|kind| collection(cache, kind)))).await;
        let collections = match read {
            Ok(Ok(collections)) => collections,
            Ok(Err(status)) if matches!(status.code, 403 | 404) => {
                return self.give_up(&status.message, RECHECK);
            }
            Ok(Err(status)) => return self.give_up(&status.message, RETRY),
            Err(_) => return self.give_up("they do not come in time", RETRY),
        };
        if collections.iter().any(|collection| collection.age() >= STALE) {
            return None;
        }
        let is_same = |read: &Read| {
            read.is_current() && read.collections.iter().zip(&collections).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        if let Some(read) = self.state().read.as_ref().filter(|read| is_same(read)) {
            return Some(Arc::clone(&read.rules));
        }
        // Counted before they are read: what comes in between makes them be read again.
        let totals = totals(&collections);
        let snapshots: Vec<_> = collections.iter().map(|collection| collection.snapshot()).collect();
        let reading = tokio::task::spawn_blocking(move || {
            let (roles, bindings) = snapshots.split_at(2);
            Rules::new(
                roles.iter().flat_map(|snapshot| snapshot.iter()),
                bindings.iter().flat_map(|snapshot| snapshot.iter()),
            )
        });
        let rules = Arc::new(reading.await.ok()?);
        let mut state = self.state();
        state.epoch += 1;
        let since = Instant::now();
        state.read = Some(Read { collections, totals, rules: Arc::clone(&rules), since });
        Some(rules)
    }

    /// A number that stays the same for as long as no answer of the cluster can have changed; none where that is not
    /// known.
    pub(crate) fn settled(&self) -> Option<u64> {
        let state = self.state();
        let read = state.read.as_ref()?;
        (state.was_alone() && read.since.elapsed() >= SETTLES && read.is_current()).then_some(state.epoch)
    }

    /// Whether the cluster can list all rules that there are. A webhook cannot.
    async fn decides_alone(&self, cache: &Cache) -> bool {
        {
            let state = self.state();
            if let Some((asked, alone)) = state.alone
                && asked.elapsed() < RECHECK
            {
                return alone;
            }
            if is_ahead(state.ask_after) {
                return state.was_alone();
            }
        }
        let spec = SelfSubjectRulesReviewSpec { namespace: Some("default".to_owned()) };
        let review = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
        let api = Api::all(cache.client());
        let params = PostParams::default();
        let answered = timeout(WITHIN, api.create(&params, &review)).await;
        let mut state = self.state();
        let alone = match answered {
            Ok(Ok(reviewed)) => reviewed.status.is_some_and(|status| !status.incomplete),
            Ok(Err(kube::Error::Api(status))) if (400..500).contains(&status.code) && status.code != 429 => {
                tracing::debug!(status.message, "the cluster does not list rules");
                false
            }
            // That is no answer: a cluster in trouble is not to be asked more than before.
            _ => {
                state.ask_after = Some(Instant::now() + RETRY);
                return state.was_alone();
            }
        };
        state.alone = Some((Instant::now(), alone));
        alone
    }

    fn give_up(&self, why: &str, pause: Duration) -> Option<Arc<Rules>> {
        tracing::info!("RBAC objects cannot be read, so every namespace is asked about: {why}");
        let mut state = self.state();
        state.read_after = Some(Instant::now() + pause);
        state.read = None;
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn collection(cache: &Arc<Cache>, kind: &str) -> Result<Arc<Collection>, Status> {
    let resource = ResourceArg::try_from(format!("rbac.authorization.k8s.io/v1/{kind}").as_str());
    let resource = resource.map_err(Status::internal_error)?;
    cache.collection(&cache.resolve(&resource).await?).await
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::cache::tests::{SOON, mk_cache};

    #[tokio::test]
    async fn a_caller_that_is_never_polled_again_keeps_nobody_from_the_rules() {
        let (_server, cache) = mk_cache();
        let authority = Arc::new(Authority::default());
        let mut stalled = Box::pin(authority.rules(&cache));
        assert!((&mut stalled).now_or_never().is_none());
        // This server has no such review, so RBAC does not decide alone.
        assert!(timeout(SOON, authority.rules(&cache)).await.expect("an answer").is_none());
        drop(stalled);
    }
}
