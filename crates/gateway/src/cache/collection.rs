//! One resource in memory: its informer, its last changes, and how many use it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use informer::{
    Health, Object, SharedInformer, SyncError,
    discovery::ServedResource,
    store::{IndexHandle, Snapshot, Store},
};
use informer_model::{Reason, Status};
use informer_serving::table::Columns;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use super::{
    changes::{Changes, Cursor, Depth, Place, Recorder},
    past::Past,
    snapshots::Snapshots,
    stored::{Sizes, Stored},
};
use crate::work::apart;

/// How long the first request for a resource waits for its list.
const SYNC_WITHIN: Duration = Duration::from_secs(60);
/// How often it looks meanwhile whether there is any hope.
const LOOK: Duration = Duration::from_millis(50);

/// The name of the index by the uids of owners.
const OWNER_INDEX: &str = "owner";

/// The objects of one resource, kept up to date.
pub(crate) struct Collection {
    pub(crate) served: ServedResource,
    /// `core/v1/pods`
    pub(crate) path: String,
    pub(crate) informer: SharedInformer<Stored>,
    pub(crate) store: Store<Stored>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) snapshots: Snapshots,
    pub(crate) columns: Columns,
    owners: IndexHandle<Stored>,
    /// Where it can be asked for.
    past: Option<Past>,
    used: Mutex<Instant>,
    users: Arc<AtomicUsize>,
    began: Instant,
}

/// Somebody follows a collection: it does not count as idle meanwhile.
pub(crate) struct InUse(Arc<AtomicUsize>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Deserialize)]
struct Ownership<'a> {
    #[serde(rename = "ownerReferences", borrow, default)]
    owners: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Owner {
    #[serde(default)]
    uid: String,
}

/// The uids of the owners of an object. What is malformed owns nothing.
fn owner_uids(object: &Object<Stored>) -> Vec<String> {
    // Most objects without owners are told apart without being read.
    object.with_metadata_json(|metadata| {
        if !metadata.contains("ownerReferences") {
            return Vec::new();
        }
        let owners = serde_json::from_str::<Ownership<'_>>(metadata).ok().and_then(|meta| meta.owners);
        let owners = owners.and_then(|owners| serde_json::from_str::<Vec<Owner>>(owners.get()).ok());
        owners.unwrap_or_default().into_iter().map(|owner| owner.uid).filter(|uid| !uid.is_empty()).collect()
    })
}

impl Collection {
    /// Prepares an informer that has not been started.
    pub(super) fn new(
        served: ServedResource,
        informer: SharedInformer<Stored>,
        columns: Columns,
        depth: Depth,
        past: Option<Past>,
    ) -> Result<Self, Status> {
        let store = informer.store();
        let changes = Arc::new(Changes::new(depth));
        let recorder = Recorder { changes: Arc::clone(&changes), store: store.clone() };
        let owners = store
            .index(OWNER_INDEX)
            .or_else(|_| informer.add_index(OWNER_INDEX, owner_uids))
            .map_err(Status::internal_error)?;
        informer.add_handler(recorder).map_err(Status::internal_error)?;
        Ok(Self {
            path: path(&served),
            served,
            informer,
            store,
            changes,
            snapshots: Snapshots::default(),
            columns,
            owners,
            past,
            used: Mutex::new(Instant::now()),
            users: Arc::default(),
            began: Instant::now(),
        })
    }

    /// The objects as they are now.
    pub(crate) fn snapshot(&self) -> Snapshot<Stored> {
        self.store.snapshot()
    }

    /// The same, and a cursor for whoever follows from there on.
    pub(crate) fn snapshot_to_follow(&self) -> (Snapshot<Stored>, Cursor) {
        self.changes.snapshot(&self.store)
    }

    /// Sees to it that what came after a place is known, where it was before the first list and the API server still knows
    /// it.
    pub(crate) async fn recall(self: &Arc<Self>, place: &Place) {
        if self.past.is_none() || self.changes.begins_after(place).is_none() {
            return;
        }
        let (collection, place) = (Arc::clone(self), place.clone());
        apart(async move {
            let Self { past: Some(past), changes, .. } = &*collection else { return };
            let until = || changes.begins_after(&place);
            past.recall(place.version(), until, |until, told| changes.put_before(&place, until, told)).await;
        })
        .await;
    }

    /// The objects that an object owns.
    pub(crate) fn owned_by(&self, uid: &str) -> Vec<Object<Stored>> {
        self.owners.get(uid)
    }

    /// For how long nobody has asked; none while somebody follows.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        (self.users() == 0).then(|| used.elapsed())
    }

    /// How many follow.
    pub(crate) fn users(&self) -> usize {
        self.users.load(Ordering::Relaxed)
    }

    /// Follows until the answer is dropped.
    pub(crate) fn follow(&self) -> InUse {
        self.users.fetch_add(1, Ordering::Relaxed);
        InUse(Arc::clone(&self.users))
    }

    pub(super) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// For how long the cache has not been known to be up to date: zero while a watch is open.
    pub(crate) fn age(&self) -> Duration {
        let health = self.informer.health();
        let stale = health.sources.iter().filter_map(|source| source.trouble.as_ref());
        stale.map(|trouble| trouble.began).max().unwrap_or_default()
    }

    /// For how long it has been in memory.
    pub(crate) fn since(&self) -> Duration {
        self.began.elapsed()
    }

    /// What the objects take. It looks at each of them.
    pub(crate) fn sizes(&self) -> Sizes {
        let mut sizes = Sizes::default();
        self.snapshot().iter().for_each(|object| sizes.add(object));
        sizes
    }

    /// One word for how it is.
    pub(crate) fn state(&self) -> &'static str {
        let health = self.informer.health();
        match (health.trouble().is_some(), health.synced) {
            (true, _) => "failed",
            (false, true) => "synced",
            (false, false) => "syncing",
        }
    }

    /// Waits for the first list. What waiting does not mend is told at once.
    pub(super) async fn ready(&self) -> Result<(), Status> {
        if !self.informer.has_synced() {
            tokio::select! {
                synced = self.informer.wait_until_synced(SYNC_WITHIN) => synced.map_err(|e| self.not_synced(&e))?,
                status = self.hopeless() => return Err(status),
            }
        }
        self.changes.begin(&self.store.resource_version());
        Ok(())
    }

    fn not_synced(&self, error: &SyncError) -> Status {
        Status::service_unavailable(format!("{} are not in memory yet: {error}", self.served.name()))
            .with_retry_after(5)
    }

    /// Ends when the server has refused the list for a reason that a person has to mend.
    async fn hopeless(&self) -> Status {
        loop {
            sleep(LOOK).await;
            let health = self.informer.health();
            if let Some(status) = refusal(&health) {
                return status;
            }
        }
    }
}

/// What the server's refusal means to whoever asked.
fn refusal(health: &Health) -> Option<Status> {
    let (_, trouble) = health.trouble()?;
    let code = trouble.problem.error()?.status()?.code;
    let reason = match code {
        401 | 403 => Reason::Forbidden,
        404 => Reason::NotFound,
        _ => return None,
    };
    Some(Status::failure(reason, format!("the cluster refuses it to the gateway: {trouble}")))
}

/// `core/v1/pods`
pub(crate) fn path(served: &ServedResource) -> String {
    let api = &served.api;
    let group = if api.group.is_empty() { "core" } else { &api.group };
    format!("{group}/{}/{}", api.version, api.plural)
}
