//! One controller, written twice: with kube-runtime in `bench/peers/kube-rs/src/website.rs`, with informer in `ours.rs`. `bench/run
//! controllers` measures both and writes `bench/CONTROLLERS.md`.

mod front;
pub(crate) mod ours;
mod report;
mod website;
pub(crate) mod witness;
mod world;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};
use tokio::signal::unix::{SignalKind, signal};

use crate::{process::Process, setting};
use world::World;

/// A controller that has asked for nothing for so long is quiet.
const QUIET: Duration = Duration::from_secs(2);
/// So late are watches under load.
const LATE: Duration = Duration::from_millis(50);
/// How often all websites are changed under load.
const ROUNDS: u32 = 3;

#[derive(Args)]
pub(crate) struct Options {
    /// How many websites a controller begins with
    #[arg(long, value_name = "N", default_value_t = 50)]
    few: usize,

    /// How many it has to do with for most figures
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    many: usize,

    /// How many there are while its memory is measured
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    most: usize,

    /// How often both are measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,

    /// The built program of e2e/control-plane; without it the embedded server answers
    #[arg(long, value_name = "PROGRAM")]
    control_plane: Option<PathBuf>,
}

/// Who is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Theirs,
    Ours,
}

impl Side {
    const BOTH: [Self; 2] = [Self::Theirs, Self::Ours];

    fn name(self) -> &'static str {
        match self {
            Self::Theirs => "kube-runtime",
            Self::Ours => "informer",
        }
    }

    /// What is compared, in the folder of the bench.
    fn source(self) -> &'static str {
        match self {
            Self::Theirs => "peers/kube-rs/src/website.rs",
            Self::Ours => "src/controllers/ours.rs",
        }
    }

    /// Starts the controller, and returns when it runs.
    async fn start(self, server: &str) -> Result<Process> {
        let this = std::env::current_exe()?;
        let (program, args): (_, &[&str]) = match self {
            Self::Theirs => (this.with_file_name("kube-rs-controller"), &["--server", server]),
            Self::Ours => (this, &["controller", "--server", server]),
        };
        ensure!(program.is_file(), "{} is missing: `bench/run controllers` builds it", program.display());
        let mut process = Process::start(&program, args)?;
        process.word("ready").await?;
        Ok(process)
    }
}

/// What was measured, in the order of the report.
type Figures = Vec<(&'static str, &'static str, f64)>;

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
    ensure!(options.many >= 32, "--many is 32 at least: each of 30 websites loses a child");
    let mut runs = [Vec::new(), Vec::new()];
    for run in 1..=options.runs {
        for (side, runs) in Side::BOTH.into_iter().zip(&mut runs) {
            let began = Instant::now();
            let figures = measure(side, options).await.with_context(|| side.name())?;
            eprintln!("run {run} of {}, {} ({} s)", options.runs, side.name(), began.elapsed().as_secs());
            for (name, unit, figure) in &figures {
                eprintln!("  {name}: {figure:.2} {unit}");
            }
            runs.push(figures);
        }
    }
    let document = report::document(options, &runs)?;
    println!("{document}");
    let path = Path::new(setting::BENCH).join("CONTROLLERS.md");
    std::fs::write(path, document).context("cannot write bench/CONTROLLERS.md")
}

async fn measure(side: Side, options: &Options) -> Result<Figures> {
    let mut figures = vec![("lines of code", "", report::lines(side)? as f64)];
    few(side, options, &mut figures).await?;
    many(side, options, &mut figures).await?;
    most(side, options, &mut figures).await?;
    Ok(figures)
}

async fn few(side: Side, options: &Options, figures: &mut Figures) -> Result<()> {
    let world = World::start(options.control_plane.as_deref()).await?;
    let process = side.start(world.front.url()).await?;
    world.front.quiet(QUIET).await;
    world.front.take();
    world.create(options.few).await?;
    world.settled(options.few, QUIET).await?;
    let counts = world.front.take();
    figures.push(("requests for FEW new websites", "", counts.all() as f64));
    figures.push(("… of them refused", "", counts.refusals() as f64));
    process.end().await?;
    world.end().await
}

