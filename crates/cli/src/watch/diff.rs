//! What is different between two states of an object, for a person.
//!
//! In: two JSON values. Out: [`Change`]s, in the order of their paths. What every update changes is left out. In
//! a list whose entries have names (containers) or types (conditions), entries are compared with their
//! namesakes, wherever they stand.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};

use crate::text::{printable, shorten};

/// So many characters of a value are shown.
const VALUE_WIDTH: usize = 60;

/// Changes with every update.
const NOISE: &[&str] = &[
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
    "status.observedGeneration",
];

/// The members that tell entries of a list apart.
const NAMES: &[&str] = &["name", "type"];

/// One place in which two states differ. Printed, it is `status.phase: Pending → Running`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change<'a> {
    path: String,
    /// How many names the path has.
    depth: usize,
    old: Option<&'a Value>,
    new: Option<&'a Value>,
}

/// Everything that differs.
pub(super) fn diff<'a>(old: &'a Value, new: &'a Value) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    compare(&mut String::new(), 0, Some(old), Some(new), &mut changes);
    changes
}

/// The path is as long after the call as before.
fn compare<'a>(
    path: &mut String,
    depth: usize,
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    changes: &mut Vec<Change<'a>>,
) {
    if old == new || NOISE.contains(&path.as_str()) {
        return;
    }
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let members = |object: &'a Map<String, Value>| {
                object.iter().map(|(name, value)| (name.as_str(), value)).collect::<BTreeMap<_, _>>()
            };
            compare_members(path, depth, members(old), members(new), member, changes);
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => match names(old, new) {
            Some((old, new)) => compare_members(path, depth, old, new, bracket, changes),
            None => {
                let entries = |list: &'a [Value]| list.iter().enumerate().collect::<BTreeMap<_, _>>();
                let append = |at, path: &mut String| path.push_str(&format!("[{at}]"));
                compare_members(path, depth, entries(old), entries(new), append, changes);
            }
        },
        _ => changes.push(Change { path: path.clone(), depth, old, new }),
    }
}

fn compare_members<'a, N: Ord + Copy>(
    path: &mut String,
    depth: usize,
    old: BTreeMap<N, &'a Value>,
    new: BTreeMap<N, &'a Value>,
    append: impl Fn(N, &mut String),
    changes: &mut Vec<Change<'a>>,
) {
    let mut all: Vec<N> = old.keys().chain(new.keys()).copied().collect();
    all.sort_unstable();
    all.dedup();
    let length = path.len();
    for name in all {
        append(name, path);
        compare(path, depth + 1, old.get(&name).copied(), new.get(&name).copied(), changes);
        path.truncate(length);
    }
}

/// `.phase`, or `[example.com/owner]` where dots would mislead.
fn member(name: &str, path: &mut String) {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    if !plain {
        bracket(name, path);
    } else {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
    }
}

fn bracket(name: &str, path: &mut String) {
    path.push('[');
    path.extend(name.escape_debug());
    path.push(']');
}

type Named<'a> = BTreeMap<&'a str, &'a Value>;

/// Both lists by the name or type of their entries, if every entry has one of its own.
fn names<'a>(old: &'a [Value], new: &'a [Value]) -> Option<(Named<'a>, Named<'a>)> {
    let by = |entries: &'a [Value], member: &str| {
        let named = entries.iter().map(|entry| Some((entry.get(member)?.as_str()?, entry)));
        named.collect::<Option<BTreeMap<_, _>>>().filter(|named| named.len() == entries.len())
    };
    NAMES.iter().find_map(|member| Some((by(old, member)?, by(new, member)?)))
}

impl Change<'_> {
    /// What to tell first: the smaller the more it says. A word near the top says most, a whole subtree or the
    /// time at which something else changed says least.
    pub(super) fn weight(&self) -> (u8, usize) {
        let is_time = self.path.ends_with("Time") || self.path.ends_with("Timestamp");
        let is_tree =
            |value: Option<&Value>| value.is_some_and(|value| value.is_object() || value.is_array());
        let weight = match () {
            () if is_time && !self.path.starts_with("metadata.") => 2,
            () if is_tree(self.old) || is_tree(self.new) => 1,
            () => 0,
        };
        (weight, self.depth)
    }
}

impl fmt::Display for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "." } else { &self.path };
        match (self.old, self.new) {
            (None, Some(new)) => write!(f, "+{path}: {}", short(new)),
            (Some(old), None) => write!(f, "-{path}: {}", short(old)),
            (old, new) => {
                let text = |value: Option<&Value>| value.map(short).unwrap_or_default();
                write!(f, "{path}: {} → {}", text(old), text(new))
            }
        }
    }
}

