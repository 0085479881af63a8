//! Get, and what all reads share: waiting for a version.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use informer_model::{ResourceVersion, Status};
use informer_serving::{options::Requested, path::no_such_path};

use super::{Answer, Call};
use crate::{replica::Replica, store::Reading};

/// How long a read waits for a version that has not been reached.
const PATIENCE: Duration = Duration::from_secs(3);

impl Call<'_> {
    pub(super) async fn get(self) -> Answer {
        let key = self.key()?;
        let object = match self.query.version()? {
            Requested::Unset => self.server.store.get(self.id, &key),
            Requested::Any => self.at_hand()?.objects.get(&key).cloned(),
            Requested::At(version) => {
                self.reach(version).await?;
                self.at_hand()?.objects.get(&key).cloned()
            }
        };
        let object: Arc<_> = object.ok_or_else(|| self.not_found())?;
        self.show(StatusCode::OK, &object)
    }

    /// What this replica has: the newest, unless it lags behind.
    pub(super) fn at_hand(&self) -> Result<Reading, Status> {
        let store = &self.server.store;
        match self.replica.as_ref().and_then(|replica| replica.behind()) {
            Some(limit) if limit < store.version() => self.at(limit),
            _ => self.newest(),
        }
    }

    pub(super) fn newest(&self) -> Result<Reading, Status> {
        self.server.store.newest(self.id).map_err(|_| no_such_path())
    }

    /// Waits until this replica has reached a version, for a while.
    pub(super) async fn reach(&self, version: u64) -> Result<(), Status> {
        self.reach_by(self.replica.as_deref(), version).await
    }

    /// Waits until the store has reached a version, which is never behind as the cache of a replica may be.
    pub(super) async fn reach_in_store(&self, version: u64) -> Result<(), Status> {
        self.reach_by(None, version).await
    }

    async fn reach_by(&self, replica: Option<&Replica>, version: u64) -> Result<(), Status> {
        let mut versions = self.server.store.versions();
        let reached = async {
            match replica {
                Some(replica) => replica.reach(version, versions.clone()).await,
                // The sender lives as long as the server, so waiting ends only by success.
                None => drop(versions.wait_for(|newest| *newest >= version).await),
            }
        };
        if tokio::time::timeout(PATIENCE, reached).await.is_ok() {
            return Ok(());
        }
        let newest = *versions.borrow_and_update();
        let current = replica.and_then(Replica::behind).unwrap_or(newest).min(newest);
        let text = |version: u64| ResourceVersion::from(version);
        Err(Status::too_large_resource_version(&text(version), &text(current)))
    }
}
