//! The items of a list, one by one, and last the list without them.

use super::{FrameError, Scan, json::JsonScanner, json::is_space};

/// Follows the members of one JSON object. Each element of its array `items` is a frame of its own; all other
/// bytes are kept and are the last frame.
#[derive(Default)]
pub(super) struct ListScanner {
    place: Place,
    /// The value that is read: an item, or a member of the list that is not `items`.
    value: JsonScanner,
    /// The list without its items, as far as it came.
    envelope: Vec<u8>,
    /// Where in the envelope the name of the member begins, after its quote.
    name: usize,
    /// Where the list begins in the stream.
    begin: u64,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the list.
    #[default]
    Before,
    /// Before the name of a member; only the first may be missing.
    Name { first: bool },
    /// In the name of a member.
    InName,
    /// After a backslash in the name of a member.
    Escape,
    /// Between the name of a member and its value.
    Colon,
    /// Before the value of a member.
    Member { is_items: bool },
    /// In the value of a member that is not `items`.
    InMember,
    /// After the value of a member.
    AfterMember,
    /// Before an item; only the first may be missing.
    Item { first: bool },
    /// In an item.
    InItem,
    /// After an item.
    AfterItem,
    /// The list is complete, and not yet handed out.
    Complete,
    /// Behind the list.
    Behind,
}

impl ListScanner {
    /// What is skipped is not lost: it belongs to the envelope.
    pub(super) fn scan(&mut self, piece: &[u8], offset: u64, limit: usize) -> Result<Scan, FrameError> {
        let mut at = 0;
        while let Some(rest) = piece.get(at..).filter(|rest| !rest.is_empty()) {
            let here = offset + at as u64;
            match self.place {
                Place::InItem => {
                    let Scan { skip, take, end } = self.value.scan(rest, here)?;
                    if end {
                        self.place = Place::AfterItem;
                    }
                    return Ok(Scan { skip: at + skip, take, end });
                }
                Place::InMember => {
                    let Scan { skip, take, end } = self.value.scan(rest, here)?;
                    if let Some(too_deep) = self.value.too_deep() {
                        return Err(too_deep);
                    }
                    if end {
                        self.place = Place::AfterMember;
                    }
                    self.envelope.extend_from_slice(&rest[..skip + take]);
                    at += skip + take;
                }
                _ => at += self.step(rest[0], here)?,
            }
            if self.envelope.len() > limit {
                return Err(FrameError::TooLarge { offset: self.begin, limit, announced: None });
            }
            if self.place == Place::Complete {
                break;
            }
        }
        Ok(Scan { skip: at, take: 0, end: false })
    }

    /// Looks at one byte outside of values. Answers how many bytes that were: none if it begins a value.
    fn step(&mut self, byte: u8, offset: u64) -> Result<usize, FrameError> {
        let unexpected = |expected| Err(FrameError::Unexpected { offset, found: byte, expected });
        self.place = match (self.place, byte) {
            (Place::Before | Place::Item { .. } | Place::AfterItem | Place::Behind, _) if is_space(byte) => {
                return Ok(1);
            }
            (Place::InName, b'"') => Place::Colon,
            (Place::InName, b'\\') => Place::Escape,
            (Place::InName | Place::Escape, _) => Place::InName,
            (place, _) if is_space(byte) => place,
            (Place::Before, b'{') => {
                self.begin = offset;
                Place::Name { first: true }
            }
            (Place::Name { .. }, b'"') => {
                self.name = self.envelope.len() + 1;
                Place::InName
            }
            (Place::Name { first: true } | Place::AfterMember, b'}') => Place::Complete,
            (Place::Colon, b':') => Place::Member { is_items: self.is_items() },
            (Place::Member { is_items: true }, b'[') => Place::Item { first: true },
            (Place::Member { .. }, _) => {
                self.place = Place::InMember;
                return Ok(0);
            }
            (Place::Item { first: true } | Place::AfterItem, b']') => Place::AfterMember,
            (Place::Item { .. }, _) => {
                self.place = Place::InItem;
                return Ok(0);
            }
            // The comma between two items goes with the items.
            (Place::AfterItem, b',') => {
                self.place = Place::Item { first: false };
                return Ok(1);
            }
            (Place::AfterMember, b',') => Place::Name { first: false },
            (Place::Before, _) => return unexpected("`{`, with which a list begins"),
            (Place::Name { .. }, _) => return unexpected("the name of a member"),
            (Place::Colon, _) => return unexpected("`:`"),
            (Place::AfterMember, _) => return unexpected("`,` or `}`"),
            (Place::AfterItem, _) => return unexpected("`,` or `]`"),
            (Place::InMember | Place::InItem | Place::Complete | Place::Behind, _) => {
                return unexpected("nothing after the list");
            }
        };
        self.envelope.push(byte);
        Ok(1)
    }

    /// Whether the member whose name came last is `items`.
    fn is_items(&self) -> bool {
        let name = self.envelope.get(self.name..).unwrap_or_default();
        let name = name.iter().rposition(|byte| *byte == b'"').map_or(name, |end| &name[..end]);
        let escaped = || {
            let quoted = [b"\"", name, b"\""].concat();
            serde_json::from_slice::<String>(&quoted).is_ok_and(|name| name == "items")
        };
        name == b"items" || (name.contains(&b'\\') && escaped())
    }

    /// The values of the list.
    pub(super) fn values(&mut self) -> &mut JsonScanner {
        &mut self.value
    }

    /// How many bytes of the envelope came.
    pub(super) fn held(&self) -> usize {
        self.envelope.len()
    }

    /// The list without its items, once, when all of it came.
    pub(super) fn envelope(&mut self) -> Option<Vec<u8>> {
        (self.place == Place::Complete).then(|| {
            self.place = Place::Behind;
            std::mem::take(&mut self.envelope)
        })
    }

    /// Where the list begins, if it is not complete.
    pub(super) fn unfinished(&self) -> Option<u64> {
        (self.place != Place::Behind).then_some(self.begin)
    }
}
