use super::*;

/// What a template of pods and a selector look like in all kinds that have them.
fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "a", "image": "i:1" }, { "name": "b", "image": "j" }] },
    })
}

fn selector() -> Value {
    json!({
        "matchLabels": { "app": "web" },
        "matchExpressions": [
            { "key": "tier", "operator": "In", "values": ["y", "x"] },
            { "key": "old", "operator": "DoesNotExist" },
        ],
    })
}

const SELECTED: &str = "app=web,!old,tier in (x,y)";

pub(super) fn cases() -> Vec<Case> {
    [replicas(), jobs(), autoscalers(), vec![revision()]].into_iter().flatten().collect()
}

fn replicas() -> Vec<Case> {
    let status = json!({ "replicas": 3, "readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 0 });
    let spec = json!({ "replicas": 4, "template": template(), "selector": selector() });
    let full = object("a", json!({ "spec": spec, "status": status }));
    let controller_spec =
        json!({ "replicas": 4, "template": template(), "selector": { "b": "2", "a": "1" } });
    let controller = object("a", json!({ "spec": controller_spec, "status": status }));
    let bad_selector = json!({ "matchExpressions": [{ "key": "a", "operator": "Near" }] });
    let invalid = object("a", json!({ "spec": { "selector": bad_selector } }));
    let empty = json!({});
    let daemon = object(
        "a",
        json!({
            "spec": {
                "selector": selector(),
                "template": { "spec": {
                    "nodeSelector": { "disk": "ssd" },
                    "containers": [{ "name": "a", "image": "i:1" }],
                } },
            },
            "status": {
                "desiredNumberScheduled": 5,
                "currentNumberScheduled": 4,
                "numberReady": 3,
                "updatedNumberScheduled": 2,
                "numberAvailable": 1,
            },
        }),
    );
    let replicated =
        "Name/name, Desired#integer, Current#integer, Ready#integer, Age, Containers+, Images+, Selector+";
    vec![
        Case {
            group: "apps",
            plural: "deployments",
            header: "Name/name, Ready, Up-to-date, Available, Age, Containers+, Images+, Selector+",
            rows: vec![
                (full.clone(), json!(["a", "2/4", 1, 0, "5m", "a,b", "i:1,j", SELECTED])),
                (empty.clone(), json!(["", "0/1", 0, 0, "<unknown>", "", "", ""])),
                (invalid.clone(), json!(["a", "0/1", 0, 0, "5m", "", "", "<invalid>"])),
            ],
        },
        Case {
            group: "apps",
            plural: "replicasets",
            header: replicated,
            rows: vec![
                (full.clone(), json!(["a", 4, 3, 2, "5m", "a,b", "i:1,j", SELECTED])),
                (empty.clone(), json!(["", 1, 0, 0, "<unknown>", "", "", "<none>"])),
                (invalid, json!(["a", 1, 0, 0, "5m", "", "", "<error>"])),
            ],
        },
        Case {
            group: "",
            plural: "replicationcontrollers",
            header: replicated,
            rows: vec![
                (controller, json!(["a", 4, 3, 2, "5m", "a,b", "i:1,j", "a=1,b=2"])),
                (
                    object("a", json!({ "spec": { "template": template() } })),
                    json!(["a", 1, 0, 0, "5m", "a,b", "i:1,j", "app=web"]),
                ),
                (empty.clone(), json!(["", 1, 0, 0, "<unknown>", "", "", "<none>"])),
            ],
        },
        Case {
            group: "apps",
            plural: "statefulsets",
            header: "Name/name, Ready, Age, Containers+, Images+",
            rows: vec![
                (full, json!(["a", "2/4", "5m", "a,b", "i:1,j"])),
                (empty.clone(), json!(["", "0/1", "<unknown>", "", ""])),
            ],
        },
        Case {
            group: "apps",
            plural: "daemonsets",
            header: "Name/name, Desired#integer, Current#integer, Ready#integer, Up-to-date#integer, \
                     Available#integer, Node Selector, Age, Containers+, Images+, Selector+",
            rows: vec![
                (daemon, json!(["a", 5, 4, 3, 2, 1, "disk=ssd", "5m", "a", "i:1", SELECTED])),
                (empty, json!(["", 0, 0, 0, 0, 0, "<none>", "<unknown>", "", "", "<none>"])),
            ],
        },
    ]
}

fn jobs() -> Vec<Case> {
    let job = |spec: Value, status: Value| {
        let mut job = object("a", json!({ "spec": spec, "status": status }));
        job["spec"]["template"] = template();
        job["spec"]["selector"] = selector();
        job
    };
    let row = |status: &str, completions: &str, took: &str| {
        json!(["a", status, completions, took, "5m", "a,b", "i:1,j", SELECTED])
    };
    let condition = |r#type: &str| json!({ "conditions": [{ "type": r#type, "status": "True" }] });
    let done = json!({
        "succeeded": 3,
        "startTime": ago(200),
        "completionTime": ago(80),
        "conditions": [{ "type": "SuccessCriteriaMet", "status": "True" }, { "type": "Complete", "status": "True" }],
    });
    let mut deleted = job(json!({}), condition("Suspended"));
    deleted["metadata"]["deletionTimestamp"] = ago(1).into();
    let cron_job = object(
        "a",
        json!({
            "spec": {
                "schedule": "0/5 * * * ?",
                "timeZone": "Europe/Berlin",
                "suspend": true,
                "jobTemplate": { "spec": { "template": template(), "selector": selector() } },
            },
            "status": { "active": [{}, {}], "lastScheduleTime": ago(130) },
        }),
    );
    vec![
        Case {
            group: "batch",
            plural: "jobs",
            header: "Name/name, Status, Completions, Duration, Age, Containers+, Images+, Selector+",
            rows: vec![
                (job(json!({ "completions": 3 }), done), row("Complete", "3/3", "2m")),
                (job(json!({}), json!({ "startTime": ago(75) })), row("Running", "0/1", "75s")),
                (job(json!({ "parallelism": 1 }), json!({ "succeeded": 1 })), row("Running", "1/1", "")),
                (job(json!({ "parallelism": 4 }), condition("Failed")), row("Failed", "0/1 of 4", "")),
                (job(json!({ "completions": 0 }), condition("Suspended")), row("Suspended", "0/0", "")),
                (job(json!({}), condition("FailureTarget")), row("FailureTarget", "0/1", "")),
                (job(json!({}), condition("SuccessCriteriaMet")), row("SuccessCriteriaMet", "0/1", "")),
                (deleted, row("Terminating", "0/1", "")),
                (json!({}), json!(["", "Running", "0/1", "", "<unknown>", "", "", "<none>"])),
            ],
        },
        Case {
            group: "batch",
            plural: "cronjobs",
            header: "Name/name, Schedule, Timezone, Suspend#boolean, Active#integer, Last Schedule, Age, \
                     Containers+, Images+, Selector+",
            rows: vec![
                (
                    cron_job,
                    json!([
                        "a",
                        "0/5 * * * ?",
                        "Europe/Berlin",
                        "True",
                        2,
                        "2m10s",
                        "5m",
                        "a,b",
                        "i:1,j",
                        SELECTED
                    ]),
                ),
                (json!({}), json!(["", "", "<none>", "False", 0, "<none>", "<unknown>", "", "", "<none>"])),
            ],
        },
    ]
}

fn revision() -> Case {
    let owned = |api_version: &str| {
        let owners = json!([
            { "apiVersion": "v1", "kind": "Other", "name": "o" },
            { "apiVersion": api_version, "kind": "StatefulSet", "name": "db", "controller": true },
        ]);
        object("a", json!({ "metadata": { "ownerReferences": owners }, "revision": 7 }))
    };
    Case {
        group: "apps",
        plural: "controllerrevisions",
        header: "Name/name, Controller, Revision, Age",
        rows: vec![
            (owned("apps/v1"), json!(["a", "statefulset.apps/db", 7, "5m"])),
            (owned("v1"), json!(["a", "statefulset/db", 7, "5m"])),
            (json!({}), json!(["", "<none>", 0, "<unknown>"])),
        ],
    }
}

fn autoscalers() -> Vec<Case> {
    let scaler = |metrics: Value, current: Value| {
        let target = json!({ "kind": "Deployment", "name": "web" });
        let spec =
            json!({ "scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 9, "metrics": metrics });
        object("a", json!({ "spec": spec, "status": { "currentReplicas": 4, "currentMetrics": current } }))
    };
    let row = |targets: &str| json!(["a", "Deployment/web", targets, "2", 9, 4, "5m"]);
    let metric = |r#type: &str, field: &str, target: Value| json!({ "type": r#type, field: { "name": "cpu", "target": target } });
    let current = |field: &str, current: Value| json!([{ field: { "name": "cpu", "current": current } }]);
    let cpu = || metric("Resource", "resource", json!({ "averageUtilization": 80 }));
    let disk = || metric("ContainerResource", "containerResource", json!({ "averageValue": "1024Mi" }));
    let value = || json!({ "value": "2000m" });
    let average = || json!({ "averageValue": "500m" });
    let by_type = [
        (cpu(), json!([]), "cpu: <unknown>/80%"),
        (cpu(), current("resource", json!({ "averageUtilization": 65 })), "cpu: 65%/80%"),
        (cpu(), current("resource", json!({})), "cpu: <unknown>/80%"),
        (metric("Resource", "resource", json!({})), json!([]), "cpu: <unknown>/<auto>"),
        (metric("Resource", "resource", average()), current("resource", average()), "cpu: 500m/500m"),
        (disk(), json!([]), "cpu: <unknown>/1Gi"),
        (disk(), current("containerResource", json!({})), "cpu: <nil>/1Gi"),
        (metric("Pods", "pods", average()), current("pods", average()), "500m/500m"),
        (metric("Pods", "pods", average()), json!([]), "<unknown>/500m"),
        (metric("Object", "object", value()), current("object", value()), "2/2"),
        (metric("Object", "object", average()), current("object", value()), "<unknown>/500m (avg)"),
        (metric("External", "external", average()), current("external", average()), "500m/500m (avg)"),
        (metric("External", "external", value()), json!([]), "<unknown>/2"),
        (metric("Sun", "sun", value()), json!([]), "<unknown type>"),
    ];
    let mut rows: Vec<(Value, Value)> = by_type
        .into_iter()
        .map(|(metric, current, shown)| (scaler(json!([metric]), current), row(shown)))
        .collect();
    rows.push((scaler(json!([]), json!([])), row("<none>")));
    rows.push((scaler(json!([cpu(), disk()]), json!([])), row("cpu: <unknown>/80%, cpu: <unknown>/1Gi")));
    let many = scaler(json!([cpu(), disk(), cpu(), cpu()]), json!([]));
    rows.push((many, row("cpu: <unknown>/80%, cpu: <unknown>/1Gi + 2 more...")));
    let mut version_1 = scaler(Value::Null, Value::Null);
    version_1["spec"]["targetCPUUtilizationPercentage"] = 75.into();
    rows.push((version_1.clone(), row("cpu: <unknown>/75%")));
    version_1["status"]["currentCPUUtilizationPercentage"] = 60.into();
    rows.push((version_1, row("cpu: 60%/75%")));
    rows.push((json!({}), json!(["", "/", "<none>", "1", 0, 0, "<unknown>"])));
    let budget = |spec: Value| object("a", json!({ "spec": spec, "status": { "disruptionsAllowed": 5 } }));
    vec![
        Case {
            group: "autoscaling",
            plural: "horizontalpodautoscalers",
            header: "Name/name, Reference, Targets, MinPods, MaxPods, Replicas, Age",
            rows,
        },
        Case {
            group: "policy",
            plural: "poddisruptionbudgets",
            header: "Name/name, Min Available, Max Unavailable, Allowed Disruptions#integer, Age",
            rows: vec![
                (budget(json!({ "minAvailable": 22 })), json!(["a", "22", "N/A", 5, "5m"])),
                (budget(json!({ "maxUnavailable": "50%" })), json!(["a", "N/A", "50%", 5, "5m"])),
                (json!({}), json!(["", "N/A", "N/A", 0, "<unknown>"])),
            ],
        },
    ]
}
