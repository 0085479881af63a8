//! Server-sent events: what there is, and then what changes.
//!
//! A stream says where it is with every event (`id:`), and goes on from there when the client comes back. When that is
//! too long ago it says `reset` and begins anew. What a client does not read is not kept for it.

use std::{convert::Infallible, future::ready, sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Body,
    extract::{Path, RawQuery, State},
    response::Response,
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, future::Either, stream};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use informer::discovery::ServedResource;
use informer_model::Status;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::plain_lists::named;
use crate::{
    access::Visible,
    answer::{PIECE, Refusal},
    app::{App, Asker},
    cache::{
        changes::{Change, Cursor, Place},
        collection::Collection,
        snapshots::{Content, ROWS, SharedSnapshot},
    },
    follow::{Follower, Seen, Writer},
    lease::{Lease, NOT_READ},
    listing::{Standing, fresh},
    present::{Form, Presentation},
    query::{
        Dialect, Query,
        selection::{Mark, Objects, Selection},
    },
    share::Share,
    work::apart,
};

/// A line goes out at least so often, so that both sides notice when the other is gone.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Changes are gathered for so long after some were sent, so that a storm is few writes.
const GATHER: Duration = Duration::from_millis(25);
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
    let last = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    let live = Live::open(app, asker, [&group, &version, &resource], query.as_deref(), last).await?;
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    fresh(headers, &live.collection, &live.collection.store.resource_version());
    *response.body_mut() = Body::from_stream(live.pieces().map(Ok::<_, Infallible>));
    Ok(response)
}

/// One stream, which has been allowed.
pub(super) struct Live {
    app: Arc<App>,
    asker: Asker,
    served: ServedResource,
    collection: Arc<Collection>,
    writer: Arc<EventWriter>,
    query: Arc<Query>,
    visible: Visible,
    phase: Phase,
    next_check: Instant,
    /// When something was last sent.
    heard: Instant,
    gathered_until: Instant,
    /// Why everything is to be told again, if so.
    reset: Option<&'static str>,
    _share: Share,
}

enum Phase {
    /// The snapshot is being told: its head if that has not been sent, and the items from here on.
    Snapshot {
        head: Option<String>,
        told: Lease<Told>,
        mark: Mark,
        follower: Box<Follower>,
    },
    Following(Box<Follower>),
    Ended,
}

/// What a snapshot tells.
enum Told {
    /// For this one alone.
    Own(Selection),
    /// What takes long to write is written for all who ask the same.
    Shared(Arc<SharedSnapshot>),
}

impl Told {
    fn selection(&self) -> Option<&Selection> {
        match self {
            Self::Own(selection) => Some(selection),
            Self::Shared(shared) => shared.selection(),
        }
    }
}

impl Live {
    /// Begins a stream of a resource. The place that a client names itself counts before the one in the query.
    pub(super) async fn open(
        app: Arc<App>,
        asker: Asker,
        [group, version, resource]: [&str; 3],
        query: Option<&str>,
        last: Option<&str>,
    ) -> Result<Self, Status> {
        let query = Arc::new(Query::parse(query, Dialect::Stream)?);
        let named = named(group, version, resource)?;
        let what = query.attributes("watch", named.group().unwrap_or_default(), named.resource());
        let served = app.resolve(&asker, &named, &what).await?;
        // What is asked now counts from now on, however long it takes until there is something to tell.
        let next_check = app.next_check();
        let (collection, visible) = app.open(&asker, "watch", &served, &query).await?;
        if let Some(wanted) = &query.min_version {
            app.wait_for_version(&collection, wanted).await?;
        }
        let share = app.stream(&asker)?;
        let form = match (&query.projection, query.table) {
            (Some(projection), _) => Form::Fields(Arc::clone(projection)),
            (None, true) => Form::Row,
            (None, false) => Form::Whole,
        };
        let presentation = Presentation::new(form, &collection);
        let last = last.or(query.last_event_id.as_deref()).filter(|id| !id.is_empty()).map(str::to_owned);
        let now = Instant::now();
        let merged = query.interval.is_some();
        let ways = EVENTS.map(|event| presentation.way(&format!("{event} {merged}")));
        let mut live = Self {
            writer: Arc::new(EventWriter { presentation, ways, merged }),
            next_check,
            app,
            asker,
            served,
            collection,
            query,
            visible,
            phase: Phase::Ended,
            heard: now,
            gathered_until: now,
            reset: None,
            _share: share,
        };
        live.begin(last.as_deref()).await;
        Ok(live)
    }

