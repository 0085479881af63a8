//! The objects that make pods, and the state they report.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    DemoCluster, HISTORY_LIMIT,
    chance::{Subject, hash, hash_name},
    field::{list, next_generation, number, put, text, time},
    managed::{Half, sign, signed},
    origin,
    plan::Workload,
    pod::controller,
    template::{labels, selector, template},
};

const MANAGER: &str = "kube-controller-manager";

/// The label that tells the pods of one ReplicaSet from those of another.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// The annotation that counts the revisions of a Deployment.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";

/// How many pods there are, of the newest template, and ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub pods: u32,
    pub updated: u32,
    pub ready: u32,
}

/// Tells templates apart.
pub(super) fn template_hash(template: &Value) -> u32 {
    hash(&template.to_string())
}

fn metadata(cluster: &DemoCluster, workload: &Workload) -> Value {
    let name = cluster.plan.name_of(workload);
    let namespace = cluster.plan.namespace_of(workload);
    json!({
        "annotations": {
            "meta.helm.sh/release-name": name,
            "meta.helm.sh/release-namespace": namespace,
        },
        "creationTimestamp": time(origin::created(cluster, workload)),
        "generation": origin::revision(cluster, workload),
        "labels": labels(cluster, workload, origin::revision(cluster, workload)),
        "name": name,
        "namespace": namespace,
        "uid": origin::uid(cluster, workload),
    })
}

pub(super) fn deployment(cluster: &DemoCluster, workload: &Workload) -> Value {
    let revision = origin::revision(cluster, workload);
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(cluster, workload),
        "spec": {
            "progressDeadlineSeconds": 600,
            "replicas": workload.pods,
            "revisionHistoryLimit": HISTORY_LIMIT,
            "selector": {"matchLabels": selector(cluster, workload)},
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"},
            "template": template(cluster, workload, revision),
        },
    });
    put(&mut object, &["metadata", "annotations", REVISION], revision.to_string());
    sign(&mut object, "helm", Half::Main, origin::revision_created(cluster, workload, revision));
    let tally =
        Tally { pods: workload.pods, updated: workload.pods, ready: origin::ready_pods(cluster, workload) };
    let hash = hash_name(origin::current_hash(cluster, workload));
    let set = format!("{}-{hash}", cluster.plan.name_of(workload));
    report_deployment(&mut object, &set, tally, origin::revision_created(cluster, workload, revision));
    object
}

/// The ReplicaSet of a template of a Deployment, without pods yet.
pub(super) fn replica_set(
    deployment: &Value,
    template: &Value,
    revision: i64,
    replicas: u32,
    uid: String,
    at: Timestamp,
) -> Value {
    let hash = hash_name(template_hash(template));
    let mut template = template.clone();
    put(&mut template, &["metadata", "labels", TEMPLATE_HASH], hash.as_str());
    let mut selector = deployment.pointer("/spec/selector").cloned().unwrap_or_default();
    put(&mut selector, &["matchLabels", TEMPLATE_HASH], hash.as_str());
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "annotations": {
                "deployment.kubernetes.io/desired-replicas": number(deployment, "/spec/replicas").to_string(),
                "deployment.kubernetes.io/max-replicas": (number(deployment, "/spec/replicas").saturating_mul(5) / 4).to_string(),
                REVISION: revision.to_string(),
            },
            "creationTimestamp": time(at),
            "generation": 1,
            "labels": template.pointer("/metadata/labels"),
            "name": format!("{}-{hash}", text(deployment, "/metadata/name")),
            "namespace": text(deployment, "/metadata/namespace"),
            "ownerReferences": [controller(deployment)],
            "uid": uid,
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
        "status": {"observedGeneration": 1, "replicas": 0},
    });
    signed(object, (MANAGER, at), (MANAGER, at))
}

/// The ReplicaSets of a Deployment in the beginning: old ones without pods, then the current one.
pub(super) fn replica_sets(cluster: &DemoCluster, workload: &Workload, deployment: &Value) -> Vec<Value> {
    let current = origin::revision(cluster, workload);
    origin::old_revisions(cluster, workload)
        .chain([current])
        .map(|revision| {
            let uid =
                cluster.seed().uid(Subject::Revision, workload.number.into(), 100 + u64::from(revision));
            let at = origin::revision_created(cluster, workload, revision);
            let pods = if revision == current { workload.pods } else { 0 };
            let template = template(cluster, workload, revision);
            let mut set = replica_set(deployment, &template, revision.into(), pods, uid, at);
            if revision == current {
                let ready = origin::ready_pods(cluster, workload);
                report_replica_set(&mut set, Tally { pods, updated: pods, ready }, at);
            }
            set
        })
        .collect()
}

