//! Every kind with its columns, and objects with the cells that a server shows for them.

mod cluster;
mod control;
mod networking;
mod pods;
mod storage;
mod workloads;

use informer_testing::histories;
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::json::Outline;

/// What a kind looks like.
struct Case {
    group: &'static str,
    plural: &'static str,
    /// The columns, as [`header`] writes them.
    header: &'static str,
    /// Objects and their cells.
    rows: Vec<(Value, Value)>,
}

/// The time of the test.
fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// A time so many seconds ago.
fn ago(seconds: i64) -> String {
    (now() - jiff::SignedDuration::from_secs(seconds)).to_string()
}

/// An object that was created five minutes ago.
fn object(name: &str, mut fields: Value) -> Value {
    let metadata = fields.as_object_mut().unwrap().entry("metadata").or_insert_with(|| json!({}));
    metadata["name"] = name.into();
    metadata["creationTimestamp"] = ago(300).into();
    fields
}

fn cells(columns: &Columns, object: &Value, now: Timestamp) -> Vec<Value> {
    columns.cells(&Outline::of(&object.to_string()).root(), now).collect()
}

/// A row that includes nothing of the object.
fn row(columns: &Columns, object: &Value) -> Value {
    let mut row = Vec::new();
    columns.write_row_start(&Outline::of(&object.to_string()).root(), now(), &mut row);
    serde_json::from_slice(&[&row[..], b"null}"].concat()).unwrap()
}

/// The names of columns; `#` before another type than text, `/` before a format, `+` for wide output.
fn header(columns: &Columns) -> String {
    let column = |column: &Value| {
        let [name, r#type, format] = ["name", "type", "format"].map(|field| column[field].as_str().unwrap());
        let r#type = if r#type == "string" { String::new() } else { format!("#{type}") };
        let format = if format.is_empty() { String::new() } else { format!("/{format}") };
        let wide = if column["priority"] == 1 { "+" } else { "" };
        assert!(column["description"] != "", "{name} has no description");
        format!("{name}{type}{format}{wide}")
    };
    columns.definitions().as_array().unwrap().iter().map(column).collect::<Vec<_>>().join(", ")
}

fn cases() -> Vec<Case> {
    [
        pods::cases(),
        workloads::cases(),
        networking::cases(),
        storage::cases(),
        cluster::cases(),
        control::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_kind_has_the_columns_and_cells_of_a_server() {
    for Case { group, plural, header: expected, rows } in cases() {
        let columns = Columns::of(group, plural);
        assert_eq!(header(&columns), expected, "{group} {plural}");
        for (object, expected) in rows {
            assert_eq!(Value::from(cells(&columns, &object, now())), expected, "{group} {plural}: {object}");
        }
    }
}

#[test]
fn other_kinds_show_when_they_were_created() {
    let kinds = [
        ("", "limitranges"),
        ("rbac.authorization.k8s.io", "roles"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("storage.k8s.io", "csistoragecapacities"),
        // The name alone does not make it a pod.
        ("metrics.example.com", "pods"),
    ];
    for (group, plural) in kinds {
        let columns = Columns::of(group, plural);
        assert_eq!(header(&columns), "Name/name, Created At#date");
        assert_eq!(cells(&columns, &object("a", json!({})), now()), [json!("a"), json!(ago(300))]);
        assert_eq!(cells(&columns, &json!({}), now()), [json!(""), json!("0001-01-01T00:00:00Z")]);
    }
}

#[test]
fn a_custom_resource_shows_its_name_and_the_columns_of_its_definition() {
    let column = |name: &str, r#type: &str, json_path: &str| PrinterColumn {
        name: name.to_owned(),
        r#type: r#type.to_owned(),
        json_path: json_path.to_owned(),
        ..PrinterColumn::default()
    };
    assert_eq!(header(&Columns::fallback()), "Name/name, Age#date");
    let columns = Columns::custom(&[
        column("Replicas", "integer", ".spec.replicas"),
        column("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#),
        PrinterColumn { priority: 1, ..column("Since", "date", ".status.since") },
    ]);
    assert_eq!(header(&columns), "Name/name, Replicas#integer, Ready, Since#date+");
    assert_eq!(
        columns.definitions()[1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.replicas"
    );
    let status = json!({ "conditions": [{ "type": "Ready", "status": "True" }], "since": ago(90) });
    let custom = object("a", json!({ "spec": { "replicas": 3 }, "status": status }));
    assert_eq!(cells(&columns, &custom, now()), [json!("a"), json!(3), json!("True"), json!("90s")]);
    assert_eq!(cells(&columns, &object("a", json!({})), now())[1..], [Value::Null, Value::Null, Value::Null]);
}

#[test]
fn a_row_has_a_cell_for_each_definition() {
    let columns = Columns::of("", "serviceaccounts");
    let definition = |name: &str, format: &str, description: &str| json!({ "name": name, "type": "string", "format": format, "description": description, "priority": 0 });
    assert_eq!(
        columns.definitions(),
        json!([
            definition("Name", "name", "The name of the object."),
            definition("Age", "", "How long ago the object was created."),
        ])
    );
    let account = object("a", json!({}));
    assert_eq!(row(&columns, &account), json!({ "cells": ["a", "5m"], "object": null }));
}

#[test]
fn a_row_depends_on_the_time_if_a_cell_does() {
    for Case { group, plural, rows, .. } in cases() {
        let columns = Columns::of(group, plural);
        let later = now() + jiff::SignedDuration::from_hours(24 * 365 * 20);
        let ages =
            |(object, _): &(Value, Value)| cells(&columns, object, now()) != cells(&columns, object, later);
        assert_eq!(columns.shows_ages(), rows.iter().any(ages), "{group} {plural}");
    }
    let custom = |r#type: &str| {
        let column =
            PrinterColumn { json_path: ".a".to_owned(), r#type: r#type.to_owned(), ..Default::default() };
        Columns::custom(&[column]).shows_ages()
    };
    assert!(custom("date") && !custom("string") && Columns::fallback().shows_ages());
    assert!(!Columns::of("", "limitranges").shows_ages());
}

/// Every place in a value, as a JSON pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, field)| places(field, &format!("{at}/{}", escaped(key)), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

#[test]
fn no_object_makes_a_cell_panic_or_be_missing() {
    let cases: Vec<(Columns, Value)> = cases()
        .into_iter()
        .flat_map(|Case { group, plural, rows, .. }| {
            rows.into_iter().map(move |(object, _)| (Columns::of(group, plural), object))
        })
        .collect();
    let wrong = [
        json!(null),
        json!(true),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(1e300),
        json!(""),
        json!("é"),
        json!("9999-12-31T23:59:59Z"),
        json!([]),
        json!([null, { "name": 5 }, ["x"]]),
        json!({}),
        json!({ "a": {}, "limits.x": "é" }),
    ];
    let changes = vec((any::<prop::sample::Index>(), select(wrong.to_vec())), 1..4);
    histories(&(0..cases.len(), changes), |(case, changes)| {
        let (columns, object) = &cases[case];
        let mut object = object.clone();
        for (place, value) in changes {
            let mut all = Vec::new();
            places(&object, "", &mut all);
            *object.pointer_mut(place.get::<String>(&all)).unwrap() = value;
        }
        let cells = cells(columns, &object, now());
        assert_eq!(cells.len(), columns.definitions().as_array().unwrap().len());
        row(columns, &object);
    });
}
