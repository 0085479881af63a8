//! What holds for every demo cluster, whatever its seed and size.

use std::collections::{HashMap, HashSet};

use informer_model::{validate_label_key, validate_label_value};
use k8s_openapi::api::{
    apps::v1 as apps, autoscaling::v2 as autoscaling, batch::v1 as batch, coordination::v1 as coordination,
    core::v1 as core, discovery::v1 as discovery, networking::v1 as networking, policy::v1 as policy,
};
use serde_json::Value;

use super::{DemoCluster, field::text};

/// The group and the plural name of the resource of an object, as a server would tell from its kind.
pub(super) fn resource(object: &Value) -> (String, String) {
    let group = text(object, "/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    let kind = text(object, "/kind").to_lowercase();
    let plural = match kind.strip_suffix('s') {
        Some(_) => format!("{kind}es"),
        None => format!("{kind}s"),
    };
    (group.to_owned(), plural)
}

/// Reads an object as the type of its kind, which must know all that is in it.
pub(super) fn decode(object: &Value) {
    fn as_type<T: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) {
        let decoded: T =
            serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object}"));
        let encoded = serde_json::to_value(decoded).unwrap();
        same(&encoded, object, "");
    }
    /// Nothing is lost but nulls and what is empty; numbers and texts are the same.
    fn same(encoded: &Value, object: &Value, path: &str) {
        match (encoded, object) {
            (Value::Object(encoded), Value::Object(object)) => {
                for (name, value) in object {
                    let path = format!("{path}/{name}");
                    match encoded.get(name) {
                        Some(other) => same(other, value, &path),
                        None => assert!(value.is_null() || value == "", "{path} is lost: {value}"),
                    }
                }
            }
            (Value::Array(encoded), Value::Array(object)) => {
                assert_eq!(encoded.len(), object.len(), "{path}");
                for (encoded, object) in encoded.iter().zip(object) {
                    same(encoded, object, path);
                }
            }
            _ => assert_eq!(encoded, object, "{path}"),
        }
    }
    match text(object, "/kind") {
        "Namespace" => as_type::<core::Namespace>(object),
        "Node" => as_type::<core::Node>(object),
        "Pod" => as_type::<core::Pod>(object),
        "Service" => as_type::<core::Service>(object),
        "ConfigMap" => as_type::<core::ConfigMap>(object),
        "Secret" => as_type::<core::Secret>(object),
        "ServiceAccount" => as_type::<core::ServiceAccount>(object),
        "PersistentVolume" => as_type::<core::PersistentVolume>(object),
        "PersistentVolumeClaim" => as_type::<core::PersistentVolumeClaim>(object),
        "Event" => as_type::<core::Event>(object),
        "Deployment" => as_type::<apps::Deployment>(object),
        "ReplicaSet" => as_type::<apps::ReplicaSet>(object),
        "StatefulSet" => as_type::<apps::StatefulSet>(object),
        "DaemonSet" => as_type::<apps::DaemonSet>(object),
        "Job" => as_type::<batch::Job>(object),
        "CronJob" => as_type::<batch::CronJob>(object),
        "Lease" => as_type::<coordination::Lease>(object),
        "EndpointSlice" => as_type::<discovery::EndpointSlice>(object),
        "Ingress" => as_type::<networking::Ingress>(object),
        "HorizontalPodAutoscaler" => as_type::<autoscaling::HorizontalPodAutoscaler>(object),
        "PodDisruptionBudget" => as_type::<policy::PodDisruptionBudget>(object),
        kind => panic!("{kind} has no type here"),
    }
}

