//! An event as a line for a person: a mark, a word, key and version, and what changed.
//!
//! ```text
//! + ADDED    shop/web-0  @1004  initial
//! ~ UPDATED  shop/web-0  @1017  status.phase: Pending → Running
//! - DELETED  shop/web-0  @1020
//! ```

use informer::{Object, RawObject};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    diff::{Change, diff},
    event::{Told, What},
};
use crate::text::{printable, shorten};

/// So many changes of an update are told one by one.
const CHANGES: usize = 6;
/// Keys are aligned up to this width.
const KEY_WIDTH: usize = 60;
/// So much of the labels is shown.
const LABELS_WIDTH: usize = 100;

const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";
const CYAN: &str = "36";
const DIM: &str = "2";

/// Makes lines. Keys are as wide as the widest so far, so that columns settle soon.
pub(super) struct Lines {
    colours: bool,
    wide: bool,
    key_width: usize,
}

impl Lines {
    pub(super) fn new(colours: bool, wide: bool) -> Self {
        Self { colours, wide, key_width: 0 }
    }

    /// The line of an event, without its end. `now` is for the age.
    pub(super) fn line(&mut self, told: &Told<'_>, now: Timestamp) -> String {
        let (mark, colour) = match told.what {
            What::Added { .. } => ('+', GREEN),
            What::Updated { .. } => ('~', YELLOW),
            What::Resync => ('=', CYAN),
            What::Deleted { .. } => ('-', RED),
        };
        let head = self.paint(colour, format!("{mark} {:<8}", told.what.word()));
        let key = printable(told.key.as_str());
        self.key_width = self.key_width.max(key.chars().count()).min(KEY_WIDTH);
        let version = match told.object {
            Some(object) if !object.resource_version().is_unset() => {
                printable(&format!("@{}", object.resource_version()))
            }
            _ => "@?".to_owned(),
        };
        let version = self.paint(DIM, version);
        let mut line = format!("{head} {key:<width$}  {version}", width = self.key_width);
        for part in self.rest(told, now) {
            line.push_str("  ");
            line.push_str(&part);
        }
        line
    }

    /// What follows key and version.
    fn rest(&self, told: &Told<'_>, now: Timestamp) -> Vec<String> {
        let mut rest = Vec::new();
        if self.wide
            && let Some(value) = told.object.and_then(|object| object.value().ok())
        {
            rest.extend(columns(&value, now).into_iter().map(|(name, value)| format!("{name}={value}")));
        }
        match told.what {
            What::Added { initial: true } => rest.push(self.paint(DIM, "initial".to_owned())),
            What::Deleted { final_state_known: false } => {
                rest.push("noticed late: its final state is unknown".to_owned());
            }
            What::Updated { old } => rest.push(told.object.map_or_else(String::new, |new| changes(old, new))),
            _ => {}
        }
        rest
    }

    fn paint(&self, colour: &str, text: String) -> String {
        if self.colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text }
    }
}

/// The changes of an update on one line.
pub(super) fn changes(old: &Object<RawObject>, new: &Object<RawObject>) -> String {
    let (Ok(before), Ok(after)) = (old.value(), new.value()) else {
        return "nested too deeply to be compared".to_owned();
    };
    let uid = |value: &Value| value.pointer("/metadata/uid").cloned();
    if uid(&before) != uid(&after) {
        return "deleted and made anew in between".to_owned();
    }
    let mut all = diff(&before, &after);
    all.sort_by_key(Change::weight);
    if all.is_empty() {
        return "nothing but bookkeeping".to_owned();
    }
    let mut told: Vec<String> = all.iter().take(CHANGES).map(ToString::to_string).collect();
    if all.len() > CHANGES {
        told.push(format!("and {} more", all.len() - CHANGES));
    }
    told.join(", ")
}

/// What a wide line shows of an object, where it has it.
fn columns(object: &Value, now: Timestamp) -> Vec<(&'static str, String)> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(printable);
    let columns = [
        ("phase", text("/status/phase")),
        ("ready", ready(object)),
        ("restarts", restarts(object)),
        ("node", text("/spec/nodeName")),
        ("ip", text("/status/podIP").or_else(|| text("/spec/clusterIP"))),
        ("age", text("/metadata/creationTimestamp").and_then(|created| age(&created, now))),
        ("labels", labels(object)),
    ];
    columns.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Containers of a pod, replicas of a workload, or the condition of that name.
fn ready(object: &Value) -> Option<String> {
    if let Some(containers) = object.pointer("/status/containerStatuses").and_then(Value::as_array) {
        let ready = containers.iter().filter(|container| container["ready"] == true).count();
        return Some(format!("{ready}/{}", containers.len()));
    }
    if let Some(wanted) = object.pointer("/spec/replicas").and_then(Value::as_u64) {
        let ready = object.pointer("/status/readyReplicas").and_then(Value::as_u64).unwrap_or(0);
        return Some(format!("{ready}/{wanted}"));
    }
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == "Ready")?;
    condition["status"].as_str().map(printable)
}

fn restarts(object: &Value) -> Option<String> {
    let containers = object.pointer("/status/containerStatuses")?.as_array()?;
    let counts = containers.iter().map(|container| container["restartCount"].as_u64().unwrap_or(0));
    Some(counts.fold(0, u64::saturating_add).to_string())
}

