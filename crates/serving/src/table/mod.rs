//! The server-side Table of `kubectl get`: a resource in, its columns out; an object in, its cells out.
//!
//! [`Columns`] knows what a server shows of each built-in kind and makes the columns of a custom one from
//! its `additionalPrinterColumns`. Nothing here does I/O: the caller brings objects and the time. Cells may look at
//! anything in an object; what they do not look at is not decoded.
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

use std::cell::OnceCell;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::json::Json;

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

    /// Whether a cell shows how long ago something was, so that a row is another one later.
    pub fn shows_ages(&self) -> bool {
        self.columns.iter().any(|column| column.is_aging) || self.custom.iter().any(CustomColumn::is_aging)
    }

    /// The cells of one object, one for each column.
    pub fn cells(&self, object: &Json<'_>, now: Timestamp) -> impl Iterator<Item = Value> {
        let row = Row { now, pod: OnceCell::new() };
        let built_in = self.columns.iter().map(move |column| (column.cell)(object, &row));
        built_in.chain(self.custom.iter().map(move |column| column.cell(object, now)))
    }

    /// Writes the cells of one object as an array.
    pub fn write_cells(&self, object: &Json<'_>, now: Timestamp, out: &mut Vec<u8>) {
        out.push(b'[');
        for (index, cell) in self.cells(object, now).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write(&cell, out);
        }
        out.push(b']');
    }

    /// Writes a row of a `Table`, but for what of the object is included: that and a closing brace follow.
    pub(crate) fn write_row_start(&self, object: &Json<'_>, now: Timestamp, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"cells\":");
        self.write_cells(object, now, out);
        if let Some(conditions) = self.conditions(object) {
            out.extend_from_slice(b",\"conditions\":");
            write(&conditions, out);
        }
        out.extend_from_slice(b",\"object\":");
    }

    /// The `conditions` of a row: pods that ran to their end are marked, so that a client can set them
    /// apart.
    fn conditions(&self, object: &Json<'_>) -> Option<Value> {
        std::ptr::eq(self.columns, pods::POD).then(|| pods::row_conditions(object)).flatten()
    }
}

fn write(value: &Value, out: &mut Vec<u8>) {
    // Neither a value nor a vector refuses to be written.
    let _ = serde_json::to_writer(out, value);
}

/// What the cells of one row share.
#[derive(Debug)]
struct Row {
    now: Timestamp,
    /// Of a pod: what several of its columns show.
    pod: OnceCell<pods::Summary>,
}

/// A column of a built-in kind.
#[derive(Debug)]
struct Column {
    name: &'static str,
    r#type: &'static str,
    format: &'static str,
    description: &'static str,
    priority: i32,
    /// Whether its cells change with the time.
    is_aging: bool,
    cell: fn(&Json<'_>, &Row) -> Value,
}

impl Column {
    /// A column of text that is always shown.
    const fn new(name: &'static str, description: &'static str, cell: fn(&Json<'_>, &Row) -> Value) -> Self {
        Self { name, r#type: "string", format: "", description, priority: 0, is_aging: false, cell }
    }

    /// The column shows how long ago something was.
    const fn aging(mut self) -> Self {
        self.is_aging = true;
        self
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

const AGE: Column = Column::new("Age", "How long ago the object was created.", |object, row| {
    duration::since(object, "/metadata/creationTimestamp", row.now).into()
})
.aging();

/// The columns of built-in kinds that have none of their own. The time is not made human here, but by kubectl.
static DEFAULT: &[Column] = &[NAME, CREATED_AT];

const CREATED_AT: Column =
    Column { r#type: "date", ..Column::new("Created At", "When the object was created.", created_at) };

fn created_at(object: &Json<'_>, _: &Row) -> Value {
    let created = duration::time(object, "/metadata/creationTimestamp");
    let whole = created.and_then(|time| Timestamp::from_second(time.as_second()).ok());
    whole.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |time| time.to_string()).into()
}
