//! Followers of random histories: whatever happens, in the end they know what the cache knows.

use std::collections::BTreeMap;

use informer::{
    queue::{self, Delta, Replacement},
    store::{self, StoreWriter},
};
use informer_testing::histories;
use proptest::{collection::vec, prelude::*, sample::Index};

use super::*;

/// Two in each of two namespaces.
const KEYS: [&str; 4] = ["a/x", "a/y", "b/x", "b/y"];
const ALL: usize = usize::MAX;

fn mk(key: &str, version: u64, text: u64) -> Object<Stored> {
    let (namespace, name) = key.split_once('/').expect("a namespace");
    let json = format!(
        r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}","resourceVersion":"{version}"}},"text":{text}}}"#
    );
    Object::new(Stored::plain(informer::RawObject::new(json).expect("an object"))).expect("a name")
}

/// What somebody knows: objects as their JSON.
type Known = BTreeMap<String, String>;

fn known(snapshot: &Snapshot<Stored>) -> Known {
    snapshot.iter().map(|object| (object.key().to_string(), object.json())).collect()
}

fn place(text: &str) -> Place {
    Place::parse(text).expect("a place")
}

/// A server whose watches lead to a store, and from there to the recorder.
struct World {
    version: u64,
    /// Makes every state another one.
    texts: u64,
    objects: BTreeMap<&'static str, Object<Stored>>,
    /// What there was at each version.
    past: BTreeMap<u64, BTreeMap<&'static str, Object<Stored>>>,
    pipelines: Vec<Pipeline>,
    writer: StoreWriter<Stored>,
    /// What the recorder has not heard yet.
    waiting: VecDeque<Event<Stored>>,
    recorder: Recorder,
}

/// The watch of one namespace, or of all.
#[derive(Default)]
struct Pipeline {
    reached: u64,
    /// On the way; none while the watch is broken.
    events: Option<VecDeque<(u64, Delta<Stored>)>>,
}

impl World {
    fn new(pipelines: usize, depth: Depth) -> Self {
        let (writer, store) = store::new();
        let recorder = Recorder { changes: Arc::new(Changes::new(depth)), store };
        let mut world = Self {
            version: 10,
            texts: 0,
            objects: BTreeMap::new(),
            past: BTreeMap::from([(10, BTreeMap::new())]),
            pipelines: (0..pipelines).map(|_| Pipeline::default()).collect(),
            writer,
            waiting: VecDeque::new(),
            recorder,
        };
        (0..pipelines).for_each(|pipeline| world.relist(pipeline, 0));
        world.waiting.clear();
        world.changes().begin(&world.store().resource_version());
        world
    }

    fn changes(&self) -> &Changes {
        &self.recorder.changes
    }

    fn store(&self) -> &Store<Stored> {
        &self.recorder.store
    }

    /// The only pipeline, or that of the key's namespace.
    fn pipeline(&self, key: &str) -> usize {
        usize::from(key.starts_with('b')) % self.pipelines.len()
    }

    fn send(&mut self, key: &str, delta: Delta<Stored>) {
        self.past.insert(self.version, self.objects.clone());
        let (pipeline, version) = (self.pipeline(key), self.version);
        if let Some(events) = &mut self.pipelines[pipeline].events {
            events.push_back((version, delta));
        }
    }

    fn put(&mut self, key: &'static str) {
        self.version += 1;
        self.texts += 1;
        let object = mk(key, self.version, self.texts);
        self.objects.insert(key, object.clone());
        self.send(key, Delta::Updated(object));
    }

    fn delete(&mut self, key: &'static str) {
        if self.objects.remove(key).is_some() {
            self.version += 1;
            self.send(key, Delta::Deleted(Tombstone::Final(mk(key, self.version, self.texts))));
        }
    }

    /// Something happens that is not watched.
    fn tick(&mut self) {
        self.version += 1;
        self.past.insert(self.version, self.objects.clone());
    }

    fn apply(&mut self, pipeline: usize, deltas: Vec<Delta<Stored>>, reached: u64) {
        self.pipelines[pipeline].reached = reached;
        let least = self.pipelines.iter().map(|pipeline| pipeline.reached).min().unwrap_or_default();
        let waiting = &mut self.waiting;
        self.writer.write(|batch| {
            queue::apply(deltas, batch, |event| {
                // An informer does not tell of what it knew.
                if !matches!(&event, Event::Updated { old, new } if old.json() == new.json()) {
                    waiting.push_back(event);
                }
            });
            batch.set_resource_version(least.into());
        });
    }

