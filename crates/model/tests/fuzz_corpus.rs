//! The fuzz targets on stable Rust: every seed, and random mutations of them.
//!
//! `INFORMER_FUZZ_INPUTS` sets how many mutations each target gets, `INFORMER_SEED` replays a run.

#[path = "../../../fuzz/checks.rs"]
mod checks;

use std::{fs, panic, path::Path};

use informer_testing::{number, random_seed};

const DEFAULT_INPUTS: u64 = 100_000;

/// A small generator: what matters is that a seed gives the same mutations everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}

/// One to four small changes, or a piece of another input.
fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    const SIGNS: &[u8] = b",=!()<>\\/.[]*'\" {}:0az\n\x00\xff\x1f";
    let mut input = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        match random.below(6) {
            0 => input.insert(at, SIGNS[random.below(SIGNS.len())]),
            1 => input.insert(at, random.below(256) as u8),
            2 if at < input.len() => drop(input.remove(at)),
            3 if at < input.len() => input[at] ^= 1 << random.below(8),
            4 => input.truncate(at),
            _ => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                input.extend_from_slice(&other[from..]);
            }
        }
    }
    input
}

fn run(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("seeds").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("a readable file")).collect();
    assert!(!corpus.is_empty(), "{} has no inputs", folder.display());
    corpus.iter().for_each(|input| check(input));

    let seed = number("INFORMER_SEED").unwrap_or_else(random_seed);
    let mut random = Random(seed);
    for _ in 0..number("INFORMER_FUZZ_INPUTS").unwrap_or(DEFAULT_INPUTS) {
        let input = mutate(&mut random, &corpus);
        if let Err(failure) = panic::catch_unwind(|| check(&input)) {
            eprintln!(
                "{target}: {:?} fails; replay with INFORMER_SEED={seed}",
                input.escape_ascii().to_string()
            );
            panic::resume_unwind(failure);
        }
    }
}

#[test]
fn selector() {
    run("selector", checks::selector);
}

#[test]
fn field_selector() {
    run("field_selector", checks::field_selector);
}

#[test]
fn key() {
    run("key", checks::key);
}

#[test]
fn framing() {
    run("framing", checks::framing);
}
