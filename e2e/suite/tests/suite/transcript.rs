//! What was seen, line by line, with everything replaced by a name that is another one in each run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The lines of a scenario and the names for what is not the same in each run.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    pub(crate) lines: Vec<String>,
    /// Versions of objects, named in the order in which they were first seen.
    versions: BTreeMap<u64, String>,
    /// Tokens that a server gave out.
    tokens: BTreeSet<String>,
}

impl Transcript {
    /// Lets the versions that were seen so far have no names: they came before the scenario.
    pub(crate) fn forget(&mut self) {
        self.versions.clear();
    }

    /// The name of the version of an object.
    pub(crate) fn version(&mut self, version: &str) -> String {
        let Ok(number) = version.parse() else { return version.to_owned() };
        let next = format!("v{}", self.versions.len() + 1);
        self.versions.entry(number).or_insert(next).clone()
    }

    /// A version of a list: which known one it has reached. Others write at the same time, so it may be a later one.
    fn reached(&self, version: &str) -> String {
        let Ok(number) = version.parse::<u64>() else { return version.to_owned() };
        match self.versions.range(..=number).next_back() {
            Some((_, name)) => format!("≥{name}"),
            None if number > 0 => "some".into(),
            None => "0".into(),
        }
    }

    /// A parameter of a request.
    pub(crate) fn parameter(&self, name: &str, value: &str) -> String {
        let known = value.parse().ok().and_then(|number: u64| self.versions.get(&number));
        let shown = match name {
            "resourceVersion" => known.cloned(),
            "continue" if self.tokens.contains(value) => Some("<token>".to_owned()),
            _ => None,
        };
        format!("{name}={}", shown.as_deref().unwrap_or(value))
    }

    /// An object or a list with names instead of what differs.
    pub(crate) fn stable(&mut self, mut value: Value) -> Value {
        let kind = value["kind"].as_str().unwrap_or_default();
        let is_list = value.get("items").is_some() || kind.ends_with("List") || kind == "Table";
        if let Some(version) = value.pointer_mut("/metadata/resourceVersion").filter(|_| is_list) {
            *version = self.reached(version.as_str().unwrap_or_default()).into();
        }
        self.walk(&mut value);
        value
    }

    /// What a bookmark carries: its version is one that the watch has reached.
    pub(crate) fn bookmark(&mut self, mut value: Value) -> Value {
        for place in ["/metadata/resourceVersion", "/rows/0/object/metadata/resourceVersion"] {
            if let Some(version) = value.pointer_mut(place) {
                *version = self.reached(version.as_str().unwrap_or_default()).into();
            }
        }
        self.walk(&mut value);
        value
    }

    fn walk(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                // Who wrote which field is a scenario of its own, and what a column means is said in own words.
                fields.remove("managedFields");
                fields.remove("description");
                fields.retain(|name, value| name != "continue" || value != "");
                for (name, value) in fields {
                    match (name.as_str(), &mut *value) {
                        ("uid", Value::String(uid)) if is_uid(uid) => *value = "<uid>".into(),
                        ("resourceVersion", Value::String(version)) => *value = self.version(version).into(),
                        ("continue", Value::String(token)) if !token.is_empty() => {
                            self.tokens.insert(std::mem::take(token));
                            *value = "<token>".into();
                        }
                        (_, value) => self.walk(value),
                    }
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.walk(value)),
            Value::String(text) => *text = self.words(text),
            _ => {}
        }
    }

    /// A text with names for uids, times and versions in it.
    pub(crate) fn words(&self, text: &str) -> String {
        let mut words: Vec<String> = Vec::new();
        for word in text.split(' ') {
            let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            let after = |end: &str| words.last().is_some_and(|word: &String| word.ends_with(end));
            let named = if is_uid(bare) {
                Some("<uid>".to_owned())
            } else if is_time(bare) {
                Some("<time>".to_owned())
            } else if is_age(word) {
                Some("<age>".to_owned())
            } else if (after("current:") || word.starts_with('(')) && bare.parse::<u64>().is_ok() {
                Some("<version>".to_owned())
            } else if after("meta:") || after("version:") {
                bare.parse().ok().and_then(|number: u64| self.versions.get(&number).cloned())
            } else {
                None
            };
            words.push(named.map_or_else(|| word.to_owned(), |named| word.replacen(bare, &named, 1)));
        }
        words.join(" ")
    }
}

fn is_uid(text: &str) -> bool {
    text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && !text.starts_with("11111111")
}

/// How old something is in a table: `5s`.
fn is_age(text: &str) -> bool {
    text.strip_suffix(['s', 'm']).is_some_and(|number| number.parse::<u32>().is_ok())
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[4] == b'-' && text.as_bytes()[10] == b'T'
}
