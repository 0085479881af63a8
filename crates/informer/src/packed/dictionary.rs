//! Compressing objects with a dictionary for each kind, trained on objects of that kind.
//!
//! A dictionary belongs to a kind and to the whole process, so that fifty informers of fifty namespaces share one. The first
//! objects are samples and stay as they are. Training takes some tens of milliseconds, on a thread of its own. It is done once
//! soon, then when so many objects have come that a choice of them shows how they differ, and again when new objects
//! compress clearly worse than the first ones did. An object keeps the dictionary alive that it needs.

use std::{
    any::TypeId,
    cell::RefCell,
    collections::HashMap,
    fmt, mem,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
};

use zstd::zstd_safe::{CCtx, CDict, DCtx, DDict, compress_bound, get_error_name};

use crate::wire::Codec;

/// The size of a dictionary, which is what zstd takes by default.
const DICTIONARY: usize = 112 << 10;
/// How hard is tried: level 3 takes 25,000 more instructions for a pod, and makes 5 % fewer bytes of generated ones.
const LEVEL: i32 = 1;
/// After how many objects of a kind a dictionary is trained, each time on one of so many: the first soon, the others on
/// choices that are spread over more and more.
const TRAININGS: [Training; 3] = [
    Training { after: 256, one_of: 1 },
    Training { after: 8_192, one_of: 16 },
    Training { after: 131_072, one_of: 256 },
];
/// Later trainings.
const AGAIN: Training = Training { after: 4_096, one_of: 4 };
/// The most bytes of samples, and the least: a dictionary with its tables takes 0.7 MB, which must pay.
const MOST_SAMPLES: usize = 2 << 20;
const LEAST_SAMPLES: usize = 512 << 10;
/// Of how many objects the ratio is compared.
const WINDOW: u32 = 2_048;
/// By how much worse the ratio must be that a dictionary is trained again.
const DECAY: f64 = 1.25;
/// An object that is longer than this is not compressed.
const LONGEST: usize = 64 << 20;
/// The longest buffer that a thread keeps.
const KEPT_SCRATCH: usize = 256 << 10;

struct Training {
    after: u32,
    one_of: u32,
}

thread_local! {
    static COMPRESSOR: RefCell<(CCtx<'static>, Vec<u8>)> = RefCell::new((CCtx::create(), Vec::new()));
    static DECOMPRESSOR: RefCell<(DCtx<'static>, Vec<u8>)> = RefCell::new((DCtx::create(), Vec::new()));
}

static KINDS: LazyLock<Mutex<HashMap<Kind, Arc<Dictionaries>>>> = LazyLock::new(Mutex::default);

/// What shares a dictionary.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) objects: TypeId,
    /// What the object says it is.
    pub(super) named: String,
}

/// An object's bytes.
#[derive(Clone)]
pub(super) struct Kept {
    bytes: Box<[u8]>,
    /// What it is unpacked with; none where it is not compressed.
    dictionary: Option<Arc<DDict<'static>>>,
    /// How long it is unpacked.
    length: u32,
    codec: Codec,
}

/// What packing has gained for a kind, over all objects of it that were packed in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackedKind {
    /// `v1/Pod`; empty for objects that do not say what they are.
    pub kind: String,
    /// How many objects were packed.
    pub objects: u64,
    /// How long they were.
    pub plain_bytes: u64,
    /// How long they are.
    pub packed_bytes: u64,
    /// How often a dictionary was trained.
    pub trainings: u64,
    /// Whether one is being trained now.
    pub training: bool,
    /// What the newest dictionary takes.
    pub dictionary_bytes: usize,
}

#[derive(Default)]
struct Dictionaries {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Dictionary>>,
    samples: Vec<u8>,
    lengths: Vec<usize>,
    /// A dictionary is being trained.
    training: bool,
    /// How many trainings there were, and how many objects since the last.
    trainings: u64,
    seen: u32,
    /// Bytes of the window that is open, plain and packed, and the ratio of the first one with this dictionary.
    window: (u32, u64, u64),
    ratio: Option<f64>,
    /// Whether that ratio is not reached any more.
    decayed: bool,
    objects: u64,
    plain: u64,
    packed: u64,
}

struct Dictionary {
    compress: CDict<'static>,
    decompress: Arc<DDict<'static>>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes of {:?}", self.bytes.len(), self.length, self.codec)
    }
}

/// What packing has gained in this process, by kind.
pub fn packed_kinds() -> Vec<PackedKind> {
    let kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all: Vec<PackedKind> = kinds.iter().map(|(kind, dictionaries)| dictionaries.told(kind)).collect();
    all.sort_by(|one, other| one.kind.cmp(&other.kind));
    all
}

/// Packs an object.
pub(super) fn pack(kind: Kind, codec: Codec, bytes: &[u8]) -> Kept {
    let dictionaries = {
        let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(kinds.entry(kind).or_default())
    };
    dictionaries.pack(codec, bytes)
}

