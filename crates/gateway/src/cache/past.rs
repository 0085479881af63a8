//! What happened before the first list, for a client that was there: it followed another gateway, or this one before it was
//! started anew. The API server knows it for some minutes, so it is asked, instead of sending the client away to list
//! everything again.

use std::time::Duration;

use futures_util::StreamExt;
use informer::{
    Object,
    queue::Transform,
    source::{KubeListWatch, ListOptions, ListWatch, SourceError, WatchChange, WatchItem},
};
use informer_model::{ResourceVersion, Status};
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, sleep_until, timeout_at},
};

use super::{changes::Depth, stored::Stored};

/// How long the API server is waited for.
const WITHIN: Duration = Duration::from_secs(5);
/// How long the watch is asked to last. A server tells how far it has come two seconds before its end.
const LASTS: Duration = Duration::from_secs(3);
/// How long the server is left alone after a question that it did not answer.
const PAUSE: Duration = Duration::from_secs(1);
/// The same after one that it answered with no: somebody may go through all versions there were.
const SHORT_PAUSE: Duration = Duration::from_millis(100);
/// How many changes are taken, whatever there is room for.
const MOST: usize = 4_096;

/// Asks for the past of one resource, for one client at a time: what one has learned the next one need not ask.
pub(crate) struct Past {
    source: KubeListWatch<Stored>,
    transform: Option<Transform<Stored>>,
    /// How much is taken.
    depth: Depth,
    asked: AsyncMutex<Asked>,
}

/// What came of the questions so far.
struct Asked {
    /// What came after this version, or an earlier one, the server will never tell.
    forgotten: ResourceVersion,
    /// The next question waits until then.
    not_before: Instant,
}

/// Why the past is not known.
enum Untold {
    /// The server said that it has forgotten it, or it is more than is taken.
    Forgotten,
    /// Something went wrong, which says nothing about the next time.
    Failed(String),
}

impl From<Status> for Untold {
    fn from(status: Status) -> Self {
        if status.needs_relist() { Self::Forgotten } else { Self::Failed(status.message) }
    }
}

impl From<SourceError> for Untold {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Status(status) => (*status).into(),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl Past {
    /// The past of all objects of a source, of which the same is kept as of those that come.
    pub(crate) fn new(
        source: KubeListWatch<Stored>,
        transform: Option<Transform<Stored>>,
        depth: Depth,
    ) -> Self {
        let asked = Asked { forgotten: ResourceVersion::UNSET, not_before: Instant::now() };
        Self { source, transform, depth: depth.of_the_past(), asked: AsyncMutex::new(asked) }
    }

    /// Asks for what happened after one version and not after another one, and hands it on. Nothing comes of it when
    /// the server does not tell all of it in time: whoever needs it lists again.
    pub(crate) async fn recall(
        &self,
        after: &ResourceVersion,
        until: impl FnOnce() -> Option<ResourceVersion>,
        take: impl FnOnce(&ResourceVersion, Vec<(WatchChange, Object<Stored>)>),
    ) {
        let deadline = Instant::now() + WITHIN;
        let Ok(mut asked) = timeout_at(deadline, self.asked.lock()).await else { return };
        if !asked.forgotten.is_unset() && *after <= asked.forgotten {
            return;
        }
        sleep_until(asked.not_before.min(deadline)).await;
        // Somebody may have asked for it meanwhile.
        let Some(until) = until() else { return };
        // For the case that the client goes away before there is an answer.
        asked.not_before = Instant::now() + PAUSE;
        let told = timeout_at(deadline, self.changes(after, &until)).await;
        let pause = match told.unwrap_or_else(|_| Err(Untold::Failed("no answer in time".to_owned()))) {
            Ok(changes) => {
                take(&until, changes);
                Duration::ZERO
            }
            Err(Untold::Forgotten) => {
                asked.forgotten = after.clone();
                SHORT_PAUSE
            }
            Err(Untold::Failed(why)) => {
                tracing::debug!(version = %after, why, "the cluster does not tell what came after a version");
                PAUSE
            }
        };
        asked.not_before = Instant::now() + pause;
    }

    async fn changes(
        &self,
        after: &ResourceVersion,
        until: &ResourceVersion,
    ) -> Result<Vec<(WatchChange, Object<Stored>)>, Untold> {
        let options = ListOptions {
            resource_version: after.clone(),
            allow_watch_bookmarks: true,
            timeout: Some(LASTS),
            ..ListOptions::default()
        };
        let mut items = self.source.watch(options).await?;
        let most = self.depth.changes.min(MOST);
        let (mut changes, mut bytes) = (Vec::new(), 0);
        while let Some(item) = items.next().await {
            match item? {
                WatchItem::Object(_, object) if object.resource_version() > until => return Ok(changes),
                WatchItem::Object(change, object) => {
                    let is_last = object.resource_version() == until;
                    let object = match &self.transform {
                        Some(transform) => transform.apply(object),
                        None => Ok(object),
                    };
                    let object = object.map_err(|error| Untold::Failed(error.to_string()))?;
                    // Once as what is new, and once as what the next change of it finds.
                    bytes += 2 * object.json_bytes();
                    if changes.len() == most || bytes > self.depth.bytes {
                        return Err(Untold::Forgotten);
                    }
                    changes.push((change, object));
                    if is_last {
                        return Ok(changes);
                    }
                }
                WatchItem::Bookmark { version, .. } if version >= *until => return Ok(changes),
                WatchItem::Bookmark { .. } => {}
                WatchItem::Error(status) => return Err((*status).into()),
                WatchItem::Unusable(_, unusable) => return Err(Untold::Failed(unusable.error)),
                WatchItem::Foreign(what) => return Err(Untold::Failed(what)),
            }
        }
        Err(Untold::Failed("the watch ended too early".to_owned()))
    }
}
