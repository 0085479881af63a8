//! Events of a watch.

use informer_model::{FrameError, ProtobufObject, Status};
use kube::Resource;
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    Codec, Frame, Wire,
    skim::{self, Skim},
    unusable,
};
use crate::{
    Object, SHOWN, beginning,
    source::{SourceError, WatchChange, WatchItem},
};

/// How much is kept of an error that is no `Status`.
const LARGEST_ERROR: usize = 1 << 10;

impl<K: Resource + DeserializeOwned> Wire<K> {
    /// An event. Bytes that are none are an error; whatever else is wrong is an item that says so.
    pub(crate) fn watch_item(&self, frame: Frame<'_>) -> Result<WatchItem<K>, SourceError> {
        match frame.codec {
            Codec::Json => self.json_event(frame.bytes),
            Codec::Protobuf => self.protobuf_event(frame.bytes),
        }
    }

    fn json_event(&self, frame: &[u8]) -> Result<WatchItem<K>, SourceError> {
        let event = skim::event(frame);
        if !event.complete {
            return Err(SourceError::Malformed(format!("not an event: {}", beginning(frame))));
        }
        let object = event.object.and_then(|range| frame.get(range)).unwrap_or_default();
        let Some(change) = event.change.as_deref() else {
            not_a_list(frame)?;
            return Ok(WatchItem::Foreign(format!("an event without a type: {}", beginning(frame))));
        };
        let skim = &event.skim;
        Ok(self.event(
            change,
            object,
            skim,
            || status(object),
            || ends_initial_events(object),
            || self.object(object, skim),
        ))
    }

    fn protobuf_event(&self, frame: &[u8]) -> Result<WatchItem<K>, SourceError> {
        let not_an_event = |error| SourceError::Malformed(format!("not an event: {error}"));
        let (change, bytes) = ProtobufObject::watch_event(frame).map_err(not_an_event)?;
        let object = ProtobufObject::new(bytes).map_err(not_an_event)?;
        let types = [object.api_version(), object.kind()];
        let status = || {
            object.decode().unwrap_or_else(|error| {
                Status::from_response(500, format!("an error that cannot be read: {error}"))
            })
        };
        let ends = || object.decode::<Bookmark>().is_ok_and(|bookmark| bookmark.ends());
        let skim = match skim::protobuf(&object, Some(types)) {
            Ok(skim) => skim,
            Err(_) if change == "ERROR" => Skim::default(),
            Err(error) => return Err(not_an_event(error)),
        };
        let object = || self.protobuf_object(&object, bytes, &skim);
        Ok(self.event(change, bytes, &skim, status, ends, object))
    }

    fn event(
        &self,
        kind: &str,
        bytes: &[u8],
        skim: &Skim<'_>,
        status: impl FnOnce() -> Status,
        ends_initial_events: impl FnOnce() -> bool,
        object: impl FnOnce() -> Result<Object<K>, String>,
    ) -> WatchItem<K> {
        if kind == "ERROR" {
            return WatchItem::Error(Box::new(status()));
        }
        let change = change(kind);
        if change.is_none() && kind != "BOOKMARK" {
            return WatchItem::Foreign(format!("an event of unknown type {}", beginning(kind.as_bytes())));
        }
        if let Some(other) = self.other_kind(skim) {
            let expected = self.expected();
            return WatchItem::Foreign(format!("{kind} of {other} in a watch of {expected}"));
        }
        if !skim.has_metadata {
            return WatchItem::Foreign(format!("{kind} of something without metadata: {}", beginning(bytes)));
        }
        match (change, &skim.version) {
            (Some(change), _) => match object() {
                Ok(object) => WatchItem::Object(change, object),
                Err(error) => WatchItem::Unusable(change, unusable(bytes, skim, error)),
            },
            (None, Some(version)) => {
                WatchItem::Bookmark { version: (**version).into(), initial_events_end: ends_initial_events() }
            }
            (None, None) => WatchItem::Foreign("BOOKMARK without a version".to_owned()),
        }
    }

    /// An event that was left out, of which this is the beginning.
    pub(crate) fn skipped_event(
        &self,
        beginning: Frame<'_>,
        reason: &FrameError,
    ) -> Result<WatchItem<K>, SourceError> {
        let bytes = beginning.bytes;
        let event = match beginning.codec {
            Codec::Json => skim::event(bytes),
            // What is cut off says nothing: lengths come first.
            Codec::Protobuf => skim::EventSkim::default(),
        };
        match event.change.as_deref().and_then(change) {
            Some(change) => Ok(WatchItem::Unusable(change, unusable(bytes, &event.skim, reason.to_string()))),
            None => {
                not_a_list(bytes)?;
                Ok(WatchItem::Foreign(format!("{reason}; it begins with {}", crate::beginning(bytes))))
            }
        }
    }
}

fn change(kind: &str) -> Option<WatchChange> {
    Some(match kind {
        "ADDED" => WatchChange::Added,
        "MODIFIED" => WatchChange::Modified,
        "DELETED" => WatchChange::Deleted,
        _ => return None,
    })
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

fn ends_initial_events(object: &[u8]) -> bool {
    serde_json::from_slice::<Bookmark>(object).is_ok_and(|bookmark| bookmark.ends())
}

/// A bookmark that may have the annotation that closes the initial events.
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

impl Bookmark {
    /// There is one value that counts.
    fn ends(&self) -> bool {
        self.metadata.annotations.initial_events_end == "true"
    }
}
