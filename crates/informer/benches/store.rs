//! What the store costs: `cargo bench -p informer --bench store`.
//!
//! 100,000 pods with five labels each; namespace index, label index and one user index (the pod's node).
//! Updates go to places without pattern, in batches of 100, announced as the informer does it; building the objects
//! and freeing the ones they replace is not timed.

#[allow(dead_code, reason = "each bench uses its part")]
mod support;

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
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
                    store.expect(&updates[next..]);
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
    // What a busy second core costs on this machine in any case, and what it costs when it reads this store.
    let (_other_writer, other) = filled();
    for (whose, read) in [("another store", &other), ("this store", &store)] {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    black_box(read.snapshot().list(&Selector::everything()).len());
                }
            });
            c.bench_function(&format!("update, batches of 100, while a reader lists all of {whose}"), |b| {
                b.iter_custom(|count| write(&mut writer, &mut places, count, BATCH, false));
            });
            stop.store(true, Relaxed);
        });
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
