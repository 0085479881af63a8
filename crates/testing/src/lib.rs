//! Test support of the workspace: random histories from a seed, fuzz targets, fixtures, deadlines.
//!
//! [`histories`] is how the property tests here run: many histories, a seed that is printed when one of
//! them fails, and four environment variables:
//!
//! - `INFORMER_SEED=N` replays the run of seed `N`, history by history;
//! - `INFORMER_RUN_SEED=N` is the seed where no other is named, instead of a random one: CI says the same twice;
//! - `INFORMER_HISTORIES=N` sets how many histories a run has (2,000 otherwise);
//! - `INFORMER_RUN_HISTORIES=N` is that number where no other is named: CI has 10,000.
//!
//! [`fuzz`] runs a fuzz target the same way, without libFuzzer.
//!
//! `socket` (a feature) sends requests and reads answers byte for byte.

mod deadline;
mod fixtures;
mod fuzz;
#[cfg(feature = "socket")]
pub mod socket;

use std::{env, fmt::Debug};

use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngSeed, TestCaseError, TestRunner},
};

pub use deadline::Deadline;
pub use fixtures::{custom_resource, widget, widgets};
pub use fuzz::fuzz;

/// How many histories a run has unless `INFORMER_HISTORIES` says otherwise.
pub const DEFAULT_HISTORIES: u32 = 2_000;

/// Checks a promise on many random histories, and on a failure shows the shortest one found and the seed.
///
/// # Panics
/// When `check` panics for one of the histories, or when an environment variable is not a number.
pub fn histories<S>(strategy: &S, check: impl Fn(S::Value))
where
    S: Strategy,
    S::Value: Debug,
{
    let seed = seed();
    let cases = number("INFORMER_HISTORIES").or_else(|| number("INFORMER_RUN_HISTORIES"));
    let cases = cases.map_or(DEFAULT_HISTORIES, |n| n.try_into().unwrap_or(u32::MAX));
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(strategy, |history| {
        check(history);
        Ok::<(), TestCaseError>(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}\nreplay with INFORMER_SEED={seed} INFORMER_HISTORIES={cases}");
    }
}

/// The seed of a run: the one to replay, the one that all runs are to have, or another one every time.
pub fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    let random = || RandomState::new().hash_one(std::process::id());
    number("INFORMER_SEED").or_else(|| number("INFORMER_RUN_SEED")).unwrap_or_else(random)
}

/// The number in an environment variable, if it is set.
///
/// # Panics
/// When it is set to something else.
pub fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.trim().parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{panic, sync::Mutex};

    #[test]
    fn a_failing_history_is_shrunk_and_its_seed_printed() {
        let failure =
            panic::catch_unwind(|| histories(&(0..1_000_000u32), |n| assert!(n < 4_321))).unwrap_err();
        let message = failure.downcast_ref::<String>().unwrap();
        assert!(message.contains("minimal failing input: 4321"), "{message}");
        assert!(message.contains("INFORMER_SEED="), "{message}");
    }

    #[test]
    fn every_history_is_checked() {
        let count = Mutex::new(0);
        histories(&(0..10u8), |_| *count.lock().unwrap() += 1);
        assert!(
            *count.lock().unwrap() >= number("INFORMER_HISTORIES").unwrap_or(u64::from(DEFAULT_HISTORIES))
        );
    }
}
