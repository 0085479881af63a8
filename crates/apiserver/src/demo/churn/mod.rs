//! The life of a demo cluster: one write after another, as users, controllers, the scheduler and the nodes
//! would make them.
//!
//! Several scripts run at a time, each on one workload: a rollout, a restart, a run of a CronJob. [`Churn::next`]
//! takes the next step of one of them. Steps look at what the server has, so what others change or delete
//! meanwhile is respected: a deleted pod is replaced, `kubectl scale` and `kubectl set image` are followed,
//! what is gone for good is left alone. What is remembered is a few bytes for each workload.

mod activity;
mod converge;
mod count;
mod ledger;
mod step;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use jiff::Timestamp;
use serde_json::Value;

use self::{ledger::Ledger, step::Step};
use super::{
    DemoCluster,
    chance::{Chance, Subject},
    field::is_staying,
    node::{self, node_name},
    origin,
    plan::{Kind, Workload},
    template::template,
    workload::template_hash,
};

/// What the server has at the moment.
pub trait View {
    /// The object of a resource, given as its group and plural name. The namespace of what has none is empty.
    fn get(&self, resource: (&str, &str), namespace: &str, name: &str) -> Option<Value>;
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// A new object.
    Create(Value),
    /// An object as it is to be from now on, status included.
    Update(Value),
    /// An object that is no more.
    Delete {
        /// The API group, empty for the core one.
        group: &'static str,
        /// The resource.
        plural: &'static str,
        /// Empty for what has none.
        namespace: String,
        /// The name of the object.
        name: String,
    },
}

type Resource = (&'static str, &'static str);

const PODS: Resource = ("", "pods");
const NODES: Resource = ("", "nodes");
const EVENTS: Resource = ("", "events");
const LEASES: Resource = ("coordination.k8s.io", "leases");
const REPLICA_SETS: Resource = ("apps", "replicasets");
const ENDPOINT_SLICES: Resource = ("discovery.k8s.io", "endpointslices");
const AUTOSCALERS: Resource = ("autoscaling", "horizontalpodautoscalers");
const CLAIMS: Resource = ("", "persistentvolumeclaims");
const VOLUMES: Resource = ("", "persistentvolumes");
const JOBS: Resource = ("batch", "jobs");

/// How many steps in vain are taken for one write before nodes fill in.
const PATIENCE: usize = 64;

/// An endless sequence of changes to a demo cluster, the same for the same seed and the same answers of the
/// server. Made by [`DemoCluster::churn`].
///
/// The number of pods stays within a tenth of what the cluster began with, and that of events does not grow.
#[derive(Debug)]
pub struct Churn {
    cluster: DemoCluster,
    chance: Chance,
    /// What is known of the workloads that were visited so far, by number.
    slots: HashMap<u32, Slot>,
    scripts: Vec<Script>,
    events: Ledger,
    /// How many pods there are, as far as is known.
    pods: usize,
    /// How many pods were given a node.
    placed: u64,
    /// The workload that is looked after next.
    patrol: usize,
    /// The node that reports next.
    beat: u32,
}

/// The pods of one workload, by their numbers.
#[derive(Debug, Default)]
struct Slot {
    /// The pods that there may be: of a Deployment those of the current ReplicaSet.
    pods: Group,
    /// The hash of the template that these were made from, as the server has it; none before the first visit.
    seen: Option<u32>,
    /// Of a Deployment the hashes of its old ReplicaSets, of a CronJob its runs; the oldest first.
    groups: Vec<u32>,
    /// How many pods there are, as far as is known.
    known: usize,
}

/// Pods in a row: their names follow from these numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Group {
    /// The hash of a ReplicaSet, the run of a CronJob, or zero.
    id: u32,
    first: u32,
    end: u32,
}

/// What is going on with one workload.
#[derive(Debug)]
struct Script {
    workload: Workload,
    steps: VecDeque<Step>,
    /// How many pods more, and how many less, there may be before it ends.
    more: usize,
    less: usize,
}

/// What a step looks at.
#[derive(Clone, Copy)]
struct Scene<'a> {
    view: &'a dyn View,
    now: Timestamp,
}

impl Scene<'_> {
    fn get(self, resource: Resource, namespace: &str, name: &str) -> Option<Value> {
        self.view.get(resource, namespace, name)
    }
}

impl Churn {
    pub(super) fn new(cluster: DemoCluster) -> Self {
        let pods = cluster.plan.pods;
        Self {
            chance: cluster.seed().chance(Subject::Churn, 0, 0),
            slots: HashMap::new(),
            scripts: Vec::new(),
            events: Ledger::new(pods),
            pods,
            placed: pods as u64,
            patrol: 0,
            beat: 0,
            cluster,
        }
    }

    /// The next write, to be made before the one after it is asked for. None if nothing is left that could
    /// change.
    pub fn next(&mut self, now: Timestamp, cluster: &dyn View) -> Option<Change> {
        let scene = Scene { view: cluster, now };
        if let Some(change) = self.events.expire(&self.cluster, scene) {
            return Some(change);
        }
        match self.chance.below(100) {
            0..15 => {
                if let Some(change) = self.heartbeat(scene) {
                    return Some(change);
                }
            }
            15..30 => self.look_after_one(),
            _ => {}
        }
        for _ in 0..PATIENCE {
            if self.scripts.len() < self.most_scripts() {
                self.begin(scene);
            }
            let index = self.chance.below(self.scripts.len() as u64) as usize;
            if let Some(change) = self.advance(index, scene) {
                return Some(change);
            }
        }
        self.heartbeat(scene)
    }

