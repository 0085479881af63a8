//! How a workload and its pods are in the beginning: age, revision, health. Cheap to ask, as often as wanted.

use jiff::Timestamp;

use super::{
    DemoCluster,
    chance::{Subject, hash_name},
    field::before,
    node::CLUSTER_AGE,
    plan::{KUBE_SYSTEM, Kind, Place, Workload},
    template::template,
    workload::template_hash,
};

const DAY: i64 = 86_400;

/// How a pod is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Running,
    Crashing,
    Unschedulable,
    UnknownImage,
    Completed,
}

/// One of the pods that are there in the beginning.
#[derive(Debug)]
pub(super) struct FirstPod {
    pub name: String,
    pub uid: String,
    pub created: Timestamp,
    pub health: Health,
    pub place: Place,
}

pub(super) fn namespace_created(cluster: &DemoCluster, namespace: u16) -> Timestamp {
    before(cluster.now, namespace_age(cluster, namespace))
}

fn namespace_age(cluster: &DemoCluster, namespace: u16) -> i64 {
    if namespace == KUBE_SYSTEM {
        return CLUSTER_AGE;
    }
    let mut chance = cluster.seed().chance(Subject::Namespace, namespace.into(), 0);
    DAY * 60 + chance.below(90 * DAY.unsigned_abs()) as i64
}

/// The uid of the workload itself.
pub(super) fn uid(cluster: &DemoCluster, workload: &Workload) -> String {
    cluster.seed().uid(Subject::Workload, workload.number.into(), 2)
}

/// Of what the template is the n-th version.
pub(super) fn revision(cluster: &DemoCluster, workload: &Workload) -> u32 {
    match workload.kind {
        Kind::CoreDns | Kind::Daemon(_) => 1,
        _ => cluster.seed().chance(Subject::Revision, workload.number.into(), 1).between(1, 5) as u32,
    }
}

/// The old revisions that still have a ReplicaSet, the oldest first.
pub(super) fn old_revisions(cluster: &DemoCluster, workload: &Workload) -> std::ops::Range<u32> {
    let revision = revision(cluster, workload);
    revision.saturating_sub(super::HISTORY_LIMIT as u32).max(1)..revision
}

/// When a revision came; the first one came with the workload.
pub(super) fn revision_created(cluster: &DemoCluster, workload: &Workload, wanted: u32) -> Timestamp {
    let mut chance = cluster.seed().chance(Subject::Workload, workload.number.into(), 0);
    let oldest = chance.age(3_600, namespace_age(cluster, workload.namespace));
    let youngest = chance.age(1_800, oldest);
    let steps = i64::from(revision(cluster, workload)) - 1;
    let age = match steps {
        0 => oldest,
        _ => oldest - (oldest - youngest) / steps * i64::from(wanted.saturating_sub(1)),
    };
    before(cluster.now, age)
}

pub(super) fn created(cluster: &DemoCluster, workload: &Workload) -> Timestamp {
    revision_created(cluster, workload, 1)
}

/// The hash of the template of the current revision.
pub(super) fn current_hash(cluster: &DemoCluster, workload: &Workload) -> u32 {
    template_hash(&template(cluster, workload, revision(cluster, workload)))
}

/// The minutes between two runs of a CronJob, and its schedule.
pub(super) fn schedule(cluster: &DemoCluster, workload: &Workload) -> (u32, &'static str) {
    match cluster.seed().chance(Subject::Workload, workload.number.into(), 3).below(4) {
        0 => (15, "*/15 * * * *"),
        1 => (60, "0 * * * *"),
        2 => (360, "0 */6 * * *"),
        _ => (1_440, "0 0 * * *"),
    }
}

/// The minute, since 1970, of one of the runs of a CronJob that are still there: number 0 is the oldest.
pub(super) fn run(cluster: &DemoCluster, workload: &Workload, number: u32) -> u32 {
    let (period, _) = schedule(cluster, workload);
    let minute = u32::try_from(cluster.now.as_second().div_euclid(60).max(0)).unwrap_or(u32::MAX);
    // The last one has had the time to end.
    let last = (minute.saturating_sub(3) / period * period).max(period * workload.pods);
    last - period * workload.pods.saturating_sub(number + 1)
}

/// What pods are called. `group` is the hash of the template for a Deployment and the minute for a CronJob.
pub(super) fn pod_name(cluster: &DemoCluster, workload: &Workload, group: u32, ordinal: u32) -> String {
    let name = cluster.plan.name_of(workload);
    let suffix = |group| cluster.seed().pod_suffix(workload.number.into(), group, ordinal);
    match workload.kind {
        Kind::Deployment | Kind::CoreDns => format!("{name}-{}-{}", hash_name(group), suffix(group)),
        Kind::StatefulSet => format!("{name}-{ordinal}"),
        Kind::CronJob => format!("{name}-{group}-{}", suffix(group)),
        Kind::Daemon(_) | Kind::Job => format!("{name}-{}", suffix(0)),
    }
}

/// One of the pods of a workload in the beginning; `group` as for its name.
pub(super) fn first_pod(cluster: &DemoCluster, workload: &Workload, group: u32, ordinal: u32) -> FirstPod {
    let mut chance = cluster.seed().chance(Subject::Pod, workload.number.into(), ordinal.into());
    let since = match workload.kind {
        Kind::CronJob => {
            Timestamp::from_second(i64::from(run(cluster, workload, ordinal)) * 60).unwrap_or(cluster.now)
        }
        Kind::Job => created(cluster, workload),
        _ => revision_created(cluster, workload, revision(cluster, workload)),
    };
    let oldest = cluster.now.as_second().saturating_sub(since.as_second());
    let age = if workload.kind.is_lasting() { chance.age(120.min(oldest), oldest) } else { oldest };
    // Jobs have one pod each, so the second number of a CronJob's pod is always zero.
    let number = if workload.kind == Kind::CronJob { 0 } else { ordinal };
    FirstPod {
        name: pod_name(cluster, workload, group, number),
        uid: chance.uid(),
        created: before(cluster.now, age),
        health: health(cluster, workload, ordinal),
        place: cluster.plan.first_place(workload, ordinal),
    }
}

/// Few workloads are in trouble, and then most of their pods are.
pub(super) fn health(cluster: &DemoCluster, workload: &Workload, ordinal: u32) -> Health {
    match workload.kind {
        Kind::CronJob | Kind::Job => return Health::Completed,
        Kind::CoreDns | Kind::Daemon(_) | Kind::StatefulSet => return Health::Running,
        Kind::Deployment => {}
    }
    let mut chance = cluster.seed().chance(Subject::Workload, workload.number.into(), 1);
    if !chance.percent(6) {
        return Health::Running;
    }
    let trouble = [Health::Crashing, Health::Unschedulable, Health::UnknownImage][chance.below(3) as usize];
    let mut hit = cluster.seed().chance(Subject::Pod, workload.number.into(), u64::from(ordinal) | 1 << 40);
    if hit.percent(60) { trouble } else { Health::Running }
}

/// How many of its pods are ready in the beginning.
pub(super) fn ready_pods(cluster: &DemoCluster, workload: &Workload) -> u32 {
    match workload.kind {
        Kind::Deployment => {
            let ready = |&ordinal: &u32| health(cluster, workload, ordinal) == Health::Running;
            (0..workload.pods).filter(ready).count() as u32
        }
        Kind::CronJob | Kind::Job => 0,
        Kind::CoreDns | Kind::Daemon(_) | Kind::StatefulSet => workload.pods,
    }
}
