//! Messages as something that serde reads, by the schema.
//!
//! Whatever can be decoded from the JSON of an object can be decoded from its protobuf: the same names, the same
//! values, and what never came is there where JSON has it. Only what is asked for is looked at, the rest is stepped
//! over. Nothing is collected on the way, so fields must come in the order of their numbers, as every server writes
//! them; where they do not, that is the error [`Order`](Kind::Order), and the bytes are put in [order](super::order)
//! first.

use std::cell::Cell;

use serde::{
    Deserializer, de,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor, value::BorrowedStrDeserializer},
    forward_to_deserialize_any,
};

use super::{
    JSON_TEXT, OBJECT_BYTES,
    envelope::write_envelope,
    error::{Failure, ProtobufErrorKind as Kind, failure},
    form, json,
    schema::{Absent, Count, Field, Form, Message, MessageId, SCHEMA, Type},
    text::base64,
    wire::{Reader, Tag, WireType},
};

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
        for (text, name) in self.types.iter_mut().flatten().zip(["apiVersion", "kind"]) {
            if !text.is_empty() {
                self.value = Next::Type(std::mem::take(text));
                return Ok(Some(name));
            }
        }
        self.types = None;
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

/// One value.
struct Value<'r, 'a, 's> {
    source: Source<'r, 'a>,
    count: Count,
    r#type: Type,
    context: Context<'s>,
}

/// Where a value comes from.
enum Source<'r, 'a> {
    /// It stands after this tag.
    Sent(&'r mut Reader<'a>, Tag),
    /// It did not come, and would stand here.
    Absent(Absent, usize),
}

impl<'de> Deserializer<'de> for Value<'_, 'de, '_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let Self { source, count, r#type, context } = self;
        match (source, count) {
            (Source::Sent(reader, tag), Count::List) => {
                context.take(LIST, tag.position)?;
                let mut items = Items { reader, tag: Some(tag), packed: None, r#type, context };
                let value = visitor.visit_seq(&mut items)?;
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(value)
            }
            (Source::Sent(reader, tag), Count::Map) => {
                context.take(OBJECT, tag.position)?;
                let mut entries = Entries { reader, tag: Some(tag), value: None, r#type, context };
                let value = visitor.visit_map(&mut entries)?;
                while entries.next_key::<IgnoredAny>()?.is_some() {}
                Ok(value)
            }
            (Source::Sent(reader, tag), _) => one(reader, tag, r#type, context, visitor),
            (Source::Absent(Absent::EmptyList, position), _) => {
                context.take(LIST, position)?;
                visitor.visit_seq(Nothing)
            }
            (Source::Absent(Absent::Zero, position), _) => zero(r#type, position, context, visitor),
            (Source::Absent(..), _) => visitor.visit_unit(),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.is_null()? { self.deserialize_ignored_any(Null(visitor)) } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if let Source::Sent(reader, tag) = self.source {
            pass(reader, tag, self.count)?;
        }
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match (self.source, self.r#type) {
            (Source::Sent(reader, tag), Type::Text) if self.count == Count::One => {
                tag.expect(WireType::Delimited)?;
                visitor.visit_enum(BorrowedStrDeserializer::new(reader.text()?))
            }
            (Source::Absent(Absent::Zero, _), Type::Text) => {
                visitor.visit_enum(BorrowedStrDeserializer::new(""))
            }
            // Unions of objects come as any other value does.
            (source, _) => Self { source, ..self }.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier
    }
}

impl Value<'_, '_, '_> {
    fn is_null(&self) -> Result<bool, Failure> {
        match (&self.source, self.count, self.r#type) {
            (Source::Absent(Absent::Null, _), ..) => Ok(true),
            (Source::Absent(Absent::Zero, _), Count::One, Type::Message(id)) => {
                Ok(SCHEMA.message(id).form.is_null_when_empty())
            }
            (Source::Sent(reader, tag), Count::One, Type::Message(id)) => form::is_null(reader, *tag, id),
            _ => Ok(false),
        }
    }
}

/// A text, which may be wanted as something that is there, or in a newtype.
struct Word<'a>(&'a str);

impl<'de> Deserializer<'de> for Word<'de> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_enum(BorrowedStrDeserializer::new(self.0))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A visitor of an option that finds none, when what is there has been passed.
struct Null<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for Null<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.expecting(f)
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }
}

