//! Lists the nodes of the cluster from the cache: an informer and its lister.

use std::time::Duration;

use anyhow::Result;
use informer::{SharedInformerFactory, model::Selector};
use k8s_openapi::api::core::v1::Node;
use kube::Client;

#[tokio::main]
async fn main() -> Result<()> {
    let factory = SharedInformerFactory::new(Client::try_default().await?, Duration::ZERO);
    // As in client-go, asking for the lister is what makes the factory watch nodes.
    let nodes = factory.core().v1().nodes().lister();
    factory.start()?;
    factory.wait_for_cache_sync(Duration::from_secs(30)).await?;

    for node in nodes.list(&Selector::everything()) {
        println!("{} {}", node.key(), if is_ready(&node) { "ready" } else { "not ready" });
    }
    factory.shutdown().await;
    Ok(())
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
