//! What makes pods: deployments, replica sets, replication controllers, stateful and daemon sets, jobs.

use serde_json::Value;

use crate::json::Json;

use super::{
    AGE, Column, NAME, Row, duration,
    fields::{
        count, each_text, flag, has_condition, integer, integer_or, is_set, is_terminating, items, labels,
        selector, selector_or_none, text, text_or,
    },
};

pub(super) fn columns(group: &str, plural: &str) -> Option<&'static [Column]> {
    Some(match (group, plural) {
        ("", "replicationcontrollers") => REPLICATION_CONTROLLER,
        ("apps", "replicasets") => REPLICA_SET,
        ("apps", "deployments") => DEPLOYMENT,
        ("apps", "statefulsets") => STATEFUL_SET,
        ("apps", "daemonsets") => DAEMON_SET,
        ("apps", "controllerrevisions") => CONTROLLER_REVISION,
        ("batch", "jobs") => JOB,
        ("batch", "cronjobs") => CRON_JOB,
        _ => return None,
    })
}

const CONTAINERS: Column = Column::new("Containers", CONTAINERS_ARE, |object, _| {
    each_text(object, "/spec/template/spec/containers", "/name").into()
})
.wide();
const IMAGES: Column = Column::new("Images", IMAGES_ARE, |object, _| {
    each_text(object, "/spec/template/spec/containers", "/image").into()
})
.wide();
const SELECTOR: Column =
    Column::new("Selector", SELECTOR_IS, |object, _| selector_or_none(object, "/spec/selector").into())
        .wide();

const CONTAINERS_ARE: &str = "The names of the containers in the template.";
const IMAGES_ARE: &str = "The images of the containers in the template.";
const SELECTOR_IS: &str = "Which pods belong to the object.";

/// Of an object that is little more than a template.
pub(super) const CONTAINERS_OF_TEMPLATE: Column = Column::new("Containers", CONTAINERS_ARE, |object, _| {
    each_text(object, "/template/spec/containers", "/name").into()
});
pub(super) const IMAGES_OF_TEMPLATE: Column = Column::new("Images", IMAGES_ARE, |object, _| {
    each_text(object, "/template/spec/containers", "/image").into()
});

const DESIRED: Column =
    Column::new("Desired", "How many pods there should be.", |object, _| replicas(object).into()).integer();
const CURRENT: Column = Column::new("Current", "How many pods there are.", |object, _| {
    integer(object, "/status/replicas").into()
})
.integer();
const READY: Column = Column::new("Ready", "How many pods are ready.", |object, _| {
    integer(object, "/status/readyReplicas").into()
})
.integer();
const READY_OF_DESIRED: Column =
    Column::new("Ready", "How many pods are ready, of how many there should be.", |object, _| {
        format!("{}/{}", integer(object, "/status/readyReplicas"), replicas(object)).into()
    });

/// How many pods an object asks for: one, unless it says so.
fn replicas(object: &Json<'_>) -> i64 {
    integer_or(object, "/spec/replicas", 1)
}

static REPLICATION_CONTROLLER: &[Column] = &[
    NAME,
    DESIRED,
    CURRENT,
    READY,
    AGE,
    CONTAINERS,
    IMAGES,
    Column::new("Selector", SELECTOR_IS, |object, _| match count(object, "/spec/selector") {
        0 => labels(object, "/spec/template/metadata/labels").into(),
        _ => labels(object, "/spec/selector").into(),
    })
    .wide(),
];

static REPLICA_SET: &[Column] = &[NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR];

