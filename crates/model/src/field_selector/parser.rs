//! From text to requirements.
//!
//! ```text
//! selector = [ term ] { "," [ term ] }
//! term     = path ( "=" | "==" | "!=" ) value
//!          | path ( "in" | "notin" ) "(" value { "," value } ")" | path "exists" | "!" path
//! ```
//!
//! The second line of terms is the extended grammar's alone.

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

/// Which operators there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Grammar {
    /// Those that an API server knows.
    Kubernetes,
    /// Ours too.
    Extended,
}

pub(super) fn parse(input: &str, grammar: Grammar) -> Result<Vec<FieldRequirement>, FieldSelectorError> {
    let mut cursor = Cursor::new("field selector", input);
    let mut requirements = Vec::new();
    loop {
        cursor.take_while(|c| c == ',' || grammar == Grammar::Extended && is_blank(c));
        if cursor.peek().is_none() {
            return Ok(requirements);
        }
        requirements.push(requirement(&mut cursor, grammar)?);
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn requirement(cursor: &mut Cursor<'_>, grammar: Grammar) -> Result<FieldRequirement, FieldSelectorError> {
    let extended = grammar == Grammar::Extended;
    if extended && cursor.eat("!") {
        let path = FieldPath::read(cursor)?;
        end_of_term(cursor, "`.`, `[`, `,` or the end")?;
        return Ok(FieldRequirement::of_valid(path, FieldOperator::NotExists, Vec::new()));
    }
    let path = FieldPath::read(cursor)?;
    let operator = if cursor.eat("!=") {
        FieldOperator::NotEquals
    } else if cursor.eat("==") || cursor.eat("=") {
        FieldOperator::Equals
    } else if extended && cursor.peek().is_some_and(is_blank) {
        return word(cursor, path);
    } else {
        return Err(cursor.error(match grammar {
            Grammar::Kubernetes => "`=`, `==`, `!=`, `.` or `[` (`['name']` takes any character)",
            Grammar::Extended => {
                "`=`, `==`, `!=`, ` in`, ` notin`, ` exists`, `.` or `[` (`['name']` takes any character)"
            }
        }));
    };
    Ok(FieldRequirement::of_valid(path, operator, vec![value(cursor)?]))
}

/// The rest of a requirement whose operator is a word, from the blank before it on.
fn word(cursor: &mut Cursor<'_>, path: FieldPath) -> Result<FieldRequirement, FieldSelectorError> {
    cursor.take_while(is_blank);
    let start = *cursor;
    let (operator, values) = match cursor.take_while(|c| c.is_ascii_alphabetic()) {
        "in" => (FieldOperator::In, list(cursor)?),
        "notin" => (FieldOperator::NotIn, list(cursor)?),
        "exists" => (FieldOperator::Exists, Vec::new()),
        _ => return Err(start.error("`in`, `notin` or `exists`")),
    };
    end_of_term(cursor, "`,` or the end")?;
    Ok(FieldRequirement::of_valid(path, operator, values))
}

fn end_of_term(cursor: &mut Cursor<'_>, expected: &'static str) -> Result<(), FieldSelectorError> {
    cursor.take_while(is_blank);
    match cursor.peek() {
        None | Some(',') => Ok(()),
        Some(_) => Err(cursor.error(expected)),
    }
}

/// Values between parentheses: one at least, which may be empty.
fn list(cursor: &mut Cursor<'_>) -> Result<Vec<String>, FieldSelectorError> {
    cursor.take_while(is_blank);
    if !cursor.eat("(") {
        return Err(cursor.error("`(`"));
    }
    let mut values = Vec::new();
    loop {
        values.push(list_value(cursor)?);
        if cursor.eat(")") {
            return Ok(values);
        }
        if !cursor.eat(",") {
            return Err(cursor.error(r"`,` or `)` (a value has a parenthesis as `\(`)"));
        }
    }
}

/// A value up to a comma or a parenthesis, without its escapes and the blanks around it.
fn list_value(cursor: &mut Cursor<'_>) -> Result<String, FieldSelectorError> {
    cursor.take_while(is_blank);
    let mut value = String::new();
    let mut escaped_to = 0;
    loop {
        value.push_str(cursor.take_while(|c| !matches!(c, ',' | '(' | ')' | '\\')));
        if !cursor.eat("\\") {
            value.truncate(value.trim_end_matches(is_blank).len().max(escaped_to));
            return Ok(value);
        }
        let escaped = cursor.take_if(|c| matches!(c, ',' | '=' | '(' | ')' | '\\') || is_blank(c));
        let expected = r"`\`, `,`, `=`, `(`, `)` or a blank after the backslash";
        value.push(escaped.ok_or_else(|| cursor.error(expected))?);
        escaped_to = value.len();
    }
}

/// A value with the escapes that [`list_value`] takes away.
pub(super) fn escaped_for_list(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, ',' | '(' | ')' | '\\') || is_blank(c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
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

    /// What was not read yet.
    pub(super) fn rest(&self) -> &'a str {
        self.rest
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
        let parts =
            selector.requirements().iter().map(|r| (r.path().as_str(), r.operator(), r.values().concat()));
        let expected = [
            ("a", FieldOperator::Equals, r"x,y=z\".to_owned()),
            ("b", FieldOperator::NotEquals, String::new()),
        ];
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

    #[test]
    fn accepted_texts_of_the_extended_grammar() {
        for (text, canonical) in [
            ("a==b, c!=d ", "a=b,c!=d "),
            (" , a=b", "a=b"),
            ("a in (x)", "a in (x)"),
            ("a\tin(y,x,y)", "a in (x,y)"),
            ("a  notin  ( y , x )  ,b=", "a notin (x,y),b="),
            ("a in ()", "a in ()"),
            ("a in ( )", "a in ()"),
            ("a in (x,)", "a in (,x)"),
            ("a in (,)", "a in ()"),
            ("a in (x y)", r"a in (x\ y)"),
            (r"a in (\ x\ , y\\ )", r"a in (\ x\ ,y\\)"),
            (r"a in (f\(x\, y\),\=)", r"a in (=,f\(x\,\ y\))"),
            ("a in ('x')", "a in ('x')"),
            ("a exists", "a exists"),
            ("a exists ,!b ", "a exists,!b"),
            ("!a['x y'][*].c", "!a['x y'][*].c"),
            ("in in (in)", "in in (in)"),
            ("exists exists", "exists exists"),
        ] {
            let selector = FieldSelector::parse_extended(text).unwrap();
            assert_eq!(selector.to_string(), canonical, "{text:?}");
            assert_eq!(FieldSelector::parse_extended(canonical), Ok(selector), "{canonical:?}");
        }
    }

    #[test]
    fn refused_texts_of_the_extended_grammar_with_what_was_expected() {
        for (text, position, expected) in [
            (
                "a",
                1,
                "`=`, `==`, `!=`, ` in`, ` notin`, ` exists`, `.` or `[` (`['name']` takes any character)",
            ),
            ("a ", 2, "`in`, `notin` or `exists`"),
            ("a = b", 2, "`in`, `notin` or `exists`"),
            ("a inn (b)", 2, "`in`, `notin` or `exists`"),
            ("a IN (b)", 2, "`in`, `notin` or `exists`"),
            ("a in", 4, "`(`"),
            ("a in b", 5, "`(`"),
            ("a in (b", 7, r"`,` or `)` (a value has a parenthesis as `\(`)"),
            ("a in (b(c))", 7, r"`,` or `)` (a value has a parenthesis as `\(`)"),
            (r"a in (\x)", 7, r"`\`, `,`, `=`, `(`, `)` or a blank after the backslash"),
            ("a in (b) c", 9, "`,` or the end"),
            ("a in (b)c", 8, "`,` or the end"),
            ("a exists()", 8, "`,` or the end"),
            ("!", 1, "a field name"),
            ("!=b", 1, "a field name"),
            ("! a", 1, "a field name"),
            ("!a=b", 2, "`.`, `[`, `,` or the end"),
            ("!é", 1, "a field name"),
        ] {
            let error = FieldSelector::parse_extended(text).unwrap_err();
            assert_eq!((error.position, error.expected), (position, expected), "{text:?}");
            assert!(FieldSelector::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_grammar_of_kubernetes_has_no_more_than_it_had() {
        for text in ["a in (b)", "a notin (b)", "a exists", "!a", " a=b", "a=b, c=d"] {
            assert!(FieldSelector::parse(text).is_err(), "{text:?}");
            assert!(FieldSelector::parse_extended(text).is_ok(), "{text:?}");
        }
    }
}
