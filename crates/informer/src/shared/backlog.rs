//! What waits for a handler that is far behind: one entry for each key, in the order of first arrival.
//!
//! In come notices, out come fewer: what happened to one object while the handler was away becomes one event
//! that leads from what the handler knows to what is so now.

use std::{collections::VecDeque, hash::BuildHasher};

use hashbrown::{DefaultHashBuilder, HashTable};
use informer_model::ObjectKey;

use super::{handler::Notice, inbox::Work};
use crate::{Event, Object, Tombstone};

/// What waits for one key: from what the handler knows to what is so now.
#[derive(Debug)]
pub(super) enum Entry<K> {
    /// The handler does not know the object, and it is there.
    New { now: Object<K>, initial: bool },
    /// The handler knows the object, and it is there.
    Changed { known: Object<K>, now: Object<K> },
    /// The handler knows the object, and it is gone. `known` is `None` if only the tombstone can tell.
    Gone { known: Option<Object<K>>, tombstone: Tombstone<K> },
    /// The handler knows an object that is gone, nobody can tell how it was, and it is there again.
    Again { tombstone: Tombstone<K>, now: Object<K> },
}

impl<K> Entry<K> {
    fn new(notice: &Notice<K>) -> Self {
        match notice.event.clone() {
            Event::Added(now) => Self::New { now, initial: notice.initial },
            Event::Updated { old, new } => Self::Changed { known: old, now: new },
            Event::Deleted(tombstone) => Self::Gone { known: None, tombstone },
        }
    }

    fn key(&self) -> &ObjectKey {
        match self {
            Self::New { now, .. } | Self::Changed { now, .. } | Self::Again { now, .. } => now.key(),
            Self::Gone { tombstone, .. } => tombstone.key(),
        }
    }

    /// What waits after one more event; `None` if the handler need not hear anything.
    ///
    /// | waits | then | becomes |
    /// |---|---|---|
    /// | add of *a* | add or update to *b* | add of *b*, initial if the first was |
    /// | add of *a* | delete | nothing: the add was not delivered |
    /// | update *a* → *b* | update to *c* | update *a* → *c* |
    /// | update *a* → *b* | delete | the delete |
    /// | delete | add of *b* | update to *b* from what the handler knows, or else from the tombstone's object |
    /// | delete without any object | add of *b* | both |
    /// | both | update to *c* | both, with *c* |
    /// | both | delete | the later delete |
    /// | delete | delete | the later one |
    ///
    /// A resync is an update *b* → *b*: after anything real it changes nothing, and before it is taken up.
    fn then(self, event: Event<K>) -> Option<Self> {
        let present = match event {
            Event::Added(now) | Event::Updated { new: now, .. } => Ok(now),
            Event::Deleted(tombstone) => Err(tombstone),
        };
        Some(match (self, present) {
            (Self::New { initial, .. }, Ok(now)) => Self::New { now, initial },
            (Self::New { .. }, Err(_)) => return None,
            (Self::Changed { known, .. }, Ok(now)) => Self::Changed { known, now },
            (Self::Changed { known, .. }, Err(tombstone)) => Self::Gone { known: Some(known), tombstone },
            (Self::Gone { known, tombstone }, Ok(now)) => {
                match known.or_else(|| tombstone.object().cloned()) {
                    Some(known) => Self::Changed { known, now },
                    None => Self::Again { tombstone, now },
                }
            }
            (Self::Gone { known, .. }, Err(tombstone)) => Self::Gone { known, tombstone },
            (Self::Again { tombstone, .. }, Ok(now)) => Self::Again { tombstone, now },
            (Self::Again { .. }, Err(tombstone)) => Self::Gone { known: None, tombstone },
        })
    }

