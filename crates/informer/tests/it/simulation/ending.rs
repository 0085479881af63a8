//! How a simulated life ends: all misbehaviour stops, time passes, and everything has to be right.

use std::{collections::BTreeSet, sync::atomic::Ordering, time::Duration};

use informer::{Lister, model::ObjectKey, store::IndexHandle};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::{runtime::Handle, task::yield_now, time::sleep};

use super::{
    listeners::{Listener, keep},
    support::{Config, data_keys, key},
    world::{REFUSED, THORNY, TRANSFORMED, World},
};

/// In the end everything is right within this time: failures that are still to come delay it.
const PATIENCE: Duration = Duration::from_secs(3 * 60 * 60);
const LOOK: Duration = Duration::from_millis(20_011);

impl World {
    /// Stops all misbehaviour, lets time pass, and checks that cache and listeners agree with the server.
    pub(crate) async fn converge(&mut self) {
        self.tell("all is well from now on");
        self.server.stall_watches(false);
        self.server.refuse_streaming(false);
        self.server.omit_initial_events_end(false);
        for way in &self.ways {
            way.mishaps.forbidden.store(false, Ordering::SeqCst);
        }
        if self.needs_list {
            self.force_list();
        }
        for _ in 0..PATIENCE.as_millis() / LOOK.as_millis() {
            sleep(LOOK).await;
            for listener in &mut self.listeners {
                // A task gets so many events and no more before it lets others run.
                while listener.poll(100) > 0 {
                    yield_now().await;
                }
            }
            if self.wrong().is_empty() {
                break;
            }
        }
        let wrong = self.wrong();
        assert!(wrong.is_empty(), "{wrong:#?}\n{}", self.informer.health());
        self.tell(self.informer.health());
        for listener in &self.listeners {
            listener.validator.check();
        }
        self.indexes.iter().for_each(|index| self.check_index(index));
        self.check_lister();
        let reached = self.server.version();
        let waited = self.informer.wait_for_resource_version(&reached, Duration::from_secs(20 * 60)).await;
        assert!(waited.is_ok(), "{waited:?}");
    }

    /// Lost modifications, and a past that was overtaken by another one, cannot be noticed by a client. So
    /// every version that a client may have is made to expire while nobody watches.
    fn force_list(&mut self) {
        self.server.break_watches();
        let version = self.highest;
        while self.version() <= version {
            self.put(&key("a/last"));
        }
        self.server.compact();
        self.tell("every version has expired");
    }

