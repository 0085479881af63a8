//! Jobs and the CronJobs that start them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    DemoCluster,
    field::{before, put, text, time},
    managed::{Half, sign, signed},
    origin,
    plan::Workload,
    pod::controller,
    template::{labels, template},
};

const MANAGER: &str = "kube-controller-manager";

fn job_spec(cluster: &DemoCluster, workload: &Workload) -> Value {
    json!({
        "backoffLimit": 3,
        "completionMode": "NonIndexed",
        "completions": 1,
        "manualSelector": false,
        "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed",
        "suspend": false,
        "template": template(cluster, workload, origin::revision(cluster, workload)),
    })
}

pub(super) fn cron_job(cluster: &DemoCluster, workload: &Workload) -> Value {
    let at = origin::created(cluster, workload);
    let last = origin::run(cluster, workload, workload.pods.saturating_sub(1));
    let mut object = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {
            "creationTimestamp": time(at),
            "generation": 1,
            "labels": labels(cluster, workload, origin::revision(cluster, workload)),
            "name": cluster.plan.name_of(workload),
            "namespace": cluster.plan.namespace_of(workload),
            "uid": origin::uid(cluster, workload),
        },
        "spec": {
            "concurrencyPolicy": "Forbid",
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"metadata": {}, "spec": job_spec(cluster, workload)},
            "schedule": origin::schedule(cluster, workload).1,
            "successfulJobsHistoryLimit": workload.pods,
            "suspend": false,
        },
    });
    sign(&mut object, "helm", Half::Main, at);
    let status = json!({"lastScheduleTime": time(minute(last)), "lastSuccessfulTime": time(ended(last))});
    put(&mut object, &["status"], status);
    sign(&mut object, MANAGER, Half::Status, ended(last));
    object
}

/// The time of a run: minutes since 1970.
pub(super) fn minute(run: u32) -> Timestamp {
    Timestamp::from_second(i64::from(run) * 60).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// When a run of the beginning had ended.
pub(super) fn ended(run: u32) -> Timestamp {
    before(minute(run), -90)
}

/// The CronJob has started a run.
pub(super) fn report_start(cron_job: &mut Value, run: u32, job: &Value, at: Timestamp) {
    let active = json!([{
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": text(job, "/metadata/name"),
        "namespace": text(job, "/metadata/namespace"),
        "uid": text(job, "/metadata/uid"),
    }]);
    put(cron_job, &["status", "active"], active);
    put(cron_job, &["status", "lastScheduleTime"], time(minute(run)));
    sign(cron_job, MANAGER, Half::Status, at);
}

/// The run that the CronJob has started has ended well.
pub(super) fn report_end(cron_job: &mut Value, at: Timestamp) {
    if let Some(status) = cron_job.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("active");
    }
    put(cron_job, &["status", "lastSuccessfulTime"], time(at));
    sign(cron_job, MANAGER, Half::Status, at);
}

/// A Job that stands for itself.
pub(super) fn lone_job(cluster: &DemoCluster, workload: &Workload) -> Value {
    let metadata = json!({
        "labels": labels(cluster, workload, origin::revision(cluster, workload)),
        "name": cluster.plan.name_of(workload),
        "namespace": cluster.plan.namespace_of(workload),
        "uid": origin::uid(cluster, workload),
    });
    job(metadata, &job_spec(cluster, workload), origin::created(cluster, workload))
}

/// One run of a CronJob.
pub(super) fn run_job(cron_job: &Value, run: u32, uid: String, at: Timestamp) -> Value {
    let metadata = json!({
        "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": time(minute(run))},
        "labels": cron_job.pointer("/metadata/labels"),
        "name": format!("{}-{run}", text(cron_job, "/metadata/name")),
        "namespace": text(cron_job, "/metadata/namespace"),
        "ownerReferences": [controller(cron_job)],
        "uid": uid,
    });
    let spec = cron_job.pointer("/spec/jobTemplate/spec").cloned().unwrap_or_default();
    job(metadata, &spec, at)
}

/// A Job whose pod has not run yet.
fn job(mut metadata: Value, spec: &Value, at: Timestamp) -> Value {
    let (name, uid) = (text(&metadata, "/name").to_owned(), text(&metadata, "/uid").to_owned());
    metadata["creationTimestamp"] = time(at).into();
    metadata["generation"] = 1.into();
    let mut spec = spec.clone();
    put(&mut spec, &["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}));
    for (label, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        put(&mut spec, &["template", "metadata", "labels", label], value.as_str());
    }
    let object = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": spec,
        "status": {"active": 1, "ready": 0, "startTime": time(at), "terminating": 0},
    });
    signed(object, (MANAGER, at), (MANAGER, at))
}

/// The pod of the Job has ended well.
pub(super) fn finish(job: &mut Value, at: Timestamp) {
    let condition = |kind: &str| {
        json!({
            "lastProbeTime": time(at),
            "lastTransitionTime": time(at),
            "message": "Reached expected number of succeeded pods",
            "reason": "CompletionsReached",
            "status": "True",
            "type": kind,
        })
    };
    let status = json!({
        "completionTime": time(at),
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        "ready": 0,
        "startTime": text(job, "/status/startTime"),
        "succeeded": 1,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    });
    put(job, &["status"], status);
    sign(job, MANAGER, Half::Status, at);
}
