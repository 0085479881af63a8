//! What happened before the first list, for a client that was there: it followed another gateway, or this one before it was
//! started anew. The API server knows it for some minutes, so it is asked, instead of sending the client away to list
//! everything again.

use std::time::Duration;

use futures_util::StreamExt;
use informer::{
    Object, RawObject,
    queue::Transform,
    source::{KubeListWatch, ListOptions, ListWatch, WatchChange, WatchItem},
};
use informer_model::ResourceVersion;
use tokio::{sync::Mutex as AsyncMutex, time::timeout};

/// How long the API server is waited for.
const WITHIN: Duration = Duration::from_secs(5);
/// How long the watch is asked to last. A server tells how far it has come two seconds before its end.
const LASTS: Duration = Duration::from_secs(3);
/// How many changes are taken.
const MOST: usize = 4_096;

/// Asks for the past of one resource, for one client at a time: what one has learned the next one need not ask.
pub(crate) struct Past {
    source: KubeListWatch<RawObject>,
    transform: Transform<RawObject>,
    /// What came after this version, or an earlier one, the server did not tell.
    forgotten: AsyncMutex<ResourceVersion>,
}

impl Past {
    /// The past of all objects of a source, of which the same is kept as of those that come.
    pub(crate) fn new(source: KubeListWatch<RawObject>, transform: Transform<RawObject>) -> Self {
        Self { source, transform, forgotten: AsyncMutex::new(ResourceVersion::UNSET) }
    }

    /// Asks for what happened after one version and not after another one, and hands it on. Nothing comes of it when
    /// the server does not tell all of it.
    pub(crate) async fn recall(
        &self,
        after: &ResourceVersion,
        until: impl FnOnce() -> Option<ResourceVersion>,
        take: impl FnOnce(&ResourceVersion, Vec<(WatchChange, Object<RawObject>)>),
    ) {
        let asked = timeout(WITHIN, async {
            let mut forgotten = self.forgotten.lock().await;
            // Somebody may have asked for it meanwhile.
            let Some(until) = until() else { return };
            if !forgotten.is_unset() && *after <= *forgotten {
                return;
            }
            match self.changes(after, &until).await {
                Some(changes) => take(&until, changes),
                None => *forgotten = after.clone(),
            }
        });
        // Whoever is not answered in time lists again.
        let _ = asked.await;
    }

    async fn changes(
        &self,
        after: &ResourceVersion,
        until: &ResourceVersion,
    ) -> Option<Vec<(WatchChange, Object<RawObject>)>> {
        let options = ListOptions {
            resource_version: after.clone(),
            allow_watch_bookmarks: true,
            timeout: Some(LASTS),
            ..ListOptions::default()
        };
        let mut items = self.source.watch(options).await.ok()?;
        let mut changes = Vec::new();
        loop {
            match items.next().await?.ok()? {
                WatchItem::Object(_, object) if object.resource_version() > until => return Some(changes),
                WatchItem::Object(change, object) if changes.len() < MOST => {
                    let is_last = object.resource_version() == until;
                    changes.push((change, self.transform.apply(object).ok()?));
                    if is_last {
                        return Some(changes);
                    }
                }
                WatchItem::Bookmark { version, .. } if version >= *until => return Some(changes),
                WatchItem::Bookmark { .. } => {}
                _ => return None,
            }
        }
    }
}
