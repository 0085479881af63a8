//! Around every object: four bytes, and a message that names apiVersion and kind.

use serde::de::{Deserializer, Visitor};
use serde_json::Value;

use super::{
    de::{Context, Object},
    error::{Failure, ProtobufErrorKind as Kind, failure},
    schema::{MessageId, SCHEMA},
    wire::{Reader, Tag, WireType},
};

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
                Object { body, message, types: Some([api_version, kind]), context }.deserialize_any(visitor)
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
