//! An object as the gateway keeps it: its JSON, as text or packed, and of packed ones beside that what is asked for most.
//!
//! In go objects as they come over the wire, through a [`Packing`]. Out comes their text: whole, or shown to a reader while it is
//! unpacked. What is small or does not become smaller stays text.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{LazyLock, Mutex, PoisonError},
};

use informer::{
    Packed, RawObject,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    kube::{
        Resource,
        core::{ApiResource, DynamicResourceScope},
    },
    packed::UnpackError,
    queue::Transform,
};
use informer_model::ObjectKey;
use informer_serving::json::Cursor;
use serde::{Deserialize, Deserializer};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

use super::beside::Beside;

/// What is longer than this is packed by itself where there is no dictionary: there are few of its kind, and they are large.
const LARGE: usize = 16 << 10;

/// Of so many objects of a kind none is packed with a dictionary.
const FEW: usize = 256;

/// Whether objects are kept packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Packing {
    /// Those of large resources, and large objects: what a dictionary pays for, or makes much smaller without one.
    #[default]
    Auto,
    /// All that become smaller by it.
    Always,
    /// None: their JSON is kept as text.
    Never,
}

/// An object.
#[derive(Clone)]
pub(crate) struct Stored(Body);

#[derive(Clone)]
enum Body {
    Plain(RawObject),
    Packed { packed: Packed<RawObject>, beside: Option<Beside> },
}

/// What objects take, or would take as text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sizes {
    pub(crate) objects: usize,
    /// Their JSON as text.
    pub(crate) plain: usize,
    /// As they are kept, with what stands beside packed ones.
    pub(crate) kept: usize,
    /// How many are packed.
    pub(crate) packed: usize,
}

impl Sizes {
    pub(crate) fn add(&mut self, stored: &Stored) {
        self.objects += 1;
        self.plain += stored.json_bytes();
        self.kept += stored.kept_bytes();
        self.packed += usize::from(stored.is_packed());
    }
}

impl Packing {
    /// What is done to each object before it is stored.
    pub(crate) fn transform(self) -> Option<Transform<Stored>> {
        let many = Many::default();
        let pack = move |key: &ObjectKey, stored: &mut Stored| match self {
            Self::Never => {}
            Self::Always => stored.pack(true, true),
            Self::Auto => {
                let of_many = many.contains(key, stored);
                stored.pack(of_many, stored.json_bytes() >= LARGE);
            }
        };
        (self != Self::Never).then(|| Transform::reshape(pack))
    }
}

/// The kinds of which there have been so many objects that a dictionary pays: one takes more than some hundred objects do. Few
/// objects that change often are not many.
#[derive(Default)]
struct Many(Mutex<HashMap<String, Seen>>);

enum Seen {
    /// These, by a hash of the key.
    Some(HashSet<u64>),
    Enough,
}

impl Many {
    fn contains(&self, key: &ObjectKey, stored: &Stored) -> bool {
        let kind = stored.with_json(kind_of);
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = kinds.entry(kind).or_insert_with(|| Seen::Some(HashSet::new()));
        if let Seen::Some(keys) = seen {
            keys.insert(HASHES.hash_one(key.as_str()));
            if keys.len() <= FEW {
                return false;
            }
            *seen = Seen::Enough;
        }
        true
    }
}

static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// What an object says it is, which is the first that it says.
fn kind_of(json: &str) -> String {
    let mut kind = [""; 2];
    let mut cursor = Cursor::new(json);
    let mut member = |begin| {
        cursor.eat(begin)?;
        let name = cursor.string()?;
        cursor.eat(b':')?;
        let value = cursor.value()?;
        match name {
            r#""apiVersion""# => kind[0] = value,
            r#""kind""# => kind[1] = value,
            _ => {}
        }
        kind.contains(&"").then_some(())
    };
    let mut more = member(b'{');
    while more.is_some() {
        more = member(b',');
    }
    kind.concat()
}

impl Stored {
    /// An object that is kept as text.
    pub(crate) fn plain(raw: RawObject) -> Self {
        Self(Body::Plain(raw))
    }

