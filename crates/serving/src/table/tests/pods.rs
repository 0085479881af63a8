use super::*;

pub(super) fn cases() -> Vec<Case> {
    let pod = object(
        "web",
        json!({
            "spec": {
                "nodeName": "n1",
                "containers": [{ "name": "a" }, { "name": "b" }],
                "readinessGates": [{ "conditionType": "x/up" }, { "conditionType": "x/warm" }],
            },
            "status": {
                "phase": "Running",
                "podIP": "10.0.0.1",
                "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "fd00::1" }],
                "nominatedNodeName": "n2",
                "conditions": [
                    { "type": "Ready", "status": "True" },
                    { "type": "x/up", "status": "True" },
                    { "type": "x/warm", "status": "False" },
                ],
                "containerStatuses": [
                    { "name": "a", "ready": true, "restartCount": 2, "state": { "running": {} },
                      "lastState": { "terminated": { "exitCode": 1, "finishedAt": ago(600) } } },
                    { "name": "b", "ready": false, "restartCount": 1, "state": { "running": {} },
                      "lastState": { "terminated": { "exitCode": 1, "finishedAt": ago(240) } } },
                ],
            },
        }),
    );
    let template = object(
        "t",
        json!({ "template": {
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "a", "image": "i:1" }, { "name": "b", "image": "j" }] },
        } }),
    );
    vec![
        Case {
            group: "",
            plural: "pods",
            header: "Name/name, Ready, Status, Restarts, Age, IP+, Node+, Nominated Node+, Readiness Gates+",
            rows: vec![
                (pod, json!(["web", "1/2", "Running", "3 (4m ago)", "5m", "10.0.0.1", "n1", "n2", "1/2"])),
                (json!({}), json!(["", "0/0", "", "0", "<unknown>", "<none>", "<none>", "<none>", "<none>"])),
                (
                    object("x", json!({ "status": { "phase": "Pending", "podIP": "10.0.0.2" } })),
                    json!(["x", "0/0", "Pending", "0", "5m", "10.0.0.2", "<none>", "<none>", "<none>"]),
                ),
            ],
        },
        Case {
            group: "",
            plural: "podtemplates",
            header: "Name/name, Containers, Images, Pod Labels",
            rows: vec![(template, json!(["t", "a,b", "i:1,j", "app=web"]))],
        },
    ]
}

/// A pod with two init containers and two containers, of which each has a state.
struct Pod {
    phase: &'static str,
    reason: &'static str,
    conditions: Value,
    init: Vec<Value>,
    containers: Vec<Value>,
    sidecar: bool,
    deleted: bool,
}

fn pod() -> Pod {
    let conditions = json!([]);
    let (init, containers) = (Vec::new(), Vec::new());
    Pod { phase: "Running", reason: "", conditions, init, containers, sidecar: false, deleted: false }
}

impl Pod {
    fn object(self) -> Value {
        let name = |prefix: &str, statuses: Vec<Value>| -> Vec<Value> {
            let mut statuses = statuses;
            for (index, status) in statuses.iter_mut().enumerate() {
                status["name"] = format!("{prefix}{index}").into();
            }
            statuses
        };
        let policy = if self.sidecar { json!("Always") } else { Value::Null };
        let mut pod = object(
            "p",
            json!({
                "spec": {
                    "initContainers": [{ "name": "i0", "restartPolicy": policy }, { "name": "i1" }],
                    "containers": [{ "name": "c0" }, { "name": "c1" }],
                },
                "status": {
                    "phase": self.phase,
                    "reason": self.reason,
                    "conditions": self.conditions,
                    "initContainerStatuses": name("i", self.init),
                    "containerStatuses": name("c", self.containers),
                },
            }),
        );
        if self.deleted {
            pod["metadata"]["deletionTimestamp"] = ago(10).into();
        }
        pod
    }
}

fn running() -> Value {
    json!({ "state": { "running": {} }, "ready": true, "started": true })
}

fn waiting(reason: &str) -> Value {
    json!({ "state": { "waiting": { "reason": reason } } })
}