    /// So many events of a watch arrive together.
    fn deliver(&mut self, pipeline: usize, count: usize) {
        let Some(events) = &mut self.pipelines[pipeline].events else { return };
        let (versions, deltas): (Vec<u64>, Vec<_>) = events.drain(..count.min(events.len())).unzip();
        if let Some(reached) = versions.last() {
            self.apply(pipeline, deltas, *reached);
        }
    }

    /// The server says that there is nothing else up to now.
    fn bookmark(&mut self, pipeline: usize) {
        if self.pipelines[pipeline].events.as_ref().is_some_and(VecDeque::is_empty) {
            self.apply(pipeline, Vec::new(), self.version);
        }
    }

    /// A list, in an order of the server's own.
    fn relist(&mut self, pipeline: usize, turn: usize) {
        let mut objects: Vec<_> = self
            .objects
            .iter()
            .filter(|(key, _)| self.pipeline(key) == pipeline)
            .map(|(_, object)| object.clone())
            .collect();
        if !objects.is_empty() {
            let turn = turn % objects.len();
            objects.rotate_left(turn);
        }
        let namespace = (self.pipelines.len() > 1).then(|| ["a", "b"][pipeline].into());
        let list = Replacement { namespace, ..Replacement::new(objects, self.version) };
        self.pipelines[pipeline].events = Some(VecDeque::new());
        self.apply(pipeline, vec![Delta::ReplacedAll(list)], self.version);
    }

    fn record(&mut self, count: usize) {
        for event in self.waiting.drain(..count.min(self.waiting.len())) {
            self.recorder.record(event);
        }
    }

    /// The server is restored from a copy. Something is heard of it before it is again where it was.
    fn rewind(&mut self, by: u64) {
        self.record(ALL);
        let reached = self.pipelines[0].reached.min(self.version);
        let Some(version) = reached.checked_sub(by + 2).filter(|version| self.past.contains_key(version))
        else {
            return;
        };
        (self.version, self.objects) = (version, self.past[&version].clone());
        self.past.split_off(&(version + 1));
        self.relist(0, 0);
        self.record(ALL);
        self.put(KEYS[0]);
        self.deliver(0, 1);
        self.record(ALL);
    }

    fn settle(&mut self) {
        for pipeline in 0..self.pipelines.len() {
            match self.pipelines[pipeline].events {
                Some(_) => self.deliver(pipeline, ALL),
                None => self.relist(pipeline, 0),
            }
        }
        self.record(ALL);
    }
}

/// Somebody who follows, with breaks.
struct Client {
    known: Known,
    /// The last that it was told.
    id: String,
    cursor: Option<Cursor>,
    resets: usize,
    /// How many changes had been written down when it began.
    joined: u64,
    /// The places it was told of since the last snapshot.
    told: Vec<String>,
}

impl Client {
    fn new(world: &World) -> Self {
        let mut client = Self {
            known: Known::new(),
            id: String::new(),
            cursor: None,
            resets: 0,
            joined: 0,
            told: Vec::new(),
        };
        client.joined = world.changes().total();
        client.snapshot(world);
        client
    }

    fn snapshot(&mut self, world: &World) {
        let (snapshot, cursor) = world.changes().snapshot(world.store());
        self.known = known(&snapshot);
        self.id = snapshot.resource_version().to_string();
        self.told.clear();
        self.cursor = Some(cursor);
    }

    fn come_back(&mut self, world: &World) {
        if self.cursor.is_none() {
            match world.changes().resume(&place(&self.id), world.store()) {
                Ok(cursor) => self.cursor = Some(cursor),
                Err(Lost) => self.reset(world),
            }
        }
    }

    fn reset(&mut self, world: &World) {
        self.resets += 1;
        self.snapshot(world);
    }

    fn take(&mut self, world: &World, at_most: usize) {
        let Some(cursor) = &mut self.cursor else { return };
        let Ok(changes) = world.changes().take(cursor, at_most) else { return self.reset(world) };
        for change in changes {
            self.id = change.place.to_string();
            assert!(!self.told.contains(&self.id), "{} was told twice", self.id);
            self.told.push(self.id.clone());
            let key = change.key().expect("an object").to_string();
            match &change.new {
                Some(new) => self.known.insert(key, new.json()),
                None => self.known.remove(&key),
            };
        }
        let lag = world.changes().lag(self.cursor.as_ref().expect("it follows"));
        assert!((0.0..=1.0).contains(&lag), "{lag}");
    }

