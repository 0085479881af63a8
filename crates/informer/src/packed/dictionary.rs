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
    fmt, io, mem,
    sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
};

use zstd::zstd_safe::{CCtx, CDict, DCtx, DDict, SafeResult, compress_bound, get_error_name};

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
    /// What it is unpacked with. Without one, what is shorter than it was is compressed by itself.
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
    /// A training has ended.
    trained: Condvar,
}

/// The first dictionary of a kind, which is being trained.
pub(super) struct FirstTraining(Arc<Dictionaries>);

impl FirstTraining {
    /// Waits until it has been.
    pub(super) fn wait(&self) {
        let trains = |state: &mut State| state.training && state.current.is_none();
        drop(self.0.trained.wait_while(self.0.lock(), trains));
    }
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
    dictionaries(kind).pack(codec, bytes)
}

/// The first dictionary of a kind, if it is being trained now.
pub(super) fn first_training(kind: Kind) -> Option<FirstTraining> {
    let dictionaries = dictionaries(kind);
    let trains = {
        let state = dictionaries.lock();
        state.training && state.current.is_none()
    };
    trains.then_some(FirstTraining(dictionaries))
}

fn dictionaries(kind: Kind) -> Arc<Dictionaries> {
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(kinds.entry(kind).or_default())
}

impl Kept {
    /// As it is.
    pub(super) fn plain(codec: Codec, bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), dictionary: None, length: bytes.len() as u32, codec }
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How long it is unpacked.
    pub(super) fn length(&self) -> usize {
        self.length as usize
    }

    pub(super) fn codec(&self) -> Codec {
        self.codec
    }

    /// Whether it takes less than it is long.
    pub(super) fn is_compressed(&self) -> bool {
        self.bytes.len() < self.length()
    }

    /// The same, compressed by itself if it is not compressed and that makes it shorter.
    pub(super) fn compressed_alone(self) -> Self {
        if self.is_compressed() || self.length() > LONGEST {
            return self;
        }
        let compress =
            |context: &mut CCtx<'_>, into: &mut Vec<u8>, bytes: &[u8]| context.compress(into, bytes, LEVEL);
        compressed(self.codec, &self.bytes, None, compress)
    }

    /// Reads it as it was. Reading may read others.
    pub(super) fn read<R>(&self, read: impl FnOnce(Codec, &[u8]) -> Result<R, String>) -> Result<R, String> {
        if !self.is_compressed() {
            return read(self.codec, &self.bytes);
        }
        let mut plain = DECOMPRESSOR.with_borrow_mut(|(_, scratch)| mem::take(scratch));
        plain.clear();
        self.append(&mut plain)?;
        let outcome = read(self.codec, &plain);
        if plain.capacity() <= KEPT_SCRATCH {
            plain.clear();
            DECOMPRESSOR.with_borrow_mut(|(_, scratch)| *scratch = plain);
        }
        outcome
    }

    /// Writes it as it was behind what is there; where that fails, nothing.
    pub(super) fn append(&self, out: &mut Vec<u8>) -> Result<(), String> {
        if !self.is_compressed() {
            out.extend_from_slice(&self.bytes);
            return Ok(());
        }
        let before = out.len();
        // One byte more than is expected: what is longer is found out.
        out.reserve(self.length() + 1);
        let mut end = io::Cursor::new(&mut *out);
        end.set_position(before as u64);
        let unpacked = DECOMPRESSOR.with_borrow_mut(|(context, _)| match &self.dictionary {
            Some(dictionary) => context.decompress_using_ddict(&mut end, &self.bytes, dictionary),
            None => context.decompress(&mut end, &self.bytes),
        });
        let failure = match unpacked {
            Ok(found) if found == self.length() => return Ok(()),
            Ok(found) => format!("{found} bytes of {}", self.length),
            Err(code) => get_error_name(code).to_owned(),
        };
        out.truncate(before);
        Err(failure)
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
            _ => Kept::plain(codec, bytes),
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
            this.trained.notify_all();
        };
        if thread::Builder::new().name("informer-training".to_owned()).spawn(train).is_err() {
            state.trained(None);
        }
    }
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

    fn pack(&self, codec: Codec, bytes: &[u8]) -> Kept {
        compressed(codec, bytes, Some(&self.decompress), |context, into, bytes| {
            context.compress_using_cdict(into, bytes, &self.compress)
        })
    }
}

/// What does not become shorter, or cannot be compressed, stays as it is.
fn compressed(
    codec: Codec,
    bytes: &[u8],
    dictionary: Option<&Arc<DDict<'static>>>,
    compress: impl FnOnce(&mut CCtx<'_>, &mut Vec<u8>, &[u8]) -> SafeResult,
) -> Kept {
    COMPRESSOR.with_borrow_mut(|(context, scratch)| {
        scratch.clear();
        scratch.reserve(compress_bound(bytes.len()));
        let kept = match compress(context, scratch, bytes) {
            Ok(_) if scratch.len() < bytes.len() => Kept {
                bytes: scratch.as_slice().into(),
                dictionary: dictionary.cloned(),
                length: bytes.len() as u32,
                codec,
            },
            _ => Kept::plain(codec, bytes),
        };
        if scratch.capacity() > KEPT_SCRATCH {
            *scratch = Vec::new();
        }
        kept
    })
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
        let alone = Kept::plain(Codec::Json, object('a', 1).as_bytes()).compressed_alone();
        for whole in [whole, alone] {
            assert!(whole.is_compressed());
            for cut in 0..whole.bytes.len() {
                let damaged = Kept { bytes: whole.bytes[..cut].into(), ..whole.clone() };
                assert!(damaged.read(|_, _| Ok(())).is_err(), "cut at {cut}");
                let mut out = b"before".to_vec();
                assert!(damaged.append(&mut out).is_err() && out == b"before", "cut at {cut}");
            }
            for length in [whole.length - 1, whole.length + 1] {
                let damaged = Kept { length, ..whole.clone() };
                assert!(damaged.read(|_, _| Ok(())).is_err(), "of another length");
            }
        }
    }

    #[test]
    fn who_waits_for_the_first_dictionary_gets_it() {
        let dictionaries = Arc::<Dictionaries>::default();
        drop(feed(&dictionaries, 'a', TRAININGS[0].after));
        FirstTraining(Arc::clone(&dictionaries)).wait();
        assert_eq!(dictionaries.lock().trainings, 1);
        assert!(dictionaries.pack(Codec::Json, object('a', 1).as_bytes()).is_compressed());
        FirstTraining(dictionaries).wait();
    }

    #[test]
    fn what_is_compressed_by_itself_is_read_as_it_was() {
        let text = object('a', 1);
        let alone = Kept::plain(Codec::Json, text.as_bytes()).compressed_alone();
        assert!(alone.dictionary.is_none() && alone.bytes() < text.len(), "{alone:?}");
        let mut out = b"before ".to_vec();
        alone.append(&mut out).unwrap();
        assert_eq!(out, ["before ", &text].concat().as_bytes());
        agree(&[(text, alone.clone()), (object('a', 1), alone.compressed_alone())]);
        for short in ["", "{}"] {
            let kept = Kept::plain(Codec::Json, short.as_bytes()).compressed_alone();
            assert!(!kept.is_compressed() && kept.bytes() == short.len());
        }
    }
}
