//! The encoding below all messages, written: tags, integers, lengths; and what stands for nothing.

use std::ptr;

use super::ProtobufEncodeError;
use crate::protobuf::schema::{Count, Field, Form, Message, SCHEMA, Type};

/// Appends fields to a message.
#[derive(Debug, Default)]
pub(in crate::protobuf) struct Writer {
    pub(in crate::protobuf) bytes: Vec<u8>,
    /// The fields of the messages that are being read, the innermost last.
    pub(super) parts: Vec<Part>,
    /// Where parts are put into order.
    pub(super) spare: Vec<u8>,
    /// Why reading ended early.
    pub(super) error: Option<ProtobufEncodeError>,
}

/// A field that has been written, from one place to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) field: &'static Field,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Writer {
    /// Writes behind these bytes.
    pub(in crate::protobuf) fn behind(bytes: Vec<u8>) -> Self {
        Self { bytes, ..Self::default() }
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn tag(&mut self, field: u16, wire: u64) {
        self.varint(u64::from(field) << 3 | wire);
    }

    /// An integer or a bool. A negative one takes all 64 bits, whatever its type.
    pub(super) fn integer(&mut self, field: u16, value: i64) {
        self.tag(field, 0);
        self.varint(value as u64);
    }

    pub(super) fn double(&mut self, field: u16, value: f64) {
        self.tag(field, 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(in crate::protobuf) fn delimited(&mut self, field: u16, value: &[u8]) {
        self.length(field, value.len());
        self.bytes.extend_from_slice(value);
    }

    /// What stands before so many bytes in a field.
    pub(super) fn length(&mut self, field: u16, length: usize) {
        self.tag(field, 2);
        self.varint(length as u64);
    }

    /// A message in a field. Its length is put before it when it is known; for most it takes the one byte that is
    /// left free.
    pub(in crate::protobuf) fn message<E>(
        &mut self,
        field: u16,
        write: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.tag(field, 2);
        let start = self.bytes.len();
        self.bytes.push(0);
        write(self)?;
        let length = self.bytes.len() - start - 1;
        match u8::try_from(length) {
            Ok(length @ ..0x80) => self.bytes[start] = length,
            _ => {
                let mut prefix = Self::default();
                prefix.varint(length as u64);
                self.bytes.splice(start..=start, prefix.bytes);
            }
        }
        Ok(())
    }

    /// A message that can be written without reading.
    pub(in crate::protobuf) fn within(&mut self, field: u16, write: impl FnOnce(&mut Self)) {
        let Ok(()) = self.message(field, |writer| {
            write(writer);
            Ok::<(), std::convert::Infallible>(())
        });
    }

    pub(super) fn int_or_string(&mut self, r#type: i64, integer: i64, text: &str) {
        self.integer(1, r#type);
        self.integer(2, integer);
        self.delimited(3, text.as_bytes());
    }

    /// Makes one message of the parts from `first_part` on, whose bytes are those from `start` on.
    pub(super) fn arrange(&mut self, field: u16, message: &Message, start: usize, first_part: usize) {
        let mut ordered = Self::behind(std::mem::take(&mut self.spare));
        ordered.bytes.clear();
        ordered.within(field, |ordered| ordered.fields(message, &self.parts[first_part..], &self.bytes));
        self.bytes.truncate(start);
        self.bytes.extend_from_slice(&ordered.bytes);
        self.parts.truncate(first_part);
        self.spare = ordered.bytes;
    }

    /// The fields of a message: their parts if there are, else what Go writes for them.
    fn fields(&mut self, message: &Message, parts: &[Part], bytes: &[u8]) {
        for field in SCHEMA.fields(message) {
            if let (Count::Embedded, Type::Message(id)) = (field.count, field.r#type) {
                self.within(field.number, |writer| writer.fields(SCHEMA.message(id), parts, bytes));
            } else if let Some(part) = parts.iter().rev().find(|part| ptr::eq(part.field, field)) {
                self.bytes.extend_from_slice(&bytes[part.from..part.to]);
            } else if field.count == Count::One && !field.is_nil_without_value() {
                self.zero(field.number, field.r#type);
            }
        }
    }

    /// The empty value of a type.
    pub(super) fn zero(&mut self, field: u16, r#type: Type) {
        match r#type {
            Type::Bool | Type::Int32 | Type::Int64 => self.integer(field, 0),
            Type::Double => self.double(field, 0.0),
            Type::Text | Type::Bytes | Type::Texts => self.delimited(field, b""),
            Type::Message(id) => self.within(field, |writer| {
                let message = SCHEMA.message(id);
                match message.form {
                    Form::Object => writer.fields(message, &[], &[]),
                    Form::Quantity => writer.delimited(1, b"0"),
                    Form::IntOrString => writer.int_or_string(0, 0, ""),
                    Form::FieldOrBool => writer.integer(1, 0),
                    Form::Time | Form::MicroTime | Form::RawJson | Form::RawExtension | Form::ListOrField => {
                    }
                }
            }),
        }
    }
}
