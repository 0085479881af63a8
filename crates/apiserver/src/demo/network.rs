//! How workloads are reached: Services, EndpointSlices, Ingresses.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    DemoCluster,
    chance::Subject,
    field::{is_staying, list, next_generation, number, put, text, time},
    managed::{Half, sign, signed},
    node::{node_name, node_number, pod_ip, zone},
    origin::{self, FirstPod, Health},
    plan::{Kind, Workload},
    pod,
    template::{labels, selector},
};

const MANAGER: &str = "kube-controller-manager";

/// A slice is not larger than this.
const MOST_ENDPOINTS: usize = 1_000;

/// The name of the Service of a workload.
pub(super) fn service_name(cluster: &DemoCluster, workload: &Workload) -> String {
    match workload.kind {
        Kind::CoreDns => "kube-dns".to_owned(),
        _ => cluster.plan.name_of(workload),
    }
}

/// The name of the EndpointSlice of that Service.
pub(super) fn slice_name(cluster: &DemoCluster, workload: &Workload) -> String {
    let mut chance = cluster.seed().chance(Subject::Endpoints, workload.number.into(), 0);
    format!("{}-{}", service_name(cluster, workload), chance.name(5))
}

/// The Service in front of the pods of a Deployment or StatefulSet.
pub(super) fn service(cluster: &DemoCluster, workload: &Workload, template: &Value) -> Value {
    let at = origin::created(cluster, workload);
    let ports: Vec<Value> = list(template, "/spec/containers/0/ports")
        .iter()
        .map(|port| {
            let name = text(port, "/name");
            let number = if name == "http" { 80 } else { number(port, "/containerPort") };
            json!({"name": name, "port": number, "protocol": text(port, "/protocol"), "targetPort": name})
        })
        .collect();
    let address = match workload.kind {
        Kind::StatefulSet => "None".to_owned(),
        Kind::CoreDns => "172.16.0.10".to_owned(),
        _ => {
            let [_, high, middle, low] = workload.number.wrapping_add(20).to_be_bytes();
            format!("172.{}.{middle}.{low}", 16 + high % 16)
        }
    };
    let object = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "creationTimestamp": time(at),
            "labels": service_labels(cluster, workload),
            "name": service_name(cluster, workload),
            "namespace": cluster.plan.namespace_of(workload),
            "uid": cluster.seed().uid(Subject::Endpoints, workload.number.into(), 1),
        },
        "spec": {
            "clusterIP": address,
            "clusterIPs": [address],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": ports,
            "selector": selector(cluster, workload),
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
        "status": {"loadBalancer": {}},
    });
    signed(object, ("helm", at), (MANAGER, at))
}

fn service_labels(cluster: &DemoCluster, workload: &Workload) -> Value {
    let mut labels = labels(cluster, workload, origin::revision(cluster, workload));
    if workload.kind == Kind::CoreDns {
        labels["kubernetes.io/cluster-service"] = "true".into();
        labels["kubernetes.io/name"] = "CoreDNS".into();
    }
    labels
}

