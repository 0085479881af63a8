//! Events: what happened to pods of late.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    DemoCluster,
    chance::{Chance, Subject},
    field::{before, text, time},
    managed::signed,
    origin::{FirstPod, Health},
};

/// Of the pods of the plan every tenth has an event in the beginning.
pub(super) const PODS_PER_EVENT: usize = 10;

/// What an event tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Scheduled,
    FailedScheduling,
    Started,
    Killing,
    BackOff,
    PullBackOff,
    Unhealthy,
    Completed,
}

/// The name of the event that pod number `pod` of the plan has in the beginning.
pub(super) fn first_event_name(cluster: &DemoCluster, pod: usize, name: &str) -> String {
    let mut chance = cluster.seed().chance(Subject::Event, pod as u64, 0);
    format!("{name}.{}", chance.hex(16))
}

/// The event about a pod in the beginning, for those that have one.
pub(super) fn first_event(
    cluster: &DemoCluster,
    number: usize,
    first: &FirstPod,
    pod: &Value,
) -> Option<Value> {
    if !number.is_multiple_of(PODS_PER_EVENT) {
        return None;
    }
    let mut chance = cluster.seed().chance(Subject::Event, number as u64, 1);
    let age = cluster.now.as_second().saturating_sub(first.created.as_second());
    let reason = match first.health {
        Health::Crashing => Reason::BackOff,
        Health::Unschedulable => Reason::FailedScheduling,
        Health::UnknownImage => Reason::PullBackOff,
        Health::Completed => Reason::Completed,
        Health::Running if age < 3_600 => Reason::Started,
        Health::Running => Reason::Unhealthy,
    };
    let at = before(cluster.now, chance.below(age.clamp(1, 3_300).unsigned_abs()) as i64);
    let count = if reason == Reason::Started { 1 } else { chance.between(1, 40) as i64 };
    let name = first_event_name(cluster, number, &first.name);
    let since = before(at, (count * 60).min(age.max(0)));
    Some(event(pod, name, reason, (since, at, count), &mut chance))
}

/// An event about a pod: since when, last when, how often.
pub(super) fn event(
    pod: &Value,
    name: String,
    reason: Reason,
    (since, at, count): (Timestamp, Timestamp, i64),
    chance: &mut Chance,
) -> Value {
    let (pod_name, namespace) = (text(pod, "/metadata/name"), text(pod, "/metadata/namespace"));
    let (node, container) = (text(pod, "/spec/nodeName"), text(pod, "/spec/containers/0/name"));
    let image = text(pod, "/spec/containers/0/image");
    let (word, message, on_container) = match reason {
        Reason::Scheduled => {
            ("Scheduled", format!("Successfully assigned {namespace}/{pod_name} to {node}"), false)
        }
        Reason::FailedScheduling => {
            ("FailedScheduling", text(pod, "/status/conditions/0/message").to_owned(), false)
        }
        Reason::Started => ("Started", format!("Started container {container}"), true),
        Reason::Killing => ("Killing", format!("Stopping container {container}"), true),
        Reason::BackOff => {
            let uid = text(pod, "/metadata/uid");
            let pod = format!("{pod_name}_{namespace}({uid})");
            ("BackOff", format!("Back-off restarting failed container {container} in pod {pod}"), true)
        }
        Reason::PullBackOff => ("BackOff", format!("Back-off pulling image \"{image}\""), true),
        Reason::Unhealthy => {
            ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503".to_owned(), true)
        }
        Reason::Completed => ("Completed", "Job completed".to_owned(), false),
    };
    let component = match reason {
        Reason::Scheduled | Reason::FailedScheduling => "default-scheduler",
        Reason::Completed => "job-controller",
        _ => "kubelet",
    };
    let normal = matches!(reason, Reason::Scheduled | Reason::Started | Reason::Killing | Reason::Completed);
    let mut object = json!({
        "apiVersion": "v1",
        "count": count,
        "eventTime": null,
        "firstTimestamp": time(since),
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod_name,
            "namespace": namespace,
            "uid": text(pod, "/metadata/uid"),
        },
        "kind": "Event",
        "lastTimestamp": time(at),
        "message": message,
        "metadata": {
            "creationTimestamp": time(since),
            "name": name,
            "namespace": namespace,
            "uid": chance.uid(),
        },
        "reason": word,
        "reportingComponent": component,
        "reportingInstance": if component == "kubelet" { node } else { "" },
        "source": {"component": component},
        "type": if normal { "Normal" } else { "Warning" },
    });
    if on_container {
        object["involvedObject"]["fieldPath"] = format!("spec.containers{{{container}}}").into();
    }
    if component == "kubelet" {
        object["source"]["host"] = node.into();
    }
    signed(object, (component, at), ("", at))
}
