//! Pod templates: what the pods of a workload run.

use serde_json::{Value, json};

use super::{
    DemoCluster,
    chance::{Chance, Subject},
    field::{list_mut, put, text},
    plan::{Daemon, Kind, Workload},
};

/// The labels by which a workload finds its pods.
pub(super) fn selector(cluster: &DemoCluster, workload: &Workload) -> Value {
    match workload.kind {
        Kind::CoreDns => json!({"k8s-app": "kube-dns"}),
        Kind::Daemon(Daemon::KubeProxy) => json!({"k8s-app": "kube-proxy"}),
        _ => {
            let name = cluster.plan.name_of(workload);
            let instance = format!("{name}-{}", cluster.plan.namespace_of(workload));
            json!({"app.kubernetes.io/instance": instance, "app.kubernetes.io/name": name})
        }
    }
}

/// The labels of a workload and of all that belongs to it.
pub(super) fn labels(cluster: &DemoCluster, workload: &Workload, revision: u32) -> Value {
    let mut labels = selector(cluster, workload);
    let name = cluster.plan.name_of(workload);
    let namespace = cluster.plan.namespace_of(workload);
    let mut chance = cluster.seed().chance(Subject::Template, workload.number.into(), 1);
    for (key, value) in [
        ("app.kubernetes.io/component", name.rsplit('-').next().unwrap_or_default()),
        ("app.kubernetes.io/instance", &format!("{name}-{namespace}")),
        ("app.kubernetes.io/managed-by", chance.pick(&["Helm", "argocd"])),
        ("app.kubernetes.io/name", &name),
        ("app.kubernetes.io/version", &version(cluster, workload, revision)),
    ] {
        labels[key] = value.into();
    }
    if !matches!(workload.kind, Kind::CoreDns | Kind::Daemon(_)) {
        labels["team"] = namespace.split('-').next().unwrap_or_default().into();
    }
    labels
}

/// A template before a controller adds its hash. It is the same but for the version in every revision.
pub(super) fn template(cluster: &DemoCluster, workload: &Workload, revision: u32) -> Value {
    let mut chance = cluster.seed().chance(Subject::Template, workload.number.into(), 0);
    let name = cluster.plan.name_of(workload);
    let spec = match workload.kind {
        Kind::CoreDns => dns_spec(),
        Kind::Daemon(daemon) => daemon_spec(daemon),
        Kind::Deployment => service_spec(cluster, workload, revision, &name, &mut chance),
        Kind::StatefulSet => store_spec(&name, &mut chance),
        Kind::CronJob | Kind::Job => batch_spec(cluster, workload, revision, &name, &mut chance),
    };
    let mut template = json!({"metadata": {"labels": labels(cluster, workload, revision)}, "spec": spec});
    if workload.kind == Kind::Deployment && chance.percent(40) {
        template["metadata"]["annotations"] = json!({
            "prometheus.io/port": "8080",
            "prometheus.io/scrape": "true",
        });
    }
    defaults(&mut template);
    template
}

fn version(cluster: &DemoCluster, workload: &Workload, revision: u32) -> String {
    let mut chance = cluster.seed().chance(Subject::Revision, workload.number.into(), 0);
    format!("{}.{}.{revision}", chance.below(5), chance.below(40))
}

fn image(cluster: &DemoCluster, workload: &Workload, revision: u32, name: &str) -> String {
    let team = cluster.plan.namespace_of(workload).split('-').next().unwrap_or_default();
    format!("registry.example.com/{team}/{name}:v{}", version(cluster, workload, revision))
}