/// The value after a tag, whatever was there before.
fn one<'de, V: Visitor<'de>>(
    reader: &mut Reader<'de>,
    tag: Tag,
    r#type: Type,
    context: Context<'_>,
    visitor: V,
) -> Result<V::Value, Failure> {
    tag.expect(match r#type {
        Type::Bool | Type::Int32 | Type::Int64 => WireType::Varint,
        Type::Double => WireType::Fixed64,
        Type::Text | Type::Bytes | Type::Texts | Type::Message(_) => WireType::Delimited,
    })?;
    match r#type {
        Type::Bool => visitor.visit_bool(reader.varint()? != 0),
        // Negative numbers come with all 64 bits; the upper half of others is ignored.
        Type::Int32 => visitor.visit_i64(i64::from(reader.varint()? as i32)),
        Type::Int64 => visitor.visit_i64(reader.varint()? as i64),
        Type::Double => {
            let value = reader.double()?;
            match whole(value) {
                Some(whole) => visitor.visit_i64(whole),
                None if value.is_finite() => visitor.visit_f64(value),
                None => Err(failure(tag.position, Kind::Number)),
            }
        }
        Type::Text => visitor.visit_borrowed_str(reader.text()?),
        Type::Bytes => visitor.visit_string(base64(reader.delimited()?.rest())),
        Type::Texts => {
            context.take(LIST, tag.position)?;
            visitor.visit_seq(Texts { reader: reader.delimited()?, context })
        }
        Type::Message(id) => {
            let body = reader.delimited()?;
            match SCHEMA.message(id).form {
                Form::Object => visitor.visit_map(Fields::of(Object {
                    body,
                    message: id,
                    types: None,
                    envelope: [""; 2],
                    context,
                })?),
                _ => form::visit(body, id, context, visitor),
            }
        }
    }
}

/// What JSON shows for a value of which nothing came.
fn zero<'de, V: Visitor<'de>>(
    r#type: Type,
    position: usize,
    context: Context<'_>,
    visitor: V,
) -> Result<V::Value, Failure> {
    match r#type {
        Type::Bool => visitor.visit_bool(false),
        Type::Int32 | Type::Int64 | Type::Double => visitor.visit_i64(0),
        Type::Text | Type::Bytes => visitor.visit_borrowed_str(""),
        Type::Texts => visitor.visit_seq(Nothing),
        Type::Message(id) => {
            let nothing = Reader::nothing_at(position);
            match SCHEMA.message(id).form {
                Form::Object => visitor.visit_map(Fields::of(Object {
                    body: nothing,
                    message: id,
                    types: None,
                    envelope: [""; 2],
                    context,
                })?),
                _ => form::visit(nothing, id, context, visitor),
            }
        }
    }
}

/// A field of a message that stands for one of its fields: as it came, wherever it came in the message.
pub(super) fn visit_field<'de, V: Visitor<'de>>(
    reader: &mut Reader<'de>,
    tag: Tag,
    field: &Field,
    context: Context<'_>,
    visitor: V,
) -> Result<V::Value, Failure> {
    let context = context.deeper(tag.position)?;
    let source = Source::Sent(reader, tag);
    Value { source, count: field.count, r#type: field.r#type, context }.deserialize_any(visitor)
}

/// Whether a value is one that JSON leaves out.
fn is_zero(mut reader: Reader<'_>, tag: Tag, r#type: Type) -> Result<bool, Failure> {
    Ok(match (tag.wire, r#type) {
        (WireType::Varint, Type::Bool | Type::Int64) => reader.varint()? == 0,
        (WireType::Varint, Type::Int32) => reader.varint()? as i32 == 0,
        (WireType::Fixed64, Type::Double) => reader.double()? == 0.0,
        (WireType::Delimited, Type::Text | Type::Bytes) => reader.delimited()?.is_at_end(),
        (_, Type::Message(id)) => form::is_null(&reader, tag, id)?,
        _ => false,
    })
}

/// Steps over a value: of lists and maps, over all that follow each other.
fn pass(reader: &mut Reader<'_>, mut tag: Tag, count: Count) -> Result<(), Failure> {
    loop {
        reader.skip(tag)?;
        match count {
            Count::List | Count::Map => match again(reader, tag)? {
                Some(next) => tag = next,
                None => return Ok(()),
            },
            Count::One | Count::Embedded => return Ok(()),
        }
    }
}

/// The next tag, if it is of the same field.
fn again(reader: &mut Reader<'_>, tag: Tag) -> Result<Option<Tag>, Failure> {
    let mut ahead = *reader;
    let next = ahead.tag()?.filter(|next| next.number == tag.number);
    if next.is_some() {
        *reader = ahead;
    }
    Ok(next)
}

fn message_after<'a>(reader: &mut Reader<'a>, tag: Tag) -> Result<Reader<'a>, Failure> {
    tag.expect(WireType::Delimited)?;
    reader.delimited()
}