impl Kept {
    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Reads it as it was. Reading may read others.
    pub(super) fn read<R>(&self, read: impl FnOnce(Codec, &[u8]) -> Result<R, String>) -> Result<R, String> {
        let Some(dictionary) = &self.dictionary else { return read(self.codec, &self.bytes) };
        let mut plain = DECOMPRESSOR.with_borrow_mut(|(context, scratch)| {
            let mut plain = mem::take(scratch);
            plain.clear();
            plain.reserve(self.length as usize);
            context
                .decompress_using_ddict(&mut plain, &self.bytes, dictionary)
                .map_err(|code| get_error_name(code).to_owned())?;
            let (found, length) = (plain.len(), self.length);
            if found == length as usize { Ok(plain) } else { Err(format!("{found} bytes of {length}")) }
        })?;
        let outcome = read(self.codec, &plain);
        if plain.capacity() <= KEPT_SCRATCH {
            plain.clear();
            DECOMPRESSOR.with_borrow_mut(|(_, scratch)| *scratch = plain);
        }
        outcome
    }
}

impl Dictionaries {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self, kind: &Kind) -> PackedKind {
        let state = self.lock();
        let State { objects, plain: plain_bytes, packed: packed_bytes, trainings, training, .. } = *state;
        let dictionary_bytes = state.current.as_ref().map_or(0, |dictionary| dictionary.bytes());
        let kind = kind.named.clone();
        PackedKind { kind, objects, plain_bytes, packed_bytes, trainings, training, dictionary_bytes }
    }

    fn pack(self: &Arc<Self>, codec: Codec, bytes: &[u8]) -> Kept {
        let current = {
            let mut state = self.lock();
            if state.sample(bytes) {
                self.train(&mut state);
            }
            state.current.clone()
        };
        let kept = match &current {
            Some(dictionary) if bytes.len() <= LONGEST => dictionary.pack(codec, bytes),
            _ => plain(codec, bytes),
        };
        self.lock().count(bytes.len(), kept.bytes.len(), current.is_some());
        kept
    }

    /// Trains a dictionary beside what goes on. What fails is tried again with later samples.
    fn train(self: &Arc<Self>, state: &mut State) {
        let (samples, lengths) = (mem::take(&mut state.samples), mem::take(&mut state.lengths));
        state.training = true;
        let this = Arc::clone(self);
        let train = move || {
            let trained = zstd::dict::from_continuous(&samples, &lengths, DICTIONARY);
            this.lock().trained(trained.ok().map(|dictionary| Dictionary::new(&dictionary)));
        };
        if thread::Builder::new().name("informer-training".to_owned()).spawn(train).is_err() {
            state.trained(None);
        }
    }
}

fn plain(codec: Codec, bytes: &[u8]) -> Kept {
    Kept { bytes: bytes.into(), dictionary: None, length: bytes.len() as u32, codec }
}

impl State {
    /// Whether the next training is due with this object.
    fn sample(&mut self, bytes: &[u8]) -> bool {
        let planned = usize::try_from(self.trainings).ok().and_then(|done| TRAININGS.get(done));
        let training = match planned {
            _ if self.decayed => &AGAIN,
            Some(planned) => planned,
            None => return false,
        };
        self.seen = self.seen.saturating_add(1);
        let room = MOST_SAMPLES - self.samples.len();
        if self.seen.is_multiple_of(training.one_of) && bytes.len() <= room.min(DICTIONARY) {
            self.samples.extend_from_slice(bytes);
            self.lengths.push(bytes.len());
        }
        !self.training && self.seen >= training.after && self.samples.len() >= LEAST_SAMPLES
    }

    fn trained(&mut self, dictionary: Option<Dictionary>) {
        (self.training, self.decayed, self.seen, self.ratio) = (false, false, 0, None);
        self.window = (0, 0, 0);
        self.trainings += 1;
        self.samples = Vec::new();
        self.lengths = Vec::new();
        if let Some(dictionary) = dictionary {
            self.current = Some(Arc::new(dictionary));
        }
    }

    fn count(&mut self, plain: usize, packed: usize, compressed: bool) {
        let (plain, packed) = (plain as u64, packed as u64);
        self.objects += 1;
        self.plain += plain;
        self.packed += packed;
        if !compressed {
            return;
        }
        let (objects, plain_before, packed_before) = self.window;
        self.window = (objects + 1, plain_before + plain, packed_before + packed);
        if objects + 1 < WINDOW {
            return;
        }
        let (_, plain, packed) = mem::take(&mut self.window);
        let ratio = packed as f64 / plain.max(1) as f64;
        let first = *self.ratio.get_or_insert(ratio);
        if ratio > first * DECAY && !self.decayed {
            // What was kept for another training does not show what changed.
            (self.decayed, self.seen) = (true, 0);
            self.samples.clear();
            self.lengths.clear();
        }
    }
}