    /// Follows to the end.
    fn catch_up(&mut self, world: &World) {
        self.come_back(world);
        let end = |client: &Self| client.cursor.as_ref().map(|cursor| world.changes().lag(cursor));
        while end(self) != Some(0.0) {
            self.take(world, 3);
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(&'static str),
    Delete(&'static str),
    Tick,
    Deliver(Index, usize),
    Bookmark(Index),
    Break(Index),
    Relist(Index, usize),
    Record(usize),
    Rewind(u64),
    Join,
    Take(Index, usize),
    Leave(Index),
    Return(Index),
}

fn a_step() -> impl Strategy<Value = Step> {
    let key = || prop::sample::select(&KEYS[..]);
    let index = any::<Index>;
    prop_oneof![
        8 => key().prop_map(Step::Put),
        4 => key().prop_map(Step::Delete),
        1 => Just(Step::Tick),
        6 => (index(), 1..4usize).prop_map(|(pipeline, count)| Step::Deliver(pipeline, count)),
        1 => index().prop_map(Step::Bookmark),
        1 => index().prop_map(Step::Break),
        2 => (index(), 0..4usize).prop_map(|(pipeline, turn)| Step::Relist(pipeline, turn)),
        6 => (1..5usize).prop_map(Step::Record),
        2 => Just(Step::Join),
        4 => (index(), 1..4usize).prop_map(|(client, count)| Step::Take(client, count)),
        1 => index().prop_map(Step::Leave),
        1 => index().prop_map(Step::Return),
    ]
}

fn run(world: &mut World, steps: Vec<Step>) -> Vec<Client> {
    let mut clients = vec![Client::new(world)];
    for step in steps {
        let pipelines = world.pipelines.len();
        match step {
            Step::Put(key) => world.put(key),
            Step::Delete(key) => world.delete(key),
            Step::Tick => world.tick(),
            Step::Deliver(pipeline, count) => world.deliver(pipeline.index(pipelines), count),
            Step::Bookmark(pipeline) => world.bookmark(pipeline.index(pipelines)),
            Step::Break(pipeline) => world.pipelines[pipeline.index(pipelines)].events = None,
            Step::Relist(pipeline, turn) => world.relist(pipeline.index(pipelines), turn),
            Step::Record(count) => world.record(count),
            Step::Rewind(by) => world.rewind(by),
            Step::Join => clients.push(Client::new(world)),
            Step::Take(client, count) => client.get_mut_of(&mut clients).take(world, count),
            Step::Leave(client) => client.get_mut_of(&mut clients).cursor = None,
            Step::Return(client) => client.get_mut_of(&mut clients).come_back(world),
        }
    }
    clients
}

trait Choice {
    fn get_mut_of<'a>(&self, clients: &'a mut [Client]) -> &'a mut Client;
}

impl Choice for Index {
    fn get_mut_of<'a>(&self, clients: &'a mut [Client]) -> &'a mut Client {
        &mut clients[self.index(clients.len())]
    }
}

fn check(mut world: World, steps: Vec<Step>) {
    let mut clients = run(&mut world, steps);
    world.settle();
    let truth = known(&world.store().snapshot());
    for client in &mut clients {
        client.catch_up(&world);
        assert_eq!(client.known, truth, "{} resets, told {:?}", client.resets, client.told);
    }
}

#[test]
fn in_the_end_every_follower_knows_what_the_cache_knows() {
    let depth = Depth { changes: 6, bytes: usize::MAX };
    let history = (1..3usize, vec(a_step(), 0..60));
    histories(&history, |(pipelines, steps)| check(World::new(pipelines, depth), steps));
}

#[test]
fn a_server_that_goes_back_further_than_anybody_has_read_takes_every_follower_along() {
    let mut world = World::new(1, Depth { changes: 12, bytes: usize::MAX });
    world.tick();
    world.bookmark(0);
    let mut client = Client::new(&world);
    world.tick();
    world.bookmark(0);
    world.rewind(0);
    client.catch_up(&world);
    assert_eq!(client.known, known(&world.store().snapshot()));
}

#[test]
fn a_server_that_goes_back_in_time_takes_every_follower_along() {
    let depth = Depth { changes: 12, bytes: usize::MAX };
    let steps = vec(prop_oneof![12 => a_step(), 1 => (0..20u64).prop_map(Step::Rewind)], 0..60);
    histories(&steps, |steps| check(World::new(1, depth), steps));
}

/// Changes that a watch tells of, in pieces, to a recorder that is late.
fn a_plain_step() -> impl Strategy<Value = Step> {
    let key = || prop::sample::select(&KEYS[..]);
    prop_oneof![
        8 => key().prop_map(Step::Put),
        4 => key().prop_map(Step::Delete),
        1 => Just(Step::Tick),
        6 => (any::<Index>(), 1..4usize).prop_map(|(pipeline, count)| Step::Deliver(pipeline, count)),
        1 => any::<Index>().prop_map(Step::Bookmark),
        5 => (1..5usize).prop_map(Step::Record),
        3 => Just(Step::Join),
    ]
}

#[test]
fn what_a_watch_tells_comes_exactly_once_after_every_snapshot_and_every_id() {
    let strategy = (1..20usize, vec(a_plain_step(), 0..60));
    histories(&strategy, |(kept, steps)| {
        let mut world = World::new(1, Depth { changes: kept, bytes: usize::MAX });
        let mut clients = run(&mut world, steps);
        world.settle();
        let all: Vec<u64> = changed_versions(&world);
        let since = all.len().checked_sub(kept + 1).map_or(10, |dropped| all[dropped]);
        for client in &mut clients {
            let from: u64 = client.id.parse().expect("a version");
            let expected: Vec<u64> = all.iter().copied().filter(|version| *version > from).collect();
            client.catch_up(&world);
            if client.resets == 0 {
                let told: Vec<u64> = client.told.iter().map(|id| id.parse().expect("a version")).collect();
                assert_eq!(told, expected, "after the snapshot of {from}");
            } else {
                let missed = world.changes().total() - client.joined;
                assert!(missed > kept as u64, "a reset although everything was here");
            }
        }
        world.bookmark(0);
        for id in 10..=world.version {
            let expected: Vec<u64> = all.iter().copied().filter(|version| *version > id).collect();
            let resumed = world.changes().resume(&place(&id.to_string()), world.store());
            assert_eq!(resumed.is_ok(), id >= since, "{id}: {kept} of {all:?}");
            let Ok(mut cursor) = resumed else { continue };
            let told = world.changes().take(&mut cursor, ALL).expect("nothing is dropped");
            let told: Vec<u64> =
                told.iter().map(|c| c.place.to_string().parse().expect("a version")).collect();
            assert_eq!(told, expected, "after {id}");
        }
    });
}

/// The versions at which something that is watched changed.
fn changed_versions(world: &World) -> Vec<u64> {
    let contents = |objects: &BTreeMap<_, Object<Stored>>| {
        objects.values().map(|object| object.json()).collect::<Vec<_>>()
    };
    let pairs = world.past.iter().zip(world.past.iter().skip(1));
    pairs
        .filter(|((_, before), (_, after))| contents(before) != contents(after))
        .map(|(_, (at, _))| *at)
        .collect()
}

/// A ring of this depth after so many changes of one object, and a cursor from before them.
fn mk_ring(depth: Depth, changes: usize) -> (World, Cursor) {
    let mut world = World::new(1, depth);
    let (_, cursor) = world.changes().snapshot(world.store());
    (0..changes).for_each(|_| world.put("a/x"));
    world.settle();
    (world, cursor)
}

#[test]
fn how_far_behind_a_follower_is_shows_before_it_is_lost() {
    let depth = Depth { changes: 8, bytes: usize::MAX };
    for (changes, lag) in [(0, 0.0), (1, 0.125), (4, 0.5), (8, 1.0)] {
        let (world, mut cursor) = mk_ring(depth, changes);
        assert_eq!(world.changes().lag(&cursor), lag);
        assert_eq!(world.changes().take(&mut cursor, ALL).map(|taken| taken.len()), Ok(changes));
        assert_eq!(world.changes().lag(&cursor), 0.0);
    }
    let (world, mut cursor) = mk_ring(depth, 9);
    assert_eq!(world.changes().take(&mut cursor, ALL).map(|taken| taken.len()), Err(Lost));
}

#[test]
fn bytes_are_a_limit_as_changes_are() {
    let one = mk("a/x", 11, 1).json().len();
    // The first has no state before it, the others have two. A quarter is not for objects.
    let depth = Depth { changes: 1_000, bytes: (7 * one).div_ceil(3) * 4 };
    let (world, mut cursor) = mk_ring(depth, 4);
    assert_eq!(world.changes().take(&mut cursor, ALL).map(|taken| taken.len()), Ok(4));
    let (world, mut cursor) = mk_ring(depth, 5);
    assert_eq!(world.changes().take(&mut cursor, ALL).map(|taken| taken.len()), Err(Lost));
    let (world, _) = mk_ring(Depth { changes: 1_000, bytes: 1 }, 5);
    assert_eq!(world.changes().resume(&place("14"), world.store()).err(), Some(Lost), "nothing is kept");
    assert!(world.changes().resume(&place("15"), world.store()).is_ok(), "nothing is missed");
}

#[test]
fn what_was_written_is_a_place_and_other_texts_are_none() {
    for text in ["0", "12", "12.3", "123456789012345678901234567890", "12.4294967295"] {
        assert_eq!(place(text).to_string(), text);
    }
    assert_eq!(place("12.0"), place("12"));
    for text in ["", ".", "x", "12.", ".3", "12.x", "-1", "1.2.3", "1.4294967296", " 1", "1 "] {
        assert_eq!(Place::parse(text), None, "{text:?}");
    }
    assert!(place("12.1").is_after(&place("12")) && place("13").is_after(&place("12.9")));
}

#[test]
fn a_deletion_of_something_nobody_knows_is_no_change() {
    let (world, _) = mk_ring(Depth::default(), 0);
    let key = "a/x".parse().expect("a key");
    world.recorder.record(Event::Deleted(Tombstone::Unknown { key, last_seen: None }));
    assert_eq!(world.changes().total(), 0);
}

#[test]
fn going_back_in_time_is_counted_as_a_change() {
    let (mut world, _) = mk_ring(Depth::default(), 5);
    let before = world.changes().total();
    world.rewind(0);
    assert_eq!(world.changes().total(), before + 2, "the object as it was before, and its next change");
}

#[test]
fn a_change_is_written_once_for_all_who_want_it_in_the_same_way() {
    let (world, mut cursor) = mk_ring(Depth::default(), 1);
    let change = world.changes().take(&mut cursor, ALL).expect("a change").remove(0);
    let ways = (0..2 * WAYS as u64).map(|way| change.written(way, || way.to_string().into()));
    assert!(ways.enumerate().all(|(way, text)| text == way.to_string()));
    assert_eq!(change.written(1, || panic!("it was written")), "1");
    assert_eq!(change.written(7, || "again".into()), "again", "only so many ways are kept");
}

/// What a ring really keeps: objects, and changes as they were written.
fn kept(changes: &Changes) -> usize {
    let written = |change: &Arc<Change>| change.lock().iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    changes.ring().changes.iter().map(|change| change.bytes() + written(change)).sum()
}

#[test]
fn how_changes_are_written_counts_for_the_limit() {
    let one = mk("a/x", 11, 1).json().len();
    let depth = Depth { changes: 1_000, bytes: 200 * one };
    let (mut world, mut cursor) = mk_ring(depth, 0);
    for _ in 0..1_000 {
        world.put("a/x");
        world.settle();
        for change in world.changes().take(&mut cursor, ALL).expect("nothing is missed") {
            for way in 0..2 * WAYS as u64 {
                let text = Bytes::from(vec![b'x'; one]);
                change.written(way, || text.clone());
                assert!(kept(world.changes()) <= depth.bytes, "{} of {}", kept(world.changes()), depth.bytes);
            }
            let again = || panic!("the newest change is kept written, however many there were before");
            assert_eq!(change.written(0, again).len(), one);
        }
    }
    assert!(kept(world.changes()) * 2 > depth.bytes, "and it is not left empty");
    // Somebody reads everything again in a way of its own: what was written for others is still bounded.
    let since = world.changes().ring().since.clone().expect("a place");
    let mut cursor = world.changes().after(&since).expect("all of it");
    for change in world.changes().take(&mut cursor, ALL).expect("all of it") {
        change.written(100, || Bytes::from(vec![b'x'; one]));
    }
    assert!(kept(world.changes()) <= depth.bytes);
    let room = Arc::clone(&world.changes().ring().room);
    drop(world);
    assert_eq!(room.used(), 0, "what is dropped is given back");
}

#[tokio::test]
async fn a_bell_rings_for_those_who_wait() {
    let (mut world, cursor) = mk_ring(Depth::default(), 0);
    let changes = Arc::clone(&world.recorder.changes);
    let waiting = tokio::spawn(async move { changes.ring_for(&cursor).await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    world.put("a/x");
    world.settle();
    waiting.await.expect("it rang");
}

#[test]
fn what_was_replaced_or_deleted_is_counted_for_who_keeps_an_old_version() {
    let (_writer, store) = store::new::<Stored>();
    let changes = Changes::new(Depth::default());
    let replaced = || format!("{:?}", changes.replaced);
    let object = || mk("a/x", 1, 1);
    changes.push(None, (None, Some(object())), &store);
    assert_eq!(replaced(), "Replaced(0)", "what is new replaces nothing");
    changes.push(None, (Some(object()), Some(object())), &store);
    changes.push(None, (Some(object()), None), &store);
    assert_eq!(replaced(), format!("Replaced({})", 2 * object().json().len()));
}
