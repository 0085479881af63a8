//! A second server in front of the same data, which may lag behind.

use tokio::sync::watch;

/// How far one replica of the server has got. The first one is always up to date.
#[derive(Debug)]
pub(crate) struct Replica {
    /// None: up to date.
    limit: watch::Sender<Option<u64>>,
}

impl Default for Replica {
    fn default() -> Self {
        Self { limit: watch::Sender::new(None) }
    }
}

impl Replica {
    /// The version at which this replica is held, if it is.
    pub(crate) fn behind(&self) -> Option<u64> {
        *self.limit.borrow()
    }

    /// Holds the replica at a version, or lets it catch up.
    pub(crate) fn hold(&self, version: Option<u64>) {
        self.limit.send_replace(version);
    }

    /// Tells when the replica is held somewhere else.
    pub(crate) fn follow(&self) -> watch::Receiver<Option<u64>> {
        self.limit.subscribe()
    }

    /// Waits until this replica has reached a version.
    pub(crate) async fn reach(&self, version: u64, mut newest: watch::Receiver<u64>) {
        let mut limit = self.follow();
        // Both senders live as long as the server, so waiting ends only by success.
        let _ = limit.wait_for(|limit| limit.is_none_or(|limit| limit >= version)).await;
        let _ = newest.wait_for(|newest| *newest >= version).await;
    }
}
