//! Ten thousand elections, each made by a seed: processes are paused, requests and answers are lost, clocks run
//! differently, wall clocks jump, the Lease is deleted, the server cannot be reached.
//!
//! `INFORMER_SIM_SEEDS=N` plays N elections, `INFORMER_SIM_SEED=x` plays the one of that seed and prints it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

use informer_testing::number;

use super::world::World;

const ELECTIONS: u64 = 12_000;

#[test]
fn f31_a_paused_leader_never_has_a_valid_fence_after_another_took_over() {
    if let Some(seed) = number("INFORMER_SIM_SEED") {
        println!("{}", story(seed).join("\n"));
        return;
    }
    let elections = number("INFORMER_SIM_SEEDS").unwrap_or(ELECTIONS);
    let [next, terms, writes, refused] = [const { AtomicU64::new(0) }; 4];
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Relaxed)).filter(|seed| *seed < elections) {
                    let mut world = World::new(seed, false);
                    if catch_unwind(AssertUnwindSafe(|| world.play())).is_err() {
                        next.store(elections, Relaxed);
                        panic!("seed {seed} failed:\n{}", story(seed).join("\n"));
                    }
                    terms.fetch_add(world.terms, Relaxed);
                    writes.fetch_add(world.writes, Relaxed);
                    refused.fetch_add(world.refused, Relaxed);
                }
            });
        }
    });
    let [terms, writes, refused] = [terms, writes, refused].map(AtomicU64::into_inner);
    println!("{elections} elections, {terms} terms, {writes} fenced writes, {refused} refused ones");
    assert!(terms > elections && writes > elections && refused > 0, "nothing was tried");
}

#[test]
fn a_seed_tells_the_same_election_every_time() {
    for seed in [3, 14, 159] {
        assert_eq!(story(seed), story(seed), "seed {seed}");
    }
}

/// What happens in the election of a seed, and how it fails if it does.
fn story(seed: u64) -> Vec<String> {
    let mut world = World::new(seed, true);
    let failure = catch_unwind(AssertUnwindSafe(|| world.play())).err();
    let mut lines = world.told();
    if let Some(failure) = failure {
        let why = failure.downcast_ref::<String>().map_or("a panic", String::as_str);
        lines.push(why.to_owned());
        lines.push(format!(
            "replay with INFORMER_SIM_SEED={seed} cargo test -p informer --test it leader::simulation -- --nocapture"
        ));
    }
    lines
}