static DEPLOYMENT: &[Column] = &[
    NAME,
    READY_OF_DESIRED,
    Column::new("Up-to-date", "How many pods are of the newest template.", |object, _| {
        integer(object, "/status/updatedReplicas").into()
    }),
    Column::new("Available", "How many pods have been ready for long enough.", |object, _| {
        integer(object, "/status/availableReplicas").into()
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    Column::new("Selector", SELECTOR_IS, |object, _| {
        selector(object, "/spec/selector").unwrap_or_else(|| "<invalid>".to_owned()).into()
    })
    .wide(),
];

static STATEFUL_SET: &[Column] = &[NAME, READY_OF_DESIRED, AGE, CONTAINERS, IMAGES];

static DAEMON_SET: &[Column] = &[
    NAME,
    Column::new("Desired", "How many nodes should run the pod.", |object, _| {
        integer(object, "/status/desiredNumberScheduled").into()
    })
    .integer(),
    Column::new("Current", "How many nodes that should run the pod do.", |object, _| {
        integer(object, "/status/currentNumberScheduled").into()
    })
    .integer(),
    Column::new("Ready", "How many nodes run the pod and it is ready.", |object, _| {
        integer(object, "/status/numberReady").into()
    })
    .integer(),
    Column::new("Up-to-date", "How many nodes run the newest pod.", |object, _| {
        integer(object, "/status/updatedNumberScheduled").into()
    })
    .integer(),
    Column::new("Available", "How many nodes run a pod that has been ready for long enough.", |object, _| {
        integer(object, "/status/numberAvailable").into()
    })
    .integer(),
    Column::new("Node Selector", "The labels of the nodes that run the pod.", |object, _| {
        labels(object, "/spec/template/spec/nodeSelector").into()
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

static CONTROLLER_REVISION: &[Column] = &[
    NAME,
    Column::new("Controller", "What the revision is of.", |object, _| {
        let mut owners = items(object, "/metadata/ownerReferences").iter();
        let Some(owner) = owners.find(|owner| flag(owner, "/controller")) else { return "<none>".into() };
        let group = text(owner, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
        let kind = text(owner, "/kind");
        let of_group = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        format!("{}/{}", of_group.to_lowercase(), text(owner, "/name")).into()
    }),
    Column::new("Revision", "The number of the revision.", |object, _| integer(object, "/revision").into()),
    AGE,
];

static JOB: &[Column] = &[
    NAME,
    Column::new("Status", "How far the job is.", job_status),
    Column::new("Completions", "How many pods succeeded, of how many must.", completions),
    Column::new("Duration", "How long the job took, or takes so far.", |job, row| {
        let Some(start) = duration::time(job, "/status/startTime") else { return "".into() };
        let end = duration::time(job, "/status/completionTime").unwrap_or(row.now);
        duration::human(end.duration_since(start)).into()
    })
    .aging(),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn job_status(job: &Json<'_>, _: &Row) -> Value {
    let has = |r#type| has_condition(job, r#type);
    match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if is_terminating(job) => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
    .into()
}

fn completions(job: &Json<'_>, _: &Row) -> Value {
    let succeeded = integer(job, "/status/succeeded");
    if is_set(job, "/spec/completions") {
        return format!("{succeeded}/{}", integer(job, "/spec/completions")).into();
    }
    match integer(job, "/spec/parallelism") {
        ..=1 => format!("{succeeded}/1"),
        parallelism => format!("{succeeded}/1 of {parallelism}"),
    }
    .into()
}

static CRON_JOB: &[Column] = &[
    NAME,
    Column::new("Schedule", "When jobs start.", |object, _| text(object, "/spec/schedule").into()),
    Column::new("Timezone", "The time zone of the schedule.", |object, _| {
        text_or(object, "/spec/timeZone", "<none>").into()
    }),
    Column::new("Suspend", "Whether no job starts for now.", |object, _| {
        if flag(object, "/spec/suspend") { "True".into() } else { "False".into() }
    })
    .boolean(),
    Column::new("Active", "How many jobs run.", |object, _| count(object, "/status/active").into()).integer(),
    Column::new("Last Schedule", "How long ago a job started.", |object, row| {
        match is_set(object, "/status/lastScheduleTime") {
            true => duration::since(object, "/status/lastScheduleTime", row.now).into(),
            false => "<none>".into(),
        }
    })
    .aging(),
    AGE,
    Column::new("Containers", CONTAINERS_ARE, |object, _| {
        each_text(object, "/spec/jobTemplate/spec/template/spec/containers", "/name").into()
    })
    .wide(),
    Column::new("Images", IMAGES_ARE, |object, _| {
        each_text(object, "/spec/jobTemplate/spec/template/spec/containers", "/image").into()
    })
    .wide(),
    Column::new("Selector", SELECTOR_IS, |object, _| {
        selector_or_none(object, "/spec/jobTemplate/spec/selector").into()
    })
    .wide(),
];