/// The endpoints in the beginning.
pub(super) fn endpoint_slice(
    cluster: &DemoCluster,
    workload: &Workload,
    service: &Value,
    group: u32,
) -> Value {
    let at = origin::created(cluster, workload);
    let namespace = cluster.plan.namespace_of(workload);
    let endpoints: Vec<Value> = (0..workload.pods)
        .map(|ordinal| origin::first_pod(cluster, workload, group, ordinal))
        .filter(|pod| pod.health != Health::Unschedulable)
        .map(|pod| {
            let FirstPod { name, uid, health, place, .. } = pod;
            let ready = health == Health::Running;
            endpoint(namespace, &name, &uid, &pod_ip(place), &node_name(place.node), ready)
        })
        .collect();
    let service_name = text(service, "/metadata/name");
    let mut labels = service.pointer("/metadata/labels").cloned().unwrap_or_default();
    put(&mut labels, &["endpointslice.kubernetes.io/managed-by"], "endpointslice-controller.k8s.io");
    put(&mut labels, &["kubernetes.io/service-name"], service_name);
    let ports: Vec<Value> = list(service, "/spec/ports")
        .iter()
        .map(|port| {
            let number = if text(port, "/name") == "http" { 8080 } else { number(port, "/port") };
            json!({"name": port.get("name"), "port": number, "protocol": port.get("protocol")})
        })
        .collect();
    let object = json!({
        "addressType": "IPv4",
        "apiVersion": "discovery.k8s.io/v1",
        "endpoints": endpoints,
        "kind": "EndpointSlice",
        "metadata": {
            "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": time(at)},
            "creationTimestamp": time(at),
            "generateName": format!("{service_name}-"),
            "generation": 1,
            "labels": labels,
            "name": slice_name(cluster, workload),
            "namespace": namespace,
            "ownerReferences": [pod::controller(service)],
            "uid": cluster.seed().uid(Subject::Endpoints, workload.number.into(), 2),
        },
        "ports": ports,
    });
    signed(object, (MANAGER, at), ("", at))
}

fn endpoint(namespace: &str, pod: &str, uid: &str, ip: &str, node: &str, ready: bool) -> Value {
    json!({
        "addresses": [ip],
        "conditions": {"ready": ready, "serving": ready, "terminating": false},
        "nodeName": node,
        "targetRef": {"kind": "Pod", "name": pod, "namespace": namespace, "uid": uid},
        "zone": zone(node_number(node).unwrap_or(0)),
    })
}

/// The slice names these pods from now on. False if it did already.
pub(super) fn update_slice(slice: &mut Value, pods: &[Value], at: Timestamp) -> bool {
    let endpoints: Vec<Value> = pods
        .iter()
        .filter(|pod| !text(pod, "/status/podIP").is_empty())
        .take(MOST_ENDPOINTS)
        .map(|pod| {
            let staying = is_staying(pod);
            let mut endpoint = endpoint(
                text(pod, "/metadata/namespace"),
                text(pod, "/metadata/name"),
                text(pod, "/metadata/uid"),
                text(pod, "/status/podIP"),
                text(pod, "/spec/nodeName"),
                pod::is_ready(pod) && staying,
            );
            put(&mut endpoint, &["conditions", "terminating"], !staying);
            endpoint
        })
        .collect();
    if list(slice, "/endpoints") == endpoints {
        return false;
    }
    put(slice, &["endpoints"], endpoints);
    put(slice, &["metadata", "annotations", "endpoints.kubernetes.io/last-change-trigger-time"], time(at));
    next_generation(slice);
    sign(slice, MANAGER, Half::Main, at);
    true
}

/// Some Deployments can be reached from outside.
pub(super) fn ingress(cluster: &DemoCluster, workload: &Workload) -> Option<Value> {
    let mut chance = cluster.seed().chance(Subject::Endpoints, workload.number.into(), 3);
    if workload.kind != Kind::Deployment || !chance.percent(15) {
        return None;
    }
    let at = origin::created(cluster, workload);
    let name = cluster.plan.name_of(workload);
    let namespace = cluster.plan.namespace_of(workload);
    let host = format!("{name}.{namespace}.example.com");
    let object = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "annotations": {"cert-manager.io/cluster-issuer": "letsencrypt-staging"},
            "creationTimestamp": time(at),
            "generation": 1,
            "labels": labels(cluster, workload, origin::revision(cluster, workload)),
            "name": name,
            "namespace": namespace,
            "uid": chance.uid(),
        },
        "spec": {
            "ingressClassName": "nginx",
            "rules": [{
                "host": host,
                "http": {"paths": [{
                    "backend": {"service": {"name": name, "port": {"name": "http"}}},
                    "path": "/",
                    "pathType": "Prefix",
                }]},
            }],
            "tls": [{"hosts": [host], "secretName": format!("{name}-tls")}],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.10"}]}},
    });
    Some(signed(object, ("helm", at), ("nginx-ingress-controller", at)))
}