/// A container that ended with a code, a signal and a reason.
fn ended(code: i64, signal: i64, reason: &str) -> Value {
    json!({ "state": { "terminated": { "exitCode": code, "signal": signal, "reason": reason } } })
}

/// A container that was started again so often, last so many seconds ago.
fn restarted(mut status: Value, count: i64, seconds: i64) -> Value {
    status["restartCount"] = count.into();
    status["lastState"] = json!({ "terminated": { "exitCode": 1, "finishedAt": ago(seconds) } });
    status
}

fn condition(r#type: &str, status: &str, reason: &str) -> Value {
    json!({ "type": r#type, "status": status, "reason": reason })
}

/// READY, STATUS and RESTARTS.
fn summary(pod: Pod) -> String {
    let cells = cells(&Columns::of("", "pods"), &pod.object(), now());
    cells[1..4].iter().map(|cell| cell.as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_pod_that_is_as_it_says_shows_its_phase_or_reason() {
    assert_eq!(summary(Pod { phase: "Pending", ..pod() }), "0/2 Pending 0");
    assert_eq!(summary(Pod { phase: "Failed", reason: "Evicted", ..pod() }), "0/2 Evicted 0");
    let gated = json!([condition("PodScheduled", "False", "SchedulingGated")]);
    assert_eq!(summary(Pod { phase: "Pending", conditions: gated, ..pod() }), "0/2 SchedulingGated 0");
    let not_gated = json!([condition("PodScheduled", "False", "Unschedulable")]);
    assert_eq!(summary(Pod { phase: "Pending", conditions: not_gated, ..pod() }), "0/2 Pending 0");
}

#[test]
fn a_pod_that_is_initializing_shows_the_first_init_container_that_is_not_done() {
    let init = |init| summary(Pod { phase: "Pending", init, ..pod() });
    assert_eq!(init(vec![running(), waiting("")]), "0/2 Init:0/2 0");
    assert_eq!(init(vec![waiting("PodInitializing")]), "0/2 Init:0/2 0");
    assert_eq!(init(vec![ended(0, 0, "Completed"), running()]), "0/2 Init:1/2 0");
    assert_eq!(init(vec![ended(1, 0, "Error"), waiting("")]), "0/2 Init:Error 0");
    assert_eq!(init(vec![ended(7, 0, "")]), "0/2 Init:ExitCode:7 0");
    assert_eq!(init(vec![ended(7, 9, "")]), "0/2 Init:Signal:9 0");
    let failing = restarted(waiting("CrashLoopBackOff"), 3, 90);
    assert_eq!(init(vec![failing]), "0/2 Init:CrashLoopBackOff 3 (90s ago)");
    // Restarts while initializing are those of init containers up to the one that is not done.
    let counted = vec![restarted(ended(0, 0, ""), 2, 500), restarted(running(), 1, 400)];
    assert_eq!(init(counted), "0/2 Init:1/2 3 (6m40s ago)");
    assert_eq!(
        init(vec![restarted(running(), 1, 400), restarted(waiting(""), 5, 1)]),
        "0/2 Init:0/2 1 (6m40s ago)"
    );
}

#[test]
fn a_pod_that_is_initialized_forgets_the_restarts_of_init_containers() {
    let init = vec![restarted(ended(0, 0, ""), 5, 60), ended(0, 0, "")];
    let containers = vec![running(), restarted(running(), 1, 30)];
    assert_eq!(summary(Pod { init, containers, ..pod() }), "2/2 Running 1 (30s ago)");
    // The condition goes before what an init container that runs again tells.
    let conditions = json!([condition("Initialized", "True", "")]);
    let containers = vec![running(), waiting("CrashLoopBackOff")];
    assert_eq!(
        summary(Pod { conditions, init: vec![running()], containers, ..pod() }),
        "1/2 CrashLoopBackOff 0"
    );
}

#[test]
fn a_sidecar_is_a_container_that_starts_first() {
    let sidecar = || Pod { sidecar: true, ..pod() };
    let started = || restarted(running(), 2, 45);
    let init = vec![started(), ended(0, 0, "")];
    assert_eq!(
        summary(Pod { init, containers: vec![running(), running()], ..sidecar() }),
        "3/3 Running 2 (45s ago)"
    );
    assert_eq!(summary(Pod { init: vec![started(), running()], ..sidecar() }), "1/3 Init:1/2 2 (45s ago)");
    let mut unready = started();
    unready["ready"] = false.into();
    assert_eq!(summary(Pod { init: vec![unready, waiting("")], ..sidecar() }), "0/3 Init:1/2 2 (45s ago)");
    let mut starting = running();
    starting["started"] = false.into();
    assert_eq!(summary(Pod { init: vec![starting, waiting("")], ..sidecar() }), "0/3 Init:0/2 0");
}

#[test]
fn a_pod_that_runs_shows_what_its_first_container_has_to_tell() {
    let containers = |containers| summary(Pod { containers, ..pod() });
    assert_eq!(containers(vec![running(), running()]), "2/2 Running 0");
    assert_eq!(
        containers(vec![waiting("ImagePullBackOff"), waiting("ErrImagePull")]),
        "0/2 ImagePullBackOff 0"
    );
    assert_eq!(containers(vec![running(), waiting("CrashLoopBackOff")]), "1/2 CrashLoopBackOff 0");
    assert_eq!(containers(vec![ended(1, 0, "OOMKilled"), running()]), "1/2 OOMKilled 0");
    assert_eq!(containers(vec![ended(3, 0, ""), running()]), "1/2 ExitCode:3 0");
    assert_eq!(containers(vec![ended(137, 9, ""), running()]), "1/2 Signal:9 0");
    // Without a time the count stands alone.
    let mut counted = running();
    counted["restartCount"] = 4.into();
    assert_eq!(containers(vec![counted]), "1/2 Running 4");
    assert_eq!(containers(vec![restarted(running(), 0, 60)]), "1/2 Running 0");
}

#[test]
fn one_container_that_is_done_does_not_make_the_pod_completed() {
    let done = || ended(0, 0, "Completed");
    let containers = |phase, containers, conditions| summary(Pod { phase, containers, conditions, ..pod() });
    let ready = || json!([condition("Ready", "True", "")]);
    assert_eq!(containers("Succeeded", vec![done(), done()], json!([])), "0/2 Completed 0");
    assert_eq!(containers("Running", vec![done(), running()], ready()), "1/2 Running 0");
    assert_eq!(containers("Running", vec![done(), running()], json!([])), "1/2 NotReady 0");
    assert_eq!(containers("Failed", vec![done(), ended(1, 0, "Error")], json!([])), "0/2 Error 0");
}

#[test]
fn a_deleted_pod_is_terminating_unless_it_is_done_or_lost() {
    let deleted =
        |phase, reason, containers| summary(Pod { phase, reason, containers, deleted: true, ..pod() });
    assert_eq!(deleted("Running", "", vec![running(), running()]), "2/2 Terminating 0");
    assert_eq!(deleted("Running", "NodeLost", vec![running(), running()]), "2/2 Unknown 0");
    assert_eq!(deleted("Succeeded", "", vec![ended(0, 0, "Completed")]), "0/2 Completed 0");
    assert_eq!(deleted("Failed", "", vec![ended(1, 0, "Error")]), "0/2 Error 0");
}

#[test]
fn the_row_of_a_pod_that_ran_to_its_end_is_marked() {
    let row = |group, phase| row(&Columns::of(group, "pods"), &Pod { phase, ..pod() }.object());
    assert_eq!(
        row("", "Succeeded")["conditions"],
        json!([{
            "type": "Completed",
            "status": "True",
            "reason": "Succeeded",
            "message": "The pod has completed successfully.",
        }])
    );
    assert_eq!(row("", "Failed")["conditions"][0]["message"], "The pod failed.");
    assert!(row("", "Running").get("conditions").is_none());
    assert!(row("example.com", "Failed").get("conditions").is_none());
}
