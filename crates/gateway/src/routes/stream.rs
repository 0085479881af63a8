//! Server-sent events: what there is, and then what changes.
//!
//! A stream says where it is with every event (`id:`), and goes on from there when the client comes back. When that is
//! too long ago it says `reset` and begins anew. What a client does not read is not kept for it.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Body,
    extract::{Path, RawQuery, State},
    response::Response,
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use informer::discovery::ServedResource;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::original::named;
use crate::{
    access::Visible,
    answer::Refusal,
    app::{App, Asker, StreamTicket},
    cache::{
        changes::{Cursor, Place},
        collection::Collection,
    },
    follow::{Follower, Seen},
    listing::fresh,
    present::{Form, Presentation},
    query::{Dialect, Query, selection::Selection},
};

/// A line goes out at least so often, so that both sides notice when the other is gone.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Changes are gathered for so long after some were sent, so that a storm is few writes.
const GATHER: Duration = Duration::from_millis(25);
/// The items of a snapshot come so many at a time.
const ITEMS: usize = 250;
/// How long a client that was sent away should wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What a change is called, in the order of `EventType`.
const EVENTS: [&str; 3] = ["added", "modified", "deleted"];

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// `GET /_stream/{group}/{version}/{resource}`
pub(crate) async fn open(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
    Path((group, version, resource)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let query = Arc::new(Query::parse(query.as_deref(), Dialect::Stream)?);
    let served = app.cache.resolve(&named(&group, &version, &resource)?).await?;
    let (collection, visible) = app.open(&asker, "watch", &served, &query).await?;
    if let Some(wanted) = &query.min_version {
        app.wait_for_version(&collection, wanted).await?;
    }
    let ticket = app.streams.ticket(&asker)?;
    let form = match (&query.projection, query.table) {
        (Some(projection), _) => Form::Fields(Arc::clone(projection)),
        (None, true) => Form::Row,
        (None, false) => Form::Whole,
    };
    let presentation = Presentation::new(form, &collection);
    let last = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()).or(query.last_event_id.as_deref());
    let last = last.filter(|id| !id.is_empty()).map(str::to_owned);
    let now = Instant::now();
    let mut live = Live {
        ways: EVENTS.map(|event| presentation.way(&format!("{event} {}", query.interval.is_some()))),
        next_check: app.next_check(),
        app,
        asker,
        served,
        collection,
        presentation,
        query,
        visible,
        phase: Phase::Ended,
        heard: now,
        gathered_until: now,
        _ticket: ticket,
    };
    live.begin(last.as_deref()).await;
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    fresh(headers, &live.collection, &live.collection.store.resource_version());
    let pieces = stream::unfold(live, |mut live| async move {
        let piece = live.next().await?;
        Some((Ok::<_, Infallible>(piece), live))
    });
    *response.body_mut() = Body::from_stream(pieces);
    Ok(response)
}

struct Live {
    app: Arc<App>,
    asker: Asker,
    served: ServedResource,
    collection: Arc<Collection>,
    presentation: Presentation,
    query: Arc<Query>,
    visible: Visible,
    phase: Phase,
    /// By event.
    ways: [u64; 3],
    next_check: Instant,
    /// When something was last sent.
    heard: Instant,
    gathered_until: Instant,
    _ticket: StreamTicket,
}

enum Phase {
    /// The snapshot is being told: its head if that has not been sent, and the items from here on.
    Snapshot {
        head: Option<String>,
        selection: Box<Selection>,
        at: usize,
        follower: Box<Follower>,
    },
    Following(Box<Follower>),
    Ended,
}

impl Live {
    async fn begin(&mut self, last: Option<&str>) {
        let Some(last) = last else { return self.snapshot("snapshot", None).await };
        let (changes, store) = (&self.collection.changes, &self.collection.store);
        let place = Place::parse(last);
        if let Some(place) = &place
            && changes.is_ahead(place, store)
        {
            // Another gateway may have been further. If that was not so, the place is lost.
            let _ = self.app.wait_for_version(&self.collection, place.version()).await;
        }
        match place.and_then(|place| changes.resume(&place, store).ok()) {
            Some(cursor) => self.phase = Phase::Following(self.follower(cursor)),
            None => {
                let reason = format!("what came after {last:?} is no longer known");
                self.snapshot("reset", Some(&reason)).await;
            }
        }
    }

    /// Begins with all there is.
    async fn snapshot(&mut self, event: &str, reason: Option<&str>) {
        let (snapshot, cursor) = self.collection.snapshot_to_follow();
        let follower = self.follower(cursor);
        let selection = Box::new(self.query.select_aside(snapshot, &self.visible).await);
        let mut head = json!({"resourceVersion": selection.version, "total": selection.objects.len()});
        if let Some(reason) = reason {
            head["reason"] = reason.into();
        }
        if matches!(self.presentation.form(), Form::Row) {
            head["columns"] = self.presentation.columns();
        }
        let head = Some(format!("event: {event}\ndata: {head}\n\n"));
        self.phase = Phase::Snapshot { head, selection, at: 0, follower };
    }

    fn follower(&self, cursor: Cursor) -> Box<Follower> {
        Box::new(Follower::new(cursor, &self.collection, &self.query, &self.visible))
    }

