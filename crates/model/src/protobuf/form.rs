//! Messages that are not an object in JSON: quantities, times, unions, JSON itself.

use serde_json::{Map, Value};

use super::{
    envelope::{PREFIX, json},
    error::{ProtobufError, ProtobufErrorKind as Kind},
    object::Decoder,
    schema::{Form, MessageId, SCHEMA},
    text::rfc3339,
    wire::{Reader, WireType},
};

/// What Go has in a time that was never set: the beginning of the year 1.
const UNSET_TIME: i64 = -62_135_596_800;

impl Form {
    /// What JSON shows for an empty message.
    pub(super) fn zero(self) -> Value {
        match self {
            Self::Object => Value::Object(Map::new()),
            Self::Quantity => Value::from("0"),
            Self::IntOrString => Value::from(0),
            Self::FieldOrBool => Value::Bool(false),
            Self::Time | Self::MicroTime | Self::RawJson | Self::RawExtension | Self::ListOrField => {
                Value::Null
            }
        }
    }
}

impl Decoder {
    /// Reads a message into whatever it is in JSON.
    pub(super) fn form(
        &mut self,
        reader: Reader<'_>,
        id: MessageId,
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        let message = SCHEMA.message(id);
        let in_message = |error: ProtobufError| error.within(|| message.full_name());
        match message.form {
            Form::Object => {
                let mut object = Map::new();
                self.message(reader, id, depth, &mut object)?;
                Ok(Value::Object(object))
            }
            Form::ListOrField | Form::FieldOrBool => self.union(reader, id, depth),
            Form::RawExtension => {
                let raw = delimited_field(reader).map_err(in_message)?;
                match raw {
                    Some(raw) if raw.rest().starts_with(&PREFIX) => self.envelope(raw, depth),
                    _ => raw_json(raw).map_err(in_message),
                }
            }
            Form::RawJson => delimited_field(reader).and_then(raw_json).map_err(in_message),
            Form::Quantity => quantity(reader).map_err(in_message),
            Form::IntOrString => int_or_string(reader).map_err(in_message),
            form @ (Form::Time | Form::MicroTime) => {
                time(reader, form == Form::MicroTime).map_err(in_message)
            }
        }
    }

    /// A union has two fields. It is read as an object, of which one field is the value.
    fn union(&mut self, reader: Reader<'_>, id: MessageId, depth: usize) -> Result<Value, ProtobufError> {
        let message = SCHEMA.message(id);
        let mut fields = Map::new();
        self.message(reader, id, depth, &mut fields)?;
        let mut part = |index: usize| {
            let field = SCHEMA.fields(message).get(index)?;
            fields.remove(field.name).filter(|value| !value.is_null())
        };
        let (first, second) = (part(0), part(1));
        Ok(second.or(first).unwrap_or(message.form.zero()))
    }
}

/// The last field 1, which is a message, a text or bytes.
fn delimited_field(mut reader: Reader<'_>) -> Result<Option<Reader<'_>>, ProtobufError> {
    let mut found = None;
    while let Some(tag) = reader.tag()? {
        if tag.number == 1 {
            tag.expect(WireType::Delimited)?;
            found = Some(reader.delimited()?);
        } else {
            reader.skip(tag)?;
        }
    }
    Ok(found)
}

fn raw_json(raw: Option<Reader<'_>>) -> Result<Value, ProtobufError> {
    raw.filter(|raw| !raw.is_at_end()).map_or(Ok(Value::Null), json)
}

fn quantity(mut reader: Reader<'_>) -> Result<Value, ProtobufError> {
    let mut quantity = Form::Quantity.zero();
    while let Some(tag) = reader.tag()? {
        if tag.number == 1 {
            tag.expect(WireType::Delimited)?;
            quantity = Value::from(reader.text()?);
        } else {
            reader.skip(tag)?;
        }
    }
    Ok(quantity)
}

fn int_or_string(mut reader: Reader<'_>) -> Result<Value, ProtobufError> {
    let (mut r#type, mut integer, mut text) = (0, 0, "");
    let position = reader.position();
    while let Some(tag) = reader.tag()? {
        match tag.number {
            1 | 2 => {
                tag.expect(WireType::Varint)?;
                let value = reader.varint()? as i64;
                *(if tag.number == 1 { &mut r#type } else { &mut integer }) = value;
            }
            3 => {
                tag.expect(WireType::Delimited)?;
                text = reader.text()?;
            }
            _ => reader.skip(tag)?,
        }
    }
    match r#type {
        0 => Ok(Value::from(integer as i32)),
        1 => Ok(Value::from(text)),
        other => Err(ProtobufError::at(position, Kind::IntOrString(other))),
    }
}

fn time(mut reader: Reader<'_>, with_micros: bool) -> Result<Value, ProtobufError> {
    if reader.is_at_end() {
        return Ok(Value::Null);
    }
    let position = reader.position();
    let (mut seconds, mut nanos) = (0, 0);
    while let Some(tag) = reader.tag()? {
        match tag.number {
            1 | 2 => {
                tag.expect(WireType::Varint)?;
                let value = reader.varint()? as i64;
                *(if tag.number == 1 { &mut seconds } else { &mut nanos }) = value;
            }
            _ => reader.skip(tag)?,
        }
    }
    // A time has seconds alone in JSON, so servers ignore what else a client sends.
    let micros = if with_micros { i64::from(nanos as i32) / 1000 } else { 0 };
    let whole = seconds.saturating_add(micros.div_euclid(1_000_000));
    let micros = micros.rem_euclid(1_000_000);
    if whole == UNSET_TIME && micros == 0 {
        return Ok(Value::Null);
    }
    let text = rfc3339(whole, with_micros.then_some(micros));
    text.map(Value::String).ok_or_else(|| ProtobufError::at(position, Kind::Time))
}
