//! Values out of an object's JSON text, by their paths, in one pass and without decoding the rest.
//!
//! In: the text of an object, which was JSON when it was stored, and [`Paths`]. Out: for each path a value, as it
//! stands in the text. The answers are those that one gets from the decoded object: of two members with the same
//! name the last one counts, with all that lies in it. So no text can be left before its end.
//!
//! However deep the object is, the stack is not: what is passed over is counted, and what is walked into is no
//! deeper than the longest path.

mod paths;
#[cfg(test)]
mod tests;
mod walk;

use std::borrow::Cow;

use informer_model::FieldValue;

pub(crate) use paths::{PathListError, Paths};

pub(super) use informer_serving::json::unquoted;
pub(super) use paths::parse_list;
pub(super) use walk::{Place, Visitor};

impl Paths {
    /// For each path the first of its values that is wanted, as it stands in the text; a missing value is empty.
    /// `wanted` is asked with the number of the path.
    pub(crate) fn find<'j>(
        &self,
        json: &'j str,
        wanted: impl FnMut(usize, FieldValue<'_>) -> bool,
    ) -> Vec<Option<&'j str>> {
        let mut search = Search { found: vec![None; self.count()], wanted };
        self.walk(json, &mut search);
        search.found.into_iter().map(|found| found.map(|(_, value)| value)).collect()
    }
}

/// What was found so far: where, and which value.
///
/// The first value that is wanted is enough to remember. When a name comes again, all that lay in its member is
/// void: if the first value did, then every later one did too, and if it stood before, it remains.
struct Search<'j, W> {
    found: Vec<Option<(usize, &'j str)>>,
    wanted: W,
}

impl<'j, W: FnMut(usize, FieldValue<'_>) -> bool> Search<'j, W> {
    fn offer(&mut self, at: usize, paths: &[usize], value: &'j str) {
        for &path in paths {
            if let Some(found @ None) = self.found.get_mut(path) {
                *found = with_value(value, |value| (self.wanted)(path, value)).then_some((at, value));
            }
        }
    }
}

impl<'j, W: FnMut(usize, FieldValue<'_>) -> bool> Visitor<'j> for Search<'j, W> {
    const TAKES_WHOLE: bool = false;

    fn value(&mut self, place: Place<'j>, paths: &[usize], value: &'j str) {
        self.offer(place.at, paths, value);
    }

    fn missing(&mut self, at: usize, paths: &[usize]) {
        self.offer(at, paths, "");
    }

    fn again(&mut self, since: usize, paths: &[usize]) {
        for &path in paths {
            if let Some(found) = self.found.get_mut(path) {
                *found = found.filter(|(at, _)| *at < since);
            }
        }
    }
}

/// Shows a value as a field selector sees it.
pub(super) fn with_value<T>(json: &str, see: impl FnOnce(FieldValue<'_>) -> T) -> T {
    match json.as_bytes().first() {
        None | Some(b'n') => see(FieldValue::Missing),
        Some(b'{' | b'[') => see(FieldValue::Structure),
        Some(b'"') => match unquoted(json) {
            Some(text) => see(FieldValue::Text(&text)),
            None => see(FieldValue::Structure),
        },
        Some(b't' | b'f') => see(FieldValue::Text(json)),
        Some(_) => see(FieldValue::Text(&number(json))),
    }
}

/// Longer ones may not be integers of 64 bits.
const SAFE_DIGITS: usize = 18;

/// A number as a decoder would write it again: `1.50` is `1.5`.
fn number(json: &str) -> Cow<'_, str> {
    if json.len() <= SAFE_DIGITS && json.bytes().all(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(json);
    }
    json.parse::<serde_json::Number>().map_or(Cow::Borrowed(json), |number| Cow::Owned(number.to_string()))
}
