//! Whether JSON is what the schema says: the same table that reads protobuf knows every field's name and type.

use serde_json::Value;

use super::{
    schema::{Count, Field, Form, Message, MessageId, SCHEMA, Type},
    text::{base64_bytes, rfc3339_time},
};

/// The fields that an object of a built-in kind has and should not have, by their paths as Kubernetes spells
/// them (`spec.containers[0].foo`), in order. None if the kind is not built in.
///
/// The error says which value is of the wrong type, and where. Null is the empty value of every type.
///
/// ```
/// use informer_model::check_fields;
///
/// let object = serde_json::json!({ "spec": { "replicas": 2, "replica": 3 } });
/// assert_eq!(check_fields("apps/v1", "Deployment", &object), Some(Ok(vec!["spec.replica".to_owned()])));
/// assert_eq!(check_fields("example.com/v1", "Website", &object), None);
/// ```
pub fn check_fields(api_version: &str, kind: &str, object: &Value) -> Option<Result<Vec<String>, String>> {
    let message = SCHEMA.kind(api_version, kind)?;
    let mut check = Check { path: Vec::new(), unknown: Vec::new() };
    let Value::Object(fields) = object else {
        return Some(Err(format!("json: cannot unmarshal {} into {kind}", name_of(object))));
    };
    let message = SCHEMA.message(message);
    let mut fields = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind"));
    let result = fields.try_for_each(|(name, value)| check.member(message, name, value));
    Some(result.map(|()| check.unknown))
}

/// Where the check is, and what it has found.
struct Check<'v> {
    path: Vec<Step<'v>>,
    unknown: Vec<String>,
}

/// One step into a value.
#[derive(Clone, Copy)]
enum Step<'v> {
    Name(&'v str),
    Item(usize),
}

impl<'v> Check<'v> {
    /// Goes one step down and comes back.
    fn below<R>(&mut self, step: Step<'v>, check: impl FnOnce(&mut Self) -> R) -> R {
        self.path.push(step);
        let result = check(self);
        self.path.pop();
        result
    }

    /// The path as Kubernetes spells it. It is written only when there is something to say.
    fn spelled(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Name(name) if path.is_empty() => path.push_str(name),
                Step::Name(name) => path.extend([".", name]),
                Step::Item(item) => path.push_str(&format!("[{item}]")),
            }
        }
        path
    }

    fn member(&mut self, message: &Message, name: &'v str, value: &'v Value) -> Result<(), String> {
        self.below(Step::Name(name), |check| match SCHEMA.field(message, name) {
            Some(field) => check.field(field, value),
            None => {
                check.unknown.push(check.spelled());
                Ok(())
            }
        })
    }

    fn field(&mut self, field: &Field, value: &'v Value) -> Result<(), String> {
        match (field.count, value) {
            (_, Value::Null) => Ok(()),
            (Count::One | Count::Embedded, value) => self.value(field.r#type, value),
            (Count::List, Value::Array(items)) => self.items(field.r#type, items),
            (Count::List, other) => Err(self.mismatch(other, "list")),
            (Count::Map, Value::Object(entries)) => {
                for (key, value) in entries {
                    self.below(Step::Name(key), |check| check.value(field.r#type, value))?;
                }
                Ok(())
            }
            (Count::Map, other) => Err(self.mismatch(other, "map")),
        }
    }

    fn items(&mut self, r#type: Type, items: &'v [Value]) -> Result<(), String> {
        for (i, item) in items.iter().enumerate() {
            self.below(Step::Item(i), |check| check.value(r#type, item))?;
        }
        Ok(())
    }

    fn value(&mut self, r#type: Type, value: &'v Value) -> Result<(), String> {
        let expected = match (r#type, value) {
            (_, Value::Null) | (Type::Bool, Value::Bool(_)) | (Type::Text, Value::String(_)) => return Ok(()),
            (Type::Double, Value::Number(_)) => return Ok(()),
            (Type::Int32, value) if value.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => return Ok(()),
            (Type::Int64, value) if value.as_i64().is_some() => return Ok(()),
            (Type::Bytes, Value::String(text)) => {
                return if base64_bytes(text).is_some() {
                    Ok(())
                } else {
                    Err(format!("{}: not valid base64", self.spelled()))
                };
            }
            (Type::Texts, Value::Array(items)) => return self.items(Type::Text, items),
            (Type::Message(id), value) => return self.message(id, value),
            (Type::Bool, _) => "bool",
            (Type::Text | Type::Bytes, _) => "string",
            (Type::Double, _) => "double",
            (Type::Int32, _) => "int32",
            (Type::Int64, _) => "int64",
            (Type::Texts, _) => "list",
        };
        Err(self.mismatch(value, expected))
    }

    fn message(&mut self, id: MessageId, value: &'v Value) -> Result<(), String> {
        let message = SCHEMA.message(id);
        let part = |number| SCHEMA.fields(message).iter().find(|field| field.number == number);
        match (message.form, value) {
            (Form::RawJson | Form::RawExtension, _)
            | (Form::FieldOrBool, Value::Bool(_))
            | (Form::Quantity, Value::String(_) | Value::Number(_))
            | (Form::IntOrString, Value::String(_)) => Ok(()),
            (Form::IntOrString, Value::Number(_)) => self.value(Type::Int32, value),
            (Form::Time | Form::MicroTime, Value::String(text)) => {
                if rfc3339_time(text).is_some() {
                    Ok(())
                } else {
                    Err(format!("{}: {text:?} is not a time like 2026-01-31T12:00:00Z", self.spelled()))
                }
            }
            (Form::Object, Value::Object(fields)) => {
                fields.iter().try_for_each(|(name, value)| self.member(message, name, value))
            }
            (Form::ListOrField, Value::Array(_)) => part(2).map_or(Ok(()), |field| self.field(field, value)),
            (Form::ListOrField, _) => part(1).map_or(Ok(()), |field| self.field(field, value)),
            (Form::FieldOrBool, _) => part(2).map_or(Ok(()), |field| self.field(field, value)),
            _ => Err(self.mismatch(value, message.name)),
        }
    }

    fn mismatch(&self, value: &Value, expected: &str) -> String {
        format!("json: cannot unmarshal {} into field {} of type {expected}", name_of(value), self.spelled())
    }
}

/// What a JSON value is called.
fn name_of(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "bool".into(),
        Value::Number(number) => format!("number {number}"),
        Value::String(_) => "string".into(),
        Value::Array(_) => "array".into(),
        Value::Object(_) => "object".into(),
    }
}
