//! What a pod is left without, as one of its own and in the template of something else.

use serde_json::{Value, json};

use super::{has, items, set, set_in};

/// The kinds of volume that show files with a mode.
const WITH_MODES: [&str; 4] = ["configMap", "secret", "downwardAPI", "projected"];

/// Fills in a pod of its own.
pub(super) fn fill(spec: &mut Value) {
    fill_spec(spec);
    set(spec, "enableServiceLinks", true);
    for list in ["/initContainers", "/containers"] {
        items(spec, list).for_each(request_what_is_limited);
    }
}

/// Fills in the pod that a template describes.
pub(super) fn fill_template(template: &mut Value) {
    if template.is_object() {
        fill_spec(&mut template["spec"]);
    }
}

fn fill_spec(spec: &mut Value) {
    set(spec, "restartPolicy", "Always");
    set(spec, "dnsPolicy", "ClusterFirst");
    set(spec, "schedulerName", "default-scheduler");
    set(spec, "securityContext", json!({}));
    set(spec, "terminationGracePeriodSeconds", 30);
    for list in ["/initContainers", "/containers", "/ephemeralContainers"] {
        items(spec, list).for_each(fill_container);
    }
    items(spec, "/volumes").for_each(fill_volume);
}

fn fill_container(container: &mut Value) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    set(container, "imagePullPolicy", policy);
    set(container, "terminationMessagePath", "/dev/termination-log");
    set(container, "terminationMessagePolicy", "File");
    items(container, "/ports").for_each(|port| set(port, "protocol", "TCP"));
    for variable in items(container, "/env") {
        if let Some(source) = variable.get_mut("valueFrom") {
            set_in(source, "fieldRef", "apiVersion", "v1");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            for (name, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                set(probe, name, value);
            }
            fill_action(probe);
        }
    }
    for moment in ["/lifecycle/postStart", "/lifecycle/preStop"] {
        if let Some(handler) = container.pointer_mut(moment) {
            fill_action(handler);
        }
    }
}

/// What a probe or a handler does.
fn fill_action(action: &mut Value) {
    set_in(action, "httpGet", "path", "/");
    set_in(action, "httpGet", "scheme", "HTTP");
    set_in(action, "grpc", "service", "");
}

/// Whether an image may be another one tomorrow: it has no tag or the tag `latest`, and no digest.
fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn fill_volume(volume: &mut Value) {
    let sources = volume.as_object().into_iter().flatten();
    if !sources.into_iter().any(|(name, source)| name != "name" && !source.is_null()) {
        set(volume, "emptyDir", json!({}));
    }
    for source in WITH_MODES {
        set_in(volume, source, "defaultMode", 0o644);
    }
    set_in(volume, "hostPath", "type", "");
    for file in items(volume, "/downwardAPI/items") {
        set_in(file, "fieldRef", "apiVersion", "v1");
    }
    for source in items(volume, "/projected/sources") {
        set_in(source, "serviceAccountToken", "expirationSeconds", 3600);
        for file in items(source, "/downwardAPI/items") {
            set_in(file, "fieldRef", "apiVersion", "v1");
        }
    }
}

/// A container that may have so much and does not say what it needs, needs that.
fn request_what_is_limited(container: &mut Value) {
    let limits = container.pointer("/resources/limits").and_then(Value::as_object).cloned();
    for (resource, quantity) in limits.into_iter().flatten() {
        set(&mut container["resources"]["requests"], &resource, quantity);
    }
}

/// What admission does to a pod: an account, a priority, and patience with nodes that are away.
pub(super) fn admit(spec: &mut Value) {
    set(spec, "serviceAccountName", "default");
    let account = spec["serviceAccountName"].clone();
    set(spec, "serviceAccount", account);
    if !has(spec, "priorityClassName") {
        set(spec, "priority", 0);
        set(spec, "preemptionPolicy", "PreemptLowerPriority");
    }
    set(spec, "tolerations", json!([]));
    let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerates = |toleration: &Value| {
            let own = toleration.get("key").and_then(Value::as_str).unwrap_or_default();
            let effect = toleration.get("effect").and_then(Value::as_str).unwrap_or_default();
            (own == key || own.is_empty()) && matches!(effect, "" | "NoExecute")
        };
        if !tolerations.iter().any(tolerates) {
            tolerations.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
}

/// Which pods are stopped first when a node is short of memory.
pub(super) fn service_class(spec: &Value) -> &'static str {
    let lists = ["initContainers", "containers"].into_iter().filter_map(|list| spec.get(list)?.as_array());
    let containers: Vec<&Value> = lists.flatten().collect();
    let amount = |container: &Value, of: &str, resource: &str| {
        container.get("resources")?.get(of)?.get(resource).filter(|value| !value.is_null()).cloned()
    };
    let says = |container: &&Value| {
        let stated = [("limits", "cpu"), ("limits", "memory"), ("requests", "cpu"), ("requests", "memory")];
        stated.into_iter().any(|(of, resource)| amount(container, of, resource).is_some())
    };
    let fixed = |container: &&Value| {
        ["cpu", "memory"].into_iter().all(|resource| {
            let limit = amount(container, "limits", resource);
            limit.is_some()
                && amount(container, "requests", resource).is_none_or(|asked| Some(asked) == limit)
        })
    };
    match (containers.iter().any(says), containers.iter().all(fixed)) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
