//! Watch: what there is, if that was asked for, and then every change as it happens.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use informer_model::Status;
use informer_serving::{envelope::EventType, media::Shape, options::Requested, path::no_such_path};
use tokio::time::{Instant, sleep_until};

use super::{Answer, Call};
use crate::{
    faults::WatchFaults,
    present::{Presentation, error_event},
    respond,
    selection::Filter,
    server::Server,
    store::{Cursor, Reading, Stored, Unreadable},
};

/// So many changes are looked up at once.
const BATCH: usize = 256;
/// About so many bytes of initial events go out in one piece.
const PIECE: usize = 64 * 1024;
/// No watch lives longer, whatever it asks for.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// How long before its end a watch sends a last bookmark.
const FAREWELL: Duration = Duration::from_secs(2);

impl Call<'_> {
    pub(super) async fn watch(self) -> Answer {
        let options = self.query.watch()?;
        let presentation = self.presentation(Shape::Watch)?;
        let encoding = presentation.encoding();
        let failed =
            |status: &Status| respond::watch(encoding, stream::iter([Ok(error_event(status, encoding))]));
        let filter = Filter::new(&self.resource, self.place, &self.query)?;
        let initial = match (options.send_initial_events, options.version) {
            (Some(true), Requested::At(version)) => {
                // By now the answer has begun: what goes wrong is an event.
                if let Err(status) = self.reach(version).await {
                    return Ok(failed(&status));
                }
                Some(self.at_hand()?)
            }
            (Some(true) | None, Requested::Any) => Some(self.at_hand()?),
            (Some(true) | None, Requested::Unset) => Some(self.newest()?),
            _ => None,
        };
        let after = match (&initial, options.version) {
            (Some(reading), _) => reading.version,
            (None, Requested::At(version)) => version,
            (None, Requested::Any | Requested::Unset) => self.at_hand()?.version,
        };
        let cursor = match self.server.store.follow(self.id, after) {
            Ok(cursor) => cursor,
            Err(Unreadable::Gone) => return Err(no_such_path()),
            Err(Unreadable::Expired) => {
                let newest = self.server.store.version();
                let status = Status::expired(format!("too old resource version: {after} ({newest})"));
                return Ok(failed(&status));
            }
        };
        let life = options.timeout.unwrap_or_else(|| self.server.watch_life());
        let deadline = Instant::now() + life.min(LONGEST);
        let end_of_initial = options.send_initial_events == Some(true) && options.bookmarks;
        let watching = Watching {
            end_of_initial: initial.as_ref().filter(|_| end_of_initial).map(|reading| reading.version),
            initial: initial.map(|reading| matching(&reading, &filter)).unwrap_or_default().into_iter(),
            faults: self.server.faults.watch(self.requested, encoding),
            server: Arc::clone(self.server),
            held: self.replica.as_ref().map(|replica| replica.follow()),
            cursor,
            filter,
            presentation,
            ready: VecDeque::new(),
            failed: false,
            next_bookmark: options.bookmarks.then(|| self.server.next_bookmark(deadline)),
            deadline,
        };
        Ok(respond::watch(
            encoding,
            stream::unfold(watching, |mut watching| async {
                let piece = watching.next().await?;
                Some((Ok(piece), watching))
            }),
        ))
    }
}

fn matching(reading: &Reading, filter: &Filter) -> Vec<Arc<Stored>> {
    filter.range(&reading.objects, None).filter(|object| filter.matches(object)).cloned().collect()
}

/// A watch that is going on.
struct Watching {
    server: Arc<Server>,
    /// The version at which the replica that serves this watch is held.
    held: Option<tokio::sync::watch::Receiver<Option<u64>>>,
    cursor: Cursor,
    filter: Filter,
    presentation: Presentation,
    faults: WatchFaults,
    /// What is still to be sent of what was there at the beginning, and the version that closes it.
    initial: std::vec::IntoIter<Arc<Stored>>,
    end_of_initial: Option<u64>,
    /// Frames that are to be sent next.
    ready: VecDeque<Bytes>,
    /// An object could not be written: the last frame says so.
    failed: bool,
    /// None: bookmarks are not wanted.
    next_bookmark: Option<Instant>,
    deadline: Instant,
}

