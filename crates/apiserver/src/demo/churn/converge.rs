//! Controllers: the steps that bring a workload from how it is to how it is wanted.

use serde_json::Value;

use super::{
    Churn, Group, REPLICA_SETS, Scene,
    step::{PodId, Step},
};
use crate::demo::{
    HISTORY_LIMIT,
    event::Reason,
    field::{is_staying, number, text},
    plan::{Kind, Workload},
    pod::is_ready,
    workload::template_hash,
};

/// A workload gets no more pods than this, whatever is wanted of it.
const MOST_REPLICAS: i64 = 500;

impl Churn {
    pub(super) fn converge(&mut self, workload: &Workload, scene: Scene<'_>) -> Vec<Step> {
        let Some(owner) = self.owner(workload, scene) else {
            // What it owned goes with it, or has gone.
            self.know(workload, 0);
            return Vec::new();
        };
        match workload.kind {
            Kind::Deployment | Kind::CoreDns => self.converge_deployment(workload, &owner, scene),
            Kind::StatefulSet => self.converge_stateful_set(workload, &owner, scene),
            Kind::Daemon(_) => self.converge_daemon_set(workload, scene),
            Kind::CronJob | Kind::Job => Vec::new(),
        }
    }

    fn converge_deployment(&mut self, workload: &Workload, owner: &Value, scene: Scene<'_>) -> Vec<Step> {
        let wanted = wanted(owner);
        let template = owner.pointer("/spec/template").map(template_hash).unwrap_or_default();
        let slot = self.slot(workload);
        let is_new = *slot.seen.get_or_insert(template) != template;
        let group = slot.pods;
        let (namespace, name) = self.replica_set(workload, group.id);
        let set = scene.get(REPLICA_SETS, &namespace, &name).filter(is_staying);

        let mut steps = Vec::new();
        let (mut live, mut known, mut ready) = (Vec::new(), 0, 0);
        for ordinal in group.first..group.end {
            let id = PodId { group: group.id, ordinal };
            let Some(pod) = self.pod(workload, group.id, ordinal, scene) else { continue };
            known += 1;
            if is_staying(&pod) {
                live.push(ordinal);
                ready += i64::from(is_ready(&pod));
                steps.extend(self.help(id, &pod));
            } else {
                steps.push(Step::Remove(id));
            }
        }
        self.know(workload, known);
        let paused = owner.pointer("/spec/paused") == Some(&Value::Bool(true));
        let Some(set) = set.filter(|_| paused || !is_new) else {
            steps.extend(self.roll_out(workload, wanted, template, &live));
            return steps;
        };
        let reported = ["replicas", "readyReplicas"].map(|name| number(&set, &format!("/status/{name}")));
        if steps.is_empty()
            && live.len() == wanted as usize
            && number(&set, "/spec/replicas") == i64::from(wanted)
            && reported == [i64::from(wanted), ready]
            && number(owner, "/status/readyReplicas") == ready
        {
            self.slot(workload).pods.first = live.first().copied().unwrap_or(group.end);
            return steps;
        }

        let slot = self.slot(workload);
        slot.pods.first = live.first().copied().unwrap_or(group.end);
        let here = live.len() as u32;
        let more = wanted.saturating_sub(here);
        slot.pods.end = group.end.saturating_add(more);
        let group = Group { end: slot.pods.end, ..group };
        steps.push(Step::SizeReplicaSet(group.id, wanted));
        let new: Vec<PodId> =
            (group.end - more..group.end).map(|ordinal| PodId { group: group.id, ordinal }).collect();
        self.bring_up(&new, &mut steps);
        let surplus: Vec<PodId> = live
            .iter()
            .take(here.saturating_sub(wanted) as usize)
            .map(|&ordinal| PodId { group: group.id, ordinal })
            .collect();
        steps.extend(surplus.iter().map(|&id| Step::Terminate(id)));
        steps.extend(surplus.iter().map(|&id| Step::Tell(id, Reason::Killing)).take(1));
        steps.extend([Step::CountReplicaSet(group), Step::CountDeployment(None), Step::Endpoints(None)]);
        if !surplus.is_empty() {
            steps.extend(surplus.iter().map(|&id| Step::Remove(id)));
            steps.push(Step::Endpoints(None));
        }
        steps
    }

