use super::*;

pub(super) fn cases() -> Vec<Case> {
    [vec![nodes()], core(), events(), bindings(), settings(), groups()].into_iter().flatten().collect()
}

fn nodes() -> Case {
    let node = object(
        "n1",
        json!({
            "metadata": { "labels": {
                "node-role.kubernetes.io/worker": "",
                "node-role.kubernetes.io/": "",
                "kubernetes.io/role": "edge",
                "other": "x",
            } },
            "spec": { "unschedulable": true },
            "status": {
                "conditions": [{ "type": "DiskPressure", "status": "False" }, { "type": "Ready", "status": "True" }],
                "addresses": [
                    { "type": "Hostname", "address": "n1" },
                    { "type": "InternalIP", "address": "10.0.0.1" },
                    { "type": "InternalIP", "address": "fd00::1" },
                    { "type": "ExternalIP", "address": "9.9.9.9" },
                ],
                "nodeInfo": {
                    "kubeletVersion": "v1.37.0",
                    "osImage": "Debian",
                    "kernelVersion": "6.12",
                    "containerRuntimeVersion": "containerd://2.1",
                    "architecture": "arm64",
                },
            },
        }),
    );
    let not_ready = json!({ "conditions": [{ "type": "Ready", "status": "Unknown" }] });
    let unknown = ["<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"];
    let row = |first: Value| -> Value {
        first.as_array().unwrap().iter().cloned().chain(unknown.iter().map(|text| json!(text))).collect()
    };
    Case {
        group: "",
        plural: "nodes",
        header: "Name/name, Status, Roles, Age, Version, Internal-IP+, External-IP+, OS-Image+, Kernel-Version+, \
                 Container-Runtime+",
        rows: vec![
            (
                node,
                json!([
                    "n1",
                    "Ready,SchedulingDisabled",
                    "edge,worker",
                    "5m",
                    "v1.37.0",
                    "10.0.0.1",
                    "9.9.9.9",
                    "Debian",
                    "6.12 (arm64)",
                    "containerd://2.1"
                ]),
            ),
            (
                object("n2", json!({ "status": not_ready })),
                row(json!(["n2", "NotReady", "<none>", "5m", ""])),
            ),
            (json!({}), row(json!(["", "Unknown", "<none>", "<unknown>", ""]))),
        ],
    }
}

fn core() -> Vec<Case> {
    let quota = object(
        "a",
        json!({ "status": {
            "hard": { "pods": "10", "limits.cpu": "2", "cpu": "1000m", "limits.memory": "1024Mi", "limits": 1 },
            "used": { "pods": "3", "limits.cpu": "0.5", "cpu": "100m" },
        } }),
    );
    let data = json!({ "data": { "a": "", "b": "" }, "binaryData": { "c": "" } });
    vec![
        Case {
            group: "",
            plural: "namespaces",
            header: "Name/name, Status, Age",
            rows: vec![
                (
                    object("a", json!({ "status": { "phase": "Terminating" } })),
                    json!(["a", "Terminating", "5m"]),
                ),
                (json!({}), json!(["", "Active", "<unknown>"])),
            ],
        },
        Case {
            group: "",
            plural: "configmaps",
            header: "Name/name, Data, Age",
            rows: vec![(object("a", data), json!(["a", 3, "5m"])), (json!({}), json!(["", 0, "<unknown>"]))],
        },
        Case {
            group: "",
            plural: "secrets",
            header: "Name/name, Type, Data, Age",
            rows: vec![
                (
                    object("a", json!({ "type": "kubernetes.io/tls", "data": { "x": "", "y": "" } })),
                    json!(["a", "kubernetes.io/tls", 2, "5m"]),
                ),
                (json!({}), json!(["", "Opaque", 0, "<unknown>"])),
            ],
        },
        Case {
            group: "",
            plural: "serviceaccounts",
            header: "Name/name, Age",
            rows: vec![(object("a", json!({})), json!(["a", "5m"])), (json!({}), json!(["", "<unknown>"]))],
        },
        Case {
            group: "",
            plural: "resourcequotas",
            header: "Name/name, Request, Limit, Age",
            rows: vec![
                (
                    quota,
                    json!([
                        "a",
                        "cpu: 100m/1, limits: 0/1, pods: 3/10",
                        "limits.cpu: 500m/2, limits.memory: 0/1Gi",
                        "5m"
                    ]),
                ),
                (json!({}), json!(["", "", "", "<unknown>"])),
            ],
        },
    ]
}

