//! From text to requirements.
//!
//! ```text
//! selector = [ term ] { "," [ term ] }
//! term     = path ( "=" | "==" | "!=" ) value
//! ```

use super::{FieldOperator, FieldPath, FieldRequirement};

/// Why a text is not a [`FieldSelector`](super::FieldSelector) or a [`FieldPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{noun} {input:?}: expected {expected} at byte {position}, found {}", found_at(.input, *.position))]
pub struct FieldSelectorError {
    /// What the text should have been.
    noun: &'static str,
    /// The whole text.
    pub input: String,
    /// Where the error was found, in bytes: always the beginning of a character, or the end.
    pub position: usize,
    /// What can stand there.
    pub expected: &'static str,
}

fn found_at(input: &str, position: usize) -> String {
    let found = input.get(position..).and_then(|rest| rest.chars().next());
    found.map_or("the end".to_owned(), |c| format!("`{}`", c.escape_debug()))
}

pub(super) fn parse(input: &str) -> Result<Vec<FieldRequirement>, FieldSelectorError> {
    let mut cursor = Cursor::new("field selector", input);
    let mut requirements = Vec::new();
    loop {
        cursor.take_while(|c| c == ',');
        if cursor.peek().is_none() {
            return Ok(requirements);
        }
        let path = FieldPath::read(&mut cursor)?;
        let operator = if cursor.eat("!=") {
            FieldOperator::NotEquals
        } else if cursor.eat("==") || cursor.eat("=") {
            FieldOperator::Equals
        } else {
            return Err(cursor.error("`=`, `==`, `!=`, `.` or `[` (`['name']` takes any character)"));
        };
        requirements.push(FieldRequirement::new(path, operator, value(&mut cursor)?));
    }
}

/// A value up to a comma or the end, without its escapes.
fn value(cursor: &mut Cursor<'_>) -> Result<String, FieldSelectorError> {
    let mut value = String::new();
    loop {
        value.push_str(cursor.take_while(|c| !matches!(c, ',' | '=' | '\\')));
        if cursor.eat("\\") {
            let escaped = cursor.take_if(|c| matches!(c, ',' | '=' | '\\'));
            value.push(escaped.ok_or_else(|| cursor.error(r"`\`, `,` or `=` after the backslash"))?);
        } else if cursor.peek() == Some('=') {
            return Err(cursor.error(r"`,` or the end (a value has it as `\=`)"));
        } else {
            return Ok(value);
        }
    }
}

/// A place in a text.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    noun: &'static str,
    input: &'a str,
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    /// The beginning of a text that should be a `noun`.
    pub(super) fn new(noun: &'static str, input: &'a str) -> Self {
        Self { noun, input, rest: input }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn eat(&mut self, prefix: &str) -> bool {
        let after = self.rest.strip_prefix(prefix);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    pub(super) fn take_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        let taken = self.peek().filter(|c| wanted(*c))?;
        self.rest = &self.rest[taken.len_utf8()..];
        Some(taken)
    }

    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let (taken, rest) = self.rest.split_at(self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// The error that something else was `expected` here.
    pub(super) fn error(&self, expected: &'static str) -> FieldSelectorError {
        let position = self.input.len() - self.rest.len();
        FieldSelectorError { noun: self.noun, input: self.input.to_owned(), position, expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldSelector;

    #[test]
    fn accepted_texts() {
        for (text, canonical) in [
            ("", ""),
            (",,,", ""),
            ("a=b", "a=b"),
            ("a==b", "a=b"),
            ("a!=b", "a!=b"),
            ("a=", "a="),
            ("a!=", "a!="),
            ("a=,b=", "a=,b="),
            (",,b=1,,a=2,,", "b=1,a=2"),
            ("a=1,a=1", "a=1,a=1"),
            (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
            ("a= b ", "a= b "),
            ("a=!b", "a=!b"),
            ("a=b!c", "a=b!c"),
            ("a=é☃\n\0", "a=é☃\n\0"),
            ("a=['x']", "a=['x']"),
            ("a['x=y,z!=w'].b!=c", "a['x=y,z!=w'].b!=c"),
            (r#"a["b"]="q""#, r#"a.b="q""#),
        ] {
            let selector = FieldSelector::parse(text).unwrap();
            assert_eq!(selector.to_string(), canonical, "{text:?}");
            assert_eq!(FieldSelector::parse(canonical), Ok(selector), "{canonical:?}");
        }
    }

    #[test]
    fn values_are_kept_without_escapes() {
        let selector = FieldSelector::parse(r"a=x\,y\=z\\,b!=").unwrap();
        let parts = selector.requirements().iter().map(|r| (r.path().as_str(), r.operator(), r.value()));
        let expected = [("a", FieldOperator::Equals, r"x,y=z\"), ("b", FieldOperator::NotEquals, "")];
        assert_eq!(parts.collect::<Vec<_>>(), expected);
        assert_eq!(selector.requirements()[0].exact_value(), Some(r"x,y=z\"));
        assert_eq!(selector.requirements()[1].exact_value(), None);
    }

    #[test]
    fn refused_texts_with_their_position() {
        for (text, position, found) in [
            ("a", 1, "the end"),
            ("a,b=c", 1, "`,`"),
            ("=b", 0, "`=`"),
            ("!=b", 0, "`!`"),
            ("a=b,=c", 4, "`=`"),
            ("a=b,c", 5, "the end"),
            ("a!b=c", 1, "`!`"),
            ("a ==b", 1, "` `"),
            (" ", 0, "` `"),
            ("a=b, c=d", 4, "` `"),
            ("a===b", 3, "`=`"),
            ("a!==b", 3, "`=`"),
            ("a=b=c", 3, "`=`"),
            ("é=b", 0, "`é`"),
            ("a=é=", 4, "`=`"),
            (r"a=\", 3, "the end"),
            (r"a=\n", 3, "`n`"),
            (r"a=\☃", 3, "`☃`"),
            (r"a\,b=c", 1, r"`\\`"),
            ("a['x,b=c", 8, "the end"),
            ("a<b", 1, "`<`"),
            ("a in (b)", 1, "` `"),
            ("metadata.labels.app.kubernetes.io/name=x", 33, "`/`"),
        ] {
            let error = FieldSelector::parse(text).unwrap_err();
            assert_eq!(error.position, position, "{text:?}: {error}");
            assert!(error.to_string().ends_with(&format!("at byte {position}, found {found}")), "{error}");
        }
        let error = FieldSelector::parse("a=b=c").unwrap_err().to_string();
        assert_eq!(
            error,
            r#"field selector "a=b=c": expected `,` or the end (a value has it as `\=`) at byte 3, found `=`"#
        );
    }
}