    /// Takes steps of a script until one writes. A script without steps is at its end.
    fn advance(&mut self, index: usize, scene: Scene<'_>) -> Option<Change> {
        loop {
            let script = self.scripts.get_mut(index)?;
            let workload = script.workload;
            let Some(step) = script.steps.pop_front() else {
                self.scripts.swap_remove(index);
                return None;
            };
            if step == Step::Converge {
                let steps = self.converge(&workload, scene);
                let script = self.scripts.get_mut(index)?;
                for step in steps.into_iter().rev() {
                    script.steps.push_front(step);
                }
            } else if let Some(change) = self.take(&workload, step, scene) {
                return Some(change);
            }
        }
    }

    fn most_scripts(&self) -> usize {
        (self.cluster.plan.workloads.len() / 6).clamp(2, 48)
    }

    fn start(&mut self, workload: Workload, steps: impl IntoIterator<Item = Step>) {
        let steps = steps.into_iter().collect();
        self.scripts.push(Script { workload, steps, more: 0, less: 0 });
    }

    fn is_busy(&self, workload: &Workload) -> bool {
        self.scripts.iter().any(|script| script.workload.number == workload.number)
    }

    /// A controller looks at one workload after another, whether all is as it should be.
    fn look_after_one(&mut self) {
        let workloads = &self.cluster.plan.workloads;
        let Some(&workload) = workloads.get(self.patrol % workloads.len().max(1)) else { return };
        self.patrol = (self.patrol + 1) % workloads.len().max(1);
        if !self.is_busy(&workload) && self.scripts.len() < 2 * self.most_scripts() {
            self.start(workload, [Step::Converge]);
        }
    }

    /// One node after another says that it is alive; sometimes it reports its whole state.
    fn heartbeat(&mut self, scene: Scene<'_>) -> Option<Change> {
        for _ in 0..PATIENCE {
            let name = node_name(self.beat);
            self.beat = (self.beat + 1) % self.cluster.plan.nodes;
            if self.chance.percent(20)
                && let Some(mut node) = scene.get(NODES, "", &name)
            {
                node::report(&mut node, scene.now);
                return Some(Change::Update(node));
            }
            if let Some(mut lease) = scene.get(LEASES, "kube-node-lease", &name) {
                node::renew(&mut lease, scene.now);
                return Some(Change::Update(lease));
            }
        }
        None
    }

    /// What is known of a workload; at the first visit that is how it was made.
    fn slot(&mut self, workload: &Workload) -> &mut Slot {
        let cluster = &self.cluster;
        self.slots.entry(workload.number).or_insert_with(|| {
            let (id, groups) = match workload.kind {
                Kind::Deployment | Kind::CoreDns => {
                    let old = origin::old_revisions(cluster, workload);
                    let hashes = old.map(|revision| template_hash(&template(cluster, workload, revision)));
                    (origin::current_hash(cluster, workload), hashes.collect())
                }
                Kind::CronJob => {
                    (0, (0..workload.pods).map(|number| origin::run(cluster, workload, number)).collect())
                }
                _ => (0, Vec::new()),
            };
            let pods = Group { id, first: 0, end: workload.pods };
            Slot { pods, seen: None, groups, known: workload.pods as usize }
        })
    }

    /// So many pods there are of a workload.
    fn know(&mut self, workload: &Workload, pods: usize) {
        let slot = self.slot(workload);
        let before = std::mem::replace(&mut slot.known, pods);
        self.pods = (self.pods + pods).saturating_sub(before);
    }

    /// The object of the workload itself; none if it is gone or going.
    fn owner(&self, workload: &Workload, scene: Scene<'_>) -> Option<Value> {
        let resource = match workload.kind {
            Kind::Deployment | Kind::CoreDns => ("apps", "deployments"),
            Kind::StatefulSet => ("apps", "statefulsets"),
            Kind::Daemon(_) => ("apps", "daemonsets"),
            Kind::CronJob => ("batch", "cronjobs"),
            Kind::Job => JOBS,
        };
        let plan = &self.cluster.plan;
        scene.get(resource, plan.namespace_of(workload), &plan.name_of(workload)).filter(is_staying)
    }

    fn pod_name(&self, workload: &Workload, group: u32, ordinal: u32) -> String {
        origin::pod_name(&self.cluster, workload, group, ordinal)
    }

    fn pod(&self, workload: &Workload, group: u32, ordinal: u32, scene: Scene<'_>) -> Option<Value> {
        let name = self.pod_name(workload, group, ordinal);
        scene.get(PODS, self.cluster.plan.namespace_of(workload), &name)
    }

    /// The pods of a group that there are.
    fn pods_of(&self, workload: &Workload, group: Group, scene: Scene<'_>) -> Vec<Value> {
        (group.first..group.end).filter_map(|ordinal| self.pod(workload, group.id, ordinal, scene)).collect()
    }
}

fn delete((group, plural): Resource, namespace: &str, name: String) -> Change {
    Change::Delete { group, plural, namespace: namespace.to_owned(), name }
}
