//! Around every object: four bytes, and a message that names apiVersion and kind.

use serde_json::{Map, Value};

use super::{
    error::{ProtobufError, ProtobufErrorKind as Kind},
    object::Decoder,
    schema::SCHEMA,
    wire::{Reader, Tag, WireType},
};

/// What every object begins with.
pub(super) const PREFIX: [u8; 4] = *b"k8s\0";

/// `runtime.Unknown`: what is inside, and what that is.
struct Envelope<'a> {
    api_version: &'a str,
    kind: &'a str,
    raw: Reader<'a>,
    content_encoding: &'a str,
    content_type: &'a str,
    /// Where the envelope begins in the body.
    position: usize,
}

impl<'a> Envelope<'a> {
    fn read(mut reader: Reader<'a>) -> Result<Self, ProtobufError> {
        let position = reader.position();
        if !reader.strip_prefix(&PREFIX) {
            return Err(ProtobufError::at(position, Kind::Prefix));
        }
        let nothing = Reader::new(&[]);
        let mut envelope = Self {
            api_version: "",
            kind: "",
            raw: nothing,
            content_encoding: "",
            content_type: "",
            position,
        };
        while let Some(tag) = reader.tag().map_err(|error| error.within(|| "runtime.Unknown".to_owned()))? {
            let field = match tag.number {
                1 => "typeMeta",
                2 => "raw",
                3 => "contentEncoding",
                4 => "contentType",
                _ => "",
            };
            envelope
                .field(&mut reader, tag)
                .map_err(|error| error.within(|| format!("runtime.Unknown.{field}")))?;
        }
        Ok(envelope)
    }

    fn field(&mut self, reader: &mut Reader<'a>, tag: Tag) -> Result<(), ProtobufError> {
        if !(1..=4).contains(&tag.number) {
            return reader.skip(tag);
        }
        tag.expect(WireType::Delimited)?;
        match tag.number {
            1 => self.type_meta(reader.delimited()?)?,
            2 => self.raw = reader.delimited()?,
            3 => self.content_encoding = reader.text()?,
            _ => self.content_type = reader.text()?,
        }
        Ok(())
    }

    fn type_meta(&mut self, mut reader: Reader<'a>) -> Result<(), ProtobufError> {
        while let Some(tag) = reader.tag()? {
            match tag.number {
                1 | 2 => {
                    tag.expect(WireType::Delimited)?;
                    let text = reader.text()?;
                    *(if tag.number == 1 { &mut self.api_version } else { &mut self.kind }) = text;
                }
                _ => reader.skip(tag)?,
            }
        }
        Ok(())
    }

    fn fail<T>(&self, kind: Kind) -> Result<T, ProtobufError> {
        Err(ProtobufError::at(self.position, kind).within(|| "runtime.Unknown".to_owned()))
    }
}

impl Decoder {
    /// The object in an envelope.
    pub(super) fn envelope(&mut self, reader: Reader<'_>, depth: usize) -> Result<Value, ProtobufError> {
        let envelope = Envelope::read(reader)?;
        if !envelope.content_encoding.is_empty() {
            return envelope.fail(Kind::ContentEncoding(envelope.content_encoding.to_owned()));
        }
        let mut object = match envelope.content_type {
            "application/json" => match json(envelope.raw)? {
                Value::Object(object) => object,
                _ => return envelope.fail(Kind::Json("an object, written as {…}".to_owned())),
            },
            "" | "application/vnd.kubernetes.protobuf" => {
                let Some(message) = SCHEMA.kind(envelope.api_version, envelope.kind) else {
                    let (api_version, kind) = (envelope.api_version.to_owned(), envelope.kind.to_owned());
                    return envelope.fail(Kind::UnknownKind { api_version, kind });
                };
                let mut object = Map::new();
                self.message(envelope.raw, message, depth, &mut object)?;
                object
            }
            other => return envelope.fail(Kind::ContentType(other.to_owned())),
        };
        for (name, value) in [("apiVersion", envelope.api_version), ("kind", envelope.kind)] {
            if !value.is_empty() && !object.contains_key(name) {
                object.insert(name.to_owned(), value.into());
            }
        }
        Ok(Value::Object(object))
    }
}

/// JSON as it stands in the bytes that are left.
pub(super) fn json(reader: Reader<'_>) -> Result<Value, ProtobufError> {
    serde_json::from_slice(reader.rest())
        .map_err(|error| ProtobufError::at(reader.position(), Kind::Json(error.to_string())))
}
