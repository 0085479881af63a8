//! The items of a list in protobuf, one by one, and last the list without them.

use super::{FrameError, Scan};

/// What an object begins with.
const PREFIX: &[u8] = b"k8s\0";
/// In the envelope: the list.
const RAW: u64 = 2;
/// In the list: an item.
const ITEM: u64 = 2;
/// The type of a value that has a length.
const DELIMITED: u64 = 2;

/// Follows the fields of an envelope and of the list in it. Each item of the list is a frame of its own; all other
/// fields are kept, and are the last frame, in an envelope again.
#[derive(Default)]
pub(super) struct ProtobufListScanner {
    place: Place,
    /// The integer that is read, and how many of its bytes came.
    integer: u64,
    length: u32,
    /// The fields of the envelope but the list, and those of the list but its items.
    around: Vec<u8>,
    inside: Vec<u8>,
    /// How many bytes of the list are still to come, while it is read.
    list_left: Option<usize>,
    /// Whether a list came at all.
    listed: bool,
    begin: u64,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// So many bytes of the prefix came.
    #[default]
    Before,
    Prefix(usize),
    /// Before or in a tag.
    Tag,
    /// In an integer.
    Integer,
    /// In the length of a value with this field number.
    Length(u64),
    /// In a value of which so many bytes are still to come.
    Value(usize),
    /// In an item of which so many bytes are still to come.
    Item(usize),
    /// The last frame was handed out.
    Over,
}

impl ProtobufListScanner {
    pub(super) fn scan(&mut self, piece: &[u8], offset: u64, limit: usize) -> Result<Scan, FrameError> {
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            if let Place::Item(left) = self.place {
                return Ok(self.item(at, left.min(piece.len() - at), left));
            }
            let taken = match self.place {
                Place::Value(left) => left.min(piece.len() - at),
                _ => 1,
            };
            let bytes = &piece[at..at + taken];
            self.list_left = match self.list_left {
                Some(left) => Some(left.checked_sub(taken).ok_or_else(|| self.beyond(offset + at as u64))?),
                None => None,
            };
            self.step(byte, bytes, offset + at as u64)?;
            at += taken;
            if self.around.len() + self.inside.len() > limit {
                return Err(FrameError::TooLarge { offset: self.begin, limit, announced: None });
            }
            // An item without a byte is complete when its length is there.
            if self.place == Place::Item(0) {
                return Ok(self.item(at, 0, 0));
            }
            if self.list_left == Some(0) && self.place == Place::Tag && self.length == 0 {
                self.list_left = None;
            }
        }
        Ok(Scan { skip: at, take: 0, end: false })
    }

    fn item(&mut self, skip: usize, take: usize, left: usize) -> Scan {
        let end = take == left;
        self.place = if end { Place::Tag } else { Place::Item(left - take) };
        self.list_left = self.list_left.map(|list| list - take).filter(|list| *list > 0 || !end);
        Scan { skip, take, end }
    }

    /// One byte, or several of a value.
    fn step(&mut self, byte: u8, bytes: &[u8], offset: u64) -> Result<(), FrameError> {
        match self.place {
            Place::Before | Place::Prefix(_) => {
                let at = if let Place::Prefix(at) = self.place { at } else { 0 };
                if PREFIX.get(at) != Some(&byte) {
                    let expected = "the bytes `k8s\\0`, with which an object begins";
                    return Err(FrameError::Unexpected { offset, found: byte, expected });
                }
                if at == 0 {
                    self.begin = offset;
                }
                self.place = if at + 1 == PREFIX.len() { Place::Tag } else { Place::Prefix(at + 1) };
            }
            Place::Tag => {
                if let Some(tag) = self.integer(byte, offset)? {
                    self.place = match tag & 7 {
                        0 => Place::Integer,
                        1 => Place::Value(8),
                        DELIMITED => Place::Length(tag >> 3),
                        5 => Place::Value(4),
                        _ => {
                            let expected = "the tag of a field";
                            return Err(FrameError::Unexpected { offset, found: byte, expected });
                        }
                    };
                    if let (Place::Value(length), Some(left)) = (self.place, self.list_left)
                        && length > left
                    {
                        return Err(self.beyond(offset));
                    }
                    let is_list = self.list_left.is_none() && tag == RAW << 3 | DELIMITED;
                    let is_item = self.list_left.is_some() && tag == ITEM << 3 | DELIMITED;
                    if !is_list && !is_item {
                        varint(self.kept(), tag);
                    }
                }
            }
            Place::Integer => {
                self.kept().push(byte);
                if self.integer(byte, offset)?.is_some() {
                    self.place = Place::Tag;
                }
            }
            Place::Length(number) => {
                if let Some(length) = self.integer(byte, offset)? {
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    if self.list_left.is_some_and(|left| length > left) {
                        return Err(self.beyond(offset));
                    }
                    self.place = match (number, self.list_left) {
                        (RAW, None) => {
                            (self.list_left, self.listed) = (Some(length), true);
                            Place::Tag
                        }
                        (ITEM, Some(_)) => Place::Item(length),
                        _ => {
                            varint(self.kept(), length as u64);
                            if length == 0 { Place::Tag } else { Place::Value(length) }
                        }
                    };
                }
            }
            Place::Value(left) => {
                self.kept().extend_from_slice(bytes);
                self.place = if left == bytes.len() { Place::Tag } else { Place::Value(left - bytes.len()) };
            }
            Place::Item(_) | Place::Over => {
                let expected = "nothing after the list";
                return Err(FrameError::Unexpected { offset, found: byte, expected });
            }
        }
        Ok(())
    }

    /// The integer that ends with this byte, if it does.
    fn integer(&mut self, byte: u8, offset: u64) -> Result<Option<u64>, FrameError> {
        if self.length == 9 && byte > 1 {
            let expected = "an integer of at most 64 bits";
            return Err(FrameError::Unexpected { offset, found: byte, expected });
        }
        self.integer |= u64::from(byte & 0x7f) << (7 * self.length);
        self.length += 1;
        if byte & 0x80 != 0 {
            return Ok(None);
        }
        self.length = 0;
        Ok(Some(std::mem::take(&mut self.integer)))
    }

    /// Where the field that is read is kept.
    fn kept(&mut self) -> &mut Vec<u8> {
        if self.list_left.is_some() { &mut self.inside } else { &mut self.around }
    }

    fn beyond(&self, offset: u64) -> FrameError {
        let expected = "the end of the list before the end of its field";
        FrameError::Unexpected { offset, found: self.integer as u8, expected }
    }

    /// How many bytes are kept.
    pub(super) fn held(&self) -> usize {
        self.around.len() + self.inside.len()
    }

    /// The list without its items, once, when the stream ends where it may.
    pub(super) fn last(&mut self) -> Option<Vec<u8>> {
        let ends_here = self.place == Place::Tag && self.length == 0 && self.list_left.is_none();
        (ends_here && self.listed).then(|| {
            self.place = Place::Over;
            let mut envelope = [PREFIX, &self.around].concat();
            varint(&mut envelope, RAW << 3 | DELIMITED);
            varint(&mut envelope, self.inside.len() as u64);
            envelope.append(&mut self.inside);
            envelope
        })
    }

    /// Where the list begins, if it is not complete.
    pub(super) fn unfinished(&self) -> Option<u64> {
        (self.place != Place::Over).then_some(self.begin)
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