pub(super) fn stateful_set(cluster: &DemoCluster, workload: &Workload) -> Value {
    let at = origin::created(cluster, workload);
    let name = cluster.plan.name_of(workload);
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(cluster, workload),
        "spec": {
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "podManagementPolicy": "OrderedReady",
            "replicas": workload.pods,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": selector(cluster, workload)},
            "serviceName": name,
            "template": template(cluster, workload, origin::revision(cluster, workload)),
            "updateStrategy": {"rollingUpdate": {"partition": 0}, "type": "RollingUpdate"},
            "volumeClaimTemplates": [{
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "20Gi"}},
                    "storageClassName": "gp3",
                    "volumeMode": "Filesystem",
                },
                "status": {"phase": "Pending"},
            }],
        },
    });
    sign(&mut object, "helm", Half::Main, at);
    report_stateful_set(
        &mut object,
        Tally { pods: workload.pods, updated: workload.pods, ready: workload.pods },
        at,
    );
    object
}

pub(super) fn daemon_set(cluster: &DemoCluster, workload: &Workload) -> Value {
    let at = origin::created(cluster, workload);
    let mut metadata = metadata(cluster, workload);
    put(&mut metadata, &["annotations", "deprecated.daemonset.template.generation"], "1");
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata,
        "spec": {
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": selector(cluster, workload)},
            "template": template(cluster, workload, 1),
            "updateStrategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}, "type": "RollingUpdate"},
        },
        "status": {
            "currentNumberScheduled": workload.pods,
            "desiredNumberScheduled": workload.pods,
            "numberAvailable": workload.pods,
            "numberMisscheduled": 0,
            "numberReady": workload.pods,
            "observedGeneration": 1,
            "updatedNumberScheduled": workload.pods,
        },
    });
    signed(object, ("helm", at), (MANAGER, at))
}

/// The template for one pod of a ReplicaSet, StatefulSet, DaemonSet or Job, with all that its controller adds.
pub(super) fn pod_template(owner: &Value, pod: &str, ordinal: u32, node: Option<&str>) -> Value {
    let mut template = owner.pointer("/spec/template").cloned().unwrap_or_default();
    match text(owner, "/kind") {
        "StatefulSet" => {
            let revision = text(owner, "/status/updateRevision").to_owned();
            for (label, value) in [
                ("apps.kubernetes.io/pod-index", ordinal.to_string()),
                ("controller-revision-hash", revision),
                ("statefulset.kubernetes.io/pod-name", pod.to_owned()),
            ] {
                put(&mut template, &["metadata", "labels", label], value);
            }
            put(&mut template, &["spec", "hostname"], pod);
            put(&mut template, &["spec", "subdomain"], text(owner, "/spec/serviceName"));
            let mut volumes = list(&template, "/spec/volumes").to_vec();
            volumes
                .push(json!({"name": "data", "persistentVolumeClaim": {"claimName": format!("data-{pod}")}}));
            put(&mut template, &["spec", "volumes"], volumes);
        }
        "DaemonSet" => {
            let revision = hash_name(template_hash(&template));
            put(&mut template, &["metadata", "labels", "controller-revision-hash"], revision);
            put(&mut template, &["metadata", "labels", "pod-template-generation"], "1");
            let node = json!({"nodeSelectorTerms": [{
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}],
            }]});
            let path = ["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
            put(&mut template, &path, node);
        }
        _ => {}
    }
    template
}

pub(super) fn report_replica_set(set: &mut Value, tally: Tally, at: Timestamp) {
    let mut status = json!({
        "observedGeneration": number(set, "/metadata/generation"),
        "replicas": tally.pods,
        "fullyLabeledReplicas": tally.pods,
    });
    if tally.ready > 0 {
        status["readyReplicas"] = tally.ready.into();
        status["availableReplicas"] = tally.ready.into();
    }
    put(set, &["status"], status);
    sign(set, MANAGER, Half::Status, at);
}