/// What a server fills in where a user says nothing.
fn defaults(template: &mut Value) {
    for container in list_mut(template, "/spec/containers") {
        put(container, &["imagePullPolicy"], "IfNotPresent");
        put(container, &["terminationMessagePath"], "/dev/termination-log");
        put(container, &["terminationMessagePolicy"], "File");
    }
    for (name, value) in
        [("dnsPolicy", "ClusterFirst"), ("restartPolicy", "Always"), ("schedulerName", "default-scheduler")]
    {
        if text(template, &format!("/spec/{name}")).is_empty() {
            put(template, &["spec", name], value);
        }
    }
    if template.pointer("/spec/terminationGracePeriodSeconds").is_none() {
        put(template, &["spec", "terminationGracePeriodSeconds"], 30);
    }
    if template.pointer("/spec/securityContext").is_none() {
        put(template, &["spec", "securityContext"], json!({}));
    }
}

fn probe(path: &str, port: Value, delay: u64, period: u64) -> Value {
    let mut probe = json!({
        "failureThreshold": 3,
        "httpGet": {"path": path, "port": port, "scheme": "HTTP"},
        "periodSeconds": period,
        "successThreshold": 1,
        "timeoutSeconds": 1,
    });
    // No server writes a delay of 0.
    if delay > 0 {
        put(&mut probe, &["initialDelaySeconds"], delay);
    }
    probe
}

fn resources(chance: &mut Chance) -> Value {
    let cpu = [50, 100, 100, 250, 500, 1000][chance.below(6) as usize];
    let memory = [64, 128, 256, 256, 512, 1024][chance.below(6) as usize];
    let requests = json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")});
    match chance.below(10) {
        0 => json!({"limits": requests, "requests": requests}),
        1 => json!({"requests": requests}),
        _ => json!({
            "limits": {"cpu": format!("{}m", cpu * 4), "memory": format!("{}Mi", memory * 2)},
            "requests": requests,
        }),
    }
}

fn locked_down() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
    })
}