    /// A new ReplicaSet grows while the pods of the old one go, a quarter at a time.
    fn roll_out(&mut self, workload: &Workload, wanted: u32, template: u32, live: &[u32]) -> Vec<Step> {
        let slot = self.slot(workload);
        let old = slot.pods;
        let first = if old.id == template { old.end } else { 0 };
        let group = Group { id: template, first, end: first.saturating_add(wanted) };
        slot.pods = group;
        slot.seen = Some(template);
        slot.groups.retain(|&hash| hash != template);
        if old.id != template {
            slot.groups.push(old.id);
        }
        let too_many = slot.groups.len().saturating_sub(HISTORY_LIMIT);
        let pruned: Vec<u32> = slot.groups.drain(..too_many).collect();

        let batch = batch(wanted) as usize;
        let coming: Vec<PodId> =
            (group.first..group.end).map(|ordinal| PodId { group: group.id, ordinal }).collect();
        let going: Vec<PodId> = live.iter().map(|&ordinal| PodId { group: old.id, ordinal }).collect();
        let mut coming = coming.chunks(batch);
        let mut going = going.chunks(batch);
        let mut steps = vec![Step::SizeReplicaSet(template, 0)];
        let (mut up, mut left) = (0, live.len() as u32);
        loop {
            let (new, gone) = (coming.next().unwrap_or_default(), going.next().unwrap_or_default());
            if new.is_empty() && gone.is_empty() {
                break;
            }
            if !new.is_empty() {
                up += new.len() as u32;
                steps.push(Step::SizeReplicaSet(template, up));
                steps.push(Step::CountDeployment(Some(old.id)));
                self.bring_up(new, &mut steps);
                steps.extend([Step::CountReplicaSet(group), Step::Endpoints(Some(old))]);
            }
            if !gone.is_empty() {
                left -= gone.len() as u32;
                if old.id != template {
                    steps.push(Step::SizeReplicaSet(old.id, left));
                }
                steps.extend(gone.iter().map(|&id| Step::Terminate(id)));
                steps.extend(gone.iter().map(|&id| Step::Tell(id, Reason::Killing)).take(1));
                if old.id != template {
                    steps.push(Step::CountReplicaSet(old));
                }
                steps.extend([Step::CountDeployment(Some(old.id)), Step::Endpoints(Some(old))]);
                steps.extend(gone.iter().map(|&id| Step::Remove(id)));
            }
        }
        steps.extend([Step::CountReplicaSet(group), Step::CountDeployment(None), Step::Endpoints(None)]);
        steps.extend(pruned.into_iter().map(Step::RemoveReplicaSet));
        steps
    }

    fn converge_stateful_set(&mut self, workload: &Workload, owner: &Value, scene: Scene<'_>) -> Vec<Step> {
        let wanted = wanted(owner);
        let template = owner.pointer("/spec/template").map(template_hash).unwrap_or_default();
        let slot = self.slot(workload);
        let is_new = slot.seen.replace(template).is_some_and(|seen| seen != template);
        let end = slot.pods.end.max(wanted);
        slot.pods.end = wanted;
        let mut steps = Vec::new();
        let (mut known, mut healthy) = (0, true);
        if is_new {
            steps.push(Step::CountStatefulSet);
        }
        for ordinal in (0..end).rev() {
            let id = PodId { group: 0, ordinal };
            let pod = self.pod(workload, 0, ordinal, scene);
            known += usize::from(pod.is_some());
            match pod {
                Some(pod) if is_staying(&pod) && ordinal < wanted && !is_new => {
                    steps.extend(self.help(id, &pod));
                    healthy &= is_ready(&pod);
                    continue;
                }
                Some(pod) if is_staying(&pod) => steps.extend([
                    Step::Terminate(id),
                    Step::Tell(id, Reason::Killing),
                    Step::CountStatefulSet,
                    Step::Endpoints(None),
                    Step::Remove(id),
                ]),
                Some(_) => steps.push(Step::Remove(id)),
                None => {}
            }
            healthy = false;
            if ordinal < wanted {
                steps.extend([Step::CreateVolume(ordinal), Step::CreateClaim(ordinal)]);
                self.bring_up(&[id], &mut steps);
                steps.extend([Step::CountStatefulSet, Step::Endpoints(None)]);
            }
        }
        self.know(workload, known);
        if !healthy || number(owner, "/status/readyReplicas") != i64::from(wanted) {
            steps.extend([Step::CountStatefulSet, Step::Endpoints(None)]);
        }
        steps
    }

    /// There may be very many pods: only one of them is looked at.
    fn converge_daemon_set(&mut self, workload: &Workload, scene: Scene<'_>) -> Vec<Step> {
        let group = self.slot(workload).pods;
        let ordinal = group.first + self.chance.below((group.end - group.first).into()) as u32;
        let id = PodId { group: 0, ordinal };
        let mut steps = Vec::new();
        match self.pod(workload, 0, ordinal, scene) {
            Some(pod) if is_staying(&pod) => return self.help(id, &pod),
            Some(_) => steps.push(Step::Remove(id)),
            None => {}
        }
        self.bring_up(&[id], &mut steps);
        steps
    }

    /// The steps of new pods until they run.
    pub(super) fn bring_up(&mut self, pods: &[PodId], steps: &mut Vec<Step>) {
        steps.extend(pods.iter().map(|&id| Step::Create(id)));
        for &id in pods {
            steps.push(Step::Schedule(id));
            if self.chance.percent(30) {
                steps.push(Step::Tell(id, Reason::Scheduled));
            }
        }
        for &id in pods {
            if self.chance.percent(4) {
                steps.extend([Step::FailToPull(id), Step::Tell(id, Reason::PullBackOff)]);
            }
            steps.push(Step::Start(id));
            if self.chance.percent(20) {
                steps.push(Step::Tell(id, Reason::Started));
            }
        }
    }

    /// A pod that waits gets on, though not at once.
    fn help(&mut self, id: PodId, pod: &Value) -> Vec<Step> {
        let waits = text(pod, "/status/phase") == "Pending";
        if waits && self.chance.percent(10) { vec![Step::Schedule(id), Step::Start(id)] } else { Vec::new() }
    }
}

/// How many pods of so many are replaced at a time.
pub(super) fn batch(pods: u32) -> u32 {
    (pods / 4).max(1)
}

fn wanted(owner: &Value) -> u32 {
    number(owner, "/spec/replicas").clamp(0, MOST_REPLICAS) as u32
}
