//! The server-side Table of `kubectl get`: a resource in, its columns out; an object in, its cells out.
//!
//! [`columns`] knows what a server shows of each built-in kind and makes the columns of a custom one from
//! its `additionalPrinterColumns`. Nothing here does I/O: the caller brings objects and the time.
//!
//! Objects are as clients sent them. A field that is missing or of another type shows as what a server
//! shows after its defaulting: `<none>`, `<unknown>`, `0`, or the default value.

mod admission;
mod autoscaling;
mod certificates;
mod cluster;
mod custom;
mod devices;
mod duration;
mod events;
mod fields;
mod json_path;
mod networking;
mod pods;
mod quantity;
mod rbac;
mod storage;
#[cfg(test)]
mod tests;
mod workloads;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::catalog::{Resource, Version};
use custom::CustomColumn;
use fields::text;

/// The columns in which the objects of one resource are shown.
pub(crate) struct Columns {
    columns: &'static [Column],
    /// What follows them for a custom resource.
    custom: Vec<CustomColumn>,
}

/// The columns of a resource as a version of it shows them.
pub(crate) fn columns(resource: &Resource, version: &Version) -> Columns {
    if resource.custom {
        return Columns { columns: &[NAME], custom: custom::columns(&version.columns) };
    }
    let (group, plural) = (resource.group.as_str(), resource.plural.as_str());
    let families = [
        pods::columns,
        workloads::columns,
        networking::columns,
        storage::columns,
        cluster::columns,
        events::columns,
        autoscaling::columns,
        rbac::columns,
        admission::columns,
        certificates::columns,
        devices::columns,
    ];
    let known = families.iter().find_map(|family| family(group, plural));
    Columns { columns: known.unwrap_or(DEFAULT), custom: Vec::new() }
}

impl Columns {
    /// The `columnDefinitions` of a Table.
    pub(crate) fn definitions(&self) -> Value {
        let built_in = self.columns.iter().map(Column::definition);
        built_in.chain(self.custom.iter().map(CustomColumn::definition)).collect()
    }

    /// The cells of one object.
    pub(crate) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let built_in = self.columns.iter().map(|column| (column.cell)(object, now));
        built_in.chain(self.custom.iter().map(|column| column.cell(object, now))).collect()
    }

    /// A finished row of the table: the cells of an object, what is known about it, and what of it the
    /// request wants included.
    pub(crate) fn row(&self, object: &Value, included: Option<Value>, now: Timestamp) -> Value {
        let mut row = row(self.cells(object, now), included);
        if let Some(conditions) = self.conditions(object) {
            row["conditions"] = conditions;
        }
        row
    }

    /// The `conditions` of a row: pods that ran to their end are marked, so that a client can set them
    /// apart.
    fn conditions(&self, object: &Value) -> Option<Value> {
        std::ptr::eq(self.columns, pods::POD).then(|| pods::row_conditions(object)).flatten()
    }
}

/// One row of a table. Without an object the row says so with a null, as a server does.
pub(crate) fn row(cells: Vec<Value>, object: Option<Value>) -> Value {
    json!({ "cells": cells, "object": object })
}

/// The document. `definitions` is null where a watch leaves the headers out after its first event.
pub(crate) fn table(list_metadata: Value, definitions: Value, rows: Vec<Value>) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata,
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

/// A column of a built-in kind.
struct Column {
    name: &'static str,
    r#type: &'static str,
    format: &'static str,
    description: &'static str,
    priority: i32,
    cell: fn(&Value, Timestamp) -> Value,
}

impl Column {
    /// A column of text that is always shown.
    const fn new(
        name: &'static str,
        description: &'static str,
        cell: fn(&Value, Timestamp) -> Value,
    ) -> Self {
        Self { name, r#type: "string", format: "", description, priority: 0, cell }
    }

    const fn integer(mut self) -> Self {
        self.r#type = "integer";
        self
    }

    const fn boolean(mut self) -> Self {
        self.r#type = "boolean";
        self
    }

    /// The column holds a name.
    const fn named(mut self) -> Self {
        self.format = "name";
        self
    }

    /// Shown by `-o wide` only.
    const fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }

    fn definition(&self) -> Value {
        definition(self.name, self.r#type, self.format, self.description, self.priority)
    }
}

fn definition(name: &str, r#type: &str, format: &str, description: &str, priority: i32) -> Value {
    json!({
        "name": name,
        "type": r#type,
        "format": format,
        "description": description,
        "priority": priority,
    })
}

const NAME: Column =
    Column::new("Name", "The name of the object.", |object, _| text(object, "/metadata/name").into()).named();

const AGE: Column = Column::new("Age", "How long ago the object was created.", |object, now| {
    duration::since(object, "/metadata/creationTimestamp", now).into()
});

/// The columns of built-in kinds that have none of their own. The time is not made human here, but by kubectl.
static DEFAULT: &[Column] = &[
    NAME,
    Column { r#type: "date", ..Column::new("Created At", "When the object was created.", created_at) },
];

fn created_at(object: &Value, _: Timestamp) -> Value {
    let created = duration::time(object, "/metadata/creationTimestamp");
    let whole = created.and_then(|time| Timestamp::from_second(time.as_second()).ok());
    whole.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |time| time.to_string()).into()
}