fn service_spec(
    cluster: &DemoCluster,
    workload: &Workload,
    revision: u32,
    name: &str,
    chance: &mut Chance,
) -> Value {
    let namespace = cluster.plan.namespace_of(workload);
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    let mut env = vec![
        field("POD_NAME", "metadata.name"),
        json!({"name": "LOG_LEVEL", "valueFrom": {"configMapKeyRef": {"key": "log-level", "name": format!("{name}-config")}}}),
        json!({"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"key": "password", "name": format!("{name}-credentials")}}}),
    ];
    for (variable, value) in [
        ("CACHE_URL", format!("redis://cache.{namespace}.svc.cluster.local:6379/0")),
        ("GOMAXPROCS", chance.between(1, 8).to_string()),
        ("REQUEST_TIMEOUT_MS", (chance.between(1, 60) * 500).to_string()),
        ("WORKER_CONCURRENCY", chance.between(1, 32).to_string()),
    ] {
        if chance.percent(30) {
            env.push(json!({"name": variable, "value": value}));
        }
    }
    let health = if chance.percent(50) { "/healthz" } else { "/actuator/health/liveness" };
    let mut containers = vec![json!({
        "env": env,
        "image": image(cluster, workload, revision, name),
        "name": name,
        "ports": [
            {"containerPort": 8080, "name": "http", "protocol": "TCP"},
        ],
        "readinessProbe": probe("/ready", json!("http"), 5, 10),
        "resources": resources(chance),
        "securityContext": locked_down(),
        "volumeMounts": [
            {"mountPath": "/etc/config", "name": "config", "readOnly": true},
        ],
    })];
    if chance.percent(70) {
        put(&mut containers[0], &["livenessProbe"], probe(health, json!("http"), 15, 20));
    }
    if chance.percent(6) {
        containers.push(json!({
            "args": ["--config-path", "/etc/envoy/envoy.yaml", "--service-cluster", name],
            "image": "docker.io/envoyproxy/envoy:v1.35.0",
            "name": "envoy",
            "ports": [{"containerPort": 15001, "name": "envoy", "protocol": "TCP"}],
            "readinessProbe": probe("/ready", json!(15021), 1, 15),
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "20m", "memory": "64Mi"}},
            "securityContext": locked_down(),
            "volumeMounts": [{"mountPath": "/etc/envoy", "name": "config", "readOnly": true}],
        }));
    }
    let mut spec = json!({
        "containers": containers,
        "securityContext": {
            "fsGroup": 1000,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "serviceAccount": name,
        "serviceAccountName": name,
        "volumes": [
            {"configMap": {"defaultMode": 420, "name": format!("{name}-config")}, "name": "config"},
        ],
    });
    if chance.percent(20) {
        spec["topologySpreadConstraints"] = json!([{
            "labelSelector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
        }]);
    }
    spec
}

fn store_spec(name: &str, chance: &mut Chance) -> Value {
    let (image, port, mount) = match name.rsplit('-').find(|part| part.parse::<u32>().is_err()) {
        Some("postgres") => ("docker.io/library/postgres:17.5", 5432, "/var/lib/postgresql/data"),
        Some("kafka") => ("docker.io/bitnami/kafka:4.0.0", 9092, "/bitnami/kafka"),
        Some("mongodb") => ("docker.io/library/mongo:8.0.12", 27017, "/data/db"),
        Some("opensearch") => {
            ("docker.io/opensearchproject/opensearch:3.1.0", 9200, "/usr/share/opensearch/data")
        }
        Some("rabbitmq") => ("docker.io/library/rabbitmq:4.1.3", 5672, "/var/lib/rabbitmq"),
        _ => ("docker.io/library/redis:8.0.3", 6379, "/data"),
    };
    let alive = |delay: u64| {
        json!({
            "failureThreshold": 6,
            "initialDelaySeconds": delay,
            "periodSeconds": 10,
            "successThreshold": 1,
            "tcpSocket": {"port": "client"},
            "timeoutSeconds": 5,
        })
    };
    json!({
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
            "podAffinityTerm": {
                "labelSelector": {"matchLabels": {"app.kubernetes.io/name": name}},
                "topologyKey": "kubernetes.io/hostname",
            },
            "weight": 100,
        }]}},
        "containers": [{
            "env": [
                {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
                {"name": "ADMIN_PASSWORD", "valueFrom": {"secretKeyRef": {"key": "password", "name": format!("{name}-credentials")}}},
                {"name": "HEADLESS_SERVICE", "value": name},
                {"name": "DATA_DIR", "value": mount},
            ],
            "image": image,
            "livenessProbe": alive(30),
            "name": "store",
            "ports": [{"containerPort": port, "name": "client", "protocol": "TCP"}],
            "readinessProbe": alive(5),
            "resources": resources(chance),
            "securityContext": {"allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 1001},
            "volumeMounts": [
                {"mountPath": mount, "name": "data"},
                {"mountPath": "/etc/store", "name": "config", "readOnly": true},
            ],
        }],
        "securityContext": {"fsGroup": 1001, "fsGroupChangePolicy": "OnRootMismatch"},
        "serviceAccount": name,
        "serviceAccountName": name,
        "terminationGracePeriodSeconds": 120,
        "volumes": [{"configMap": {"defaultMode": 420, "name": format!("{name}-config")}, "name": "config"}],
    })
}

fn batch_spec(
    cluster: &DemoCluster,
    workload: &Workload,
    revision: u32,
    name: &str,
    chance: &mut Chance,
) -> Value {
    let task = name.rsplit('-').next().unwrap_or_default();
    json!({
        "containers": [{
            "args": ["run", task, "--batch-size", chance.between(1, 20).saturating_mul(50).to_string()],
            "command": ["/usr/local/bin/task"],
            "env": [
                {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}},
                {"name": "TASK", "value": task},
                {"name": "PUSHGATEWAY", "value": "http://pushgateway.monitoring.svc:9091"},
            ],
            "image": image(cluster, workload, revision, name),
            "name": "task",
            "resources": resources(chance),
            "securityContext": locked_down(),
            "volumeMounts": [{"mountPath": "/scratch", "name": "scratch"}],
        }],
        "restartPolicy": "Never",
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "volumes": [{"emptyDir": {"sizeLimit": "2Gi"}, "name": "scratch"}],
    })
}

