//! The life of a pod: made from a template, scheduled, started, and what can happen then.
//!
//! Every function takes the pod as it is and leaves it as a server would show it after the one write.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    chance::Chance,
    field::{before, list, list_mut, number, put, text, time},
    managed::{Half, sign},
    node::{image_digest, node_ip, node_name, pod_ip},
    plan::Place,
};

/// What a pod is called and belongs to.
#[derive(Debug)]
pub(super) struct Birth<'a> {
    pub namespace: &'a str,
    pub name: String,
    pub uid: String,
    /// The object that owns it, complete.
    pub owner: &'a Value,
    pub at: Timestamp,
}

/// A reference to the object that controls another.
pub(super) fn controller(owner: &Value) -> Value {
    json!({
        "apiVersion": owner.get("apiVersion"),
        "blockOwnerDeletion": true,
        "controller": true,
        "kind": owner.get("kind"),
        "name": text(owner, "/metadata/name"),
        "uid": text(owner, "/metadata/uid"),
    })
}

/// A pod as its controller creates it: nobody has looked at it yet.
pub(super) fn create(template: &Value, birth: Birth<'_>, chance: &mut Chance) -> Value {
    let token = format!("kube-api-access-{}", chance.name(5));
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "creationTimestamp": time(birth.at),
            "generation": 1,
            "name": birth.name,
            "namespace": birth.namespace,
            "ownerReferences": [controller(birth.owner)],
            "uid": birth.uid,
        },
    });
    pod["spec"] = template.get("spec").cloned().unwrap_or_default();
    for name in ["labels", "annotations"] {
        if let Some(value) = template.pointer(&format!("/metadata/{name}")) {
            put(&mut pod, &["metadata", name], value.clone());
        }
    }
    if let Some((stem, _)) = birth.name.rsplit_once('-')
        && text(birth.owner, "/kind") != "StatefulSet"
    {
        put(&mut pod, &["metadata", "generateName"], format!("{stem}-"));
    }
    sign(&mut pod, "kube-controller-manager", Half::Main, birth.at);
    admit(&mut pod, &token);
    let qos = qos_class(&pod);
    pod["status"] = json!({"phase": "Pending", "qosClass": qos});
    pod
}

/// What the server adds to every pod that is created.
fn admit(pod: &mut Value, token: &str) {
    for container in list_mut(pod, "/spec/containers") {
        let mount = json!({
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            "name": token,
            "readOnly": true,
        });
        append(container, "volumeMounts", mount);
    }
    append(
        &mut pod["spec"],
        "volumes",
        json!({
            "name": token,
            "projected": {
                "defaultMode": 420,
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                    {"downwardAPI": {"items": [{
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        "path": "namespace",
                    }]}},
                ],
            },
        }),
    );
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let toleration =
            json!({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300});
        append(&mut pod["spec"], "tolerations", toleration);
    }
    put(pod, &["spec", "enableServiceLinks"], true);
    put(pod, &["spec", "preemptionPolicy"], "PreemptLowerPriority");
    let priority = match text(pod, "/spec/priorityClassName") {
        "system-cluster-critical" => 2_000_000_000,
        "system-node-critical" => 2_000_001_000,
        _ => 0,
    };
    put(pod, &["spec", "priority"], priority);
}

fn append(object: &mut Value, name: &str, item: Value) {
    match object.get_mut(name).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => put(object, &[name], vec![item]),
    }
}

fn qos_class(pod: &Value) -> &'static str {
    let containers = list(pod, "/spec/containers");
    let sides = |container: &Value| {
        let side = |name: &str| container.pointer(&format!("/resources/{name}")).cloned();
        (side("limits"), side("requests"))
    };
    if containers.iter().all(|container| sides(container) == (None, None)) {
        "BestEffort"
    } else if containers.iter().all(|container| {
        let (limits, requests) = sides(container);
        limits == requests
    }) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// No node has room for it.
