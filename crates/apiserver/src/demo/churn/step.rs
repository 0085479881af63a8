//! The steps that scripts are made of. Each is at most one write, and none if there is nothing to write to.

use serde_json::Value;

use super::{
    AUTOSCALERS, CLAIMS, Change, Churn, Group, JOBS, NODES, PODS, REPLICA_SETS, Scene, VOLUMES, delete,
};
use crate::demo::{
    batch,
    chance::hash_name,
    event::{Reason, event},
    field::{is_staying, list, number, put, text},
    node::{node_name, node_number},
    plan::{Kind, Place, Workload},
    pod::{self, Birth},
    upkeep,
    workload::{self, REVISION, pod_template, template_hash},
};

/// One pod of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PodId {
    /// As in [`Group::id`].
    pub group: u32,
    pub ordinal: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The controller compares what is wanted with what is there; other steps take the place of this one.
    Converge,

    /// A user wants a new version.
    Release,
    /// Another number of pods is wanted.
    Resize(u32),
    /// The autoscaler notes that it wanted this.
    NoteScaling(u32),

    Create(PodId),
    Schedule(PodId),
    Start(PodId),
    FailToPull(PodId),
    Crash(PodId),
    Recover(PodId),
    LoseReadiness(PodId),
    Complete(PodId),
    Terminate(PodId),
    Remove(PodId),
    /// An event about the pod.
    Tell(PodId, Reason),

    /// The ReplicaSet of a hash is to have so many pods. It is made if need be.
    SizeReplicaSet(u32, u32),
    RemoveReplicaSet(u32),
    CountReplicaSet(Group),
    /// The state of the current ReplicaSet and perhaps of one more, by its hash.
    CountDeployment(Option<u32>),
    CountStatefulSet,
    /// One pod more or less is ready.
    CountDaemonSet(bool),
    /// The current pods get traffic, and perhaps some more.
    Endpoints(Option<Group>),

    CreateVolume(u32),
    CreateClaim(u32),

    CreateJob(u32),
    FinishJob(u32),
    RemoveJob(u32),
    /// The CronJob notes that a run has started.
    NoteStart(u32),
    /// The CronJob notes that its run has ended.
    NoteEnd,
}

impl Churn {
    /// The write of a step.
    pub(super) fn take(&mut self, workload: &Workload, step: Step, scene: Scene<'_>) -> Option<Change> {
        match step {
            Step::Converge => None,
            Step::Release => {
                let mut owner = self.owner(workload, scene)?;
                let template = owner.pointer("/spec/template").map(template_hash);
                let slot = self.slot(workload);
                slot.seen = slot.seen.or(template);
                workload::release(&mut owner, scene.now);
                Some(Change::Update(owner))
            }
            Step::Resize(replicas) => {
                let mut owner = self.owner(workload, scene)?;
                workload::scale(&mut owner, replicas, scene.now);
                Some(Change::Update(owner))
            }
            Step::NoteScaling(replicas) => {
                let plan = &self.cluster.plan;
                let (namespace, name) = (plan.namespace_of(workload), plan.name_of(workload));
                let mut autoscaler = scene.get(AUTOSCALERS, namespace, &name)?;
                upkeep::report_scaling(&mut autoscaler, replicas, scene.now);
                Some(Change::Update(autoscaler))
            }
            Step::Create(id) => self.create(workload, id, scene),
            Step::Remove(id) => self.remove(workload, id, scene),
            Step::Tell(id, reason) => self.tell(workload, id, reason, scene),
            Step::Schedule(id)
            | Step::Start(id)
            | Step::FailToPull(id)
            | Step::Crash(id)
            | Step::Recover(id)
            | Step::LoseReadiness(id)
            | Step::Complete(id)
            | Step::Terminate(id) => {
                let mut pod = self.pod(workload, id.group, id.ordinal, scene).filter(is_staying)?;
                self.happen(workload, step, &mut pod, scene).then_some(Change::Update(pod))
            }
            Step::SizeReplicaSet(hash, replicas) => self.size_replica_set(workload, hash, replicas, scene),
            Step::RemoveReplicaSet(hash) => {
                let (namespace, name) = self.replica_set(workload, hash);
                scene.get(REPLICA_SETS, &namespace, &name)?;
                Some(delete(REPLICA_SETS, &namespace, name))
            }
            Step::CountReplicaSet(group) => self.count_replica_set(workload, group, scene),
            Step::CountDeployment(old) => self.count_deployment(workload, old, scene),
            Step::CountStatefulSet => self.count_stateful_set(workload, scene),
            Step::CountDaemonSet(ready) => {
                let mut set = self.owner(workload, scene)?;
                workload::report_daemon_set(&mut set, ready, scene.now);
                Some(Change::Update(set))
            }
            Step::Endpoints(old) => self.count_endpoints(workload, old, scene),
            Step::CreateVolume(ordinal) | Step::CreateClaim(ordinal) => {
                let [volume, claim] = upkeep::volume(&self.cluster, workload, ordinal, scene.now);
                let (resource, object) =
                    if step == Step::CreateVolume(ordinal) { (VOLUMES, volume) } else { (CLAIMS, claim) };
                let (namespace, name) =
                    (text(&object, "/metadata/namespace"), text(&object, "/metadata/name"));
                scene.get(resource, namespace, name).is_none().then_some(Change::Create(object))
            }
            Step::CreateJob(run) => {
                let cron_job = self.owner(workload, scene)?;
                if self.job(workload, run, scene).is_some() {
                    return None;
                }
                Some(Change::Create(batch::run_job(&cron_job, run, self.chance.uid(), scene.now)))
            }
            Step::FinishJob(run) => {
                let mut job = self.job(workload, run, scene)?;
                batch::finish(&mut job, scene.now);
                Some(Change::Update(job))
            }
            Step::RemoveJob(run) => {
                let job = self.job(workload, run, scene)?;
                let namespace = self.cluster.plan.namespace_of(workload);
                Some(delete(JOBS, namespace, text(&job, "/metadata/name").to_owned()))
            }
            Step::NoteStart(run) => {
                let mut cron_job = self.owner(workload, scene)?;
                let job = self.job(workload, run, scene)?;
                batch::report_start(&mut cron_job, run, &job, scene.now);
                Some(Change::Update(cron_job))
            }
            Step::NoteEnd => {
                let mut cron_job = self.owner(workload, scene)?;
                batch::report_end(&mut cron_job, scene.now);
                Some(Change::Update(cron_job))
            }
        }
    }

