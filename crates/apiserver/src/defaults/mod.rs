//! The values that a server fills in.
//!
//! In: an object that somebody writes. Out: the same with what it was left without, for the kinds that people write
//! most, and with what the admission plugins do that are always on. `fill` is for every write, `fill_new` for what
//! is created.

mod network;
mod pods;
mod workloads;

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{builtin, catalog::Resource, rules};
pub(crate) use network::keep_address;

/// Fills in what a built-in object was left without, and what admission gives it.
pub(crate) fn fill(object: &mut Value, resource: &Resource) {
    fill_kind(object, resource);
    admit(object, resource);
}

/// What is not its writer's, although every object has it.
pub(crate) fn admit(object: &mut Value, resource: &Resource) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => pods::admit(&mut object["spec"]),
        ("", "Namespace") => set(&mut object["spec"], "finalizers", json!(["kubernetes"])),
        ("", "Service") => network::admit_service(&mut object["spec"]),
        _ => {}
    }
}

/// Fills in the defaults of a kind.
pub(crate) fn fill_kind(object: &mut Value, resource: &Resource) {
    if resource.custom {
        return;
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => pods::fill(&mut object["spec"]),
        ("", "PodTemplate") => pods::fill_template(&mut object["template"]),
        ("", "Namespace") => {
            let name = object["metadata"]["name"].clone();
            set(&mut object["metadata"]["labels"], "kubernetes.io/metadata.name", name);
        }
        ("", "Service") => network::fill_service(&mut object["spec"]),
        ("", "Secret") => {
            set(object, "type", "Opaque");
            encode_string_data(object);
        }
        ("", "PersistentVolumeClaim") => set(&mut object["spec"], "volumeMode", "Filesystem"),
        ("", "PersistentVolume") => {
            set(&mut object["spec"], "persistentVolumeReclaimPolicy", "Retain");
            set(&mut object["spec"], "volumeMode", "Filesystem");
            set_in(&mut object["spec"], "hostPath", "type", "");
        }
        ("", "LimitRange") => items(object, "/spec/limits").for_each(fill_limit),
        ("", "ReplicationController") | ("apps" | "batch", _) => workloads::fill(object, &resource.kind),
        ("autoscaling", "HorizontalPodAutoscaler") => workloads::fill_autoscaler(&mut object["spec"]),
        ("networking.k8s.io", "NetworkPolicy") => network::fill_policy(&mut object["spec"]),
        ("discovery.k8s.io", "EndpointSlice") => network::fill_slice(object),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => fill_binding(object),
        ("storage.k8s.io", "StorageClass") => {
            set(object, "reclaimPolicy", "Delete");
            set(object, "volumeBindingMode", "Immediate");
        }
        ("scheduling.k8s.io", "PriorityClass") => set(object, "preemptionPolicy", "PreemptLowerPriority"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => builtin::default_crd(object),
        _ => {}
    }
}

/// What a new object gets besides: it has its uid already, and nobody has looked after it yet.
pub(crate) fn fill_new(object: &mut Value, resource: &Resource) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Node") => taint_as_not_ready(&mut object["spec"]),
        ("batch", "Job") => workloads::claim_pods(object),
        _ => {}
    }
}

/// The status of a new object before anybody has looked after it.
pub(crate) fn fill_status(object: &mut Value, resource: &Resource, now: Timestamp) {
    let phase = match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => {
            let class = pods::service_class(&object["spec"]);
            set(&mut object["status"], "qosClass", class);
            "Pending"
        }
        ("", "PersistentVolume") => {
            set(&mut object["status"], "lastPhaseTransitionTime", rules::time(now));
            "Pending"
        }
        ("", "PersistentVolumeClaim") => "Pending",
        ("", "Namespace") => "Active",
        _ => return,
    };
    set(&mut object["status"], "phase", phase);
}

/// Sets a field that is not there. What is no object, and not nothing either, is left as it is.
fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(field) = part(object, name).filter(|field| field.is_null()) {
        *field = value.into();
    }
}

/// Sets a field of a part that is there.
fn set_in(object: &mut Value, part: &str, name: &str, value: impl Into<Value>) {
    if let Some(part) = object.get_mut(part).filter(|part| part.is_object()) {
        set(part, name, value);
    }
}

/// A part of an object, made if there is none. What is no object has no parts.
fn part<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    if object.is_null() {
        *object = json!({});
    }
    object.as_object_mut().map(|fields| fields.entry(name).or_insert(Value::Null))
}

/// Whether a part is there.
fn has(object: &Value, part: &str) -> bool {
    object.get(part).is_some_and(|part| !part.is_null())
}

/// The items of the list at a pointer, none if there is no list.
fn items<'a>(object: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten()
}

/// `stringData` is for writing only: it ends up in `data`.
fn encode_string_data(secret: &mut Value) {
    let Some(Value::Object(texts)) = secret.as_object_mut().and_then(|secret| secret.remove("stringData"))
    else {
        return;
    };
    if !secret["data"].is_object() {
        secret["data"] = json!({});
    }
    for (key, text) in texts {
        if let Some(text) = text.as_str() {
            secret["data"][key] = BASE64_STANDARD.encode(text).into();
        }
    }
}

/// What a container may have is what it gets, and what it gets is what it asks for.
fn fill_limit(limit: &mut Value) {
    if limit.get("type").and_then(Value::as_str) != Some("Container") {
        return;
    }
    for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let given: Map<String, Value> =
            limit.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
        let Some(filled) = part(limit, to).filter(|_| !given.is_empty()) else { continue };
        given.into_iter().for_each(|(resource, quantity)| set(filled, &resource, quantity));
    }
}

/// Who is bound is in the group that fits the kind.
fn fill_binding(binding: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    set_in(binding, "roleRef", "apiGroup", GROUP);
    for subject in items(binding, "/subjects") {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            set(subject, "apiGroup", GROUP);
        }
    }
}

/// A node that nobody has heard of yet gets no pods.
fn taint_as_not_ready(spec: &mut Value) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    set(spec, "taints", json!([]));
    if let Some(taints) = spec.get_mut("taints").and_then(Value::as_array_mut)
        && !taints.iter().any(|taint| taint["key"] == KEY)
    {
        taints.push(json!({"key": KEY, "effect": "NoSchedule"}));
    }
}

#[cfg(test)]
mod tests;
