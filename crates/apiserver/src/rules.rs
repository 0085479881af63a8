//! What a server does to the metadata of an object that somebody writes, whatever its kind.

use informer_model::{StatusCause, is_dns_label, is_dns_subdomain, validate_label_key, validate_label_value};
use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use serde_json::{Map, Value, json};

use crate::catalog::{Resource, Version};

/// What is the server's own to say about an object.
const SERVER_OWNED: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

/// Kinds without a status of their own whose `spec` changes are counted all the same.
const COUNTED: [&str; 9] = [
    "Ingress",
    "IngressClass",
    "NetworkPolicy",
    "EndpointSlice",
    "PriorityClass",
    "RuntimeClass",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "CSIDriver",
];
/// Kinds with a status whose `spec` changes are not counted.
const UNCOUNTED: [&str; 6] =
    ["Namespace", "Node", "Service", "PersistentVolume", "PersistentVolumeClaim", "ResourceQuota"];

/// A point in time as objects have it, in whole seconds.
pub(crate) fn time(now: Timestamp) -> Value {
    let seconds = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Trunc);
    now.round(seconds).unwrap_or(now).to_string().into()
}

/// Whether the server counts the changes of this resource in `metadata.generation`.
fn counts(resource: &Resource, version: &Version) -> bool {
    let kind = resource.kind.as_str();
    resource.custom || COUNTED.contains(&kind) || (version.status && !UNCOUNTED.contains(&kind))
}

/// The metadata of an object, made if it has none.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    // It was just made one.
    metadata.as_object_mut().expect("metadata is an object")
}

/// Makes the metadata of a new object the server's: what it alone says, and nothing that a client made up.
pub(crate) fn prepare_create(
    object: &mut Value,
    resource: &Resource,
    version: &Version,
    uid: &str,
    now: Timestamp,
) {
    if version.status {
        remove(object, "status");
    }
    let counted = counts(resource, version);
    let metadata = metadata(object);
    for name in SERVER_OWNED.into_iter().chain(["resourceVersion", "selfLink"]) {
        metadata.remove(name);
    }
    metadata.insert("uid".into(), uid.into());
    metadata.insert("creationTimestamp".into(), time(now));
    if counted {
        metadata.insert("generation".into(), 1.into());
    }
}

/// Makes an updated object what it may be, given what it was: the server's own metadata stays, and a change of
/// the whole leaves the status alone.
pub(crate) fn prepare_update(object: &mut Value, current: &Value, resource: &Resource, version: &Version) {
    keep_metadata(object, current);
    if version.status {
        copy(object, current, "status");
    }
    if counts(resource, version) && differs_in_substance(object, current) {
        let generation = current["metadata"]["generation"].as_i64().unwrap_or(0);
        metadata(object).insert("generation".into(), (generation + 1).into());
    }
}

/// Makes an object that was sent to `status` one that differs from what it was in the status alone.
pub(crate) fn prepare_status_update(object: &mut Value, current: &Value) {
    let status = object.get("status").cloned();
    *object = current.clone();
    match status {
        Some(status) => object["status"] = status,
        None => remove(object, "status"),
    }
}

fn keep_metadata(object: &mut Value, current: &Value) {
    let current = &current["metadata"];
    let metadata = metadata(object);
    metadata.remove("selfLink");
    for name in SERVER_OWNED.into_iter().chain(["name", "namespace", "generateName", "resourceVersion"]) {
        match current.get(name) {
            Some(value) => metadata.insert(name.into(), value.clone()),
            None => metadata.remove(name),
        };
    }
}

