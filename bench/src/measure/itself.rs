//! Participants that measure themselves and print a line of JSON.

use anyhow::{Context, Result};
use serde_json::Value;

use super::World;
use crate::{
    figures::{
        BUSY, BUSY_WALL, CROWD, EARLY, FANOUT, FEW_CPU, FEW_MEMORY, Figures, LABELS, LATE, LEFT, LIST_BESIDE,
        MANY_CPU, MANY_MEMORY, PAIR, PAIR_WALL, RETRY, SHUT_DOWN, SINGLE, WRITE_ALONE, WRITE_BESIDE,
    },
    process::Process,
    scenario::{Program, Scenario},
};

/// Tells 1, 10 and 100 handlers.
pub(super) async fn fanout(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    let updates = world.scale.updates.to_string();
    for (column, handlers) in FANOUT.into_iter().zip(["1", "10", "100"]) {
        let said = ask(world, scenario, &["--handlers", handlers, "--updates", &updates]).await?;
        figures.add(scenario.table, scenario.who, column, said.number("cpu_us_per_event")?);
    }
    Ok(())
}

/// Lists 100 of 1,000, 10,000 and 100,000.
pub(super) async fn labels(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    for (column, objects) in LABELS.into_iter().zip(["1000", "10000", "100000"]) {
        let said = ask(world, scenario, &["--objects", objects, "--matches", "100"]).await?;
        figures.add(scenario.table, scenario.who, column, said.number("median_us")?);
    }
    Ok(())
}

/// Writes alone, then beside one that lists everything without pause.
pub(super) async fn reads(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    let said = ask(world, scenario, &["--seconds", &world.scale.seconds.to_string()]).await?;
    for (column, name, unit) in [
        (WRITE_ALONE, "writes_per_s_alone", 1e6),
        (WRITE_BESIDE, "writes_per_s_with_readers", 1e6),
        (LIST_BESIDE, "lists_per_s", 1e3),
    ] {
        figures.add(scenario.table, scenario.who, column, unit / said.number(name)?);
    }
    Ok(())
}

/// Lists everything again and again.
pub(super) async fn relists(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    let (relists, pods) = (world.scale.relists.to_string(), world.scale.relisted_pods.to_string());
    let said = ask(world, scenario, &["--relists", &relists, "--pods", &pods]).await?;
    figures.add(scenario.table, scenario.who, EARLY, said.number("early_mb")?);
    figures.add(scenario.table, scenario.who, LATE, said.number("late_mb")?);
    Ok(())
}

/// Brings items through a work queue.
pub(super) async fn queue(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    let adds = world.scale.adds.to_string();
    let cases: [(&[&str], _, _); 5] = [
        (&["single"], SINGLE, None),
        (&["crowd"], CROWD, None),
        (&["busy", "--producers", "1", "--workers", "1"], PAIR, Some(PAIR_WALL)),
        (&["busy", "--producers", "50", "--workers", "10"], BUSY, Some(BUSY_WALL)),
        (&["retry"], RETRY, None),
    ];
    for (case, cpu, wall) in cases {
        // The naive one delays nothing.
        if scenario.program == Program::Naive && cpu == RETRY {
            continue;
        }
        let said = ask(world, scenario, &[&["--adds", &adds, "--case"], case].concat()).await?;
        figures.add(scenario.table, scenario.who, cpu, said.number("cpu_us")?);
        if let Some(wall) = wall {
            figures.add(scenario.table, scenario.who, wall, said.number("wall_us")?);
        }
    }
    Ok(())
}

/// Delays a few items, for hours.
pub(super) async fn few_delays(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    let [few, _] = world.scale.delayed;
    let said = delays(world, scenario, few).await?;
    figures.add(scenario.table, scenario.who, FEW_CPU, said.number("cpu_us")?);
    figures.add(scenario.table, scenario.who, FEW_MEMORY, said.number("bytes")?);
    Ok(())
}

/// Delays many, in a run of its own: it takes long.
pub(crate) async fn many_delays(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    let [_, many] = world.scale.delayed;
    let said = delays(world, scenario, many).await?;
    for (column, name) in
        [(MANY_CPU, "cpu_us"), (MANY_MEMORY, "bytes"), (SHUT_DOWN, "shut_down_ms"), (LEFT, "left_mb")]
    {
        figures.add(scenario.table, scenario.who, column, said.number(name)?);
    }
    Ok(())
}

async fn delays(world: &World, scenario: &Scenario, items: u64) -> Result<Said> {
    let items = items.to_string();
    let args = scenario.args.iter().copied().chain(["--items", &items]);
    // Nothing is allocated while memory is read, and without this the allocator would then keep what is free.
    let at_once = [("MIMALLOC_PURGE_DELAY", "0")];
    hear(Process::start_with(&world.programs.path(scenario.program), args, &at_once)?, scenario).await
}

/// What a participant says of itself.
struct Said(Value);

impl Said {
    fn number(&self, name: &str) -> Result<f64> {
        self.0[name].as_f64().with_context(|| format!("no number {name} in {}", self.0))
    }
}

async fn ask(world: &World, scenario: &Scenario, more: &[&str]) -> Result<Said> {
    let more: Vec<String> = more.iter().map(|arg| (*arg).to_owned()).collect();
    hear(world.start(scenario, &more)?, scenario).await
}

async fn hear(mut process: Process, scenario: &Scenario) -> Result<Said> {
    let line = process.line().await?;
    process.end().await?;
    Ok(Said(serde_json::from_str(&line).with_context(|| format!("{} says {line:?}", scenario.who))?))
}
