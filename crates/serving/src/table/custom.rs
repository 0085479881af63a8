//! The columns that a CustomResourceDefinition gives to its objects.

use jiff::Timestamp;
use serde_json::{Number, Value};

use crate::json::Json;

use super::{definition, duration, json_path::JsonPath};

/// One column that a CustomResourceDefinition adds to the table of its objects.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PrinterColumn {
    /// What stands above the column.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub r#type: String,
    /// Like `int64`, or empty.
    pub format: String,
    /// What the column shows, in words; or empty.
    pub description: String,
    /// Above zero for a column of wide output only.
    pub priority: i32,
    /// Like `.spec.replicas` or `.status.conditions[?(@.type=="Ready")].status`.
    pub json_path: String,
}

impl PrinterColumn {
    /// The columns that a CustomResourceDefinition (`apiextensions.k8s.io/v1`) gives to a version.
    pub fn of_crd(definition: &Value, version: &str) -> Vec<Self> {
        let own = |column: &Value, field: &str| column[field].as_str().unwrap_or_default().to_owned();
        let column = |column: &Value| Self {
            name: own(column, "name"),
            r#type: own(column, "type"),
            format: own(column, "format"),
            description: own(column, "description"),
            priority: column["priority"].as_i64().and_then(|it| it.try_into().ok()).unwrap_or_default(),
            json_path: own(column, "jsonPath"),
        };
        let mut versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        let served = versions.find(|served| served["name"] == version);
        let columns = served.and_then(|served| served["additionalPrinterColumns"].as_array());
        columns.into_iter().flatten().map(column).collect()
    }
}

/// A column of a custom resource, with its path read.
#[derive(Debug, Clone)]
pub(super) struct CustomColumn {
    column: PrinterColumn,
    path: JsonPath,
}

/// The columns behind the name: those that are defined, or the age. As on a server, a path that cannot be
/// read ends the columns.
pub(super) fn columns(defined: &[PrinterColumn]) -> Vec<CustomColumn> {
    let age = PrinterColumn {
        name: "Age".to_owned(),
        r#type: "date".to_owned(),
        description: "How long ago the object was created.".to_owned(),
        json_path: ".metadata.creationTimestamp".to_owned(),
        ..PrinterColumn::default()
    };
    let defined = if defined.is_empty() { &[age] } else { defined };
    let read = |column: &PrinterColumn| {
        Some(CustomColumn { column: column.clone(), path: JsonPath::parse(&column.json_path).ok()? })
    };
    defined.iter().map_while(read).collect()
}

impl CustomColumn {
    /// Whether its cells change with the time.
    pub(super) fn is_aging(&self) -> bool {
        self.column.r#type == "date"
    }

    pub(super) fn definition(&self) -> Value {
        let PrinterColumn { name, r#type, format, description, priority, json_path } = &self.column;
        let description = match description.as_str() {
            "" => &format!("Custom resource definition column (in JSONPath format): {json_path}"),
            description => description,
        };
        definition(name, r#type, format, description, *priority)
    }

    /// The first value that the path finds, if it is of the column's type. Other values are not shown.
    pub(super) fn cell(&self, object: &Json<'_>, now: Timestamp) -> Value {
        let Some(value) = self.path.find(object).first().map(|found| found.value()) else {
            return Value::Null;
        };
        let cell = match (self.column.r#type.as_str(), value) {
            ("string", value) => Some(printed(value).into()),
            ("integer", Value::Number(number)) => truncated(&number).map(Value::from),
            ("number", Value::Number(number)) => Some(as_integer_if_even(&number)),
            ("boolean", Value::Bool(truth)) => Some(truth.into()),
            ("date", Value::String(time)) => Some(age(&time, now).into()),
            _ => None,
        };
        cell.unwrap_or(Value::Null)
    }
}

/// A value in a column of text: maps and lists as JSON, everything else as it reads.
fn printed(value: Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => printed_float(float),
            None => number.to_string(),
        },
        Value::String(text) => text,
        // A server makes its JSON safe to stand in HTML.
        Value::Array(_) | Value::Object(_) => value
            .to_string()
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026")
            .replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029"),
    }
}

/// Few digits as they are, very large and small numbers with an exponent of two digits or more.
fn printed_float(float: f64) -> String {
    if float == 0.0 || (1e-4..1e21).contains(&float.abs()) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

/// The integer, or what is before the point of a fraction.
fn truncated(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| number.as_f64().map(|float| float as i64))
}

/// The number, without a point where there is nothing behind it.
fn as_integer_if_even(number: &Number) -> Value {
    match (number.as_f64(), truncated(number)) {
        (Some(float), Some(integer)) if integer as f64 == float => integer.into(),
        _ => number.clone().into(),
    }
}

