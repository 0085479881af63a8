use super::*;

pub(super) fn cases() -> Vec<Case> {
    [volumes(), classes(), drivers()].into_iter().flatten().collect()
}

fn volumes() -> Vec<Case> {
    let volume = object(
        "pv",
        json!({
            "spec": {
                "capacity": { "storage": "2048Mi" },
                "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteOnce", "Other", "ReadOnlyMany"],
                "persistentVolumeReclaimPolicy": "Delete",
                "claimRef": { "namespace": "default", "name": "data" },
                "storageClassName": "fast",
                "volumeAttributesClassName": "gold",
                "volumeMode": "Block",
            },
            "status": { "phase": "Bound", "reason": "because" },
        }),
    );
    let claim = object(
        "data",
        json!({
            "metadata": { "annotations": { "volume.beta.kubernetes.io/storage-class": "old" } },
            "spec": {
                "volumeName": "pv",
                "storageClassName": "fast",
                "volumeMode": "Filesystem",
                "resources": { "requests": { "storage": "1Gi" } },
            },
            "status": { "phase": "Bound", "capacity": { "storage": "2Gi" }, "accessModes": ["ReadWriteOncePod"] },
        }),
    );
    let mut deleted = claim.clone();
    deleted["metadata"]["deletionTimestamp"] = ago(1).into();
    let pending = object(
        "data",
        json!({ "spec": { "accessModes": ["ReadWriteOnce"] }, "status": { "phase": "Pending" } }),
    );
    vec![
        Case {
            group: "",
            plural: "persistentvolumes",
            header: "Name/name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, \
                     VolumeAttributesClass, Reason, Age, VolumeMode+",
            rows: vec![
                (
                    volume,
                    json!([
                        "pv",
                        "2Gi",
                        "RWO,ROX,RWX",
                        "Delete",
                        "Bound",
                        "default/data",
                        "fast",
                        "gold",
                        "because",
                        "5m",
                        "Block"
                    ]),
                ),
                (
                    json!({}),
                    json!([
                        "",
                        "0",
                        "",
                        "Retain",
                        "Pending",
                        "",
                        "",
                        "<unset>",
                        "",
                        "<unknown>",
                        "Filesystem"
                    ]),
                ),
            ],
        },
        Case {
            group: "",
            plural: "persistentvolumeclaims",
            header: "Name/name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, \
                     VolumeMode+",
            rows: vec![
                (claim, json!(["data", "Bound", "pv", "2Gi", "RWOP", "old", "<unset>", "5m", "Filesystem"])),
                (
                    deleted,
                    json!(["data", "Terminating", "pv", "2Gi", "RWOP", "old", "<unset>", "5m", "Filesystem"]),
                ),
                (pending, json!(["data", "Pending", "", "", "", "", "<unset>", "5m", "Filesystem"])),
                (json!({}), json!(["", "Pending", "", "", "", "", "<unset>", "<unknown>", "Filesystem"])),
            ],
        },
    ]
}

fn marked(mark: &str) -> Value {
    object("a", json!({ "metadata": { "annotations": { mark: "true" } } }))
}

fn classes() -> Vec<Case> {
    let full = object(
        "fast",
        json!({
            "provisioner": "example.com/disk",
            "reclaimPolicy": "Retain",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowVolumeExpansion": true,
        }),
    );
    vec![
        Case {
            group: "storage.k8s.io",
            plural: "storageclasses",
            header: "Name/name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
            rows: vec![
                (full, json!(["fast", "example.com/disk", "Retain", "WaitForFirstConsumer", true, "5m"])),
                (
                    marked("storageclass.kubernetes.io/is-default-class"),
                    json!(["a (default)", "", "Delete", "Immediate", false, "5m"]),
                ),
                (
                    marked("storageclass.beta.kubernetes.io/is-default-class"),
                    json!(["a (default)", "", "Delete", "Immediate", false, "5m"]),
                ),
                (marked("other"), json!(["a", "", "Delete", "Immediate", false, "5m"])),
                (json!({}), json!(["", "", "Delete", "Immediate", false, "<unknown>"])),
            ],
        },
        Case {
            group: "storage.k8s.io",
            plural: "volumeattributesclasses",
            header: "Name/name, DriverName, Age",
            rows: vec![(
                object("a", json!({ "driverName": "example.com/disk" })),
                json!(["a", "example.com/disk", "5m"]),
            )],
        },
    ]
}

fn drivers() -> Vec<Case> {
    let attachment = object(
        "a",
        json!({
            "spec": { "attacher": "example.com/disk", "nodeName": "n1", "source": { "persistentVolumeName": "pv" } },
            "status": { "attached": true },
        }),
    );
    let driver = object(
        "example.com",
        json!({ "spec": {
            "attachRequired": false,
            "podInfoOnMount": true,
            "storageCapacity": true,
            "requiresRepublish": true,
            "tokenRequests": [{ "audience": "x" }, { "audience": "y" }],
            "volumeLifecycleModes": ["Persistent", "Ephemeral"],
        } }),
    );
    vec![
        Case {
            group: "storage.k8s.io",
            plural: "volumeattachments",
            header: "Name/name, Attacher/name, PV, Node, Attached#boolean, Age",
            rows: vec![
                (attachment, json!(["a", "example.com/disk", "pv", "n1", true, "5m"])),
                (json!({}), json!(["", "", "", "", false, "<unknown>"])),
            ],
        },
        Case {
            group: "storage.k8s.io",
            plural: "csidrivers",
            header: "Name/name, AttachRequired#boolean, PodInfoOnMount#boolean, StorageCapacity#boolean, \
                     TokenRequests, RequiresRepublish#boolean, Modes, Age",
            rows: vec![
                (
                    driver,
                    json!(["example.com", false, true, true, "x,y", true, "Persistent,Ephemeral", "5m"]),
                ),
                (json!({}), json!(["", true, false, false, "<unset>", false, "Persistent", "<unknown>"])),
            ],
        },
        Case {
            group: "storage.k8s.io",
            plural: "csinodes",
            header: "Name/name, Drivers#integer, Age",
            rows: vec![
                (object("n1", json!({ "spec": { "drivers": [{}, {}] } })), json!(["n1", 2, "5m"])),
                (json!({}), json!(["", 0, "<unknown>"])),
            ],
        },
    ]
}
