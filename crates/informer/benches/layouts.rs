//! How else the store could be laid out, measured beside the way it is:
//! `cargo bench -p informer --bench layouts`. The table is in ARCHITECTURE.md.
//!
//! Every layout keeps 100,000 pods by key and by label. Writes are updates in batches of 100 that change no
//! label, published after each batch. Readers list 100 pods by label without pause. Memory is what the
//! process grows by when the structure is built over objects that exist already.

#[allow(dead_code, reason = "each bench uses its part")]
mod support;

use std::{
    collections::BTreeSet,
    env, fs,
    hint::black_box,
    process::Command,
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use hashbrown::HashMap;
use imbl::{GenericHashMap, OrdMap, OrdSet, shared_ptr::DefaultSharedPtr};
use informer::{
    Object,
    model::{ObjectKey, Selector},
    queue::Replacement,
    store::{self, Store, StoreWriter},
};
use support::{Pod, Revision, pod, pods, scattered};

const BATCH: usize = 100;
const UPDATES: usize = 100_000;
const APP: &str = "app.kubernetes.io/name";

type Pods = Vec<Object<Pod>>;
type PersistentHashMap<K, V> = GenericHashMap<K, V, hashbrown::DefaultHashBuilder, DefaultSharedPtr>;

/// The writer's half of a layout; readers are made from it.
trait Layout {
    const NAME: &'static str;
    type Reader: Reader + Send;
    fn build(objects: &Pods) -> Self;
    /// Applies updates and returns what was there, so that the clock does not see it freed.
    fn write(&mut self, batch: Pods) -> Pods;
    fn reader(&self) -> Self::Reader;
}

trait Reader {
    fn get(&self, key: &ObjectKey) -> Option<Object<Pod>>;
    fn list(&self, app: &str) -> Pods;
}

/// This crate's store.
struct Slots(StoreWriter<Pod>);

impl Layout for Slots {
    const NAME: &'static str = "slots: trie + pages + order (the store)";
    type Reader = Store<Pod>;

    fn build(objects: &Pods) -> Self {
        let (mut writer, _) = store::new();
        writer.write(|batch| batch.replace(Replacement::new(objects.clone(), 1)));
        Self(writer)
    }

    fn write(&mut self, objects: Pods) -> Pods {
        self.0.write(|batch| objects.into_iter().filter_map(|object| batch.insert(object)).collect())
    }

    fn reader(&self) -> Store<Pod> {
        self.0.store()
    }
}

impl Reader for Store<Pod> {
    fn get(&self, key: &ObjectKey) -> Option<Object<Pod>> {
        Store::get(self, key)
    }

    fn list(&self, app: &str) -> Pods {
        Store::list(self, &Selector::from_set([(APP, app)]).expect("a selector"))
    }
}

fn by_key(mut objects: Pods) -> Pods {
    objects.sort_by(|a, b| a.key().cmp(b.key()));
    objects
}

/// One mutable table behind a lock.
#[derive(Clone)]
struct Locked(Arc<RwLock<Tables>>);

#[derive(Default)]
struct Tables {
    objects: HashMap<ObjectKey, Object<Pod>>,
    labels: HashMap<String, BTreeSet<ObjectKey>>,
}

impl Layout for Locked {
    const NAME: &'static str = "RwLock<hashbrown>";
    type Reader = Self;

    fn build(objects: &Pods) -> Self {
        let mut tables = Tables::default();
        for object in objects {
            tables.objects.insert(object.key().clone(), object.clone());
            for label in object.labels().iter() {
                tables.labels.entry_ref(label.pair()).or_default().insert(object.key().clone());
            }
        }
        Self(Arc::new(RwLock::new(tables)))
    }

    fn write(&mut self, batch: Pods) -> Pods {
        // One lock for each object, as a store without batches takes it; readers get a chance in between.
        let put = |object: Object<Pod>| {
            let mut tables = self.0.write().expect("not poisoned");
            let old = tables.objects.insert(object.key().clone(), object.clone());
            assert!(old.as_ref().is_some_and(|old| old.labels() == object.labels()));
            old
        };
        batch.into_iter().filter_map(put).collect()
    }

    fn reader(&self) -> Self {
        self.clone()
    }
}

impl Reader for Locked {
    fn get(&self, key: &ObjectKey) -> Option<Object<Pod>> {
        self.0.read().expect("not poisoned").objects.get(key).cloned()
    }

    fn list(&self, app: &str) -> Pods {
        let tables = self.0.read().expect("not poisoned");
        let keys = tables.labels.get(&format!("{APP}={app}"));
        keys.into_iter().flatten().filter_map(|key| tables.objects.get(key).cloned()).collect()
    }
}

/// Persistent maps behind a pointer: `objects` is what differs.
struct Persistent<M> {
    work: Maps<M>,
    published: Arc<ArcSwap<Maps<M>>>,
}

#[derive(Clone)]
struct Maps<M> {
    objects: M,
    labels: PersistentHashMap<String, OrdSet<ObjectKey>>,
}

trait ObjectMap: Clone + Default + Send + Sync + 'static {
    const NAME: &'static str;
    fn put(&mut self, object: Object<Pod>) -> Option<Object<Pod>>;
    fn find(&self, key: &ObjectKey) -> Option<&Object<Pod>>;
}

