//! The last changes of one resource, for the streams and watches that follow it.
//!
//! In: what the informer tells its handlers. Out: for each follower everything that came after a version it names,
//! in order, or [`Lost`] when that is no longer here. Nobody who follows slowly makes anybody else wait or keeps
//! memory: what is too old is dropped, and its followers begin anew.

use std::{
    cmp::Ordering,
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use informer::{
    Event, EventHandler, Object, Tombstone,
    source::WatchChange,
    store::{Snapshot, Store},
};
use informer_model::{ObjectKey, ResourceVersion};
use tokio::sync::watch;

use super::{
    room::{Replaced, Room},
    stored::Stored,
};

/// What is kept at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Depth {
    pub(crate) changes: usize,
    /// Of objects, and of changes as they were written for somebody.
    pub(crate) bytes: usize,
}

impl Depth {
    /// How many of the bytes are for changes as they were written.
    fn of_written(&self) -> usize {
        self.bytes / 4
    }

    /// How many of the bytes are for objects.
    fn of_objects(&self) -> usize {
        self.bytes - self.of_written()
    }

    /// What may be put before all others, where [`Changes::begins_after`] says that there is room.
    pub(super) fn of_the_past(&self) -> Self {
        Self { changes: self.changes / 2, bytes: self.bytes / 4 }
    }
}

impl Default for Depth {
    fn default() -> Self {
        Self { changes: 16_384, bytes: 64 << 20 }
    }
}

/// A place in the order of changes. Written, it is the version of the change. Changes that come out of the order of
/// versions, as those that a relist finds, have the version that the cache has reached, and a number.
///
/// Who has the cache of a version has all changes up to the one without a number. Of those with one that is not known.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Place {
    version: ResourceVersion,
    number: u32,
}

impl Place {
    /// Where somebody is who has this version of the cache.
    pub(crate) fn of(version: ResourceVersion) -> Self {
        Self { version, number: 0 }
    }

    pub(crate) fn version(&self) -> &ResourceVersion {
        &self.version
    }

    /// Reads what was written. None if it is no place.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (version, number) = match text.split_once('.') {
            Some((version, number)) => (version, number.parse().ok()?),
            None => (text, 0),
        };
        let version = ResourceVersion::from(version);
        version.is_decimal().then_some(Self { version, number })
    }

    /// None where the versions are no numbers.
    fn compare(&self, other: &Self) -> Option<Ordering> {
        Some(self.version.partial_cmp(&other.version)?.then(self.number.cmp(&other.number)))
    }

    fn is_after(&self, other: &Self) -> bool {
        self.compare(other).is_none_or(Ordering::is_gt)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 => write!(f, "{}", self.version),
            number => write!(f, "{}.{number}", self.version),
        }
    }
}

/// One change of one object: at least one of the two states is there.
pub(crate) struct Change {
    /// Its number in the order of all.
    number: u64,
    pub(crate) place: Place,
    pub(crate) old: Option<Object<Stored>>,
    pub(crate) new: Option<Object<Stored>>,
    /// What was before the new state is not known, and so not in `old`.
    pub(crate) is_old_unknown: bool,
    /// How it was written for somebody, for those who want it in the same way.
    written: Mutex<Vec<(u64, Bytes)>>,
    /// The room for that, of all changes together.
    room: Arc<Room>,
}

impl Drop for Change {
    fn drop(&mut self) {
        self.forget_written();
    }
}

/// What an object was, and what it is.
type States = (Option<Object<Stored>>, Option<Object<Stored>>);

/// Where changes are counted from, so that earlier ones can be put before them.
const FIRST: u64 = 1 << 32;

/// In how many ways a change is kept written.
const WAYS: usize = 4;

impl Change {
    pub(crate) fn key(&self) -> Option<&ObjectKey> {
        self.new.as_ref().or(self.old.as_ref()).map(Object::key)
    }

    /// The change written in a way that this number stands for: once, however many want it so, while there is room.
    pub(crate) fn written(&self, way: u64, write: impl FnOnce() -> Bytes) -> Bytes {
        let known =
            |written: &[(u64, Bytes)]| written.iter().find(|(known, _)| *known == way).map(|w| w.1.clone());
        if let Some(bytes) = known(&self.lock()) {
            return bytes;
        }
        let bytes = write();
        let mut written = self.lock();
        if written.len() < WAYS
            && known(&written).is_none()
            && let Some(kept) = self.room.keep(&bytes)
        {
            written.push((way, kept));
        }
        bytes
    }

    /// Whether it is kept written in one of these ways.
    pub(crate) fn is_written(&self, ways: &[u64]) -> bool {
        self.lock().iter().any(|(way, _)| ways.contains(way))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Bytes)>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for how others are written.
    fn forget_written(&self) {
        let written = std::mem::take(&mut *self.lock());
        self.room.give_back(written.iter().map(|(_, bytes)| bytes.len()).sum());
    }

