//! Random histories of several managers, against a model and against what must always be so; and single rules.

mod histories;

use serde_json::{Value, json};

use super::{
    Manager, Managers, NotApplied, Operation, Scope, Type, Writer, element::Element, fields::FieldSet, merge,
};

/// A writer of objects that are to be seen in one version.
fn mk_writer<'s>(r#type: Type<'s>, name: &str, operation: Operation, time: &'s str) -> Writer<'s> {
    let manager = Manager {
        name: name.to_owned(),
        operation,
        api_version: "v1".to_owned(),
        subresource: String::new(),
    };
    Writer {
        r#type,
        scope: Scope::NoStatus,
        manager,
        time: Some(time),
        versions: &|version| version == "v1",
        empty: &|| json!({}),
    }
}

fn pods() -> Type<'static> {
    Type::of_kind("v1", "Pod")
}

fn update(name: &str, old: &Value, new: &Value, managers: Managers) -> Managers {
    mk_writer(pods(), name, Operation::Update, "2026-01-01T00:00:00Z").update(old, new, managers)
}

fn apply(
    name: &str,
    live: &Value,
    config: &Value,
    managers: Managers,
    force: bool,
) -> Result<(Value, Managers), NotApplied> {
    let managers = (!managers.0.is_empty()).then_some(managers);
    mk_writer(pods(), name, Operation::Apply, "2026-01-02T00:00:00Z").apply(live, config, managers, force)
}

fn fields_of(managers: &Managers, name: &str) -> Value {
    let entry = managers.0.iter().find(|entry| entry.manager.name == name);
    entry.map(|entry| entry.fields.clone().write()).unwrap_or_default()
}

#[test]
fn a_new_object_is_its_creators_but_for_what_the_server_says_of_it() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "a", "namespace": "b", "uid": "c", "labels": { "app": "x" }, "finalizers": ["e.com/f"] },
        "spec": { "nodeSelector": { "a": "b" }, "containers": [
            { "name": "main", "image": "i", "command": ["c"], "resources": {}, "ports": [{ "containerPort": 80 }] },
        ] },
        "status": { "phase": "Running" },
    });
    let empty = json!({ "metadata": {}, "spec": { "containers": null }, "status": {} });
    let managers = update("me", &empty, &pod, Managers::default());
    let container = json!({
        ".": {}, "f:command": {}, "f:image": {}, "f:name": {}, "f:resources": {},
        "f:ports": { ".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} } },
    });
    let expected = json!({
        "f:metadata": { "f:labels": { ".": {}, "f:app": {} }, "f:finalizers": { ".": {}, "v:\"e.com/f\"": {} } },
        "f:spec": { "f:nodeSelector": {}, "f:containers": { "k:{\"name\":\"main\"}": container } },
    });
    assert_eq!(fields_of(&managers, "me"), expected);
}

#[test]
fn what_an_update_changes_is_taken_from_others_and_what_it_leaves_is_not() {
    let one = json!({ "metadata": { "labels": { "a": "1", "b": "1" } } });
    let two = json!({ "metadata": { "labels": { "a": "2", "b": "1" } } });
    let managers = update("one", &json!({}), &one, Managers::default());
    let managers = update("two", &one, &two, managers);
    assert_eq!(fields_of(&managers, "one"), json!({ "f:metadata": { "f:labels": { ".": {}, "f:b": {} } } }));
    assert_eq!(fields_of(&managers, "two"), json!({ "f:metadata": { "f:labels": { "f:a": {} } } }));
    let none = update("two", &two, &json!({}), managers);
    assert_eq!(none, Managers::default(), "what is gone is nobody's");
}

#[test]
fn a_conflict_names_the_manager_and_the_fields_and_force_takes_them() {
    let config = |image: &str| json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "containers": [{ "name": "a", "image": image }] } });
    let (live, managers) = apply("one", &json!({}), &config("1"), Managers::default(), false).unwrap();
    let conflicts = match apply("two", &live, &config("2"), managers.clone(), false) {
        Err(NotApplied::Conflicts(conflicts)) => conflicts,
        other => panic!("{other:?}"),
    };
    let told: Vec<_> = conflicts.iter().map(|(manager, path)| (manager.described(), path.as_str())).collect();
    assert_eq!(told, [("\"one\"".to_owned(), ".spec.containers[name=\"a\"].image")]);
    let (live, managers) = apply("two", &live, &config("2"), managers, true).unwrap();
    assert_eq!(live["spec"]["containers"][0]["image"], "2");
    let item = |fields: Value| json!({ "f:spec": { "f:containers": { "k:{\"name\":\"a\"}": fields } } });
    assert_eq!(fields_of(&managers, "one"), item(json!({ ".": {}, "f:name": {} })));
    assert_eq!(fields_of(&managers, "two"), item(json!({ ".": {}, "f:image": {}, "f:name": {} })));
}

