//! A watch of Kubernetes: events as lines of JSON, with bookmarks, and 410 when the version is too old.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header};
use informer::{discovery::ServedResource, store::Snapshot};
use informer_model::{ResourceVersion, Status};
use informer_serving::{
    envelope::{EventType, error_event},
    options::{Requested, WatchOptions},
};
use rand::RngExt;
use rand_pcg::Pcg32;
use tokio::time::{Instant, sleep_until};

use crate::{
    access::Visible,
    answer::{PIECE, Refusal},
    app::{App, Asker},
    cache::{
        Stored,
        changes::{Change, Place},
        collection::Collection,
        snapshots::ROWS,
    },
    follow::{Follower, Seen, Writer},
    lease::{Lease, NOT_READ},
    listing::Standing,
    present::{Form, Presentation},
    query::{
        Query,
        selection::{Mark, Objects},
    },
    share::Share,
    work::apart,
};

/// No watch is longer, whatever is asked for: a client opens another when it ends.
const LONGEST: Duration = Duration::from_secs(86_400);
/// How often a watch that wants bookmarks gets one when nothing else comes.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Events are gathered for so long after some were sent, so that a storm is few writes.
const GATHER: Duration = Duration::from_millis(10);

/// Opens a watch.
pub(crate) async fn open(
    app: &Arc<App>,
    asker: &Asker,
    served: &ServedResource,
    query: Arc<Query>,
    options: WatchOptions,
    form: Form,
) -> Result<Response, Refusal> {
    // What is asked now counts from now on, however long it takes until there is something to tell.
    let next_check = app.next_check();
    let (collection, visible) = app.open(asker, "watch", served, &query).await?;
    let share = app.stream(asker)?;
    let presentation = Presentation::new(form, &collection);
    let timeout = options
        .timeout
        .map(|timeout| timeout.min(LONGEST))
        .unwrap_or_else(|| Duration::from_secs(rand::make_rng::<Pcg32>().random_range(1_800..3_600)));
    let mut watch = Watch {
        app: Arc::clone(app),
        asker: asker.clone(),
        served: served.clone(),
        collection,
        writer: EventWriter {
            ways: ["ADDED", "MODIFIED", "DELETED"].map(|event| presentation.way(event)),
            presentation,
        },
        visible,
        query,
        follower: None,
        initial: None,
        initial_end: None,
        bookmarks: options.bookmarks,
        ends: Instant::now() + timeout,
        next_bookmark: Instant::now() + BOOKMARK_EVERY,
        next_check,
        gathered_until: Instant::now(),
        ended: false,
        _share: share,
    };
    watch.begin(&options).await?;
    let pieces = stream::unfold(watch, |mut watch| async move {
        let piece = watch.next().await?;
        Some((Ok::<_, Infallible>(piece), watch))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

struct Watch {
    app: Arc<App>,
    asker: Asker,
    served: ServedResource,
    collection: Arc<Collection>,
    writer: EventWriter,
    visible: Visible,
    query: Arc<Query>,
    /// None when the version was too old: there is only one event then, which says so.
    follower: Option<Box<Follower>>,
    /// What is there already, still to be told.
    initial: Option<(Lease<Objects>, Mark)>,
    /// The version of that, where its end is to be marked.
    initial_end: Option<ResourceVersion>,
    bookmarks: bool,
    ends: Instant,
    next_bookmark: Instant,
    next_check: Instant,
    gathered_until: Instant,
    ended: bool,
    _share: Share,
}

impl Watch {
    async fn begin(&mut self, options: &WatchOptions) -> Result<(), Status> {
        let after = not_older_than(options.version);
        let initial = options.send_initial_events.unwrap_or(after.is_none());
        let (changes, store) = (&self.collection.changes, &self.collection.store);
        let place = after.map(Place::of);
        if let Some(place) = &place
            && changes.is_ahead(place, store)
        {
            self.app.wait_for_version(&self.collection, place.version()).await?;
        }
        let cursor = match place {
            Some(place) if !initial => {
                self.collection.recall(&place).await;
                changes.after(&place).ok()
            }
            _ => {
                let (snapshot, cursor) = self.collection.snapshot_to_follow();
                self.initial_end =
                    (options.send_initial_events == Some(true)).then(|| snapshot.resource_version().clone());
                if initial {
                    self.initial = Some((self.select(snapshot).await, Mark::default()));
                }
                Some(cursor)
            }
        };
        self.follower =
            cursor.map(|cursor| Follower::new(cursor, &self.collection, &self.query, &self.visible).into());
        Ok(())
    }

    /// The next piece of the answer; none at its end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        if self.follower.is_none() {
            self.ended = true;
            return Some(expired());
        }
        if self.initial.is_some() {
            // Who reads slowly is asked about like everybody else.
            if let Some(end) = self.revoked().await {
                return end;
            }
            if let Some(piece) = self.initial_piece().await {
                return Some(piece);
            }
        }
        if let Some(version) = self.initial_end.take() {
            return Some(self.bookmark(&version, true));
        }
        loop {
            sleep_until(self.gathered_until.min(self.ends)).await;
            if self.app.is_stopping() || Instant::now() >= self.ends {
                self.ended = true;
                let version = self.follower.as_ref()?.seen().version().clone();
                return self.bookmarks.then(|| self.bookmark(&version, false));
            }
            if let Some(end) = self.revoked().await {
                return end;
            }
            let (follower, writer) = (self.follower.take()?, self.writer.clone());
            let Ok(told) = follower.tell(false, writer, &self.app.work, &self.asker.account).await else {
                self.ended = true;
                return Some(expired());
            };
            (self.follower, self.writer) = (Some(told.follower), told.writer);
            if !told.piece.is_empty() {
                if !told.more {
                    self.gathered_until = Instant::now() + GATHER;
                }
                return Some(told.piece.into());
            }
            if self.bookmarks && Instant::now() >= self.next_bookmark {
                self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                let version = self.follower.as_ref()?.seen().version().clone();
                return Some(self.bookmark(&version, false));
            }
            // A bookmark that nobody wants is no reason to wake up: it would be due for ever.
            let bookmark = if self.bookmarks { self.next_bookmark } else { self.ends };
            let wake = self.ends.min(bookmark).min(self.next_check);
            tokio::select! {
                () = self.follower.as_ref()?.wait() => {}
                () = sleep_until(wake) => {}
                () = self.app.stopping() => {}
            }
        }
    }

    /// How the watch ends, if the caller may no longer see what it saw.
    async fn revoked(&mut self) -> Option<Option<Bytes>> {
        if Instant::now() < self.next_check {
            return None;
        }
        self.next_check = self.app.next_check();
        let Self { app, asker, served, query, visible, .. } = self;
        let end = match app.recheck(asker, served, query, visible).await {
            Standing::Same => return None,
            Standing::Narrowed(left, gone)
                if self.follower.as_mut().is_some_and(|follower| follower.narrow(&left, &gone)) =>
            {
                self.visible = left;
                return None;
            }
            // What was told before does not fit what would be told now: the client is to list again.
            Standing::Narrowed(..) | Standing::Changed(_) => {
                Some(error_event(&Status::expired("what you may see has changed: list again")))
            }
            Standing::Revoked => None,
            // It may be the same as before: the client may go on from where it is.
            Standing::Unknown => {
                let why = "access cannot be checked: the cluster does not answer, try again later";
                Some(error_event(&Status::service_unavailable(why).with_retry_after(1)))
            }
        };
        self.ended = true;
        Some(end)
    }

    /// What is asked for, held for a while: whether somebody waits for it or not.
    async fn select(&self, snapshot: Snapshot<Stored>) -> Lease<Objects> {
        let (query, visible) = (Arc::clone(&self.query), self.visible.clone());
        let (work, account) = (self.app.work.clone(), self.asker.account.clone());
        apart(async move {
            Lease::new(query.select_aside(None, snapshot, &visible, &work, &account).await.objects)
        })
        .await
    }

    async fn initial_piece(&mut self) -> Option<Bytes> {
        tokio::task::yield_now().await;
        let (lease, mut mark) = self.initial.take()?;
        let Some(initial) = lease.get() else {
            self.ended = true;
            return Some(error_event(&Status::expired(NOT_READ)));
        };
        let mut presentation = self.writer.presentation.clone();
        let micros = ROWS * presentation.micros();
        let to = if micros == 0 { initial.len() } else { initial.len().min(mark.at + ROWS) };
        let write = move || {
            let mut piece = Vec::new();
            initial.read(&mut mark, to, |object| {
                piece.extend_from_slice(&EventType::Added.frame(&presentation.one(object)));
                presentation.envelope.mark_columns_told();
                piece.len() < PIECE
            });
            (piece, mark)
        };
        let (piece, mark) = self.app.work.run(&self.asker.account, micros, write).await;
        if piece.is_empty() {
            return None;
        }
        self.initial = Some((lease, mark));
        self.writer.presentation.envelope.mark_columns_told();
        Some(piece.into())
    }

    fn bookmark(&mut self, version: &ResourceVersion, initial_end: bool) -> Bytes {
        let line = self.writer.presentation.envelope.bookmark(&version.to_string(), initial_end);
        self.writer.presentation.envelope.mark_columns_told();
        line
    }
}

/// How events are written.
#[derive(Clone)]
struct EventWriter {
    presentation: Presentation,
    /// By event.
    ways: [u64; 3],
}

impl Writer for EventWriter {
    fn micros(&self, change: &Change) -> usize {
        if change.is_written(&self.ways) { 0 } else { self.presentation.micros() }
    }

    fn write(&mut self, Seen { event, change, object }: &Seen, piece: &mut Vec<u8>) {
        let write = || event.frame(&self.presentation.one(object));
        // The first row of a table brings the columns along; nobody else's does.
        if self.presentation.envelope.owes_columns() {
            piece.extend_from_slice(&write());
            self.presentation.envelope.mark_columns_told();
        } else {
            let way = self.ways.get(*event as usize).copied().unwrap_or_default();
            piece.extend_from_slice(&change.written(way, write));
        }
    }
}

/// The version that is asked for, if it is a certain one.
pub(crate) fn not_older_than(version: Requested) -> Option<ResourceVersion> {
    match version {
        Requested::Unset | Requested::Any => None,
        Requested::At(version) => Some(version.into()),
    }
}

fn expired() -> Bytes {
    let words = "too old resource version: the gateway no longer knows what came after it";
    error_event(&Status::expired(words))
}
