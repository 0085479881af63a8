//! `managedFields`: who wrote which fields of an object, read off the object itself.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::field;

/// Which half of an object a manager writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    /// Everything but the status.
    Main,
    /// The status, by the subresource.
    Status,
}

/// The object with two managers: one that made it and, if it has a status, one that reports it.
pub(super) fn signed(
    mut object: Value,
    (maker, made): (&str, Timestamp),
    (reporter, reported): (&str, Timestamp),
) -> Value {
    sign(&mut object, maker, Half::Main, made);
    if object.get("status").is_some() {
        sign(&mut object, reporter, Half::Status, reported);
    }
    object
}

/// Notes that a manager has just written its half: its entry is replaced or added.
pub(super) fn sign(object: &mut Value, manager: &str, half: Half, at: Timestamp) {
    let fields = match half {
        Half::Main => main_fields(object),
        Half::Status => {
            let mut fields = Map::new();
            if let Some(status) = object.get("status") {
                fields.insert("f:status".into(), inner(status));
            }
            fields
        }
    };
    let mut entry = json!({
        "apiVersion": field::text(object, "/apiVersion"),
        "fieldsType": "FieldsV1",
        "manager": manager,
        "operation": "Update",
        "time": field::time(at),
    });
    entry["fieldsV1"] = Value::Object(fields);
    if half == Half::Status {
        entry["subresource"] = "status".into();
    }
    let same = |other: &Value| {
        ["manager", "operation", "subresource"].iter().all(|name| other.get(name) == entry.get(name))
    };
    match object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) {
        Some(entries) => match entries.iter().position(same) {
            Some(index) => entries[index] = entry,
            None => entries.push(entry),
        },
        None => field::put(object, &["metadata", "managedFields"], vec![entry]),
    }
}

fn main_fields(object: &Value) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        let tree = match name.as_str() {
            "apiVersion" | "kind" | "status" => continue,
            "metadata" => {
                let mut metadata = Map::new();
                for name in ["annotations", "finalizers", "generateName", "labels", "ownerReferences"] {
                    if let Some(value) = value.get(name) {
                        metadata.insert(format!("f:{name}"), tree(name, value));
                    }
                }
                Value::Object(metadata)
            }
            // The fields of a spec have no entry for the spec itself; those of plain maps do.
            "spec" => inner(value),
            _ => tree(name, value),
        };
        fields.insert(format!("f:{name}"), tree);
    }
    fields
}

/// The members of an object, without the object itself.
fn inner(object: &Value) -> Value {
    let members = object.as_object().into_iter().flatten();
    Value::Object(members.map(|(name, value)| (format!("f:{name}"), tree(name, value))).collect())
}

/// The fields below a field.
fn tree(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(_) if is_atomic(name) => json!({}),
        Value::Object(_) => with_itself(inner(value)),
        Value::Array(items) => match list_keys(name) {
            [] => json!({}),
            keys => {
                let items = items.iter().map(|item| {
                    let key: Map<String, Value> = keys
                        .iter()
                        .filter_map(|&key| item.get(key).map(|value| (key.to_owned(), value.clone())))
                        .collect();
                    (format!("k:{}", Value::Object(key)), with_itself(inner(item)))
                });
                let items = Value::Object(items.collect());
                if name == "containers" { items } else { with_itself(items) }
            }
        },
        _ => json!({}),
    }
}

fn with_itself(mut tree: Value) -> Value {
    if let Some(members) = tree.as_object_mut()
        && !members.is_empty()
    {
        members.insert(".".into(), json!({}));
    }
    tree
}

/// Objects that have one manager as a whole.
fn is_atomic(name: &str) -> bool {
    matches!(
        name,
        "selector"
            | "labelSelector"
            | "nodeSelector"
            | "fieldRef"
            | "secretKeyRef"
            | "configMapKeyRef"
            | "resourceFieldRef"
            | "involvedObject"
            | "targetRef"
    )
}

/// By which fields the elements of a list are told apart; none if the list has one manager as a whole.
fn list_keys(name: &str) -> &'static [&'static str] {
    match name {
        "containers" | "initContainers" | "env" | "volumes" | "imagePullSecrets" => &["name"],
        "ports" => &["containerPort", "port", "protocol"],
        "volumeMounts" => &["mountPath"],
        "conditions" | "addresses" => &["type"],
        "ownerReferences" => &["uid"],
        "podIPs" => &["ip"],
        "topologySpreadConstraints" => &["topologyKey", "whenUnsatisfiable"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_object() {
        let at = Timestamp::UNIX_EPOCH;
        let object = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"key": "k"}]},
            "status": {"phase": "Running"},
        });
        let object = signed(object, ("kube-controller-manager", at), ("kubelet", at));
        let [main, status] = field::list(&object, "/metadata/managedFields") else { panic!("{object}") };
        assert_eq!(
            main["fieldsV1"],
            json!({
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {
                    "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}, "f:name": {}}},
                    "f:tolerations": {},
                },
            })
        );
        assert_eq!(status["fieldsV1"], json!({"f:status": {"f:phase": {}}}));
        assert_eq!((&main["subresource"], &status["subresource"]), (&Value::Null, &json!("status")));
    }

    #[test]
    fn a_manager_that_writes_again_replaces_its_entry() {
        let mut object = json!({"apiVersion": "v1", "metadata": {}, "status": {"a": 1}});
        sign(&mut object, "kubelet", Half::Status, Timestamp::UNIX_EPOCH);
        object["status"] = json!({"b": 1});
        sign(&mut object, "kubelet", Half::Status, Timestamp::from_second(60).unwrap());
        let [entry] = field::list(&object, "/metadata/managedFields") else { panic!("{object}") };
        assert_eq!(entry["fieldsV1"], json!({"f:status": {"f:b": {}}}));
        assert_eq!(entry["time"], "1970-01-01T00:01:00Z");
    }
}
