//! A place in the JSON text of an object, and quick ways forward from it.

use std::borrow::Cow;

/// Reads on in JSON.
///
/// The text was JSON when it was stored, so nothing is checked here. What answers `None` met the end, or something
/// that is not JSON: the reader then stops where it is.
#[derive(Debug)]
pub struct Cursor<'j> {
    json: &'j str,
    at: usize,
}

impl<'j> Cursor<'j> {
    /// At the beginning of a text.
    pub fn new(json: &'j str) -> Self {
        Self::at(json, 0)
    }

    /// At a place in a text, in bytes.
    pub fn at(json: &'j str, at: usize) -> Self {
        Self { json, at }
    }

    /// Where the cursor is, in bytes.
    pub fn position(&self) -> usize {
        self.at
    }

    fn byte(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    /// The next byte that is not space, at which the cursor then is.
    pub fn peek(&mut self) -> Option<u8> {
        while matches!(self.byte()?, b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
        self.byte()
    }

    /// Goes behind this byte if it is the next one.
    pub fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// A string with its quotes.
    pub fn string(&mut self) -> Option<&'j str> {
        self.eat(b'"')?;
        let start = self.at - 1;
        self.rest_of_string()?;
        self.json.get(start..self.at)
    }

    /// Goes behind the quote that ends a string: eight bytes at a time, because most of an object is strings.
    fn rest_of_string(&mut self) -> Option<()> {
        let bytes = self.json.as_bytes();
        loop {
            while let Some(eight) = bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
                let eight = u64::from_le_bytes(*eight);
                let stops = zero_bytes(eight ^ QUOTES) | zero_bytes(eight ^ BACKSLASHES);
                if stops != 0 {
                    self.at += stops.trailing_zeros() as usize / 8;
                    break;
                }
                self.at += 8;
            }
            match self.byte()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// Passes over so many bytes, and answers them.
    pub fn take(&mut self, len: usize) -> Option<&'j str> {
        let taken = self.json.get(self.at..self.at + len)?;
        self.at += len;
        Some(taken)
    }

    /// Passes over a value, however deep, and answers its text.
    pub fn value(&mut self) -> Option<&'j str> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => return self.string(),
            b'{' | b'[' => self.structure()?,
            _ => {
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
                let rest = self.json.as_bytes().get(start..)?;
                self.at += rest.iter().position(is_end).unwrap_or(rest.len());
            }
        }
        self.json.get(start..self.at).filter(|text| !text.is_empty())
    }

    fn structure(&mut self) -> Option<()> {
        let mut open = 0usize;
        loop {
            match self.bracket()? {
                b'{' | b'[' => open += 1,
                _ => {
                    open -= 1;
                    if open == 0 {
                        return Some(());
                    }
                }
            }
        }
    }

    /// Goes behind the next bracket of an object or an array, whatever lies before it, and answers the bracket.
    pub fn bracket(&mut self) -> Option<u8> {
        loop {
            let byte = self.byte()?;
            self.at += 1;
            match byte {
                b'"' => self.rest_of_string()?,
                b'{' | b'[' | b'}' | b']' => return Some(byte),
                _ => {}
            }
        }
    }
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);

/// The high bit of each byte that is zero, up to the first one; what stands above that means nothing.
fn zero_bytes(eight: u64) -> u64 {
    eight.wrapping_sub(ONES) & !eight & (ONES << 7)
}

/// What a string with its quotes says; `None` if it says no text, because half a surrogate pair is missing.
pub fn unquoted(string: &str) -> Option<Cow<'_, str>> {
    match string.contains('\\') {
        true => serde_json::from_str(string).ok().map(Cow::Owned),
        false => string.strip_prefix('"')?.strip_suffix('"').map(Cow::Borrowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_passed_over_whole() {
        let strings =
            ["", "a", "1234567", "12345678", "123456789012", r#"\""#, r"1234567\\", r"\\\\\\\\", "é☃"];
        let strings = strings.map(|text| format!("\"{text}\""));
        let others =
            ["0", "-1.5e+3", "true", "null", "{}", "[]", r#"[["}",{"]":"\\"}]]"#, r#"{ "a" : [ 1 ] }"#];
        for value in strings.iter().map(String::as_str).chain(others) {
            for after in ["", ",1", "}", "]", " ,"] {
                let json = format!(" {value}{after}");
                let mut cursor = Cursor::new(&json);
                assert_eq!(cursor.value(), Some(value), "{json}");
                assert_eq!(cursor.position(), 1 + value.len());
            }
        }
    }

    #[test]
    fn what_is_cut_off_is_no_value() {
        let json = r#"{"a":["\\\"x",{"b":"12345678\"9"}],"c":true}"#;
        for end in 0..json.len() {
            assert_eq!(Cursor::new(&json[..end]).value(), None, "cut at {end}");
        }
        for odd in ["", " ", "}", ",", "\"", r#""\"#, r#""\""#] {
            assert_eq!(Cursor::new(odd).value(), None, "{odd}");
        }
    }

    #[test]
    fn a_value_may_be_very_deep() {
        let json = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(Cursor::new(&json).value(), Some(&*json));
    }

    #[test]
    fn a_string_says_its_text() {
        assert_eq!(unquoted(r#""a\u0062\n☃""#).as_deref(), Some("ab\n☃"));
        assert_eq!(unquoted(r#""plain""#), Some(Cow::Borrowed("plain")));
        assert_eq!(unquoted(r#""\ud800""#), None);
    }
}
