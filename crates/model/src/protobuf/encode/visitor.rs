//! What a value becomes, by its type: written while it is read.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Number, value::RawValue};

use super::{
    ProtobufEncodeError, ProtobufEncodeErrorKind as Kind,
    writer::{Part, Writer},
};
use crate::protobuf::{
    DEPTH_LIMIT,
    schema::{Count, Field, Form, MessageId, SCHEMA, Type},
    text::{base64_bytes, rfc3339_time},
};

/// How deep JSON may be nested that is kept as it is: what the decoder reads again.
const JSON_DEPTH_LIMIT: usize = 127;

/// What Go has in a time that was never set: the beginning of the year 1.
const UNSET_TIME: i64 = -62_135_596_800;

/// Writes one value into a field of this number.
pub(super) struct One<'w> {
    pub(super) writer: &'w mut Writer,
    pub(super) number: u16,
    pub(super) r#type: Type,
    /// How deep a message is that the value may be.
    pub(super) depth: usize,
}

/// Writes all that a field holds: one value, a list or a map.
struct All<'w> {
    writer: &'w mut Writer,
    field: &'static Field,
    depth: usize,
}

/// A value that is not what its field holds.
enum Found {
    Null,
    Bool(bool),
    Number(Number),
    Text,
    List,
    Object,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Number(number) => write!(f, "the number {number}"),
            // It may be anything, of any length.
            Self::Text => f.write_str("a text"),
            Self::List => f.write_str("a list"),
            Self::Object => f.write_str("an object"),
        }
    }
}

impl Writer {
    /// Ends the reading. The deserializer's own error says less than ours, which is kept beside it.
    fn fail<E: Error>(&mut self, kind: Kind) -> E {
        self.error = Some(ProtobufEncodeError::new(kind));
        E::custom("see the error of the writer")
    }

    fn mismatch<E: Error>(&mut self, expected: &'static str, found: &Found) -> E {
        self.fail(Kind::Mismatch { expected, found: found.to_string() })
    }

    /// Names the place of an error that passes by.
    fn passing(&mut self, place: impl FnOnce(ProtobufEncodeError) -> ProtobufEncodeError) {
        self.error = self.error.take().map(place);
    }
}

