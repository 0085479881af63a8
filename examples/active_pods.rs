//! Watches only pods that have not ended, and keeps only what it needs of them: a filter at the server and a
//! transform.

use std::time::Duration;

use anyhow::Result;
use informer::{Handler, SharedInformerFactory, factory::Scope, queue::Transform};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;

#[tokio::main]
async fn main() -> Result<()> {
    let active = Scope::everything().fields(&"status.phase!=Succeeded,status.phase!=Failed".parse()?);
    let trim = Transform::new(|pod: &mut Pod| {
        pod.metadata.annotations = None;
        if let Some(status) = &mut pod.status {
            (status.conditions, status.container_statuses) = (None, None);
        }
    });
    let client = Client::try_default().await?;
    let factory = SharedInformerFactory::builder(client).scope(active).transform(trim).build()?;
    let pods = factory.core().v1().pods().informer();
    pods.add_handler(
        Handler::<Pod>::new()
            .on_add(|pod, _| println!("+ {}", pod.key()))
            // For this informer a pod that ends is gone.
            .on_delete(|gone| println!("- {}", gone.key())),
    )?;

    factory.start()?;
    factory.wait_for_cache_sync(Duration::from_secs(30)).await?;
    println!("{} active pods; Ctrl-C ends", pods.store().len());
    tokio::signal::ctrl_c().await?;
    factory.shutdown().await;
    Ok(())
}
