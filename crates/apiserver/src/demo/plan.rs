//! What a demo cluster consists of: how many nodes, which namespaces, which workloads with how many pods.
//!
//! A few bytes for each workload; all objects follow from it. The pods of all workloads add up to exactly
//! the number that was asked for.

use super::{
    chance::{Chance, Seed, Subject},
    vocabulary::{COMPONENTS, ERRANDS, ROUTINES, SERVICES, STAGES, STORES, TEAMS},
};

/// The index of `kube-system` in [`Plan::namespaces`].
pub(super) const KUBE_SYSTEM: u16 = 0;

/// Below this number of pods a cluster has no monitoring and no logging of its own.
const OBSERVED_FROM: usize = 100;

#[derive(Debug)]
pub(super) struct Plan {
    pub seed: Seed,
    /// How many pods there are.
    pub pods: usize,
    pub nodes: u32,
    /// How many nodes, the first ones, run the control plane.
    pub control_planes: u32,
    /// `kube-system` first, which the server itself has.
    pub namespaces: Vec<String>,
    pub workloads: Vec<Workload>,
}

/// What makes pods, and how many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Workload {
    /// Its index in the plan.
    pub number: u32,
    pub namespace: u16,
    /// Which one it is of its kind in its namespace.
    position: u32,
    pub kind: Kind,
    pub pods: u32,
    /// How many pods the workloads before it have.
    pub first_pod: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Deployment,
    StatefulSet,
    CronJob,
    Job,
    /// The deployment behind the service `kube-dns`.
    CoreDns,
    Daemon(Daemon),
}

/// A DaemonSet: one pod for every node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Daemon {
    KubeProxy,
    NodeExporter,
    FluentBit,
}

impl Kind {
    /// Its pods are to run forever and can be replaced.
    pub(super) fn is_lasting(self) -> bool {
        !matches!(self, Self::CronJob | Self::Job)
    }
}

impl Daemon {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::KubeProxy => "kube-proxy",
            Self::NodeExporter => "node-exporter",
            Self::FluentBit => "fluent-bit",
        }
    }

    /// It uses the network of its node and has no address of its own.
    pub(super) fn on_host_network(self) -> bool {
        self != Self::FluentBit
    }
}

impl Plan {
    pub(super) fn new(seed: u64, pods: usize) -> Self {
        let seed = Seed(seed);
        let nodes = u32::try_from(pods / 30 + 1).unwrap_or(u32::MAX);
        let control_planes = if nodes < 10 { 1 } else { 3 };
        let namespaces = vec!["kube-system".to_owned()];
        let mut plan = Self { seed, pods, nodes, control_planes, namespaces, workloads: Vec::new() };
        let left = plan.add_system(pods);
        plan.add_teams(left);
        plan
    }

    /// The workloads that belong to the cluster itself; answers how many pods are left.
    fn add_system(&mut self, mut left: usize) -> usize {
        let dns = left.min(2);
        left -= dns;
        self.add(KUBE_SYSTEM, 0, Kind::CoreDns, dns as u32);
        for daemon in [Daemon::KubeProxy, Daemon::NodeExporter, Daemon::FluentBit] {
            let observer = match daemon {
                Daemon::KubeProxy => None,
                Daemon::NodeExporter => Some("monitoring"),
                Daemon::FluentBit => Some("logging"),
            };
            if left < self.nodes as usize || observer.is_some() && self.pods < OBSERVED_FROM {
                continue;
            }
            left -= self.nodes as usize;
            let namespace = observer.map_or(KUBE_SYSTEM, |name| {
                self.namespaces.push(name.to_owned());
                (self.namespaces.len() - 1) as u16
            });
            self.add(namespace, 0, Kind::Daemon(daemon), self.nodes);
        }
        left
    }

    fn add_teams(&mut self, mut left: usize) {
        if left == 0 {
            return;
        }
        let first = self.namespaces.len();
        // One for ten pods, four for a few hundred, eighty for a hundred thousand.
        let teams = (self.pods.isqrt() / 4 + 1).min(usize::from(u16::MAX) - first);
        let mut chance = self.seed.chance(Subject::Plan, 0, 0);
        let (from, stages_from) = (chance.below(1_000) as usize, chance.below(1_000) as usize);
        self.namespaces.extend((0..teams).map(|team| namespace_name(team, from, stages_from)));

        let largest = (self.pods as u64 / 5).max(1);
        // How many workloads a namespace has of each kind.
        let mut positions = vec![[0_u32; 4]; teams];
        while left > 0 {
            let made = self.workloads.len();
            let team = if made < teams { made } else { chance.below(teams as u64) as usize };
            let (kind, pods) = if made < 4 { (Kind::Deployment, 2) } else { draw(&mut chance) };
            let pods = pods.min(largest).min(left as u64) as u32;
            let index = match kind {
                Kind::StatefulSet => 1,
                Kind::CronJob => 2,
                Kind::Job => 3,
                Kind::Deployment | Kind::CoreDns | Kind::Daemon(_) => 0,
            };
            let position = &mut positions[team][index];
            *position += 1;
            let position = *position - 1;
            self.add((first + team) as u16, position, kind, pods);
            left -= pods as usize;
        }
    }

    fn add(&mut self, namespace: u16, position: u32, kind: Kind, pods: u32) {
        let first_pod = self.workloads.last().map_or(0, |last| last.first_pod + last.pods as usize);
        let number = self.workloads.len() as u32;
        self.workloads.push(Workload { number, namespace, position, kind, pods, first_pod });
    }

    pub(super) fn namespace_of(&self, workload: &Workload) -> &str {
        self.namespaces.get(usize::from(workload.namespace)).map_or("default", String::as_str)
    }

