//! Volumes, what claims them and what provides them.

use crate::json::Json;

use super::{
    AGE, Column, NAME,
    fields::{
        count, each_text, filled_or, flag, flag_or, is_set, is_terminating, items, quantity_of, text,
        text_or, texts,
    },
};

pub(super) fn columns(group: &str, plural: &str) -> Option<&'static [Column]> {
    Some(match (group, plural) {
        ("", "persistentvolumes") => VOLUME,
        ("", "persistentvolumeclaims") => CLAIM,
        ("storage.k8s.io", "storageclasses") => CLASS,
        ("storage.k8s.io", "volumeattributesclasses") => ATTRIBUTES_CLASS,
        ("storage.k8s.io", "volumeattachments") => ATTACHMENT,
        ("storage.k8s.io", "csidrivers") => CSI_DRIVER,
        ("storage.k8s.io", "csinodes") => CSI_NODE,
        _ => return None,
    })
}

const ATTRIBUTES: Column =
    Column::new("VolumeAttributesClass", "The class of changeable attributes.", |object, _| {
        text_or(object, "/spec/volumeAttributesClassName", "<unset>").into()
    });
const STORAGE_CLASS: Column = Column::new("StorageClass", "The storage class.", |object, _| {
    let before_the_field = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
    text_or(object, before_the_field, text(object, "/spec/storageClassName")).into()
});
const STATUS: Column =
    Column::new("Status", "How far the object is.", |object, _| match is_terminating(object) {
        true => "Terminating".into(),
        false => filled_or(object, "/status/phase", "Pending").into(),
    });
const MODE: Column =
    Column::new("VolumeMode", "Whether it is a file system or a block device.", |object, _| {
        text_or(object, "/spec/volumeMode", "Filesystem").into()
    })
    .wide();

static VOLUME: &[Column] = &[
    NAME,
    Column::new("Capacity", "The size of the volume.", |volume, _| {
        quantity_of(volume, "/spec/capacity", "storage").into()
    }),
    Column::new("Access Modes", "How the volume can be mounted.", |volume, _| {
        access_modes(volume, "/spec/accessModes").into()
    }),
    Column::new("Reclaim Policy", "What happens when the claim is gone.", |volume, _| {
        filled_or(volume, "/spec/persistentVolumeReclaimPolicy", "Retain").into()
    }),
    STATUS,
    Column::new("Claim", "The claim that has the volume.", |volume, _| {
        match is_set(volume, "/spec/claimRef") {
            true => {
                let (namespace, name) =
                    (text(volume, "/spec/claimRef/namespace"), text(volume, "/spec/claimRef/name"));
                format!("{namespace}/{name}").into()
            }
            false => "".into(),
        }
    }),
    STORAGE_CLASS,
    ATTRIBUTES,
    Column::new("Reason", "Why the volume is in its status.", |volume, _| {
        text(volume, "/status/reason").into()
    }),
    AGE,
    MODE,
];

static CLAIM: &[Column] = &[
    NAME,
    STATUS,
    Column::new("Volume", "The volume that serves the claim.", |claim, _| {
        text(claim, "/spec/volumeName").into()
    }),
    Column::new("Capacity", "The size of the volume.", |claim, _| match text(claim, "/spec/volumeName") {
        "" => "".into(),
        _ => quantity_of(claim, "/status/capacity", "storage").into(),
    }),
    Column::new("Access Modes", "How the volume can be mounted.", |claim, _| {
        match text(claim, "/spec/volumeName") {
            "" => "".into(),
            _ => access_modes(claim, "/status/accessModes").into(),
        }
    }),
    STORAGE_CLASS,
    ATTRIBUTES,
    AGE,
    MODE,
];

/// Access modes by their short names, always in the same order.
fn access_modes(object: &Json<'_>, pointer: &str) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| items(object, pointer).iter().any(|item| text(item, "") == mode);
    let short = known.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short);
    short.collect::<Vec<_>>().join(",")
}

static CLASS: &[Column] = &[
    Column::new("Name", "The name of the object.", |class, _| {
        let is_default = |mark: &str| {
            text(class, &format!("/metadata/annotations/{mark}.kubernetes.io~1is-default-class")) == "true"
        };
        let mark = match is_default("storageclass") || is_default("storageclass.beta") {
            true => " (default)",
            false => "",
        };
        format!("{}{mark}", text(class, "/metadata/name")).into()
    })
    .named(),
    Column::new("Provisioner", "What makes the volumes.", |class, _| text(class, "/provisioner").into()),
    Column::new("ReclaimPolicy", "What happens to a volume when its claim is gone.", |class, _| {
        text_or(class, "/reclaimPolicy", "Delete").into()
    }),
    Column::new("VolumeBindingMode", "When a claim gets its volume.", |class, _| {
        text_or(class, "/volumeBindingMode", "Immediate").into()
    }),
    Column::new("AllowVolumeExpansion", "Whether volumes can grow.", |class, _| {
        flag(class, "/allowVolumeExpansion").into()
    }),
    AGE,
];

static ATTRIBUTES_CLASS: &[Column] = &[
    NAME,
    Column::new("DriverName", "The driver that knows the attributes.", |class, _| {
        text(class, "/driverName").into()
    }),
    AGE,
];

static ATTACHMENT: &[Column] = &[
    NAME,
    Column::new("Attacher", "The driver that attaches the volume.", |object, _| {
        text(object, "/spec/attacher").into()
    })
    .named(),
    Column::new("PV", "The volume.", |object, _| text(object, "/spec/source/persistentVolumeName").into()),
    Column::new("Node", "The node that the volume is attached to.", |object, _| {
        text(object, "/spec/nodeName").into()
    }),
    Column::new("Attached", "Whether it is attached by now.", |object, _| {
        flag(object, "/status/attached").into()
    })
    .boolean(),
    AGE,
];

static CSI_DRIVER: &[Column] = &[
    NAME,
    Column::new("AttachRequired", "Whether volumes are attached before they are mounted.", |driver, _| {
        flag_or(driver, "/spec/attachRequired", true).into()
    })
    .boolean(),
    Column::new("PodInfoOnMount", "Whether the driver is told about the pod.", |driver, _| {
        flag(driver, "/spec/podInfoOnMount").into()
    })
    .boolean(),
    Column::new("StorageCapacity", "Whether the driver tells how much room there is.", |driver, _| {
        flag(driver, "/spec/storageCapacity").into()
    })
    .boolean(),
    Column::new(
        "TokenRequests",
        "The audiences of the tokens that the driver gets.",
        |driver, _| match is_set(driver, "/spec/tokenRequests") {
            true => each_text(driver, "/spec/tokenRequests", "/audience").into(),
            false => "<unset>".into(),
        },
    ),
    Column::new("RequiresRepublish", "Whether the driver is asked again from time to time.", |driver, _| {
        flag(driver, "/spec/requiresRepublish").into()
    })
    .boolean(),
    Column::new("Modes", "Which lifecycles of volumes the driver supports.", |driver, _| {
        match texts(driver, "/spec/volumeLifecycleModes") {
            none if none.is_empty() => "Persistent".into(),
            modes => modes.into(),
        }
    }),
    AGE,
];

static CSI_NODE: &[Column] = &[
    NAME,
    Column::new("Drivers", "How many drivers are on the node.", |node, _| {
        count(node, "/spec/drivers").into()
    })
    .integer(),
    AGE,
];