fn age(time: &str, now: Timestamp) -> String {
    let is_missing = matches!(time, "" | "null");
    match is_missing || time.parse::<Timestamp>().is_ok() {
        true => duration::ago(time, now),
        false => "<invalid>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use crate::json::Outline;

    fn column(r#type: &str, json_path: &str) -> PrinterColumn {
        PrinterColumn {
            name: "X".to_owned(),
            r#type: r#type.to_owned(),
            json_path: json_path.to_owned(),
            ..PrinterColumn::default()
        }
    }

    fn cell(r#type: &str, value: Value) -> Value {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        shown(&columns(&[column(r#type, ".spec.x")])[0], &json!({ "spec": { "x": value } }), now)
    }

    fn shown(column: &CustomColumn, object: &Value, now: Timestamp) -> Value {
        column.cell(&Outline::of(&object.to_string()).root(), now)
    }

    #[test]
    fn a_column_of_text_prints_any_value() {
        let expected = [
            (json!("text"), "text"),
            (json!(5), "5"),
            (json!(-0.5), "-0.5"),
            (json!(2.0), "2"),
            (json!(1e21), "1e+21"),
            (json!(1.5e-5), "1.5e-05"),
            (json!(true), "true"),
            (json!(null), "<no value>"),
            (json!({ "b": ["<&>"], "a": 1 }), r#"{"a":1,"b":["\u003c\u0026\u003e"]}"#),
        ];
        for (value, shown) in expected {
            assert_eq!(cell("string", value), json!(shown));
        }
    }

    #[test]
    fn other_columns_show_values_of_their_type_alone() {
        assert_eq!(cell("integer", json!(5)), json!(5));
        assert_eq!(cell("integer", json!(5.9)), json!(5));
        assert_eq!(cell("integer", json!("5")), Value::Null);
        assert_eq!(cell("number", json!(5.5)), json!(5.5));
        assert_eq!(cell("number", json!(5.0)), json!(5));
        assert_eq!(cell("number", json!(1e300)), json!(1e300));
        assert_eq!(cell("number", json!(true)), Value::Null);
        assert_eq!(cell("boolean", json!(false)), json!(false));
        assert_eq!(cell("boolean", json!("false")), Value::Null);
        assert_eq!(cell("date", json!("2025-12-31T23:59:00Z")), json!("60s"));
        assert_eq!(cell("date", json!("2027-01-01T00:00:00Z")), json!("<invalid>"));
        assert_eq!(cell("date", json!("soon")), json!("<invalid>"));
        assert_eq!(cell("date", json!("")), json!("<unknown>"));
        assert_eq!(cell("date", json!(5)), Value::Null);
        assert_eq!(cell("other", json!(5)), Value::Null);
    }

    #[test]
    fn of_several_values_the_first_is_shown_and_of_none_nothing() {
        let columns = columns(&[column("string", ".spec.hosts[*]"), column("string", ".spec.hosts[7]")]);
        let object = json!({ "spec": { "hosts": ["a", "b"] } });
        assert_eq!(shown(&columns[0], &object, Timestamp::UNIX_EPOCH), json!("a"));
        assert_eq!(shown(&columns[1], &object, Timestamp::UNIX_EPOCH), Value::Null);
        assert_eq!(shown(&columns[0], &json!("no object"), Timestamp::UNIX_EPOCH), Value::Null);
    }

    #[test]
    fn a_path_that_cannot_be_read_ends_the_columns() {
        assert_eq!(
            columns(&[column("string", ".a"), column("string", "b["), column("string", ".c")]).len(),
            1
        );
    }

    #[test]
    fn a_definition_has_the_columns_of_each_of_its_versions() {
        let definition = json!({ "spec": { "versions": [
            { "name": "v1", "additionalPrinterColumns": [
                { "name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec", "priority": 1 },
                { "name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas",
                  "format": "int32", "description": "How many there are." },
            ] },
            { "name": "v2" },
        ] } });
        let spec =
            PrinterColumn { name: "Spec".to_owned(), priority: 1, ..column("string", ".spec.cronSpec") };
        let replicas = PrinterColumn {
            name: "Replicas".to_owned(),
            format: "int32".to_owned(),
            description: "How many there are.".to_owned(),
            ..column("integer", ".spec.replicas")
        };
        assert_eq!(PrinterColumn::of_crd(&definition, "v1"), [spec, replicas]);
        assert_eq!(PrinterColumn::of_crd(&definition, "v2"), []);
        assert_eq!(PrinterColumn::of_crd(&definition, "v3"), []);
        assert_eq!(PrinterColumn::of_crd(&json!({ "spec": { "versions": 5 } }), "v1"), []);
    }
}
