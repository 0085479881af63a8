//! Whole lives of an informer, each made by a seed: a server that misbehaves in every way it can, handlers that
//! come, go, dawdle and panic, and time that passes. In the end everything has to be right again.
//!
//! `INFORMER_SIM_SEEDS=N` plays N lives, `INFORMER_SIM_SEED=x` plays the one of that seed and prints it.

mod ending;
mod listeners;
mod misbehaviour;
mod moment;
use crate::support;
use crate::support::validator;
mod way;
mod world;

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Mutex, Once,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use informer_testing::number;
use world::World;

const LIVES: u64 = 2_000;

/// What happened in a life, line by line. It outlives a panic of the one that writes it.
type Story = Arc<Mutex<Vec<String>>>;

#[test]
fn after_all_misbehaviour_the_cache_and_every_handler_end_with_what_the_server_has() {
    if let Some(seed) = number("INFORMER_SIM_SEED") {
        let story = checked(seed);
        println!("{}", story.join("\n"));
        return;
    }
    let lives = number("INFORMER_SIM_SEEDS").unwrap_or(LIVES);
    let next = AtomicU64::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < lives)
                {
                    let life = panic::catch_unwind(|| checked(seed));
                    if let Err(failure) = life {
                        next.store(lives, Ordering::Relaxed);
                        panic::resume_unwind(failure);
                    }
                }
            });
        }
    });
}

#[test]
fn a_seed_tells_the_same_story_every_time() {
    for seed in [3, 14, 159] {
        let (first, second) = (checked(seed), checked(seed));
        let differs = first.iter().zip(&second).position(|(one, other)| one != other);
        if let Some(at) = differs {
            panic!("seed {seed}: line {at} is {:?} and then {:?}", first[at], second[at]);
        }
        assert_eq!(first.len(), second.len());
    }
}

/// Plays a life; if it fails, the test fails with the seed and the story.
fn checked(seed: u64) -> Vec<String> {
    keep_planned_panics_quiet();
    let story = Story::default();
    let played = panic::catch_unwind(AssertUnwindSafe(|| play(seed, &story)));
    let story = story.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
    if let Err(failure) = played {
        let why = failure.downcast_ref::<String>().map(String::as_str);
        let why = why.or_else(|| failure.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        panic!(
            "seed {seed}: {why}\n{}\nreplay with INFORMER_SIM_SEED={seed} cargo test -p informer --test it simulation",
            story.join("\n")
        );
    }
    story
}

fn play(seed: u64, story: &Story) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        // The world has its turn after each task, as tasks have: it writes while others are in the middle of things.
        .event_interval(1)
        .build()
        .expect("a runtime");
    runtime.block_on(async { World::new(seed, Arc::clone(story)).live().await });
}

/// Handlers and sources panic here by the thousand: only what was not planned is worth a line.
fn keep_planned_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<String>().is_none_or(|text| text != listeners::PLANNED) {
                usual(info);
            }
        }));
    });
}
