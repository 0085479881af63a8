//! Objects kept as they came over the wire, compressed, and decoded when they are read.
//!
//! In go the bytes of one object, protobuf or JSON, while it is decoded from the wire; they are compressed at once with a
//! dictionary that was trained on objects of the same kind. Out comes the object in whatever type is asked for.
//! What an informer looks at all the time (key, version, labels) stands beside it in [`Object`](crate::Object) and is never
//! unpacked.

mod dictionary;
mod json;

use std::{
    any::TypeId,
    borrow::Cow,
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use informer_model::OBJECT_BYTES;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, DeserializeOwned, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    RawObject,
    wire::{self, Codec, Frame},
};
use dictionary::{Kept, Kind};

pub use dictionary::{PackedKind, packed_kinds};
pub use json::Training;

/// An object that is kept packed: compressed, as it came over the wire, a tenth or less of what it takes decoded.
///
/// With a factory it is `factory.packed::<Pod>()`. Getting, listing, selecting by label and counting cost what they cost
/// with any other type; reading an object unpacks it, which takes a few microseconds:
///
/// - [`decode`](Self::decode) is the whole object, shared by all who ask for it while one of them holds it (in an `Arc` of a
///   `Box`, so that nothing of its size stays when they let go);
/// - [`project`](Self::project) is some of its fields, in any struct that can be deserialized.
///
/// ```
/// use informer::{Object, Packed};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let json = r#"{"metadata":{"name":"web-0","labels":{"app":"shop"}},"spec":{"nodeName":"n1","containers":[]}}"#;
/// let pod = Object::new(serde_json::from_str::<Packed<Pod>>(json)?)?;
/// assert_eq!(pod.labels().get("app"), Some("shop"));
/// assert_eq!(pod.decode()?.spec.as_ref().unwrap().node_name.as_deref(), Some("n1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The first objects of a kind, half a megabyte of them, are kept as they came, to train a dictionary on; a new one is trained
/// when it would do better. [`packed_kinds`] says what that gains. An object whose body does not decode is found when it is
/// read: then that is the error. `managedFields` are dropped before packing, as they are for every type.
///
/// A transform changes it by [`replace`](Self::replace). Metadata that is changed through `meta_mut()` leaves the object
/// unpacked, as JSON.
pub struct Packed<K> {
    body: Body,
    /// Of most objects nobody asks for anything.
    asked: OnceLock<Box<Asked<K>>>,
}

/// What somebody asked for.
struct Asked<K> {
    /// The whole object, while somebody holds it.
    whole: Mutex<Weak<Box<K>>>,
    meta: OnceLock<ObjectMeta>,
}

impl<K> Default for Asked<K> {
    fn default() -> Self {
        Self { whole: Mutex::default(), meta: OnceLock::new() }
    }
}

enum Body {
    Kept(Kept),
    /// With changed metadata.
    Changed(Box<RawObject>),
}

/// A packed object could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a packed object cannot be read: {0}")]
pub struct UnpackError(String);

impl<K> Packed<K> {
    /// The object, which is shared: while somebody holds it, everybody gets the same one.
    #[expect(
        clippy::redundant_allocation,
        reason = "a `Weak` keeps what an `Arc` allocates: here a pointer, and not a `K`"
    )]
    pub fn decode(&self) -> Result<Arc<Box<K>>, UnpackError>
    where
        K: DeserializeOwned,
    {
        // Whoever comes meanwhile waits for this one instead of decoding it too.
        let mut whole = self.asked().whole.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(object) = whole.upgrade() {
            return Ok(object);
        }
        let object = Arc::new(Box::new(self.project()?));
        *whole = Arc::downgrade(&object);
        Ok(object)
    }

    /// What a `T` has of the object, and no more is decoded.
    ///
    /// ```
    /// # use informer::Packed;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// #[derive(serde::Deserialize)]
    /// #[serde(rename_all = "camelCase")]
    /// struct Placed { spec: Spec }
    /// #[derive(serde::Deserialize)]
    /// #[serde(rename_all = "camelCase")]
    /// struct Spec { node_name: Option<String> }
    /// # fn look(pod: &Packed<Pod>) -> Result<(), Box<dyn std::error::Error>> {
    /// let node = pod.project::<Placed>()?.spec.node_name;
    /// # Ok(()) }
    /// ```
    pub fn project<T: DeserializeOwned>(&self) -> Result<T, UnpackError> {
        match &self.body {
            Body::Kept(kept) => kept.read(|codec, bytes| wire::decode(Frame { codec, bytes })),
            Body::Changed(raw) => wire::decode(Frame { codec: Codec::Json, bytes: raw.json().as_bytes() }),
        }
        .map_err(UnpackError)
    }

    /// How many bytes the object takes, packed or not.
    pub fn packed_bytes(&self) -> usize {
        match &self.body {
            Body::Kept(kept) => kept.bytes(),
            Body::Changed(raw) => raw.json().len(),
        }
    }

    fn of(body: Body) -> Self {
        Self { body, asked: OnceLock::new() }
    }

    fn asked(&self) -> &Asked<K> {
        self.asked.get_or_init(Box::default)
    }
}

