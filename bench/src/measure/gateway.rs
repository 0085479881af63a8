//! Lists from a gateway, over a socket on loopback: wall clock, CPU of the gateway, its memory after.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::spawn_blocking;

use super::{World, request::Request};
use crate::{
    figures::{Figures, LABEL_CPU, LABEL_WALL, LIST_CPU, LIST_WALL, MEMORY},
    process::{Process, Usage},
    scenario::{Program, Scenario},
};

pub(super) async fn measure(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    let kubeconfig = ["--kubeconfig".to_owned(), world.plane.kubeconfig().display().to_string()];
    let (key, value) = &world.population.label;
    let (mut process, selector) = if scenario.program == Program::Informer {
        let own = ["--listen", "127.0.0.1:0", "--preload", "pods,deployments.apps"];
        let args = scenario.args.iter().chain(&own).map(|arg| (*arg).to_owned()).chain(kubeconfig);
        let process = Process::start_guarded(&world.programs.path(scenario.program), args).await?;
        (process, format!("labelSelector={key}%3D{value}"))
    } else {
        (world.start(scenario, &kubeconfig)?, format!("labels[{key}]={value}"))
    };
    let (url, usage) = (process.line().await?, process.usage());
    let all = "/core/v1/pods".to_owned();
    let labelled = format!("{all}?{selector}");
    for (path, count, lists, wall, cpu) in [
        (all, world.population.pods, world.scale.lists, LIST_WALL, LIST_CPU),
        (labelled, world.population.labelled, world.scale.label_lists, LABEL_WALL, LABEL_CPU),
    ] {
        // The first answer is counted, and warms whatever there is to warm.
        let request = Request::get(&url, path);
        let (found, request) = spawn_blocking(move || (request.objects(), request)).await?;
        let found = found?;
        ensure!(found == count, "{} answers {request} with {found} objects, not {count}", scenario.who);
        let (best, used) = spawn_blocking(move || times(&request, lists, usage)).await??;
        figures.add(scenario.table, scenario.who, wall, best);
        figures.add(scenario.table, scenario.who, cpu, used);
    }
    figures.add(scenario.table, scenario.who, MEMORY, usage.resident()?);
    process.end().await
}

/// Asks several times: the best wall clock, and the CPU of the gateway on average, in ms.
fn times(request: &Request, times: usize, gateway: Usage) -> Result<(f64, f64)> {
    let (before, mut best) = (gateway.cpu()?, Duration::MAX);
    for _ in 0..times {
        let began = Instant::now();
        request.send()?;
        best = best.min(began.elapsed());
    }
    let used = gateway.cpu()? - before;
    Ok((best.as_secs_f64() * 1e3, used.as_secs_f64() * 1e3 / times as f64))
}