/// Whether anything but metadata and status changed.
fn differs_in_substance(a: &Value, b: &Value) -> bool {
    let substance = |value: &Value| -> Map<String, Value> {
        let fields = value.as_object().into_iter().flatten();
        let fields =
            fields.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status" | "apiVersion"));
        fields.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    substance(a) != substance(b)
}

fn copy(object: &mut Value, from: &Value, name: &str) {
    match from.get(name) {
        Some(value) => object[name] = value.clone(),
        None => remove(object, name),
    }
}

fn remove(object: &mut Value, name: &str) {
    if let Some(object) = object.as_object_mut() {
        object.remove(name);
    }
}

/// The finalizers that still hold an object.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Drops what is empty or null in metadata, as a server does, and says what else is wrong with it.
pub(crate) fn check_metadata(object: &mut Value, resource: &Resource) -> Vec<StatusCause> {
    let mut broken = Vec::new();
    let metadata = metadata(object);
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
    let mut invalid = |field: &str, value: &dyn std::fmt::Display, why: &str| {
        let message = format!("Invalid value: {value}: {why}");
        broken.push(StatusCause::new(StatusCause::FIELD_VALUE_INVALID, field, message));
    };
    match metadata.get("name") {
        Some(Value::String(name)) => {
            if let Err(why) = check_name(name, resource) {
                invalid("metadata.name", &format!("{name:?}"), &why);
            }
        }
        Some(other) => invalid("metadata.name", other, "must be a string"),
        None => {}
    }
    if let Some(namespace) = metadata.get("namespace") {
        let namespace = namespace.as_str().unwrap_or_default();
        if !is_dns_label(namespace) {
            invalid("metadata.namespace", &format!("{namespace:?}"), DNS_LABEL);
        }
    }
    for map in ["labels", "annotations"] {
        let Some(value) = metadata.get(map) else { continue };
        let field = format!("metadata.{map}");
        let Some(entries) = value.as_object() else {
            invalid(&field, value, "must be a map of strings");
            continue;
        };
        for (key, value) in entries {
            let Some(text) = value.as_str() else {
                invalid(&field, value, "must be a string");
                continue;
            };
            // Only an annotation may write its prefix in capital letters.
            let rule = if map == "labels" { key.clone() } else { key.to_lowercase() };
            if let Err((_, why)) = validate_label_key(&rule) {
                invalid(&field, &format!("{key:?}"), &why.to_string());
            }
            if let (true, Err((_, why))) = (map == "labels", validate_label_value(text)) {
                invalid(&field, &format!("{text:?}"), &why.to_string());
            }
        }
    }
    let finalizers = metadata.get("finalizers").and_then(Value::as_array).into_iter().flatten();
    for (at, name) in finalizers.enumerate().filter_map(|(at, name)| Some((at, name.as_str()?))) {
        if let Err((_, why)) = validate_label_key(name) {
            invalid("metadata.finalizers", &format!("{name:?}"), &why.to_string());
        }
        if !name.contains('/') && !["foregroundDeletion", "orphan", "kubernetes"].contains(&name) {
            let why = "a finalizer that is not one of the server's has a prefix with a slash";
            invalid(&format!("metadata.finalizers[{at}]"), &format!("{name:?}"), why);
        }
    }
    for list in ["finalizers", "ownerReferences"] {
        if let Some(value) = metadata.get(list) {
            let right = |item: &Value| if list == "finalizers" { item.is_string() } else { item.is_object() };
            if !value.as_array().is_some_and(|items| items.iter().all(right)) {
                invalid(&format!("metadata.{list}"), value, "must be a list, each item of the right type");
            }
        }
    }
    broken
}

const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
                         must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used \
                         for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                             '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex \
                             used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Most names are DNS subdomains, some are labels, and those of permissions only have to fit into a path.
fn check_name(name: &str, resource: &Resource) -> Result<(), String> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("rbac.authorization.k8s.io", _) => {
            if name == "." || name == ".." || name.contains(['/', '%']) {
                return Err("must not be '.' or '..' and must not contain '/' or '%'".into());
            }
            Ok(())
        }
        ("", "namespaces" | "services") if name.len() > 63 => Err("must be no more than 63 bytes".into()),
        ("", "namespaces" | "services") => is_dns_label(name).then_some(()).ok_or_else(|| DNS_LABEL.into()),
        _ if name.len() > 253 => Err("must be no more than 253 bytes".into()),
        _ => is_dns_subdomain(name).then_some(()).ok_or_else(|| DNS_SUBDOMAIN.into()),
    }
}
