//! Where JSON values begin and end.

use memchr::memchr2;

use super::{FrameError, Scan};

/// How many objects and arrays may lie in each other. Go's decoder, which every server has, stops there too.
const MAX_DEPTH: usize = 10_000;

/// Finds the boundaries of values: brackets are matched and strings skipped, nothing else is checked.
#[derive(Default)]
pub(super) struct JsonScanner {
    state: State,
    /// For each open bracket the one that closes it.
    open: Vec<u8>,
    /// Whether a value that is too deep is read to its end, and where that bracket stands in the last one.
    tolerant: bool,
    too_deep: Option<u64>,
    /// How many brackets are open beyond the limit. Of which kind they are is not checked.
    beyond: u64,
}

#[derive(Default, Clone, Copy)]
enum State {
    /// No value has begun. What ends a value leads here.
    #[default]
    Between,
    /// In an object or an array, outside of its strings. Its last bracket ends it.
    Nested,
    /// In a string. Its quote ends it, at the top the value too.
    String,
    /// After a backslash in a string: the next byte is not its quote.
    Escape,
    /// In a number at the top. Only the byte after it ends it, or the end of the stream.
    Number { ends_in_digit: bool },
    /// In `true`, `false` or `null` at the top: the letters to come, and how to call them. The last ends it.
    Literal(&'static [u8], &'static str),
}

impl JsonScanner {
    pub(super) fn scan(&mut self, piece: &[u8], offset: u64) -> Result<Scan, FrameError> {
        let (mut skip, mut at) = (0, 0);
        if let State::Between = self.state {
            let Some(begin) = piece.iter().position(|byte| !is_space(*byte)) else {
                return Ok(Scan { skip: piece.len(), take: 0, end: false });
            };
            self.state = begin_value(piece[begin], offset + begin as u64)?;
            self.too_deep = None;
            skip = begin;
            // The loop reads the first byte again, except for a quote, which would end the string there.
            at = begin + usize::from(piece[begin] == b'"');
        }
        loop {
            match self.state {
                State::Between | State::Literal([], _) => {
                    self.state = State::Between;
                    return Ok(Scan { skip, take: at - skip, end: true });
                }
                _ if at == piece.len() => return Ok(Scan { skip, take: at - skip, end: false }),
                State::Nested => at = self.nested(piece, at, offset)?,
                State::String => at = self.string(piece, at),
                State::Escape => (at, self.state) = (at + 1, State::String),
                State::Number { .. } => match piece[at] {
                    b'0'..=b'9' => (at, self.state) = (at + 1, State::Number { ends_in_digit: true }),
                    b'+' | b'-' | b'.' | b'e' | b'E' => {
                        (at, self.state) = (at + 1, State::Number { ends_in_digit: false });
                    }
                    _ => self.state = State::Between,
                },
                State::Literal([letter, rest @ ..], expected) => {
                    if piece[at] != *letter {
                        let (found, offset) = (piece[at], offset + at as u64);
                        return Err(FrameError::Unexpected { offset, found, expected });
                    }
                    (at, self.state) = (at + 1, State::Literal(rest, expected));
                }
            }
        }
    }

    /// Reads on outside of strings to the last bracket, the end of the piece or an unfinished string.
    fn nested(&mut self, piece: &[u8], mut at: usize, offset: u64) -> Result<usize, FrameError> {
        while let Some(&byte) = piece.get(at) {
            match byte {
                b'"' => {
                    at = self.string(piece, at + 1);
                    if !matches!(self.state, State::Nested) {
                        break;
                    }
                    continue;
                }
                b'{' => self.open(b'}', offset + at as u64)?,
                b'[' => self.open(b']', offset + at as u64)?,
                b'}' | b']' if self.beyond > 0 => self.beyond -= 1,
                b'}' | b']' => {
                    let expected = self.open.pop().unwrap_or(byte);
                    if byte != expected {
                        let (offset, found, expected) = (offset + at as u64, byte.into(), expected.into());
                        return Err(FrameError::Mismatched { offset, found, expected });
                    }
                    if self.open.is_empty() {
                        self.state = State::Between;
                        return Ok(at + 1);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        Ok(at)
    }

    fn open(&mut self, closing: u8, offset: u64) -> Result<(), FrameError> {
        if self.open.len() < MAX_DEPTH {
            self.open.push(closing);
            return Ok(());
        }
        let first = *self.too_deep.get_or_insert(offset);
        self.beyond += 1;
        if self.tolerant { Ok(()) } else { Err(FrameError::TooDeep { offset: first, limit: MAX_DEPTH }) }
    }

    /// From now on reads values that are too deep to their end; [`too_deep`](Self::too_deep) tells.
    pub(super) fn tolerate_depth(&mut self) {
        self.tolerant = true;
    }

    /// The error that the value is which is read or was read last.
    pub(super) fn too_deep(&self) -> Option<FrameError> {
        self.too_deep.map(|offset| FrameError::TooDeep { offset, limit: MAX_DEPTH })
    }

    /// Reads on inside a string to its end or that of the piece.
    fn string(&mut self, piece: &[u8], mut at: usize) -> usize {
        while let Some(found) = memchr2(b'"', b'\\', &piece[at..]) {
            at += found + 1;
            if piece[at - 1] == b'"' {
                self.state = if self.open.is_empty() { State::Between } else { State::Nested };
                return at;
            }
            if at == piece.len() {
                self.state = State::Escape;
                return at;
            }
            at += 1;
        }
        self.state = State::String;
        piece.len()
    }

    /// Whether the end of the stream completes the value, which only a number needs; then it is over.
    pub(super) fn ends_here(&mut self) -> bool {
        let ends = matches!(self.state, State::Number { ends_in_digit: true });
        if ends {
            self.state = State::Between;
        }
        ends
    }
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

fn begin_value(first: u8, offset: u64) -> Result<State, FrameError> {
    Ok(match first {
        b'{' | b'[' => State::Nested,
        b'"' => State::String,
        b'-' | b'0'..=b'9' => State::Number { ends_in_digit: false },
        b't' => State::Literal(b"true", "the rest of `true`"),
        b'f' => State::Literal(b"false", "the rest of `false`"),
        b'n' => State::Literal(b"null", "the rest of `null`"),
        found => return Err(FrameError::Unexpected { offset, found, expected: "a JSON value" }),
    })
}