async fn many(side: Side, options: &Options, figures: &mut Figures) -> Result<()> {
    let mut world = World::start(options.control_plane.as_deref()).await?;
    let mut process = side.start(world.front.url()).await?;
    world.front.quiet(QUIET).await;
    world.front.take();
    let cpu = process.usage().cpu()?;
    let began = Instant::now();
    world.create(options.many).await?;
    world.settled(options.many, Duration::ZERO).await?;
    figures.push(("until MANY new websites are ready", "s", began.elapsed().as_secs_f64()));
    world.front.quiet(QUIET).await;
    figures.push(("… CPU of the controller", "s", (process.usage().cpu()? - cpu).as_secs_f64()));
    let counts = world.front.take();
    figures.push(("requests for MANY new websites", "", counts.all() as f64));
    figures.push(("… of them refused", "", counts.refusals() as f64));

    let mut version = 1;
    let mut changes = Vec::new();
    for site in 0..options.many.min(300) {
        version += 1;
        changes.push(world.reconciled(site, version).await?);
    }
    changes.sort();
    figures.push(("from a change to its status, median of 300", "ms", ms(changes[changes.len() / 2])));
    figures.push(("… 99 of 100 are faster than", "ms", ms(changes[changes.len() * 99 / 100])));

    world.settled(options.many, QUIET).await?;
    world.front.take();
    let before = reads(&mut process).await?;
    world.front.delay_watches(LATE);
    for _ in 0..ROUNDS {
        version += 1;
        world.change_all(options.many, version).await?;
    }
    world.settled(options.many, QUIET).await?;
    world.front.delay_watches(Duration::ZERO);
    let (counts, after) = (world.front.take(), reads(&mut process).await?);
    figures.push(("requests for 3 changes of each of MANY, watches 50 ms late", "", counts.all() as f64));
    figures.push(("… of them refused", "", counts.refusals() as f64));
    figures.push(("… reads of the cache that did not show an own write", "", after.1 - before.1));
    figures.push(("… of so many reads", "", after.0 - before.0));

    let mut lost = Vec::new();
    // Each of the three kinds in turn.
    for site in (0..30).step_by(3) {
        lost.push(world.lose::<Deployment>(site).await?);
        lost.push(world.lose::<Service>(site + 1).await?);
        lost.push(world.lose::<ConfigMap>(site + 2).await?);
    }
    figures.push(("until a deleted child is back, longest of 30", "ms", ms(longest(&lost))));
    let (mut cut, mut failed) = (Vec::new(), Vec::new());
    for site in 0..5 {
        world.settled(options.many, QUIET).await?;
        version += 1;
        world.front.cut_watches();
        cut.push(world.reconciled(site, version).await?);
        world.settled(options.many, QUIET).await?;
        version += 1;
        world.front.fail_a_write();
        failed.push(world.reconciled(site, version).await?);
    }
    figures.push(("from a change to its status, watches cut, longest of 5", "ms", ms(longest(&cut))));
    figures.push(("… one write failed, longest of 5", "ms", ms(longest(&failed))));

    world.settled(options.many, QUIET).await?;
    world.front.take();
    let left = world.delete_all(QUIET).await?;
    ensure!(left == 0, "{left} deployments are left");
    let counts = world.front.take();
    figures.push(("requests to delete MANY websites", "", counts.all() as f64));
    figures.push(("… of them refused", "", counts.refusals() as f64));
    process.end().await?;
    world.end().await
}

async fn most(side: Side, options: &Options, figures: &mut Figures) -> Result<()> {
    let world = World::start(options.control_plane.as_deref()).await?;
    let process = side.start(world.front.url()).await?;
    world.create(options.most).await?;
    world.settled(options.most, QUIET).await?;
    figures.push(("memory after making MOST websites", "MB", process.usage().resident()?));
    process.end().await?;
    // What finds everything as it should be.
    world.front.take();
    let process = side.start(world.front.url()).await?;
    world.front.quiet(QUIET).await;
    let counts = world.front.take();
    figures.push(("requests after a restart beside MOST ready websites", "", counts.all() as f64));
    figures.push(("… memory", "MB", process.usage().resident()?));
    figures.push(("… CPU", "s", process.usage().cpu()?.as_secs_f64()));
    process.end().await?;
    world.end().await
}

/// How often the controller has read from its caches, and how often they did not show what it had written.
async fn reads(process: &mut Process) -> Result<(f64, f64)> {
    let answer = process.ask("reads").await?;
    let (reads, stale) = answer.split_once(' ').with_context(|| format!("{answer:?} is no answer"))?;
    Ok((reads.parse()?, stale.parse()?))
}

fn longest(times: &[Duration]) -> Duration {
    times.iter().max().copied().unwrap_or_default()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
