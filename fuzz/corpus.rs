//! Fuzz targets whose inputs are requests, on stable Rust: every seed, and random mutations of them.
//!
//! `INFORMER_FUZZ_INPUTS` sets how many mutations there are, `INFORMER_SEED` replays a run.

use std::{fs, panic, path::Path};

use informer_testing::{number, random_seed};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const DEFAULT_INPUTS: u64 = 2_000;
const SEPARATOR: u8 = 0x1e;

/// Runs a check on the seeds of a target and on mutations of them. `pieces` are parts of requests: put anywhere,
/// they make more sense than single bytes.
pub(crate) fn run(target: &str, pieces: &[&str], check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("seeds").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("a readable file")).collect();
    assert!(!corpus.is_empty(), "{} has no inputs", folder.display());
    corpus.iter().for_each(|input| check(input));

    let seed = number("INFORMER_SEED").unwrap_or_else(random_seed);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    for _ in 0..number("INFORMER_FUZZ_INPUTS").unwrap_or(DEFAULT_INPUTS) {
        let input = mutate(&mut random, &corpus, pieces);
        if let Err(failure) = panic::catch_unwind(|| check(&input)) {
            let input = input.escape_ascii();
            eprintln!("{target}: \"{input}\" fails; replay with INFORMER_SEED={seed}");
            panic::resume_unwind(failure);
        }
    }
}

/// One to six small changes of one input, or of the requests of two.
fn mutate(random: &mut Pcg64Mcg, corpus: &[Vec<u8>], pieces: &[&str]) -> Vec<u8> {
    let mut input = corpus[random.random_range(0..corpus.len())].clone();
    for _ in 0..random.random_range(1..=6) {
        let at = random.random_range(0..=input.len());
        match random.random_range(0..8) {
            0 => input.insert(at, random.random()),
            1 if at < input.len() => drop(input.remove(at)),
            2 if at < input.len() => input[at] ^= 1 << random.random_range(0..8),
            3 | 4 => {
                let piece = pieces[random.random_range(0..pieces.len())];
                input.splice(at..at, piece.bytes());
            }
            5 => {
                let end = (at + random.random_range(0..12)).min(input.len());
                input.drain(at..end);
            }
            6 => {
                let other: Vec<&[u8]> =
                    corpus[random.random_range(0..corpus.len())].split(|b| *b == SEPARATOR).collect();
                input.push(SEPARATOR);
                input.extend_from_slice(other[random.random_range(0..other.len())]);
            }
            _ => {
                let mut requests: Vec<Vec<u8>> =
                    input.split(|b| *b == SEPARATOR).map(<[u8]>::to_vec).collect();
                let (one, other) =
                    (random.random_range(0..requests.len()), random.random_range(0..requests.len()));
                requests.swap(one, other);
                input = requests.join(&SEPARATOR);
            }
        }
    }
    input
}