    /// Packs it, if that makes it smaller: with a dictionary of its kind, by itself, or with what there is of these.
    fn pack(&mut self, with_dictionary: bool, alone: bool) {
        let Body::Plain(raw) = &self.0 else { return };
        let is_smaller = |packed: &Packed<RawObject>| packed.is_compressed();
        let by_dictionary = with_dictionary.then(|| by_dictionary(raw)).filter(is_smaller);
        let packed = by_dictionary.or_else(|| alone.then(|| Packed::alone(raw)).filter(is_smaller));
        if let Some(packed) = packed {
            let beside = Beside::of(raw.json());
            self.0 = Body::Packed { packed, beside };
        }
    }

    pub(crate) fn is_packed(&self) -> bool {
        matches!(self.0, Body::Packed { .. })
    }

    /// The text, where it is kept as such.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.0 {
            Body::Plain(raw) => Some(raw.json()),
            Body::Packed { .. } => None,
        }
    }

    /// What stands beside a packed object.
    pub(crate) fn beside(&self) -> Option<&Beside> {
        match &self.0 {
            Body::Plain(_) => None,
            Body::Packed { beside, .. } => beside.as_ref(),
        }
    }

    /// Shows its JSON, in one line.
    pub(crate) fn with_json<R>(&self, mut read: impl FnMut(&str) -> R) -> R {
        match &self.0 {
            Body::Plain(raw) => read(raw.json()),
            Body::Packed { packed, .. } => {
                packed.with_json(&mut read).unwrap_or_else(|error| read(lost(&error)))
            }
        }
    }

    /// Shows the JSON of its metadata.
    pub(crate) fn with_metadata_json<R>(&self, mut read: impl FnMut(&str) -> R) -> R {
        match &self.0 {
            Body::Plain(raw) => read(raw.metadata_json()),
            Body::Packed { packed, .. } => {
                packed.with_metadata_json(&mut read).unwrap_or_else(|error| read(lost(&error)))
            }
        }
    }

    /// Its JSON, whichever way it is kept.
    #[cfg(test)]
    pub(crate) fn json(&self) -> String {
        self.with_json(str::to_owned)
    }

    /// Writes its JSON behind what is there.
    pub(crate) fn append_json(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Body::Plain(raw) => out.extend_from_slice(raw.json().as_bytes()),
            Body::Packed { packed, .. } => {
                if let Err(error) = packed.append_json(out) {
                    out.extend_from_slice(lost(&error).as_bytes());
                }
            }
        }
    }

    /// How long its JSON is.
    pub(crate) fn json_bytes(&self) -> usize {
        match &self.0 {
            Body::Plain(raw) => raw.json().len(),
            Body::Packed { packed, .. } => packed.json_bytes(),
        }
    }

    /// How many bytes are kept of it.
    pub(crate) fn kept_bytes(&self) -> usize {
        match &self.0 {
            Body::Plain(raw) => raw.json().len(),
            Body::Packed { packed, beside } => {
                packed.packed_bytes() + beside.as_ref().map_or(0, Beside::bytes)
            }
        }
    }
}

/// What is shown of an object whose bytes have been damaged in memory: nothing else can keep one from being unpacked.
fn lost(error: &UnpackError) -> &'static str {
    tracing::error!(%error, "an object is shown empty");
    "{}"
}

/// Packs an object with the dictionary of its kind. While the first one is trained it waits: thousands of objects would come
/// meanwhile and stay text.
fn by_dictionary(raw: &RawObject) -> Packed<RawObject> {
    let packed = Packed::of_json(raw);
    match Packed::first_training(raw).filter(|_| !packed.is_compressed()) {
        Some(training) => {
            blocking(|| training.wait());
            Packed::of_json(raw)
        }
        None => packed,
    }
}

/// Waits on this thread; other tasks of a runtime with several threads do not wait with it.
fn blocking(wait: impl FnOnce()) {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(wait),
        _ => wait(),
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stored({} of {} bytes)", self.kept_bytes(), self.json_bytes())
    }
}

impl<'de> Deserialize<'de> for Stored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawObject::deserialize(deserializer).map(Self::plain)
    }
}