    /// What is sent, in pieces of whole events.
    pub(super) fn pieces(self) -> impl Stream<Item = Bytes> + Send {
        stream::unfold(self, |mut live| async move {
            let piece = live.next().await?;
            Some((piece, live))
        })
    }

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
        if let Some(place) = &place {
            self.collection.recall(place).await;
        }
        match place.and_then(|place| changes.resume(&place, store).ok()) {
            Some(cursor) => {
                self.phase = Phase::Following(self.follower(cursor));
                // A heartbeat is due: it says at once that the stream goes on, and from where.
                self.heard = self.heard.checked_sub(HEARTBEAT).unwrap_or(self.heard);
            }
            None => {
                let reason = format!("what came after {last:?} is no longer known");
                self.snapshot("reset", Some(&reason)).await;
            }
        }
    }

    /// Begins with all there is.
    async fn snapshot(&mut self, event: &str, reason: Option<&str>) {
        let (told, follower) = self.select().await;
        // Where it is no longer held, the next piece says so.
        let held = told.get();
        let selection = held.as_ref().and_then(|told| told.selection());
        let (version, total) =
            selection.map(|selection| (&selection.version, selection.objects.len())).unzip();
        let mut head = json!({"resourceVersion": version, "total": total});
        if let Some(reason) = reason {
            head["reason"] = reason.into();
        }
        if matches!(self.writer.presentation.form(), Form::Row) {
            head["columns"] = self.writer.presentation.columns();
        }
        let head = Some(format!("event: {event}\ndata: {head}\n\n"));
        self.phase = Phase::Snapshot { head, told, mark: Mark::default(), follower };
    }

    /// All there is, and who follows from there.
    async fn select(&self) -> (Lease<Told>, Box<Follower>) {
        let (query, visible) = (Arc::clone(&self.query), self.visible.clone());
        let (work, account) = (self.app.work.clone(), self.asker.account.clone());
        let collection = Arc::clone(&self.collection);
        // A request for a version gets a snapshot of its own, which has it.
        let takes_long = self.writer.presentation.micros() > 0;
        let is_shared = takes_long && self.query.min_version.is_none();
        let question = format!("{} {} {visible:?}", self.writer.presentation.way("items"), query.text);
        let begun = Arc::clone(&self.collection);
        let select = async move {
            let (snapshot, cursor) = collection.snapshot_to_follow();
            let selection = query.select_aside(None, snapshot, &visible, &work, &account).await;
            if !takes_long {
                return Content { selection, cursor };
            }
            let Selection { objects, version, explanation } = selection;
            let micros = objects.len() / 20;
            let objects = work.run(&account, micros, move || objects.numbered()).await;
            Content { selection: Selection { objects, version, explanation }, cursor }
        };
        // What is found is held by the lease alone, whether somebody waits for it or not.
        let (told, cursor) = apart(async move {
            if !is_shared {
                let Content { selection, cursor } = select.await;
                return (Lease::new(Told::Own(selection)), cursor);
            }
            let shared = begun.snapshots.join(&question, &begun.changes, || select);
            let cursor = shared.content().await.cursor.clone();
            (Lease::new(Told::Shared(shared)), cursor)
        })
        .await;
        (told, self.follower(cursor))
    }

    fn follower(&self, cursor: Cursor) -> Box<Follower> {
        Box::new(Follower::new(cursor, &self.collection, &self.query, &self.visible))
    }

    /// The next piece of the stream; none at its end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let mut phase = std::mem::replace(&mut self.phase, Phase::Ended);
            let follower = match &mut phase {
                Phase::Snapshot { follower, .. } | Phase::Following(follower) => follower,
                Phase::Ended => return None,
            };
            if let Some(end) = self.ending(follower).await {
                return Some(end);
            }
            if let Some(reason) = self.reset.take() {
                drop(phase);
                self.snapshot("reset", Some(reason)).await;
                continue;
            }
            let piece = match phase {
                Phase::Ended => None,
                Phase::Snapshot { head, told, mark, follower } => {
                    Some(self.snapshot_piece(head, told, mark, follower).await)
                }
                Phase::Following(follower) => self.follow(follower).await,
            };
            if let Some(piece) = piece {
                self.heard = Instant::now();
                return Some(piece);
            }
        }
    }

    async fn snapshot_piece(
        &mut self,
        head: Option<String>,
        told: Lease<Told>,
        mut mark: Mark,
        follower: Box<Follower>,
    ) -> Bytes {
        tokio::task::yield_now().await;
        let Some(held) = told.get() else { return end(NOT_READ, true) };
        if let (Some(head), Told::Shared(_)) = (&head, &*held) {
            // It goes out before anything is written that takes long: whoever waits sees that it has begun.
            let head = head.clone().into();
            self.phase = Phase::Snapshot { head: None, told, mark, follower };
            return head;
        }
        let of = held.selection().map(|selection| (selection.version.clone(), selection.objects.len()));
        let (version, count) = of.unwrap_or_default();
        let items = self.items(held, &mut mark).await;
        let piece = match head {
            Some(head) => [head.as_bytes(), &items].concat().into(),
            None => items,
        };
        if mark.at < count {
            self.phase = Phase::Snapshot { head: None, told, mark, follower };
            return piece;
        }
        let synced = json!({"resourceVersion": version, "count": count});
        let synced = format!("id: {version}\nevent: synced\ndata: {synced}\n\n");
        self.phase = Phase::Following(follower);
        [&piece, synced.as_bytes()].concat().into()
    }

    /// An event with the next items. What waits for it does not hold them.
    fn items(&self, told: Arc<Told>, mark: &mut Mark) -> impl Future<Output = Bytes> + Send + use<> {
        let writer = Arc::clone(&self.writer);
        if writer.presentation.micros() == 0 {
            let copy = |selection: &Selection| items(&writer.presentation, &selection.objects, mark, None);
            return Either::Left(ready(told.selection().map(copy).unwrap_or_default()));
        }
        let at = mark.at;
        mark.at += ROWS;
        let (work, account, whole) = (self.app.work.clone(), self.asker.account.clone(), Arc::clone(&told));
        let write = async move {
            let micros = ROWS * writer.presentation.micros();
            let write = move || {
                let mut mark = Mark { at, after: None };
                let write = |selection: &Selection| {
                    items(&writer.presentation, &selection.objects, &mut mark, Some(ROWS))
                };
                whole.selection().map(write).unwrap_or_default()
            };
            work.run(&account, micros, write).await
        };
        Either::Right(match &*told {
            Told::Own(_) => Either::Left(write),
            Told::Shared(shared) => Either::Right(shared.piece(at / ROWS, write)),
        })
    }

    /// The last event, if the stream is to end.
    async fn ending(&mut self, follower: &mut Follower) -> Option<Bytes> {
        if self.app.is_stopping() {
            return Some(end("shutting down", true));
        }
        if Instant::now() < self.next_check {
            return None;
        }
        self.next_check = self.app.next_check();
        let Self { app, asker, served, query, visible, .. } = self;
        match app.recheck(asker, served, query, visible).await {
            Standing::Same => None,
            Standing::Narrowed(left, gone) if follower.narrow(&left, &gone) => {
                self.visible = left;
                None
            }
            Standing::Narrowed(visible, _) | Standing::Changed(visible) => {
                self.visible = visible;
                self.reset = Some("what you may see has changed");
                None
            }
            Standing::Revoked => Some(end("access revoked", false)),
            // It may be the same as before: then the client goes on from where it is.
            Standing::Unknown => Some(end("access cannot be checked", true)),
        }
    }

    /// Something to tell. None after having waited for it, or if the stream goes on in another way.
    async fn follow(&mut self, mut follower: Box<Follower>) -> Option<Bytes> {
        if follower.is_slow() {
            return Some(end("slow client", true));
        }
        let mut piece = None;
        if Instant::now() >= self.gathered_until {
            let merged = self.writer.merged;
            let writer = Arc::clone(&self.writer);
            let Ok(mut told) = follower.tell(merged, writer, &self.app.work, &self.asker.account).await
            else {
                let reason = "the cluster went back in time, or the stream fell behind";
                self.snapshot("reset", Some(reason)).await;
                return None;
            };
            follower = told.follower;
            if !told.piece.is_empty() {
                if merged || !told.more {
                    self.gathered_until = Instant::now() + self.query.interval.unwrap_or(GATHER);
                }
                if merged {
                    // Who has a part of what is told as one must hear all of it again: only the last event says where the
                    // stream is.
                    let id = format!("id: {}\n", follower.seen());
                    drop(told.piece.splice(told.last..told.last, id.into_bytes()));
                }
                piece = Some(Bytes::from(told.piece));
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
}

/// How events are written.
struct EventWriter {
    presentation: Presentation,
    /// By event.
    ways: [u64; 3],
    /// Whether much is told as one, and where the stream is only at its end.
    merged: bool,
}

impl Writer for Arc<EventWriter> {
    fn micros(&self, change: &Change) -> usize {
        if change.is_written(&self.ways) { 0 } else { self.presentation.micros() }
    }

    fn write(&mut self, Seen { event, change, object }: &Seen, piece: &mut Vec<u8>) {
        let way = self.ways.get(*event as usize).copied().unwrap_or_default();
        let name = EVENTS.get(*event as usize).copied().unwrap_or_default();
        piece.extend_from_slice(&change.written(way, || {
            let member = if matches!(self.presentation.form(), Form::Row) { "row" } else { "object" };
            let id = if self.merged { String::new() } else { format!("id: {}\n", change.place) };
            let mut event = format!("{id}event: {name}\ndata: {{\"{member}\":").into_bytes();
            self.presentation.write(object, &mut event);
            event.extend_from_slice(b"}\n\n");
            event.into()
        }));
    }
}

/// Items in one event: so many of them, or as many as a piece may have. Nothing, where there are no more.
fn items(presentation: &Presentation, objects: &Objects, mark: &mut Mark, count: Option<usize>) -> Bytes {
    let begin = b"event: items\ndata: {\"items\":[";
    let mut piece = begin.to_vec();
    let to = count.map_or(usize::MAX, |count| mark.at + count);
    objects.read(mark, to, |object| {
        if piece.len() > begin.len() {
            piece.push(b',');
        }
        presentation.write(object, &mut piece);
        count.is_some() || piece.len() < PIECE
    });
    if piece.len() == begin.len() {
        return Bytes::new();
    }
    piece.extend_from_slice(b"]}\n\n");
    piece.into()
}

/// The last event. A client that may not go on from where it is is told to forget where that was.
fn end(reason: &str, resumable: bool) -> Bytes {
    let data =
        json!({"reason": reason, "retryAfterMs": u64::try_from(RETRY_AFTER.as_millis()).unwrap_or_default()});
    let forget = if resumable { "" } else { "id:\n" };
    format!("{forget}event: end\ndata: {data}\n\n").into()
}
