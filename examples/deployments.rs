//! Lists deployments by label, in one namespace and in all: listers and selectors.

use std::time::Duration;

use anyhow::Result;
use informer::{SharedInformerFactory, model::Selector};
use kube::Client;

#[tokio::main]
async fn main() -> Result<()> {
    let selector: Selector = std::env::args().nth(1).unwrap_or_default().parse()?;
    let factory = SharedInformerFactory::new(Client::try_default().await?, Duration::ZERO);
    let deployments = factory.apps().v1().deployments().lister();
    factory.start()?;
    factory.wait_for_cache_sync(Duration::from_secs(30)).await?;

    // Every list is one point in time, and one by `=` or `in` costs what it finds, not what there is.
    for deployment in deployments.list(&selector) {
        let wanted = deployment.spec.replicas.unwrap_or(1);
        println!("{} × {wanted}", deployment.key());
    }
    let system = deployments.namespace("kube-system");
    println!("{} in kube-system", system.list(&selector).len());
    match system.get("coredns") {
        Ok(dns) => println!("DNS is there, at version {}", dns.resource_version()),
        Err(missing) => println!("{missing}"),
    }
    factory.shutdown().await;
    Ok(())
}
