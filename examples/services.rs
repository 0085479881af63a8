//! Shows every service again each minute, or so many seconds as are named, changed or not: an informer with a resync
//! period.

use std::time::Duration;

use anyhow::Result;
use informer::{Handler, SharedInformerFactory};
use k8s_openapi::api::core::v1::Service;
use kube::Client;

#[tokio::main]
async fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).map_or(Ok(60), |seconds| seconds.parse())?;
    let factory = SharedInformerFactory::new(Client::try_default().await?, Duration::from_secs(seconds));
    let services = factory.core().v1().services().informer();
    services.add_handler(
        Handler::<Service>::new()
            .on_add(|service, _| println!("+ {}", service.key()))
            // A resync asks the server nothing: old and new are the same object.
            .on_update(|old, new| println!("{} {}", if old.ptr_eq(new) { "=" } else { "~" }, new.key()))
            .on_delete(|gone| println!("- {}", gone.key())),
    )?;

    factory.start()?;
    factory.wait_for_cache_sync(Duration::from_secs(30)).await?;
    println!("{} services; Ctrl-C ends", services.store().len());
    tokio::signal::ctrl_c().await?;
    factory.shutdown().await;
    Ok(())
}
