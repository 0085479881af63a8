//! Nodes, namespaces and what stands in them beside pods: settings, quotas, leases, classes.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;

use crate::json::Json;

use super::{
    AGE, CREATED_AT, Column, NAME, Row,
    fields::{
        condition, count, entries, filled_or, flag, has_condition, integer, is_set, items, quantity,
        shortened, text, text_or, texts,
    },
};

pub(super) fn columns(group: &str, plural: &str) -> Option<&'static [Column]> {
    Some(match (group, plural) {
        ("", "nodes") => NODE,
        ("", "namespaces") => NAMESPACE,
        ("", "configmaps") => CONFIG_MAP,
        ("", "secrets") => SECRET,
        ("", "resourcequotas") => RESOURCE_QUOTA,
        ("coordination.k8s.io", "leases") => LEASE,
        ("coordination.k8s.io", "leasecandidates") => LEASE_CANDIDATE,
        ("scheduling.k8s.io", "priorityclasses") => PRIORITY_CLASS,
        ("node.k8s.io", "runtimeclasses") => RUNTIME_CLASS,
        ("", "componentstatuses") => COMPONENT_STATUS,
        ("internal.apiserver.k8s.io", "storageversions") => STORAGE_VERSION,
        ("storagemigration.k8s.io", "storageversionmigrations") => MIGRATION,
        ("scheduling.k8s.io", "podgroups") => POD_GROUP,
        ("scheduling.k8s.io", "compositepodgroups") => COMPOSITE_POD_GROUP,
        ("apiextensions.k8s.io", "customresourcedefinitions") => DEFINITION,
        ("apiregistration.k8s.io", "apiservices") => API_SERVICE,
        // They have nothing to show, but not the default columns either.
        ("", "serviceaccounts") | ("scheduling.k8s.io", "workloads") => &[NAME, AGE],
        _ => return None,
    })
}

static API_SERVICE: &[Column] = &[
    NAME,
    Column::new("Service", "Who serves this version of the group.", |service, _| {
        if !is_set(service, "/spec/service") {
            return "Local".into();
        }
        format!("{}/{}", text(service, "/spec/service/namespace"), text(service, "/spec/service/name")).into()
    }),
    Column::new("Available", "Whether it is served now, and why not.", |service, _| {
        let Some(condition) = condition(service, "Available") else { return "Unknown".into() };
        match (text(condition, "/status"), text(condition, "/reason")) {
            (status @ "True", _) | (status, "") => status.into(),
            (status, reason) => format!("{status} ({reason})").into(),
        }
    }),
    AGE,
];

static DEFINITION: &[Column] = &[
    NAME,
    Column::new("Scope", "Whether its objects are in namespaces.", |definition, _| {
        text(definition, "/spec/scope").into()
    }),
    Column::new("Versions", "Which versions are served.", |definition, _| {
        let versions = items(definition, "/spec/versions").iter().filter(|version| flag(version, "/served"));
        let mut names: Vec<String> = versions
            .map(|version| {
                let mark = if flag(version, "/storage") { "(storage)" } else { "" };
                format!("{}{mark}", text(version, "/name"))
            })
            .collect();
        names.sort();
        names.join(",").into()
    }),
    CREATED_AT,
    Column::new("Group", "The group of its objects.", |definition, _| text(definition, "/spec/group").into())
        .wide(),
    Column::new("Kind", "The kind of its objects.", |definition, _| {
        text(definition, "/spec/names/kind").into()
    })
    .wide(),
    Column::new("ShortNames", "The short names of its objects.", |definition, _| {
        texts(definition, "/spec/names/shortNames").into()
    })
    .wide(),
    Column::new("Established", "Whether its objects are served.", |definition, _| {
        has_condition(definition, "Established").into()
    })
    .wide()
    .boolean(),
];