/// `set` is the name of the current ReplicaSet.
pub(super) fn report_deployment(deployment: &mut Value, set: &str, tally: Tally, at: Timestamp) {
    let wanted = number(deployment, "/spec/replicas").clamp(0, i64::from(u32::MAX)) as u32;
    let available = u64::from(tally.ready) * 4 >= u64::from(wanted) * 3;
    let complete = tally.updated == wanted && tally.pods == wanted && tally.ready == wanted;
    let conditions = [
        match available {
            true => (
                "Available",
                "True",
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.".to_owned(),
            ),
            false => (
                "Available",
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.".to_owned(),
            ),
        },
        match complete {
            true => (
                "Progressing",
                "True",
                "NewReplicaSetAvailable",
                format!("ReplicaSet \"{set}\" has successfully progressed."),
            ),
            false => {
                ("Progressing", "True", "ReplicaSetUpdated", format!("ReplicaSet \"{set}\" is progressing."))
            }
        },
    ];
    let conditions: Vec<Value> = conditions
        .into_iter()
        .map(|(kind, status, reason, message)| {
            let earlier = list(deployment, "/status/conditions")
                .iter()
                .find(|other| text(other, "/type") == kind && text(other, "/status") == status)
                .map(|other| text(other, "/lastTransitionTime").to_owned());
            json!({
                "lastTransitionTime": earlier.unwrap_or_else(|| time(at)),
                "lastUpdateTime": time(at),
                "message": message,
                "reason": reason,
                "status": status,
                "type": kind,
            })
        })
        .collect();
    let mut status = json!({
        "conditions": conditions,
        "observedGeneration": number(deployment, "/metadata/generation"),
    });
    for (name, count) in [
        ("replicas", tally.pods),
        ("updatedReplicas", tally.updated),
        ("readyReplicas", tally.ready),
        ("availableReplicas", tally.ready),
        ("unavailableReplicas", wanted.saturating_sub(tally.ready)),
    ] {
        if count > 0 {
            status[name] = count.into();
        }
    }
    put(deployment, &["status"], status);
    sign(deployment, MANAGER, Half::Status, at);
}

/// When all pods have the newest template it becomes the current one.
pub(super) fn report_stateful_set(set: &mut Value, tally: Tally, at: Timestamp) {
    let name = text(set, "/metadata/name").to_owned();
    let template = set.pointer("/spec/template").map(template_hash).unwrap_or_default();
    let update = format!("{name}-{}", hash_name(template));
    let current = match text(set, "/status/currentRevision") {
        earlier if tally.updated < tally.pods && !earlier.is_empty() => earlier.to_owned(),
        _ => update.clone(),
    };
    let status = json!({
        "availableReplicas": tally.ready,
        "collisionCount": 0,
        "currentReplicas": if current == update { tally.pods } else { tally.pods.saturating_sub(tally.updated) },
        "currentRevision": current,
        "observedGeneration": number(set, "/metadata/generation"),
        "readyReplicas": tally.ready,
        "replicas": tally.pods,
        "updateRevision": update,
        "updatedReplicas": tally.updated,
    });
    put(set, &["status"], status);
    sign(set, MANAGER, Half::Status, at);
}

/// One pod of a DaemonSet more or less is ready.
pub(super) fn report_daemon_set(set: &mut Value, ready: bool, at: Timestamp) {
    let wanted = number(set, "/status/desiredNumberScheduled");
    let change = if ready { 1 } else { -1 };
    let count = number(set, "/status/numberReady").saturating_add(change).clamp(0, wanted.max(0));
    put(set, &["status", "numberReady"], count);
    put(set, &["status", "numberAvailable"], count);
    put(set, &["status", "numberUnavailable"], wanted.saturating_sub(count));
    put(set, &["status", "observedGeneration"], number(set, "/metadata/generation"));
    sign(set, MANAGER, Half::Status, at);
}

/// Another number of pods is wanted.
pub(super) fn scale(object: &mut Value, replicas: u32, at: Timestamp) {
    put(object, &["spec", "replicas"], replicas);
    next_generation(object);
    sign(object, MANAGER, Half::Main, at);
}

/// A new version of the image of the first container is wanted.
pub(super) fn release(object: &mut Value, at: Timestamp) {
    let image = next_version(text(object, "/spec/template/spec/containers/0/image"));
    let version = image.rsplit(':').next().unwrap_or_default().trim_start_matches('v').to_owned();
    if let Some(container) = object.pointer_mut("/spec/template/spec/containers/0") {
        put(container, &["image"], image);
    }
    put(object, &["spec", "template", "metadata", "labels", "app.kubernetes.io/version"], version);
    next_generation(object);
    sign(object, "helm", Half::Main, at);
}

/// The image with the last number of its tag one higher.
fn next_version(image: &str) -> String {
    let stem = image.trim_end_matches(|character: char| character.is_ascii_digit());
    match image.get(stem.len()..).and_then(|digits| digits.parse::<u32>().ok()) {
        Some(number) if image.contains(':') => format!("{stem}{}", number.saturating_add(1)),
        _ => format!("{image}.1"),
    }
}
