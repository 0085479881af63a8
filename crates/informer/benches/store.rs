//! What the store costs: `cargo bench -p informer --bench store`.
//!
//! 100,000 pods with five labels each; namespace index, label index and one user index (the pod's node).
//! Updates go to places without pattern, in batches of 100, announced as the informer does it; building the objects
//! and freeing the ones they replace is not timed.

#[allow(dead_code, reason = "each bench uses its part")]
mod support;

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use informer::{
    Object,
    model::{ObjectKey, Selector},
    queue::Replacement,
    store::{self, Batch, Store, StoreWriter},
};
use support::{PODS, Pod, Revision, node_of, pod, pods, scattered};

/// The allocator of the program that is built with this library here.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH: usize = 100;

fn filled() -> (StoreWriter<Pod>, Store<Pod>) {
    let (mut writer, store) = store::new();
    store.add_index("node", node_of).expect("a new name");
    writer.write(|batch| batch.replace(Replacement::new(pods(), 1_000_000)));
    (writer, store)
}

/// So many updates are built before the clock runs, as a reflector builds them on another thread.
const AHEAD: u64 = 1_000;

/// Applies `count` updates in batches and returns the time that the writes took.
fn write(
    writer: &mut StoreWriter<Pod>,
    places: &mut impl Iterator<Item = usize>,
    count: u64,
    batch: usize,
    change_label: bool,
) -> Duration {
    let mut took = Duration::ZERO;
    let mut done = 0;
    while done < count {
        let ahead = (count - done).min(AHEAD);
        let mut updates: Vec<Object<Pod>> = (done..done + ahead)
            .map(|version| {
                let label = if change_label { version % 50 } else { 0 };
                pod(places.next().unwrap_or(0), Revision { version, label })
            })
            .collect();
        // What was there is freed after the clock: that is the price of the object, not of the store.
        let mut replaced = Vec::with_capacity(updates.len());
        let start = Instant::now();
        while !updates.is_empty() {
            let rest = updates.len().saturating_sub(batch);
            writer.write(|store| {
                while updates.len() > rest {
                    let next = rest.max(updates.len().saturating_sub(Batch::<Pod>::AHEAD));
                    store.prefetch(&updates[next..]);
                    replaced.extend(updates.drain(next..).map(|object| store.insert(object)));
                }
            });
        }
        took += start.elapsed();
        done += ahead;
    }
    took
}

fn reads(c: &mut Criterion) {
    let (_writer, store) = filled();
    let keys: Vec<ObjectKey> =
        scattered().take(10_000).map(|i| pod(i, Revision::default()).key().clone()).collect();
    let mut next = keys.iter().cycle();
    c.bench_function("get by key", |b| b.iter(|| black_box(store.get(next.next().expect("a cycle")))));

    let selectors: Vec<Selector> = (0..1_000)
        .map(|app| format!("app.kubernetes.io/name=app-{app}").parse().expect("a selector"))
        .collect();
    let mut next = selectors.iter().cycle();
    c.bench_function("list 100 of 100,000 by label", |b| {
        b.iter(|| {
            let found = store.list(next.next().expect("a cycle"));
            assert_eq!(found.len(), 100);
            found
        });
    });
    let by_node = store.index("node").expect("added");
    let nodes: Vec<String> = (0..1_000).map(|node| format!("node-{node}")).collect();
    let mut next = nodes.iter().cycle();
    c.bench_function("list 100 of 100,000 by user index", |b| {
        b.iter(|| by_node.get(next.next().expect("a cycle")));
    });
    c.bench_function("list all 100,000, handles of our own", |b| {
        b.iter(|| store.list(&Selector::everything()));
    });
    c.bench_function("list all 100,000, from a snapshot", |b| {
        b.iter(|| store.snapshot().list(&Selector::everything()).len());
    });
    c.bench_function("snapshot", |b| b.iter(|| store.snapshot()));
}

fn writes(c: &mut Criterion) {
    // One walk for all: what begins anew for each sample meets the same few places again and again.
    let (mut writer, store) = filled();
    let mut places = scattered();
    c.bench_function("update, no index value changes, batches of 100", |b| {
        b.iter_custom(|count| write(&mut writer, &mut places, count, BATCH, false));
    });
    c.bench_function("update, no index value changes, one by one", |b| {
        b.iter_custom(|count| write(&mut writer, &mut places, count, 1, false));
    });
    c.bench_function("update, one label changes, batches of 100", |b| {
        b.iter_custom(|count| write(&mut writer, &mut places, count, BATCH, true));
    });
    drop(store);
    beside_a_reader(c, &mut writer, &mut places);
}

/// So many updates are timed with the reader before as many are timed without it. It is enough for the caches to forget
/// how it was before, and done soon enough for what else the machine does to slow both.
const SLICE: u64 = 20_000;

/// Times updates while a reader lists all without pause, in turns with updates while it sleeps.
fn beside_a_reader(
    c: &mut Criterion,
    writer: &mut StoreWriter<Pod>,
    places: &mut impl Iterator<Item = usize>,
) {
    let store = writer.store();
    let (reads, stop, lists) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let mut ratios = Vec::new();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !stop.load(Relaxed) {
                if reads.load(Relaxed) {
                    black_box(store.snapshot().list(&Selector::everything()).len());
                    lists.fetch_add(1, Relaxed);
                } else {
                    thread::park();
                }
            }
        });
        // The first updates after the reader has come or gone are not timed.
        let mut time = |count, with_reader| {
            reads.store(with_reader, Relaxed);
            reader.thread().unpark();
            thread::sleep(Duration::from_millis(5));
            write(writer, places, AHEAD, BATCH, false);
            write(writer, places, count, BATCH, false)
        };
        let mut group = c.benchmark_group("beside a reader");
        group.sample_size(10).measurement_time(Duration::from_secs(20));
        group.bench_function("update, batches of 100, while it lists all", |b| {
            b.iter_custom(|count| {
                let mut took = Duration::ZERO;
                for slice in (0..count).step_by(SLICE as usize).map(|done| SLICE.min(count - done)) {
                    let (beside, alone) = (time(slice, true), time(slice, false));
                    took += beside;
                    if slice == SLICE {
                        ratios.push(alone.as_secs_f64() / beside.as_secs_f64());
                    }
                }
                took
            });
        });
        group.finish();
        stop.store(true, Relaxed);
        reader.thread().unpark();
    });
    if !ratios.is_empty() {
        ratios.sort_unstable_by(f64::total_cmp);
        let loss = |part: usize| 100.0 * (1.0 - ratios[ratios.len() * part / 4]);
        println!(
            "loss of throughput by the reader: {:.0} % (median of {} pairs; quartiles {:.0} and {:.0} %; {lists:?} lists)\n",
            loss(2),
            ratios.len(),
            loss(3),
            loss(1)
        );
    }
}

fn replace(c: &mut Criterion) {
    let mut group = c.benchmark_group("replace");
    group.sample_size(10);
    let list = pods();
    group.bench_function("100,000 into an empty store", |b| {
        b.iter_batched(
            || (store::new::<Pod>(), list.clone()),
            |((mut writer, store), list)| {
                writer.write(|batch| batch.replace(Replacement::new(list, 1)));
                assert_eq!(store.len(), PODS);
                (writer, store)
            },
            BatchSize::PerIteration,
        );
    });
    let (mut writer, _store) = filled();
    group.bench_function("100,000 over the same 100,000", |b| {
        b.iter_batched(
            || list.clone(),
            |list| writer.write(|batch| batch.replace(Replacement::new(list, 2))),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
    targets = reads, writes, replace
}
criterion_main!(benches);