static NODE: &[Column] = &[
    NAME,
    Column::new("Status", "Whether the node is ready, and takes pods.", node_status),
    Column::new("Roles", "What the node is for.", node_roles),
    AGE,
    Column::new("Version", "The version of the kubelet.", |node, _| {
        text(node, "/status/nodeInfo/kubeletVersion").into()
    }),
    Column::new("Internal-IP", "The address inside the cluster.", |node, _| address(node, "InternalIP"))
        .wide(),
    Column::new("External-IP", "The address outside the cluster.", |node, _| address(node, "ExternalIP"))
        .wide(),
    Column::new("OS-Image", "The operating system.", |node, _| {
        filled_or(node, "/status/nodeInfo/osImage", "<unknown>").into()
    })
    .wide(),
    Column::new("Kernel-Version", "The kernel and its architecture.", |node, _| {
        let kernel = filled_or(node, "/status/nodeInfo/kernelVersion", "<unknown>");
        match text(node, "/status/nodeInfo/architecture") {
            "" => kernel.into(),
            architecture => format!("{kernel} ({architecture})").into(),
        }
    })
    .wide(),
    Column::new("Container-Runtime", "The container runtime and its version.", |node, _| {
        filled_or(node, "/status/nodeInfo/containerRuntimeVersion", "<unknown>").into()
    })
    .wide(),
];

