//! Taking all pods into memory: CPU and wall clock from the start of the process until its handler has heard of every
//! pod, memory after that, bytes on the wire.

use std::{path::Path, time::Instant};

use anyhow::{Result, ensure};

use super::World;
use crate::{
    figures::{Figures, MEMORY, PEAK, SERVER_CPU, SYNC_CPU, SYNC_WALL, WIRE},
    process::Process,
    relay::Relay,
    scenario::Scenario,
};

pub(super) async fn measure(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    let server = world.plane.api_server();
    let (server_before, began) = (server.cpu()?, Instant::now());
    let mut process = synced(world, scenario, &world.plane.kubeconfig()).await?;
    let wall = began.elapsed();
    let (cpu, server_cpu) = (process.usage().cpu()?, server.cpu()? - server_before);
    process.word("settled").await?;
    let (memory, peak) = (process.usage().resident()?, process.usage().peak()?);
    process.end().await?;
    for (column, sample) in [
        (SYNC_CPU, cpu.as_secs_f64()),
        (SYNC_WALL, wall.as_secs_f64()),
        (MEMORY, memory),
        (PEAK, peak),
        (SERVER_CPU, server_cpu.as_secs_f64()),
    ] {
        figures.add(scenario.table, scenario.who, column, sample);
    }
    Ok(())
}

/// Bytes on the wire, in a run of its own: a relay would disturb the other figures.
pub(crate) async fn wire(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    let relay = Relay::to(world.plane.url()).await?;
    let kubeconfig = world.plane.kubeconfig_by(&relay.url())?;
    let process = synced(world, scenario, &kubeconfig).await?;
    figures.add(scenario.table, scenario.who, WIRE, relay.received() as f64 / 1e6);
    process.end().await
}

/// The participant, once it has all pods.
async fn synced(world: &World, scenario: &Scenario, kubeconfig: &Path) -> Result<Process> {
    let kubeconfig = ["--kubeconfig".to_owned(), kubeconfig.display().to_string()];
    let mut process = world.start(scenario, &kubeconfig)?;
    let pods = process.count("synced").await?;
    ensure!(pods as usize == world.population.pods, "{} has {pods} pods", scenario.who);
    Ok(process)
}
