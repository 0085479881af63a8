//! From a message to a JSON object.
//!
//! Go writes JSON from structs that the bytes have been merged into, and so it is here: a field that comes
//! twice is merged or replaced, a list goes on wherever its items stand, and what never came is filled in
//! at the end.

use serde_json::{Map, Value};

use super::{
    DEPTH_LIMIT,
    error::{ProtobufError, ProtobufErrorKind as Kind},
    schema::{Absent, Count, Field, Form, Message, MessageId, SCHEMA, Type},
    text::base64,
    wire::{Reader, Tag, WireType},
};

/// What an object may take that comes from a few bytes, and what each byte adds. Two bytes can stand for an
/// empty Deployment, which is ten JSON objects; a body full of them would take a thousand times its length.
const MEMORY_FOR_ANY: usize = 1 << 20;
const MEMORY_FOR_BYTE: usize = 128;

/// About what a JSON object takes with its first entry, what an entry adds, and what a list and an item take.
const OBJECT: usize = 640;
const ENTRY: usize = 128;
const LIST: usize = 128;
const ITEM: usize = 64;

/// Reads messages by the [`SCHEMA`], and counts the memory that they take.
pub(super) struct Decoder {
    memory_left: usize,
}

impl Decoder {
    pub(super) fn new(body_length: usize) -> Self {
        Self { memory_left: body_length.saturating_mul(MEMORY_FOR_BYTE).saturating_add(MEMORY_FOR_ANY) }
    }

    fn take(&mut self, memory: usize, position: usize) -> Result<(), ProtobufError> {
        let left = self.memory_left.checked_sub(memory);
        self.memory_left = left.ok_or_else(|| ProtobufError::at(position, Kind::Memory))?;
        Ok(())
    }

    fn insert(
        &mut self,
        object: &mut Map<String, Value>,
        name: &str,
        value: Value,
        position: usize,
    ) -> Result<(), ProtobufError> {
        let first = if object.is_empty() { OBJECT } else { 0 };
        self.take(first + ENTRY + name.len(), position)?;
        object.insert(name.to_owned(), value);
        Ok(())
    }

    /// Merges a message into an object, and fills in what JSON shows of absent fields.
    pub(super) fn message(
        &mut self,
        reader: Reader<'_>,
        id: MessageId,
        depth: usize,
        object: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        self.fields(reader, id, depth, object)?;
        self.fill(SCHEMA.message(id), reader.position(), object)
    }