pub(super) fn reject(pod: &mut Value, nodes: u32, at: Timestamp) {
    let message = format!(
        "0/{nodes} nodes are available: {nodes} Insufficient cpu. preemption: 0/{nodes} nodes are available: \
         {nodes} No preemption victims found for incoming pod."
    );
    set_condition(pod, "PodScheduled", false, Some(("Unschedulable", &message)), at);
    sign(pod, "kube-scheduler", Half::Status, at);
}

/// It is given a node.
pub(super) fn schedule(pod: &mut Value, node: u32, at: Timestamp) {
    put(pod, &["spec", "nodeName"], node_name(node));
    put(pod, &["status", "conditions"], json!([]));
    set_condition(pod, "PodScheduled", true, None, at);
}

/// Its containers run and are ready.
pub(super) fn start(pod: &mut Value, place: Place, at: Timestamp, chance: &mut Chance) {
    let (host, ip) = (node_ip(place.node), pod_ip(place));
    if place.address.is_some() {
        put(pod, &["metadata", "annotations", "cni.projectcalico.org/podIP"], format!("{ip}/32"));
    }
    for (name, value) in [
        ("phase", json!("Running")),
        ("hostIP", json!(host)),
        ("hostIPs", json!([{"ip": host}])),
        ("podIP", json!(ip)),
        ("podIPs", json!([{"ip": ip}])),
        ("startTime", json!(time(at))),
    ] {
        put(pod, &["status", name], value);
    }
    let statuses: Vec<Value> = list(pod, "/spec/containers")
        .iter()
        .map(|container| {
            let image = text(container, "/image");
            let repository = image.rsplit_once(':').map_or(image, |(repository, _)| repository);
            json!({
                "containerID": format!("containerd://{}", chance.hex(64)),
                "image": image,
                "imageID": format!("{repository}@sha256:{}", image_digest(image)),
                "lastState": {},
                "name": container.get("name"),
                "ready": true,
                "restartCount": 0,
                "started": true,
                "state": {"running": {"startedAt": time(at)}},
            })
        })
        .collect();
    put(pod, &["status", "containerStatuses"], statuses);
    for condition in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"] {
        set_condition(pod, condition, true, None, at);
    }
    sign(pod, "kubelet", Half::Status, at);
}

/// Its image cannot be pulled.
pub(super) fn fail_to_pull(pod: &mut Value, place: Place, at: Timestamp, chance: &mut Chance) {
    start(pod, place, at, chance);
    put(pod, &["status", "phase"], "Pending");
    for status in list_mut(pod, "/status/containerStatuses") {
        let image = text(status, "/image").to_owned();
        let message = format!(
            "Back-off pulling image \"{image}\": ErrImagePull: failed to resolve reference \"{image}\": not found"
        );
        put(status, &["state"], json!({"waiting": {"message": message, "reason": "ImagePullBackOff"}}));
        for (name, value) in [
            ("ready", json!(false)),
            ("started", json!(false)),
            ("containerID", json!("")),
            ("imageID", json!("")),
        ] {
            put(status, &[name], value);
        }
    }
    set_ready(pod, false, at);
    sign(pod, "kubelet", Half::Status, at);
}

/// Its first container has ended with an error and will be started again later.
pub(super) fn crash(pod: &mut Value, at: Timestamp, chance: &mut Chance) {
    let (name, namespace) = (text(pod, "/metadata/name"), text(pod, "/metadata/namespace"));
    let (uid, container) = (text(pod, "/metadata/uid"), text(pod, "/spec/containers/0/name"));
    let message =
        format!("back-off 5m0s restarting failed container={container} pod={name}_{namespace}({uid})");
    let code = if chance.percent(30) { 137 } else { 1 };
    if let Some(status) = list_mut(pod, "/status/containerStatuses").first_mut() {
        let count = number(status, "/restartCount").saturating_add(1);
        let ended = json!({
            "containerID": text(status, "/containerID"),
            "exitCode": code,
            "finishedAt": time(at),
            "reason": if code == 137 { "OOMKilled" } else { "Error" },
            "startedAt": time(before(at, chance.between(5, 90) as i64)),
        });
        put(status, &["lastState"], json!({"terminated": ended}));
        put(status, &["state"], json!({"waiting": {"message": message, "reason": "CrashLoopBackOff"}}));
        put(status, &["restartCount"], count);
        put(status, &["ready"], false);
        put(status, &["started"], false);
    }
    set_ready(pod, false, at);
    sign(pod, "kubelet", Half::Status, at);
}

