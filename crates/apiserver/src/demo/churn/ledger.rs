//! Which events there are, so that the oldest can go when new ones come.

use std::collections::VecDeque;

use super::{Change, EVENTS, Scene, delete};
use crate::demo::{
    DemoCluster,
    event::{PODS_PER_EVENT, first_event_name},
    origin,
    plan::{Kind, Workload},
};

/// The events in the order in which they were made.
#[derive(Debug)]
pub(super) struct Ledger {
    /// There are not more than these.
    limit: usize,
    /// How many events of the beginning are no longer there.
    expired: usize,
    /// How many there were.
    first: usize,
    /// Those that came later: their workloads, for the namespace, and their names.
    later: VecDeque<(Workload, Box<str>)>,
}

impl Ledger {
    pub(super) fn new(pods: usize) -> Self {
        let first = pods.div_ceil(PODS_PER_EVENT);
        Self { limit: first.max(20), expired: 0, first, later: VecDeque::new() }
    }

    pub(super) fn add(&mut self, workload: &Workload, name: &str) {
        self.later.push_back((*workload, name.into()));
    }

    /// The deletion of the oldest event, if there are too many.
    pub(super) fn expire(&mut self, cluster: &DemoCluster, scene: Scene<'_>) -> Option<Change> {
        while self.first - self.expired + self.later.len() > self.limit {
            let (workload, name) = if self.expired < self.first {
                self.expired += 1;
                first_name(cluster, (self.expired - 1) * PODS_PER_EVENT)?
            } else {
                self.later.pop_front()?
            };
            let namespace = cluster.plan.namespace_of(&workload);
            if scene.get(EVENTS, namespace, &name).is_some() {
                return Some(delete(EVENTS, namespace, name.into()));
            }
        }
        None
    }
}

/// The event that pod number `pod` had in the beginning.
fn first_name(cluster: &DemoCluster, pod: usize) -> Option<(Workload, Box<str>)> {
    let (workload, ordinal) = cluster.plan.workload_of_pod(pod)?;
    let group = match workload.kind {
        Kind::Deployment | Kind::CoreDns => origin::current_hash(cluster, workload),
        Kind::CronJob => origin::run(cluster, workload, ordinal),
        _ => 0,
    };
    let first = origin::first_pod(cluster, workload, group, ordinal);
    Some((*workload, first_event_name(cluster, pod, &first.name).into()))
}
