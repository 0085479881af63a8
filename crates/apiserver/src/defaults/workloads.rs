//! What the kinds that run pods are left without.

use serde_json::{Value, json};

use super::{has, items, part, pods, set, set_in};

/// Fills in an object of `apps` or `batch`, or a ReplicationController.
pub(super) fn fill(object: &mut Value, kind: &str) {
    match kind {
        "Deployment" => {
            let spec = &mut object["spec"];
            set(spec, "replicas", 1);
            set(spec, "revisionHistoryLimit", 10);
            set(spec, "progressDeadlineSeconds", 600);
            let pace = json!({"maxUnavailable": "25%", "maxSurge": "25%"});
            fill_strategy(spec, "strategy", &pace);
        }
        "StatefulSet" => {
            let spec = &mut object["spec"];
            set(spec, "replicas", 1);
            set(spec, "revisionHistoryLimit", 10);
            set(spec, "podManagementPolicy", "OrderedReady");
            if let Some(retention) = part(spec, "persistentVolumeClaimRetentionPolicy") {
                set(retention, "whenDeleted", "Retain");
                set(retention, "whenScaled", "Retain");
            }
            fill_strategy(spec, "updateStrategy", &json!({"partition": 0, "maxUnavailable": 1}));
            for claim in items(object, "/spec/volumeClaimTemplates") {
                set(claim, "apiVersion", "v1");
                set(claim, "kind", "PersistentVolumeClaim");
                for (part_name, name, value) in
                    [("spec", "volumeMode", "Filesystem"), ("status", "phase", "Pending")]
                {
                    if let Some(filled) = part(claim, part_name) {
                        set(filled, name, value);
                    }
                }
            }
        }
        "DaemonSet" => {
            let spec = &mut object["spec"];
            set(spec, "revisionHistoryLimit", 10);
            fill_strategy(spec, "updateStrategy", &json!({"maxUnavailable": 1, "maxSurge": 0}));
            set(&mut object["metadata"]["annotations"], "deprecated.daemonset.template.generation", "1");
        }
        "ReplicaSet" => set(&mut object["spec"], "replicas", 1),
        "ReplicationController" => {
            set(&mut object["spec"], "replicas", 1);
            let labels = object.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
            set(&mut object["spec"], "selector", labels.clone());
            set(&mut object["metadata"], "labels", labels);
        }
        "Job" => fill_job(&mut object["spec"]),
        "CronJob" => {
            let spec = &mut object["spec"];
            set(spec, "suspend", false);
            set(spec, "concurrencyPolicy", "Allow");
            set(spec, "successfulJobsHistoryLimit", 3);
            set(spec, "failedJobsHistoryLimit", 1);
            if let Some(template) = spec.pointer_mut("/jobTemplate/spec/template") {
                pods::fill_template(template);
            }
        }
        _ => return,
    }
    if let Some(template) = object.pointer_mut("/spec/template") {
        pods::fill_template(template);
    }
}

/// How pods are replaced: step by step, unless said otherwise.
fn fill_strategy(spec: &mut Value, name: &str, pace: &Value) {
    let Some(strategy) = part(spec, name) else { return };
    set(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate"
        && let Some(rolling) = part(strategy, "rollingUpdate")
    {
        for (name, value) in pace.as_object().into_iter().flatten() {
            set(rolling, name, value.clone());
        }
    }
}

fn fill_job(spec: &mut Value) {
    // A job that says neither runs once; one that says how many at a time ends when one of them is done.
    if !has(spec, "parallelism") && !has(spec, "completions") {
        set(spec, "completions", 1);
    }
    set(spec, "parallelism", 1);
    set(spec, "backoffLimit", 6);
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    set(spec, "manualSelector", false);
    let policy = if has(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set(spec, "podReplacementPolicy", policy);
}

/// A new job selects its pods by its uid.
pub(super) fn claim_pods(job: &mut Value) {
    if job["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (job["metadata"]["uid"].clone(), job["metadata"]["name"].clone());
    let labels = &mut job["spec"]["template"]["metadata"]["labels"];
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        set(labels, key, value.clone());
    }
    let labels = labels.clone();
    set(&mut job["metadata"], "labels", labels);
    set(&mut job["spec"]["selector"]["matchLabels"], "batch.kubernetes.io/controller-uid", uid);
}

/// An autoscaler aims at four fifths of the processor time that pods ask for.
pub(super) fn fill_autoscaler(spec: &mut Value) {
    set(spec, "minReplicas", 1);
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    set(spec, "metrics", json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    for direction in ["scaleUp", "scaleDown"] {
        if let Some(behavior) = spec.get_mut("behavior") {
            set_in(behavior, direction, "selectPolicy", "Max");
        }
    }
}
