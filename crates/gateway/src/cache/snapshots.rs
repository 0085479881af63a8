//! What streams begin with, written once for all who ask the same at about the same time.
//!
//! A page of a browser begins with a table of everything, which takes long to write. A new stream shares what was begun for
//! another one in the last seconds, and follows from there: what has changed since then it hears as changes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::{Mutex as AsyncMutex, OnceCell},
    time::Instant,
};

use super::{
    changes::{Changes, Cursor},
    room::Room,
};
use crate::query::selection::Selection;

/// For how long new streams join.
const JOIN: Duration = Duration::from_secs(2);
/// How many objects a piece has.
pub(crate) const ROWS: usize = 64;
/// How much is kept for others of one collection, in bytes. What is beyond is written for each anew.
const KEPT: usize = 32 << 20;

/// Those of one collection that somebody still reads.
pub(crate) struct Snapshots {
    begun: Mutex<HashMap<String, Weak<SharedSnapshot>>>,
    room: Arc<Room>,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self { begun: Mutex::default(), room: Arc::new(Room::new(KEPT)) }
    }
}

/// The objects of one moment for all who ask one question, in pieces.
pub(crate) struct SharedSnapshot {
    begun: Instant,
    content: OnceCell<Content>,
    room: Arc<Room>,
}

struct Content {
    selection: Selection,
    cursor: Cursor,
    pieces: Vec<AsyncMutex<Option<Bytes>>>,
}

impl Snapshots {
    /// The snapshot to share for a question: one that was begun a moment ago and can be followed from, or a new one.
    pub(crate) fn join(&self, question: &str, changes: &Changes) -> Arc<SharedSnapshot> {
        let mut begun = self.lock();
        begun.retain(|_, shared| shared.strong_count() > 0);
        if let Some(shared) = begun.get(question).and_then(Weak::upgrade)
            && shared.begun.elapsed() < JOIN
            && shared.content.get().is_none_or(|content| changes.holds(&content.cursor))
        {
            return shared;
        }
        let room = Arc::clone(&self.room);
        let shared = Arc::new(SharedSnapshot { begun: Instant::now(), content: OnceCell::new(), room });
        begun.insert(question.to_owned(), Arc::downgrade(&shared));
        shared
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<SharedSnapshot>>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedSnapshot {
    /// What was selected, and where to follow from. The first one selects for all.
    pub(crate) async fn content(
        &self,
        select: impl Future<Output = (Selection, Cursor)>,
    ) -> (&Selection, &Cursor) {
        let content = self.content.get_or_init(async || {
            let (selection, cursor) = select.await;
            let pieces = selection.objects.len().div_ceil(ROWS);
            Content { selection, cursor, pieces: (0..pieces).map(|_| AsyncMutex::default()).collect() }
        });
        let content = content.await;
        (&content.selection, &content.cursor)
    }

    /// What was selected, if that has been done.
    pub(crate) fn selection(&self) -> Option<&Selection> {
        self.content.get().map(|content| &content.selection)
    }

    /// A piece: the first one who needs it writes it, the others wait for that.
    pub(crate) async fn piece(&self, number: usize, write: impl Future<Output = Bytes>) -> Bytes {
        let Some(piece) = self.content.get().and_then(|content| content.pieces.get(number)) else {
            return write.await;
        };
        let mut piece = piece.lock().await;
        if let Some(written) = &*piece {
            return written.clone();
        }
        let written = write.await;
        *piece = self.room.keep(&written);
        written
    }
}

impl Drop for SharedSnapshot {
    fn drop(&mut self) {
        let pieces = self.content.get_mut().map(|content| std::mem::take(&mut content.pieces));
        let written = pieces.into_iter().flatten().filter_map(AsyncMutex::into_inner);
        self.room.give_back(written.map(|piece| piece.len()).sum());
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use informer::{RawObject, store};
    use tokio::time::advance;

    use super::*;
    use crate::{access::Visible, cache::changes::Depth, query::Query};

    fn mk_changes() -> Changes {
        Changes::new(Depth::default())
    }

    /// A selection of so many objects.
    async fn begin(shared: &SharedSnapshot, changes: &Changes, objects: usize) {
        let (mut writer, store) = store::new::<RawObject>();
        writer.write(|batch| {
            for n in 0..objects {
                let json = format!(r#"{{"metadata":{{"name":"object-{n}"}}}}"#);
                batch.insert(informer::Object::new(RawObject::new(json).unwrap()).unwrap());
            }
        });
        let (snapshot, cursor) = changes.snapshot(&store);
        shared.content(ready((Query::default().select(None, &snapshot, &Visible::All), cursor))).await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_in_time_and_asks_the_same_shares() {
        let (snapshots, changes) = (Snapshots::default(), mk_changes());
        let first = snapshots.join("q", &changes);
        begin(&first, &changes, 1).await;
        assert!(Arc::ptr_eq(&first, &snapshots.join("q", &changes)));
        assert!(!Arc::ptr_eq(&first, &snapshots.join("p", &changes)));
        advance(JOIN).await;
        assert!(!Arc::ptr_eq(&first, &snapshots.join("q", &changes)), "it is too old");
    }

    #[tokio::test]
    async fn what_nobody_reads_any_more_is_gone() {
        let (snapshots, changes) = (Snapshots::default(), mk_changes());
        let first = snapshots.join("q", &changes);
        begin(&first, &changes, 1).await;
        assert_eq!(first.piece(0, ready("text".into())).await, "text");
        assert_eq!(snapshots.room.used(), 4);
        drop(first);
        assert_eq!(snapshots.room.used(), 0);
        drop(snapshots.join("other", &changes));
        assert_eq!(snapshots.lock().len(), 1, "only what was asked for last");
    }

    #[tokio::test]
    async fn a_piece_is_written_once_unless_too_much_is_kept() {
        let (snapshots, changes) = (Snapshots::default(), mk_changes());
        let shared = snapshots.join("q", &changes);
        begin(&shared, &changes, 3 * ROWS).await;
        let large = Bytes::from(vec![b'x'; KEPT]);
        assert_eq!(shared.piece(0, ready(large.clone())).await, large);
        assert_eq!(shared.piece(0, ready("again".into())).await, large);
        assert_eq!(shared.piece(1, ready("one".into())).await, "one");
        assert_eq!(shared.piece(1, ready("two".into())).await, "two", "there was no room for it");
    }
}
