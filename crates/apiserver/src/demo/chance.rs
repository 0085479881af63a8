//! Where everything of a demo cluster that looks accidental comes from.
//!
//! A [`Seed`] and a place in the plan give a generator of their own, so that an object can be made at any
//! time, in any order and again, and is always the same.

use rand::{Rng, RngExt};
use rand_pcg::Pcg64Mcg;

/// The characters of generated names: no vowels, so that no words come out.
const NAME_CHARACTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// How many names of five such characters there are.
const SUFFIXES: u64 = 27_u64.pow(5);

/// What a generator is for. Two subjects never share numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject {
    Plan,
    Node,
    Namespace,
    Workload,
    Template,
    Revision,
    Volume,
    Endpoints,
    Pod,
    PodName,
    Event,
    Churn,
}

/// The number that a whole cluster follows from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seed(pub u64);

impl Seed {
    /// The generator for one thing: `a` and `b` number it within its subject.
    pub(super) fn chance(self, subject: Subject, a: u64, b: u64) -> Chance {
        let low = scatter(scatter(scatter(self.0) ^ subject as u64) ^ a);
        let high = scatter(low ^ b);
        Chance(Pcg64Mcg::new(u128::from(high) << 64 | u128::from(scatter(high ^ low))))
    }

    /// The first number of that generator as a uid.
    pub(super) fn uid(self, subject: Subject, a: u64, b: u64) -> String {
        self.chance(subject, a, b).uid()
    }

    /// The five characters that end the name of pod number `ordinal`. Within one `workload` and `group` (the
    /// hash of its template, or zero) they repeat only after millions of pods.
    pub(super) fn pod_suffix(self, workload: u64, group: u32, ordinal: u32) -> String {
        let start = self.chance(Subject::PodName, workload, group.into()).number();
        let position = (start % SUFFIXES + u64::from(ordinal) % SUFFIXES * 5_702_887) % SUFFIXES;
        let mut rest = position;
        let mut next = || {
            let digit = rest % 27;
            rest /= 27;
            name_character(digit)
        };
        (0..5).map(|_| next()).collect()
    }
}

/// A generator of numbers.
#[derive(Debug, Clone)]
pub(super) struct Chance(Pcg64Mcg);

impl Chance {
    pub(super) fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from zero up to, but without, `end`; zero if there is none.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.0.random_range(0..end) }
    }

    /// A number from `first` to `last`, both included.
    pub(super) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// True so many times in a hundred.
    pub(super) fn percent(&mut self, times: u64) -> bool {
        self.below(100) < times
    }

    pub(super) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let index = self.below(from.len() as u64) as usize;
        from.get(index).copied().unwrap_or_default()
    }

    /// A number of seconds up to `most`: small ones as often as large ones, as ages are.
    pub(super) fn age(&mut self, least: i64, most: i64) -> i64 {
        let room = u64::try_from(most - least).unwrap_or(0) >> self.below(8);
        least + self.below(room + 1) as i64
    }

    pub(super) fn uid(&mut self) -> String {
        let mut bytes = [0; 16];
        self.0.fill_bytes(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// `length` characters as in generated names.
    pub(super) fn name(&mut self, length: usize) -> String {
        (0..length).map(|_| name_character(self.below(27))).collect()
    }

    /// `length` hexadecimal digits, as in digests and container ids.
    pub(super) fn hex(&mut self, length: usize) -> String {
        let mut digits = String::with_capacity(length + 16);
        while digits.len() < length {
            digits.push_str(&format!("{:016x}", self.number()));
        }
        digits.truncate(length);
        digits
    }
}

/// The digits of a hash in the characters of generated names: `pod-template-hash` looks like this.
pub(super) fn hash_name(hash: u32) -> String {
    hash.to_string().bytes().map(|digit| name_character(u64::from(digit))).collect()
}

/// A hash of text that is the same everywhere and forever (FNV-1a).
pub(super) fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn name_character(number: u64) -> char {
    NAME_CHARACTERS.get((number % 27) as usize).map_or('b', |&byte| byte.into())
}

/// Spreads a number over all 64 bits (the finalizer of SplitMix64).
fn scatter(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn suffixes_of_one_workload_differ() {
        let seed = Seed(1);
        let names: HashSet<String> = (0..50_000).map(|ordinal| seed.pod_suffix(7, 3, ordinal)).collect();
        assert_eq!(names.len(), 50_000);
    }

    #[test]
    fn neighbours_have_nothing_in_common() {
        let uids: HashSet<String> = (0..100)
            .flat_map(|a| (0..100).map(move |b| Seed(0).uid(Subject::Pod, a, b)))
            .chain((0..100).map(|a| Seed(0).uid(Subject::Node, a, 0)))
            .chain((0..100).map(|a| Seed(1).uid(Subject::Pod, a, 0)))
            .collect();
        assert_eq!(uids.len(), 10_200);
    }

    #[test]
    fn empty_ranges_give_their_beginning() {
        let mut chance = Seed(0).chance(Subject::Plan, 0, 0);
        assert_eq!((chance.below(0), chance.between(5, 2), chance.age(60, 10)), (0, 5, 60));
        assert_eq!(chance.pick(&[]), "");
    }
}
