//! Around every object: four bytes, and a message that names apiVersion and kind.

use std::mem;

use serde::de::{Deserializer, Visitor};
use serde_json::Value;

use super::{
    de::{Context, MANAGED_FIELDS, Object, Types},
    encode::Writer,
    error::{Failure, ProtobufErrorKind as Kind, failure},
    schema::{MessageId, SCHEMA},
    wire::{Reader, Tag, WireType},
};

/// The field in which every kind has its metadata.
pub(super) const METADATA: u32 = 1;

/// What every object begins with.
pub(super) const PREFIX: [u8; 4] = *b"k8s\0";

/// `runtime.Unknown`: what is inside, and what that is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Envelope<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    pub(super) raw: Reader<'a>,
    content_encoding: &'a str,
    content_type: &'a str,
    /// Where the envelope begins in the body.
    position: usize,
}

impl<'a> Envelope<'a> {
    /// What stands in a list, where there is no envelope around it.
    pub(super) fn around(api_version: &'a str, kind: &'a str, body: &'a [u8]) -> Self {
        let raw = Reader::new(body);
        Self { api_version, kind, raw, content_encoding: "", content_type: "", position: 0 }
    }

    pub(super) fn read(mut reader: Reader<'a>) -> Result<Self, Failure> {
        let position = reader.position();
        if !reader.strip_prefix(&PREFIX) {
            return Err(failure(position, Kind::Prefix));
        }
        let mut envelope = Self { position, ..Self::around("", "", &[]) };
        while let Some(tag) =
            reader.tag().map_err(|error| error.within(position, || "runtime.Unknown".to_owned()))?
        {
            let field = match tag.number {
                1 => "typeMeta",
                2 => "raw",
                3 => "contentEncoding",
                4 => "contentType",
                _ => "",
            };
            envelope
                .field(&mut reader, tag)
                .map_err(|error| error.within(position, || format!("runtime.Unknown.{field}")))?;
        }
        Ok(envelope)
    }

    fn field(&mut self, reader: &mut Reader<'a>, tag: Tag) -> Result<(), Failure> {
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

    fn type_meta(&mut self, mut reader: Reader<'a>) -> Result<(), Failure> {
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

    fn fail<T>(&self, kind: Kind) -> Result<T, Failure> {
        Err(failure(self.position, kind).within(self.position, || "runtime.Unknown".to_owned()))
    }

    /// The message that is inside; none if JSON is.
    pub(super) fn message(&self) -> Result<Option<MessageId>, Failure> {
        if !self.content_encoding.is_empty() {
            return self.fail(Kind::ContentEncoding(self.content_encoding.to_owned()));
        }
        match self.content_type {
            "application/json" => Ok(None),
            "" | "application/vnd.kubernetes.protobuf" => match SCHEMA.kind(self.api_version, self.kind) {
                Some(message) => Ok(Some(message)),
                None => {
                    let (api_version, kind) = (self.api_version.to_owned(), self.kind.to_owned());
                    self.fail(Kind::UnknownKind { api_version, kind })
                }
            },
            other => self.fail(Kind::ContentType(other.to_owned())),
        }
    }

    /// The object inside.
    pub(super) fn visit<V: Visitor<'a>>(
        &self,
        context: Context<'_>,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let Self { api_version, kind, raw: body, .. } = *self;
        match self.message()? {
            Some(message) => {
                let envelope = [api_version, kind];
                Object { body, message, types: Some(envelope), envelope, context }.deserialize_any(visitor)
            }
            None => self
                .json()?
                .deserialize_any(visitor)
                .map_err(|error: serde_json::Error| failure(self.position, Kind::Refused(error.to_string()))),
        }
    }

    /// The object inside, which is JSON.
    pub(super) fn json(&self) -> Result<Value, Failure> {
        let object = serde_json::from_slice(self.raw.rest())
            .map_err(|error| failure(self.raw.position(), Kind::Json(error.to_string())))?;
        let Value::Object(mut object) = object else {
            return self.fail(Kind::Json("an object, written as {…}".to_owned()));
        };
        for (name, value) in [("apiVersion", self.api_version), ("kind", self.kind)] {
            if !value.is_empty() && !object.contains_key(name) {
                object.insert(name.to_owned(), value.into());
            }
        }
        Ok(Value::Object(object))
    }
}

/// Puts an object into an envelope, with or without its `managedFields`.
pub(super) fn write_envelope(
    [api_version, kind]: Types<'_>,
    object: Reader<'_>,
    managed_fields: bool,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    let mut writer = Writer::behind(mem::take(out));
    writer.bytes.extend_from_slice(&PREFIX);
    writer.within(1, |writer| {
        writer.delimited(1, api_version.as_bytes());
        writer.delimited(2, kind.as_bytes());
    });
    writer.message(2, |writer| {
        copy(object, writer, |tag, mut value, writer| {
            if managed_fields || tag.number != METADATA || tag.wire != WireType::Delimited {
                return Ok(false);
            }
            let metadata = value.delimited()?;
            let is_left_out = |tag: Tag| tag.number == u32::from(MANAGED_FIELDS);
            writer.message(1, |writer| copy(metadata, writer, |tag, _, _| Ok(is_left_out(tag))))?;
            Ok(true)
        })
    })?;
    *out = writer.bytes;
    Ok(())
}

/// Copies the fields of a message as they are, but for those that `instead` takes care of.
fn copy<'a>(
    mut message: Reader<'a>,
    writer: &mut Writer,
    mut instead: impl FnMut(Tag, Reader<'a>, &mut Writer) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    loop {
        let before = message.rest();
        let Some(tag) = message.tag()? else { return Ok(()) };
        let value = message;
        message.skip(tag)?;
        if !instead(tag, value, writer)? {
            let field = before.get(..before.len() - message.rest().len()).unwrap_or_default();
            writer.bytes.extend_from_slice(field);
        }
    }
}
