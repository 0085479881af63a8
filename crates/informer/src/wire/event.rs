//! Events of a watch.

use informer_model::{FrameError, Status};
use kube::Resource;
use serde::{Deserialize, de::DeserializeOwned};

use super::{SHOWN, Wire, beginning, skim, unusable};
use crate::source::{SourceError, WatchChange, WatchItem};

/// How much is kept of an error that is no `Status`.
const LARGEST_ERROR: usize = 1 << 10;

impl<K: Resource + DeserializeOwned> Wire<K> {
    /// An event. Bytes that are not JSON are an error; whatever else is wrong is an item that says so.
    pub(crate) fn watch_item(&self, frame: &[u8]) -> Result<WatchItem<K>, SourceError> {
        let event = skim::event(frame);
        if !event.complete {
            return Err(SourceError::Malformed(format!("not an event: {}", beginning(frame))));
        }
        let object = event.object.and_then(|range| frame.get(range)).unwrap_or_default();
        let skim = &event.skim;
        let Some(kind) = event.change.as_deref() else {
            not_a_list(frame)?;
            return Ok(WatchItem::Foreign(format!("an event without a type: {}", beginning(frame))));
        };
        if kind == "ERROR" {
            return Ok(WatchItem::Error(Box::new(status(object))));
        }
        let change = match kind {
            "ADDED" => Some(WatchChange::Added),
            "MODIFIED" => Some(WatchChange::Modified),
            "DELETED" => Some(WatchChange::Deleted),
            "BOOKMARK" => None,
            _ => {
                return Ok(WatchItem::Foreign(format!(
                    "an event of unknown type {}",
                    beginning(kind.as_bytes())
                )));
            }
        };
        if let Some(other) = self.other_kind(skim) {
            let expected = self.expected();
            return Ok(WatchItem::Foreign(format!("{kind} of {other} in a watch of {expected}")));
        }
        if !skim.has_metadata {
            return Ok(WatchItem::Foreign(format!(
                "{kind} of something without metadata: {}",
                beginning(object)
            )));
        }
        Ok(match (change, &skim.version) {
            (Some(change), _) => match self.object(object, skim) {
                Ok(object) => WatchItem::Object(change, object),
                Err(error) => WatchItem::Unusable(change, unusable(object, skim, error)),
            },
            (None, Some(version)) => WatchItem::Bookmark {
                version: (**version).into(),
                initial_events_end: ends_initial_events(object),
            },
            (None, None) => WatchItem::Foreign("BOOKMARK without a version".to_owned()),
        })
    }

    /// An event that was left out, of which this is the beginning.
    pub(crate) fn skipped_event(
        &self,
        beginning: &[u8],
        reason: &FrameError,
    ) -> Result<WatchItem<K>, SourceError> {
        let event = skim::event(beginning);
        let change = match event.change.as_deref() {
            Some("ADDED") => WatchChange::Added,
            Some("MODIFIED") => WatchChange::Modified,
            Some("DELETED") => WatchChange::Deleted,
            _ => {
                not_a_list(beginning)?;
                return Ok(WatchItem::Foreign(format!(
                    "{reason}; it begins with {}",
                    super::beginning(beginning)
                )));
            }
        };
        Ok(WatchItem::Unusable(change, unusable(beginning, &event.skim, reason.to_string())))
    }
}

/// A server, or a proxy before it, that does not know `watch=1` answers with a list each time it is asked. That is
/// not skipped as what is foreign to a watch is: it must be told, and asked for again later.
fn not_a_list(frame: &[u8]) -> Result<(), SourceError> {
    match skim::object(frame).kind.filter(|kind| kind.ends_with("List")) {
        Some(kind) => {
            let kind: String = kind.chars().take(SHOWN).collect();
            Err(SourceError::Malformed(format!(
                "a list ({kind}) where a watch was asked for: does something on the way drop \"watch=1\"?"
            )))
        }
        None => Ok(()),
    }
}

/// The object of an ERROR event. One that is no `Status` becomes one that shows it.
fn status(object: &[u8]) -> Status {
    serde_json::from_slice(object).unwrap_or_else(|_| {
        let shown = object.get(..LARGEST_ERROR).unwrap_or(object);
        Status::from_response(500, String::from_utf8_lossy(shown))
    })
}

/// Whether a bookmark has the annotation that closes the initial events, with the one value that counts.
fn ends_initial_events(object: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Bookmark {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        annotations: Annotations,
    }
    #[derive(Deserialize)]
    struct Annotations {
        #[serde(rename = "k8s.io/initial-events-end")]
        initial_events_end: String,
    }
    serde_json::from_slice::<Bookmark>(object)
        .is_ok_and(|bookmark| bookmark.metadata.annotations.initial_events_end == "true")
}