impl Resource for Stored {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        RawObject::kind(resource)
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        RawObject::group(resource)
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        RawObject::version(resource)
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        RawObject::plural(resource)
    }

    fn meta(&self) -> &ObjectMeta {
        match &self.0 {
            Body::Plain(raw) => raw.meta(),
            Body::Packed { packed, .. } => packed.meta(),
        }
    }

    /// What stands beside a packed object may not be so any more.
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Body::Plain(raw) => raw.meta_mut(),
            Body::Packed { packed, beside } => {
                *beside = None;
                packed.meta_mut()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use informer::Object;

    use super::*;

    fn mk(kind: &str, number: usize, length: usize) -> Stored {
        let text: String = (0..length / 4).map(|word| format!("{:03} ", word * 7_919 % 997)).collect();
        let json = format!(
            r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{{"name":"m-{number}","uid":"u"}},"status":{{"phase":"{number}"}},"data":"{text}"}}"#
        );
        Stored::plain(RawObject::new(json).expect("an object"))
    }

    fn packed(stored: &Stored, packing: Packing) -> Stored {
        let transform = packing.transform().expect("something is packed");
        packed_by(&transform, stored)
    }

    /// As a transform leaves it.
    fn packed_by(transform: &Transform<Stored>, stored: &Stored) -> Stored {
        let object =
            transform.apply(Object::new(stored.clone()).expect("a name")).expect("it changes nothing");
        let packed = Stored::clone(&object);
        assert_eq!(packed.json(), stored.json());
        assert_eq!(packed.json_bytes(), stored.json_bytes());
        assert_eq!(packed.with_metadata_json(str::to_owned), stored.with_metadata_json(str::to_owned));
        let mut out = b"[".to_vec();
        packed.append_json(&mut out);
        assert_eq!(out, ["[", &stored.json()].concat().as_bytes());
        assert_eq!(packed.meta(), stored.meta());
        packed
    }

    #[test]
    fn small_resources_stay_text_and_large_objects_do_not() {
        let small = mk("Small", 1, 2_000);
        assert!(!packed(&small, Packing::Auto).is_packed());
        let always = packed(&small, Packing::Always);
        assert!(always.is_packed() && always.kept_bytes() < small.kept_bytes());
        let large = packed(&mk("Small", 1, LARGE), Packing::Auto);
        assert!(large.is_packed() && large.kept_bytes() < LARGE / 2);
        let tiny = r#"{"metadata":{"name":"a"}}"#.to_owned();
        let tiny = Stored::plain(RawObject::new(tiny).expect("an object"));
        assert!(!packed(&tiny, Packing::Always).is_packed(), "it would become larger");
        assert!(Packing::Never.transform().is_none());
    }

    #[test]
    fn of_a_large_resource_only_the_samples_stay_text() {
        let transform = Packing::Auto.transform().expect("something is packed");
        let objects: Vec<Stored> =
            (0..2_000).map(|number| packed_by(&transform, &mk("Large", number, 4_000))).collect();
        let as_text = objects.iter().filter(|object| !object.is_packed()).count();
        assert!(
            (FEW..FEW + 300).contains(&as_text),
            "{as_text} stay text: nobody went on while a dictionary was trained"
        );
        let mut sizes = Sizes::default();
        objects.iter().for_each(|object| sizes.add(object));
        assert_eq!((sizes.objects, sizes.packed), (2_000, 2_000 - as_text));
        assert!(sizes.kept < sizes.plain / 2, "{sizes:?}");
    }

    #[test]
    fn few_objects_that_change_often_stay_text() {
        let transform = Packing::Auto.transform().expect("something is packed");
        for number in 0..2_000 {
            let lease = mk("Lease", number % FEW, 2_000);
            assert!(!packed_by(&transform, &lease).is_packed(), "{number}");
        }
    }

    #[test]
    fn an_object_says_what_it_is() {
        for (json, kind) in [
            (r#"{"kind":"Pod","apiVersion":"v1","metadata":{}}"#, r#""v1""Pod""#),
            (r#" { "apiVersion" : "v1" , "x" : {"kind":"no"} , "kind" : "Pod" }"#, r#""v1""Pod""#),
            (r#"{"kind":"Pod"}"#, r#""Pod""#),
            ("{}", ""),
            (r#"{"kind"#, ""),
        ] {
            assert_eq!(kind_of(json), kind, "{json}");
        }
    }

    #[test]
    fn what_is_changed_in_the_metadata_does_not_stand_beside_any_more() {
        let mut stored = packed(&mk("Small", 1, 2_000), Packing::Always);
        assert!(stored.beside().is_some());
        stored.meta_mut().name = Some("other".into());
        assert!(stored.beside().is_none());
        assert!(stored.json().contains(r#""name":"other""#) && stored.json_bytes() == stored.json().len());
    }
}
