//! What streams begin with, written once for all who ask the same at about the same time.
//!
//! A page of a browser begins with a table of everything, which takes long to write. A new stream shares what was begun for
//! another one in the last seconds, and follows from there: what has changed since then it hears as changes.

use std::{
    collections::{BTreeMap, HashMap},
    future::{Ready, ready},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    FutureExt,
    future::{BoxFuture, Either, Shared, WeakShared},
};
use tokio::time::Instant;

use super::changes::{Changes, Cursor};
use crate::{query::selection::Selection, work::apart};

/// For how long new streams join.
const JOIN: Duration = Duration::from_secs(2);
/// How many objects a piece has.
pub(crate) const ROWS: usize = 64;
/// How much is kept for others of one collection, in bytes. What is beyond is written for each anew.
const KEPT: usize = 32 << 20;

/// Those of one collection that somebody still reads.
#[derive(Default)]
pub(crate) struct Snapshots {
    begun: Mutex<Begun>,
    pieces: Arc<Mutex<Pieces>>,
}

#[derive(Default)]
struct Begun {
    /// How many there have been.
    count: u64,
    by_question: HashMap<String, Weak<SharedSnapshot>>,
}

/// The objects of one moment for all who ask one question, in pieces.
pub(crate) struct SharedSnapshot {
    /// A later one has a higher number.
    number: u64,
    begun: Instant,
    content: Selecting,
    pieces: Arc<Mutex<Pieces>>,
}

/// What was selected, and where to follow from.
pub(crate) struct Content {
    pub(crate) selection: Selection,
    pub(crate) cursor: Cursor,
}

/// Done once, on a task of its own, for all who wait for it; whoever of them stops to listen keeps nobody waiting.
type Selecting = Shared<BoxFuture<'static, Arc<Content>>>;
type Writing = Shared<BoxFuture<'static, Bytes>>;

/// The pieces of all snapshots of a collection, each by the number of its snapshot and its own.
#[derive(Default)]
struct Pieces {
    /// What is being written now.
    writing: HashMap<(u64, usize), WeakShared<BoxFuture<'static, Bytes>>>,
    written: BTreeMap<(u64, usize), Bytes>,
    /// Bytes of what was written.
    used: usize,
}

impl Pieces {
    /// Keeps a copy, if there is room for it: what was written may have grown to twice its length. Pieces of older snapshots
    /// make room, the oldest first. Whoever reads these is slow, and has them written anew.
    fn keep(&mut self, piece: (u64, usize), bytes: &Bytes) {
        while self.used + bytes.len() > KEPT {
            match self.written.first_entry() {
                Some(oldest) if oldest.key().0 < piece.0 => self.used -= oldest.remove().len(),
                _ => return,
            }
        }
        self.used += bytes.len();
        let before = self.written.insert(piece, Bytes::copy_from_slice(bytes));
        self.used -= before.map_or(0, |before| before.len());
    }

    /// Forgets a snapshot, which nobody reads any more.
    fn forget(&mut self, snapshot: u64) {
        self.writing.retain(|(of, _), _| *of != snapshot);
        let mut rest = self.written.split_off(&(snapshot, 0));
        let mut later = rest.split_off(&(snapshot + 1, 0));
        self.used -= rest.values().map(Bytes::len).sum::<usize>();
        self.written.append(&mut later);
    }
}

impl Snapshots {
    /// The snapshot to share for a question: one that was begun a moment ago and can be followed from, or a new one, for which
    /// the objects are selected as soon as somebody waits for them.
    pub(crate) fn join<F>(
        &self,
        question: &str,
        changes: &Changes,
        select: impl FnOnce() -> F,
    ) -> Arc<SharedSnapshot>
    where
        F: Future<Output = Content> + Send + 'static,
    {
        let mut begun = lock(&self.begun);
        begun.by_question.retain(|_, shared| shared.strong_count() > 0);
        if let Some(shared) = begun.by_question.get(question).and_then(Weak::upgrade)
            && shared.begun.elapsed() < JOIN
            && shared.content.peek().is_none_or(|content| changes.holds(&content.cursor))
        {
            return shared;
        }
        let content = apart(select().map(Arc::new)).boxed().shared();
        let number = begun.count;
        begun.count += 1;
        let pieces = Arc::clone(&self.pieces);
        let shared = Arc::new(SharedSnapshot { number, begun: Instant::now(), content, pieces });
        begun.by_question.insert(question.to_owned(), Arc::downgrade(&shared));
        shared
    }
}