/// All containers run and are ready again.
pub(super) fn recover(pod: &mut Value, at: Timestamp, chance: &mut Chance) {
    put(pod, &["status", "phase"], "Running");
    for status in list_mut(pod, "/status/containerStatuses") {
        if status.pointer("/state/running").is_none() {
            put(status, &["containerID"], format!("containerd://{}", chance.hex(64)));
            put(status, &["state"], json!({"running": {"startedAt": time(at)}}));
        }
        put(status, &["ready"], true);
        put(status, &["started"], true);
    }
    set_ready(pod, true, at);
    sign(pod, "kubelet", Half::Status, at);
}

/// It runs, but its probe fails.
pub(super) fn lose_readiness(pod: &mut Value, at: Timestamp) {
    if let Some(status) = list_mut(pod, "/status/containerStatuses").first_mut() {
        put(status, &["ready"], false);
    }
    set_ready(pod, false, at);
    sign(pod, "kubelet", Half::Status, at);
}

/// All containers have ended well.
pub(super) fn complete(pod: &mut Value, at: Timestamp) {
    put(pod, &["status", "phase"], "Succeeded");
    for status in list_mut(pod, "/status/containerStatuses") {
        let ended = json!({
            "containerID": text(status, "/containerID"),
            "exitCode": 0,
            "finishedAt": time(at),
            "reason": "Completed",
            "startedAt": text(status, "/state/running/startedAt"),
        });
        put(status, &["state"], json!({"terminated": ended}));
        put(status, &["ready"], false);
        put(status, &["started"], false);
    }
    for condition in ["Ready", "ContainersReady"] {
        set_condition(pod, condition, false, Some(("PodCompleted", "")), at);
    }
    set_condition(pod, "Initialized", true, Some(("PodCompleted", "")), at);
    sign(pod, "kubelet", Half::Status, at);
}

/// Its deletion was asked for; its containers are still there.
pub(super) fn terminate(pod: &mut Value, at: Timestamp) {
    let grace = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30);
    put(pod, &["metadata", "deletionGracePeriodSeconds"], grace);
    put(pod, &["metadata", "deletionTimestamp"], time(before(at, -grace.clamp(0, 86_400))));
}

pub(super) fn is_ready(pod: &Value) -> bool {
    list(pod, "/status/conditions")
        .iter()
        .any(|condition| text(condition, "/type") == "Ready" && text(condition, "/status") == "True")
}

fn set_ready(pod: &mut Value, ready: bool, at: Timestamp) {
    let unready: Vec<&str> = list(pod, "/status/containerStatuses")
        .iter()
        .filter(|status| status.get("ready") != Some(&Value::Bool(true)))
        .map(|status| text(status, "/name"))
        .collect();
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    let why = (!ready).then_some(("ContainersNotReady", message.as_str()));
    set_condition(pod, "Ready", ready, why, at);
    set_condition(pod, "ContainersReady", ready, why, at);
}

fn set_condition(pod: &mut Value, kind: &str, status: bool, why: Option<(&str, &str)>, at: Timestamp) {
    let mut condition = json!({
        "lastProbeTime": null,
        "lastTransitionTime": time(at),
        "status": if status { "True" } else { "False" },
        "type": kind,
    });
    if let Some((reason, message)) = why {
        condition["reason"] = reason.into();
        if !message.is_empty() {
            condition["message"] = message.into();
        }
    }
    let same = |other: &Value| text(other, "/type") == kind;
    match pod.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        Some(conditions) => match conditions.iter().position(same) {
            Some(index) => conditions[index] = condition,
            None => conditions.push(condition),
        },
        None => put(pod, &["status", "conditions"], vec![condition]),
    }
}
