//! Where in an object's JSON a field stands.

use std::{fmt, str::FromStr};

use serde_json::Value;

use super::parser::{Cursor, FieldSelectorError};

/// A path to a field: `metadata.name`, `spec.containers[0].image`, `spec.containers[*].image`,
/// `metadata.labels['app.kubernetes.io/name']`.
///
/// A name of letters, digits, `-`, `_` and `$` stands as it is; any other goes into brackets and quotes,
/// single or double, in which `\`, `'` and `"` can be written `\\`, `\'` and `\"`. Inside the quotes `=` and
/// `,` are part of the name and do not end the term. Only this parser knows that: an API server splits there,
/// but it has no field of such a name either. `[0]` is one element of an array, `[*]` any of them.
///
/// Two spellings of one path are equal and have one text: `a['b']` is `a.b`.
///
/// ```
/// use informer_model::FieldPath;
///
/// let path: FieldPath = r#"metadata["labels"]["app.kubernetes.io/name"]"#.parse()?;
/// assert_eq!(path.as_str(), "metadata.labels['app.kubernetes.io/name']");
/// assert!("spec..nodeName".parse::<FieldPath>().is_err());
/// # Ok::<(), informer_model::FieldSelectorError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FieldPath {
    text: Box<str>,
    steps: Box<[FieldStep]>,
}

/// One step of a [`FieldPath`]: from a value to one that lies in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FieldStep {
    /// To the member of this name, if the value is an object.
    Name(Box<str>),
    /// `[0]`: to this element, if the value is an array.
    Element(usize),
    /// `[*]`: to each element, if the value is an array.
    AnyElement,
}

/// What a [`FieldPath`] leads to, as a [`FieldRequirement`](super::FieldRequirement) sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// Nothing, or null.
    Missing,
    /// A text, or the JSON text of a number or a boolean.
    Text(&'a str),
    /// An object or an array.
    Structure,
}

impl FieldPath {
    /// The path as text, in its one spelling.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The steps, from the object on.
    pub fn steps(&self) -> &[FieldStep] {
        &self.steps
    }

    /// Reads as far as the path goes, and answers what stands behind it. An error's position is counted from
    /// the beginning of this text.
    ///
    /// ```
    /// use informer_model::FieldPath;
    ///
    /// let (path, rest) = FieldPath::parse_prefix("spec.replicas,metadata.name")?;
    /// assert_eq!((path.as_str(), rest), ("spec.replicas", ",metadata.name"));
    /// # Ok::<(), informer_model::FieldSelectorError>(())
    /// ```
    pub fn parse_prefix(text: &str) -> Result<(Self, &str), FieldSelectorError> {
        let mut cursor = Cursor::new("field path", text);
        let path = Self::read(&mut cursor)?;
        Ok((path, cursor.rest()))
    }

    /// Reads as far as the path goes.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, FieldSelectorError> {
        let mut steps = Vec::new();
        if cursor.peek() != Some('[') {
            steps.push(plain_name(cursor)?);
        }
        loop {
            if cursor.eat(".") {
                steps.push(plain_name(cursor)?);
            } else if cursor.eat("[") {
                steps.push(bracket(cursor, steps.is_empty())?);
            } else {
                return Ok(Self { text: spell(&steps).into(), steps: steps.into() });
            }
        }
    }

    /// Whether one of the values that the path leads to is wanted.
    pub(super) fn any(&self, object: &Value, wanted: impl Fn(FieldValue<'_>) -> bool) -> bool {
        any(Some(object), &self.steps, &wanted)
    }
}

