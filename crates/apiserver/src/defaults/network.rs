//! What services and what belongs to them are left without.

use serde_json::{Value, json};

use super::{has, items, part, set};

pub(super) fn fill_service(spec: &mut Value) {
    set(spec, "type", "ClusterIP");
    set(spec, "sessionAffinity", "None");
    if spec["sessionAffinity"] == "ClientIP" {
        let config = part(spec, "sessionAffinityConfig").and_then(|config| part(config, "clientIP"));
        if let Some(client) = config {
            set(client, "timeoutSeconds", 10_800);
        }
    }
    for port in items(spec, "/ports") {
        let number = port.get("port").cloned().unwrap_or_default();
        set(port, "protocol", "TCP");
        set(port, "targetPort", number);
    }
    if spec["type"] == "ExternalName" {
        return;
    }
    set(spec, "internalTrafficPolicy", "Cluster");
    if spec["type"] == "NodePort" || spec["type"] == "LoadBalancer" {
        set(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec["type"] == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// An updated service that does not say its address keeps the one that it has.
pub(crate) fn keep_address(object: &mut Value, current: &Value) {
    let Some(spec) = part(object, "spec").filter(|spec| spec["type"] != "ExternalName") else { return };
    for name in ["clusterIP", "clusterIPs"] {
        let known = current.get("spec").and_then(|spec| spec.get(name)).cloned().unwrap_or_default();
        if !known.is_null() {
            set(spec, name, known);
        }
    }
}

/// A policy is about what comes in, and about what goes out if it says so.
pub(super) fn fill_policy(spec: &mut Value) {
    let out = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    set(spec, "policyTypes", if out { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
    for list in ["ingress", "egress"] {
        for rule in items(spec, &format!("/{list}")) {
            items(rule, "/ports").for_each(|port| set(port, "protocol", "TCP"));
        }
    }
}

pub(super) fn fill_slice(slice: &mut Value) {
    for port in items(slice, "/ports") {
        set(port, "name", "");
        set(port, "protocol", "TCP");
    }
}

/// What a server finds out about the addresses of a service.
pub(super) fn admit_service(spec: &mut Value) {
    if spec["type"] == "ExternalName" {
        return;
    }
    set(spec, "ipFamilies", json!(["IPv4"]));
    set(spec, "ipFamilyPolicy", "SingleStack");
    if has(spec, "clusterIP") {
        let address = spec["clusterIP"].clone();
        set(spec, "clusterIPs", json!([address]));
    }
}
