//! Whole lives of a controller program, each made by a seed: one to three processes with an election, a factory and a controller, each in a
//! runtime of its own, so that it can be killed wherever it waits, or stand still while another one leads. Requests and answers are late or
//! lost, watches hang and break, versions expire, users change their mind. Every write that the server accepts is judged at once, and in the end
//! everything is as users want it.
//!
//! `INFORMER_SIM_SEEDS=N` plays N of them, `INFORMER_SIM_SEED=x` plays the one of that seed and prints it.

mod course;
mod process;
mod program;
mod terms;
mod users;
mod way;
mod world;

use std::panic::{self, AssertUnwindSafe};

use informer_testing::number;

use course::Course;
use world::{Counts, World};

const LIVES: u64 = 150;

#[test]
fn c40_c41_whatever_happens_no_old_term_writes_no_finalizer_is_lost_and_every_object_converges() {
    if let Some(seed) = number("INFORMER_SIM_SEED") {
        let (counts, story) = played(seed);
        println!("{}\n{counts:?}", story.join("\n"));
        return;
    }
    let mut all = Counts::default();
    for seed in 0..number("INFORMER_SIM_SEEDS").unwrap_or(LIVES) {
        all = all + played(seed).0;
    }
    println!("{all:?}");
    assert!(all.kills > 0 && all.pauses > 0 && all.lost > 0 && all.late > 0, "nothing was tried: {all:?}");
}

#[test]
fn a_seed_makes_the_same_life_every_time() {
    for seed in [3, 14, 15] {
        assert_eq!(played(seed).0, played(seed).0, "seed {seed}");
    }
}

/// Plays a life; if it fails, the test fails with the seed and the story.
fn played(seed: u64) -> (Counts, Vec<String>) {
    let world = World::new(seed);
    let played = panic::catch_unwind(AssertUnwindSafe(|| Course::new(seed, &world).play()));
    let story = world.take_story();
    match played {
        Ok(counts) => (counts, story),
        Err(failure) => {
            let why = failure.downcast_ref::<String>().map(String::as_str);
            let why = why.or_else(|| failure.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            panic!(
                "{}\nseed {seed}: {why}\nreplay with INFORMER_SIM_SEED={seed} cargo test -p informer --test it lives",
                story.join("\n")
            );
        }
    }
}
