//! The forms of output: lines for people, JSON and YAML documents for programs, names for shells.

use clap::ValueEnum;
use informer::{Notice, RawObject, discovery::ServedResource};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    event::{Told, What},
    line::{Lines, changes},
};
use crate::text::printable;

/// What is printed for each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A line with more about the object: phase, readiness, node, age, labels
    Wide,
    /// One JSON document per line: {"type", "key", "object"}, with "old" for an update
    Json,
    /// A YAML document for each event, with the event in a comment
    Yaml,
    /// The object's name only: pod/shop/web-0
    Name,
}

/// Turns events into text.
pub(super) struct Printer {
    form: Option<Form>,
    served: ServedResource,
    lines: Lines,
}

impl Printer {
    pub(super) fn new(form: Option<Form>, served: ServedResource, colours: bool) -> Self {
        Self { form, served, lines: Lines::new(colours, form == Some(Form::Wide)) }
    }

    /// The text of an event, with the end of its last line.
    pub(super) fn event(&mut self, notice: &Notice<RawObject>) -> String {
        let told = Told::new(notice);
        let mut text = match self.form {
            None | Some(Form::Wide) => self.lines.line(&told, Timestamp::now()),
            Some(Form::Json) => self.json(&told),
            Some(Form::Yaml) => self.yaml(&told),
            Some(Form::Name) => format!("{}/{}", self.served.singular_name(), printable(told.key.as_str())),
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }

    /// What a program is told when all that existed has been told.
    pub(super) fn synced(&self, objects: usize) -> Option<String> {
        (self.form == Some(Form::Json)).then(|| format!("{{\"type\":\"SYNCED\",\"objects\":{objects}}}\n"))
    }

    fn json(&self, told: &Told<'_>) -> String {
        let mut text =
            format!("{{\"type\":\"{}\",\"key\":{}", told.what.word(), Value::from(told.key.as_str()));
        let mut object = |name: &str, json: Option<&str>| {
            // Between the tokens of JSON, a line's end is as good as a space; inside of them there is none.
            let json = json.unwrap_or("null").replace(['\n', '\r'], " ");
            text.push_str(&format!(",\"{name}\":{json}"));
        };
        object("object", told.object.map(|object| object.json()));
        match told.what {
            What::Updated { old } => object("old", Some(old.json())),
            What::Added { initial: true } => text.push_str(",\"initial\":true"),
            What::Deleted { final_state_known: false } => text.push_str(",\"finalStateKnown\":false"),
            _ => {}
        }
        text.push('}');
        text
    }

    fn yaml(&self, told: &Told<'_>) -> String {
        let mut text = format!("---\n# {} {}", told.what.word(), printable(told.key.as_str()));
        match told.what {
            What::Added { initial: true } => text.push_str(" (initial)"),
            What::Updated { old } => {
                let changes = told.object.map(|new| changes(old, new)).unwrap_or_default();
                text.push_str(&format!(": {changes}"));
            }
            What::Deleted { final_state_known: false } => {
                text.push_str(" (noticed late: its final state is unknown)");
            }
            _ => {}
        }
        text.push('\n');
        let Some(object) = told.object else { return text };
        let value = object.value().map_err(|error| error.to_string());
        match value.and_then(|value| serde_saphyr::to_string(&value).map_err(|error| error.to_string())) {
            Ok(yaml) => text.push_str(&yaml),
            Err(error) => text.push_str(&format!("# it cannot be written as YAML: {}", printable(&error))),
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::{object, pods};
    use informer::{Event, Tombstone};
    use serde_json::json;

    fn printer(form: Form) -> Printer {
        let served = ServedResource {
            api: pods(),
            singular: "pod".into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            verbs: Vec::new(),
        };
        Printer::new(Some(form), served, false)
    }

    fn pod(version: &str, phase: &str) -> informer::Object<RawObject> {
        let metadata = json!({"namespace": "shop", "name": "web-0", "resourceVersion": version});
        object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": phase}}))
    }

    fn notice(event: Event<RawObject>, initial: bool) -> Notice<RawObject> {
        Notice { event, initial }
    }

    #[test]
    fn json_is_one_document_per_line_and_complete() {
        let mut printer = printer(Form::Json);
        let (old, new) = (pod("1", "Pending"), pod("2", "Running"));
        let added = printer.event(&notice(Event::Added(old.clone()), true));
        let document: Value = serde_json::from_str(&added).unwrap();
        assert_eq!((&document["type"], &document["initial"]), (&json!("ADDED"), &json!(true)));
        assert_eq!(document["object"]["kind"], "Pod");
        let updated = printer.event(&notice(Event::Updated { old, new: new.clone() }, false));
        let document: Value = serde_json::from_str(&updated).unwrap();
        assert_eq!(document["old"]["status"]["phase"], "Pending");
        assert_eq!(document["object"]["status"]["phase"], "Running");
        assert_eq!(document.get("initial"), None);
        let gone = Tombstone::Unknown { key: new.key().clone(), last_seen: None };
        assert_eq!(
            printer.event(&notice(Event::Deleted(gone), false)),
            "{\"type\":\"DELETED\",\"key\":\"shop/web-0\",\"object\":null,\"finalStateKnown\":false}\n"
        );
        assert_eq!(printer.synced(3).as_deref(), Some("{\"type\":\"SYNCED\",\"objects\":3}\n"));
    }

    #[test]
    fn json_of_many_lines_becomes_one() {
        let text = "{\n  \"metadata\": {\r\n \"name\": \"a\\nb\" }\n}\n";
        let raw: RawObject = serde_json::from_str(text).unwrap();
        let line =
            printer(Form::Json).event(&notice(Event::Added(informer::Object::new(raw).unwrap()), false));
        assert_eq!(line.matches('\n').count(), 1);
        let document: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(document["object"]["metadata"]["name"], "a\nb");
    }

    #[test]
    fn yaml_says_what_happened_in_a_comment_and_reads_back_as_the_object() {
        let mut printer = printer(Form::Yaml);
        let tricky = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-0", "namespace": "shop", "annotations": {"a": "yes", "b": "1", "c": "x: y\n# z\n"}},
            "on": null, "list": [1, "2", {"x": []}],
        });
        let text = printer.event(&notice(Event::Added(object(tricky.clone())), true));
        assert!(text.starts_with("---\n# ADDED shop/web-0 (initial)\napiVersion: v1\nkind: Pod\n"), "{text}");
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), tricky);
        let (old, new) = (pod("1", "Pending"), pod("2", "Running"));
        let text = printer.event(&notice(Event::Updated { old, new }, false));
        assert!(text.starts_with("---\n# UPDATED shop/web-0: status.phase: Pending → Running\n"), "{text}");
    }

    #[test]
    fn a_name_can_be_given_to_a_shell() {
        assert_eq!(
            printer(Form::Name).event(&notice(Event::Added(pod("1", "x")), false)),
            "pod/shop/web-0\n"
        );
        assert_eq!(printer(Form::Name).synced(1), None);
    }
}
