//! Both queues against naive models, and both together with a store against a server, over random histories.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Config, key, mk, show, show_deltas};
use informer::{
    Event, Tombstone,
    model::{ObjectKey, ResourceVersion},
    queue::{self, Delta, DeltaFifo, InOrderFifo, Queue, Replacement},
    store::{self, Store, StoreWriter},
};
use informer_testing::histories;
use k8s_openapi::api::core::v1::ConfigMap;
use proptest::{collection::vec, prelude::*};

const KEYS: [&str; 5] = ["a", "b", "ns/c", "ns/d", "ns/e"];

/// What happens on the server, on the way and behind the queue.
#[derive(Debug, Clone)]
enum Step {
    /// The server creates or changes an object, and the watch tells of it.
    Put(&'static str),
    /// The server deletes an object, and the watch tells of it.
    Delete(&'static str),
    /// The same, but the watch loses it.
    PutUnseen(&'static str),
    DeleteUnseen(&'static str),
    /// The watch tells of a deletion that it told of before, or of nothing anybody knows.
    DeleteAgain(&'static str),
    /// The reflector lists. One object of the list may be unusable.
    Relist(Option<&'static str>),
    Resync,
    Bookmark,
    /// The consumer takes a batch and applies it, but says that it is done only at a later step.
    Pop(usize),
    /// The same, and processing fails: the whole batch is queued again.
    PopAndFail(usize),
    Done,
}

fn a_step() -> impl Strategy<Value = Step> {
    let name = || prop::sample::select(&KEYS[..]);
    prop_oneof![
        6 => name().prop_map(Step::Put),
        3 => name().prop_map(Step::Delete),
        1 => name().prop_map(Step::PutUnseen),
        1 => name().prop_map(Step::DeleteUnseen),
        1 => name().prop_map(Step::DeleteAgain),
        2 => prop::option::weighted(0.3, name()).prop_map(Step::Relist),
        1 => Just(Step::Resync),
        1 => Just(Step::Bookmark),
        4 => (1..6usize).prop_map(Step::Pop),
        1 => (1..6usize).prop_map(Step::PopAndFail),
        3 => Just(Step::Done),
    ]
}

/// An API server: what it holds, and what it held at each version.
#[derive(Default)]
struct Server {
    version: u64,
    objects: BTreeMap<ObjectKey, Config>,
    history: BTreeMap<u64, String>,
}

impl Server {
    fn put(&mut self, name: &str) -> (Config, bool) {
        self.version += 1;
        let object = mk(name, self.version);
        let known = self.objects.insert(key(name), object.clone()).is_some();
        self.remember();
        (object, known)
    }

    /// The object as it was, with the version of its deletion.
    fn delete(&mut self, name: &str) -> Option<Config> {
        self.objects.remove(&key(name))?;
        self.version += 1;
        self.remember();
        Some(mk(name, self.version))
    }

    fn list(&self, unusable: Option<&str>) -> Replacement<ConfigMap> {
        let unusable: Vec<ObjectKey> =
            unusable.map(key).filter(|key| self.objects.contains_key(key)).into_iter().collect();
        let objects =
            self.objects.values().filter(|object| !unusable.contains(object.key())).cloned().collect();
        Replacement { namespace: None, objects, unusable, version: self.version.into() }
    }

    fn remember(&mut self) {
        self.history.insert(self.version, show(self.objects.values()));
    }
}

/// What a handler knows from the events alone.
#[derive(Default)]
struct Heard(BTreeMap<ObjectKey, Config>);

impl Heard {
    fn hear(&mut self, event: &Event<ConfigMap>) {
        match event {
            Event::Added(new) => {
                assert!(self.0.insert(new.key().clone(), new.clone()).is_none(), "{new:?} was added twice");
            }
            Event::Updated { old, new } => {
                let known = self.0.insert(new.key().clone(), new.clone());
                assert!(known.is_some_and(|known| known.ptr_eq(old)), "{old:?} is not what was known before");
            }
            Event::Deleted(tombstone) => {
                assert!(self.0.remove(tombstone.key()).is_some(), "{tombstone:?} of something unknown");
                assert!(tombstone.object().is_some(), "what was cached was seen");
            }
        }
    }
}

/// A queue between a server and a store, and a handler behind it.
struct Pipe<Q> {
    server: Server,
    queue: Q,
    writer: StoreWriter<ConfigMap>,
    store: Store<ConfigMap>,
    heard: Heard,
    in_flight: bool,
}

impl<Q: Queue<ConfigMap>> Pipe<Q> {
    fn new(make: impl FnOnce(Store<ConfigMap>) -> Q) -> Self {
        let (writer, store) = store::new();
        let (server, heard) = Default::default();
        Self { server, queue: make(store.clone()), writer, store, heard, in_flight: false }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Put(name) => match self.server.put(name) {
                (object, true) => self.queue.updated(object),
                (object, false) => self.queue.added(object),
            },
            Step::Delete(name) => {
                if let Some(last) = self.server.delete(name) {
                    self.queue.deleted(Tombstone::Final(last));
                }
            }
            Step::PutUnseen(name) => drop(self.server.put(name)),
            Step::DeleteUnseen(name) => drop(self.server.delete(name)),
            Step::DeleteAgain(name) => {
                if !self.server.objects.contains_key(&key(name)) {
                    self.queue.deleted(Tombstone::Unknown { key: key(name), last_seen: None });
                }
            }
            Step::Relist(unusable) => self.queue.replace(self.server.list(*unusable)),
            Step::Resync => self.queue.resync(),
            Step::Bookmark => self.queue.bookmark(self.server.version.into()),
            Step::Pop(max) => self.pop(*max),
            Step::PopAndFail(max) => {
                self.done();
                let deltas = self.queue.pop(*max);
                self.queue.retry(deltas);
                self.queue.done();
            }
            Step::Done => self.done(),
        }
    }

    fn pop(&mut self, max: usize) {
        self.done();
        let deltas = self.queue.pop(max);
        let Self { writer, heard, .. } = self;
        let mut events = Vec::new();
        writer.write(|batch| queue::apply(deltas, batch, |event| events.push(event)));
        events.iter().for_each(|event| heard.hear(event));
        assert_eq!(
            show(heard.0.values()),
            show(self.store.snapshot().iter()),
            "events tell what the store has"
        );
        self.in_flight = true;
    }

    fn done(&mut self) {
        if std::mem::take(&mut self.in_flight) {
            self.queue.done();
        }
    }

    /// A last list, and all that waits: then everybody knows the same.
    fn settle(mut self) {
        self.queue.replace(self.server.list(None));
        while !self.queue.is_empty() {
            self.pop(3);
        }
        self.done();
        assert!(self.queue.has_synced());
        assert_eq!(
            show(self.store.snapshot().iter()),
            show(self.server.objects.values()),
            "the cache is the server"
        );
        assert_eq!(self.store.resource_version(), self.server.version.into());
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec(a_step(), 0..60)
}

#[test]
fn c14_in_order_no_delete_is_lost_or_invented_and_the_cache_ends_as_the_server() {
    histories(&steps(), |steps| {
        let mut pipe = Pipe::new(|_| InOrderFifo::new());
        steps.iter().for_each(|step| pipe.step(step));
        pipe.settle();
    });
}

#[test]
fn c15_by_key_no_delete_is_lost_or_invented_and_the_cache_ends_as_the_server() {
    histories(&steps(), |steps| {
        let mut pipe = Pipe::new(DeltaFifo::new);
        steps.iter().for_each(|step| pipe.step(step));
        pipe.settle();
    });
}

#[test]
fn c14_in_order_the_store_is_always_what_the_server_held_at_its_version() {
    histories(&steps(), |steps| {
        let mut pipe = Pipe::new(|_| InOrderFifo::new());
        pipe.server.remember();
        pipe.step(&Step::Relist(None));
        for step in &steps {
            // Only while the watch loses nothing does the store follow the server step by step.
            if !matches!(step, Step::PutUnseen(_) | Step::DeleteUnseen(_) | Step::Relist(Some(_))) {
                pipe.step(step);
            }
            let version = pipe.store.resource_version();
            if !version.is_unset() {
                let version: u64 = version.to_string().parse().unwrap();
                assert_eq!(
                    show(pipe.store.snapshot().iter()),
                    pipe.server.history[&version],
                    "at version {version}"
                );
            }
        }
        pipe.settle();
    });
}

/// The rules of [`DeltaFifo`], written down as directly as possible.
#[derive(Default)]
struct NaiveDeltaFifo {
    waiting: Vec<Naive>,
    in_flight: Vec<(ObjectKey, Vec<Delta<ConfigMap>>)>,
    initial: Option<BTreeSet<ObjectKey>>,
    newest: Option<ResourceVersion>,
}

enum Naive {
    Key(ObjectKey, Vec<Delta<ConfigMap>>),
    Bookmark(ResourceVersion),
}

impl NaiveDeltaFifo {
    fn waiting_for(&mut self, wanted: &ObjectKey) -> Option<&mut Vec<Delta<ConfigMap>>> {
        self.waiting.iter_mut().find_map(|entry| match entry {
            Naive::Key(key, deltas) if key == wanted => Some(deltas),
            _ => None,
        })
    }

    fn push(&mut self, delta: Delta<ConfigMap>) {
        let key = delta.key().unwrap().clone();
        let Some(deltas) = self.waiting_for(&key) else {
            self.waiting.push(Naive::Key(key, vec![delta]));
            return;
        };
        deltas.push(delta);
        if let [.., Delta::Deleted(earlier), Delta::Deleted(later)] = &deltas[..] {
            let knows =
                |tombstone: &Tombstone<_>| (tombstone.final_state_known(), tombstone.object().is_some());
            let worse = if knows(earlier) > knows(later) { deltas.len() - 1 } else { deltas.len() - 2 };
            deltas.remove(worse);
        }
    }

    /// The newest state of a key, looked for in what waits, then in flight, then in the store. The outer
    /// `None`: nobody knows the key. The inner one: it is known as deleted, or only by name.
    fn newest_state(&mut self, key: &ObjectKey, store: &Store<ConfigMap>) -> Option<Option<Config>> {
        if let Some(deltas) = self.waiting_for(key) {
            return Some(deltas.last().unwrap().object().cloned());
        }
        match self.in_flight.iter().find(|(in_flight, _)| in_flight == key) {
            Some((_, deltas)) if matches!(deltas.last(), Some(Delta::Deleted(_))) => None,
            Some((_, deltas)) => Some(deltas.last().unwrap().object().cloned()),
            None => store.get(key).map(Some),
        }
    }

    fn step(&mut self, step: &Step, server: &Server, event: Option<Config>, store: &Store<ConfigMap>) {
        let is_known = |naive: &mut Self, name: &str| {
            naive.waiting_for(&key(name)).is_some()
                || naive.in_flight.iter().any(|(in_flight, _)| *in_flight == key(name))
                || store.get(&key(name)).is_some()
        };
        match step {
            Step::Put(_) => {
                let object = event.unwrap();
                self.newest = Some(object.resource_version().clone());
                self.push(Delta::Updated(object));
            }
            Step::Delete(name) => {
                if let Some(last) = event {
                    let version = last.resource_version().clone();
                    if is_known(self, name) {
                        self.newest = Some(version);
                        self.push(Delta::Deleted(Tombstone::Final(last)));
                    } else {
                        self.bookmark(version);
                    }
                }
            }
            Step::DeleteAgain(name) if !server.objects.contains_key(&key(name)) && is_known(self, name) => {
                self.push(Delta::Deleted(Tombstone::Unknown { key: key(name), last_seen: None }));
            }
            Step::Relist(unusable) => {
                let list = server.list(*unusable);
                let listed: BTreeSet<ObjectKey> =
                    list.objects.iter().map(|object| object.key().clone()).chain(list.unusable).collect();
                let mut of_list: BTreeSet<ObjectKey> =
                    list.objects.iter().map(|object| object.key().clone()).collect();
                for name in KEYS.map(key).into_iter().collect::<BTreeSet<_>>() {
                    if let (false, Some(last_seen)) =
                        (listed.contains(&name), self.newest_state(&name, store))
                    {
                        of_list.insert(name.clone());
                        self.push(Delta::Deleted(Tombstone::Unknown { key: name, last_seen }));
                    }
                }
                list.objects.into_iter().for_each(|object| self.push(Delta::Replaced(object)));
                self.initial.get_or_insert(of_list);
                self.bookmark(list.version);
            }
            Step::Resync => {
                for object in store.snapshot().iter() {
                    let busy = self.waiting_for(object.key()).is_some()
                        || self.in_flight.iter().any(|(in_flight, _)| in_flight == object.key());
                    if !busy {
                        self.push(Delta::Sync(object.clone()));
                    }
                }
            }
            Step::Bookmark => self.bookmark(server.version.into()),
            _ => {}
        }
    }

    fn bookmark(&mut self, version: ResourceVersion) {
        self.newest = None;
        if let Some(Naive::Bookmark(_)) = self.waiting.last() {
            self.waiting.pop();
        }
        self.waiting.push(Naive::Bookmark(version));
    }

    fn pop(&mut self, max: usize) -> Vec<Delta<ConfigMap>> {
        let mut batch = Vec::new();
        while batch.len() < max && !self.waiting.is_empty() {
            match self.waiting.remove(0) {
                Naive::Bookmark(version) => batch.push(Delta::Bookmark(version)),
                Naive::Key(key, deltas) => {
                    batch.extend(deltas.clone());
                    self.in_flight.push((key, deltas));
                    if self.waiting.is_empty() {
                        self.waiting.extend(self.newest.take().map(Naive::Bookmark));
                    }
                }
            }
        }
        batch
    }

    fn done(&mut self, retry: bool) {
        for (key, deltas) in std::mem::take(&mut self.in_flight) {
            if !retry {
                self.initial.iter_mut().for_each(|initial| initial.retain(|other| *other != key));
            } else if self.waiting_for(&key).is_none() {
                self.waiting.push(Naive::Key(key, deltas));
            }
        }
    }
}

#[test]
fn c15_delta_fifo_equals_its_rules_written_down_naively() {
    histories(&steps(), |steps| {
        let (mut writer, store) = store::new::<ConfigMap>();
        let (mut queue, mut naive) = (DeltaFifo::new(store.clone()), NaiveDeltaFifo::default());
        let mut server = Server::default();
        for step in &steps {
            let event = match step {
                Step::Put(name) | Step::PutUnseen(name) => Some(server.put(name).0),
                Step::Delete(name) | Step::DeleteUnseen(name) => server.delete(name),
                _ => None,
            };
            naive.step(step, &server, event.clone(), &store);
            match step {
                Step::Put(_) => queue.updated(event.unwrap()),
                Step::Delete(_) => event.into_iter().for_each(|last| queue.deleted(Tombstone::Final(last))),
                Step::DeleteAgain(name) if !server.objects.contains_key(&key(name)) => {
                    queue.deleted(Tombstone::Unknown { key: key(name), last_seen: None });
                }
                Step::Relist(unusable) => queue.replace(server.list(*unusable)),
                Step::Resync => queue.resync(),
                Step::Bookmark => queue.bookmark(server.version.into()),
                Step::Pop(max) | Step::PopAndFail(max) => {
                    queue.done();
                    naive.done(false);
                    let (deltas, expected) = (queue.pop(*max), naive.pop(*max));
                    assert_eq!(show_deltas(&deltas), show_deltas(&expected));
                    if matches!(step, Step::PopAndFail(_)) {
                        queue.retry(deltas);
                        queue.done();
                        naive.done(true);
                    } else {
                        writer.write(|batch| queue::apply(deltas, batch, |_| {}));
                    }
                }
                Step::Done => {
                    queue.done();
                    naive.done(false);
                }
                _ => {}
            }
            assert_eq!(queue.len(), naive.waiting.len());
            assert_eq!(queue.has_synced(), naive.initial.as_ref().is_some_and(BTreeSet::is_empty));
        }
    });
}
