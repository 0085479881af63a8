//! Ours and the peers side by side, on a real API server: `bench/run` builds everything and calls `compare` here.
//!
//! This program is the driver and, in processes of its own, our side of each comparison.

mod baseline;
mod chart;
mod compare;
mod control_plane;
mod controllers;
mod figures;
mod goals;
mod measure;
mod ours;
mod pods;
mod process;
mod relay;
mod report;
mod scenario;
mod setting;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The allocator of the binary `informer`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Ours and the peers side by side, on a real API server
#[derive(Parser)]
#[command(name = "informer-bench", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure everybody and print the tables; `bench/run` calls this
    Compare(compare::Options),
    /// One controller written with kube-runtime and with informer; `bench/run controllers` calls this
    Controllers(controllers::Options),
    #[command(flatten)]
    Ours(ours::Side),
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Compare(options) => compare::run(options).await,
        Command::Controllers(options) => controllers::run(options).await,
        Command::Ours(side) => ours::run(side).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
