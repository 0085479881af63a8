//! Prints what becomes of pods: a shared informer with handlers.

use std::time::Duration;

use anyhow::Result;
use informer::{Handler, SharedInformerFactory};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;

#[tokio::main]
async fn main() -> Result<()> {
    let factory = SharedInformerFactory::new(Client::try_default().await?, Duration::ZERO);
    let pods = factory.core().v1().pods().informer();
    pods.add_handler(
        Handler::<Pod>::new()
            .on_add(|pod, initial| println!("+ {}{}", pod.key(), if initial { " (was there)" } else { "" }))
            .on_update(|old, new| println!("~ {} {} → {}", new.key(), phase(old), phase(new)))
            .on_delete(|gone| println!("- {}", gone.key())),
    )?;

    factory.start()?;
    factory.wait_for_cache_sync(Duration::from_secs(30)).await?;
    println!("{} pods; Ctrl-C ends", pods.store().len());
    tokio::signal::ctrl_c().await?;
    factory.shutdown().await;
    Ok(())
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("?")
}