/// A number without a fraction is written as an integer.
fn whole(value: f64) -> Option<i64> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    let negative_zero = value == 0.0 && value.is_sign_negative();
    let is_whole = value.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&value) && !negative_zero;
    is_whole.then_some(value as i64)
}

/// The items of a list that follow each other.
struct Items<'r, 'a, 's> {
    reader: &'r mut Reader<'a>,
    /// The tag of the next item.
    tag: Option<Tag>,
    /// Several numbers in one.
    packed: Option<Reader<'a>>,
    r#type: Type,
    context: Context<'s>,
}

impl<'de> SeqAccess<'de> for Items<'_, 'de, '_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        let packable = match self.r#type {
            Type::Bool | Type::Int32 | Type::Int64 => Some(WireType::Varint),
            Type::Double => Some(WireType::Fixed64),
            _ => None,
        };
        loop {
            let Some(tag) = self.tag else { return Ok(None) };
            let position = self.reader.position();
            self.context.take(ITEM, position)?;
            match (&mut self.packed, packable) {
                (Some(packed), Some(wire)) if !packed.is_at_end() => {
                    let tag = Tag { wire, position: packed.position(), ..tag };
                    return seed.deserialize(self.context.value(packed, tag, self.r#type)).map(Some);
                }
                (packed @ Some(_), _) => {
                    *packed = None;
                    self.tag = again(self.reader, tag)?;
                }
                (packed, Some(_)) if tag.wire == WireType::Delimited => {
                    *packed = Some(self.reader.delimited()?);
                }
                _ => {
                    let item = seed.deserialize(self.context.value(self.reader, tag, self.r#type))?;
                    self.tag = again(self.reader, tag)?;
                    return Ok(Some(item));
                }
            }
        }
    }
}

impl<'s> Context<'s> {
    fn value<'r, 'a>(self, reader: &'r mut Reader<'a>, tag: Tag, r#type: Type) -> Value<'r, 'a, 's> {
        Value { source: Source::Sent(reader, tag), count: Count::One, r#type, context: self }
    }
}

/// The entries of a map that follow each other: the key in field 1, the value in field 2, and the zero for what is
/// missing.
struct Entries<'r, 'a, 's> {
    reader: &'r mut Reader<'a>,
    tag: Option<Tag>,
    /// The value of the entry whose key was told.
    value: Option<(Reader<'a>, Tag)>,
    r#type: Type,
    context: Context<'s>,
}

impl<'de> MapAccess<'de> for Entries<'_, 'de, '_> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some(tag) = self.tag else { return Ok(None) };
        self.context.take(ENTRY, tag.position)?;
        let mut entry = message_after(self.reader, tag)?;
        self.tag = again(self.reader, tag)?;
        let mut key = "";
        self.value = None;
        while let Some(tag) = entry.tag()? {
            match tag.number {
                1 => {
                    tag.expect(WireType::Delimited)?;
                    key = entry.text()?;
                }
                2 => {
                    self.value = Some((entry, tag));
                    entry.skip(tag)?;
                }
                _ => entry.skip(tag)?,
            }
        }
        seed.deserialize(Word(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let Self { context, r#type, .. } = *self;
        match self.value.take() {
            Some((mut reader, tag)) => seed.deserialize(context.value(&mut reader, tag, r#type)),
            None => {
                let source = Source::Absent(Absent::Zero, self.reader.position());
                seed.deserialize(Value { source, count: Count::One, r#type, context })
            }
        }
    }
}

/// The texts in field 1 of a message.
struct Texts<'a, 's> {
    reader: Reader<'a>,
    context: Context<'s>,
}

impl<'de> SeqAccess<'de> for Texts<'de, '_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        while let Some(tag) = self.reader.tag()? {
            if tag.number == 1 {
                self.context.take(ITEM, tag.position)?;
                return seed.deserialize(self.context.value(&mut self.reader, tag, Type::Text)).map(Some);
            }
            self.reader.skip(tag)?;
        }
        Ok(None)
    }
}

/// An empty list.
struct Nothing;

impl<'de> SeqAccess<'de> for Nothing {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, _: T) -> Result<Option<T::Value>, Failure> {
        Ok(None)
    }
}