fn events() -> Vec<Case> {
    let header =
        "Last Seen, Type, Reason, Object, Subobject+, Source+, Message, First Seen+, Count+, Name/name+";
    let about = json!({ "kind": "Pod", "name": "web", "fieldPath": "spec.containers{a}" });
    let core = object(
        "e",
        json!({
            "type": "Warning",
            "reason": "BackOff",
            "message": " it failed\n",
            "involvedObject": about,
            "source": { "component": "kubelet", "host": "n1" },
            "firstTimestamp": ago(600),
            "lastTimestamp": ago(30),
            "count": 6,
        }),
    );
    let series = object(
        "e",
        json!({
            "involvedObject": { "kind": "Node" },
            "reportingComponent": "scheduler",
            "eventTime": ago(200),
            "series": { "count": 9, "lastObservedTime": ago(20) },
        }),
    );
    let single =
        object("e", json!({ "eventTime": ago(45), "reportingInstance": "i", "lastTimestamp": null }));
    let newer = object(
        "e",
        json!({
            "type": "Normal",
            "reason": "Pulled",
            "note": "done",
            "regarding": about,
            "reportingController": "kubelet",
            "reportingInstance": "n1",
            "eventTime": ago(90),
        }),
    );
    let deprecated = object(
        "e",
        json!({
            "regarding": about,
            "deprecatedSource": { "component": "kubelet", "host": "n2" },
            "deprecatedFirstTimestamp": ago(600),
            "deprecatedLastTimestamp": ago(30),
            "deprecatedCount": 4,
        }),
    );
    vec![
        Case {
            group: "",
            plural: "events",
            header,
            rows: vec![
                (
                    core,
                    json!([
                        "30s",
                        "Warning",
                        "BackOff",
                        "pod/web",
                        "spec.containers{a}",
                        "kubelet, n1",
                        "it failed",
                        "10m",
                        6,
                        "e"
                    ]),
                ),
                (series, json!(["20s", "", "", "node", "", "scheduler", "", "3m20s", 9, "e"])),
                (single, json!(["45s", "", "", "", "", ", i", "", "45s", 1, "e"])),
                (json!({}), json!(["<unknown>", "", "", "", "", "", "", "<unknown>", 1, ""])),
            ],
        },
        Case {
            group: "events.k8s.io",
            plural: "events",
            header,
            rows: vec![
                (
                    newer,
                    json!([
                        "90s",
                        "Normal",
                        "Pulled",
                        "pod/web",
                        "spec.containers{a}",
                        "kubelet, n1",
                        "done",
                        "90s",
                        1,
                        "e"
                    ]),
                ),
                (
                    deprecated,
                    json!(["30s", "", "", "pod/web", "spec.containers{a}", "kubelet, n2", "", "10m", 4, "e"]),
                ),
            ],
        },
    ]
}

fn bindings() -> Vec<Case> {
    let subjects = json!([
        { "kind": "User", "name": "u1" },
        { "kind": "Group", "name": "g" },
        { "kind": "ServiceAccount", "name": "s", "namespace": "n" },
        { "kind": "ServiceAccount", "name": "t" },
        { "kind": "User", "name": "u2" },
        { "kind": "Other", "name": "o" },
    ]);
    ["rolebindings", "clusterrolebindings"]
        .into_iter()
        .map(|plural| Case {
            group: "rbac.authorization.k8s.io",
            plural,
            header: "Name/name, Role, Age, Users+, Groups+, ServiceAccounts+",
            rows: vec![
                (
                    object("a", json!({ "roleRef": { "kind": "Role", "name": "r" }, "subjects": subjects })),
                    json!(["a", "Role/r", "5m", "u1, u2", "g", "n/s, t"]),
                ),
                (json!({}), json!(["", "/", "<unknown>", "", "", ""])),
            ],
        })
        .collect()
}