/// A value on one line: a plain word as it is, anything else as JSON, and not too much of it.
fn short(value: &Value) -> String {
    let text = match value {
        Value::String(word) if is_plain(word) => word.clone(),
        other => other.to_string(),
    };
    printable(&shorten(text, VALUE_WIDTH))
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && !word.chars().any(|c| c.is_whitespace() || c.is_control() || "\"'{}[],".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(old: Value, new: Value) -> Vec<String> {
        diff(&old, &new).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_change_is_told_by_its_path_with_old_and_new() {
        let old = json!({"status": {"phase": "Pending", "gone": 1}, "metadata": {"labels": {"app": "a"}}});
        let new = json!({"status": {"phase": "Running", "came": [1]}, "metadata": {"labels": {"app": "b"}}});
        assert_eq!(
            lines(old, new),
            [
                "metadata.labels.app: a → b",
                "+status.came: [1]",
                "-status.gone: 1",
                "status.phase: Pending → Running"
            ]
        );
    }

    #[test]
    fn what_every_update_changes_is_left_out() {
        let old = json!({"metadata": {"resourceVersion": "1", "generation": 1, "managedFields": []}});
        let new = json!({"metadata": {"resourceVersion": "2", "generation": 2}, "status": {}});
        assert_eq!(lines(old, new), ["+status: {}"]);
        assert_eq!(
            lines(json!({"spec": {"generation": 1}}), json!({"spec": {"generation": 2}})),
            ["spec.generation: 1 → 2"],
            "only at its own place"
        );
    }

    #[test]
    fn entries_of_a_list_are_compared_with_their_namesakes() {
        let old = json!({"c": [{"type": "Ready", "status": "False"}, {"type": "Old"}], "n": [1, 2]});
        let new = json!({"c": [{"type": "New"}, {"type": "Ready", "status": "True"}], "n": [1, 3, 4]});
        assert_eq!(
            lines(old, new),
            [
                r#"+c[New]: {"type":"New"}"#,
                r#"-c[Old]: {"type":"Old"}"#,
                "c[Ready].status: False → True",
                "n[1]: 2 → 3",
                "+n[2]: 4"
            ]
        );
        // The same name twice, or none: by place.
        let twice = json!([{"name": "a", "x": 1}, {"name": "a", "x": 2}]);
        assert_eq!(lines(twice, json!([{"name": "a", "x": 3}, {"name": "a", "x": 2}])), ["[0].x: 1 → 3"]);
    }

    #[test]
    fn long_and_strange_values_stay_on_one_short_line() {
        let text = "x y".repeat(100) + "\n";
        let told = lines(json!({"a": "old"}), json!({"a": text}));
        assert_eq!(told[0].chars().count(), "a: old → ".chars().count() + VALUE_WIDTH + 1);
        assert_eq!(lines(json!({"a": 1}), json!({"a": "1\n2\u{7}"})), [r#"a: 1 → "1\n2\u0007""#]);
        assert_eq!(lines(json!({"a": ""}), json!({"a": "\u{9b}31m"})), [r#"a: "" → "\u{9b}31m""#]);
        assert_eq!(
            lines(json!({}), json!({"x.y/z": 1, "\u{1b}[2J": null})),
            [r"+[\u{1b}[2J]: null", "+[x.y/z]: 1"]
        );
        assert_eq!(lines(json!(1), json!([2])), [".: 1 → [2]"]);
    }

    #[test]
    fn a_word_near_the_top_says_more_than_a_subtree_or_a_time() {
        let old = json!({"status": {"c": [{"type": "Ready", "status": "False", "lastTransitionTime": "1"}], "phase": "a"}});
        let new = json!({
            "metadata": {"deletionTimestamp": "3"},
            "status": {"c": [{"type": "Ready", "status": "True", "lastTransitionTime": "2"}], "phase": "b", "ips": [1]},
        });
        let mut changes = diff(&old, &new);
        changes.sort_by_key(Change::weight);
        let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        let expected = [
            "status.phase",
            "status.c[Ready].status",
            "metadata",
            "status.ips",
            "status.c[Ready].lastTransitionTime",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn equal_states_have_no_changes() {
        let value = json!({"a": [1, {"b": null}]});
        assert_eq!(lines(value.clone(), value), Vec::<String>::new());
    }
}
