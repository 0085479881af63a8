//! Following a collection: of everything that changes, what a query asks for.
//!
//! An object that begins to match is added, one that no longer does is deleted, to whoever follows: the world that a
//! follower hears of has only the objects that it asked for.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
    vec,
};

use informer::Object;
use informer_model::{ObjectKey, Selector};
use informer_serving::envelope::EventType;

use crate::{
    access::Visible,
    answer::PIECE,
    cache::{
        Stored,
        changes::{Change, Cursor, Lost, Place},
        collection::{Collection, InUse},
    },
    query::{FieldFilter, Query},
    work::{Account, Work},
};

/// How many changes are looked at in one go, and how many where those of one object are merged.
const AT_ONCE: usize = 256;
const MERGED_AT_ONCE: usize = 1_024;
/// How long a slice of work takes: others get their turn after it.
const SLICE: Duration = Duration::from_millis(2);

/// One who follows.
pub(crate) struct Follower {
    collection: Arc<Collection>,
    query: Arc<Query>,
    visible: Visible,
    cursor: Cursor,
    /// There was a moment when nothing waited.
    caught_up: bool,
    _in_use: InUse,
}

/// Something that happened to an object that the follower asked for.
pub(crate) struct Seen {
    pub(crate) event: EventType,
    pub(crate) change: Arc<Change>,
    /// The state to tell of: the new one, or of what is gone the last one.
    pub(crate) object: Object<Stored>,
}

/// How what a follower sees is written.
pub(crate) trait Writer: Send + 'static {
    /// About how long it takes to write a change, in microseconds; nothing where bytes are only copied.
    fn micros(&self, change: &Change) -> usize;

    fn write(&mut self, seen: &Seen, piece: &mut Vec<u8>);
}

/// What was told in one go.
pub(crate) struct Told<W> {
    pub(crate) follower: Box<Follower>,
    pub(crate) writer: W,
    /// As it was written; empty if nothing was for this follower.
    pub(crate) piece: Vec<u8>,
    /// Where the last event in it begins.
    pub(crate) last: usize,
    /// More has waited, for which there was no room in the piece.
    pub(crate) more: bool,
}

impl Follower {
    /// Follows from here on.
    pub(crate) fn new(
        cursor: Cursor,
        collection: &Arc<Collection>,
        query: &Arc<Query>,
        visible: &Visible,
    ) -> Self {
        Self {
            cursor,
            caught_up: false,
            _in_use: collection.follow(),
            collection: Arc::clone(collection),
            query: Arc::clone(query),
            visible: visible.clone(),
        }
    }

    /// Sees no more than this from now on, because namespaces have gone: what is in later ones of these names is something
    /// else. Not if the end of what was in them has not been told yet.
    pub(crate) fn narrow(&mut self, visible: &Visible, gone: &[String]) -> bool {
        let is_inside = |key: &ObjectKey| gone.iter().any(|namespace| key.namespace() == Some(namespace));
        let snapshot = self.collection.snapshot();
        let is_empty = |namespace: &String| snapshot.plan(Some(namespace), &Selector::default()).scanned == 0;
        let waiting = self.collection.changes.take(&mut self.cursor.clone(), usize::MAX);
        let is_told = waiting.is_ok_and(|all| !all.iter().filter_map(|change| change.key()).any(is_inside))
            && gone.iter().all(is_empty);
        if is_told {
            self.visible = visible.clone();
        }
        is_told
    }

    /// The place up to which everything has been seen.
    pub(crate) fn seen(&self) -> &Place {
        self.cursor.seen()
    }

    /// Whether so much waits that the follower will soon have lost its place. One that began far behind is not slow
    /// before it has caught up: sent away, it would come back to the same place.
    pub(crate) fn is_slow(&self) -> bool {
        self.caught_up && self.collection.changes.lag(&self.cursor) > 0.5
    }

    /// Waits until something has changed.
    pub(crate) async fn wait(&self) {
        self.collection.changes.ring_for(&self.cursor).await;
    }

