//! A made-up cluster that looks real, and its everyday life.
//!
//! In goes a seed and a number of pods. Out come complete objects, as many as a real cluster of that size
//! has, and then an endless sequence of writes as its controllers, nodes and users would make them. Nothing
//! here reads a clock or does I/O: the same seed gives the same bytes.

mod batch;
mod belongings;
mod chance;
mod churn;
mod event;
mod field;
mod managed;
mod network;
mod node;
mod objects;
mod origin;
mod plan;
mod pod;
mod template;
#[cfg(test)]
mod tests;
mod upkeep;
mod vocabulary;
mod workload;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use self::{chance::Seed, plan::Plan};

pub use churn::{Change, Churn, View};

/// How many old ReplicaSets a Deployment keeps.
const HISTORY_LIMIT: usize = 2;

/// A cluster that follows from a seed and the number of its pods.
///
/// It has nodes, teams with their namespaces, and in these all that makes pods, gets them traffic, storage and
/// configuration; some of it is in trouble. It is meant for demonstrations and load tests: nothing in it runs.
///
/// Making one costs a few bytes for each workload. Objects are made when they are asked for.
///
/// ```
/// use informer_apiserver::DemoCluster;
///
/// let cluster = DemoCluster::new(42, 100).at("2026-05-01T12:00:00Z".parse()?);
/// let pods = cluster.objects().filter(|object| object["kind"] == "Pod");
/// assert_eq!(pods.count(), 100);
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DemoCluster {
    plan: Arc<Plan>,
    now: Timestamp,
}

impl DemoCluster {
    /// The cluster of a seed with exactly so many pods, as it was at the beginning of 2026.
    pub fn new(seed: u64, pods: usize) -> Self {
        Self { plan: Arc::new(Plan::new(seed, pods)), now: Timestamp::constant(1_767_225_600, 0) }
    }

    /// Moves it in time: everything in it was created before `now`.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    /// Every object of the cluster, one at a time, each complete with its uid, its managed fields and its
    /// status. Namespaces come first, and an owner before what it owns.
    ///
    /// The namespaces that every server has (`default`, `kube-system`, `kube-public`, `kube-node-lease`) are
    /// not among them; some objects are in them.
    pub fn objects(&self) -> impl Iterator<Item = Value> + Send + '_ {
        objects::objects(self)
    }

    /// What happens in the cluster after it was made.
    pub fn churn(&self) -> Churn {
        Churn::new(self.clone())
    }

    fn seed(&self) -> Seed {
        self.plan.seed
    }
}