fn node_status(node: &Json<'_>, _: &Row) -> Value {
    // Of several conditions with one name the last counts.
    let ready = items(node, "/status/conditions").iter().rev().find(|ready| text(ready, "/type") == "Ready");
    let status = match ready.map(|ready| text(ready, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let closed = if flag(node, "/spec/unschedulable") { ",SchedulingDisabled" } else { "" };
    format!("{status}{closed}").into()
}

fn node_roles(node: &Json<'_>, _: &Row) -> Value {
    let role = |(key, value): (Cow<'_, str>, &Json<'_>)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => role.to_owned(),
        None if key == "kubernetes.io/role" => text(value, "").to_owned(),
        None => String::new(),
    };
    let labels = entries(node, "/metadata/labels").into_iter();
    let roles: BTreeSet<String> = labels.map(role).filter(|role| !role.is_empty()).collect();
    match roles.is_empty() {
        true => "<none>".into(),
        false => roles.into_iter().collect::<Vec<_>>().join(",").into(),
    }
}

fn address(node: &Json<'_>, r#type: &str) -> Value {
    let mut addresses = items(node, "/status/addresses").iter();
    let first = addresses.find(|address| text(address, "/type") == r#type);
    first.map_or("<none>", |address| text(address, "/address")).into()
}

static NAMESPACE: &[Column] = &[
    NAME,
    Column::new("Status", "Whether the namespace is in use or going away.", |namespace, _| {
        filled_or(namespace, "/status/phase", "Active").into()
    }),
    AGE,
];

static CONFIG_MAP: &[Column] = &[
    NAME,
    Column::new("Data", "How many entries there are.", |map, _| {
        count(map, "/data").saturating_add(count(map, "/binaryData")).into()
    }),
    AGE,
];

static SECRET: &[Column] = &[
    NAME,
    Column::new("Type", "What kind of secret it is.", |secret, _| {
        filled_or(secret, "/type", "Opaque").into()
    }),
    Column::new("Data", "How many entries there are.", |secret, _| count(secret, "/data").into()),
    AGE,
];

static RESOURCE_QUOTA: &[Column] = &[
    NAME,
    Column::new("Request", "What is used of what may be requested.", |quota, _| {
        used_of_hard(quota, |resource| !resource.starts_with("limits."))
    }),
    Column::new("Limit", "What is used of what limits may add up to.", |quota, _| {
        used_of_hard(quota, |resource| resource.starts_with("limits."))
    }),
    AGE,
];

fn used_of_hard(quota: &Json<'_>, is_shown: fn(&str) -> bool) -> Value {
    let hard = entries(quota, "/status/hard").into_iter().filter(|(resource, _)| is_shown(resource));
    let used = entries(quota, "/status/used");
    let shown = hard.map(|(resource, hard)| {
        let used = used.get(&resource).map_or_else(|| "0".to_owned(), |used| quantity(used));
        format!("{resource}: {used}/{}", quantity(hard))
    });
    shown.collect::<Vec<_>>().join(", ").into()
}

static LEASE: &[Column] = &[
    NAME,
    Column::new("Holder", "Who has the lease.", |lease, _| text(lease, "/spec/holderIdentity").into()),
    AGE,
];

static LEASE_CANDIDATE: &[Column] = &[
    NAME,
    Column::new("LeaseName", "The lease that is wanted.", |candidate, _| {
        text(candidate, "/spec/leaseName").into()
    }),
    Column::new("BinaryVersion", "The version of the program.", |candidate, _| {
        text(candidate, "/spec/binaryVersion").into()
    }),
    Column::new("EmulationVersion", "The version that the program plays.", |candidate, _| {
        text(candidate, "/spec/emulationVersion").into()
    }),
    AGE,
];

static PRIORITY_CLASS: &[Column] = &[
    NAME,
    Column::new("Value", "The priority; higher goes first.", |class, _| integer(class, "/value").into())
        .integer(),
    Column::new("Global-Default", "Whether pods without a class get this one.", |class, _| {
        flag(class, "/globalDefault").into()
    })
    .boolean(),
    AGE,
    Column::new("PreemptionPolicy", "Whether pods of the class may push others out.", |class, _| {
        filled_or(class, "/preemptionPolicy", "PreemptLowerPriority").into()
    }),
];

static RUNTIME_CLASS: &[Column] = &[
    NAME,
    Column::new("Handler", "What runs the containers.", |class, _| text(class, "/handler").into()),
    AGE,
];

static COMPONENT_STATUS: &[Column] = &[
    NAME,
    Column::new("Status", "Whether the component is healthy.", |component, _| {
        match healthy(component).map(|healthy| text(healthy, "/status")) {
            Some("True") => "Healthy".into(),
            Some(_) => "Unhealthy".into(),
            None => "Unknown".into(),
        }
    }),
    Column::new("Message", "What the component says.", |component, _| {
        healthy(component).map_or("", |healthy| text(healthy, "/message")).into()
    }),
    Column::new("Error", "Why the component is not healthy.", |component, _| {
        healthy(component).map_or("", |healthy| text(healthy, "/error")).into()
    }),
];

fn healthy<'v, 'j>(component: &'v Json<'j>) -> Option<&'v Json<'j>> {
    items(component, "/conditions").iter().find(|condition| text(condition, "/type") == "Healthy")
}

static STORAGE_VERSION: &[Column] = &[
    NAME,
    Column::new("CommonEncodingVersion", "The version that all servers write.", |version, _| {
        text_or(version, "/status/commonEncodingVersion", "<unset>").into()
    }),
    Column::new("StorageVersions", "The version that each server writes.", |version, _| {
        let server = |server: &Json<'_>| {
            format!("{}={}", text(server, "/apiServerID"), text(server, "/encodingVersion"))
        };
        let servers: Vec<String> = items(version, "/status/storageVersions").iter().map(server).collect();
        match shortened(&servers.iter().map(String::as_str).collect::<Vec<_>>(), 3, ",") {
            none if none.is_empty() => "<unset>".into(),
            servers => servers.into(),
        }
    }),
    AGE,
];

static MIGRATION: &[Column] = &[
    Column { format: "", ..NAME },
    Column::new("Resource", "What is written again.", |migration, _| {
        let resource = text(migration, "/spec/resource/resource");
        match text(migration, "/spec/resource/group") {
            "" => resource.into(),
            group => format!("{resource}.{group}").into(),
        }
    }),
    Column::new("Status", "How far the migration is.", |migration, _| {
        let is_told = |condition: &&Json<'_>| {
            let told = matches!(text(condition, "/type"), "Running" | "Failed" | "Succeeded");
            told && text(condition, "/status") == "True"
        };
        let last = items(migration, "/status/conditions").iter().rev().find(is_told);
        last.map_or("Unknown", |condition| text(condition, "/type")).into()
    }),
];

const GROUP_POLICY: Column = Column::new("Policy", "How the pods are scheduled together.", |group, _| {
    if is_set(group, "/spec/schedulingPolicy/gang") { "Gang".into() } else { "Basic".into() }
});
const GROUP_WORKLOAD: Column = Column::new("Workload", "The workload that the group is of.", |group, _| {
    match is_set(group, "/spec/workloadRef") {
        true => text(group, "/spec/workloadRef/workloadName").into(),
        false => "<none>".into(),
    }
});

static POD_GROUP: &[Column] = &[
    NAME,
    GROUP_POLICY,
    GROUP_WORKLOAD,
    Column::new("Status", "How far the group is.", |group, _| {
        let scheduled = condition(group, "PodGroupInitiallyScheduled");
        match (condition(group, "DisruptionTarget"), scheduled.map(|scheduled| text(scheduled, "/status"))) {
            (Some(target), _) => text(target, "/reason").into(),
            (None, Some("True")) => "Scheduled".into(),
            (None, Some(_)) => "Unschedulable".into(),
            (None, None) => "Pending".into(),
        }
    }),
    AGE,
];

static COMPOSITE_POD_GROUP: &[Column] = &[NAME, GROUP_POLICY, GROUP_WORKLOAD, AGE];