impl Dictionary {
    fn new(dictionary: &[u8]) -> Self {
        Self { compress: CDict::create(dictionary, LEVEL), decompress: Arc::new(DDict::create(dictionary)) }
    }

    fn bytes(&self) -> usize {
        self.compress.sizeof() + self.decompress.sizeof()
    }

    /// What does not become shorter, or cannot be compressed, stays as it is.
    fn pack(&self, codec: Codec, bytes: &[u8]) -> Kept {
        COMPRESSOR.with_borrow_mut(|(context, scratch)| {
            scratch.clear();
            scratch.reserve(compress_bound(bytes.len()));
            let packed = context.compress_using_cdict(scratch, bytes, &self.compress);
            let kept = match packed {
                Ok(_) if scratch.len() < bytes.len() => Kept {
                    bytes: scratch.as_slice().into(),
                    dictionary: Some(Arc::clone(&self.decompress)),
                    length: bytes.len() as u32,
                    codec,
                },
                _ => plain(codec, bytes),
            };
            if scratch.capacity() > KEPT_SCRATCH {
                *scratch = Vec::new();
            }
            kept
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Something like an object, of one of two sorts that have nothing in common.
    fn object(sort: char, number: u32) -> String {
        let words = (0..400).map(|word| format!("{sort}{} ", (word * 7_919 + 31 * (number % 5)) % 9_973));
        format!("{}{number}", words.collect::<String>())
    }

    fn feed(dictionaries: &Arc<Dictionaries>, sort: char, objects: u32) -> Vec<(String, Kept)> {
        let pack = |number| {
            let text = object(sort, number);
            let kept = dictionaries.pack(Codec::Json, text.as_bytes());
            (text, kept)
        };
        (0..objects).map(pack).collect()
    }

    fn trained(dictionaries: &Dictionaries, times: u64) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while dictionaries.lock().trainings < times {
            assert!(Instant::now() < deadline, "no {times} dictionaries");
            thread::yield_now();
        }
    }

    fn agree(objects: &[(String, Kept)]) {
        for (text, kept) in objects {
            kept.read(|codec, bytes| {
                assert_eq!((codec, bytes), (Codec::Json, text.as_bytes()));
                Ok(())
            })
            .unwrap();
        }
    }

    #[test]
    fn a_dictionary_is_trained_soon_then_on_a_choice_and_again_when_the_ratio_decays() {
        let dictionaries = Arc::<Dictionaries>::default();
        let first = feed(&dictionaries, 'a', TRAININGS[0].after);
        assert!(first.iter().all(|(_, kept)| kept.dictionary.is_none()), "samples stay as they are");
        trained(&dictionaries, 1);
        let second = feed(&dictionaries, 'a', TRAININGS[1].after);
        assert!(second.iter().all(|(text, kept)| kept.bytes() * 3 < text.len()));
        trained(&dictionaries, 2);
        let third = feed(&dictionaries, 'a', 3 * WINDOW);
        assert!(!dictionaries.lock().decayed);
        let used = |kept: &Kept| Arc::downgrade(kept.dictionary.as_ref().unwrap());
        let [early, late] = [&second, &third].map(|objects| used(&objects[0].1));
        let other = feed(&dictionaries, 'b', WINDOW + AGAIN.after);
        trained(&dictionaries, 3);
        let last = feed(&dictionaries, 'b', WINDOW);
        let sum = |objects: &[(String, Kept)]| objects.iter().map(|(_, kept)| kept.bytes()).sum::<usize>();
        let size = WINDOW as usize;
        assert!(sum(&last[..size]) * 2 < sum(&other[..size]), "it learns the other sort");
        [&first, &second, &third, &other, &last].into_iter().for_each(|objects| agree(objects));
        assert!(early.upgrade().is_some());
        drop(second);
        assert!(early.upgrade().is_none() && late.upgrade().is_some(), "it lives as long as it is needed");
    }

    #[test]
    fn what_does_not_become_shorter_stays_as_it_is() {
        let dictionaries = Arc::<Dictionaries>::default();
        drop(feed(&dictionaries, 'a', TRAININGS[0].after));
        trained(&dictionaries, 1);
        for text in ["", "{}", "\u{1}\u{2}"] {
            let kept = dictionaries.pack(Codec::Json, text.as_bytes());
            assert!(kept.dictionary.is_none() && kept.bytes() == text.len());
            agree(&[(text.to_owned(), kept)]);
        }
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        let dictionaries = Arc::<Dictionaries>::default();
        drop(feed(&dictionaries, 'a', TRAININGS[0].after));
        trained(&dictionaries, 1);
        let whole = dictionaries.pack(Codec::Json, object('a', 1).as_bytes());
        for cut in 0..whole.bytes.len() {
            let damaged = Kept { bytes: whole.bytes[..cut].into(), ..whole.clone() };
            assert!(damaged.read(|_, _| Ok(())).is_err(), "cut at {cut}");
        }
    }
}
