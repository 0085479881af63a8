//! One value of a field: a number, a text, a message, or what stands in JSON for a value that did not come.

use serde::{
    Deserializer, de,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor, value::BorrowedStrDeserializer},
    forward_to_deserialize_any,
};

use super::{
    Context, Fields, LIST, OBJECT, Object,
    collections::{Entries, Items, Nothing, Texts, pass},
};
use crate::protobuf::{
    error::{Failure, ProtobufErrorKind as Kind, failure},
    form,
    schema::{Absent, Count, Field, Form, SCHEMA, Type},
    text::base64,
    wire::{Reader, Tag, WireType},
};

/// One value.
pub(super) struct Value<'r, 'a, 's> {
    pub(super) source: Source<'r, 'a>,
    pub(super) count: Count,
    pub(super) r#type: Type,
    pub(super) context: Context<'s>,
}

/// Where a value comes from.
pub(super) enum Source<'r, 'a> {
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
                let mut items = Items::new(reader, tag, r#type, context);
                let value = visitor.visit_seq(&mut items)?;
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(value)
            }
            (Source::Sent(reader, tag), Count::Map) => {
                context.take(OBJECT, tag.position)?;
                let mut entries = Entries::new(reader, tag, r#type, context);
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
    #[inline]
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
pub(super) struct Word<'a>(pub(super) &'a str);

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
            visitor.visit_seq(Texts::new(reader.delimited()?, context))
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
pub(in crate::protobuf) fn visit_field<'de, V: Visitor<'de>>(
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
pub(super) fn is_zero(mut reader: Reader<'_>, tag: Tag, r#type: Type) -> Result<bool, Failure> {
    Ok(match (tag.wire, r#type) {
        (WireType::Varint, Type::Bool | Type::Int64) => reader.varint()? == 0,
        (WireType::Varint, Type::Int32) => reader.varint()? as i32 == 0,
        (WireType::Fixed64, Type::Double) => reader.double()? == 0.0,
        (WireType::Delimited, Type::Text | Type::Bytes) => reader.delimited()?.is_at_end(),
        (_, Type::Message(id)) => form::is_null(&reader, tag, id)?,
        _ => false,
    })
}

/// A number without a fraction is written as an integer.
fn whole(value: f64) -> Option<i64> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    let negative_zero = value == 0.0 && value.is_sign_negative();
    let is_whole = value.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&value) && !negative_zero;
    is_whole.then_some(value as i64)
}