impl SharedSnapshot {
    /// What was selected: once, for all.
    pub(crate) async fn content(&self) -> Arc<Content> {
        self.content.clone().await
    }

    /// What was selected, if that has been done.
    pub(crate) fn selection(&self) -> Option<&Selection> {
        self.content.peek().map(|content| &content.selection)
    }

    /// A piece: the first one who needs it has it written, the others wait for that. What waits does not hold the snapshot.
    pub(crate) fn piece(
        &self,
        number: usize,
        write: impl Future<Output = Bytes> + Send + 'static,
    ) -> Either<Ready<Bytes>, Writing> {
        let piece = (self.number, number);
        let mut pieces = lock(&self.pieces);
        if let Some(written) = pieces.written.get(&piece) {
            return Either::Left(ready(written.clone()));
        }
        if let Some(writing) = pieces.writing.get(&piece).and_then(WeakShared::upgrade) {
            return Either::Right(writing);
        }
        let kept = Arc::clone(&self.pieces);
        let writing = apart(async move {
            let written = write.await;
            let mut pieces = lock(&kept);
            // Not of a snapshot that is forgotten.
            if pieces.writing.remove(&piece).is_some() {
                pieces.keep(piece, &written);
            }
            written
        });
        let writing = writing.boxed().shared();
        if let Some(weak) = writing.downgrade() {
            pieces.writing.insert(piece, weak);
        }
        Either::Right(writing)
    }
}