impl<'w> One<'w> {
    /// Reads a value and writes it.
    pub(super) fn read<'de>(self, value: impl Deserializer<'de>) -> super::Result<()> {
        let One { writer, number, r#type, depth } = self;
        One { writer: &mut *writer, number, r#type, depth }.deserialize(value).map_err(|error| {
            let kind = Kind::Json(error.to_string());
            writer.error.take().unwrap_or_else(|| ProtobufEncodeError::new(kind))
        })
    }

    fn form(&self) -> Option<(MessageId, Form)> {
        let Type::Message(id) = self.r#type else { return None };
        Some((id, SCHEMA.message(id).form))
    }

    fn mismatch<E: Error>(self, found: &Found) -> E {
        let expected = match (self.r#type, self.form()) {
            (Type::Bool, _) => "true or false",
            (Type::Int32, _) => "an integer of 32 bits",
            (Type::Int64, _) => "an integer of 64 bits",
            (Type::Double, _) => "a number",
            (Type::Text, _) => "a text",
            (Type::Bytes, _) => "base64",
            (Type::Texts, _) => "a list",
            (_, Some((_, Form::Quantity))) => "a quantity",
            (_, Some((_, Form::IntOrString))) => "a text or an integer of 32 bits",
            (_, Some((_, Form::Time | Form::MicroTime))) => "a time like 2026-01-31T12:00:00Z",
            _ => "an object",
        };
        self.writer.mismatch(expected, found)
    }

    fn integer<E: Error>(self, value: Option<i64>, found: &Number) -> Result<(), E> {
        let small = value.filter(|value| i32::try_from(*value).is_ok());
        match (self.r#type, self.form(), value, small) {
            (Type::Int64, _, Some(value), _) | (Type::Int32, _, _, Some(value)) => {
                self.writer.integer(self.number, value);
            }
            (Type::Double, ..) => self.writer.double(self.number, found.as_f64().unwrap_or_default()),
            (_, Some((_, Form::IntOrString)), _, Some(value)) => {
                self.writer.within(self.number, |writer| writer.int_or_string(0, value, ""));
            }
            (_, Some((_, Form::Quantity)), ..) => {
                let text = found.to_string();
                self.writer.within(self.number, |writer| writer.delimited(1, text.as_bytes()));
            }
            _ => return Err(self.mismatch(&Found::Number(found.clone()))),
        }
        Ok(())
    }

    /// JSON as it is.
    fn raw<E: Error>(self, raw: &RawValue) -> Result<(), E> {
        let raw = raw.get();
        if nests_deeper(raw, JSON_DEPTH_LIMIT) {
            return Err(self.writer.fail(Kind::Depth));
        }
        self.writer.within(self.number, |writer| {
            if raw != "null" {
                writer.delimited(1, raw.as_bytes());
            }
        });
        Ok(())
    }

    /// The fields of a message, from the object that has them, in the order of their numbers.
    fn fields<'de, A: MapAccess<'de>>(self, id: MessageId, mut object: A) -> Result<(), A::Error> {
        let Self { writer, number, depth, .. } = self;
        if depth >= DEPTH_LIMIT {
            return Err(writer.fail(Kind::Depth));
        }
        let message = SCHEMA.message(id);
        let (start, first_part) = (writer.bytes.len(), writer.parts.len());
        while let Some(field) = object.next_key_seed(Name(id))? {
            let Some(field) = field else {
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            let from = writer.bytes.len();
            let value = All { writer: &mut *writer, field, depth };
            object
                .next_value_seed(value)
                .inspect_err(|_| writer.passing(|error| error.in_field(field.name)))?;
            if writer.bytes.len() > from {
                writer.parts.push(Part { field, from, to: writer.bytes.len() });
            }
        }
        writer.arrange(number, message, start, first_part);
        Ok(())
    }

    fn items<'de, A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { writer, number, r#type, depth } = self;
        let mut at = 0;
        loop {
            let item = One { writer: &mut *writer, number, r#type, depth };
            let next = items.next_element_seed(item);
            match next.inspect_err(|_| writer.passing(|error| error.in_item(at)))? {
                Some(()) => at += 1,
                None => return Ok(()),
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        match self.form() {
            Some((_, Form::RawJson | Form::RawExtension)) => self.raw(&Box::<RawValue>::deserialize(value)?),
            _ => value.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    /// Null is the empty value of every type.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.writer.zero(self.number, self.r#type);
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        match (self.r#type, self.form()) {
            (Type::Bool, _) => self.writer.integer(self.number, value.into()),
            (_, Some((_, Form::FieldOrBool))) => {
                self.writer.within(self.number, |writer| writer.integer(1, value.into()));
            }
            _ => return Err(self.mismatch(&Found::Bool(value))),
        }
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.integer(Some(value), &value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.integer(value.try_into().ok(), &value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        match Number::from_f64(value) {
            Some(number) => self.integer(None, &number),
            None => Err(self.mismatch(&Found::Null)),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        match (self.r#type, self.form()) {
            (Type::Text, _) => self.writer.delimited(self.number, value.as_bytes()),
            (Type::Bytes, _) => match base64_bytes(value) {
                Some(bytes) => self.writer.delimited(self.number, &bytes),
                None => return Err(self.mismatch(&Found::Text)),
            },
            (_, Some((_, Form::Quantity))) => {
                self.writer.within(self.number, |writer| writer.delimited(1, value.as_bytes()));
            }
            (_, Some((_, Form::IntOrString))) => {
                self.writer.within(self.number, |writer| writer.int_or_string(1, 0, value));
            }
            (_, Some((_, form @ (Form::Time | Form::MicroTime)))) => {
                let Some((seconds, nanos)) = rfc3339_time(value) else {
                    return Err(self.mismatch(&Found::Text));
                };
                // A time has seconds alone in JSON, and microseconds if it is a micro time.
                let nanos = if form == Form::MicroTime { nanos / 1000 * 1000 } else { 0 };
                self.writer.within(self.number, |writer| {
                    if (seconds, nanos) != (UNSET_TIME, 0) {
                        writer.integer(1, seconds);
                        writer.integer(2, nanos);
                    }
                });
            }
            _ => return Err(self.mismatch(&Found::Text)),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<(), A::Error> {
        let Self { number, depth, .. } = self;
        match (self.r#type, self.form()) {
            (Type::Texts, _) => self
                .writer
                .message(number, |writer| One { writer, number: 1, r#type: Type::Text, depth }.items(items)),
            (_, Some((id, Form::ListOrField))) => self.writer.message(number, |writer| {
                let list = SCHEMA.fields(SCHEMA.message(id)).last();
                let r#type = list.map_or(Type::Text, |field| field.r#type);
                One { writer, number: 2, r#type, depth: depth + 1 }.items(items)
            }),
            _ => Err(self.mismatch(&Found::List)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        let Self { number, depth, .. } = self;
        match self.form() {
            Some((id, Form::Object)) => self.fields(id, object),
            // Where field 1 is a bool, field 2 means that it is true.
            Some((id, form @ (Form::FieldOrBool | Form::ListOrField))) => {
                let is_bool = form == Form::FieldOrBool;
                let field = SCHEMA.fields(SCHEMA.message(id)).get(usize::from(is_bool));
                let Some(&Field { number: inner, r#type, .. }) = field else {
                    return Err(self.mismatch(&Found::Object));
                };
                self.writer.message(number, |writer| {
                    if is_bool {
                        writer.integer(1, 1);
                    }
                    One { writer, number: inner, r#type, depth: depth + 1 }.visit_map(object)
                })
            }
            _ => Err(self.mismatch(&Found::Object)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for All<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        let Field { number, count, r#type, .. } = *self.field;
        match count {
            Count::List | Count::Map => value.deserialize_any(self),
            // Of a pointer to raw JSON there is nothing if it is null.
            _ if self.field.is_nil_without_value() => value.deserialize_option(self),
            _ => One { writer: self.writer, number, r#type, depth: self.depth + 1 }.deserialize(value),
        }
    }
}

impl<'de> Visitor<'de> for All<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        let Field { number, r#type, .. } = *self.field;
        One { writer: self.writer, number, r#type, depth: self.depth + 1 }.deserialize(value)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        Err(self.mismatch(&Found::Bool(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        Err(self.mismatch(&Found::Number(value.into())))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        Err(self.mismatch(&Found::Number(value.into())))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        let found = Number::from_f64(value).map_or(Found::Null, Found::Number);
        Err(self.mismatch(&found))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Err(self.mismatch(&Found::Text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<(), A::Error> {
        let Field { number, count, r#type, .. } = *self.field;
        match count {
            Count::List => One { writer: self.writer, number, r#type, depth: self.depth + 1 }.items(items),
            _ => Err(self.mismatch(&Found::List)),
        }
    }

    /// Go writes the entries of a map in the order of their keys.
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Field { number, count, r#type, .. } = *self.field;
        if count != Count::Map {
            return Err(self.mismatch(&Found::Object));
        }
        let Self { writer, depth, .. } = self;
        let start = writer.bytes.len();
        let mut written: Vec<(String, usize, usize)> = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            let from = writer.bytes.len();
            writer.message(number, |writer| {
                writer.delimited(1, key.as_bytes());
                let value = Entry(One { writer: &mut *writer, number: 2, r#type, depth: depth + 1 });
                entries.next_value_seed(value).inspect_err(|_| writer.passing(|error| error.in_field(&key)))
            })?;
            written.push((key, from, writer.bytes.len()));
        }
        if !written.is_sorted_by(|a, b| a.0 < b.0) {
            // Of two entries under one key the last counts, which comes first here.
            written.reverse();
            written.sort_by(|a, b| a.0.cmp(&b.0));
            written.dedup_by(|later, first| later.0 == first.0);
            let all = writer.bytes.split_off(start);
            for (_, from, to) in written {
                writer.bytes.extend_from_slice(&all[from - start..to - start]);
            }
        }
        Ok(())
    }
}

impl All<'_> {
    fn mismatch<E: Error>(self, found: &Found) -> E {
        let expected = if self.field.count == Count::List { "a list" } else { "an object" };
        self.writer.mismatch(expected, found)
    }
}

/// The value of an entry of a map: of bytes, null is none.
struct Entry<'w>(One<'w>);

impl<'de> DeserializeSeed<'de> for Entry<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        match self.0.r#type {
            Type::Bytes => value.deserialize_option(self),
            _ => self.0.deserialize(value),
        }
    }
}

impl<'de> Visitor<'de> for Entry<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        self.0.deserialize(value)
    }
}

/// Finds the field that a name means in a message, also in messages whose fields are shown as its own.
struct Name(MessageId);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<&'static Field>;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<Self::Value, D::Error> {
        name.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Option<&'static Field>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(SCHEMA.field(SCHEMA.message(self.0), name))
    }
}

/// Whether lists and objects are nested deeper in a text of JSON.
fn nests_deeper(json: &str, levels: usize) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                if depth > levels {
                    return true;
                }
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}
