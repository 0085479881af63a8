//! Following the replay server: CPU of the participant for each event, from the wire to its handler.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::{World, request::Request};
use crate::{
    figures::{EVENT_CPU, EVENT_WALL, Figures},
    scenario::Scenario,
};

pub(super) async fn measure(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    let (url, events) = (&world.replay.1, world.scale.events);
    let args = ["--server".to_owned(), url.clone(), "--events".to_owned(), events.to_string()];
    let mut process = world.start(scenario, &args)?;
    let pods = process.count("synced").await?;
    ensure!(pods as usize == world.scale.replayed_pods, "{} has {pods} pods", scenario.who);
    let (cpu, began) = (process.usage().cpu()?, Instant::now());
    let go = Request::post(url, format!("/go?events={events}"));
    let go = tokio::task::spawn_blocking(move || go.send());
    let done = process.count("done").await?;
    let (cpu, wall) = (process.usage().cpu()? - cpu, began.elapsed());
    ensure!(done == events, "{} has seen {done} events", scenario.who);
    go.await??;
    process.word("settled").await?;
    process.end().await?;
    let each = |seconds: f64| seconds * 1e6 / events as f64;
    figures.add(scenario.table, scenario.who, EVENT_CPU, each(cpu.as_secs_f64()));
    figures.add(scenario.table, scenario.who, EVENT_WALL, each(wall.as_secs_f64()));
    Ok(())
}
