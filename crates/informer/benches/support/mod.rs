//! The cluster that the benches look at: 100,000 pods, 100 for each of 1,000 applications.
//!
//! Of each pod they keep what a scheduler-like program would: metadata and the node's name.

use std::borrow::Cow;

use informer::Object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

/// A pod with nothing but its metadata and its node.
#[derive(Clone)]
pub(crate) struct Pod {
    metadata: ObjectMeta,
    node: String,
}

impl Resource for Pod {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

pub(crate) const PODS: usize = 100_000;
pub(crate) const PODS_PER_APP: usize = 100;

/// Where an update of pod `i` may differ from the pod before it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Revision {
    pub(crate) version: u64,
    /// Becomes the label `revision`, which nothing else has.
    pub(crate) label: u64,
}

/// The pod with number `i`.
pub(crate) fn pod(i: usize, revision: Revision) -> Object<Pod> {
    let app = i % (PODS / PODS_PER_APP);
    let labels = [
        ("app.kubernetes.io/name", format!("app-{app}")),
        ("app.kubernetes.io/component", ["web", "worker", "cache"][app % 3].to_owned()),
        ("pod-template-hash", format!("{:010x}", (app as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24)),
        ("revision", format!("r{}", revision.label)),
        ("topology.kubernetes.io/zone", format!("zone-{}", i % 3)),
    ];
    let noise = (i as u64).wrapping_mul(0x2545_f491_4f6c_dd1d);
    let metadata = ObjectMeta {
        name: Some(format!("app-{app}-{:010x}-{:05x}", noise >> 24, noise & 0xf_ffff)),
        namespace: Some(format!("team-{}", app % 100)),
        resource_version: Some((1_000_000 + revision.version).to_string()),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into()),
        ..ObjectMeta::default()
    };
    Object::new(Pod { metadata, node: format!("node-{}", i % 1_000) }).expect("the pod has a name")
}

pub(crate) fn pods() -> Vec<Object<Pod>> {
    (0..PODS).map(|i| pod(i, Revision::default())).collect()
}

/// The node that a pod runs on: the user index of the benches.
pub(crate) fn node_of(pod: &Object<Pod>) -> Option<String> {
    Some(pod.node.clone())
}

/// Numbers below `PODS` in an order without pattern, the same in every run.
pub(crate) fn scattered() -> impl Iterator<Item = usize> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % PODS as u64) as usize
    })
}