    /// The next piece of the stream; none at its end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let phase = std::mem::replace(&mut self.phase, Phase::Ended);
            if matches!(phase, Phase::Ended) {
                return None;
            }
            if let Some(end) = self.ending().await {
                return Some(end);
            }
            let piece = match phase {
                Phase::Ended => None,
                Phase::Snapshot { head, selection, at, follower } => {
                    Some(self.items(head, selection, at, follower))
                }
                Phase::Following(follower) => self.follow(follower).await,
            };
            if let Some(piece) = piece {
                self.heard = Instant::now();
                return Some(piece);
            }
        }
    }

    fn items(
        &mut self,
        head: Option<String>,
        selection: Box<Selection>,
        at: usize,
        follower: Box<Follower>,
    ) -> Bytes {
        let mut piece = head.unwrap_or_default().into_bytes();
        let to = (at + ITEMS).min(selection.objects.len());
        if at < to {
            piece.extend_from_slice(b"event: items\ndata: {\"items\":[");
            for (n, object) in selection.objects.iter().take(to).skip(at).enumerate() {
                if n > 0 {
                    piece.push(b',');
                }
                self.presentation.write(object, &mut piece);
            }
            piece.extend_from_slice(b"]}\n\n");
        }
        if to == selection.objects.len() {
            let (version, count) = (&selection.version, selection.objects.len());
            let synced = json!({"resourceVersion": version, "count": count});
            piece.extend_from_slice(format!("id: {version}\nevent: synced\ndata: {synced}\n\n").as_bytes());
            self.phase = Phase::Following(follower);
        } else {
            self.phase = Phase::Snapshot { head: None, selection, at: to, follower };
        }
        piece.into()
    }

    /// The last event, if the stream is to end.
    async fn ending(&mut self) -> Option<Bytes> {
        if self.app.is_stopping() {
            return Some(end("shutting down", true));
        }
        if Instant::now() < self.next_check {
            return None;
        }
        self.refused().await.map(|reason| end(reason, false))
    }

    /// Something to tell. None after having waited for it, or if the stream goes on in another way.
    async fn follow(&mut self, mut follower: Box<Follower>) -> Option<Bytes> {
        if follower.is_slow() {
            return Some(end("slow client", true));
        }
        let mut piece = None;
        if Instant::now() >= self.gathered_until {
            let merge = self.query.interval.is_some();
            match if merge { follower.take_merged() } else { follower.take() } {
                Ok(seen) if !seen.is_empty() => {
                    self.gathered_until = Instant::now() + self.query.interval.unwrap_or(GATHER);
                    piece = Some(self.events(&seen, follower.seen()));
                }
                Ok(_) => {}
                Err(_) => {
                    let reason = "the cluster went back in time, or the stream fell behind";
                    self.snapshot("reset", Some(reason)).await;
                    return None;
                }
            }
        }
        let beat = self.heard + HEARTBEAT;
        if piece.is_none() && Instant::now() >= beat {
            // The place moves on although nothing was for this client.
            piece = Some(format!(": heartbeat\nid: {}\n\n", follower.seen()).into());
        }
        if piece.is_none() {
            let gathered = async {
                sleep_until(self.gathered_until).await;
                follower.wait().await;
            };
            tokio::select! {
                () = gathered => {}
                () = sleep_until(beat.min(self.next_check)) => {}
                () = self.app.stopping() => {}
            }
        }
        self.phase = Phase::Following(follower);
        piece
    }

    /// Events, after which everything up to this place has been told. Where much is told as one, who has a part of it
    /// must hear all of it again: only the last event says where the stream is.
    fn events(&self, seen: &[Seen], place: &Place) -> Bytes {
        let merged = self.query.interval.is_some();
        let mut piece = Vec::new();
        for (at, Seen { event, change, object }) in seen.iter().enumerate() {
            if merged && at + 1 == seen.len() {
                piece.extend_from_slice(format!("id: {place}\n").as_bytes());
            }
            let way = self.ways.get(*event as usize).copied().unwrap_or_default();
            let name = EVENTS.get(*event as usize).copied().unwrap_or_default();
            piece.extend_from_slice(&change.written(way, || {
                let member = if matches!(self.presentation.form(), Form::Row) { "row" } else { "object" };
                let id = if merged { String::new() } else { format!("id: {}\n", change.place) };
                let mut event = format!("{id}event: {name}\ndata: {{\"{member}\":").into_bytes();
                self.presentation.write(object, &mut event);
                event.extend_from_slice(b"}\n\n");
                event.into()
            }));
        }
        piece.into()
    }

    /// Why the caller may no longer see this, if so.
    async fn refused(&mut self) -> Option<&'static str> {
        self.next_check = self.app.next_check();
        match self.app.reopen(&mut self.asker, &self.served, &self.query).await {
            Ok(visible) if visible == self.visible => None,
            Ok(_) => Some("access changed"),
            Err(_) => Some("access revoked"),
        }
    }
}

/// The last event. A client that may not go on from where it is is told to forget where that was.
fn end(reason: &str, resumable: bool) -> Bytes {
    let data =
        json!({"reason": reason, "retryAfterMs": u64::try_from(RETRY_AFTER.as_millis()).unwrap_or_default()});
    let forget = if resumable { "" } else { "id:\n" };
    format!("{forget}event: end\ndata: {data}\n\n").into()
}
