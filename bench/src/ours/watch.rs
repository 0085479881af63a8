//! Following the replay server: from the wire to the handler, event by event.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, bail};
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use informer::{
    KubeListWatch, Packed,
    factory::Kind,
    model::ResourceVersion,
    source::{ListOptions, ListStream, ListWatch, SourceError, WatchChange, WatchItem, WatchStream},
};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tokio::sync::watch;

use super::{Form, Running, raw_pods};

pub(super) async fn run(client: Client, events: u64, form: Form) -> Result<()> {
    match form {
        Form::Typed => follow(KubeListWatch::<Pod>::all(client), events).await,
        Form::Raw => follow(raw_pods(client), events).await,
        Form::Packed => follow(KubeListWatch::<Packed<Pod>>::all(client), events).await,
        Form::Projection | Form::Fields | Form::Metadata => bail!("pods are watched typed, raw or packed"),
    }
}

async fn follow<K: Kind>(source: impl ListWatch<K>, events: u64) -> Result<()> {
    let (last, mut arrived) = watch::channel(None);
    let source = Counting { source, awaited: Arc::new(AtomicU64::new(events)), last: Arc::new(last) };
    let running = Running::start(source, true).await?;
    let version = arrived.wait_for(Option::is_some).await?.clone().unwrap_or_default();
    // The last event has arrived; now it must get into the cache and to the handler, which may hear of several
    // changes of one object as of one.
    running.informer.wait_for_resource_version(&version, Duration::from_secs(60)).await?;
    while running.handler.pending() > 0 {
        tokio::task::yield_now().await;
    }
    println!("done {events}");
    running.end().await
}

/// A source that tells the version of the last event that is awaited.
struct Counting<S> {
    source: S,
    awaited: Arc<AtomicU64>,
    last: Arc<watch::Sender<Option<ResourceVersion>>>,
}

impl<K: Kind, S: ListWatch<K>> ListWatch<K> for Counting<S> {
    fn description(&self) -> String {
        self.source.description()
    }

    fn list(&self, options: ListOptions) -> BoxFuture<'static, Result<ListStream<K>, SourceError>> {
        self.source.list(options)
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'static, Result<WatchStream<K>, SourceError>> {
        let (opening, awaited, last) =
            (self.source.watch(options), Arc::clone(&self.awaited), Arc::clone(&self.last));
        async move {
            let events = opening.await?.inspect(move |item| {
                if let Ok(WatchItem::Object(WatchChange::Modified, object)) = item
                    && awaited.fetch_sub(1, Ordering::Relaxed) == 1
                {
                    last.send_replace(Some(object.resource_version().clone()));
                }
            });
            Ok(events.boxed())
        }
        .boxed()
    }
}