    /// Of its objects.
    fn bytes(&self) -> usize {
        [&self.old, &self.new].into_iter().flatten().map(|object| object.kept_bytes()).sum()
    }
}

/// What a follower asked for is no longer here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost;

/// The last changes, and a bell for those who wait for the next.
pub(crate) struct Changes {
    ring: Mutex<Ring>,
    /// The number that the next change will have.
    next: watch::Sender<u64>,
    /// What old versions of the cache keep.
    pub(crate) replaced: Arc<Replaced>,
}

struct Ring {
    changes: VecDeque<Arc<Change>>,
    /// The number of the first of them.
    first: u64,
    bytes: usize,
    room: Arc<Room>,
    /// The number of the change that makes room next for how others are written.
    makes_room: u64,
    depth: Depth,
    /// Everything after this place is here; none before the first list.
    since: Option<Place>,
    last: Place,
    /// The highest version that the cache was seen at.
    highest: ResourceVersion,
    /// How often the cache had gone back in time when that was last heard of.
    rewinds: u64,
    /// Up to here a place may be one of before the server went back in time.
    doubtful: ResourceVersion,
    total: u64,
}

/// Where a follower stands.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    /// The number of the next change to look at.
    next: u64,
    /// What is not after this has been seen, wherever it stands.
    seen: Place,
}

impl Cursor {
    /// The place up to which everything has been seen.
    pub(crate) fn seen(&self) -> &Place {
        &self.seen
    }

    /// Right behind a change that was taken, before those that were taken after it.
    pub(crate) fn behind(change: &Change) -> Self {
        Self { next: change.number + 1, seen: change.place.clone() }
    }
}

impl Changes {
    pub(crate) fn new(depth: Depth) -> Self {
        let ring = Ring {
            changes: VecDeque::new(),
            first: FIRST,
            bytes: 0,
            room: Arc::new(Room::new(depth.of_written())),
            makes_room: FIRST,
            depth,
            since: None,
            last: Place::default(),
            highest: ResourceVersion::UNSET,
            rewinds: 0,
            doubtful: ResourceVersion::UNSET,
            total: 0,
        };
        Self { ring: Mutex::new(ring), next: watch::Sender::new(FIRST), replaced: Arc::default() }
    }

