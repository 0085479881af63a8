use super::*;

pub(super) fn cases() -> Vec<Case> {
    [vec![signing_requests()], certificates(), admission(), devices()].into_iter().flatten().collect()
}

fn signing_requests() -> Case {
    let request = |spec: Value, conditions: &[&str], certificate: &str| {
        let conditions: Vec<Value> = conditions.iter().map(|r#type| json!({ "type": r#type })).collect();
        object(
            "a",
            json!({ "spec": spec, "status": { "conditions": conditions, "certificate": certificate } }),
        )
    };
    let row = |condition: &str| json!(["a", "5m", "<none>", "", "<none>", condition]);
    let full = json!({ "signerName": "example.com/s", "username": "u", "expirationSeconds": 3600 });
    Case {
        group: "certificates.k8s.io",
        plural: "certificatesigningrequests",
        header: "Name/name, Age, SignerName, Requestor, RequestedDuration, Condition",
        rows: vec![
            (
                request(full, &["Approved"], "x"),
                json!(["a", "5m", "example.com/s", "u", "60m", "Approved,Issued"]),
            ),
            (request(json!({}), &["Approved", "Denied"], ""), row("Denied")),
            (request(json!({}), &["Approved", "Failed"], ""), row("Approved,Failed")),
            (json!({}), json!(["", "<unknown>", "<none>", "", "<none>", "Pending"])),
        ],
    }
}

fn certificates() -> Vec<Case> {
    let request = |conditions: Value| {
        let spec = json!({
            "podName": "p",
            "serviceAccountName": "s",
            "nodeName": "n",
            "signerName": "x/y",
            "unverifiedUserAnnotations": { "k": "v" },
        });
        object("a", json!({ "spec": spec, "status": { "conditions": conditions } }))
    };
    vec![
        Case {
            group: "certificates.k8s.io",
            plural: "podcertificaterequests",
            header: "Name/name, PodName, ServiceAccountName, NodeName, SignerName, State, \
                     UnverifiedUserAnnotations",
            rows: vec![
                (request(json!([])), json!(["a", "p", "s", "n", "x/y", "Pending", "k=v"])),
                (request(json!([{ "type": "Issued" }])), json!(["a", "p", "s", "n", "x/y", "Issued", "k=v"])),
                (json!({}), json!(["", "", "", "", "", "Pending", "<none>"])),
            ],
        },
        Case {
            group: "certificates.k8s.io",
            plural: "clustertrustbundles",
            header: "Name/name, SignerName",
            rows: vec![
                (object("a", json!({ "spec": { "signerName": "x/y" } })), json!(["a", "x/y"])),
                (json!({}), json!(["", "<none>"])),
            ],
        },
    ]
}

fn devices() -> Vec<Case> {
    let group = "resource.k8s.io";
    let claim = |status: Value| object("a", json!({ "status": status }));
    let deleted = object("a", json!({ "metadata": { "deletionTimestamp": ago(1) } }));
    let taint = |taint: Value| object("a", json!({ "spec": { "taint": taint } }));
    vec![
        Case {
            group,
            plural: "deviceclasses",
            header: "Name/name, Age",
            rows: vec![(object("a", json!({})), json!(["a", "5m"]))],
        },
        Case {
            group,
            plural: "resourceclaims",
            header: "Name/name, State, Age",
            rows: vec![
                (claim(json!({})), json!(["a", "pending", "5m"])),
                (claim(json!({ "allocation": {} })), json!(["a", "allocated", "5m"])),
                (
                    claim(json!({ "allocation": {}, "reservedFor": [{}] })),
                    json!(["a", "allocated,reserved", "5m"]),
                ),
                (deleted, json!(["a", "deleted", "5m"])),
            ],
        },
        Case {
            group,
            plural: "resourceslices",
            header: "Name/name, Node, Driver, Pool, Age",
            rows: vec![(
                object("a", json!({ "spec": { "nodeName": "n", "driver": "d", "pool": { "name": "p" } } })),
                json!(["a", "n", "d", "p", "5m"]),
            )],
        },
        Case {
            group,
            plural: "devicetaintrules",
            header: "Name/name, Key, Value, Effect, TimeAdded, Age",
            rows: vec![
                (
                    taint(json!({ "key": "k", "value": "v", "effect": "NoExecute", "timeAdded": ago(61) })),
                    json!(["a", "k", "v", "NoExecute", "61s", "5m"]),
                ),
                (json!({}), json!(["", "", "", "", "", "<unknown>"])),
            ],
        },
    ]
}

fn admission() -> Vec<Case> {
    let group = "admissionregistration.k8s.io";
    let param_kind = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    let schema = json!({
        "spec": {
            "priorityLevelConfiguration": { "name": "high" },
            "matchingPrecedence": 100,
            "distinguisherMethod": { "type": "ByUser" },
        },
        "status": { "conditions": [{ "type": "Dangling", "status": "False" }] },
    });
    let binding = |param: Value| object("a", json!({ "spec": { "policyName": "p", "paramRef": param } }));
    let queuing = json!({ "queues": 64, "handSize": 8, "queueLengthLimit": 50 });
    let limited = json!({ "nominalConcurrencyShares": 30, "limitResponse": { "queuing": queuing } });
    vec![
        Case {
            group,
            plural: "validatingwebhookconfigurations",
            header: "Name/name, Webhooks#integer, Age",
            rows: vec![(object("a", json!({ "webhooks": [{}, {}] })), json!(["a", 2, "5m"]))],
        },
        Case {
            group,
            plural: "validatingadmissionpolicies",
            header: "Name/name, Validations#integer, ParamKind, Age",
            rows: vec![
                (
                    object("a", json!({ "spec": { "validations": [{}], "paramKind": param_kind } })),
                    json!(["a", 1, "v1/ConfigMap", "5m"]),
                ),
                (json!({}), json!(["", 0, "<unset>", "<unknown>"])),
            ],
        },
        Case {
            group,
            plural: "mutatingadmissionpolicies",
            header: "Name/name, Mutations#integer, ParamKind, Age",
            rows: vec![(
                object("a", json!({ "spec": { "mutations": [{}] } })),
                json!(["a", 1, "<unset>", "5m"]),
            )],
        },
        Case {
            group: "flowcontrol.apiserver.k8s.io",
            plural: "flowschemas",
            header: "Name/name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL",
            rows: vec![
                (object("a", schema), json!(["a", "high", 100, "ByUser", "5m", "False"])),
                (json!({}), json!(["", "", 0, "<none>", "<unknown>", "?"])),
            ],
        },
        Case {
            group: "flowcontrol.apiserver.k8s.io",
            plural: "prioritylevelconfigurations",
            header: "Name/name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age",
            rows: vec![
                (
                    object("a", json!({ "spec": { "type": "Limited", "limited": limited } })),
                    json!(["a", "Limited", 30, 64, 8, 50, "5m"]),
                ),
                (json!({}), json!(["", "", "<none>", "<none>", "<none>", "<none>", "<unknown>"])),
            ],
        },
        Case {
            group,
            plural: "validatingadmissionpolicybindings",
            header: "Name/name, PolicyName, ParamRef, Age",
            rows: vec![
                (binding(json!({ "name": "x", "namespace": "n" })), json!(["a", "p", "n/x", "5m"])),
                (binding(json!({ "name": "x" })), json!(["a", "p", "*/x", "5m"])),
                (
                    binding(json!({ "selector": { "matchLabels": { "a": "b" } } })),
                    json!(["a", "p", "a=b", "5m"]),
                ),
                (json!({}), json!(["", "", "<unset>", "<unknown>"])),
            ],
        },
    ]
}