/// Recursion is for `[*]` alone: it goes as deep as the object does, however long the path is.
fn any(mut value: Option<&Value>, steps: &[FieldStep], wanted: &impl Fn(FieldValue<'_>) -> bool) -> bool {
    for (i, step) in steps.iter().enumerate() {
        value = match step {
            FieldStep::Name(name) => value.and_then(|value| value.get(&**name)),
            FieldStep::Element(index) => value.and_then(|value| value.get(index)),
            FieldStep::AnyElement => {
                let mut elements = value.and_then(Value::as_array).into_iter().flatten();
                return elements.any(|element| any(Some(element), &steps[i + 1..], wanted));
            }
        };
    }
    match value {
        None | Some(Value::Null) => wanted(FieldValue::Missing),
        Some(Value::String(text)) => wanted(FieldValue::Text(text)),
        Some(Value::Bool(value)) => wanted(FieldValue::Text(if *value { "true" } else { "false" })),
        Some(Value::Number(number)) => wanted(FieldValue::Text(&number.to_string())),
        Some(Value::Array(_) | Value::Object(_)) => wanted(FieldValue::Structure),
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '$')
}

fn plain_name(cursor: &mut Cursor<'_>) -> Result<FieldStep, FieldSelectorError> {
    match cursor.take_while(is_plain) {
        "" => Err(cursor.error("a field name")),
        name => Ok(FieldStep::Name(name.into())),
    }
}

/// What stands between brackets, of which the first is read already.
fn bracket(cursor: &mut Cursor<'_>, at_root: bool) -> Result<FieldStep, FieldSelectorError> {
    let start = *cursor;
    let step = if let Some(quote) = cursor.take_if(|c| matches!(c, '\'' | '"')) {
        quoted_name(cursor, quote)?
    } else if at_root {
        return Err(start.error("a field name in quotes"));
    } else if cursor.eat("*") {
        FieldStep::AnyElement
    } else {
        match cursor.take_while(|c| c.is_ascii_digit()) {
            "" => return Err(start.error("an index, `*` or a field name in quotes")),
            index => FieldStep::Element(index.parse().map_err(|_| start.error("a smaller index"))?),
        }
    };
    match cursor.eat("]") {
        true => Ok(step),
        false => Err(cursor.error("`]`")),
    }
}

/// A name up to the closing quote, without its escapes.
fn quoted_name(cursor: &mut Cursor<'_>, quote: char) -> Result<FieldStep, FieldSelectorError> {
    let mut name = String::new();
    loop {
        name.push_str(cursor.take_while(|c| c != quote && c != '\\'));
        if cursor.eat("\\") {
            let escaped = cursor.take_if(|c| matches!(c, '\\' | '\'' | '"'));
            name.push(escaped.ok_or_else(|| cursor.error(r#"`\`, `'` or `"` after the backslash"#))?);
        } else if cursor.take_if(|c| c == quote).is_some() {
            return Ok(FieldStep::Name(name.into()));
        } else {
            return Err(cursor.error("the closing quote"));
        }
    }
}

fn spell(steps: &[FieldStep]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            FieldStep::Name(name) if !name.is_empty() && name.chars().all(is_plain) => {
                text.push_str(if text.is_empty() { "" } else { "." });
                text.push_str(name);
            }
            FieldStep::Name(name) => {
                text.push_str("['");
                text.push_str(&name.replace('\\', r"\\").replace('\'', r"\'"));
                text.push_str("']");
            }
            FieldStep::Element(index) => text.push_str(&format!("[{index}]")),
            FieldStep::AnyElement => text.push_str("[*]"),
        }
    }
    text
}

impl FromStr for FieldPath {
    type Err = FieldSelectorError;

    fn from_str(text: &str) -> Result<Self, FieldSelectorError> {
        let mut cursor = Cursor::new("field path", text);
        let path = Self::read(&mut cursor)?;
        match cursor.rest() {
            "" => Ok(path),
            _ => Err(cursor.error("`.`, `[` or the end")),
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_spelling() {
        for (text, spelling) in [
            ("metadata.name", "metadata.name"),
            ("['metadata'][\"name\"]", "metadata.name"),
            ("a['b'][0][*].c", "a.b[0][*].c"),
            ("a[007]", "a[7]"),
            ("$a-b_9", "$a-b_9"),
            ("0", "0"),
            ("a['x.y/z']", "a['x.y/z']"),
            ("a['']", "a['']"),
            (r#"a["it's"]"#, r"a['it\'s']"),
            (r#"a['say \"hi\"']"#, r#"a['say "hi"']"#),
            (r"a['\\']", r"a['\\']"),
            ("['é ☃'].b", "['é ☃'].b"),
            ("a['[*]']", "a['[*]']"),
        ] {
            let path: FieldPath = text.parse().unwrap();
            assert_eq!(path.as_str(), spelling, "{text}");
            assert_eq!(spelling.parse(), Ok(path), "{spelling}");
        }
    }

    #[test]
    fn bad_paths_are_refused_with_position_and_expectation() {
        for (text, position, expected, found) in [
            ("", 0, "a field name", "the end"),
            (".a", 0, "a field name", "`.`"),
            ("a.", 2, "a field name", "the end"),
            ("a..b", 2, "a field name", "`.`"),
            ("a.[0]", 2, "a field name", "`[`"),
            ("a b", 1, "`.`, `[` or the end", "` `"),
            ("a/b", 1, "`.`, `[` or the end", "`/`"),
            ("a]", 1, "`.`, `[` or the end", "`]`"),
            ("a=b", 1, "`.`, `[` or the end", "`=`"),
            ("é", 0, "a field name", "`é`"),
            ("[0]", 1, "a field name in quotes", "`0`"),
            ("[*]", 1, "a field name in quotes", "`*`"),
            ("a[]", 2, "an index, `*` or a field name in quotes", "`]`"),
            ("a[-1]", 2, "an index, `*` or a field name in quotes", "`-`"),
            ("a[b]", 2, "an index, `*` or a field name in quotes", "`b`"),
            ("a[", 2, "an index, `*` or a field name in quotes", "the end"),
            ("a[1", 3, "`]`", "the end"),
            ("a[1x]", 3, "`]`", "`x`"),
            ("a[*", 3, "`]`", "the end"),
            ("a[99999999999999999999]", 2, "a smaller index", "`9`"),
            ("a['b", 4, "the closing quote", "the end"),
            ("a['b\"]", 6, "the closing quote", "the end"),
            ("a['b'", 5, "`]`", "the end"),
            (r"a['\n']", 4, r#"`\`, `'` or `"` after the backslash"#, "`n`"),
            (r"a['\", 4, r#"`\`, `'` or `"` after the backslash"#, "the end"),
            ("a\n", 1, "`.`, `[` or the end", r"`\n`"),
        ] {
            let error = text.parse::<FieldPath>().unwrap_err();
            assert_eq!((error.position, error.expected), (position, expected), "{text}");
            let message =
                format!("field path {text:?}: expected {expected} at byte {position}, found {found}");
            assert_eq!(error.to_string(), message);
        }
    }
}