    fn fields(
        &mut self,
        mut reader: Reader<'_>,
        id: MessageId,
        depth: usize,
        object: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        let message = SCHEMA.message(id);
        let in_message = |error: ProtobufError| error.within(|| message.full_name());
        if depth >= DEPTH_LIMIT {
            return Err(in_message(ProtobufError::at(reader.position(), Kind::Depth)));
        }
        let fields = SCHEMA.fields(message);
        // Fields come in the order of their numbers, mostly.
        let mut next = 0;
        while let Some(tag) = reader.tag().map_err(in_message)? {
            let number_at = |index: usize| fields.get(index).map(|field: &Field| u32::from(field.number));
            if number_at(next) != Some(tag.number) {
                next = fields.partition_point(|field| u32::from(field.number) < tag.number);
            }
            match fields.get(next) {
                Some(field) if u32::from(field.number) == tag.number => {
                    let in_field =
                        |e: ProtobufError| e.within(|| format!("{}.{}", message.full_name(), field.name));
                    self.field(&mut reader, tag, field, depth, object).map_err(in_field)?;
                    next += usize::from(field.count == Count::One);
                }
                _ => reader.skip(tag).map_err(in_message)?,
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        reader: &mut Reader<'_>,
        tag: Tag,
        field: &Field,
        depth: usize,
        object: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        match (field.count, field.r#type) {
            (Count::Embedded, Type::Message(id)) => {
                tag.expect(WireType::Delimited)?;
                self.fields(reader.delimited()?, id, depth + 1, object)
            }
            (Count::List, r#type) => {
                if !matches!(object.get(field.name), Some(Value::Array(_))) {
                    self.take(LIST, tag.position)?;
                    self.insert(object, field.name, Value::Array(Vec::new()), tag.position)?;
                }
                let Some(Value::Array(items)) = object.get_mut(field.name) else { return Ok(()) };
                self.items(reader, tag, r#type, depth, items)
            }
            (Count::Map, r#type) => {
                tag.expect(WireType::Delimited)?;
                let (key, value) = self.entry(reader.delimited()?, r#type, depth)?;
                if !matches!(object.get(field.name), Some(Value::Object(_))) {
                    self.insert(object, field.name, Value::Object(Map::new()), tag.position)?;
                }
                let Some(Value::Object(entries)) = object.get_mut(field.name) else { return Ok(()) };
                self.insert(entries, key, value, tag.position)
            }
            (_, Type::Message(id)) if SCHEMA.message(id).form == Form::Object => {
                tag.expect(WireType::Delimited)?;
                let inner = reader.delimited()?;
                if let Some(Value::Object(earlier)) = object.get_mut(field.name) {
                    return self.message(inner, id, depth + 1, earlier);
                }
                let mut value = Map::new();
                self.message(inner, id, depth + 1, &mut value)?;
                self.insert(object, field.name, Value::Object(value), tag.position)
            }
            (_, r#type) => {
                let value = self.value(reader, tag, r#type, depth)?;
                if field.omits_zero && is_zero(&value) {
                    object.remove(field.name);
                    return Ok(());
                }
                self.insert(object, field.name, value, tag.position)
            }
        }
    }

    /// The next item of a list, or several numbers in one.
    fn items(
        &mut self,
        reader: &mut Reader<'_>,
        tag: Tag,
        r#type: Type,
        depth: usize,
        items: &mut Vec<Value>,
    ) -> Result<(), ProtobufError> {
        let packable = match r#type {
            Type::Bool | Type::Int32 | Type::Int64 => Some(WireType::Varint),
            Type::Double => Some(WireType::Fixed64),
            _ => None,
        };
        match packable {
            Some(wire) if tag.wire == WireType::Delimited => {
                let mut packed = reader.delimited()?;
                while !packed.is_at_end() {
                    self.take(ITEM, packed.position())?;
                    let tag = Tag { wire, position: packed.position(), ..tag };
                    items.push(self.value(&mut packed, tag, r#type, depth)?);
                }
            }
            _ => {
                self.take(ITEM, tag.position)?;
                items.push(self.value(reader, tag, r#type, depth)?);
            }
        }
        Ok(())
    }

    /// One entry of a map: the key in field 1, the value in field 2, and the zero for what is missing.
    fn entry<'a>(
        &mut self,
        mut reader: Reader<'a>,
        r#type: Type,
        depth: usize,
    ) -> Result<(&'a str, Value), ProtobufError> {
        let mut key = "";
        let mut value = None;
        while let Some(tag) = reader.tag()? {
            match tag.number {
                1 => {
                    tag.expect(WireType::Delimited)?;
                    key = reader.text()?;
                }
                2 => value = Some(self.value(&mut reader, tag, r#type, depth)?),
                _ => reader.skip(tag)?,
            }
        }
        let value = value.map_or_else(|| self.zero(r#type, reader.position()), Ok)?;
        Ok((key, value))
    }

    /// The value after a tag, whatever was there before.
    fn value(
        &mut self,
        reader: &mut Reader<'_>,
        tag: Tag,
        r#type: Type,
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        tag.expect(match r#type {
            Type::Bool | Type::Int32 | Type::Int64 => WireType::Varint,
            Type::Double => WireType::Fixed64,
            Type::Text | Type::Bytes | Type::Texts | Type::Message(_) => WireType::Delimited,
        })?;
        Ok(match r#type {
            Type::Bool => Value::Bool(reader.varint()? != 0),
            // Negative numbers come with all 64 bits; the upper half of others is ignored.
            Type::Int32 => Value::from(reader.varint()? as i32),
            Type::Int64 => Value::from(reader.varint()? as i64),
            Type::Double => {
                number(reader.double()?).ok_or_else(|| ProtobufError::at(tag.position, Kind::Number))?
            }
            Type::Text => Value::from(reader.text()?),
            Type::Bytes => Value::String(base64(reader.delimited()?.rest())),
            Type::Texts => {
                let mut inner = reader.delimited()?;
                let mut texts = Vec::new();
                self.take(LIST, tag.position)?;
                while let Some(tag) = inner.tag()? {
                    match tag.number {
                        1 => self.items(&mut inner, tag, Type::Text, depth, &mut texts)?,
                        _ => inner.skip(tag)?,
                    }
                }
                Value::Array(texts)
            }
            Type::Message(id) => {
                let inner = reader.delimited()?;
                self.form(inner, id, depth + 1)?
            }
        })
    }

    /// Puts in what JSON shows for fields that did not come.
    fn fill(
        &mut self,
        message: &Message,
        position: usize,
        object: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        for field in SCHEMA.fields(message) {
            let value = match (field.absent, field.r#type) {
                (Absent::Nothing, _) => continue,
                (_, Type::Message(embedded)) if field.count == Count::Embedded => {
                    self.fill(SCHEMA.message(embedded), position, object)?;
                    continue;
                }
                _ if object.contains_key(field.name) => continue,
                (Absent::Null, _) => Value::Null,
                (Absent::EmptyList, _) => Value::Array(Vec::new()),
                (Absent::Zero, r#type) => self.zero(r#type, position)?,
            };
            self.insert(object, field.name, value, position)?;
        }
        Ok(())
    }

    /// What JSON shows for a value of which nothing came.
    fn zero(&mut self, r#type: Type, position: usize) -> Result<Value, ProtobufError> {
        Ok(match r#type {
            Type::Bool => Value::Bool(false),
            Type::Int32 | Type::Int64 | Type::Double => Value::from(0),
            Type::Text | Type::Bytes => Value::String(String::new()),
            Type::Texts => Value::Array(Vec::new()),
            Type::Message(id) => match SCHEMA.message(id).form {
                Form::Object => {
                    let mut object = Map::new();
                    self.fill(SCHEMA.message(id), position, &mut object)?;
                    Value::Object(object)
                }
                form => form.zero(),
            },
        })
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// A number without a fraction is written as an integer.
fn number(value: f64) -> Option<Value> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    let negative_zero = value == 0.0 && value.is_sign_negative();
    if value.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&value) && !negative_zero {
        return Some(Value::from(value as i64));
    }
    serde_json::Number::from_f64(value).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_go_prints_them() {
        for (value, text) in
            [(5.0, "5"), (-2.0, "-2"), (0.5, "0.5"), (0.0, "0"), (-0.0, "-0.0"), (1e300, "1e+300")]
        {
            assert_eq!(number(value).unwrap().to_string(), text);
        }
        for value in [f64::NAN, f64::INFINITY] {
            assert_eq!(number(value), None);
        }
        assert_eq!(number(-9_223_372_036_854_775_808.0), Some(Value::from(i64::MIN)));
    }
}
