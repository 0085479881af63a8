//! Messages that are not an object in JSON: quantities, times, unions, JSON itself.

use serde::{Deserializer, de::Visitor};

use super::{
    de::{Context, visit_field},
    envelope::{Envelope, PREFIX},
    error::{Failure, ProtobufErrorKind as Kind, failure},
    schema::{Count, Form, Message, MessageId, SCHEMA},
    text::rfc3339,
    wire::{Reader, Tag, WireType},
};

/// What Go has in a time that was never set: the beginning of the year 1.
const UNSET_TIME: i64 = -62_135_596_800;

impl Form {
    /// Whether JSON shows null for an empty message.
    pub(super) fn is_null_when_empty(self) -> bool {
        match self {
            Self::Object | Self::Quantity | Self::IntOrString | Self::FieldOrBool => false,
            Self::Time | Self::MicroTime | Self::RawJson | Self::RawExtension | Self::ListOrField => true,
        }
    }
}

/// Reads a message into whatever it is in JSON.
pub(super) fn visit<'de, V: Visitor<'de>>(
    body: Reader<'de>,
    id: MessageId,
    context: Context<'_>,
    visitor: V,
) -> Result<V::Value, Failure> {
    let message = SCHEMA.message(id);
    let visited = match message.form {
        // An object is read field by field.
        Form::Object => visitor.visit_unit(),
        Form::ListOrField | Form::FieldOrBool => union(body, id, context, visitor),
        Form::RawJson | Form::RawExtension => last_field(body).and_then(|raw| match raw {
            Some(raw) if message.form == Form::RawExtension && raw.rest().starts_with(&PREFIX) => {
                Envelope::read(raw)?.visit(context, visitor)
            }
            Some(raw) if !raw.is_at_end() => raw_json(raw, visitor),
            _ => visitor.visit_unit(),
        }),
        Form::Quantity => last_field(body).and_then(|text| match text {
            Some(text) => visitor.visit_borrowed_str(text.as_text()?),
            None => visitor.visit_borrowed_str("0"),
        }),
        Form::IntOrString => int_or_string(body, visitor),
        form @ (Form::Time | Form::MicroTime) => {
            time(body, form == Form::MicroTime).and_then(|text| match text {
                Some(text) => visitor.visit_str(&text),
                None => visitor.visit_unit(),
            })
        }
    };
    visited.map_err(|error| error.within(body.position(), || message.full_name()))
}

/// Whether the message after a tag is null in JSON.
#[inline]
pub(super) fn is_null(reader: &Reader<'_>, tag: Tag, id: MessageId) -> Result<bool, Failure> {
    let message = SCHEMA.message(id);
    // Nearly all are objects.
    if !message.form.is_null_when_empty() || tag.wire != WireType::Delimited {
        return Ok(false);
    }
    stands_for_null(*reader, message)
}

fn stands_for_null(mut reader: Reader<'_>, message: &Message) -> Result<bool, Failure> {
    let mut body = reader.delimited()?;
    Ok(match message.form {
        form @ (Form::Time | Form::MicroTime) => {
            let with_micros = form == Form::MicroTime;
            body.is_at_end() || (seconds(body, with_micros)? == (UNSET_TIME, 0))
        }
        Form::RawJson | Form::RawExtension => {
            last_field(body)?.is_none_or(|raw| matches!(raw.rest().trim_ascii(), b"" | b"null"))
        }
        _ => {
            let fields = SCHEMA.fields(message);
            while let Some(tag) = body.tag()? {
                if fields.iter().any(|field| u32::from(field.number) == tag.number) {
                    return Ok(false);
                }
                body.skip(tag)?;
            }
            true
        }
    })
}

/// A union has two fields, of which the second goes before the first.
fn union<'de, V: Visitor<'de>>(
    body: Reader<'de>,
    id: MessageId,
    context: Context<'_>,
    visitor: V,
) -> Result<V::Value, Failure> {
    let message = SCHEMA.message(id);
    let (mut found, mut reader) = ([None; 2], body);
    while let Some(tag) = reader.tag()? {
        let fields = SCHEMA.fields(message).iter().zip(&mut found);
        for (field, found) in fields.filter(|(field, _)| u32::from(field.number) == tag.number) {
            // A list is read from its first item on.
            if found.is_none() || field.count != Count::List {
                *found = Some((field, reader, tag));
            }
        }
        reader.skip(tag)?;
    }
    let [first, second] = found;
    match second.or(first) {
        Some((field, mut reader, tag)) => visit_field(&mut reader, tag, field, context, visitor)
            .map_err(|e| e.within(tag.position, || format!("{}.{}", message.full_name(), field.name))),
        None if message.form == Form::FieldOrBool => visitor.visit_bool(false),
        None => visitor.visit_unit(),
    }
}

/// The last field 1, which is a message, a text or bytes.
fn last_field(mut reader: Reader<'_>) -> Result<Option<Reader<'_>>, Failure> {
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

/// JSON as it stands in the bytes that are left.
pub(super) fn raw_json<'de, V: Visitor<'de>>(raw: Reader<'de>, visitor: V) -> Result<V::Value, Failure> {
    let mut json = serde_json::Deserializer::from_slice(raw.rest());
    let value = json.deserialize_any(visitor).and_then(|value| json.end().map(|()| value));
    value.map_err(|error| failure(raw.position(), Kind::Json(error.to_string())))
}

fn int_or_string<'de, V: Visitor<'de>>(mut body: Reader<'de>, visitor: V) -> Result<V::Value, Failure> {
    let (mut r#type, mut integer, mut text) = (0, 0, "");
    let position = body.position();
    while let Some(tag) = body.tag()? {
        match tag.number {
            1 | 2 => {
                tag.expect(WireType::Varint)?;
                let value = body.varint()? as i64;
                *(if tag.number == 1 { &mut r#type } else { &mut integer }) = value;
            }
            3 => {
                tag.expect(WireType::Delimited)?;
                text = body.text()?;
            }
            _ => body.skip(tag)?,
        }
    }
    match r#type {
        0 => visitor.visit_i64(i64::from(integer as i32)),
        1 => visitor.visit_borrowed_str(text),
        other => Err(failure(position, Kind::IntOrString(other))),
    }
}

fn time(body: Reader<'_>, with_micros: bool) -> Result<Option<String>, Failure> {
    if body.is_at_end() {
        return Ok(None);
    }
    let (whole, micros) = seconds(body, with_micros)?;
    if (whole, micros) == (UNSET_TIME, 0) {
        return Ok(None);
    }
    let text = rfc3339(whole, with_micros.then_some(micros));
    text.map(Some).ok_or_else(|| failure(body.position(), Kind::Time))
}

/// Seconds and microseconds of a time.
fn seconds(mut body: Reader<'_>, with_micros: bool) -> Result<(i64, i64), Failure> {
    let (mut seconds, mut nanos) = (0, 0);
    while let Some(tag) = body.tag()? {
        match tag.number {
            1 | 2 => {
                tag.expect(WireType::Varint)?;
                let value = body.varint()? as i64;
                *(if tag.number == 1 { &mut seconds } else { &mut nanos }) = value;
            }
            _ => body.skip(tag)?,
        }
    }
    // A time has seconds alone in JSON, so servers ignore what else a client sends.
    let micros: i64 = if with_micros { i64::from(nanos as i32) / 1000 } else { 0 };
    Ok((seconds.saturating_add(micros.div_euclid(1_000_000)), micros.rem_euclid(1_000_000)))
}
