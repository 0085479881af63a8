//! Writing while others list everything, without pause.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::Args;
use informer::{
    Object,
    model::Selector,
    store::{self, Batch, StoreWriter},
};
use k8s_openapi::api::core::v1::Pod;
use serde::Serialize;

use super::labels::pod;

/// An informer writes what has arrived in one go; this many under load.
const BATCH: usize = 100;

#[derive(Args)]
pub(crate) struct Shape {
    /// How many objects there are
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    objects: usize,
    /// How many list
    #[arg(long, value_name = "N", default_value_t = 1)]
    readers: usize,
    /// How long to write, with and without them
    #[arg(long, value_name = "N", default_value_t = 3)]
    seconds: u64,
}

#[derive(Serialize)]
pub(super) struct Figures {
    writes_per_s_alone: f64,
    writes_per_s_with_readers: f64,
    lists_per_s: f64,
}

/// Writes for a while, in places without pattern and announced as the informer does it: updates for each second. Two
/// states of each object are ready.
fn write(writer: &mut StoreWriter<Pod>, states: &[Vec<Object<Pod>>; 2], time: Duration) -> f64 {
    let objects = states[0].len();
    let update = |n: usize| &states[(n / objects + 1) % 2][n * 7_919 % objects];
    let (began, mut written) = (Instant::now(), 0);
    while began.elapsed() < time {
        writer.write(|store| {
            let end = written + BATCH;
            for first in (written..end).step_by(Batch::<Pod>::AHEAD) {
                let next = first..end.min(first + Batch::<Pod>::AHEAD);
                store.prefetch(next.clone().map(update));
                next.for_each(|n| drop(store.insert(update(n).clone())));
            }
        });
        written += BATCH;
    }
    written as f64 / began.elapsed().as_secs_f64()
}

pub(super) fn run(&Shape { objects, readers, seconds }: &Shape) -> Result<Figures> {
    let state = |version: u64| -> Result<Vec<Object<Pod>>> {
        (0..objects.max(1)).map(|n| pod(n, version + n as u64, &format!("app-{}", n % 100))).collect()
    };
    let states = [state(1_000_000)?, state(2_000_000)?];
    let (mut writer, store) = store::new();
    let time = Duration::from_secs(seconds);
    // Once over everything before the clock runs.
    writer.write(|batch| states[0].iter().for_each(|object| drop(batch.insert(object.clone()))));
    let alone = write(&mut writer, &states, time);
    let (stop, lists) = (AtomicBool::new(false), AtomicU64::new(0));
    let with_readers = thread::scope(|scope| {
        for _ in 0..readers {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    black_box(store.list(&Selector::everything()).len());
                    lists.fetch_add(1, Relaxed);
                }
            });
        }
        let rate = write(&mut writer, &states, time);
        stop.store(true, Relaxed);
        rate
    });
    Ok(Figures {
        writes_per_s_alone: alone,
        writes_per_s_with_readers: with_readers,
        lists_per_s: lists.load(Relaxed) as f64 / time.as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_goes_on_while_a_reader_lists() {
        let figures = run(&Shape { objects: 1_000, readers: 1, seconds: 1 }).unwrap();
        assert!(figures.writes_per_s_with_readers > 0.0 && figures.lists_per_s > 0.0);
    }
}