impl Drop for SharedSnapshot {
    fn drop(&mut self) {
        lock(&self.pieces).forget(self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use informer::{RawObject, store};
    use tokio::{
        sync::oneshot,
        time::{advance, timeout},
    };

    use super::*;
    use crate::{
        access::Visible,
        cache::{Stored, changes::Depth},
        query::Query,
    };

    fn mk_changes() -> Changes {
        Changes::new(Depth::default())
    }

    fn mk_content(changes: &Changes, objects: usize) -> Content {
        let (mut writer, store) = store::new::<Stored>();
        writer.write(|batch| {
            for n in 0..objects {
                let json = format!(r#"{{"metadata":{{"name":"object-{n}"}}}}"#);
                batch.insert(informer::Object::new(Stored::plain(RawObject::new(json).unwrap())).unwrap());
            }
        });
        let (snapshot, cursor) = changes.snapshot(&store);
        Content { selection: Query::default().select(None, &snapshot, &Visible::All), cursor }
    }

    /// A snapshot, with one object if it is a new one.
    fn join(snapshots: &Snapshots, question: &str) -> Arc<SharedSnapshot> {
        let changes = mk_changes();
        let content = mk_content(&changes, 1);
        snapshots.join(question, &changes, || ready(content))
    }

    /// The length of a piece that is written with this length, if it is.
    async fn piece(shared: &SharedSnapshot, number: usize, length: usize) -> usize {
        shared.piece(number, ready(Bytes::from(vec![b'x'; length]))).await.len()
    }

    fn used(snapshots: &Snapshots) -> usize {
        let pieces = lock(&snapshots.pieces);
        assert_eq!(pieces.used, pieces.written.values().map(Bytes::len).sum::<usize>());
        pieces.used
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_in_time_and_asks_the_same_shares() {
        let snapshots = Snapshots::default();
        let first = join(&snapshots, "q");
        assert_eq!(first.content().await.selection.objects.len(), 1);
        assert!(Arc::ptr_eq(&first, &join(&snapshots, "q")));
        assert!(!Arc::ptr_eq(&first, &join(&snapshots, "p")));
        advance(JOIN).await;
        assert!(!Arc::ptr_eq(&first, &join(&snapshots, "q")), "it is too old");
    }

    #[tokio::test]
    async fn what_nobody_reads_any_more_is_gone() {
        let snapshots = Snapshots::default();
        let (first, second) = (join(&snapshots, "q"), join(&snapshots, "p"));
        let third = join(&snapshots, "r");
        for shared in [&first, &second, &third] {
            assert_eq!(piece(shared, 0, 4).await, 4);
        }
        drop(second);
        assert_eq!(used(&snapshots), 8);
        let writing = first.piece(1, pending());
        assert!(writing.clone().now_or_never().is_none());
        drop(first);
        assert_eq!(used(&snapshots), 4);
        assert!(lock(&snapshots.pieces).writing.is_empty());
        drop((third, join(&snapshots, "other")));
        assert_eq!(used(&snapshots), 0);
        assert_eq!(lock(&snapshots.begun).by_question.len(), 2, "only what was there when it was last asked");
    }

    #[tokio::test]
    async fn a_piece_is_written_once_unless_too_much_is_kept() {
        let snapshots = Snapshots::default();
        let shared = join(&snapshots, "q");
        assert_eq!(piece(&shared, 0, KEPT).await, KEPT);
        assert_eq!(piece(&shared, 0, 5).await, KEPT);
        assert_eq!(piece(&shared, 1, 1).await, 1);
        assert_eq!(piece(&shared, 1, 2).await, 2, "there was no room for it");
    }

    #[tokio::test]
    async fn old_snapshots_that_somebody_still_reads_give_way_to_new_ones() {
        let snapshots = Snapshots::default();
        let old = join(&snapshots, "old");
        for number in 0..4 {
            piece(&old, number, KEPT / 4).await;
        }
        let new = join(&snapshots, "new");
        assert_eq!(piece(&new, 0, KEPT / 4).await, KEPT / 4);
        assert_eq!(piece(&new, 0, 1).await, KEPT / 4, "it is kept");
        assert_eq!(piece(&old, 3, 1).await, KEPT / 4, "only what there is no room for has gone");
        assert_eq!(piece(&old, 0, 7).await, 7, "whoever reads the old one has it written anew");
        assert_eq!(piece(&new, 0, 1).await, KEPT / 4, "and drives out nothing newer");
        for number in 1..4 {
            piece(&new, number, KEPT / 4).await;
        }
        assert_eq!(piece(&old, 3, 9).await, 9);
        assert_eq!(used(&snapshots), KEPT);
    }

    #[tokio::test]
    async fn a_caller_that_is_never_polled_again_keeps_nobody_from_a_shared_snapshot() {
        let (snapshots, changes) = (Snapshots::default(), mk_changes());
        let content = mk_content(&changes, 1);
        let (go_on, told) = oneshot::channel::<()>();
        let select = || async move {
            let _ = told.await;
            content
        };
        let shared = snapshots.join("q", &changes, select);
        let mut stalled = Box::pin(shared.content());
        assert!((&mut stalled).now_or_never().is_none());
        let _ = go_on.send(());
        let within = Duration::from_secs(60);
        let content = timeout(within, join(&snapshots, "q").content()).await.expect("it is selected");
        assert_eq!(content.selection.objects.len(), 1);

        let (go_on, told) = oneshot::channel::<()>();
        let write = async move {
            let _ = told.await;
            Bytes::from("one")
        };
        let mut stalled_too = shared.piece(0, write);
        assert!((&mut stalled_too).now_or_never().is_none());
        let second = shared.piece(0, pending());
        let third = shared.piece(0, pending());
        let _ = go_on.send(());
        assert_eq!(timeout(within, second).await.expect("it is written"), "one");
        assert_eq!(timeout(within, third).await.expect("it is written"), "one");
        drop((stalled, stalled_too));
    }
}