#[test]
fn what_was_there_before_anybody_applied_is_somebodys() {
    let live = json!({ "metadata": { "labels": { "a": "1" } } });
    let config = json!({ "metadata": { "labels": { "a": "2" } } });
    let refused = apply("me", &live, &config, Managers::default(), false).unwrap_err();
    let NotApplied::Conflicts(conflicts) = refused else { panic!("{refused:?}") };
    assert_eq!(conflicts[0].0.described(), "\"before-first-apply\" using v1");
    let same = apply("me", &live, &live, Managers::default(), false).unwrap().1;
    assert_eq!(same.0.len(), 2, "shared");
}

#[test]
fn lists_are_merged_in_the_order_of_the_configuration() {
    let pod = |names: &[&str]| {
        let containers: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        json!({ "spec": { "containers": containers } })
    };
    for (live, config, merged) in [
        (&["a", "b", "c"][..], &["b"][..], &["a", "b", "c"][..]),
        (&["a", "b", "c"], &["c", "a"], &["b", "c", "a"]),
        (&["a", "b"], &["x", "b"], &["a", "x", "b"]),
        (&["a"], &["x", "a", "y"], &["x", "a", "y"]),
        (&[], &["a"], &["a"]),
    ] {
        assert_eq!(merge::merge(pods(), &pod(live), &pod(config)), pod(merged), "{live:?} {config:?}");
    }
}

#[test]
fn what_cannot_be_merged_is_named_by_its_path() {
    let refused = |config: Value| match apply("me", &json!({}), &config, Managers::default(), false) {
        Err(NotApplied::Unfit(why)) => why.to_string(),
        other => panic!("{other:?}"),
    };
    let twice = json!({ "spec": { "containers": [{ "name": "a" }, { "name": "a" }] } });
    assert_eq!(refused(twice), ".spec.containers: duplicate entries for key [name=\"a\"]");
    let odd = json!({ "metadata": { "finalizers": [{}] } });
    assert!(refused(odd).starts_with(".metadata.finalizers: element 0: "));
}

#[test]
fn of_many_updaters_the_oldest_are_merged() {
    let (mut managers, mut object) = (Managers::default(), json!({ "metadata": { "labels": {} } }));
    for n in 0..15 {
        let mut new = object.clone();
        new["metadata"]["labels"][format!("l{n:02}")] = "x".into();
        let time = format!("2026-01-01T00:00:{n:02}Z");
        let writer = mk_writer(pods(), "", Operation::Update, &time);
        let manager = Manager { name: format!("m{n:02}"), ..writer.manager };
        managers = Writer { manager, ..writer }.update(&object, &new, managers);
        object = new;
    }
    assert_eq!(managers.0.len(), 10);
    let ancient = fields_of(&managers, "ancient-changes");
    let labels = ancient["f:metadata"]["f:labels"].as_object().unwrap();
    assert_eq!(labels.len(), 6, "{labels:?}");
    assert!(labels.contains_key("f:l00") && labels.contains_key("f:l05"));
}

#[test]
fn managers_are_read_and_written_as_a_server_has_them() {
    let wire = json!([
        { "manager": "b", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": {} } },
        { "manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": {} },
          "time": "2026-01-01T00:00:00Z", "subresource": "status" },
    ]);
    assert_eq!(Managers::read(wire.clone()).unwrap().write(), Some(wire.clone()));
    let mut reversed = wire.clone();
    reversed.as_array_mut().unwrap().reverse();
    assert_eq!(Managers::read(reversed).unwrap().write(), Some(wire.clone()), "in the order of a server");
    for (field, value) in [("operation", "Burn"), ("apiVersion", ""), ("fieldsType", "V2")] {
        let mut odd = wire.clone();
        odd[0][field] = value.into();
        assert_eq!(Managers::read(odd), None, "{field}");
    }
    assert_eq!(Managers::read(json!([])), None);
    let respelled = FieldSet::read(
        json!({ "k:{ \"b\":1, \"a\":\"<\"}": {}, "x:y": {}, "f:a:b": { ".": {}, "v: 1": {} } }),
    );
    let expected = json!({ "k:{\"a\":\"\\u003c\",\"b\":1}": {}, "f:a:b": { ".": {}, "v:1": {} } });
    assert_eq!(respelled.respelled().write(), expected);
}

#[test]
fn no_element_panics() {
    for text in ["", "f", "f:", "k:", "k:{}", "k:[]", "v:", "v:{", "i:x", "i:-1", "é:a", "."] {
        let _ = Element::parse(text).map(|element| (element.spelled(), element.to_string()));
    }
}
