//! Lists and maps: fields that occur again and again, and messages that are a list in JSON.

use serde::de::{DeserializeSeed, MapAccess, SeqAccess};

use super::{
    Context, ENTRY, ITEM,
    value::{Source, Value, Word},
};
use crate::protobuf::{
    error::Failure,
    schema::{Absent, Count, Type},
    wire::{Reader, Tag, WireType},
};

/// The items of a list that follow each other.
pub(super) struct Items<'r, 'a, 's> {
    reader: &'r mut Reader<'a>,
    /// The tag of the next item.
    tag: Option<Tag>,
    /// Several numbers in one.
    packed: Option<Reader<'a>>,
    r#type: Type,
    context: Context<'s>,
}

impl<'r, 'a, 's> Items<'r, 'a, 's> {
    /// The items of which the first stands after this tag.
    pub(super) fn new(reader: &'r mut Reader<'a>, tag: Tag, r#type: Type, context: Context<'s>) -> Self {
        Self { reader, tag: Some(tag), packed: None, r#type, context }
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de, '_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        let packable = match self.r#type {
            Type::Bool | Type::Int32 | Type::Int64 => Some(WireType::Varint),
            Type::Double => Some(WireType::Fixed64),
            _ => None,
        };
        loop {
            let Some(tag) = self.tag else { return Ok(None) };
            let position = self.reader.position();
            self.context.take(ITEM, position)?;
            match (&mut self.packed, packable) {
                (Some(packed), Some(wire)) if !packed.is_at_end() => {
                    let tag = Tag { wire, position: packed.position(), ..tag };
                    return seed.deserialize(self.context.value(packed, tag, self.r#type)).map(Some);
                }
                (packed @ Some(_), _) => {
                    *packed = None;
                    self.tag = again(self.reader, tag)?;
                }
                (packed, Some(_)) if tag.wire == WireType::Delimited => {
                    *packed = Some(self.reader.delimited()?);
                }
                _ => {
                    let item = seed.deserialize(self.context.value(self.reader, tag, self.r#type))?;
                    self.tag = again(self.reader, tag)?;
                    return Ok(Some(item));
                }
            }
        }
    }

    /// How many items follow, so that a list is allocated once and as long as it is: stepping over an item costs
    /// next to nothing.
    fn size_hint(&self) -> Option<usize> {
        let (mut ahead, mut next, mut items) = (*self.reader, self.tag, 0);
        while let Some(tag) = next {
            items += 1;
            next = ahead.skip(tag).and_then(|()| again(&mut ahead, tag)).unwrap_or_default();
        }
        self.packed.is_none().then_some(items)
    }
}

impl<'s> Context<'s> {
    fn value<'r, 'a>(self, reader: &'r mut Reader<'a>, tag: Tag, r#type: Type) -> Value<'r, 'a, 's> {
        Value { source: Source::Sent(reader, tag), count: Count::One, r#type, context: self }
    }
}

/// The entries of a map that follow each other: the key in field 1, the value in field 2, and the zero for what is
/// missing.
pub(super) struct Entries<'r, 'a, 's> {
    reader: &'r mut Reader<'a>,
    tag: Option<Tag>,
    /// The value of the entry whose key was told.
    value: Option<(Reader<'a>, Tag)>,
    r#type: Type,
    context: Context<'s>,
}

impl<'r, 'a, 's> Entries<'r, 'a, 's> {
    /// The entries of which the first stands after this tag.
    pub(super) fn new(reader: &'r mut Reader<'a>, tag: Tag, r#type: Type, context: Context<'s>) -> Self {
        Self { reader, tag: Some(tag), value: None, r#type, context }
    }
}

impl<'de> MapAccess<'de> for Entries<'_, 'de, '_> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some(tag) = self.tag else { return Ok(None) };
        self.context.take(ENTRY, tag.position)?;
        let mut entry = message_after(self.reader, tag)?;
        self.tag = again(self.reader, tag)?;
        let mut key = "";
        self.value = None;
        while let Some(tag) = entry.tag()? {
            match tag.number {
                1 => {
                    tag.expect(WireType::Delimited)?;
                    key = entry.text()?;
                }
                2 => {
                    self.value = Some((entry, tag));
                    entry.skip(tag)?;
                }
                _ => entry.skip(tag)?,
            }
        }
        seed.deserialize(Word(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let Self { context, r#type, .. } = *self;
        match self.value.take() {
            Some((mut reader, tag)) => seed.deserialize(context.value(&mut reader, tag, r#type)),
            None => {
                let source = Source::Absent(Absent::Zero, self.reader.position());
                seed.deserialize(Value { source, count: Count::One, r#type, context })
            }
        }
    }
}

/// The texts in field 1 of a message.
pub(super) struct Texts<'a, 's> {
    reader: Reader<'a>,
    context: Context<'s>,
}

impl<'a, 's> Texts<'a, 's> {
    pub(super) fn new(reader: Reader<'a>, context: Context<'s>) -> Self {
        Self { reader, context }
    }
}

impl<'de> SeqAccess<'de> for Texts<'de, '_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        while let Some(tag) = self.reader.tag()? {
            if tag.number == 1 {
                self.context.take(ITEM, tag.position)?;
                return seed.deserialize(self.context.value(&mut self.reader, tag, Type::Text)).map(Some);
            }
            self.reader.skip(tag)?;
        }
        Ok(None)
    }
}

/// An empty list.
pub(super) struct Nothing;

impl<'de> SeqAccess<'de> for Nothing {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, _: T) -> Result<Option<T::Value>, Failure> {
        Ok(None)
    }
}

/// Steps over a value: of lists and maps, over all that follow each other.
pub(super) fn pass(reader: &mut Reader<'_>, mut tag: Tag, count: Count) -> Result<(), Failure> {
    loop {
        reader.skip(tag)?;
        match count {
            Count::List | Count::Map => match again(reader, tag)? {
                Some(next) => tag = next,
                None => return Ok(()),
            },
            Count::One | Count::Embedded => return Ok(()),
        }
    }
}

/// The next tag, if it is of the same field.
fn again(reader: &mut Reader<'_>, tag: Tag) -> Result<Option<Tag>, Failure> {
    let mut ahead = *reader;
    let next = ahead.tag()?.filter(|next| next.number == tag.number);
    if next.is_some() {
        *reader = ahead;
    }
    Ok(next)
}

pub(super) fn message_after<'a>(reader: &mut Reader<'a>, tag: Tag) -> Result<Reader<'a>, Failure> {
    tag.expect(WireType::Delimited)?;
    reader.delimited()
}
