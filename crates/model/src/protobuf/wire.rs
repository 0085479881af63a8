//! The encoding below all messages: tags, integers, lengths.
//!
//! A [`Reader`] stands in one message and knows where it ends; the reader of a message inside it ends no
//! later. Positions count from the beginning of the whole body.

use super::error::{Failure, ProtobufErrorKind as Kind, failure};

/// How a value is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireType {
    /// Seven bits in each byte.
    Varint = 0,
    /// Eight bytes.
    Fixed64 = 1,
    /// A length and as many bytes.
    Delimited = 2,
    /// Four bytes.
    Fixed32 = 5,
}

impl WireType {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Varint => "an integer",
            Self::Fixed64 => "8 bytes",
            Self::Delimited => "a length and bytes",
            Self::Fixed32 => "4 bytes",
        }
    }
}

/// What stands before a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    pub(super) number: u32,
    pub(super) wire: WireType,
    pub(super) position: usize,
}

impl Tag {
    /// Refuses a value in another encoding.
    #[inline]
    pub(super) fn expect(self, expected: WireType) -> Result<(), Failure> {
        if self.wire == expected {
            Ok(())
        } else {
            Err(failure(self.position, Kind::Encoding { expected: expected.name(), found: self.wire.name() }))
        }
    }
}