impl ObjectMap for OrdMap<ObjectKey, Object<Pod>> {
    const NAME: &'static str = "imbl OrdMap";

    fn put(&mut self, object: Object<Pod>) -> Option<Object<Pod>> {
        self.insert(object.key().clone(), object)
    }

    fn find(&self, key: &ObjectKey) -> Option<&Object<Pod>> {
        self.get(key)
    }
}

impl ObjectMap for PersistentHashMap<ObjectKey, Object<Pod>> {
    const NAME: &'static str = "imbl HashMap";

    fn put(&mut self, object: Object<Pod>) -> Option<Object<Pod>> {
        self.insert(object.key().clone(), object)
    }

    fn find(&self, key: &ObjectKey) -> Option<&Object<Pod>> {
        self.get(key)
    }
}

impl<M: ObjectMap> Layout for Persistent<M> {
    const NAME: &'static str = M::NAME;
    type Reader = Arc<ArcSwap<Maps<M>>>;

    fn build(objects: &Pods) -> Self {
        let mut work = Maps { objects: M::default(), labels: PersistentHashMap::default() };
        for object in objects {
            work.objects.put(object.clone());
            for label in object.labels().iter() {
                work.labels.entry(label.pair().to_owned()).or_default().insert(object.key().clone());
            }
        }
        Self { published: Arc::new(ArcSwap::from_pointee(work.clone())), work }
    }

    fn write(&mut self, batch: Pods) -> Pods {
        let put = |object: Object<Pod>| {
            let labels = object.labels().clone();
            let old = self.work.objects.put(object);
            assert!(old.as_ref().is_some_and(|old| *old.labels() == labels));
            old
        };
        let old = batch.into_iter().filter_map(put).collect();
        self.published.store(Arc::new(self.work.clone()));
        old
    }

    fn reader(&self) -> Self::Reader {
        Arc::clone(&self.published)
    }
}

impl<M: ObjectMap> Reader for Arc<ArcSwap<Maps<M>>> {
    fn get(&self, key: &ObjectKey) -> Option<Object<Pod>> {
        self.load().objects.find(key).cloned()
    }

    fn list(&self, app: &str) -> Pods {
        let maps = self.load();
        let keys = maps.labels.get(&format!("{APP}={app}"));
        by_key(keys.into_iter().flatten().filter_map(|key| maps.objects.find(key).cloned()).collect())
    }
}

fn resident() -> Option<usize> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

/// Batches of updates to places without pattern, built before any clock runs.
fn updates() -> Vec<Pods> {
    let mut places = scattered();
    let batch = |version| {
        let revision = Revision { version, label: 0 };
        places.by_ref().take(BATCH).map(|i| pod(i, revision)).collect()
    };
    (0..(UPDATES / BATCH) as u64).map(batch).collect()
}

