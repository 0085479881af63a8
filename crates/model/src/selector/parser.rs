//! From text to requirements.
//!
//! ```text
//! selector    = [ requirement { "," requirement } ]
//! requirement = key | "!" key | key sign [ value ] | key ( "in" | "notin" ) set
//! set         = "(" [ value ] { "," [ value ] } ")"
//! sign        = "=" | "==" | "!=" | ">" | "<"
//! ```
//!
//! `in` and `notin` are operators only after a key; elsewhere they are words like any other.

use super::requirement::{Operator, Requirement, floor_char};
use crate::{LabelError, validate_label_key, validate_label_value};

/// Why a text is not a [`Selector`](super::Selector).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("label selector {input:?}: {}", .kind.describe(*.position))]
pub struct SelectorError {
    /// The whole text.
    pub input: String,
    /// Where the error was found, in bytes: always the beginning of a character, or the end.
    pub position: usize,
    /// What is wrong there.
    pub kind: SelectorErrorKind,
}

/// What is wrong at the position of a [`SelectorError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectorErrorKind {
    /// The grammar wants something else here.
    Unexpected {
        /// What can stand here.
        expected: &'static str,
        /// The word or sign that stands here; empty at the end of the text.
        found: String,
    },
    /// A key breaks a rule for label keys.
    Key(LabelError),
    /// A value breaks a rule for label values.
    Value(LabelError),
}

impl SelectorErrorKind {
    fn describe(&self, position: usize) -> String {
        match self {
            Self::Unexpected { expected, found } if found.is_empty() => {
                format!("expected {expected} at byte {position}, found the end")
            }
            Self::Unexpected { expected, found } => {
                format!("expected {expected} at byte {position}, found `{}`", found.escape_debug())
            }
            Self::Key(error) => format!("bad label key at byte {position}: {error}"),
            Self::Value(error) => format!("bad label value at byte {position}: {error}"),
        }
    }
}

pub(super) fn parse(input: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = Parser { input, next: token(input, 0) };
    let mut requirements = Vec::new();
    if parser.next.sign == Sign::End {
        return Ok(requirements);
    }
    loop {
        requirements.push(parser.requirement()?);
        let after = parser.advance();
        match after.sign {
            Sign::End => return Ok(requirements),
            Sign::Comma => {}
            _ => return Err(parser.unexpected(after, "`,` or the end")),
        }
    }
}

/// What a token is, as far as its first characters tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Word,
    Comma,
    Not,
    Open,
    Close,
    /// `=`, `==`, `!=`, `>`, `<`.
    Compare(Operator),
    End,
}

#[derive(Clone, Copy)]
struct Token<'a> {
    sign: Sign,
    text: &'a str,
    position: usize,
}

/// The first token at or after a position: the longest sign, or everything up to a sign or a blank.
fn token(input: &str, from: usize) -> Token<'_> {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let rest = input[from..].trim_start_matches(is_blank);
    let (sign, len) = match rest.as_bytes() {
        [] => (Sign::End, 0),
        [b',', ..] => (Sign::Comma, 1),
        [b'(', ..] => (Sign::Open, 1),
        [b')', ..] => (Sign::Close, 1),
        [b'=', b'=', ..] => (Sign::Compare(Operator::DoubleEquals), 2),
        [b'=', ..] => (Sign::Compare(Operator::Equals), 1),
        [b'!', b'=', ..] => (Sign::Compare(Operator::NotEquals), 2),
        [b'!', ..] => (Sign::Not, 1),
        [b'>', ..] => (Sign::Compare(Operator::GreaterThan), 1),
        [b'<', ..] => (Sign::Compare(Operator::LessThan), 1),
        _ => {
            let ends_word = |c: char| is_blank(c) || matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
            (Sign::Word, rest.find(ends_word).unwrap_or(rest.len()))
        }
    };
    Token { sign, text: &rest[..len], position: input.len() - rest.len() }
}