/// The rest of one message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    /// What is left of the message.
    rest: &'a [u8],
    /// Where `rest` ends in the body.
    end: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Self { rest: body, end: body.len() }
    }

    /// A message of which nothing came, and which would stand here.
    pub(super) fn nothing_at(position: usize) -> Self {
        Self { rest: &[], end: position }
    }

    /// Where the next byte stands in the body.
    #[inline]
    pub(super) fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    #[inline]
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Steps over these bytes if they stand here.
    pub(super) fn strip_prefix(&mut self, prefix: &[u8]) -> bool {
        let after = self.rest.strip_prefix(prefix);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn fail<T>(&self, kind: Kind) -> Result<T, Failure> {
        Err(failure(self.position(), kind))
    }

    /// The next tag; none at the end of the message.
    #[inline]
    pub(super) fn tag(&mut self) -> Result<Option<Tag>, Failure> {
        if self.is_at_end() {
            return Ok(None);
        }
        let position = self.position();
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Delimited,
            5 => WireType::Fixed32,
            other => return Err(failure(position, Kind::WireType(other as u8))),
        };
        match key >> 3 {
            number @ 1..=0x1fff_ffff => Ok(Some(Tag { number: number as u32, wire, position })),
            _ => Err(failure(position, Kind::FieldNumber)),
        }
    }

    /// Most take a byte, fields from 16 on and longer texts two.
    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, Failure> {
        match self.rest {
            [byte @ ..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            [low, high @ ..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(low & 0x7f) | u64::from(*high) << 7)
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Failure> {
        let mut value = 0;
        for (i, byte) in self.rest.iter().enumerate() {
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for the last of 64 bits.
            if i == 9 && *byte > 1 {
                return self.fail(Kind::LongInteger);
            }
            value |= bits << (7 * i);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        self.fail(Kind::Truncated)
    }

    pub(super) fn double(&mut self) -> Result<f64, Failure> {
        let Some((bytes, rest)) = self.rest.split_first_chunk() else {
            return self.fail(Kind::Truncated);
        };
        self.rest = rest;
        Ok(f64::from_le_bytes(*bytes))
    }

    /// The message, text or bytes that stand here with their length.
    #[inline]
    pub(super) fn delimited(&mut self) -> Result<Reader<'a>, Failure> {
        let position = self.position();
        let length = self.varint()?;
        let parts = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let Some((inside, rest)) = parts else {
            return Err(failure(position, Kind::Truncated));
        };
        self.rest = rest;
        Ok(Reader { rest: inside, end: self.end - rest.len() })
    }

    #[inline]
    pub(super) fn text(&mut self) -> Result<&'a str, Failure> {
        self.delimited()?.as_text()
    }

    /// All that is left, as a text.
    #[inline]
    pub(super) fn as_text(&self) -> Result<&'a str, Failure> {
        std::str::from_utf8(self.rest)
            .map_err(|error| failure(self.position() + error.valid_up_to(), Kind::Utf8))
    }

    /// Steps over the value after a tag.
    #[inline]
    pub(super) fn skip(&mut self, tag: Tag) -> Result<(), Failure> {
        let length = match tag.wire {
            WireType::Varint => return self.varint().map(drop),
            WireType::Delimited => return self.delimited().map(drop),
            WireType::Fixed64 => 8,
            WireType::Fixed32 => 4,
        };
        match self.rest.get(length..) {
            Some(rest) => self.rest = rest,
            None => return self.fail(Kind::Truncated),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(bytes: &[u8]) -> Result<u64, (usize, Kind)> {
        Reader::new(bytes).varint().map_err(|error| (error.position, error.kind))
    }

    #[test]
    fn integers_have_up_to_64_bits() {
        assert_eq!(varint(&[0x7f]), Ok(127));
        assert_eq!(varint(&[0x80, 0x01]), Ok(128));
        assert_eq!(varint(&[0x80, 0x00]), Ok(0), "not the shortest form, but a form");
        let mut longest = [0xff; 10];
        longest[9] = 1;
        assert_eq!(varint(&longest), Ok(u64::MAX));
        longest[9] = 2;
        assert_eq!(varint(&longest), Err((0, Kind::LongInteger)));
        assert_eq!(varint(&[0x80; 11]), Err((0, Kind::LongInteger)));
        assert_eq!(varint(&[0x80; 9]), Err((0, Kind::Truncated)));
        assert_eq!(varint(&[]), Err((0, Kind::Truncated)));
    }

    #[test]
    fn a_length_stays_within_its_message() {
        // A message of 3 bytes whose field claims 3 bytes, with more bytes after the message.
        let body = [3, 0x0a, 3, b'a', b'b', b'c'];
        let mut inside = Reader::new(&body).delimited().unwrap();
        assert_eq!(inside.tag().unwrap().unwrap().number, 1);
        let error = inside.delimited().unwrap_err();
        assert_eq!((error.position, error.kind), (2, Kind::Truncated));
        let endless = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(Reader::new(&endless).delimited().is_err());
    }

    #[test]
    fn positions_count_from_the_beginning_of_the_body() {
        let body = [0x0a, 4, 0x12, 2, b'a', 0xff, 0x08];
        let mut outside = Reader::new(&body);
        outside.tag().unwrap();
        let mut inside = outside.delimited().unwrap();
        inside.tag().unwrap();
        assert_eq!(inside.text().unwrap_err(), failure(5, Kind::Utf8));
        assert!(inside.is_at_end() && inside.tag().unwrap().is_none());
        let tag = outside.tag().unwrap().unwrap();
        assert_eq!(tag.position, 6);
        assert_eq!(outside.skip(tag).unwrap_err(), failure(7, Kind::Truncated));
    }

    #[test]
    fn tags_that_mean_nothing_are_refused() {
        let tag =
            |bytes: &[u8]| Reader::new(bytes).tag().map(|tag| tag.map(|t| t.number)).map_err(|e| e.kind);
        assert_eq!(tag(&[0x0a]), Ok(Some(1)));
        assert_eq!(tag(&[0x0b]), Err(Kind::WireType(3)));
        assert_eq!(tag(&[0x0c]), Err(Kind::WireType(4)));
        assert_eq!(tag(&[0x0e]), Err(Kind::WireType(6)));
        assert_eq!(tag(&[0x02]), Err(Kind::FieldNumber));
        assert_eq!(tag(&[0xfa, 0xff, 0xff, 0xff, 0x0f]), Ok(Some(0x1fff_ffff)));
        assert_eq!(tag(&[0x82, 0x80, 0x80, 0x80, 0x10]), Err(Kind::FieldNumber));
    }

    #[test]
    fn every_value_can_be_stepped_over() {
        for value in
            [&[0x08, 0x80, 1][..], &[0x09, 1, 2, 3, 4, 5, 6, 7, 8], &[0x0a, 1, 2], &[0x0d, 1, 2, 3, 4]]
        {
            let mut reader = Reader::new(value);
            let tag = reader.tag().unwrap().unwrap();
            reader.skip(tag).unwrap();
            assert!(reader.is_at_end(), "{value:?}");
            let mut cut = Reader::new(&value[..value.len() - 1]);
            let tag = cut.tag().unwrap().unwrap();
            assert_eq!(cut.skip(tag).map_err(|error| error.kind), Err(Kind::Truncated), "{value:?}");
        }
    }
}
