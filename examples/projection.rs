//! Where pods run and how much they ask for, with a struct that has just these fields: only they are decoded and kept.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;
use informer::{SharedInformerFactory, model::Selector};
use k8s_openapi::{
    api::core::v1::Pod,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use kube::Client;
use serde::Deserialize;

/// A pod, as far as this program cares.
#[derive(Debug, Clone, Deserialize)]
struct Placed {
    metadata: ObjectMeta,
    spec: Spec,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
    containers: Vec<Container>,
}

#[derive(Debug, Clone, Deserialize)]
struct Container {
    #[serde(default)]
    resources: Resources,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Resources {
    #[serde(default)]
    requests: BTreeMap<String, Quantity>,
}

informer::projection!(Placed of Pod);

#[tokio::main]
async fn main() -> Result<()> {
    let factory = SharedInformerFactory::new(Client::try_default().await?, Duration::ZERO);
    let pods = factory.informer_for::<Placed>();
    factory.start()?;
    factory.wait_for_cache_sync(Duration::from_secs(30)).await?;

    for pod in pods.store().list(&Selector::everything()) {
        let cpu = pod.spec.containers.iter().filter_map(|container| container.resources.requests.get("cpu"));
        let cpu: Vec<&str> = cpu.map(|quantity| quantity.0.as_str()).collect();
        println!(
            "{} on {} asks for {}",
            pod.key(),
            pod.spec.node_name.as_deref().unwrap_or("no node"),
            cpu.join(" + ")
        );
    }
    factory.shutdown().await;
    Ok(())
}
