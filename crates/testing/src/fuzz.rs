//! Fuzz targets on stable Rust.

use std::{fs, panic, path::Path};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::{number, seed};

/// What is between the requests of an input that consists of several.
const SEPARATOR: u8 = 0x1e;

/// Runs a check on every seed in `fuzz/seeds/<target>` and on random mutations of them. `pieces` are words of the
/// input's language: put anywhere, they make more sense than single bytes.
///
/// `INFORMER_FUZZ_INPUTS` sets how many mutations there are (otherwise `inputs`), `INFORMER_SEED` replays a run.
///
/// # Panics
/// When `check` does, after it printed the input and the seed; or when there are no seeds.
pub fn fuzz(target: &str, pieces: &[&str], inputs: u64, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("seeds").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("a readable file")).collect();
    assert!(!corpus.is_empty(), "{} has no inputs", folder.display());
    corpus.iter().for_each(|input| check(input));

    let seed = seed();
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    for _ in 0..number("INFORMER_FUZZ_INPUTS").unwrap_or(inputs) {
        let input = mutate(&mut random, &corpus, pieces);
        if let Err(failure) = panic::catch_unwind(|| check(&input)) {
            let input = input.escape_ascii();
            eprintln!("{target}: \"{input}\" fails; replay with INFORMER_SEED={seed}");
            panic::resume_unwind(failure);
        }
    }
}

/// One to six small changes of one input, some of which take from another.
fn mutate(random: &mut Pcg64Mcg, corpus: &[Vec<u8>], pieces: &[&str]) -> Vec<u8> {
    let mut input = any(random, corpus).clone();
    for _ in 0..random.random_range(1..=6) {
        let at = random.random_range(0..=input.len());
        match random.random_range(0..10) {
            0 => input.insert(at, random.random()),
            1 if at < input.len() => drop(input.remove(at)),
            2 if at < input.len() => input[at] ^= 1 << random.random_range(0..8),
            3 | 4 => drop(input.splice(at..at, any(random, pieces).bytes())),
            5 => {
                let end = (at + random.random_range(0..12)).min(input.len());
                input.drain(at..end);
            }
            6 => input.truncate(at),
            7 => {
                let other = any(random, corpus);
                input.extend_from_slice(&other[random.random_range(0..=other.len())..]);
            }
            8 => {
                let requests: Vec<&[u8]> = any(random, corpus).split(|b| *b == SEPARATOR).collect();
                input.push(SEPARATOR);
                input.extend_from_slice(requests[random.random_range(0..requests.len())]);
            }
            _ => {
                let mut requests: Vec<&[u8]> = input.split(|b| *b == SEPARATOR).collect();
                let last = requests.len() - 1;
                requests.swap(random.random_range(0..=last), random.random_range(0..=last));
                input = requests.join(&SEPARATOR);
            }
        }
    }
    input
}

fn any<'a, T>(random: &mut Pcg64Mcg, of: &'a [T]) -> &'a T {
    &of[random.random_range(0..of.len())]
}