    fn job(&self, workload: &Workload, run: u32, scene: Scene<'_>) -> Option<Value> {
        let plan = &self.cluster.plan;
        scene.get(JOBS, plan.namespace_of(workload), &format!("{}-{run}", plan.name_of(workload)))
    }

    /// The namespace and the name of a ReplicaSet.
    pub(super) fn replica_set(&self, workload: &Workload, hash: u32) -> (String, String) {
        let plan = &self.cluster.plan;
        (plan.namespace_of(workload).to_owned(), format!("{}-{}", plan.name_of(workload), hash_name(hash)))
    }

    fn create(&mut self, workload: &Workload, id: PodId, scene: Scene<'_>) -> Option<Change> {
        let owner = match workload.kind {
            Kind::Deployment | Kind::CoreDns => {
                let (namespace, name) = self.replica_set(workload, id.group);
                scene.get(REPLICA_SETS, &namespace, &name).filter(is_staying)?
            }
            Kind::CronJob => self.job(workload, id.group, scene).filter(is_staying)?,
            Kind::StatefulSet | Kind::Daemon(_) | Kind::Job => self.owner(workload, scene)?,
        };
        let name = self.pod_name(workload, id.group, id.ordinal);
        let namespace = self.cluster.plan.namespace_of(workload).to_owned();
        if scene.get(PODS, &namespace, &name).is_some() {
            return None;
        }
        let node = match workload.kind {
            Kind::Daemon(daemon) => {
                let node = node_name(self.cluster.plan.daemon_place(daemon, id.ordinal).node);
                scene.get(NODES, "", &node)?;
                Some(node)
            }
            _ => None,
        };
        let template = pod_template(&owner, &name, id.ordinal, node.as_deref());
        let uid = self.chance.uid();
        let birth = Birth { namespace: &namespace, name, uid, owner: &owner, at: scene.now };
        let pod = pod::create(&template, birth, &mut self.chance);
        let known = self.slot(workload).known;
        self.know(workload, known + 1);
        Some(Change::Create(pod))
    }

    fn remove(&mut self, workload: &Workload, id: PodId, scene: Scene<'_>) -> Option<Change> {
        let known = self.slot(workload).known;
        self.know(workload, known.saturating_sub(1));
        let pod = self.pod(workload, id.group, id.ordinal, scene)?;
        let namespace = self.cluster.plan.namespace_of(workload);
        Some(delete(PODS, namespace, text(&pod, "/metadata/name").to_owned()))
    }

