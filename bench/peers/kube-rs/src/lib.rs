//! The reflector of kube-rs, doing what is measured.
//!
//! Lines as those of the other participants: `synced N`, `settled`, `done N`; then it waits for the end of its input.

use std::{io, path::PathBuf, pin::pin, time::Duration};

use anyhow::{Context, Result};
use clap::Parser;
use futures_util::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{
        WatchStreamExt, reflector,
        watcher::{self, Event, watcher},
    },
};
use tokio::{task::spawn_blocking, time::sleep};

/// A reflector of kube-rs over all pods
#[derive(Parser)]
#[command(name = "kube-rs-peer", arg_required_else_help = true)]
enum Peer {
    /// Take all pods of a cluster into memory: prints `synced N`, and `settled` when memory falls no more
    Sync {
        /// The cluster
        #[arg(long, value_name = "FILE")]
        kubeconfig: PathBuf,
        /// List as a stream instead of in pages, which are the default of kube-rs
        #[arg(long)]
        streaming: bool,
    },
    /// Follow the replay server: prints `synced N`, then `done N` after so many events
    Watch {
        /// The replay server
        #[arg(long, value_name = "URL")]
        server: String,
        /// How many events are awaited
        #[arg(long, value_name = "N")]
        events: u64,
    },
}

/// Runs the peer that the arguments name.
#[tokio::main]
pub async fn run() -> Result<()> {
    match Peer::parse() {
        Peer::Sync { kubeconfig, streaming } => {
            let file = Kubeconfig::read_from(&kubeconfig)
                .with_context(|| format!("cannot read {}", kubeconfig.display()))?;
            let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
            reflect(config, streaming, 0).await
        }
        Peer::Watch { server, events } => reflect(Config::new(server.parse()?), false, events).await,
    }
}

/// Syncs, then sees so many events.
async fn reflect(config: Config, streaming: bool, events: u64) -> Result<()> {
    let pods: Api<Pod> = Api::all(Client::try_from(config)?);
    let settings = watcher::Config::default();
    let settings = if streaming { settings.streaming_lists() } else { settings };
    let (reader, writer) = reflector::store();
    let mut stream = pin!(watcher(pods, settings).reflect(writer).default_backoff());
    let next = "the reflector ended";
    while !matches!(stream.try_next().await?.context(next)?, Event::InitDone) {}
    println!("synced {}", reader.len());
    if events > 0 {
        let mut seen = 0;
        while seen < events {
            seen += u64::from(matches!(stream.try_next().await?.context(next)?, Event::Apply(_)));
        }
        println!("done {seen}");
    }
    settle().await?;
    println!("settled");
    // Whatever goes wrong with the input is an end, too.
    let mut input = spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink()));
    loop {
        tokio::select! {
            event = stream.try_next() => drop(event?.context(next)?),
            _ = &mut input => return Ok(()),
        }
    }
}

/// Waits until resident memory falls no more: an allocator may give back what is free after a moment.
async fn settle() -> Result<()> {
    let mut before = resident()?;
    for _ in 0..20 {
        sleep(Duration::from_millis(100)).await;
        let now = resident()?;
        if now >= before {
            break;
        }
        before = now;
    }
    Ok(())
}

/// Resident memory in pages.
fn resident() -> Result<u64> {
    let sizes = std::fs::read_to_string("/proc/self/statm")?;
    sizes.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).context("/proc/self/statm")
}