    /// What has happened since, written, without waiting. It may be nothing, although something has changed. Where it takes
    /// long it is written on a thread that may be blocked, and no more of it than a piece at a time; all that happened to one
    /// object told as one is written to its end, in slices.
    pub(crate) async fn tell<W: Writer>(
        mut self: Box<Self>,
        merged: bool,
        writer: W,
        work: &Work,
        account: &Account,
    ) -> Result<Told<W>, Lost> {
        let at_most = if merged { MERGED_AT_ONCE } else { AT_ONCE };
        let changes = self.collection.changes.take(&mut self.cursor, at_most)?;
        let steps = if merged { merge(changes) } else { changes.into_iter().map(Step::of).collect() };
        let more = self.collection.changes.has_more(&self.cursor);
        let told = Told { follower: self, writer, piece: Vec::new(), last: 0, more };
        let mut telling = Telling { merged, steps: steps.into_iter(), told };
        while !telling.steps.as_slice().is_empty() {
            let micros = telling.micros();
            let slice = move || {
                telling.slice();
                telling
            };
            telling = work.run(account, micros, slice).await;
            if telling.told.more || !telling.steps.as_slice().is_empty() {
                tokio::task::yield_now().await;
            }
        }
        let mut told = telling.told;
        told.follower.caught_up |= !told.more;
        Ok(told)
    }

    /// About how long it takes to judge so many changes, in microseconds.
    fn judging(&self, changes: usize) -> usize {
        let Query { labels, fields, .. } = &*self.query;
        let reads = fields.as_ref().is_some_and(FieldFilter::reads_text);
        // Of two states each.
        let tenths = 2 * (1 + labels.requirements().len() / 8 + if reads { 50 } else { 0 });
        changes * tenths / 10
    }

    fn judge(&self, Step { old, is_old_unknown, change }: Step) -> Option<Seen> {
        let matching = |object: &&Object<Stored>| self.query.matches(object, &self.visible);
        let (was, is) =
            (old.as_ref().filter(matching).cloned(), change.new.as_ref().filter(matching).cloned());
        let (event, object) = match (was, is) {
            (None, Some(new)) if is_old_unknown => (EventType::Modified, new),
            (None, Some(new)) => (EventType::Added, new),
            (Some(_), Some(new)) => (EventType::Modified, new),
            // The last that is known of it, the same for all who hear of it.
            (Some(old), None) => (EventType::Deleted, change.old.clone().unwrap_or(old)),
            // It may have been one of those that the follower has. Its key says whether it may hear of it.
            (None, None) if is_old_unknown => {
                let last = change.new.as_ref().or(change.old.as_ref());
                let last = last.filter(|object| self.query.may_concern(object.key(), &self.visible))?;
                (EventType::Deleted, last.clone())
            }
            (None, None) => return None,
        };
        Some(Seen { event, change, object })
    }
}

/// A change, and what was before it.
struct Step {
    old: Option<Object<Stored>>,
    is_old_unknown: bool,
    change: Arc<Change>,
}

impl Step {
    fn of(change: Arc<Change>) -> Self {
        Self { old: change.old.clone(), is_old_unknown: change.is_old_unknown, change }
    }
}

/// All that happened to one object as one.
fn merge(changes: Vec<Arc<Change>>) -> Vec<Step> {
    let mut first: HashMap<ObjectKey, Step> = HashMap::new();
    let mut last: HashMap<ObjectKey, usize> = HashMap::new();
    for (at, change) in changes.iter().enumerate() {
        if let Some(key) = change.key() {
            first.entry(key.clone()).or_insert_with(|| Step::of(Arc::clone(change)));
            last.insert(key.clone(), at);
        }
    }
    let merged = changes.into_iter().enumerate().filter_map(|(at, change)| {
        let key = change.key().filter(|key| last.get(*key) == Some(&at))?;
        let first = first.remove(key)?;
        Some(Step { change, ..first })
    });
    merged.collect()
}