/// Checks what a server would check of the metadata of any object.
pub(super) fn check_metadata(object: &Value) {
    let name = text(object, "/metadata/name");
    // Names of pods become host names, names of services host names of the cluster.
    let most = match text(object, "/kind") {
        "Namespace" | "Service" | "Pod" | "StatefulSet" | "Deployment" => 63,
        _ => 253,
    };
    assert!((1..=most).contains(&name.len()), "{name}");
    for label in name.split('.') {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        assert!(!label.is_empty() && label.bytes().all(inner), "{name}");
        assert!(!label.starts_with('-') && !label.ends_with('-'), "{name}");
    }
    let maps = ["/metadata/labels", "/spec/selector/matchLabels", "/spec/template/metadata/labels"];
    for (key, value) in
        maps.iter().filter_map(|path| object.pointer(path)).filter_map(Value::as_object).flatten()
    {
        validate_label_key(key).unwrap();
        validate_label_value(value.as_str().unwrap()).unwrap();
    }
    for path in ["/metadata/uid", "/metadata/creationTimestamp", "/metadata/managedFields/0/manager"] {
        assert!(!text(object, path).is_empty(), "no {path}: {object}");
    }
}

fn of_kind(cluster: &DemoCluster, kind: &str) -> Vec<Value> {
    cluster.objects().filter(|object| text(object, "/kind") == kind).collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let bytes = |seed| {
        let cluster = DemoCluster::new(seed, 300);
        cluster.objects().map(|object| object.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(bytes(1), bytes(1));
    let (one, two) = (bytes(1), bytes(2));
    let one: HashSet<&String> = one.iter().collect();
    assert!(two.iter().all(|object| !one.contains(object)));
}

#[test]
fn there_are_exactly_as_many_pods_as_asked_for() {
    for pods in [0, 1, 2, 3, 7, 10, 31, 100, 2_500] {
        assert_eq!(of_kind(&DemoCluster::new(11, pods), "Pod").len(), pods);
    }
}

#[test]
fn a_small_cluster_has_what_every_cluster_has() {
    for pods in [0, 1, 10] {
        let cluster = DemoCluster::new(4, pods);
        assert_eq!(of_kind(&cluster, "Node").len(), 1);
        assert_eq!(of_kind(&cluster, "Lease").len(), 1);
        let dns = of_kind(&cluster, "Pod");
        let dns = dns.iter().filter(|pod| text(pod, "/metadata/labels/k8s-app") == "kube-dns");
        assert_eq!(dns.count(), pods.min(2));
        assert!(
            of_kind(&cluster, "Service").iter().any(|service| text(service, "/metadata/name") == "kube-dns")
        );
    }
    assert!(of_kind(&DemoCluster::new(4, 0), "Namespace").is_empty());
}

#[test]
fn namespaces_come_first_and_owners_before_what_they_own() {
    for (seed, pods) in [(1, 0), (2, 1), (3, 10), (4, 2_500)] {
        let mut uids = HashSet::new();
        let mut owners: HashMap<String, (String, String)> = HashMap::new();
        let mut namespaces: HashSet<String> =
            ["default", "kube-system", "kube-public", "kube-node-lease"].map(String::from).into();
        let mut others_began = false;
        for object in DemoCluster::new(seed, pods).objects() {
            let (kind, name) = (text(&object, "/kind"), text(&object, "/metadata/name"));
            if kind == "Namespace" {
                assert!(!others_began && namespaces.insert(name.to_owned()), "{name}");
            } else {
                others_began = true;
                let namespace = text(&object, "/metadata/namespace");
                assert!(namespace.is_empty() || namespaces.contains(namespace), "{namespace}");
            }
            for owner in super::field::list(&object, "/metadata/ownerReferences") {
                let known = &owners[text(owner, "/uid")];
                assert_eq!(
                    (known.0.as_str(), known.1.as_str()),
                    (text(owner, "/kind"), text(owner, "/name"))
                );
            }
            let uid = text(&object, "/metadata/uid").to_owned();
            owners.insert(uid.clone(), (kind.to_owned(), name.to_owned()));
            assert!(uids.insert(uid));
        }
    }
}

#[test]
fn every_object_is_valid_and_has_a_name_of_its_own() {
    for (seed, pods) in [(1, 0), (2, 1), (3, 10), (4, 2_500)] {
        let mut names = HashSet::new();
        let cluster = DemoCluster::new(seed, pods);
        for object in cluster.objects() {
            decode(&object);
            check_metadata(&object);
            let namespace = text(&object, "/metadata/namespace").to_owned();
            let name = text(&object, "/metadata/name").to_owned();
            let created: jiff::Timestamp = text(&object, "/metadata/creationTimestamp").parse().unwrap();
            assert!(created < cluster.now, "{object}");
            assert!(names.insert((resource(&object), namespace, name)), "{object}");
        }
    }
}

#[test]
fn pods_have_the_size_of_real_ones() {
    let cluster = DemoCluster::new(8, 2_500);
    let mut pods = of_kind(&cluster, "Pod");
    let average = |pods: &[Value]| pods.iter().map(|pod| pod.to_string().len()).sum::<usize>() / pods.len();
    let whole = average(&pods);
    assert!((6_500..8_500).contains(&whole), "{whole}");
    for pod in &mut pods {
        pod["metadata"].as_object_mut().unwrap().remove("managedFields");
    }
    let without = average(&pods);
    assert!((3_300..4_700).contains(&without), "{without}");
}

#[test]
fn a_large_cluster_has_everything_and_some_of_it_is_in_trouble() {
    let cluster = DemoCluster::new(5, 2_500);
    let mut kinds: HashMap<String, usize> = HashMap::new();
    let mut troubles: HashMap<String, usize> = HashMap::new();
    for object in cluster.objects() {
        *kinds.entry(text(&object, "/kind").to_owned()).or_default() += 1;
        if text(&object, "/kind") == "Pod" {
            let waiting = text(&object, "/status/containerStatuses/0/state/waiting/reason");
            let why = if waiting.is_empty() { text(&object, "/status/conditions/0/reason") } else { waiting };
            *troubles.entry(why.to_owned()).or_default() += 1;
        }
    }
    for kind in [
        "Namespace",
        "Node",
        "Lease",
        "Pod",
        "Service",
        "EndpointSlice",
        "ConfigMap",
        "Secret",
        "ServiceAccount",
        "Deployment",
        "ReplicaSet",
        "StatefulSet",
        "DaemonSet",
        "Job",
        "CronJob",
        "Ingress",
        "HorizontalPodAutoscaler",
        "PodDisruptionBudget",
        "PersistentVolume",
        "PersistentVolumeClaim",
    ] {
        assert!(kinds.get(kind).copied().unwrap_or_default() >= 3, "{kind}: {kinds:?}");
    }
    assert_eq!((kinds["Node"], kinds["Event"]), (84, 250));
    assert!(kinds["ReplicaSet"] > kinds["Deployment"]);
    for trouble in ["CrashLoopBackOff", "ImagePullBackOff", "Unschedulable"] {
        let pods = troubles.get(trouble).copied().unwrap_or_default();
        assert!((2..150).contains(&pods), "{trouble}: {troubles:?}");
    }
}

#[test]
fn what_a_workload_reports_is_what_its_pods_are() {
    let mut ready: HashMap<String, i64> = HashMap::new();
    let mut sets = Vec::new();
    for object in DemoCluster::new(6, 2_500).objects() {
        match text(&object, "/kind") {
            "Pod" if super::pod::is_ready(&object) => {
                *ready.entry(text(&object, "/metadata/ownerReferences/0/uid").to_owned()).or_default() += 1;
            }
            "ReplicaSet" | "StatefulSet" => sets.push((object, "/status/readyReplicas")),
            "DaemonSet" => sets.push((object, "/status/numberReady")),
            _ => {}
        }
    }
    for (set, path) in sets {
        let pods = ready.get(text(&set, "/metadata/uid")).copied().unwrap_or_default();
        assert_eq!(super::field::number(&set, path), pods, "{set}");
    }
}

#[test]
fn ages_follow_the_time_that_is_given() {
    for now in [jiff::Timestamp::MIN, jiff::Timestamp::UNIX_EPOCH, jiff::Timestamp::MAX] {
        assert_eq!(of_kind(&DemoCluster::new(1, 60).at(now), "Pod").len(), 60);
    }
}