impl Watching {
    /// The next piece of the stream; none at its end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if self.failed
                || self.faults.ended()
                || self.server.is_stopped()
                || Instant::now() >= self.deadline
            {
                return None;
            }
            if let Some(piece) = self.initial_piece() {
                return Some(piece);
            }
            if let Some(version) = self.end_of_initial.take() {
                let bookmark = self.presentation.bookmark(version, true);
                self.ready.extend(self.faults.end_of_initial_events(bookmark));
                continue;
            }
            self.take_changes()?;
            self.bookmark()?;
            if self.ready.is_empty() {
                self.wait().await?;
            } else {
                // Who reads fast must not keep others from their turn.
                tokio::task::consume_budget().await;
            }
        }
    }

    /// Some more of what was there at the beginning.
    fn initial_piece(&mut self) -> Option<Bytes> {
        let mut piece = Vec::new();
        while piece.len() < PIECE {
            let Some(object) = self.initial.next() else { break };
            let frame = self.presentation.event(EventType::Added, &object);
            for frame in self.frames(frame) {
                piece.extend_from_slice(&frame);
            }
            if self.failed || self.faults.ended() {
                break;
            }
        }
        (!piece.is_empty()).then(|| piece.into())
    }

    /// Makes frames of the changes that have come. None: they are no longer there, this watch is too slow.
    fn take_changes(&mut self) -> Option<()> {
        let visible = self.held.as_mut().and_then(|held| *held.borrow_and_update()).unwrap_or(u64::MAX);
        for change in &self.server.store.next(&mut self.cursor, BATCH, visible).ok()? {
            if let Some(event) = self.filter.event(change) {
                let frame = self.presentation.change(event, change);
                let frames = self.frames(frame);
                self.ready.extend(frames);
            }
            if self.failed {
                break;
            }
        }
        Some(())
    }

    /// What is sent of an event. One that could not be written is an error, which ends the watch.
    fn frames(&mut self, frame: Result<Bytes, Status>) -> impl Iterator<Item = Bytes> + use<> {
        let frame = frame.unwrap_or_else(|status| {
            self.failed = true;
            error_event(&status, self.presentation.encoding())
        });
        self.faults.event(frame)
    }

    /// Waits for something to do. None: there will be nothing more.
    async fn wait(&mut self) -> Option<()> {
        let wake = self.next_bookmark.unwrap_or(self.deadline).min(self.deadline);
        let held_elsewhere = async {
            match &mut self.held {
                Some(held) => drop(held.changed().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.cursor.changed() => {}
            () = held_elsewhere => {}
            () = self.server.stopped() => return None,
            () = sleep_until(wake) => {}
        }
        Some(())
    }

    /// Sends a bookmark if one is due. None: this watch is too slow.
    fn bookmark(&mut self) -> Option<()> {
        if self.next_bookmark.is_none_or(|due| Instant::now() < due) {
            return Some(());
        }
        self.next_bookmark = Some(self.server.next_bookmark(self.deadline));
        // What happened elsewhere has not woken this watch, but it counts as seen.
        self.take_changes()?;
        // A watch that waits for a version of the future has seen nothing yet.
        let held = self.held.as_ref().and_then(|held| *held.borrow()).unwrap_or(u64::MAX);
        if self.cursor.version <= self.server.store.version().min(held) {
            let bookmark = self.presentation.bookmark(self.cursor.version, false);
            self.ready.extend(self.faults.bookmark(bookmark));
        }
        Some(())
    }
}

impl Server {
    /// When a watch that ends at `deadline` sends its next bookmark: each minute, and shortly before its end.
    fn next_bookmark(&self, deadline: Instant) -> Instant {
        let now = Instant::now();
        let regular = now + self.bookmark_interval;
        match deadline.checked_sub(FAREWELL) {
            Some(farewell) if farewell > now => regular.min(farewell),
            _ => regular,
        }
    }
}