struct Parser<'a> {
    input: &'a str,
    next: Token<'a>,
}

impl<'a> Parser<'a> {
    fn advance(&mut self) -> Token<'a> {
        let taken = self.next;
        self.next = token(self.input, taken.position + taken.text.len());
        taken
    }

    /// The next token if it is a word; else an empty word where it stands.
    fn optional_word(&mut self) -> Token<'a> {
        match self.next.sign {
            Sign::Word => self.advance(),
            _ => Token { sign: Sign::Word, text: "", position: self.next.position },
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let negated = self.next.sign == Sign::Not;
        if negated {
            self.advance();
        }
        let key = self.key(if negated { "a label key" } else { "a label key or `!`" })?;
        if negated {
            return Ok(Requirement::of_valid(key, Operator::DoesNotExist, Vec::new()));
        }
        let operator = match (self.next.sign, self.next.text) {
            (Sign::End | Sign::Comma, _) => {
                return Ok(Requirement::of_valid(key, Operator::Exists, Vec::new()));
            }
            (Sign::Compare(operator), _) => operator,
            (Sign::Word, "in") => Operator::In,
            (Sign::Word, "notin") => Operator::NotIn,
            _ => {
                let expected = "`=`, `==`, `!=`, `in`, `notin`, `>`, `<`, `,` or the end";
                return Err(self.unexpected(self.next, expected));
            }
        };
        self.advance();
        let values = match operator {
            Operator::In | Operator::NotIn => self.set()?,
            _ => vec![self.single_value(operator)?],
        };
        Ok(Requirement::of_valid(key, operator, values))
    }

    fn key(&mut self, expected: &'static str) -> Result<&'a str, SelectorError> {
        let key = self.advance();
        if key.sign != Sign::Word {
            return Err(self.unexpected(key, expected));
        }
        validate_label_key(key.text)
            .map_err(|(at, error)| self.bad(key, at, SelectorErrorKind::Key(error)))?;
        Ok(key.text)
    }

    fn single_value(&mut self, operator: Operator) -> Result<String, SelectorError> {
        let expected = match operator.is_numeric() {
            true => "an integer of 64 bits",
            false => "a label value, `,` or the end",
        };
        let found = self.next;
        if !matches!(found.sign, Sign::Word | Sign::Comma | Sign::End) {
            return Err(self.unexpected(found, expected));
        }
        let value = self.optional_word();
        let text = self.value(value)?;
        if operator.is_numeric() && text.parse::<i64>().is_err() {
            return Err(self.unexpected(found, expected));
        }
        Ok(text)
    }

    fn set(&mut self) -> Result<Vec<String>, SelectorError> {
        let open = self.advance();
        if open.sign != Sign::Open {
            return Err(self.unexpected(open, "`(`"));
        }
        let mut values = Vec::new();
        loop {
            let value = self.optional_word();
            values.push(self.value(value)?);
            let after = self.advance();
            match (after.sign, value.text) {
                (Sign::Close, _) => return Ok(values),
                (Sign::Comma, _) => {}
                (_, "") => return Err(self.unexpected(after, "a label value, `,` or `)`")),
                _ => return Err(self.unexpected(after, "`,` or `)`")),
            }
        }
    }

    fn value(&self, value: Token<'_>) -> Result<String, SelectorError> {
        validate_label_value(value.text)
            .map_err(|(at, error)| self.bad(value, at, SelectorErrorKind::Value(error)))?;
        Ok(value.text.to_owned())
    }

    fn unexpected(&self, token: Token<'_>, expected: &'static str) -> SelectorError {
        self.bad(token, 0, SelectorErrorKind::Unexpected { expected, found: token.text.to_owned() })
    }

    /// The error that is found `at` bytes into a token.
    fn bad(&self, token: Token<'_>, at: usize, kind: SelectorErrorKind) -> SelectorError {
        let position = token.position + floor_char(token.text, at);
        SelectorError { input: self.input.to_owned(), position, kind }
    }
}