fn dns_spec() -> Value {
    json!({
        "containers": [{
            "args": ["-conf", "/etc/coredns/Corefile"],
            "image": "registry.k8s.io/coredns/coredns:v1.12.1",
            "livenessProbe": probe("/health", json!(8080), 60, 10),
            "name": "coredns",
            "ports": [
                {"containerPort": 53, "name": "dns", "protocol": "UDP"},
                {"containerPort": 53, "name": "dns-tcp", "protocol": "TCP"},
                {"containerPort": 9153, "name": "metrics", "protocol": "TCP"},
            ],
            "readinessProbe": probe("/ready", json!(8181), 0, 10),
            "resources": {"limits": {"memory": "170Mi"}, "requests": {"cpu": "100m", "memory": "70Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
                "readOnlyRootFilesystem": true,
            },
            "volumeMounts": [{"mountPath": "/etc/coredns", "name": "config-volume", "readOnly": true}],
        }],
        "dnsPolicy": "Default",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "priorityClassName": "system-cluster-critical",
        "serviceAccount": "coredns",
        "serviceAccountName": "coredns",
        "tolerations": [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane"},
        ],
        "volumes": [{
            "configMap": {"defaultMode": 420, "items": [{"key": "Corefile", "path": "Corefile"}], "name": "coredns"},
            "name": "config-volume",
        }],
    })
}

fn daemon_spec(daemon: Daemon) -> Value {
    let name = daemon.name();
    let host = |volume: &str, path: &str| json!({"hostPath": {"path": path, "type": ""}, "name": volume});
    let (image, ports, mounts, volumes) = match daemon {
        Daemon::KubeProxy => (
            "registry.k8s.io/kube-proxy:v1.34.2",
            json!([{"containerPort": 10249, "hostPort": 10249, "name": "metrics", "protocol": "TCP"}]),
            json!([
                {"mountPath": "/var/lib/kube-proxy", "name": "kube-proxy"},
                {"mountPath": "/run/xtables.lock", "name": "xtables-lock"},
                {"mountPath": "/lib/modules", "name": "lib-modules", "readOnly": true},
            ]),
            json!([
                {"configMap": {"defaultMode": 420, "name": "kube-proxy"}, "name": "kube-proxy"},
                host("xtables-lock", "/run/xtables.lock"),
                host("lib-modules", "/lib/modules"),
            ]),
        ),
        Daemon::NodeExporter => (
            "quay.io/prometheus/node-exporter:v1.9.1",
            json!([{"containerPort": 9100, "hostPort": 9100, "name": "metrics", "protocol": "TCP"}]),
            json!([
                {"mountPath": "/host/proc", "name": "proc", "readOnly": true},
                {"mountPath": "/host/sys", "name": "sys", "readOnly": true},
            ]),
            json!([host("proc", "/proc"), host("sys", "/sys")]),
        ),
        Daemon::FluentBit => (
            "cr.fluentbit.io/fluent/fluent-bit:4.0.8",
            json!([{"containerPort": 2020, "name": "http", "protocol": "TCP"}]),
            json!([
                {"mountPath": "/var/log", "name": "logs", "readOnly": true},
                {"mountPath": "/fluent-bit/etc", "name": "config"},
            ]),
            json!([
                host("logs", "/var/log"),
                {"configMap": {"defaultMode": 420, "name": "fluent-bit"}, "name": "config"},
            ]),
        ),
    };
    let mut spec = json!({
        "containers": [{
            "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}}],
            "image": image,
            "name": name,
            "ports": ports,
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
            "securityContext": {"privileged": daemon == Daemon::KubeProxy},
            "volumeMounts": mounts,
        }],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "priorityClassName": "system-node-critical",
        "serviceAccount": name,
        "serviceAccountName": name,
        "tolerations": [{"operator": "Exists"}],
        "volumes": volumes,
    });
    if daemon.on_host_network() {
        spec["hostNetwork"] = true.into();
    }
    spec
}
