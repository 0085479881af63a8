//! Pods: how far their containers are, in one word.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::json::Json;

use super::{
    AGE, Column, NAME, Row, duration,
    fields::{filled_or, flag, has_condition, integer, is_set, is_terminating, items, labels, text},
    workloads::{CONTAINERS_OF_TEMPLATE, IMAGES_OF_TEMPLATE},
};

pub(super) fn columns(group: &str, plural: &str) -> Option<&'static [Column]> {
    match (group, plural) {
        ("", "pods") => Some(POD),
        ("", "podtemplates") => Some(TEMPLATE),
        _ => None,
    }
}

pub(super) static POD: &[Column] = &[
    NAME,
    Column::new("Ready", "How many of the containers are ready.", |pod, row| {
        let summary = summary(pod, row);
        format!("{}/{}", summary.ready, summary.containers).into()
    }),
    Column::new("Status", "What the containers are doing, in one word.", |pod, row| {
        summary(pod, row).reason.as_str().into()
    }),
    Column::new("Restarts", "How often containers were restarted, and when last.", |pod, row| {
        let restarts = &summary(pod, row).restarts;
        match restarts.last {
            Some(last) if restarts.count != 0 => {
                let ago = duration::human(row.now.duration_since(last));
                format!("{} ({ago} ago)", restarts.count).into()
            }
            _ => restarts.count.to_string().into(),
        }
    })
    .aging(),
    AGE,
    Column::new("IP", "The first address of the pod.", |pod, _| {
        let first = filled_or(pod, "/status/podIPs/0/ip", text(pod, "/status/podIP"));
        if first.is_empty() { "<none>".into() } else { first.into() }
    })
    .wide(),
    Column::new("Node", "The node that runs the pod.", |pod, _| {
        filled_or(pod, "/spec/nodeName", "<none>").into()
    })
    .wide(),
    Column::new("Nominated Node", "The node that makes room for the pod.", |pod, _| {
        filled_or(pod, "/status/nominatedNodeName", "<none>").into()
    })
    .wide(),
    Column::new("Readiness Gates", "How many of the extra conditions for readiness hold.", |pod, _| {
        let gates = items(pod, "/spec/readinessGates");
        if gates.is_empty() {
            return "<none>".into();
        }
        let open = gates.iter().filter(|gate| has_condition(pod, text(gate, "/conditionType"))).count();
        format!("{open}/{}", gates.len()).into()
    })
    .wide(),
];

static TEMPLATE: &[Column] = &[
    NAME,
    CONTAINERS_OF_TEMPLATE,
    IMAGES_OF_TEMPLATE,
    Column::new("Pod Labels", "The labels of the template.", |template, _| {
        labels(template, "/template/metadata/labels").into()
    }),
];

/// The mark on the row of a pod that ran to its end.
pub(super) fn row_conditions(pod: &Json<'_>) -> Option<Value> {
    let phase = text(pod, "/status/phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{ "type": "Completed", "status": "True", "reason": phase, "message": message }]))
}

/// What the columns of a pod tell together.
#[derive(Debug)]
pub(super) struct Summary {
    ready: usize,
    /// Sidecars count as containers; init containers that end do not.
    containers: usize,
    reason: String,
    restarts: Restarts,
}

#[derive(Debug, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Json<'_>) {
        self.count = self.count.saturating_add(integer(status, "/restartCount"));
        self.last = self.last.max(duration::time(status, "/lastState/terminated/finishedAt"));
    }
}

fn summary<'r>(pod: &Json<'_>, row: &'r Row) -> &'r Summary {
    row.pod.get_or_init(|| Summary::of(pod))
}

/// How far the init containers are.
struct Initialization {
    /// What the first init container that is not done is doing.
    reason: Option<String>,
    ready_sidecars: usize,
    restarts: Restarts,
    sidecar_restarts: Restarts,
}

