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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use informer_testing::histories;
    use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
    use proptest::{collection::vec, prelude::*};

    type Known = BTreeMap<ObjectKey, Object<ConfigMap>>;

    fn mk(name: u8, version: u64) -> Object<ConfigMap> {
        let (name, resource_version) = (Some(format!("n{name}")), Some(version.to_string()));
        let metadata = ObjectMeta { name, resource_version, ..ObjectMeta::default() };
        Object::new(ConfigMap { metadata, ..ConfigMap::default() }).unwrap()
    }

    /// What happens to a cache, with a handler behind it.
    #[derive(Debug, Clone)]
    enum Step {
        /// An object comes or changes. As an add it may be told as initial.
        Put { name: u8, initial: bool },
        /// An object goes; the tombstone has its last state, the newest that was seen, or none.
        Delete { name: u8, tombstone: u8 },
        /// All objects are shown again.
        Resync,
        /// The handler takes about this many.
        Take(usize),
    }

    fn a_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            5 => (0..5u8, any::<bool>()).prop_map(|(name, initial)| Step::Put { name, initial }),
            3 => (0..5u8, 0..3u8).prop_map(|(name, tombstone)| Step::Delete { name, tombstone }),
            1 => Just(Step::Resync),
            1 => (1..4usize).prop_map(Step::Take),
        ]
    }

    /// Applies an event to what a handler knows; it must be a step that can be.
    fn hear(known: &mut Known, notice: &Notice<ConfigMap>) {
        assert!(!notice.initial || matches!(notice.event, Event::Added(_)));
        match &notice.event {
            Event::Added(new) => {
                let before = known.insert(new.key().clone(), new.clone());
                assert!(before.is_none(), "{notice:?} over {before:?}");
            }
            Event::Updated { old, new } => {
                let before = known.insert(new.key().clone(), new.clone());
                let before = before.unwrap_or_else(|| panic!("{notice:?} of something unknown"));
                // Deleted and there again: the old state may be the one that it had at its end.
                assert!(before.resource_version() <= old.resource_version(), "{notice:?}, known: {before:?}");
            }
            Event::Deleted(tombstone) => {
                assert!(known.remove(tombstone.key()).is_some(), "{notice:?} of something unknown");
            }
        }
    }

    fn take(backlog: &mut Backlog<ConfigMap>, max: usize, known: &mut Known) -> bool {
        match backlog.take(max) {
            Some(Work::Merged(notices)) => {
                notices.iter().for_each(|notice| hear(known, notice));
                true
            }
            Some(_) => true,
            None => false,
        }
    }

    #[test]
    fn c29_merged_events_lead_where_all_events_lead_in_legal_steps() {
        histories(&vec(a_step(), 0..60), |steps| {
            let (mut cache, mut known, mut backlog) = (Known::new(), Known::new(), Backlog::new());
            for (version, step) in (1..).zip(steps) {
                let mut events = Vec::new();
                match step {
                    Step::Put { name, initial } => {
                        let new = mk(name, version);
                        match cache.insert(new.key().clone(), new.clone()) {
                            Some(old) => events.push((Event::Updated { old, new }, false)),
                            None => events.push((Event::Added(new), initial)),
                        }
                    }
                    Step::Delete { name, tombstone } => {
                        let object = mk(name, version);
                        let key = object.key().clone();
                        if let Some(stored) = cache.remove(&key) {
                            let tombstone = match tombstone {
                                0 => Tombstone::Final(object),
                                1 => Tombstone::Unknown { key, last_seen: Some(stored) },
                                _ => Tombstone::Unknown { key, last_seen: None },
                            };
                            events.push((Event::Deleted(tombstone), false));
                        }
                    }
                    Step::Resync => events.extend(
                        cache.values().map(|o| (Event::Updated { old: o.clone(), new: o.clone() }, false)),
                    ),
                    Step::Take(max) => {
                        take(&mut backlog, max, &mut known);
                    }
                }
                for (event, initial) in events {
                    backlog.push(&Notice { event, initial });
                }
                assert!(backlog.len() <= 5, "more than one entry for a key");
            }
            while take(&mut backlog, 2, &mut known) {}
            assert!(backlog.is_empty());
            let versions = |known: &Known| known.values().map(|o| format!("{o:?}")).collect::<Vec<_>>();
            assert_eq!(versions(&known), versions(&cache));
        });
    }

    /// What is told after these events of one object: `+` added, `*` initial, `~` updated, `-` deleted.
    fn told(events: Vec<(Event<ConfigMap>, bool)>) -> String {
        let mut backlog = Backlog::new();
        events.into_iter().for_each(|(event, initial)| backlog.push(&Notice { event, initial }));
        let Some(Work::Merged(notices)) = backlog.take(10) else { return String::new() };
        let texts = notices.iter().map(|notice| match &notice.event {
            Event::Added(new) => {
                format!("{}{}", if notice.initial { '*' } else { '+' }, new.resource_version())
            }
            Event::Updated { old, new } => format!("{}~{}", old.resource_version(), new.resource_version()),
            Event::Deleted(gone) => {
                format!("-{}", gone.object().map_or_else(String::new, |o| o.resource_version().to_string()))
            }
        });
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn c29_the_table_of_merges() {
        let added = |version, initial| (Event::Added(mk(1, version)), initial);
        let updated = |old, new| (Event::Updated { old: mk(1, old), new: mk(1, new) }, false);
        let deleted = |version| (Event::Deleted(Tombstone::Final(mk(1, version))), false);
        let lost = || {
            let key = mk(1, 1).key().clone();
            (Event::Deleted(Tombstone::Unknown { key, last_seen: None }), false)
        };
        for (events, expected) in [
            (vec![added(1, true), updated(1, 2)], "*2"),
            (vec![added(1, false), updated(1, 1)], "+1"),
            (vec![added(1, false), deleted(2)], ""),
            (vec![added(1, true), deleted(2), added(3, false)], "+3"),
            (vec![updated(1, 2), updated(2, 3)], "1~3"),
            (vec![updated(1, 2), updated(2, 2)], "1~2"),
            (vec![updated(1, 1), updated(1, 2)], "1~2"),
            (vec![updated(1, 1), updated(1, 1)], "1~1"),
            (vec![updated(1, 2), deleted(3)], "-3"),
            (vec![deleted(2), added(3, false)], "2~3"),
            (vec![updated(1, 2), deleted(3), added(4, false)], "1~4"),
            (vec![updated(1, 2), lost(), added(4, false), deleted(5)], "-5"),
            (vec![lost(), added(2, false)], "- +2"),
            (vec![lost(), added(2, false), updated(2, 3)], "- +3"),
            (vec![lost(), added(2, false), deleted(3)], "-3"),
        ] {
            assert_eq!(told(events.clone()), expected, "{events:?}");
        }
    }

    #[test]
    fn c29_keys_that_come_and_go_leave_nothing_behind() {
        let mut backlog = Backlog::new();
        let push = |backlog: &mut Backlog<ConfigMap>, event| backlog.push(&Notice { event, initial: false });
        push(&mut backlog, Event::Added(mk(0, 1)));
        let object = |n: u64| {
            let metadata = ObjectMeta { name: Some(format!("x{n}")), ..ObjectMeta::default() };
            Object::new(ConfigMap { metadata, ..ConfigMap::default() }).unwrap()
        };
        for n in 0..10_000 {
            if n == 4_000 {
                push(&mut backlog, Event::Added(mk(1, 1)));
                backlog.mark_synced();
            }
            push(&mut backlog, Event::Added(object(n)));
            push(&mut backlog, Event::Deleted(Tombstone::Final(object(n))));
        }
        push(&mut backlog, Event::Added(mk(2, 1)));
        assert_eq!(backlog.len(), 3);
        assert!(backlog.entries.len() <= 3 + HOLES, "{} places", backlog.entries.len());
        let names = |work: Option<Work<ConfigMap>>| match work {
            Some(Work::Merged(notices)) => {
                notices.iter().map(|n| n.key().to_string()).collect::<Vec<_>>().join(" ")
            }
            Some(_) => "synced".to_owned(),
            None => "none".to_owned(),
        };
        let order = [(); 4].map(|()| names(backlog.take(10)));
        assert_eq!(order, ["n0 n1", "synced", "n2", "none"]);
    }
}
