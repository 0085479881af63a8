//! The whole comparison, from an empty cluster to the tables.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    baseline::{Baseline, Finding},
    chart,
    control_plane::ControlPlane,
    figures::{Figures, Of, Table},
    goals::goals,
    measure::{self, Scale, World},
    ours, pods, report,
    scenario::{Program, Programs, SCENARIOS, Scenario},
    setting,
};

/// How often what got worse is measured again before it counts.
const AGAIN: usize = 3;

#[derive(Args)]
pub(crate) struct Options {
    /// How many pods the cluster has; 30000, or 2000 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=200_000))]
    pods: Option<u32>,

    /// How often everybody is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,

    /// A few minutes: compare with the committed ratios instead of writing RESULTS.md
    #[arg(long)]
    quick: bool,

    /// Write the ratios that are compared with
    #[arg(long, requires = "quick")]
    update: bool,

    /// The built program of bench/peers/client-go
    #[arg(long, value_name = "PROGRAM")]
    client_go: PathBuf,

    /// The built program of e2e/control-plane
    #[arg(long, value_name = "PROGRAM")]
    control_plane: PathBuf,
}

/// Runs everything; an interrupt ends everything.
pub(crate) async fn run(options: Options) -> Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        done = compare(&options) => done,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}

async fn compare(options: &Options) -> Result<()> {
    let began = Instant::now();
    let runs = options.runs as usize;
    let scale = match (options.quick, options.pods) {
        (true, pods) => Scale::quick(pods.unwrap_or(2_000) as usize, runs),
        (false, pods) => Scale::full(pods.unwrap_or(30_000) as usize, runs),
    };
    let bench = Path::new(setting::BENCH);
    let baseline = if options.quick && !options.update {
        Some(Baseline::read(&bench.join("quick.json"))?)
    } else {
        None
    };
    let world = prepare(Programs::find(&options.client_go, &options.control_plane)?, scale).await?;
    let mut figures = Figures::default();
    for round in 1..=world.scale.runs {
        eprintln!("run {round} of {}", world.scale.runs);
        for scenario in SCENARIOS {
            measure_and_tell(&world, scenario, &mut figures).await?;
        }
    }
    for scenario in SCENARIOS {
        match scenario.table {
            Table::Sync => measure::wire(&world, scenario, &mut figures).await?,
            Table::Delays => measure::many_delays(&world, scenario, &mut figures).await?,
            _ => {}
        }
    }

    let mut failures = match baseline {
        Some(baseline) => judge(&world, &baseline, &mut figures).await?,
        None => Vec::new(),
    };
    let missed = goals(&figures).into_iter().filter(|goal| goal.fails(!options.quick));
    failures.extend(missed.map(|goal| format!("{}: {:.2}, at most {}", goal.what, goal.best, goal.limit)));
    let document = report::document(&figures, &world.scale, &world.population);
    println!("{document}");
    if options.update {
        let path = bench.join("quick.json");
        let ratios = Baseline::of(&figures);
        let ratios = if path.exists() { ratios.or_worse_of(&Baseline::read(&path)?) } else { ratios };
        ratios.write(&path)?;
    } else if !options.quick {
        std::fs::write(bench.join("RESULTS.md"), document).context("cannot write bench/RESULTS.md")?;
        let picture = chart::svg(&figures, world.population.pods);
        let path = bench.join("../docs/images/bench.svg");
        std::fs::write(path, picture).context("cannot write docs/images/bench.svg")?;
    }
    world.replay.0.end().await?;
    world.plane.end().await?;
    eprintln!("took {} s", began.elapsed().as_secs());
    if !failures.is_empty() {
        bail!("worse than it should be:\n  {}", failures.join("\n  "));
    }
    Ok(())
}

/// The control plane with its pods, and the replay server.
async fn prepare(programs: Programs, scale: Scale) -> Result<World> {
    eprintln!("starting a real control plane");
    let plane = ControlPlane::start(&programs.path(Program::ControlPlane)).await?;
    eprintln!("creating {} pods", scale.pods);
    let client = ours::client(&plane.kubeconfig()).await?;
    let population = pods::create(&client, scale.pods, (scale.pods / 12).clamp(1, 160)).await?;
    eprintln!(
        "{} pods of {:.0} bytes, {:.0} without managedFields, after {:.0} s",
        population.pods,
        population.bytes,
        population.bytes_unmanaged,
        population.took.as_secs_f64()
    );
    let replay = measure::start_replay(&programs, &plane, &scale).await?;
    Ok(World { programs, plane, population, scale, replay })
}

async fn measure_and_tell(world: &World, scenario: &Scenario, figures: &mut Figures) -> Result<()> {
    let (table, who) = (scenario.table, scenario.who);
    let began = Instant::now();
    let mut now = Figures::default();
    measure::once(world, scenario, &mut now).await.with_context(|| format!("{}: {who}", table.name()))?;
    let mut told = Vec::new();
    for place in now.places() {
        let sample = now.value(place, Of::Best).unwrap_or_default();
        told.push(format!("{} {sample:.2} {}", place.column.name, place.column.unit));
        figures.add(table, who, place.column, sample);
    }
    let took = began.elapsed().as_secs_f64();
    eprintln!("  {}, {who}: {} ({took:.1} s)", table.name(), told.join(", "));
    Ok(())
}

/// What is worse than committed, also after it was measured again.
async fn judge(world: &World, baseline: &Baseline, figures: &mut Figures) -> Result<Vec<String>> {
    let mut findings = baseline.findings(figures);
    for _ in 0..AGAIN {
        let worse = |scenario: &&Scenario| {
            findings.iter().any(|finding| match finding {
                Finding::Worse { place, .. } => {
                    let reference = figures.reference(place.table);
                    let takes_part = place.who == scenario.who || reference == Some(scenario.who);
                    place.table == scenario.table && takes_part
                }
                _ => false,
            })
        };
        let again: Vec<&Scenario> = SCENARIOS.iter().filter(worse).collect();
        if again.is_empty() {
            break;
        }
        findings.iter().for_each(|finding| eprintln!("measured again: {finding}"));
        for scenario in again {
            measure_and_tell(world, scenario, figures).await?;
        }
        findings = baseline.findings(figures);
    }
    Ok(findings.iter().map(ToString::to_string).collect())
}
