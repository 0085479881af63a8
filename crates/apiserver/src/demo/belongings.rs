//! What a namespace and a workload come with: accounts, configuration, secrets. No secret is one: each says so.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    DemoCluster,
    chance::{Chance, Subject},
    field::{put, time},
    managed::signed,
    origin,
    plan::{Daemon, Kind, Workload},
    template::labels,
};

/// A namespace, except for those that the server itself has.
pub(super) fn namespace(cluster: &DemoCluster, number: u16, name: &str) -> Value {
    let at = origin::namespace_created(cluster, number);
    let mut chance = cluster.seed().chance(Subject::Namespace, number.into(), 2);
    let (team, stage) = name.split_once('-').unwrap_or((name, "prod"));
    let object = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "annotations": {"cost-center": format!("cc-{}", chance.between(1_000, 9_999))},
            "creationTimestamp": time(at),
            "labels": {
                "environment": stage.split('-').next().unwrap_or_default(),
                "kubernetes.io/metadata.name": name,
                "pod-security.kubernetes.io/enforce": "baseline",
                "team": team,
            },
            "name": name,
            "uid": chance.uid(),
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    });
    signed(object, ("terraform", at), ("kube-controller-manager", at))
}

/// What every namespace has from the beginning.
pub(super) fn namespace_contents(cluster: &DemoCluster, number: u16, name: &str) -> Vec<Value> {
    let at = origin::namespace_created(cluster, number);
    let mut chance = cluster.seed().chance(Subject::Namespace, number.into(), 3);
    let authority =
        "-----BEGIN CERTIFICATE-----\nTm90IGEgY2VydGlmaWNhdGU6IGRlbW8gZGF0YS4=\n-----END CERTIFICATE-----\n";
    vec![
        account(name, "default", json!({}), at, &mut chance),
        plain(
            "ConfigMap",
            name,
            "kube-root-ca.crt",
            json!({}),
            at,
            &mut chance,
            json!({"ca.crt": authority}),
        ),
    ]
}

/// What the pods of a workload refer to.
pub(super) fn workload_contents(cluster: &DemoCluster, workload: &Workload) -> Vec<Value> {
    let mut chance = cluster.seed().chance(Subject::Workload, workload.number.into(), 4);
    let name = cluster.plan.name_of(workload);
    let namespace = cluster.plan.namespace_of(workload);
    let at = origin::created(cluster, workload);
    let labels = labels(cluster, workload, origin::revision(cluster, workload));
    let config = |name: &str, data: Value, chance: &mut Chance| {
        plain("ConfigMap", namespace, name, labels.clone(), at, chance, data)
    };
    match workload.kind {
        Kind::CronJob | Kind::Job => Vec::new(),
        Kind::Daemon(Daemon::NodeExporter) => {
            vec![account(namespace, &name, labels.clone(), at, &mut chance)]
        }
        Kind::CoreDns | Kind::Daemon(_) => {
            let data = match workload.kind {
                Kind::CoreDns => json!({"Corefile": COREFILE}),
                Kind::Daemon(Daemon::KubeProxy) => json!({"config.conf": PROXY_CONFIG}),
                _ => json!({"fluent-bit.conf": LOGGING_CONFIG}),
            };
            let config = config(&name, data, &mut chance);
            vec![account(namespace, &name, labels, at, &mut chance), config]
        }
        Kind::Deployment | Kind::StatefulSet => {
            let settings = format!(
                "server:\n  port: 8080\n  shutdownGracePeriod: {}s\ncache:\n  ttl: {}m\n  maxEntries: {}\ntracing:\n  sampleRate: 0.{}\n",
                chance.between(5, 30),
                chance.between(1, 60),
                chance.between(1, 50) * 1_000,
                chance.between(1, 9),
            );
            let level = chance.pick(&["info", "info", "warn", "debug"]);
            let data = json!({"log-level": level, "settings.yaml": settings});
            let config = config(&format!("{name}-config"), data, &mut chance);
            let mut secret = plain(
                "Secret",
                namespace,
                &format!("{name}-credentials"),
                labels.clone(),
                at,
                &mut chance,
                json!({
                    "password": BASE64_STANDARD.encode(format!("not-a-real-password-{name}")),
                    "username": BASE64_STANDARD.encode(&name),
                }),
            );
            put(&mut secret, &["type"], "Opaque");
            vec![account(namespace, &name, labels, at, &mut chance), config, secret]
        }
    }
}

fn plain(
    kind: &str,
    namespace: &str,
    name: &str,
    labels: Value,
    at: Timestamp,
    chance: &mut Chance,
    data: Value,
) -> Value {
    let object = json!({
        "apiVersion": "v1",
        "data": data,
        "kind": kind,
        "metadata": {
            "creationTimestamp": time(at),
            "labels": labels,
            "name": name,
            "namespace": namespace,
            "uid": chance.uid(),
        },
    });
    signed(object, ("helm", at), ("", at))
}

fn account(namespace: &str, name: &str, labels: Value, at: Timestamp, chance: &mut Chance) -> Value {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "creationTimestamp": time(at),
            "labels": labels,
            "name": name,
            "namespace": namespace,
            "uid": chance.uid(),
        },
    });
    signed(object, ("helm", at), ("", at))
}

const COREFILE: &str = ".:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
}
";

const PROXY_CONFIG: &str = "apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clusterCIDR: 10.64.0.0/10
mode: nftables
";

const LOGGING_CONFIG: &str = "[SERVICE]
    flush 5
    http_server on
[INPUT]
    name tail
    path /var/log/containers/*.log
[OUTPUT]
    name forward
    match *
    host log-collector.logging.svc
";
