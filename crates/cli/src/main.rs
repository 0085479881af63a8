//! The command `informer`.

mod apiserver;
mod demo;
mod logging;
mod signal;
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
    Watch(Box<watch::Options>),
    /// Run an embedded Kubernetes API server, with a demo cluster in it if you like
    Apiserver(apiserver::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Watch(options) => watch::run(*options).await,
        Command::Apiserver(options) => apiserver::run(options).await,
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
