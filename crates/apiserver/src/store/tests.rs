//! The store against a model that keeps every version of everything.

use std::{cell::Cell, collections::BTreeMap};

use informer_testing::histories;
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::*;
use crate::builtin;

#[derive(Debug, Clone)]
enum Step {
    Put(u8),
    Remove(u8),
    Compact,
    Rewind(u8),
}

/// A store of ConfigMaps beside a model of it.
struct Modelled {
    store: Store,
    id: CollectionId,
    /// What there was at each version: value of each key.
    states: BTreeMap<u64, BTreeMap<String, u64>>,
    /// The oldest version that must still be readable.
    readable: u64,
}

const HISTORY: usize = 12;

impl Modelled {
    fn new() -> Self {
        let store = Store::new(builtin::resources(), HISTORY);
        let (id, _) = store.find("", "configmaps").expect("built in");
        Self { store, id, states: BTreeMap::from([(1, BTreeMap::new())]), readable: 1 }
    }

    fn take(&mut self, step: &Step) {
        let version = self.store.version();
        let mut state = self.states[&version].clone();
        match step {
            Step::Put(name) => {
                let name = format!("m{name}");
                let mut object = json!({ "metadata": { "namespace": "n", "name": name } });
                let stored = self.store.write(|s| s.put(self.id, "v1", &mut object)).expect("a good key");
                assert_eq!(stored.version, version + 1);
                state.insert(format!("n/{name}"), stored.version);
                self.states.insert(stored.version, state);
            }
            Step::Remove(name) => {
                let mut last = json!({ "metadata": { "namespace": "n", "name": format!("m{name}") } });
                let stored = self.store.write(|s| s.remove(self.id, "v1", &mut last)).expect("a good key");
                if state.remove(stored.key.as_str()).is_some() {
                    self.states.insert(stored.version, state);
                }
            }
            Step::Compact => {
                self.store.write(|s| s.compact(u64::MAX));
                self.readable = version;
            }
            Step::Rewind(back) => {
                let to = version.saturating_sub(u64::from(*back)).max(1);
                let rewound = self.store.write(|s| s.rewind(to));
                if to >= self.readable.max(version.saturating_sub(HISTORY as u64)) {
                    assert_eq!(rewound, Ok(()), "version {to} is in the history");
                }
                if rewound.is_ok() {
                    self.states.retain(|known, _| *known <= to);
                    self.readable = to;
                }
            }
        }
    }

    fn check(&self) {
        let newest = self.store.version();
        for (version, state) in &self.states {
            match self.store.at(self.id, *version) {
                Ok(reading) => assert_eq!(&contents(&reading), state, "at version {version}"),
                Err(unreadable) => {
                    assert_eq!(unreadable, Unreadable::Expired);
                    let old = *version < self.readable || *version + (HISTORY as u64) < newest;
                    assert!(old, "version {version} of {newest} must be readable");
                }
            }
        }
    }
}

fn contents(reading: &Reading) -> BTreeMap<String, u64> {
    reading.objects.iter().map(|(key, object)| (key.as_str().to_owned(), object.version)).collect()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..6u8).prop_map(Step::Put),
        4 => (0..6u8).prop_map(Step::Remove),
        1 => Just(Step::Compact),
        1 => (0..6u8).prop_map(Step::Rewind),
    ];
    vec(step, 0..50)
}

#[test]
fn every_version_in_the_history_reads_as_it_was() {
    histories(&steps(), |steps| {
        let mut modelled = Modelled::new();
        for step in &steps {
            modelled.take(step);
            modelled.check();
        }
    });
}

#[test]
fn who_follows_sees_each_change_once_and_ends_up_with_what_is_there() {
    histories(&(steps(), vec(1..5usize, 1..50)), |(steps, looks)| {
        let mut modelled = Modelled::new();
        let mut cursor = modelled.store.follow(modelled.id, 1).expect("nothing is forgotten yet");
        let mut seen: BTreeMap<String, u64> = BTreeMap::new();
        let last = Cell::new(1);
        let mut look = |modelled: &Modelled, most: usize| {
            let changes = match modelled.store.next(&mut cursor, most, u64::MAX) {
                Ok(changes) => changes,
                Err(_) => return false,
            };
            assert!(changes.len() <= most);
            for change in changes {
                assert!(change.version > last.get(), "versions rise");
                last.set(change.version);
                let key = change.after.key.as_str().to_owned();
                assert_eq!(change.before.as_ref().map(|before| before.version), seen.get(&key).copied());
                if change.deleted {
                    seen.remove(&key);
                } else {
                    seen.insert(key, change.version);
                }
            }
            true
        };
        // Rewinding and forgetting end a watch: this one lives without.
        let steps = steps.iter().filter(|step| matches!(step, Step::Put(_) | Step::Remove(_)));
        for ((i, step), most) in steps.enumerate().zip(looks.iter().cycle()) {
            modelled.take(step);
            if i % 3 == 0 {
                assert!(look(&modelled, 2 + most), "it is never more than a few changes behind");
            }
        }
        while last.get() < modelled.store.version() {
            assert!(look(&modelled, 3));
        }
        let newest = modelled.store.newest(modelled.id).expect("there");
        assert_eq!(seen, contents(&newest));
    });
}

#[test]
fn a_slow_follower_and_one_of_a_withdrawn_resource_are_told() {
    let mut modelled = Modelled::new();
    let mut cursor = modelled.store.follow(modelled.id, 1).expect("there");
    for _ in 0..=HISTORY {
        modelled.take(&Step::Put(1));
    }
    assert_eq!(modelled.store.next(&mut cursor, 9, u64::MAX).err(), Some(Unreadable::Expired));
    let mut cursor = modelled.store.follow(modelled.id, modelled.store.version()).expect("there");
    modelled.store.write(|state| state.withdraw("", "configmaps"));
    let end = modelled.store.next(&mut cursor, 9, u64::MAX).expect("its objects are deleted first");
    assert!(end.len() == 1 && end.iter().all(|change| change.deleted));
    assert_eq!(modelled.store.next(&mut cursor, 9, u64::MAX).err(), Some(Unreadable::Gone));
}

#[test]
fn rewinding_ends_who_follows() {
    let mut modelled = Modelled::new();
    modelled.take(&Step::Put(1));
    let mut cursor = modelled.store.follow(modelled.id, 2).expect("there");
    modelled.take(&Step::Rewind(1));
    assert_eq!(modelled.store.next(&mut cursor, 9, u64::MAX).err(), Some(Unreadable::Gone));
}

#[test]
fn an_object_is_shown_in_every_version_of_its_group() {
    let store = Store::new(builtin::resources(), HISTORY);
    let (id, resource) = store.find("autoscaling", "horizontalpodautoscalers").expect("built in");
    let mut object = json!({ "metadata": { "namespace": "n", "name": "h" }, "spec": { "maxReplicas": 3 } });
    let stored = store.write(|state| state.put(id, "v2", &mut object)).expect("a good key");
    let shown = |version: &str| String::from_utf8(stored.json(&resource, version).to_vec()).expect("UTF-8");
    assert!(
        shown("v2").starts_with("{\"kind\":\"HorizontalPodAutoscaler\",\"apiVersion\":\"autoscaling/v2\",")
    );
    assert_eq!(shown("v1"), shown("v2").replace("autoscaling/v2", "autoscaling/v1"));
    assert_eq!(stored.value(&resource, "v1")["apiVersion"], "autoscaling/v1");
}
