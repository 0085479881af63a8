//! JSON as a server writes it: what Go leaves out when it is empty is left out, what it always writes is there.

use serde_json::{Map, Value};

use super::schema::{Absent, Count, Field, Form, Message, MessageId, SCHEMA, Type};

/// Writes an object of a built-in kind the way a server does: fields that are always shown are put in, those that
/// are left out when empty are taken out. Fields and values that the kind does not have are left alone, and so is an
/// object of another kind.
///
/// ```
/// use informer_model::complete_fields;
///
/// let mut object = serde_json::json!({ "metadata": { "name": "a", "labels": {} }, "spec": { "paused": false } });
/// complete_fields("apps/v1", "Deployment", &mut object);
/// assert_eq!(object["metadata"], serde_json::json!({ "name": "a" }));
/// assert_eq!(object["spec"]["strategy"], serde_json::json!({}));
/// assert_eq!(object["spec"].get("paused"), None);
/// assert_eq!(object["status"], serde_json::json!({}));
/// ```
pub fn complete_fields(api_version: &str, kind: &str, object: &mut Value) {
    if let (Some(id), Value::Object(fields)) = (SCHEMA.kind(api_version, kind), object) {
        complete(SCHEMA.message(id), fields);
    }
}

fn complete(message: &Message, object: &mut Map<String, Value>) {
    for field in SCHEMA.fields(message) {
        match (field.count, field.r#type) {
            (Count::Embedded, Type::Message(id)) => complete(SCHEMA.message(id), object),
            _ => complete_field(field, object),
        }
    }
}

fn complete_field(field: &Field, object: &mut Map<String, Value>) {
    if let Some(value) = object.get_mut(field.name) {
        complete_value(field, value);
        if !is_left_out(field, value) {
            return;
        }
    }
    let absent = match field.absent {
        Absent::Nothing => {
            object.remove(field.name);
            return;
        }
        // Go tells a list that is empty from none.
        Absent::Null if object.get(field.name).is_some_and(|value| !value.is_null()) => return,
        Absent::Null => Value::Null,
        Absent::EmptyList => Value::Array(Vec::new()),
        Absent::Zero => zero(field.r#type),
    };
    object.insert(field.name.to_owned(), absent);
}

/// Whether a value stands for none.
fn is_left_out(field: &Field, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => field.count == Count::List && items.is_empty(),
        Value::Object(entries) => field.count == Count::Map && entries.is_empty(),
        Value::Bool(value) => field.omits_zero && !value,
        Value::Number(value) => field.omits_zero && value.as_f64() == Some(0.0),
        Value::String(value) => field.omits_zero && value.is_empty(),
    }
}

fn complete_value(field: &Field, value: &mut Value) {
    let Type::Message(id) = field.r#type else { return };
    match (field.count, value) {
        (Count::One | Count::Embedded, value) => complete_message(id, value),
        (Count::List, Value::Array(items)) => items.iter_mut().for_each(|item| complete_message(id, item)),
        (Count::Map, Value::Object(entries)) => {
            entries.values_mut().for_each(|entry| complete_message(id, entry));
        }
        _ => {}
    }
}

fn complete_message(id: MessageId, value: &mut Value) {
    let message = SCHEMA.message(id);
    if let (Form::Object, Value::Object(fields)) = (message.form, value) {
        complete(message, fields);
    }
}

fn zero(r#type: Type) -> Value {
    match r#type {
        Type::Bool => Value::Bool(false),
        Type::Int32 | Type::Int64 | Type::Double => Value::from(0),
        Type::Text | Type::Bytes => Value::String(String::new()),
        Type::Texts => Value::Array(Vec::new()),
        Type::Message(id) => {
            let mut value = SCHEMA.message(id).form.zero();
            complete_message(id, &mut value);
            value
        }
    }
}

impl Form {
    /// What JSON shows for an empty message.
    fn zero(self) -> Value {
        match self {
            Self::Object => Value::Object(Map::new()),
            Self::Quantity => Value::from("0"),
            Self::IntOrString => Value::from(0),
            Self::FieldOrBool => Value::Bool(false),
            Self::Time | Self::MicroTime | Self::RawJson | Self::RawExtension | Self::ListOrField => {
                Value::Null
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn completed(api_version: &str, kind: &str, mut object: Value) -> Value {
        complete_fields(api_version, kind, &mut object);
        object
    }

    #[test]
    fn what_is_always_shown_is_put_in_at_any_depth() {
        let job = json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}}});
        let job = completed("batch/v1", "CronJob", job);
        assert_eq!(job["spec"]["jobTemplate"]["metadata"], json!({}));
        let template = &job["spec"]["jobTemplate"]["spec"]["template"];
        assert_eq!(template["spec"]["containers"][0]["resources"], json!({}));
        let node = completed("v1", "Node", json!({"metadata": {"name": "n"}}));
        assert_eq!(node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"], 0);
        assert_eq!(node["status"]["nodeInfo"]["osImage"], "");
    }

    #[test]
    fn what_is_left_out_when_empty_is_taken_out() {
        let pod = json!({"metadata": {"labels": {}, "finalizers": [], "creationTimestamp": null},
            "spec": {"hostNetwork": false, "volumes": null, "priority": 0, "containers": [], "securityContext": {}}});
        let pod = completed("v1", "Pod", pod);
        assert_eq!(pod["metadata"], json!({}));
        // What may be unset is set when it is empty; a list that is always there may be empty.
        assert_eq!(pod["spec"], json!({"priority": 0, "containers": [], "securityContext": {}}));
    }

    #[test]
    fn what_the_kind_does_not_have_is_left_alone() {
        let odd = json!({"spec": {"unknown": null, "containers": 7}, "status": "none"});
        let pod = completed("v1", "Pod", odd.clone());
        assert_eq!((&pod["spec"], &pod["status"]), (&odd["spec"], &odd["status"]));
        assert_eq!(completed("example.com/v1", "Website", odd.clone()), odd);
        assert_eq!(completed("v1", "Pod", json!([])), json!([]));
    }
}
