//! The server-side Table of `kubectl get`: a resource in, its columns out; an object in, its cells out.
//!
//! [`Columns`] knows what a server shows of each built-in kind and makes the columns of a custom one from
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
mod rbac;
mod storage;
#[cfg(test)]
mod tests;
mod workloads;

use jiff::Timestamp;
use serde_json::{Value, json};

use custom::CustomColumn;
pub use custom::PrinterColumn;
use fields::text;

/// The columns in which the objects of one resource are shown.
#[derive(Debug, Clone)]
pub struct Columns {
    columns: &'static [Column],
    /// What follows them for a custom resource.
    custom: Vec<CustomColumn>,
}

impl Columns {
    /// The columns of a built-in resource. One that has none of its own shows when its objects were created.
    pub fn of(group: &str, plural: &str) -> Self {
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
        Self { columns: known.unwrap_or(DEFAULT), custom: Vec::new() }
    }

    /// The columns of a custom resource: the name, and what its definition names or else the age.
    ///
    /// As on a server, a column whose path cannot be read is left out with all that follow it.
    pub fn custom(defined: &[PrinterColumn]) -> Self {
        Self { columns: &[NAME], custom: custom::columns(defined) }
    }

    /// The columns of a resource that nothing is known of: name and age.
    pub fn fallback() -> Self {
        Self::custom(&[])
    }

    /// The `columnDefinitions` of a Table.
    pub fn definitions(&self) -> Value {
        let built_in = self.columns.iter().map(Column::definition);
        built_in.chain(self.custom.iter().map(CustomColumn::definition)).collect()
    }

    /// The cells of one object, one for each column.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let built_in = self.columns.iter().map(|column| (column.cell)(object, now));
        built_in.chain(self.custom.iter().map(|column| column.cell(object, now))).collect()
    }

    /// A finished row of the table: the cells of an object, what is known about it, and what of it the
    /// request wants included. Without that the row says so with a null, as a server does.
    pub fn row(&self, object: &Value, included: Option<Value>, now: Timestamp) -> Value {
        let mut row = json!({ "cells": self.cells(object, now), "object": included });
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

/// The document. `definitions` is null where a watch leaves the headers out after its first event.
pub fn table(list_metadata: Value, definitions: Value, rows: Vec<Value>) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata,
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

/// A column of a built-in kind.
#[derive(Debug)]
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
static DEFAULT: &[Column] = &[NAME, CREATED_AT];

const CREATED_AT: Column =
    Column { r#type: "date", ..Column::new("Created At", "When the object was created.", created_at) };

fn created_at(object: &Value, _: Timestamp) -> Value {
    let created = duration::time(object, "/metadata/creationTimestamp");
    let whole = created.and_then(|time| Timestamp::from_second(time.as_second()).ok());
    whole.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |time| time.to_string()).into()
}
