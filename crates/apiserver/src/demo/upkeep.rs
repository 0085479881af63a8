//! What keeps a workload going: autoscalers, disruption budgets, and the volumes of StatefulSets.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    DemoCluster,
    chance::Subject,
    field::{number, put, time},
    managed::{Half, sign, signed},
    origin,
    plan::{Kind, Workload},
    template::{labels, selector},
};

const MANAGER: &str = "kube-controller-manager";

fn metadata(cluster: &DemoCluster, workload: &Workload, uid: String) -> Value {
    json!({
        "creationTimestamp": time(origin::created(cluster, workload)),
        "generation": 1,
        "labels": labels(cluster, workload, origin::revision(cluster, workload)),
        "name": cluster.plan.name_of(workload),
        "namespace": cluster.plan.namespace_of(workload),
        "uid": uid,
    })
}

/// Some larger Deployments are scaled by load.
pub(super) fn autoscaler(cluster: &DemoCluster, workload: &Workload) -> Option<Value> {
    let mut chance = cluster.seed().chance(Subject::Workload, workload.number.into(), 5);
    if workload.kind != Kind::Deployment || workload.pods < 3 || !chance.percent(50) {
        return None;
    }
    let at = origin::created(cluster, workload);
    let target = chance.between(50, 80);
    let used = chance.between(20, target);
    let condition = |kind: &str, reason: &str, message: &str, status: &str| {
        json!({
            "lastTransitionTime": time(at),
            "message": message,
            "reason": reason,
            "status": status,
            "type": kind,
        })
    };
    let object = json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(cluster, workload, chance.uid()),
        "spec": {
            "maxReplicas": workload.pods * 2,
            "metrics": [{
                "resource": {"name": "cpu", "target": {"averageUtilization": target, "type": "Utilization"}},
                "type": "Resource",
            }],
            "minReplicas": (workload.pods / 2).max(1),
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": cluster.plan.name_of(workload),
            },
        },
        "status": {
            "conditions": [
                condition("AbleToScale", "ReadyForNewScale", "recommended size matches current size", "True"),
                condition("ScalingActive", "ValidMetricFound", "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)", "True"),
                condition("ScalingLimited", "DesiredWithinRange", "the desired count is within the acceptable range", "False"),
            ],
            "currentMetrics": [{
                "resource": {"current": {"averageUtilization": used, "averageValue": format!("{}m", used * 3)}, "name": "cpu"},
                "type": "Resource",
            }],
            "currentReplicas": workload.pods,
            "desiredReplicas": workload.pods,
        },
    });
    Some(signed(object, ("helm", at), (MANAGER, at)))
}

/// The autoscaler has asked for another number of pods.
pub(super) fn report_scaling(autoscaler: &mut Value, replicas: u32, at: Timestamp) {
    let before = number(autoscaler, "/status/desiredReplicas");
    put(autoscaler, &["status", "currentReplicas"], before);
    put(autoscaler, &["status", "desiredReplicas"], replicas);
    put(autoscaler, &["status", "lastScaleTime"], time(at));
    sign(autoscaler, MANAGER, Half::Status, at);
}

/// Some workloads say how many of their pods may be away at once.
pub(super) fn disruption_budget(cluster: &DemoCluster, workload: &Workload) -> Option<Value> {
    let mut chance = cluster.seed().chance(Subject::Workload, workload.number.into(), 6);
    let wanted = match workload.kind {
        Kind::CoreDns | Kind::StatefulSet => true,
        Kind::Deployment => chance.percent(30),
        Kind::CronJob | Kind::Job | Kind::Daemon(_) => false,
    };
    if !wanted || workload.pods < 2 {
        return None;
    }
    let at = origin::created(cluster, workload);
    let ready = origin::ready_pods(cluster, workload);
    let needed = workload.pods - 1;
    let allowed = ready.saturating_sub(needed);
    let object = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(cluster, workload, chance.uid()),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(cluster, workload)}},
        "status": {
            "conditions": [{
                "lastTransitionTime": time(at),
                "message": "",
                "observedGeneration": 1,
                "reason": if allowed > 0 { "SufficientPods" } else { "InsufficientPods" },
                "status": if allowed > 0 { "True" } else { "False" },
                "type": "DisruptionAllowed",
            }],
            "currentHealthy": ready,
            "desiredHealthy": needed,
            "disruptionsAllowed": allowed,
            "expectedPods": workload.pods,
            "observedGeneration": 1,
        },
    });
    Some(signed(object, ("helm", at), (MANAGER, at)))
}

/// The claim of one pod of a StatefulSet and the volume bound to it, the volume first.
pub(super) fn volume(cluster: &DemoCluster, workload: &Workload, ordinal: u32, at: Timestamp) -> [Value; 2] {
    let mut chance = cluster.seed().chance(Subject::Volume, workload.number.into(), ordinal.into());
    let namespace = cluster.plan.namespace_of(workload);
    let claim = format!("data-{}-{ordinal}", cluster.plan.name_of(workload));
    let uid = chance.uid();
    let volume = format!("pvc-{uid}");
    let storage = json!({"storage": "20Gi"});
    let persistent = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "annotations": {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"},
            "creationTimestamp": time(at),
            "finalizers": ["kubernetes.io/pv-protection"],
            "name": volume,
            "uid": chance.uid(),
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": storage,
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": claim,
                "namespace": namespace,
                "uid": uid,
            },
            "csi": {
                "driver": "ebs.csi.aws.com",
                "fsType": "ext4",
                "volumeHandle": format!("vol-{}", chance.hex(17)),
            },
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "gp3",
            "volumeMode": "Filesystem",
        },
        "status": {"lastPhaseTransitionTime": time(at), "phase": "Bound"},
    });
    let claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "annotations": {
                "pv.kubernetes.io/bind-completed": "yes",
                "pv.kubernetes.io/bound-by-controller": "yes",
                "volume.kubernetes.io/storage-provisioner": "ebs.csi.aws.com",
            },
            "creationTimestamp": time(at),
            "finalizers": ["kubernetes.io/pvc-protection"],
            "labels": selector(cluster, workload),
            "name": claim,
            "namespace": namespace,
            "uid": uid,
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": storage},
            "storageClassName": "gp3",
            "volumeMode": "Filesystem",
            "volumeName": volume,
        },
        "status": {"accessModes": ["ReadWriteOnce"], "capacity": storage, "phase": "Bound"},
    });
    [signed(persistent, ("csi-provisioner", at), (MANAGER, at)), signed(claim, (MANAGER, at), (MANAGER, at))]
}