/// What batches of updates took, per update.
struct Batches {
    median: Duration,
    mean: Duration,
    longest: Duration,
}

/// Times updates while some readers list without pause.
fn update<L: Layout>(layout: &mut L, readers: usize) -> Batches {
    let updates: Vec<Pods> = updates();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..readers {
            let (reader, stop) = (layout.reader(), &stop);
            scope.spawn(move || {
                for app in (0..1_000).cycle() {
                    if stop.load(Relaxed) {
                        break;
                    }
                    black_box(reader.list(&format!("app-{app}")));
                }
            });
        }
        // With eighty readers the writer's turn may come rarely: a few seconds will do.
        let begin = Instant::now();
        let (mut times, mut replaced) = (Vec::new(), Vec::new());
        for batch in updates {
            let start = Instant::now();
            replaced.push(layout.write(batch));
            times.push(start.elapsed() / BATCH as u32);
            if begin.elapsed() > Duration::from_secs(3) {
                break;
            }
        }
        stop.store(true, Relaxed);
        times.sort_unstable();
        let mean = times.iter().sum::<Duration>() / times.len() as u32;
        Batches { median: times[times.len() / 2], mean, longest: times[times.len() - 1] }
    })
}

fn measure<L: Layout>(objects: &Pods) {
    let mut layout = L::build(objects);
    let reader = layout.reader();
    let keys: Vec<ObjectKey> = scattered().take(1_000_000).map(|i| objects[i].key().clone()).collect();
    let get = median(keys.chunks(1_000).map(|keys| {
        let start = Instant::now();
        for key in keys {
            black_box(reader.get(key));
        }
        start.elapsed() / 1_000
    }));
    let list = median((0..1_000).cycle().take(4_000).map(|app| {
        let app = format!("app-{app}");
        let start = Instant::now();
        assert_eq!(reader.list(&app).len(), 100);
        start.elapsed()
    }));
    let micros = |time: Duration| format!("{:.2}", time.as_nanos() as f64 / 1_000.0);
    let (none, one, eighty) = (update(&mut layout, 0), update(&mut layout, 1), update(&mut layout, 80));
    println!(
        "| {} | {} | {} | {} | {} | {} / {} | {} |",
        L::NAME,
        micros(get),
        micros(list),
        micros(none.median),
        micros(one.median),
        micros(eighty.mean),
        micros(eighty.longest),
        memory(L::NAME),
    );
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Bytes per object, from a process of its own that does nothing else.
fn memory(layout: &str) -> String {
    let program = env::current_exe().expect("this program");
    let output = Command::new(program).env("LAYOUT", layout).output().expect("this program runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn print_memory<L: Layout>(name: &str) {
    if name == L::NAME {
        let objects = pods();
        let before = resident();
        let layout = black_box(L::build(&objects));
        let grown =
            resident().zip(before).map(|(after, before)| after.saturating_sub(before) / objects.len());
        println!("{}", grown.map_or("-".into(), |bytes| bytes.to_string()));
        drop(layout);
    }
}

type Ordered = Persistent<OrdMap<ObjectKey, Object<Pod>>>;
type Hashed = Persistent<PersistentHashMap<ObjectKey, Object<Pod>>>;

fn main() {
    if let Ok(name) = env::var("LAYOUT") {
        print_memory::<Slots>(&name);
        print_memory::<Ordered>(&name);
        print_memory::<Hashed>(&name);
        print_memory::<Locked>(&name);
        return;
    }
    println!(
        "µs, medians; with 80 readers the mean and the longest batch; bytes per object for keys and labels\n"
    );
    println!("| layout | get | list 100 by label | update | update, 1 reader | update, 80 readers | bytes |");
    println!("|---|---|---|---|---|---|---|");
    let objects = pods();
    measure::<Slots>(&objects);
    measure::<Ordered>(&objects);
    measure::<Hashed>(&objects);
    measure::<Locked>(&objects);
}
