//! Events, which are one kind in two shapes: that of the core group and that of `events.k8s.io`.

use serde_json::Value;

use crate::json::Json;

use super::{
    Column, NAME, Row, duration,
    fields::{filled_or, integer, is_set, text},
};

pub(super) fn columns(group: &str, plural: &str) -> Option<&'static [Column]> {
    matches!((group, plural), ("" | "events.k8s.io", "events")).then_some(EVENT)
}

static EVENT: &[Column] = &[
    Column::new("Last Seen", "How long ago it happened last.", last_seen).aging(),
    Column::new("Type", "Whether it is normal or a warning.", |event, _| text(event, "/type").into()),
    Column::new("Reason", "What happened, in one word.", |event, _| text(event, "/reason").into()),
    Column::new("Object", "What it happened to.", |event, _| {
        let kind = of_object(event, "/kind").to_lowercase();
        match of_object(event, "/name") {
            "" => kind.into(),
            name => format!("{kind}/{name}").into(),
        }
    }),
    Column::new("Subobject", "The part of the object that it happened to.", |event, _| {
        of_object(event, "/fieldPath").into()
    })
    .wide(),
    Column::new("Source", "Who tells.", source).wide(),
    Column::new("Message", "What happened, in words.", |event, _| {
        filled_or(event, "/message", text(event, "/note")).trim().into()
    }),
    Column::new("First Seen", "How long ago it happened first.", first_seen).aging().wide(),
    Column::new("Count", "How often it happened.", |event, _| {
        if is_set(event, "/series") {
            return integer(event, "/series/count").into();
        }
        match integer(event, "/count").max(integer(event, "/deprecatedCount")) {
            0 => 1.into(),
            count => count.into(),
        }
    })
    .wide(),
    Column { priority: 1, ..NAME },
];

/// A text of the object that the event is about.
fn of_object<'v>(event: &'v Json<'_>, pointer: &str) -> &'v str {
    let object = event.get("involvedObject").or_else(|| event.get("regarding"));
    object.map_or("", |object| text(object, pointer))
}

/// The first of these places that has a time, as how long ago that was.
fn since_first_of(event: &Json<'_>, places: &[&str], row: &Row) -> Value {
    let place = places.iter().find(|place| duration::time(event, place).is_some());
    place.map_or_else(|| "<unknown>".to_owned(), |place| duration::since(event, place, row.now)).into()
}

fn first_seen(event: &Json<'_>, row: &Row) -> Value {
    since_first_of(event, &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"], row)
}

fn last_seen(event: &Json<'_>, row: &Row) -> Value {
    if is_set(event, "/series") {
        return since_first_of(event, &["/series/lastObservedTime"], row);
    }
    match since_first_of(event, &["/lastTimestamp", "/deprecatedLastTimestamp"], row) {
        unknown if unknown == "<unknown>" => first_seen(event, row),
        seen => seen,
    }
}

fn source(event: &Json<'_>, _: &Row) -> Value {
    let first_of = |places: [&str; 4]| {
        places.into_iter().map(|place| text(event, place)).find(|text| !text.is_empty()).unwrap_or("")
    };
    let component = first_of([
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    match first_of(["/source/host", "/deprecatedSource/host", "/reportingInstance", "/reportingInstance"]) {
        "" => component.into(),
        host => format!("{component}, {host}").into(),
    }
}