    /// What is not right yet.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let (cache, server) = (self.informer.store(), self.server.objects());
        let in_scope = |key: &ObjectKey| self.scope.contains(&key.namespace().unwrap_or_default());
        let quarantined: BTreeSet<String> =
            self.informer.quarantined().into_iter().map(|unusable| unusable.name).collect();
        let mut unusable = BTreeSet::new();
        for object in server.iter().filter(|object| in_scope(object.key())) {
            if !self.is_usable(object) {
                unusable.insert(object.key().to_string());
                continue;
            }
            let cached = cache.get(object.key());
            if !cached.as_ref().is_some_and(|cached| same(cached, object)) {
                wrong.push(format!("the server has {object:?}, the cache {cached:?}"));
            }
        }
        if unusable != quarantined {
            wrong.push(format!("unusable are {unusable:?}, quarantined {quarantined:?}"));
        }
        for cached in cache.snapshot().iter() {
            if self.server.get(cached.key()).is_none() || !in_scope(cached.key()) {
                wrong.push(format!("the cache has {cached:?}, the server nothing"));
            }
            let transformed = cached.data.as_ref().and_then(|data| data.get(TRANSFORMED)).map(String::as_str);
            if transformed != self.transforms.then_some("I") {
                wrong.push(format!("{cached:?} was transformed: {transformed:?}"));
            }
        }
        if let Some((_, trouble)) = self.informer.health().trouble() {
            wrong.push(format!("there is trouble: {trouble}"));
        }
        wrong.extend(self.listeners.iter().flat_map(|listener| self.misinformed(listener)));
        wrong
    }

    fn misinformed(&self, listener: &Listener) -> Vec<String> {
        let Listener { validator, name, filtered, .. } = listener;
        let mut wrong = Vec::new();
        let pending = validator.registration.pending();
        if pending > 0 || !validator.registration.has_synced() {
            wrong.push(format!("{name}: {:?}", validator.registration));
        }
        let (words, snapshot) = (validator.last_words(), self.informer.store().snapshot());
        for object in snapshot.iter().filter(|object| !filtered || keep(object)) {
            let word = words.get(object.key());
            if !word.is_some_and(|word| same(word, object)) {
                wrong.push(format!("{name} was told {word:?}, the cache has {object:?}"));
            }
        }
        for word in words.values() {
            let cached = snapshot.get(word.key()).filter(|object| !filtered || keep(object));
            if cached.is_none() {
                wrong.push(format!("{name} was told {word:?}, which is not in the cache"));
            }
        }
        wrong
    }

    pub(crate) fn is_usable(&self, object: &Config) -> bool {
        let refused = object
            .data
            .as_ref()
            .is_some_and(|data| [REFUSED, THORNY].iter().any(|odd| data.contains_key(*odd)));
        let version = (object.key().clone(), object.resource_version().to_string());
        !(self.spoiled.contains(&version) || self.transforms && refused)
    }

    fn check_index(&self, index: &IndexHandle<ConfigMap>) {
        let snapshot = self.informer.store().snapshot();
        let values: BTreeSet<String> = snapshot.iter().flat_map(data_keys).collect();
        assert_eq!(
            index.values().into_iter().collect::<BTreeSet<_>>(),
            values,
            "the values of {}",
            index.name()
        );
        for value in &values {
            let filed = index.get(value);
            let expected: Vec<&Config> =
                snapshot.iter().filter(|object| data_keys(object).contains(value)).collect();
            let same = filed.len() == expected.len()
                && filed.iter().zip(expected).all(|(one, other)| one.ptr_eq(other));
            assert!(same, "{} files {filed:?} under {value}", index.name());
        }
    }

    fn check_lister(&self) {
        let (snapshot, lister) = (self.informer.store().snapshot(), Lister::new(self.informer.store()));
        for tier in 0..4 {
            let listed = lister.namespace("a").list(&format!("tier={tier}").parse().expect("a selector"));
            let expected = snapshot
                .iter_namespace("a")
                .filter(|object| object.labels().get("tier").is_some_and(|value| value == tier.to_string()));
            assert!(listed.iter().map(Config::key).eq(expected.map(Config::key)), "tier {tier}: {listed:?}");
        }
    }

    /// Stops the informer, and checks that nothing of it is left.
    pub(crate) async fn end(mut self) {
        self.tell("stop");
        self.stop.cancel();
        let ran = match self.running.take() {
            Some(running) => running.await.expect("it does not panic"),
            None => self.informer.run(self.stop.clone()).await,
        };
        ran.expect("it ran once");
        assert!(self.informer.is_stopped());
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0, "tasks are left");
        assert_eq!(self.server.open_watches(), 0, "watches are left");
        let refused = self.informer.add_handler(informer::Handler::new());
        assert!(refused.is_err(), "a handler was added to a stopped informer");
        for (listener, heard) in &self.removed {
            listener.validator.check();
            assert_eq!(
                listener.validator.events(),
                *heard,
                "{} heard something after its end",
                listener.name
            );
        }
        for listener in &self.listeners {
            listener.validator.check();
            self.tell(format_args!("{} heard {}", listener.name, listener.validator.story().join(", ")));
        }
        for request in self.server.requests() {
            self.tell(format_args!("{request:?}"));
        }
    }
}

/// Whether the same was written in both: versions alone do not say so when they were given out twice.
fn same(one: &Config, other: &Config) -> bool {
    let written = |object: &Config| object.data.as_ref().and_then(|data| data.get("written").cloned());
    one.resource_version() == other.resource_version()
        && written(one) == written(other)
        && one.metadata.uid == other.metadata.uid
}
