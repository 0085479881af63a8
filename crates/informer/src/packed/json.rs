//! Objects that are kept as their JSON, packed: for programs that pass them on as text.

use std::{any::TypeId, fmt};

use super::{
    Body, Packed, UnpackError,
    dictionary::{self, FirstTraining, Kept, Kind},
};
use crate::{
    RawObject,
    wire::{self, Codec, Frame},
};

/// The first dictionary of a kind is being trained, which takes some tens of milliseconds: objects of this kind that are packed
/// after that are compressed.
pub struct Training(FirstTraining);

impl Training {
    /// Blocks this thread until it has been trained.
    pub fn wait(&self) {
        self.0.wait();
    }
}

impl fmt::Debug for Training {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Training")
    }
}

impl Packed<RawObject> {
    /// Packs the JSON of an object, whatever it came as: reading it as text is then unpacking it and nothing more.
    ///
    /// ```
    /// use informer::{Packed, RawObject};
    ///
    /// let pod = RawObject::new(r#"{"kind":"Pod","metadata":{"name":"web-0"}}"#.to_owned())?;
    /// let packed = Packed::of_json(&pod);
    /// assert_eq!(packed.json_bytes(), pod.json().len());
    /// assert_eq!(packed.with_json(str::to_owned)?, pod.json());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_json(raw: &RawObject) -> Self {
        Self::pack(Codec::Json, raw.json().as_bytes())
    }

    /// Compresses the JSON of an object by itself, to a half or a tenth of its length: for large objects of which there are few. It is
    /// no sample for a dictionary.
    pub fn alone(raw: &RawObject) -> Self {
        Self::of(Body::Kept(Kept::plain(Codec::Json, raw.json().as_bytes()).compressed_alone()))
    }

    /// Whether the first dictionary for objects of this kind is being trained. Who packs many can wait for it, so that no more
    /// than the samples stays uncompressed.
    pub fn first_training(raw: &RawObject) -> Option<Training> {
        let named = wire::kind_of(Frame { codec: Codec::Json, bytes: raw.json().as_bytes() });
        dictionary::first_training(Kind { objects: TypeId::of::<RawObject>(), named }).map(Training)
    }

    /// Whether it takes less than its JSON.
    pub fn is_compressed(&self) -> bool {
        matches!(&self.body, Body::Kept(kept) if kept.is_compressed())
    }

    /// How long the JSON is. What was packed as JSON need not be unpacked for that.
    pub fn json_bytes(&self) -> usize {
        match &self.body {
            Body::Kept(kept) if kept.codec() == Codec::Json => kept.length(),
            _ => self.with_json(str::len).unwrap_or_default(),
        }
    }

    /// Shows the object's JSON. It is unpacked into a buffer that the thread keeps.
    pub fn with_json<R>(&self, read: impl FnOnce(&str) -> R) -> Result<R, UnpackError> {
        match &self.body {
            Body::Kept(kept) => kept.read(|codec, bytes| match codec {
                Codec::Json => std::str::from_utf8(bytes).map(read).map_err(|error| error.to_string()),
                Codec::Protobuf => {
                    wire::decode(Frame { codec, bytes }).map(|raw: RawObject| read(raw.json()))
                }
            }),
            Body::Changed(raw) => Ok(read(raw.json())),
        }
        .map_err(UnpackError)
    }

    /// Shows the JSON of `metadata`; empty if there is none.
    pub fn with_metadata_json<R>(&self, read: impl FnOnce(&str) -> R) -> Result<R, UnpackError> {
        self.with_json(|json| {
            read(wire::metadata_of(json.as_bytes()).and_then(|range| json.get(range)).unwrap_or_default())
        })
    }

    /// Writes the object's JSON behind what is there; where that fails, nothing.
    pub fn append_json(&self, out: &mut Vec<u8>) -> Result<(), UnpackError> {
        match &self.body {
            Body::Kept(kept) if kept.codec() == Codec::Json => kept.append(out).map_err(UnpackError),
            _ => self.with_json(|json| out.extend_from_slice(json.as_bytes())),
        }
    }
}