    /// Its name is its own among the workloads of all kinds in its namespace.
    pub(super) fn name_of(&self, workload: &Workload) -> String {
        let second = match workload.kind {
            Kind::CoreDns => return "coredns".to_owned(),
            Kind::Daemon(daemon) => return daemon.name().to_owned(),
            Kind::Deployment => SERVICES,
            Kind::StatefulSet => STORES,
            Kind::CronJob => ROUTINES,
            Kind::Job => ERRANDS,
        };
        let mut chance = self.seed.chance(Subject::Namespace, workload.namespace.into(), 1);
        let (from, second_from) = (chance.below(1_000) as usize, chance.below(1_000) as usize);
        let position = workload.position as usize;
        // 29 has no factor in common with the number of components: every component comes once per round.
        let component = COMPONENTS[(from + position * 29) % COMPONENTS.len()];
        let round = position / COMPONENTS.len();
        let ending = second[(second_from + position % COMPONENTS.len() + round) % second.len()];
        match round / second.len() {
            0 => format!("{component}-{ending}"),
            again => format!("{component}-{ending}-{}", again + 1),
        }
    }

    /// The workload that has the pod of this number, and which of its pods that is.
    pub(super) fn workload_of_pod(&self, pod: usize) -> Option<(&Workload, u32)> {
        let after = self.workloads.partition_point(|workload| workload.first_pod <= pod);
        // Of workloads that begin at the same pod only the last one has any.
        let workload = self.workloads.get(after.checked_sub(1)?)?;
        let ordinal = u32::try_from(pod - workload.first_pod).ok()?;
        (ordinal < workload.pods).then_some((workload, ordinal))
    }

    /// The node for a pod that is not a daemon's, and the last byte of its address. The counter may go on
    /// past the pods of the plan: addresses repeat long after.
    pub(super) fn place(&self, counter: u64) -> Place {
        let masters = if self.nodes == 1 { 0 } else { self.control_planes.min(self.nodes - 1) };
        let workers = u64::from(self.nodes - masters);
        let node = masters + (counter % workers) as u32;
        Place { node, address: Some((2 + counter / workers % 240) as u8) }
    }

    /// Where pod `ordinal` of a workload is in the beginning.
    pub(super) fn first_place(&self, workload: &Workload, ordinal: u32) -> Place {
        match workload.kind {
            Kind::Daemon(daemon) => self.daemon_place(daemon, ordinal),
            _ => self.place((workload.first_pod + ordinal as usize) as u64),
        }
    }

    /// Where pod `ordinal` of a DaemonSet is: as numbers go on, every node has one of any `nodes` in a row.
    pub(super) fn daemon_place(&self, daemon: Daemon, ordinal: u32) -> Place {
        let address = (!daemon.on_host_network()).then_some(250);
        Place { node: ordinal % self.nodes, address }
    }
}

/// Where a pod runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub node: u32,
    /// The last byte of its address in the range of the node; none in the network of the node itself.
    pub address: Option<u8>,
}

fn namespace_name(team: usize, from: usize, stages_from: usize) -> String {
    let round = team / TEAMS.len();
    let name = TEAMS[(from + team * 7) % TEAMS.len()];
    let stage = STAGES[(stages_from + team % TEAMS.len() + round) % STAGES.len()];
    match round / STAGES.len() {
        0 => format!("{name}{stage}"),
        again => format!("{name}{stage}-{}", again + 1),
    }
}

/// The kind of the next workload and the pods it would like to have.
fn draw(chance: &mut Chance) -> (Kind, u64) {
    match chance.below(100) {
        0..78 => {
            let pods = match chance.below(100) {
                0..50 => chance.between(1, 3),
                50..85 => chance.between(3, 8),
                85..97 => chance.between(8, 20),
                _ => chance.between(20, 60),
            };
            (Kind::Deployment, pods)
        }
        78..86 => (Kind::StatefulSet, [1, 3, 3, 5][chance.below(4) as usize]),
        86..95 => (Kind::CronJob, chance.between(2, 3)),
        _ => (Kind::Job, 1),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn pods_add_up_and_every_pod_has_its_workload() {
        for pods in [0, 1, 2, 3, 7, 31, 100, 2_500] {
            let plan = Plan::new(3, pods);
            assert_eq!(plan.workloads.iter().map(|workload| workload.pods as usize).sum::<usize>(), pods);
            for pod in 0..pods {
                let (workload, ordinal) = plan.workload_of_pod(pod).unwrap();
                assert_eq!(workload.first_pod + ordinal as usize, pod);
            }
            assert!(plan.workload_of_pod(pods).is_none());
        }
    }

    #[test]
    fn names_are_unique_in_a_cluster_of_a_million_pods() {
        let plan = Plan::new(9, 1_000_000);
        let namespaces: HashSet<&String> = plan.namespaces.iter().collect();
        assert_eq!(namespaces.len(), plan.namespaces.len());
        let mut names = HashSet::new();
        for workload in &plan.workloads {
            let name = plan.name_of(workload);
            assert!(names.insert((workload.namespace, name)), "{workload:?}");
        }
    }

    #[test]
    fn addresses_of_a_node_are_used_once() {
        let plan = Plan::new(5, 10_000);
        let mut used = HashSet::new();
        for workload in &plan.workloads {
            for ordinal in 0..workload.pods {
                let place = plan.first_place(workload, ordinal);
                assert!(place.node < plan.nodes);
                if let Some(address) = place.address {
                    assert!(used.insert((place.node, address)));
                }
            }
        }
    }
}
