//! Messages as something that serde reads, by the schema.
//!
//! Whatever can be decoded from the JSON of an object can be decoded from its protobuf: the same names, the same
//! values, and what never came is there where JSON has it. Only what is asked for is looked at, the rest is stepped
//! over. Nothing is collected on the way, so fields must come in the order of their numbers, as every server writes
//! them; where they do not, that is the error [`Order`](Kind::Order), and the bytes are put in [order](super::order)
//! first.

mod collections;
mod value;

use std::cell::Cell;

use serde::{
    Deserializer,
    de::{DeserializeSeed, MapAccess, Visitor},
    forward_to_deserialize_any,
};

use super::{
    JSON_TEXT, OBJECT_BYTES,
    envelope::write_envelope,
    error::{Failure, ProtobufErrorKind as Kind, failure},
    json,
    schema::{Absent, Count, Field, Message, MessageId, SCHEMA, Type},
    wire::{Reader, Tag},
};
use collections::{message_after, pass};
use value::{Source, Value, Word, is_zero};

pub(super) use value::visit_field;

/// What an object may take that comes from a few bytes, and what each byte adds. Two bytes can stand for an empty
/// Deployment, which is ten JSON objects; a body full of them would take a thousand times its length.
const MEMORY_FOR_ANY: usize = 1 << 20;
const MEMORY_FOR_BYTE: usize = 128;

/// About what a JSON object takes with its first entry, what an entry adds, and what a list and an item take.
const OBJECT: usize = 512;
const ENTRY: usize = 128;
const LIST: usize = 128;
const ITEM: usize = 64;

/// The field of an object's metadata that is left out unless it is asked for.
pub(super) const MANAGED_FIELDS: u16 = 17;

/// The longest buffer that a thread keeps to write JSON into.
const KEPT_SCRATCH: usize = 64 << 10;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// How far reading may go, for all that is in one object.
pub(super) struct Bounds {
    memory_left: Cell<usize>,
    depth: usize,
    managed_fields: bool,
}

impl Bounds {
    pub(super) fn new(body_length: usize, depth: usize, managed_fields: bool) -> Self {
        let memory = body_length.saturating_mul(MEMORY_FOR_BYTE).saturating_add(MEMORY_FOR_ANY);
        Self { memory_left: Cell::new(memory), depth, managed_fields }
    }
}

/// Where reading is.
#[derive(Clone, Copy)]
pub(super) struct Context<'s> {
    bounds: &'s Bounds,
    depth: usize,
}

impl<'s> Context<'s> {
    pub(super) fn new(bounds: &'s Bounds) -> Self {
        Self { bounds, depth: 0 }
    }