    /// What the handler hears.
    fn tell(self, notices: &mut Vec<Notice<K>>) {
        let mut say = |event, initial| notices.push(Notice { event, initial });
        match self {
            Self::New { now, initial } => say(Event::Added(now), initial),
            Self::Changed { known, now } => say(Event::Updated { old: known, new: now }, false),
            Self::Gone { tombstone, .. } => say(Event::Deleted(tombstone), false),
            Self::Again { tombstone, now } => {
                say(Event::Deleted(tombstone), false);
                say(Event::Added(now), false);
            }
        }
    }
}

/// Entries in the order of first arrival, found by key.
pub(super) struct Backlog<K> {
    /// `None` where an entry has come to nothing.
    entries: VecDeque<Option<Entry<K>>>,
    /// The number of the first of `entries`; numbers only grow, until the holes are taken out.
    first: u64,
    /// Hash of a key, number of its entry.
    places: HashTable<(u64, u64)>,
    hasher: DefaultHashBuilder,
    /// When all entries before this number are handled, the handler is synced.
    synced_before: Option<u64>,
}

/// Holes are taken out when there are more of them than this and than entries.
const HOLES: usize = 1_024;

impl<K> Backlog<K> {
    pub(super) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            places: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            synced_before: None,
        }
    }

    /// How many entries wait.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether [`take`](Self::take) has nothing to hand out.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.synced_before.is_none()
    }

    pub(super) fn push(&mut self, notice: &Notice<K>) {
        let (first, key) = (self.first, notice.key());
        let hash = self.hasher.hash_one(key.as_str());
        let is_it = |&(other, number): &(u64, u64)| {
            let entry = || self.entries.get((number - first) as usize)?.as_ref();
            other == hash && entry().is_some_and(|entry| entry.key() == key)
        };
        if let Ok(place) = self.places.find_entry(hash, is_it) {
            let Some(slot) = self.entries.get_mut((place.get().1 - first) as usize) else { return };
            *slot = slot.take().and_then(|entry| entry.then(notice.event.clone()));
            if slot.is_none() {
                place.remove();
                self.close_holes();
            }
        } else {
            let number = first + self.entries.len() as u64;
            self.places.insert_unique(hash, (hash, number), |&(hash, _)| hash);
            self.entries.push_back(Some(Entry::new(notice)));
        }
    }

    /// The handler is synced when what waits now is handled.
    pub(super) fn mark_synced(&mut self) {
        self.synced_before = Some(self.first + self.entries.len() as u64);
    }

    /// The next events: those of about `max` entries, or that the handler is synced.
    pub(super) fn take(&mut self, max: usize) -> Option<Work<K>> {
        let mut notices = Vec::with_capacity(max.min(self.len()));
        while notices.len() < max && self.synced_before != Some(self.first) {
            let Some(slot) = self.entries.pop_front() else { break };
            if let Some(entry) = slot {
                let hash = self.hasher.hash_one(entry.key().as_str());
                if let Ok(place) = self.places.find_entry(hash, |&(_, number)| number == self.first) {
                    place.remove();
                }
                entry.tell(&mut notices);
            }
            self.first += 1;
        }
        if !notices.is_empty() {
            return Some(Work::Merged(notices));
        }
        let synced = self.synced_before.take_if(|before| *before == self.first);
        if self.is_empty() {
            *self = Self::new();
        }
        synced.map(|_| Work::Synced)
    }

    /// Keys that come and go for ever must not leave holes for ever.
    fn close_holes(&mut self) {
        if self.entries.len() - self.len() <= self.len().max(HOLES) {
            return;
        }
        if let Some(before) = &mut self.synced_before {
            let ahead = (*before - self.first) as usize;
            *before = self.entries.iter().take(ahead).flatten().count() as u64;
        }
        self.first = 0;
        self.entries.retain(Option::is_some);
        self.places.clear();
        for (number, entry) in (0..).zip(self.entries.iter().flatten()) {
            let hash = self.hasher.hash_one(entry.key().as_str());
            self.places.insert_unique(hash, (hash, number), |&(hash, _)| hash);
        }
    }
}
