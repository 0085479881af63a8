//! The controller with kube-runtime, with the allocator that ours has: it says `ready`, and ends with its input.

use anyhow::Result;
use clap::Parser;
use kube::Config;

#[path = "../../../../src/controllers/website.rs"]
mod problem;
#[path = "../website.rs"]
mod website;
#[path = "../../../../src/controllers/witness.rs"]
mod witness;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The controller of the comparison
#[derive(Parser)]
#[command(name = "kube-rs-controller", arg_required_else_help = true)]
struct Options {
    /// The server
    #[arg(long, value_name = "URL")]
    server: http::Uri,
}

#[tokio::main]
async fn main() -> Result<()> {
    let witness = witness::Witness::default();
    let client = witness.client(Config::new(Options::parse().server))?;
    let end = witness.speak();
    website::run(client, async move { drop(end.await) }, witness).await;
    Ok(())
}