/// What is told in one go, while it is written.
struct Telling<W> {
    merged: bool,
    steps: vec::IntoIter<Step>,
    told: Told<W>,
}

impl<W: Writer> Telling<W> {
    /// About how long the rest takes, in microseconds.
    fn micros(&self) -> usize {
        let Told { follower, writer, .. } = &self.told;
        let steps = self.steps.as_slice();
        follower.judging(steps.len()) + steps.iter().map(|step| writer.micros(&step.change)).sum::<usize>()
    }

    /// Writes until it has taken long. Where each event stands for itself, also until it is much; the rest of them is taken
    /// anew, and not kept for a client that may not read.
    fn slice(&mut self) {
        let began = Instant::now();
        let Told { follower, writer, piece, last, more } = &mut self.told;
        while let Some(step) = self.steps.next() {
            let behind = Cursor::behind(&step.change);
            if let Some(seen) = follower.judge(step) {
                *last = piece.len();
                writer.write(&seen, piece);
            }
            if began.elapsed() < SLICE && (self.merged || piece.len() < PIECE) {
                continue;
            }
            if !self.merged && !self.steps.as_slice().is_empty() {
                (follower.cursor, *more) = (behind, true);
                self.steps = Vec::new().into_iter();
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use informer_testing::Deadline;

    use super::*;
    use crate::cache::tests::{mk_cache, mk_collection, put};

    /// Takes a millisecond for an event, and so many bytes.
    struct Slow {
        bytes: usize,
        written: usize,
    }

    impl Writer for Slow {
        fn micros(&self, _: &Change) -> usize {
            1_000
        }

        fn write(&mut self, seen: &Seen, piece: &mut Vec<u8>) {
            thread::sleep(Duration::from_millis(1));
            piece.resize(piece.len() + self.bytes, seen.event as u8);
            self.written += 1;
        }
    }

    /// One who follows, and so many changes of one object that wait.
    async fn mk_follower(changes: usize) -> Box<Follower> {
        let (server, cache) = mk_cache();
        let collection = mk_collection(&cache).await;
        let (_, cursor) = collection.snapshot_to_follow();
        (0..changes).for_each(|number| put(&server, "one", &number.to_string()));
        let deadline = Deadline::start();
        while collection.changes.total() < changes as u64 {
            deadline.check("the changes");
            tokio::task::yield_now().await;
        }
        Box::new(Follower::new(cursor, &collection, &Arc::default(), &Visible::All))
    }

    #[tokio::test]
    async fn what_takes_long_to_tell_is_told_in_slices_and_none_of_it_is_lost() {
        let (work, account) = (Work::default(), Account::Address(None));
        let mut follower = mk_follower(20).await;
        let mut told = 0;
        while told < 20 {
            let writer = Slow { bytes: 1, written: 0 };
            let piece = follower.tell(false, writer, &work, &account).await.expect("it is there");
            assert!((1..=2).contains(&piece.writer.written), "two milliseconds: {}", piece.writer.written);
            told += piece.writer.written;
            assert_eq!(piece.more, told < 20);
            follower = piece.follower;
        }
        assert_eq!(told, 20);
    }

    #[tokio::test]
    async fn what_is_told_as_one_is_told_to_its_end() {
        let (work, account) = (Work::default(), Account::Address(None));
        let follower = mk_follower(20).await;
        let writer = Slow { bytes: 1, written: 0 };
        let piece = follower.tell(true, writer, &work, &account).await.expect("it is there");
        assert_eq!((piece.writer.written, piece.more), (1, false));
    }

    #[tokio::test]
    async fn a_piece_of_events_has_a_limit_in_bytes() {
        let (work, account) = (Work::default(), Account::Address(None));
        let writer = Slow { bytes: PIECE, written: 0 };
        let piece = mk_follower(3).await.tell(false, writer, &work, &account).await.expect("it is there");
        assert_eq!((piece.writer.written, piece.more), (1, true));
    }
}
