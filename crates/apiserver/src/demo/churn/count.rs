//! Steps of controllers that only report: what they count is what the server has.

use serde_json::Value;

use super::{Change, Churn, ENDPOINT_SLICES, Group, REPLICA_SETS, Scene};
use crate::demo::{
    field::{is_staying, number, put, text},
    network::{slice_name, update_slice},
    plan::Workload,
    pod::is_ready,
    workload::{REVISION, Tally, report_deployment, report_replica_set, report_stateful_set, template_hash},
};

impl Churn {
    pub(super) fn count_replica_set(
        &mut self,
        workload: &Workload,
        group: Group,
        scene: Scene<'_>,
    ) -> Option<Change> {
        let (namespace, name) = self.replica_set(workload, group.id);
        let mut set = scene.get(REPLICA_SETS, &namespace, &name)?;
        let before = set.get("status").cloned();
        let staying = self.staying(workload, group, scene);
        let (pods, ready) = (staying.len() as u32, ready(&staying));
        report_replica_set(&mut set, Tally { pods, updated: pods, ready }, scene.now);
        (set.get("status") != before.as_ref()).then_some(Change::Update(set))
    }

    pub(super) fn count_deployment(
        &mut self,
        workload: &Workload,
        old: Option<u32>,
        scene: Scene<'_>,
    ) -> Option<Change> {
        let mut deployment = self.owner(workload, scene)?;
        let current = self.slot(workload).pods.id;
        let mut tally = Tally::default();
        for hash in std::iter::once(current).chain(old.filter(|&hash| hash != current)) {
            let (namespace, name) = self.replica_set(workload, hash);
            let Some(set) = scene.get(REPLICA_SETS, &namespace, &name) else { continue };
            let pods = count(&set, "/status/replicas");
            tally.pods += pods;
            tally.ready += count(&set, "/status/readyReplicas");
            if hash == current {
                tally.updated = pods;
                let revision =
                    set.pointer("/metadata/annotations").and_then(|all| all.get(REVISION)).cloned();
                put(&mut deployment, &["metadata", "annotations", REVISION], revision.unwrap_or_default());
            }
        }
        let reported = |deployment: &Value| {
            ["replicas", "updatedReplicas", "readyReplicas", "unavailableReplicas", "observedGeneration"]
                .map(|name| number(deployment, &format!("/status/{name}")))
        };
        let before = reported(&deployment);
        let (_, set) = self.replica_set(workload, current);
        report_deployment(&mut deployment, &set, tally, scene.now);
        (reported(&deployment) != before).then_some(Change::Update(deployment))
    }

    pub(super) fn count_stateful_set(&mut self, workload: &Workload, scene: Scene<'_>) -> Option<Change> {
        let mut set = self.owner(workload, scene)?;
        let group = self.slot(workload).pods;
        let staying = self.staying(workload, group, scene);
        let template = set.pointer("/spec/template").map(template_hash).unwrap_or_default();
        let (_, revision) = self.replica_set(workload, template);
        let is_new = |pod: &&Value| text(pod, "/metadata/labels/controller-revision-hash") == revision;
        let tally = Tally {
            pods: staying.len() as u32,
            updated: staying.iter().filter(is_new).count() as u32,
            ready: ready(&staying),
        };
        let before = set.get("status").cloned();
        report_stateful_set(&mut set, tally, scene.now);
        (set.get("status") != before.as_ref()).then_some(Change::Update(set))
    }

    pub(super) fn count_endpoints(
        &mut self,
        workload: &Workload,
        old: Option<Group>,
        scene: Scene<'_>,
    ) -> Option<Change> {
        let namespace = self.cluster.plan.namespace_of(workload);
        let mut slice = scene.get(ENDPOINT_SLICES, namespace, &slice_name(&self.cluster, workload))?;
        let current = self.slot(workload).pods;
        let mut pods = self.pods_of(workload, current, scene);
        if let Some(old) = old.filter(|old| old.id != current.id) {
            pods.extend(self.pods_of(workload, old, scene));
        }
        update_slice(&mut slice, &pods, scene.now).then_some(Change::Update(slice))
    }

    fn staying(&self, workload: &Workload, group: Group, scene: Scene<'_>) -> Vec<Value> {
        let mut pods = self.pods_of(workload, group, scene);
        pods.retain(is_staying);
        pods
    }
}

fn ready(pods: &[Value]) -> u32 {
    pods.iter().filter(|pod| is_ready(pod)).count() as u32
}

fn count(object: &Value, pointer: &str) -> u32 {
    number(object, pointer).clamp(0, i64::from(u32::MAX / 2)) as u32
}
