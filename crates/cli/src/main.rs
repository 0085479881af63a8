//! The command `informer`.

mod apiserver;
mod cluster;
mod demo;
mod estimate;
mod failure;
mod flags;
mod generate;
mod logging;
mod serve;
mod signal;
mod text;
mod watch;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

/// Objects of a cluster are many small allocations, which this allocator is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Shared informers for Kubernetes, from the command line
#[derive(Parser)]
#[command(name = "informer", version, arg_required_else_help = true, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(Box<serve::Options>),
    Watch(Box<watch::Options>),
    Estimate(estimate::Options),
    /// Run an embedded Kubernetes API server, with a demo cluster in it if you like
    Apiserver(apiserver::Options),
    Completions(generate::Completions),
    Man(generate::Man),
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(options) => serve::run(*options).await,
        Command::Watch(options) => watch::run(*options).await,
        Command::Estimate(options) => estimate::run(options).await,
        Command::Apiserver(options) => apiserver::run(options).await,
        Command::Completions(options) => generate::completions(options),
        Command::Man(options) => generate::man(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a stderr there is still the exit code.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
