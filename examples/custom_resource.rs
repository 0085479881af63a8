//! Watches any resource by its name, custom ones too: `custom_resource websites.v1.example.com`.

use std::time::Duration;

use anyhow::{Context, Result};
use informer::{DynamicObject, Handler, SharedInformerFactory};
use kube::Client;

#[tokio::main]
async fn main() -> Result<()> {
    let name =
        std::env::args().nth(1).context("name a resource: websites.v1.example.com, deployments.apps, po")?;
    let factory = SharedInformerFactory::new(Client::try_default().await?, Duration::ZERO);
    // Asks the server what it serves. A name that means nothing there is an error that says what is near it.
    let objects = factory.for_resource(name.as_str()).await?;
    objects.informer().add_handler(
        Handler::<DynamicObject>::new()
            .on_add(|object, _| println!("+ {} {}", object.key(), spec(object)))
            .on_update(|_, new| println!("~ {} {}", new.key(), spec(new)))
            .on_delete(|gone| println!("- {}", gone.key())),
    )?;

    factory.start()?;
    factory.wait_for_cache_sync(Duration::from_secs(30)).await?;
    println!("{} of {}; Ctrl-C ends", objects.informer().store().len(), objects.kind().plural);
    tokio::signal::ctrl_c().await?;
    factory.shutdown().await;
    Ok(())
}

fn spec(object: &DynamicObject) -> String {
    object.data.get("spec").map(ToString::to_string).unwrap_or_default()
}
