//! How a participant is measured, one module for each way.

mod gateway;
mod itself;
mod request;
mod sync;
mod watch;

use anyhow::Result;

use crate::{
    control_plane::ControlPlane,
    figures::{Figures, Table},
    pods::Population,
    process::Process,
    scenario::{Program, Programs, Scenario},
};

pub(crate) use itself::many_delays;
pub(crate) use sync::wire;

/// How much is measured.
pub(crate) struct Scale {
    pub(crate) pods: usize,
    /// How often everybody is measured.
    pub(crate) runs: usize,
    /// The pods of the replay server, and how many events it tells.
    pub(crate) replayed_pods: usize,
    pub(crate) events: u64,
    /// Updates that many handlers are told.
    pub(crate) updates: u64,
    /// Seconds of writing, alone and beside a reader.
    pub(crate) seconds: u64,
    /// Lists of everything, and lists by label, that a gateway is asked for.
    pub(crate) lists: usize,
    pub(crate) label_lists: usize,
    /// How often everything is listed again, and of how many pods.
    pub(crate) relists: u64,
    pub(crate) relisted_pods: usize,
    /// How often an item is added to a queue.
    pub(crate) adds: u64,
    /// Items that are delayed, few and many.
    pub(crate) delayed: [u64; 2],
}

impl Scale {
    /// The figures that are published.
    pub(crate) fn full(pods: usize, runs: usize) -> Self {
        Self {
            pods,
            runs,
            replayed_pods: pods.min(10_000),
            events: 30_000,
            updates: 100_000,
            seconds: 3,
            lists: 5,
            label_lists: 200,
            relists: 1_000,
            relisted_pods: 1_000,
            adds: 1_000_000,
            delayed: [1_000_000, 10_000_000],
        }
    }

    /// Enough to see that something got worse.
    pub(crate) fn quick(pods: usize, runs: usize) -> Self {
        Self {
            replayed_pods: pods.min(1_000),
            events: 5_000,
            updates: 20_000,
            seconds: 1,
            label_lists: 100,
            relists: 300,
            relisted_pods: 500,
            adds: 300_000,
            delayed: [200_000, 1_000_000],
            ..Self::full(pods, runs)
        }
    }
}

/// Everything that a measurement needs.
pub(crate) struct World {
    pub(crate) programs: Programs,
    pub(crate) plane: ControlPlane,
    pub(crate) population: Population,
    pub(crate) scale: Scale,
    /// The replay server and its address.
    pub(crate) replay: (Process, String),
}

impl World {
    fn start(&self, scenario: &Scenario, more: &[String]) -> Result<Process> {
        let args = scenario.args.iter().map(|arg| (*arg).to_owned()).chain(more.iter().cloned());
        Process::start(&self.programs.path(scenario.program), args)
    }
}

/// Starts the replay server with pods of the cluster.
pub(crate) async fn start_replay(
    programs: &Programs,
    plane: &ControlPlane,
    scale: &Scale,
) -> Result<(Process, String)> {
    let kubeconfig = plane.kubeconfig().display().to_string();
    let pods = scale.replayed_pods.to_string();
    let args = ["replay", "--pods", &pods, "--kubeconfig", &kubeconfig];
    let mut replay = Process::start(&programs.path(Program::ClientGo), args)?;
    let url = replay.line().await?;
    Ok((replay, url))
}

/// Measures a participant once.
pub(crate) async fn once(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    match scenario.table {
        Table::Sync => sync::measure(world, scenario, figures).await,
        Table::Watch => watch::measure(world, scenario, figures).await,
        Table::Fanout => itself::fanout(world, scenario, figures).await,
        Table::Labels => itself::labels(world, scenario, figures).await,
        Table::Reads => itself::reads(world, scenario, figures).await,
        Table::Gateway => gateway::measure(world, scenario, figures).await,
        Table::Relists => itself::relists(world, scenario, figures).await,
        Table::Queue => itself::queue(world, scenario, figures).await,
        Table::Delays => itself::few_delays(world, scenario, figures).await,
    }
}
