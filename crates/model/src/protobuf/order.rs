//! The same message with its fields in the order of their numbers, each of them once or in a row.
//!
//! Protobuf lets fields come in any order, lists in several places, and messages in parts that are merged. No server
//! writes that; where it comes, the message is put in order before it is read.

use super::{
    DEPTH_LIMIT,
    envelope::{Envelope, PREFIX},
    error::{Failure, ProtobufErrorKind as Kind, failure},
    schema::{Count, Field, Form, MessageId, SCHEMA, Type},
    wire::{Reader, Tag, WireType},
};

/// A value of a field.
struct Part<'a> {
    field: &'static Field,
    tag: Tag,
    /// As it stands after its tag.
    bytes: &'a [u8],
    /// What its length announces, if it has one.
    inside: Option<Reader<'a>>,
}

/// A message in order. Fields that are not known are left out.
pub(super) fn ordered(mut body: Reader<'_>, id: MessageId, depth: usize) -> Result<Vec<u8>, Failure> {
    if depth >= DEPTH_LIMIT {
        return Err(failure(body.position(), Kind::Depth));
    }
    let fields = SCHEMA.fields(SCHEMA.message(id));
    let mut parts = Vec::new();
    while let Some(tag) = body.tag()? {
        let mut from = body;
        body.skip(tag)?;
        let bytes = &from.rest()[..from.rest().len() - body.rest().len()];
        let inside = if tag.wire == WireType::Delimited { Some(from.delimited()?) } else { None };
        if let Ok(index) = fields.binary_search_by_key(&tag.number, |field| u32::from(field.number)) {
            parts.push(Part { field: &fields[index], tag, bytes, inside });
        }
    }
    parts.sort_by_key(|part| part.field.number);
    let mut out = Vec::with_capacity(body.position());
    for group in parts.chunk_by(|one, other| one.field.number == other.field.number) {
        let Some(last) = group.last() else { continue };
        match (last.field.count, last.field.r#type) {
            (Count::List | Count::Map, _) => {
                for part in group {
                    part.write(&mut out, depth)?;
                }
            }
            // The parts of a message, one after another, are the message.
            (_, Type::Message(id)) if group.len() > 1 && SCHEMA.message(id).form == Form::Object => {
                let parts = group.iter().filter_map(|part| part.inside);
                let whole: Vec<u8> = parts.flat_map(|part| part.rest()).copied().collect();
                delimited(&mut out, last.tag.number, &ordered(Reader::new(&whole), id, depth + 1)?);
            }
            _ => last.write(&mut out, depth)?,
        }
    }
    Ok(out)
}

impl Part<'_> {
    fn write(&self, out: &mut Vec<u8>, depth: usize) -> Result<(), Failure> {
        let message = match (self.inside, self.field.r#type) {
            (Some(inside), Type::Message(id)) if self.field.count == Count::Map => entry(inside, id, depth)?,
            (Some(inside), Type::Message(id)) => message(inside, id, depth)?,
            _ => None,
        };
        match message {
            Some(message) => delimited(out, self.tag.number, &message),
            None => {
                varint(out, u64::from(self.tag.number) << 3 | self.tag.wire as u64);
                out.extend_from_slice(self.bytes);
            }
        }
        Ok(())
    }
}

/// A message in order, if it has one.
fn message(body: Reader<'_>, id: MessageId, depth: usize) -> Result<Option<Vec<u8>>, Failure> {
    match SCHEMA.message(id).form {
        Form::Object | Form::ListOrField | Form::FieldOrBool => ordered(body, id, depth + 1).map(Some),
        Form::RawExtension => {
            let (mut reader, mut raw) = (body, None);
            while let Some(tag) = reader.tag()? {
                let mut value = reader;
                reader.skip(tag)?;
                if tag.number == 1 && tag.wire == WireType::Delimited {
                    raw = Some(value.delimited()?).filter(|raw| raw.rest().starts_with(&PREFIX));
                }
            }
            let Some(envelope) = raw.map(Envelope::read).transpose()? else { return Ok(None) };
            let Some(inner) = envelope.message()? else { return Ok(None) };
            let inner = ordered(envelope.raw, inner, depth + 1)?;
            let mut out = Vec::new();
            delimited(&mut out, 1, &enclosed(envelope.api_version, envelope.kind, &inner));
            Ok(Some(out))
        }
        _ => Ok(None),
    }
}

/// An entry of a map whose values are messages.
fn entry(body: Reader<'_>, id: MessageId, depth: usize) -> Result<Option<Vec<u8>>, Failure> {
    let (mut reader, mut out) = (body, Vec::new());
    while let Some(tag) = reader.tag()? {
        let mut value = reader;
        reader.skip(tag)?;
        if tag.wire == WireType::Delimited {
            let inside = value.delimited()?;
            let inner = if tag.number == 2 { message(inside, id, depth)? } else { None };
            delimited(&mut out, tag.number, inner.as_deref().unwrap_or(inside.rest()));
        }
    }
    Ok(Some(out))
}

/// An object in its envelope.
pub(super) fn enclosed(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let (mut types, mut out) = (Vec::new(), PREFIX.to_vec());
    delimited(&mut types, 1, api_version.as_bytes());
    delimited(&mut types, 2, kind.as_bytes());
    delimited(&mut out, 1, &types);
    delimited(&mut out, 2, object);
    out
}

fn delimited(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    varint(out, u64::from(number) << 3 | WireType::Delimited as u64);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
