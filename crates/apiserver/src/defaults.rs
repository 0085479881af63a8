//! The values that a server fills in and that a reader of its objects cannot do without.
//!
//! A real server fills in several hundred. These are the ones that selectors, tables and `scale` look at.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{builtin, catalog::Resource};

/// Fills in what a built-in object was left without.
pub(crate) fn fill(object: &mut Value, resource: &Resource) {
    if resource.custom {
        return;
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => {
            let spec = &mut object["spec"];
            set(spec, "restartPolicy", "Always");
            set(spec, "dnsPolicy", "ClusterFirst");
            set(spec, "schedulerName", "default-scheduler");
            set(spec, "terminationGracePeriodSeconds", 30);
            set(spec, "enableServiceLinks", true);
            set(spec, "serviceAccountName", "default");
        }
        ("", "Namespace") => {
            let name = object["metadata"]["name"].clone();
            set(&mut object["metadata"]["labels"], "kubernetes.io/metadata.name", name);
        }
        ("", "Service") => {
            set(&mut object["spec"], "type", "ClusterIP");
            set(&mut object["spec"], "sessionAffinity", "None");
            let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten() {
                let number = port.get("port").cloned().unwrap_or_default();
                set(port, "protocol", "TCP");
                set(port, "targetPort", number);
            }
        }
        ("", "Secret") => {
            set(object, "type", "Opaque");
            encode_string_data(object);
        }
        ("", "PersistentVolumeClaim") => set(&mut object["spec"], "volumeMode", "Filesystem"),
        ("", "PersistentVolume") => {
            set(&mut object["spec"], "persistentVolumeReclaimPolicy", "Retain");
            set(&mut object["spec"], "volumeMode", "Filesystem");
        }
        ("", "ReplicationController") | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") => {
            set(&mut object["spec"], "replicas", 1);
        }
        ("batch", "Job") => {
            let spec = &mut object["spec"];
            set(spec, "parallelism", 1);
            if spec.get("parallelism") == Some(&json!(1)) {
                set(spec, "completions", 1);
            }
            set(spec, "backoffLimit", 6);
            set(spec, "completionMode", "NonIndexed");
            set(spec, "suspend", false);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => builtin::default_crd(object),
        ("batch", "CronJob") => {
            set(&mut object["spec"], "suspend", false);
            set(&mut object["spec"], "concurrencyPolicy", "Allow");
        }
        _ => {}
    }
}

/// The status of a new object before anybody has looked after it.
pub(crate) fn fill_status(object: &mut Value, resource: &Resource) {
    let phase = match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod" | "PersistentVolumeClaim") => "Pending",
        ("", "PersistentVolume") => "Available",
        ("", "Namespace") => "Active",
        _ => return,
    };
    set(&mut object["status"], "phase", phase);
}

/// Sets a field that is not there. What is no object, and not nothing either, is left as it is.
fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    if object.is_null() {
        *object = json!({});
    }
    if let Some(fields) = object.as_object_mut() {
        let field = fields.entry(name).or_insert(Value::Null);
        if field.is_null() {
            *field = value.into();
        }
    }
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