    fn tell(&mut self, workload: &Workload, id: PodId, reason: Reason, scene: Scene<'_>) -> Option<Change> {
        let pod = self.pod(workload, id.group, id.ordinal, scene)?;
        let name = format!("{}.{}", text(&pod, "/metadata/name"), self.chance.hex(16));
        self.events.add(workload, &name);
        Some(Change::Create(event(&pod, name, reason, (scene.now, scene.now, 1), &mut self.chance)))
    }

    /// Something happens to a pod. False if it cannot happen to this one as it is.
    fn happen(&mut self, workload: &Workload, step: Step, pod: &mut Value, scene: Scene<'_>) -> bool {
        let now = scene.now;
        let placed = !text(pod, "/spec/nodeName").is_empty();
        let started = !list(pod, "/status/containerStatuses").is_empty();
        let ended = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
        match step {
            Step::Schedule(id) if !placed => {
                match self.find_place(workload, id, scene) {
                    Some(node) => pod::schedule(pod, node, now),
                    None => pod::reject(pod, self.cluster.plan.nodes, now),
                }
                true
            }
            Step::Start(id) | Step::FailToPull(id) if placed && !started => {
                let place = self.place(workload, id, pod);
                match step {
                    Step::Start(_) => pod::start(pod, place, now, &mut self.chance),
                    _ => pod::fail_to_pull(pod, place, now, &mut self.chance),
                }
                true
            }
            // The image could not be pulled before.
            Step::Start(_) | Step::Recover(_) if started && !ended && !pod::is_ready(pod) => {
                pod::recover(pod, now, &mut self.chance);
                true
            }
            Step::Crash(_) if started && text(pod, "/status/phase") == "Running" => {
                pod::crash(pod, now, &mut self.chance);
                true
            }
            Step::LoseReadiness(_) if pod::is_ready(pod) => {
                pod::lose_readiness(pod, now);
                true
            }
            Step::Complete(_) if started && !ended => {
                pod::complete(pod, now);
                true
            }
            Step::Terminate(_) => {
                pod::terminate(pod, now);
                true
            }
            _ => false,
        }
    }

    /// A node that takes pods: the next one in turn, or one soon after.
    fn find_place(&mut self, workload: &Workload, id: PodId, scene: Scene<'_>) -> Option<u32> {
        if let Kind::Daemon(daemon) = workload.kind {
            return Some(self.cluster.plan.daemon_place(daemon, id.ordinal).node);
        }
        for _ in 0..8 {
            self.placed += 1;
            let node = self.cluster.plan.place(self.placed).node;
            let takes_pods = |node: &Value| {
                is_staying(node) && node.pointer("/spec/unschedulable") != Some(&Value::Bool(true))
            };
            if scene.get(NODES, "", &node_name(node)).is_some_and(|node| takes_pods(&node)) {
                return Some(node);
            }
        }
        None
    }

    /// Where a pod that has a node gets its address.
    fn place(&self, workload: &Workload, id: PodId, pod: &Value) -> Place {
        let plan = &self.cluster.plan;
        let place = match workload.kind {
            Kind::Daemon(daemon) => plan.daemon_place(daemon, id.ordinal),
            _ => plan.place(self.placed),
        };
        let node = node_number(text(pod, "/spec/nodeName")).unwrap_or(place.node);
        Place { node, ..place }
    }

    fn size_replica_set(
        &mut self,
        workload: &Workload,
        hash: u32,
        replicas: u32,
        scene: Scene<'_>,
    ) -> Option<Change> {
        let (namespace, name) = self.replica_set(workload, hash);
        let deployment = self.owner(workload, scene)?;
        let template = deployment.pointer("/spec/template")?;
        let is_current = template_hash(template) == hash;
        let revision = text(&deployment, &format!("/metadata/annotations/{}", REVISION.replace('/', "~1")));
        let next_revision = revision.parse::<i64>().unwrap_or(0).saturating_add(1);
        let Some(mut set) = scene.get(REPLICA_SETS, &namespace, &name) else {
            if !is_current {
                return None;
            }
            let uid = self.chance.uid();
            let set = workload::replica_set(&deployment, template, next_revision, replicas, uid, scene.now);
            return Some(Change::Create(set));
        };
        let wanted = number(&set, "/spec/replicas");
        if wanted == i64::from(replicas) {
            return None;
        }
        // Back to an old template: its ReplicaSet becomes the newest again.
        if is_current && wanted == 0 {
            put(&mut set, &["metadata", "annotations", REVISION], next_revision.to_string());
        }
        workload::scale(&mut set, replicas, scene.now);
        Some(Change::Update(set))
    }
}