impl Summary {
    fn of(pod: &Json<'_>) -> Self {
        let init = Initialization::of(pod);
        let sidecars = items(pod, "/spec/initContainers").iter().filter(|spec| is_sidecar(spec)).count();
        let mut summary = Self {
            ready: init.ready_sidecars,
            containers: items(pod, "/spec/containers").len() + sidecars,
            reason: String::new(),
            restarts: init.restarts,
        };
        let initializing = init.reason.is_some();
        let mut reason = init.reason.unwrap_or_else(|| pod_reason(pod).to_owned());
        if !initializing || has_condition(pod, "Initialized") {
            summary.restarts = init.sidecar_restarts;
            reason = summary.add_containers(pod, reason);
        }
        summary.reason = match is_terminating(pod) {
            true if text(pod, "/status/reason") == "NodeLost" => "Unknown".to_owned(),
            true if !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") => "Terminating".to_owned(),
            _ => reason,
        };
        summary
    }

    /// Counts the main containers and gives the reason of the first that has one to tell.
    fn add_containers(&mut self, pod: &Json<'_>, mut reason: String) -> String {
        let mut running = false;
        let mut error = None;
        for status in items(pod, "/status/containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = text(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut reason);
            } else if is_set(status, "/state/terminated") {
                reason = end_reason(status);
                if integer(status, "/state/terminated/exitCode") != 0 {
                    error = Some(reason.clone());
                }
            } else if flag(status, "/ready") && is_set(status, "/state/running") {
                running = true;
                self.ready += 1;
            }
        }
        // One container that is done does not make the pod done.
        match (reason.as_str(), error) {
            ("Completed", _) if running && has_condition(pod, "Ready") => "Running".to_owned(),
            ("Completed", Some(error)) => error,
            ("Completed", None) if running => "NotReady".to_owned(),
            _ => reason,
        }
    }
}

impl Initialization {
    fn of(pod: &Json<'_>) -> Self {
        let (mut restarts, mut sidecar_restarts) = (Restarts::default(), Restarts::default());
        let mut ready_sidecars = 0;
        let specs = items(pod, "/spec/initContainers");
        let mut reason = None;
        for (index, status) in items(pod, "/status/initContainerStatuses").iter().enumerate() {
            let name = text(status, "/name");
            // Of several containers with one name, which no server accepts, the last counts.
            let spec = specs.iter().rev().find(|spec| text(spec, "/name") == name);
            let sidecar = spec.is_some_and(is_sidecar);
            restarts.add(status);
            if sidecar {
                sidecar_restarts.add(status);
            }
            let ended = is_set(status, "/state/terminated");
            if ended && integer(status, "/state/terminated/exitCode") == 0 {
                continue;
            }
            if sidecar && flag(status, "/started") {
                ready_sidecars += usize::from(flag(status, "/ready"));
                continue;
            }
            reason = Some(match text(status, "/state/waiting/reason") {
                _ if ended => format!("Init:{}", end_reason(status)),
                "" | "PodInitializing" => format!("Init:{index}/{}", specs.len()),
                waiting => format!("Init:{waiting}"),
            });
            break;
        }
        Self { reason, ready_sidecars, restarts, sidecar_restarts }
    }
}

/// What the pod as a whole says about itself.
fn pod_reason<'v>(pod: &'v Json<'_>) -> &'v str {
    let is_gated = |condition: &&Json<'_>| {
        text(condition, "/type") == "PodScheduled" && text(condition, "/reason") == "SchedulingGated"
    };
    match items(pod, "/status/conditions").iter().find(is_gated) {
        Some(_) => "SchedulingGated",
        None => filled_or(pod, "/status/reason", text(pod, "/status/phase")),
    }
}

/// Why a container ended.
fn end_reason(status: &Json<'_>) -> String {
    let reason = text(status, "/state/terminated/reason");
    match integer(status, "/state/terminated/signal") {
        _ if !reason.is_empty() => reason.to_owned(),
        0 => format!("ExitCode:{}", integer(status, "/state/terminated/exitCode")),
        signal => format!("Signal:{signal}"),
    }
}

/// Whether an init container is one that keeps running beside the others.
fn is_sidecar(container: &Json<'_>) -> bool {
    text(container, "/restartPolicy") == "Always"
}
