//! Counts the pods on each node: an index of one's own.

use std::time::Duration;

use anyhow::Result;
use informer::{SharedInformerFactory, model::Selector};
use kube::Client;

#[tokio::main]
async fn main() -> Result<()> {
    let factory = SharedInformerFactory::new(Client::try_default().await?, Duration::ZERO);
    let pods = factory.core().v1().pods().informer();
    let by_node = pods.add_index("node", |pod| pod.spec.as_ref()?.node_name.clone())?;
    let nodes = factory.core().v1().nodes().lister();
    factory.start()?;
    factory.wait_for_cache_sync(Duration::from_secs(30)).await?;

    for node in nodes.list(&Selector::everything()) {
        println!("{}: {} pods", node.key(), by_node.get(node.key().name()).len());
    }
    factory.shutdown().await;
    Ok(())
}