    /// How many bytes are kept: of objects, and of changes as they were written for others.
    pub(crate) fn bytes(&self) -> [(&'static str, usize); 2] {
        let ring = self.ring();
        [("objects", ring.bytes), ("written", ring.room.used())]
    }

    /// From here on everything is kept, if nothing was said before. To be called when the cache is first complete, and
    /// before anybody reads it.
    pub(crate) fn begin(&self, version: &ResourceVersion) {
        let mut ring = self.ring();
        if ring.since.is_none() {
            ring.since = Some(Place::of(version.clone()));
        }
    }

    /// How many there have been.
    pub(crate) fn total(&self) -> u64 {
        self.ring().total
    }

    /// The objects as they are now, and a cursor behind them.
    ///
    /// Whatever is not in the snapshot is told after it. What is in it can be told again, if it has come out of the
    /// order of versions.
    pub(crate) fn snapshot(&self, store: &Store<Stored>) -> (Snapshot<Stored>, Cursor) {
        let mut ring = self.ring();
        let snapshot = store.snapshot();
        let version = snapshot.resource_version();
        ring.note(version);
        let cursor = Cursor { next: ring.end(), seen: Place::of(version.clone()) };
        (snapshot, cursor)
    }

    /// Whether a place is later than all that the cache has heard of.
    pub(crate) fn is_ahead(&self, place: &Place, store: &Store<Stored>) -> bool {
        let mut ring = self.ring();
        ring.note(&store.resource_version());
        place.version > ring.highest && (place.version > ring.last.version || ring.last.version.is_unset())
    }

    /// Goes on from a place that was written some time ago. [`Lost`] also if it is not certain what it meant.
    pub(crate) fn resume(&self, place: &Place, store: &Store<Stored>) -> Result<Cursor, Lost> {
        let is_doubtful = self.ring().doubtful.partial_cmp(&place.version).is_some_and(Ordering::is_ge);
        if is_doubtful || self.is_ahead(place, store) { Err(Lost) } else { self.after(place) }
    }

    /// The version that everything is known since, if it is later than a place and what came in between could be kept.
    pub(crate) fn begins_after(&self, place: &Place) -> Option<ResourceVersion> {
        let ring = self.ring();
        let has_room = ring.changes.len() * 2 <= ring.depth.changes && ring.bytes * 2 <= ring.depth.bytes;
        let is_doubtful = ring.doubtful.partial_cmp(&place.version).is_some_and(Ordering::is_ge);
        let since = ring.since.as_ref()?;
        let is_earlier = place.number == 0 && since.number == 0 && place.version < since.version;
        (has_room && is_earlier && !is_doubtful).then(|| since.version.clone())
    }

    /// Puts changes before all others: everything that came after a place and up to the version that everything is known
    /// since.
    pub(crate) fn put_before(
        &self,
        place: &Place,
        since: &ResourceVersion,
        changes: Vec<(WatchChange, Object<Stored>)>,
    ) {
        let mut ring = self.ring();
        // Some may have been dropped since it was asked for.
        if ring.since.as_ref() != Some(&Place::of(since.clone())) {
            return;
        }
        let mut known: HashMap<ObjectKey, Option<Object<Stored>>> = HashMap::new();
        let room = Arc::clone(&ring.room);
        let changes: Vec<Change> = changes
            .into_iter()
            .map(|(change, object)| {
                let old = known.get(object.key()).cloned();
                let new = (change != WatchChange::Deleted).then(|| object.clone());
                known.insert(object.key().clone(), new.clone());
                let is_old_unknown = old.is_none() && change == WatchChange::Modified;
                let old = if change == WatchChange::Deleted { Some(object.clone()) } else { old.flatten() };
                let place = Place::of(object.resource_version().clone());
                let room = Arc::clone(&room);
                Change { number: 0, place, old, new, is_old_unknown, written: Mutex::default(), room }
            })
            .collect();
        for mut change in changes.into_iter().rev() {
            ring.bytes += change.bytes();
            ring.first -= 1;
            change.number = ring.first;
            ring.changes.push_front(Arc::new(change));
        }
        ring.since = Some(place.clone());
    }

    /// Whether everything after a cursor is still here.
    pub(crate) fn holds(&self, cursor: &Cursor) -> bool {
        cursor.next >= self.ring().first
    }

    /// Stands right after a place. [`Lost`] if what came after it is no longer here.
    pub(crate) fn after(&self, place: &Place) -> Result<Cursor, Lost> {
        let ring = self.ring();
        let since = ring.since.as_ref().ok_or(Lost)?;
        if place.compare(since).is_none_or(Ordering::is_lt) {
            return Err(Lost);
        }
        let seen = ring.changes.partition_point(|change| !change.place.is_after(place));
        Ok(Cursor { next: ring.first + seen as u64, seen: place.clone() })
    }

    /// What has come since, at most so many and without waiting. Moves the cursor behind them.
    pub(crate) fn take(&self, cursor: &mut Cursor, at_most: usize) -> Result<Vec<Arc<Change>>, Lost> {
        let ring = self.ring();
        let skip = cursor.next.checked_sub(ring.first).ok_or(Lost)?;
        let skip = usize::try_from(skip).map_err(|_| Lost)?;
        let mut taken = Vec::new();
        for change in ring.changes.iter().skip(skip).take(at_most) {
            cursor.next += 1;
            if change.place.is_after(&cursor.seen) {
                cursor.seen = change.place.clone();
                taken.push(Arc::clone(change));
            }
        }
        Ok(taken)
    }

    /// Whether there is something that the cursor has not been moved over.
    pub(crate) fn has_more(&self, cursor: &Cursor) -> bool {
        *self.next.borrow() > cursor.next
    }

    /// How far behind a follower is, as a part of what is kept: at 1 it is lost.
    pub(crate) fn lag(&self, cursor: &Cursor) -> f64 {
        let ring = self.ring();
        let behind = ring.end().saturating_sub(cursor.next) as usize;
        let bytes: usize = match behind * 4 > ring.depth.changes {
            true => ring.bytes,
            false => ring.changes.iter().rev().take(behind).map(|change| change.bytes()).sum(),
        };
        let part = |of: usize, all: usize| of as f64 / all.max(1) as f64;
        part(behind, ring.depth.changes).max(part(bytes, ring.depth.of_objects()))
    }

    /// Waits until there is something that the cursor has not been moved over.
    pub(crate) async fn ring_for(&self, cursor: &Cursor) {
        let mut next = self.next.subscribe();
        // It is dropped with the changes themselves only.
        let _ = next.wait_for(|next| *next > cursor.next).await;
    }

    /// Writes a change down that came with this version, if that is known.
    fn push(&self, version: Option<&ResourceVersion>, states: States, store: &Store<Stored>) {
        self.replaced.add(states.0.as_ref().map_or(0, |old| old.kept_bytes()));
        let mut ring = self.ring();
        // Nobody gets a snapshot meanwhile, so nobody has a later one.
        let now = store.snapshot();
        let reached = now.resource_version();
        if now.rewinds() == ring.rewinds {
            ring.push(version, states, reached);
            ring.highest = reached.clone();
        } else {
            // The server went back in time, and the cache is there already: every follower is to begin anew.
            ring.rewinds = now.rewinds();
            ring.rewind(reached.clone());
        }
        self.next.send_replace(ring.end());
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// The number that the next change will have.
    fn end(&self) -> u64 {
        self.first + self.changes.len() as u64
    }

    /// The cache was seen at this version.
    fn note(&mut self, version: &ResourceVersion) {
        if self.highest.is_unset() || *version > self.highest {
            self.highest = version.clone();
        }
    }

    /// Forgets everything. Places of before mean nothing now.
    fn rewind(&mut self, reached: ResourceVersion) {
        self.total += 1;
        self.first = self.end() + 1;
        self.changes.clear();
        self.bytes = 0;
        self.last = Place::default();
        self.since = Some(Place::of(reached.clone()));
        let highest = std::mem::replace(&mut self.highest, reached);
        if self.doubtful.is_unset() || highest > self.doubtful {
            self.doubtful = highest;
        }
    }

    /// No reader of the cache may be at or after a change's place and not have the change.
    fn push(&mut self, version: Option<&ResourceVersion>, (old, new): States, reached: &ResourceVersion) {
        let last = &self.last;
        let is_later = |version: &&ResourceVersion| last.version.is_unset() || **version > last.version;
        let place = match (version.filter(is_later), Some(reached).filter(is_later)) {
            (Some(version), _) => Place { version: version.clone(), number: 0 },
            (None, Some(reached)) => Place { version: reached.clone(), number: 1 },
            (None, None) => Place { version: last.version.clone(), number: last.number.saturating_add(1) },
        };
        self.last = place.clone();
        self.total += 1;
        let room = Arc::clone(&self.room);
        let (number, written) = (self.end(), Mutex::default());
        let change = Change { number, place, old, new, is_old_unknown: false, written, room };
        self.bytes += change.bytes();
        self.changes.push_back(Arc::new(change));
        while self.changes.len() > self.depth.changes.max(1) || self.bytes > self.depth.of_objects() {
            let Some(dropped) = self.changes.pop_front() else { break };
            self.bytes -= dropped.bytes();
            self.first += 1;
            self.since = Some(dropped.place.clone());
        }
        self.make_room();
    }

    /// Sees to it that the next changes can be kept written, which nearly all followers will ask for: the oldest are
    /// written anew for who still wants them. Goes on where it was the last time, once around at most.
    fn make_room(&mut self) {
        for _ in 0..self.changes.len() {
            if !self.room.is_short() {
                return;
            }
            if self.makes_room < self.first || self.makes_room >= self.end() {
                self.makes_room = self.first;
            }
            let at = (self.makes_room - self.first) as usize;
            if let Some(change) = self.changes.get(at) {
                change.forget_written();
            }
            self.makes_room += 1;
        }
    }
}

/// The handler that writes changes down.
pub(crate) struct Recorder {
    pub(crate) changes: Arc<Changes>,
    pub(crate) store: Store<Stored>,
}

impl Recorder {
    fn record(&self, event: Event<Stored>) {
        let (version, states) = match event {
            Event::Added(new) => (Some(new.resource_version().clone()), (None, Some(new))),
            Event::Updated { old, new } => (Some(new.resource_version().clone()), (Some(old), Some(new))),
            Event::Deleted(Tombstone::Final(old)) => {
                (Some(old.resource_version().clone()), (Some(old), None))
            }
            // When it went is not known: by now.
            Event::Deleted(
                Tombstone::Unknown { last_seen: Some(old), .. } | Tombstone::Left { last_seen: old, .. },
            ) => (None, (Some(old), None)),
            Event::Deleted(Tombstone::Unknown { last_seen: None, .. }) => return,
        };
        self.changes.push(version.as_ref(), states, &self.store);
    }
}

impl EventHandler<Stored> for Recorder {
    async fn on_add(&mut self, object: &Object<Stored>, initial: bool) {
        if !initial {
            self.record(Event::Added(object.clone()));
        }
    }

    async fn on_update(&mut self, old: &Object<Stored>, new: &Object<Stored>) {
        self.record(Event::Updated { old: old.clone(), new: new.clone() });
    }

    async fn on_delete(&mut self, gone: &Tombstone<Stored>) {
        self.record(Event::Deleted(gone.clone()));
    }

    fn name(&self) -> Option<&str> {
        Some("changes")
    }

    /// Whoever has a snapshot of in between must hear of what came after it, even if that undid what came before.
    fn merges(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