fn labels(object: &Value) -> Option<String> {
    let labels = object.pointer("/metadata/labels")?.as_object()?;
    let pairs: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect();
    (!pairs.is_empty()).then(|| printable(&shorten(pairs.join(","), LABELS_WIDTH)))
}

/// As kubectl says it: `45s`, `12m`, `5h`, `9d`.
fn age(created: &str, now: Timestamp) -> Option<String> {
    let seconds = now.duration_since(created.parse().ok()?).as_secs().max(0);
    Some(match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::object;
    use informer::{Event, Notice, Tombstone};
    use serde_json::json;

    fn pod(name: &str, version: &str, phase: &str) -> Object<RawObject> {
        object(json!({
            "metadata": {
                "namespace": "shop", "name": name, "resourceVersion": version, "uid": "u",
                "creationTimestamp": "2026-05-01T12:00:00Z", "labels": {"app": "web", "tier": "front"},
            },
            "spec": {"nodeName": "node-1"},
            "status": {"phase": phase, "containerStatuses": [{"ready": true, "restartCount": 2}, {"ready": false}]},
        }))
    }

    fn line(lines: &mut Lines, event: Event<RawObject>, initial: bool) -> String {
        let now = "2026-05-01T15:30:00Z".parse().unwrap();
        lines.line(&Told::new(&Notice { event, initial }), now)
    }

    #[test]
    fn each_event_has_its_mark_and_word() {
        let mut lines = Lines::new(false, false);
        let (old, new) = (pod("web-0", "1", "Pending"), pod("web-0", "2", "Running"));
        let unknown = Tombstone::Unknown { key: new.key().clone(), last_seen: None };
        for (event, initial, expected) in [
            (Event::Added(old.clone()), true, "+ ADDED    shop/web-0  @1  initial"),
            (Event::Added(old.clone()), false, "+ ADDED    shop/web-0  @1"),
            (
                Event::Updated { old, new: new.clone() },
                false,
                "~ UPDATED  shop/web-0  @2  status.phase: Pending → Running",
            ),
            (Event::Updated { old: new.clone(), new: new.clone() }, false, "= RESYNC   shop/web-0  @2"),
            (Event::Deleted(Tombstone::Final(new.clone())), false, "- DELETED  shop/web-0  @2"),
            (
                Event::Deleted(unknown),
                false,
                "- DELETED  shop/web-0  @?  noticed late: its final state is unknown",
            ),
        ] {
            assert_eq!(line(&mut lines, event, initial), expected);
        }
        let longer = line(&mut lines, Event::Added(pod("web-10", "3", "Running")), false);
        assert_eq!(longer, "+ ADDED    shop/web-10  @3");
        assert_eq!(
            line(&mut lines, Event::Added(new), false),
            "+ ADDED    shop/web-0   @2",
            "columns settle"
        );
    }

    #[test]
    fn a_wide_line_shows_what_the_object_has() {
        let mut lines = Lines::new(false, true);
        assert_eq!(
            line(&mut lines, Event::Added(pod("web-0", "1", "Running")), false),
            "+ ADDED    shop/web-0  @1  phase=Running  ready=1/2  restarts=2  node=node-1  age=3h  labels=app=web,tier=front"
        );
        let bare = object(json!({"metadata": {"name": "node-1", "resourceVersion": "5"}}));
        assert_eq!(line(&mut lines, Event::Added(bare), false), "+ ADDED    node-1      @5");
        let workload = json!({"spec": {"replicas": 3}, "status": {"readyReplicas": 1}});
        assert_eq!(ready(&workload).as_deref(), Some("1/3"));
        let node = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(ready(&node).as_deref(), Some("True"));
    }

    #[test]
    fn colours_are_only_there_when_wanted() {
        let event = Event::Added(pod("web-0", "1", "Running"));
        assert!(line(&mut Lines::new(true, false), event.clone(), true).starts_with("\x1b[32m+ ADDED"));
        assert!(!line(&mut Lines::new(false, true), event, true).contains('\x1b'));
    }

    #[test]
    fn many_changes_are_counted_and_a_new_object_of_the_same_name_is_told() {
        let with = |uid: &str, value: i32| {
            let data: serde_json::Map<String, Value> =
                (0..9).map(|at| (format!("k{at}"), json!(value))).collect();
            object(json!({"metadata": {"name": "a", "uid": uid}, "data": data}))
        };
        let told = changes(&with("u", 1), &with("u", 2));
        assert!(told.starts_with("data.k0: 1 → 2, ") && told.ends_with(", and 3 more"), "{told}");
        assert_eq!(changes(&with("u", 1), &with("v", 1)), "deleted and made anew in between");
        assert_eq!(changes(&with("u", 1), &with("u", 1)), "nothing but bookkeeping");
    }

    #[test]
    fn ages_are_rounded_down_and_never_negative() {
        let now: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
        for (created, expected) in [
            ("2026-05-01T11:59:15Z", Some("45s")),
            ("2026-05-01T12:59:15Z", Some("0s")),
            ("2026-05-01T11:48:00Z", Some("12m")),
            ("2026-04-30T12:00:00Z", Some("24h")),
            ("2026-04-20T12:00:00Z", Some("11d")),
            ("yesterday", None),
        ] {
            assert_eq!(age(created, now).as_deref(), expected, "{created}");
        }
    }
}