fn settings() -> Vec<Case> {
    let component = |status: &str| {
        let conditions = json!([{ "type": "Healthy", "status": status, "message": "ok" }]);
        object("a", json!({ "conditions": conditions }))
    };
    let servers = vec![json!({ "apiServerID": "s", "encodingVersion": "v1" }); 4];
    let migration = object(
        "a",
        json!({
            "spec": { "resource": { "group": "apps", "resource": "deployments" } },
            "status": { "conditions": [
                { "type": "Running", "status": "False" },
                { "type": "Succeeded", "status": "True" },
                { "type": "Other", "status": "True" },
            ] },
        }),
    );
    let candidate = json!({ "leaseName": "l", "binaryVersion": "1.37.0", "emulationVersion": "1.36.0" });
    vec![
        Case {
            group: "coordination.k8s.io",
            plural: "leases",
            header: "Name/name, Holder, Age",
            rows: vec![
                (object("a", json!({ "spec": { "holderIdentity": "me" } })), json!(["a", "me", "5m"])),
                (json!({}), json!(["", "", "<unknown>"])),
            ],
        },
        Case {
            group: "apiregistration.k8s.io",
            plural: "apiservices",
            header: "Name/name, Service, Available, Age",
            rows: vec![
                (object("v1.", json!({ "spec": {} })), json!(["v1.", "Local", "Unknown", "5m"])),
                (
                    object(
                        "v1.x",
                        json!({
                            "spec": { "service": { "namespace": "ops", "name": "x" } },
                            "status": { "conditions": [
                                { "type": "Available", "status": "False", "reason": "Gone" },
                            ] },
                        }),
                    ),
                    json!(["v1.x", "ops/x", "False (Gone)", "5m"]),
                ),
            ],
        },
        Case {
            group: "apiextensions.k8s.io",
            plural: "customresourcedefinitions",
            header: "Name/name, Scope, Versions, Created At#date, Group+, Kind+, ShortNames+, Established#boolean+",
            rows: vec![(
                object(
                    "lamps.example.com",
                    json!({
                        "spec": {
                            "scope": "Namespaced",
                            "group": "example.com",
                            "names": { "kind": "Lamp", "shortNames": ["la", "lp"] },
                            "versions": [
                                { "name": "v2", "served": true },
                                { "name": "v1", "served": true, "storage": true },
                                { "name": "v0", "served": false },
                            ],
                        },
                        "status": { "conditions": [{ "type": "Established", "status": "True" }] },
                    }),
                ),
                json!([
                    "lamps.example.com",
                    "Namespaced",
                    "v1(storage),v2",
                    ago(300),
                    "example.com",
                    "Lamp",
                    "la,lp",
                    true,
                ]),
            )],
        },
        Case {
            group: "autoscaling",
            plural: "scales",
            header: "Name/name, Desired#integer, Available#integer, Age",
            rows: vec![(
                object("a", json!({ "spec": { "replicas": 3 }, "status": { "replicas": 2 } })),
                json!(["a", 3, 2, "5m"]),
            )],
        },
        Case {
            group: "coordination.k8s.io",
            plural: "leasecandidates",
            header: "Name/name, LeaseName, BinaryVersion, EmulationVersion, Age",
            rows: vec![(
                object("a", json!({ "spec": candidate })),
                json!(["a", "l", "1.37.0", "1.36.0", "5m"]),
            )],
        },
        Case {
            group: "scheduling.k8s.io",
            plural: "priorityclasses",
            header: "Name/name, Value#integer, Global-Default#boolean, Age, PreemptionPolicy",
            rows: vec![
                (
                    object("a", json!({ "value": 10, "globalDefault": true, "preemptionPolicy": "Never" })),
                    json!(["a", 10, true, "5m", "Never"]),
                ),
                (json!({}), json!(["", 0, false, "<unknown>", "PreemptLowerPriority"])),
            ],
        },
        Case {
            group: "node.k8s.io",
            plural: "runtimeclasses",
            header: "Name/name, Handler, Age",
            rows: vec![(object("a", json!({ "handler": "runc" })), json!(["a", "runc", "5m"]))],
        },
        Case {
            group: "",
            plural: "componentstatuses",
            header: "Name/name, Status, Message, Error",
            rows: vec![
                (component("True"), json!(["a", "Healthy", "ok", ""])),
                (component("False"), json!(["a", "Unhealthy", "ok", ""])),
                (json!({}), json!(["", "Unknown", "", ""])),
            ],
        },
        Case {
            group: "internal.apiserver.k8s.io",
            plural: "storageversions",
            header: "Name/name, CommonEncodingVersion, StorageVersions, Age",
            rows: vec![
                (
                    object(
                        "a",
                        json!({ "status": { "commonEncodingVersion": "v1", "storageVersions": servers } }),
                    ),
                    json!(["a", "v1", "s=v1,s=v1,s=v1 + 1 more...", "5m"]),
                ),
                (json!({}), json!(["", "<unset>", "<unset>", "<unknown>"])),
            ],
        },
        Case {
            group: "storagemigration.k8s.io",
            plural: "storageversionmigrations",
            header: "Name, Resource, Status",
            rows: vec![
                (migration, json!(["a", "deployments.apps", "Succeeded"])),
                (
                    object("a", json!({ "spec": { "resource": { "resource": "pods" } } })),
                    json!(["a", "pods", "Unknown"]),
                ),
            ],
        },
    ]
}

fn groups() -> Vec<Case> {
    let group = |conditions: Value| object("a", json!({ "status": { "conditions": conditions } }));
    let condition = |r#type: &str, status: &str| json!({ "type": r#type, "status": status, "reason": "Why" });
    let scheduled = |status| condition("PodGroupInitiallyScheduled", status);
    let gang = object(
        "a",
        json!({ "spec": { "schedulingPolicy": { "gang": { "minCount": 2 } }, "workloadRef": { "workloadName": "w" } } }),
    );
    let row = |status: &str| json!(["a", "Basic", "<none>", status, "5m"]);
    vec![
        Case {
            group: "scheduling.k8s.io",
            plural: "podgroups",
            header: "Name/name, Policy, Workload, Status, Age",
            rows: vec![
                (gang.clone(), json!(["a", "Gang", "w", "Pending", "5m"])),
                (group(json!([scheduled("True")])), row("Scheduled")),
                (group(json!([scheduled("False")])), row("Unschedulable")),
                (group(json!([scheduled("True"), condition("DisruptionTarget", "True")])), row("Why")),
            ],
        },
        Case {
            group: "scheduling.k8s.io",
            plural: "compositepodgroups",
            header: "Name/name, Policy, Workload, Age",
            rows: vec![
                (gang, json!(["a", "Gang", "w", "5m"])),
                (json!({}), json!(["", "Basic", "<none>", "<unknown>"])),
            ],
        },
        Case {
            group: "scheduling.k8s.io",
            plural: "workloads",
            header: "Name/name, Age",
            rows: vec![(object("a", json!({})), json!(["a", "5m"]))],
        },
    ]
}
