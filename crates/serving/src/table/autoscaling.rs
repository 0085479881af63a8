//! Pod autoscalers and disruption budgets: how many pods there should and may be.

use serde_json::Value;

use crate::json::Json;

use super::{
    AGE, Column, NAME, Row,
    fields::{integer, integer_or, is_set, items, quantity, shortened, text},
};

pub(super) fn columns(group: &str, plural: &str) -> Option<&'static [Column]> {
    match (group, plural) {
        ("autoscaling", "horizontalpodautoscalers") => Some(AUTOSCALER),
        ("autoscaling", "scales") => Some(SCALE),
        ("policy", "poddisruptionbudgets") => Some(DISRUPTION_BUDGET),
        _ => None,
    }
}

static AUTOSCALER: &[Column] = &[
    NAME,
    Column::new("Reference", "What is scaled.", |scaler, _| {
        format!("{}/{}", text(scaler, "/spec/scaleTargetRef/kind"), text(scaler, "/spec/scaleTargetRef/name"))
            .into()
    }),
    Column::new("Targets", "What is measured, and what it should be.", targets),
    Column::new("MinPods", "How many pods there are at least.", |scaler, _| {
        integer_or(scaler, "/spec/minReplicas", 1).to_string().into()
    }),
    Column::new("MaxPods", "How many pods there are at most.", |scaler, _| {
        integer(scaler, "/spec/maxReplicas").into()
    }),
    Column::new("Replicas", "How many pods there are.", |scaler, _| {
        integer(scaler, "/status/currentReplicas").into()
    }),
    AGE,
];

/// What the subresource `scale` of any kind shows.
static SCALE: &[Column] = &[
    NAME,
    Column::new("Desired", "How many there should be.", |scale, _| integer(scale, "/spec/replicas").into())
        .integer(),
    Column::new("Available", "How many there are.", |scale, _| integer(scale, "/status/replicas").into())
        .integer(),
    AGE,
];

/// How many metrics are shown.
const SHOWN: usize = 2;

fn targets(scaler: &Json<'_>, _: &Row) -> Value {
    let metrics = items(scaler, "/spec/metrics");
    // Version 1 knows one metric, in two fields of its own.
    let percentage = "/spec/targetCPUUtilizationPercentage";
    if metrics.is_empty() && is_set(scaler, percentage) {
        let current = percent(scaler, "/status/currentCPUUtilizationPercentage", "<unknown>");
        return format!("cpu: {current}/{}", percent(scaler, percentage, "<auto>")).into();
    }
    if metrics.is_empty() {
        return "<none>".into();
    }
    let statuses = items(scaler, "/status/currentMetrics");
    let shown: Vec<String> =
        metrics.iter().enumerate().map(|(index, metric)| target(metric, statuses.get(index))).collect();
    shortened(&shown.iter().map(String::as_str).collect::<Vec<_>>(), SHOWN, ", ").into()
}

/// One metric: what is measured, and what it should be.
fn target(metric: &Json<'_>, status: Option<&Json<'_>>) -> String {
    let (field, by_name) = match text(metric, "/type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let spec = |place: &str| format!("/{field}/{place}");
    let status = status.and_then(|status| status.get(field)).filter(|status| status.as_object().is_some());
    let current = |value: &str| match status {
        Some(status) => amount(status, &format!("/current/{value}")),
        None => "<unknown>".to_owned(),
    };
    let average = spec("target/averageValue");
    let is_average = is_set(metric, &average);
    if by_name {
        let name = text(metric, &spec("name"));
        if is_average {
            return format!("{name}: {}/{}", current("averageValue"), amount(metric, &average));
        }
        let unknown = || "<unknown>".to_owned();
        let current =
            status.map_or_else(unknown, |status| percent(status, "/current/averageUtilization", "<unknown>"));
        let wanted = percent(metric, &spec("target/averageUtilization"), "<auto>");
        return format!("{name}: {current}/{wanted}");
    }
    match (field, is_average) {
        ("pods", _) => format!("{}/{}", current("averageValue"), amount(metric, &average)),
        (_, true) => {
            let measured = status.is_some_and(|status| is_set(status, "/current/averageValue"));
            let current = if measured { current("averageValue") } else { "<unknown>".to_owned() };
            format!("{current}/{} (avg)", amount(metric, &average))
        }
        (_, false) => format!("{}/{}", current("value"), amount(metric, &spec("target/value"))),
    }
}

/// The quantity at a place; a server has this word for one that is missing.
fn amount(object: &Json<'_>, pointer: &str) -> String {
    match object.pointer(pointer) {
        Some(value) if !value.is_null() => quantity(value),
        _ => "<nil>".to_owned(),
    }
}

fn percent(object: &Json<'_>, pointer: &str, missing: &str) -> String {
    match is_set(object, pointer) {
        true => format!("{}%", integer(object, pointer)),
        false => missing.to_owned(),
    }
}

static DISRUPTION_BUDGET: &[Column] = &[
    NAME,
    Column::new("Min Available", "How many pods must stay.", |budget, _| {
        number_or_percent(budget, "/spec/minAvailable")
    }),
    Column::new("Max Unavailable", "How many pods may be gone.", |budget, _| {
        number_or_percent(budget, "/spec/maxUnavailable")
    }),
    Column::new("Allowed Disruptions", "How many pods may be disrupted now.", |budget, _| {
        integer(budget, "/status/disruptionsAllowed").into()
    })
    .integer(),
    AGE,
];

/// A field that is an integer or a text such as `50%`.
fn number_or_percent(budget: &Json<'_>, pointer: &str) -> Value {
    match budget.pointer(pointer).map(Json::value) {
        Some(Value::String(text)) => text.into(),
        Some(Value::Number(number)) => number.to_string().into(),
        _ => "N/A".into(),
    }
}
