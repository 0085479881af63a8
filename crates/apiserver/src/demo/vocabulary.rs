//! The words that names are made of. No word occurs in two lists of suffixes, so names of different kinds of
//! workloads never meet.

/// What teams, and so namespaces, are called.
pub(super) const TEAMS: &[&str] = &[
    "payments",
    "checkout",
    "search",
    "identity",
    "catalog",
    "shipping",
    "orders",
    "billing",
    "accounts",
    "inventory",
    "pricing",
    "messaging",
    "analytics",
    "recommendations",
    "media",
    "loyalty",
    "fraud",
    "reporting",
    "onboarding",
    "support",
    "marketing",
    "partners",
    "logistics",
    "warehouse",
    "returns",
    "reviews",
    "content",
    "ledger",
    "risk",
    "compliance",
    "mobile",
    "storefront",
    "growth",
    "insights",
    "delivery",
    "subscriptions",
    "geo",
    "booking",
    "translations",
    "advertising",
];

/// Stages of a team; the empty one is the team alone.
pub(super) const STAGES: &[&str] = &["", "-prod", "-staging", "-dev", "-qa", "-preview"];

/// The first half of the name of a workload.
pub(super) const COMPONENTS: &[&str] = &[
    "cart",
    "profile",
    "session",
    "invoice",
    "quote",
    "tax",
    "voucher",
    "wishlist",
    "basket",
    "address",
    "email",
    "sms",
    "push",
    "image",
    "video",
    "thumbnail",
    "feed",
    "ranking",
    "suggest",
    "index",
    "crawler",
    "stock",
    "supplier",
    "route",
    "tracking",
    "label",
    "customs",
    "refund",
    "dispute",
    "payout",
    "wallet",
    "card",
    "ledger",
    "audit",
    "consent",
    "login",
    "token",
    "device",
    "segment",
    "campaign",
    "banner",
    "review",
    "rating",
    "comment",
    "ticket",
    "chat",
    "faq",
    "export",
    "import",
    "webhook",
    "partner",
    "offer",
    "bundle",
    "gift",
    "coupon",
    "currency",
    "locale",
    "map",
    "store",
    "slot",
    "driver",
    "vehicle",
    "shift",
];

/// The second half of the name of a Deployment.
pub(super) const SERVICES: &[&str] = &[
    "api",
    "web",
    "worker",
    "gateway",
    "consumer",
    "scheduler",
    "backend",
    "frontend",
    "proxy",
    "processor",
    "service",
    "engine",
    "bff",
    "adapter",
];

/// The second half of the name of a StatefulSet.
pub(super) const STORES: &[&str] = &["postgres", "redis", "kafka", "mongodb", "opensearch", "rabbitmq"];

/// The second half of the name of a CronJob.
pub(super) const ROUTINES: &[&str] = &["cleanup", "backup", "report", "sync", "reindex", "digest", "rotate"];

/// The second half of the name of a Job.
pub(super) const ERRANDS: &[&str] = &["migrate", "backfill", "seed-data", "repair", "bootstrap"];

pub(super) const ZONES: &[&str] = &["eu-west-1a", "eu-west-1b", "eu-west-1c"];

/// The images of what every cluster runs, as a node lists them.
pub(super) const SYSTEM_IMAGES: &[&str] = &[
    "registry.k8s.io/etcd:3.6.4-0",
    "registry.k8s.io/kube-apiserver:v1.34.2",
    "registry.k8s.io/kube-controller-manager:v1.34.2",
    "registry.k8s.io/kube-scheduler:v1.34.2",
    "registry.k8s.io/kube-proxy:v1.34.2",
    "registry.k8s.io/coredns/coredns:v1.12.1",
    "registry.k8s.io/pause:3.10.1",
    "quay.io/prometheus/node-exporter:v1.9.1",
    "cr.fluentbit.io/fluent/fluent-bit:4.0.8",
    "docker.io/calico/node:v3.30.2",
    "docker.io/envoyproxy/envoy:v1.35.0",
    "docker.io/library/postgres:17.5",
    "docker.io/library/redis:8.0.3",
    "docker.io/bitnami/kafka:4.0.0",
];