impl<K: 'static> Packed<K> {
    /// Packs an object.
    pub fn new(object: &K) -> serde_json::Result<Self>
    where
        K: Serialize,
    {
        Ok(Self::pack(Codec::Json, &serde_json::to_vec(object)?))
    }

    /// Puts another body in the place of this one, as a transform does it with what it has decoded and changed.
    ///
    /// ```
    /// # use informer::Packed;
    /// use informer::queue::Transform;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let without_status = Transform::new(|packed: &mut Packed<Pod>| {
    ///     let mut pod = (**packed.decode()?).clone();
    ///     pod.status = None;
    ///     packed.replace(&pod)?;
    ///     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// });
    /// # let _ = without_status;
    /// ```
    pub fn replace(&mut self, object: &K) -> serde_json::Result<()>
    where
        K: Serialize,
    {
        *self = Self::new(object)?;
        Ok(())
    }

    fn pack(codec: Codec, bytes: &[u8]) -> Self {
        let kind = Kind { objects: TypeId::of::<K>(), named: wire::kind_of(Frame { codec, bytes }) };
        Self::of(Body::Kept(dictionary::pack(kind, codec, bytes)))
    }
}

impl<K> Clone for Packed<K> {
    fn clone(&self) -> Self {
        Self::of(match &self.body {
            Body::Kept(kept) => Body::Kept(kept.clone()),
            Body::Changed(raw) => Body::Changed(raw.clone()),
        })
    }
}

impl<K> fmt::Debug for Packed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packed({} bytes)", self.packed_bytes())
    }
}

impl<'de, K: 'static> Deserialize<'de> for Packed<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(OBJECT_BYTES, Bytes(PhantomData))
    }
}

/// Takes an object as it came.
struct Bytes<K>(PhantomData<fn() -> K>);

impl<'de, K: 'static> Visitor<'de> for Bytes<K> {
    type Value = Packed<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Packed<K>, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        if !json.get().starts_with('{') {
            return Err(de::Error::invalid_type(de::Unexpected::Other("something else"), &self));
        }
        Ok(Packed::pack(Codec::Json, json.get().as_bytes()))
    }

    fn visit_bytes<E: de::Error>(self, protobuf: &[u8]) -> Result<Packed<K>, E> {
        Ok(Packed::pack(Codec::Protobuf, protobuf))
    }
}

/// The metadata of any object.
#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    metadata: Option<ObjectMeta>,
}

impl<K: Resource + 'static> Resource for Packed<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(kind: &K::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &K::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &K::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &K::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn api_version(kind: &K::DynamicType) -> Cow<'_, str> {
        K::api_version(kind)
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    /// It is decoded when it is asked for, and kept from then on. What cannot be decoded is as if it were not there.
    fn meta(&self) -> &ObjectMeta {
        match &self.body {
            Body::Changed(raw) => raw.meta(),
            Body::Kept(_) => self.asked().meta.get_or_init(|| {
                self.project().ok().and_then(|object: Metadata| object.metadata).unwrap_or_default()
            }),
        }
    }

    /// Unpacks the object. What is changed there is changed in what it decodes to.
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        if let Body::Kept(_) = &self.body
            && let Ok(raw) = self.project::<RawObject>()
        {
            self.body = Body::Changed(Box::new(raw));
        }
        self.asked.take();
        match &mut self.body {
            Body::Changed(raw) => raw.meta_mut(),
            // What cannot be read stays an error for whoever reads it.
            Body::Kept(_) => {
                let meta = OnceLock::from(ObjectMeta::default());
                self.asked = OnceLock::from(Box::new(Asked { meta, ..Asked::default() }));
                let asked = self.asked.get_mut().and_then(|asked| asked.meta.get_mut());
                asked.expect("it was set just now")
            }
        }
    }
}