    /// In a message that begins at `position`.
    #[inline]
    fn deeper(self, position: usize) -> Result<Self, Failure> {
        if self.depth >= self.bounds.depth {
            return Err(failure(position, Kind::Depth));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    #[inline]
    fn take(self, memory: usize, position: usize) -> Result<(), Failure> {
        let left = self.bounds.memory_left.get().checked_sub(memory);
        self.bounds.memory_left.set(left.ok_or_else(|| failure(position, Kind::Memory))?);
        Ok(())
    }
}

/// A message whose JSON is an object. At the top it may say what it is.
pub(super) struct Object<'a, 's> {
    pub(super) body: Reader<'a>,
    pub(super) message: MessageId,
    pub(super) types: Option<Types<'a>>,
    /// What its envelope says; nothing of a message inside an object.
    pub(super) envelope: Types<'a>,
    pub(super) context: Context<'s>,
}

/// The apiVersion and kind of an object, each unless it is empty.
pub(super) type Types<'a> = [&'a str; 2];

impl<'de> Deserializer<'de> for Object<'de, '_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_map(Fields::of(self)?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let write = match name {
            JSON_TEXT => |object: Self, text: &mut Vec<u8>| json::Text(text).deserialize(object),
            OBJECT_BYTES => |object: Self, bytes: &mut Vec<u8>| {
                let managed_fields = object.context.bounds.managed_fields;
                write_envelope(object.envelope, object.body, managed_fields, bytes)
            },
            _ => return visitor.visit_newtype_struct(self),
        };
        // The next object is about as long as this one.
        let mut written = SCRATCH.take();
        written.clear();
        write(self, &mut written)?;
        let visited = visitor.visit_bytes(&written);
        if written.capacity() <= KEPT_SCRATCH {
            SCRATCH.set(written);
        }
        visited
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The fields of a message, and those of messages that are embedded in it.
struct Fields<'a, 's> {
    level: Level<'a>,
    /// The messages around the one that is read, innermost last.
    outer: Vec<Level<'a>>,
    /// What is still to be told of the object's types.
    types: Option<Types<'a>>,
    value: Next<'a>,
    context: Context<'s>,
}

/// How far one message has been read.
#[derive(Clone, Copy)]
struct Level<'a> {
    reader: Reader<'a>,
    message: &'static Message,
    fields: &'static [Field],
    /// The first field that has not been told.
    next: usize,
    /// A tag that has been read, but is for a later field.
    ahead: Option<Tag>,
}

/// The value of the key that was told.
#[derive(Clone, Copy)]
enum Next<'a> {
    Type(&'a str),
    Sent(&'static Field, Tag),
    Absent(&'static Field),
}

impl<'a> Level<'a> {
    #[inline]
    fn new(reader: Reader<'a>, message: MessageId) -> Self {
        let message = SCHEMA.message(message);
        Self { reader, message, fields: SCHEMA.fields(message), next: 0, ahead: None }
    }

    /// The next field: one that came, or before it one that did not and must be told. None at the end.
    #[inline]
    fn step(&mut self) -> Result<Option<Next<'a>>, Failure> {
        loop {
            let tag = match self.ahead.take() {
                Some(tag) => Some(tag),
                None => self.reader.tag()?,
            };
            while let Some(field) = self.fields.get(self.next) {
                match tag {
                    Some(tag) if u32::from(field.number) > tag.number => break,
                    Some(tag) if u32::from(field.number) == tag.number => {
                        self.next += 1;
                        return Ok(Some(Next::Sent(field, tag)));
                    }
                    _ => {}
                }
                self.next += 1;
                if field.absent != Absent::Nothing {
                    self.ahead = tag;
                    return Ok(Some(Next::Absent(field)));
                }
            }
            let Some(tag) = tag else { return Ok(None) };
            let told = self.fields.get(..self.next).unwrap_or_default();
            if told.binary_search_by_key(&tag.number, |field| u32::from(field.number)).is_ok() {
                return Err(failure(tag.position, Kind::Order));
            }
            self.reader.skip(tag)?;
        }
    }
}

impl<'a, 's> Fields<'a, 's> {
    #[inline]
    fn of(object: Object<'a, 's>) -> Result<Self, Failure> {
        let Object { body, message, types, context, .. } = object;
        let level = Level::new(body, message);
        let context =
            context.deeper(body.position()).map_err(|e| e.within(0, || level.message.full_name()))?;
        context.take(OBJECT, body.position())?;
        Ok(Self { level, outer: Vec::new(), types, value: Next::Type(""), context })
    }

    /// The name of the next field that is told.
    fn name(&mut self) -> Result<Option<&'static str>, Failure> {
        if let Some(types) = &mut self.types {
            for (text, name) in types.iter_mut().zip(["apiVersion", "kind"]) {
                if !text.is_empty() {
                    self.value = Next::Type(std::mem::take(text));
                    return Ok(Some(name));
                }
            }
            self.types = None;
        }
        loop {
            let message = self.level.message;
            let in_message = |error: Failure| error.within(0, || message.full_name());
            let Some(next) = self.level.step().map_err(in_message)? else {
                let Some(outer) = self.outer.pop() else { return Ok(None) };
                self.level = outer;
                continue;
            };
            let field = match next {
                Next::Absent(field) | Next::Sent(field, _) => field,
                Next::Type(_) => continue,
            };
            let reader = &mut self.level.reader;
            let in_field =
                |error: Failure| error.within(0, || format!("{}.{}", message.full_name(), field.name));
            match (field.count, field.r#type, next) {
                (Count::Embedded, Type::Message(id), next) => {
                    let inner = match next {
                        Next::Sent(_, tag) => message_after(reader, tag).map_err(in_field)?,
                        _ => Reader::new(&[]),
                    };
                    self.outer.push(std::mem::replace(&mut self.level, Level::new(inner, id)));
                }
                (_, _, Next::Sent(_, tag))
                    if field.number == MANAGED_FIELDS
                        && self.context.depth == 2
                        && !self.context.bounds.managed_fields
                        && message.name == "ObjectMeta" =>
                {
                    pass(reader, tag, field.count).map_err(in_field)?;
                }
                (Count::One, r#type, Next::Sent(_, tag))
                    if field.omits_zero && is_zero(*reader, tag, r#type).map_err(in_field)? =>
                {
                    reader.skip(tag).map_err(in_field)?;
                }
                _ => {
                    self.value = next;
                    return Ok(Some(field.name));
                }
            }
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'de, '_> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some(name) = self.name()? else { return Ok(None) };
        self.context.take(ENTRY, self.level.reader.position())?;
        seed.deserialize(Word(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let Self { context, .. } = *self;
        let Level { reader, message, .. } = &mut self.level;
        let position = reader.position();
        let (field, source) = match self.value {
            Next::Type(text) => return seed.deserialize(Word(text)),
            Next::Sent(field, tag) => (field, Source::Sent(reader, tag)),
            Next::Absent(field) => (field, Source::Absent(field.absent, position)),
        };
        seed.deserialize(Value { source, count: field.count, r#type: field.r#type, context })
            .map_err(|error| error.within(position, || format!("{}.{}", message.full_name(), field.name)))
    }
}
