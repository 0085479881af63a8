//! Nodes and their leases.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    DemoCluster,
    chance::Subject,
    field::{before, list_mut, micro_time, put, time},
    managed::{Half, sign, signed},
    plan::Place,
    vocabulary::{SYSTEM_IMAGES, ZONES},
};

/// How old a cluster is, in seconds: nothing in it is older.
pub(super) const CLUSTER_AGE: i64 = 200 * 86_400;

pub(super) fn node_name(number: u32) -> String {
    let [_, high, middle, low] = number.to_be_bytes();
    if high == 0 {
        format!("node-{middle:02x}{low:02x}")
    } else {
        format!("node-{high:02x}{middle:02x}{low:02x}")
    }
}

/// The number of the node of that name; none if it is not one of the plan's.
pub(super) fn node_number(name: &str) -> Option<u32> {
    u32::from_str_radix(name.strip_prefix("node-")?, 16).ok()
}

pub(super) fn zone(number: u32) -> &'static str {
    ZONES[number as usize % ZONES.len()]
}

pub(super) fn node_uid(cluster: &DemoCluster, number: u32) -> String {
    cluster.seed().uid(Subject::Node, number.into(), 0)
}

/// The address of a node itself.
pub(super) fn node_ip(number: u32) -> String {
    let [_, high, middle, low] = number.wrapping_add(10).to_be_bytes();
    format!("192.{}.{middle}.{low}", 168_u8.saturating_add(high))
}

/// The first three bytes of the addresses of the pods of a node.
fn pod_range(number: u32) -> String {
    let [_, _, middle, low] = number.to_be_bytes();
    format!("10.{}.{low}", 64 + middle % 192)
}

/// The address of a pod.
pub(super) fn pod_ip(place: Place) -> String {
    match place.address {
        Some(last) => format!("{}.{last}", pod_range(place.node)),
        None => node_ip(place.node),
    }
}

pub(super) fn node(cluster: &DemoCluster, number: u32) -> Value {
    let mut chance = cluster.seed().chance(Subject::Node, number.into(), 1);
    let plan = &cluster.plan;
    let name = node_name(number);
    let range = format!("{}.0/24", pod_range(number));
    let controls = number < plan.control_planes;
    let zone = zone(number);
    let (instance, cpus, memory) = match controls {
        true => ("m6i.xlarge", 4, 16_204_316_u64),
        false if chance.percent(30) => ("m6i.4xlarge", 16, 65_037_660),
        false => ("m6i.2xlarge", 8, 32_361_932),
    };
    let created = before(cluster.now, CLUSTER_AGE - chance.below(40 * 86_400) as i64);
    let beat = before(cluster.now, chance.below(300) as i64);
    let mut labels = json!({
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": instance,
        "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": zone,
    });
    let mut spec = json!({
        "podCIDR": range,
        "podCIDRs": [range],
        "providerID": format!("aws:///{zone}/i-{}", chance.hex(17)),
    });
    if controls {
        labels["node-role.kubernetes.io/control-plane"] = "".into();
        if plan.nodes > 1 {
            spec["taints"] =
                json!([{"effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane"}]);
        }
    } else {
        labels["node.kubernetes.io/pool"] = chance.pick(&["general", "general", "batch", "memory"]).into();
    }
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "lastHeartbeatTime": time(beat),
            "lastTransitionTime": time(created),
            "message": message,
            "reason": reason,
            "status": status,
            "type": kind,
        })
    };
    let images: Vec<Value> = SYSTEM_IMAGES
        .iter()
        .filter(|image| controls || !image.contains("kube-apiserver") && !image.contains("etcd"))
        .map(|image| {
            let repository = image.rsplit_once(':').map_or(*image, |(repository, _)| repository);
            let digest = format!("{repository}@sha256:{}", image_digest(image));
            json!({"names": [digest, image], "sizeBytes": 3_000_000 + image.len() * 1_234_567})
        })
        .collect();
    let quantity = |cpu: String, disk: &str, memory: u64| {
        json!({
            "cpu": cpu,
            "ephemeral-storage": disk,
            "hugepages-1Gi": "0",
            "hugepages-2Mi": "0",
            "memory": format!("{memory}Ki"),
            "pods": "110",
        })
    };
    let object = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "projectcalico.org/IPv4Address": format!("{}/16", node_ip(number)),
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "creationTimestamp": time(created),
            "labels": labels,
            "name": name,
            "uid": node_uid(cluster, number),
        },
        "spec": spec,
        "status": {
            "addresses": [
                {"address": node_ip(number), "type": "InternalIP"},
                {"address": name, "type": "Hostname"},
            ],
            "allocatable": quantity(format!("{}m", cpus * 1000 - 80), "89031235893", memory - 1_126_400),
            "capacity": quantity(cpus.to_string(), "104845292Ki", memory),
            "conditions": [
                condition("NetworkUnavailable", "False", "CalicoIsUp", "Calico is running on this node"),
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": images,
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": chance.uid(),
                "containerRuntimeVersion": "containerd://2.1.4",
                "kernelVersion": "6.8.0-1031-aws",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.34.2",
                "machineID": chance.hex(32),
                "operatingSystem": "linux",
                "osImage": "Ubuntu 24.04.3 LTS",
                "systemUUID": chance.uid(),
            },
        },
    });
    signed(object, ("kube-controller-manager", created), ("kubelet", beat))
}

/// The digest that an image has everywhere.
pub(super) fn image_digest(image: &str) -> String {
    let number = super::chance::Seed(u64::from(super::chance::hash(image)));
    number.chance(Subject::Template, 0, 0).hex(64)
}

/// The lease by which a node says that it is alive.
pub(super) fn lease(cluster: &DemoCluster, number: u32, node: &Value) -> Value {
    let mut chance = cluster.seed().chance(Subject::Node, number.into(), 2);
    let name = node_name(number);
    let object = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "creationTimestamp": node.pointer("/metadata/creationTimestamp"),
            "name": name,
            "namespace": "kube-node-lease",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid(cluster, number)},
            ],
            "uid": chance.uid(),
        },
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": 40,
            "renewTime": micro_time(before(cluster.now, chance.below(10) as i64)),
        },
    });
    signed(object, ("kubelet", cluster.now), ("", cluster.now))
}

/// The lease is renewed.
pub(super) fn renew(lease: &mut Value, at: Timestamp) {
    put(lease, &["spec", "renewTime"], micro_time(at));
    sign(lease, "kubelet", Half::Main, at);
}

/// The node reports that all is as before.
pub(super) fn report(node: &mut Value, at: Timestamp) {
    for condition in list_mut(node, "/status/conditions") {
        put(condition, &["lastHeartbeatTime"], time(at));
    }
    sign(node, "kubelet", Half::Status, at);
}
