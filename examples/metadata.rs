//! Counts the objects that each namespace has of a resource, from their metadata alone: the rest is neither sent nor kept.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;
use informer::SharedInformerFactory;
use kube::Client;

#[tokio::main]
async fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "secrets".to_owned());
    let factory = SharedInformerFactory::new(Client::try_default().await?, Duration::ZERO);
    let objects = factory.metadata_for(name.as_str()).await?.informer();
    factory.start()?;
    factory.wait_for_cache_sync(Duration::from_secs(30)).await?;

    let mut counts = BTreeMap::new();
    let snapshot = objects.store().snapshot();
    for object in snapshot.iter() {
        *counts.entry(object.key().namespace().unwrap_or("(none)")).or_insert(0) += 1;
    }
    for (namespace, count) in counts {
        println!("{namespace}: {count} {name}");
    }
    factory.shutdown().await;
    Ok(())
}
