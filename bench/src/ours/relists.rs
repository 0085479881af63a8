//! Listing again and again, because every watch fails: memory must not grow.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use informer::{KubeListWatch, SharedInformer, model::Status, reflector::Backoff};
use informer_apiserver::{ApiServer, DemoCluster, Fault, Rule, Verb};
use k8s_openapi::api::core::v1::Pod;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::process::Usage;

#[derive(Args)]
pub(crate) struct Shape {
    /// How often everything is listed
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    relists: u64,
    /// How many pods there are
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pods: usize,
}

#[derive(Serialize)]
pub(super) struct Figures {
    early_mb: f64,
    late_mb: f64,
}

pub(super) async fn run(&Shape { relists, pods }: &Shape) -> Result<Figures> {
    let server = ApiServer::builder().build();
    server.load_demo(&DemoCluster::new(7, pods)).context("a cluster")?;
    server.faults().add(Rule::new(Fault::Status(Status::expired("for this bench"))).verb(Verb::Watch));
    let backoff = Backoff { initial: Duration::ZERO, max: Duration::ZERO, ..Backoff::default() };
    let builder = SharedInformer::builder(KubeListWatch::<Pod>::all(server.client()));
    let informer = builder.streaming(false).backoff(backoff).build()?;
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (informer, stop) = (informer.clone(), stop.clone());
        async move { informer.run(stop).await }
    });
    let this = Usage::of(std::process::id());
    let lists =
        || server.requests().iter().filter(|((verb, _), _)| *verb == "list").map(|(_, n)| n).sum::<u64>();
    let memory_after = async |count: u64| {
        while lists() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        this.resident()
    };
    let early_mb = memory_after(relists / 10).await?;
    let late_mb = memory_after(relists).await?;
    stop.cancel();
    running.await??;
    Ok(Figures { early_mb, late_mb })
}
