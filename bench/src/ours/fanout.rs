//! What it costs to tell many handlers.
//!
//! Nothing is decoded: a source hands over ready objects, which pass the reflector, the queue, the store and the
//! processor. The CPU time is that of the whole process, so the work of every thread counts. A handler that falls
//! behind hears merged events; `unmerged` says how much was told one by one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::Args;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use informer::{
    Handler, Object, SharedInformer,
    model::ResourceVersion,
    source::{
        ListItem, ListOptions, ListStream, ListWatch, PageEnd, SourceError, WatchChange, WatchItem,
        WatchStream,
    },
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::process::Usage;

#[derive(Args)]
pub(crate) struct Shape {
    /// How many handlers
    #[arg(long, value_name = "H")]
    handlers: u64,
    /// How many objects there are
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    objects: u64,
    /// How many updates of them are told
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    updates: u64,
}

#[derive(Serialize)]
pub(super) struct Figures {
    cpu_us_per_event: f64,
    wall_s: f64,
    unmerged: f64,
}

/// A server that has everything ready, and tells the updates when it is let.
struct Ready {
    objects: Vec<Object<ConfigMap>>,
    updates: Vec<Object<ConfigMap>>,
    go: watch::Receiver<bool>,
}

fn object(number: u64, version: u64) -> Result<Object<ConfigMap>> {
    let metadata = ObjectMeta {
        name: Some(format!("object-{number:05}")),
        namespace: Some(format!("namespace-{}", number % 20)),
        resource_version: Some(version.to_string()),
        labels: Some([("app".to_owned(), format!("app-{}", number % 100))].into()),
        ..ObjectMeta::default()
    };
    Ok(Object::new(ConfigMap { metadata, ..ConfigMap::default() })?)
}

impl ListWatch<ConfigMap> for Ready {
    fn description(&self) -> String {
        "config maps".to_owned()
    }

    fn list(&self, _: ListOptions) -> BoxFuture<'static, Result<ListStream<ConfigMap>, SourceError>> {
        let end = PageEnd { version: (self.objects.len() as u64).into(), ..PageEnd::default() };
        let items = self.objects.clone().into_iter().map(ListItem::Object).chain([ListItem::End(end)]);
        async { Ok(stream::iter(items.map(Ok)).boxed()) }.boxed()
    }

    fn watch(&self, _: ListOptions) -> BoxFuture<'static, Result<WatchStream<ConfigMap>, SourceError>> {
        let (updates, mut go) = (self.updates.clone(), self.go.clone());
        async move {
            let told = stream::once(async move {
                let _ = go.wait_for(|go| *go).await;
                stream::iter(updates.into_iter().map(|new| Ok(WatchItem::Object(WatchChange::Modified, new))))
            });
            Ok(told.flatten().chain(stream::pending()).boxed())
        }
        .boxed()
    }
}

/// Counts without sharing anything while it counts.
struct Tally {
    count: u64,
    total: Arc<AtomicU64>,
}

impl Tally {
    fn add(&mut self) {
        self.count += 1;
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.total.fetch_add(self.count, Ordering::SeqCst);
    }
}

pub(super) async fn run(&Shape { handlers, objects, updates }: &Shape) -> Result<Figures> {
    let (go, waiting) = watch::channel(false);
    let source = Ready {
        objects: (0..objects).map(|number| object(number, number + 1)).collect::<Result<_>>()?,
        updates: (0..updates)
            .map(|n| object(n * 7_919 % objects.max(1), objects + n + 1))
            .collect::<Result<_>>()?,
        go: waiting,
    };
    let informer = SharedInformer::builder(source).streaming(false).build()?;
    let heard = Arc::new(AtomicU64::new(0));
    let mut registrations = Vec::new();
    for _ in 0..handlers {
        let mut tally = Tally { count: 0, total: Arc::clone(&heard) };
        registrations.push(informer.add_handler(Handler::new().on_update(move |_, _| tally.add()))?);
    }
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (informer, stop) = (informer.clone(), stop.clone());
        async move { informer.run(stop).await }
    });
    informer.wait_until_synced(Duration::from_secs(60)).await?;
    for registration in &registrations {
        registration.wait_until_synced(Duration::MAX).await?;
    }
    let this = Usage::of(std::process::id());
    let (cpu, began) = (this.cpu()?, Instant::now());
    go.send_replace(true);
    let last = ResourceVersion::from(objects + updates);
    informer.wait_for_resource_version(&last, Duration::from_secs(600)).await?;
    // A handler has heard of everything when nothing is pending.
    for registration in &registrations {
        while registration.pending() > 0 {
            tokio::task::yield_now().await;
        }
    }
    let (cpu, wall) = (this.cpu()? - cpu, began.elapsed());
    stop.cancel();
    running.await??;
    Ok(Figures {
        cpu_us_per_event: cpu.as_secs_f64() * 1e6 / updates as f64,
        wall_s: wall.as_secs_f64(),
        unmerged: heard.load(Ordering::SeqCst) as f64 / (handlers * updates) as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn every_handler_hears_of_the_updates() {
        let figures = run(&Shape { handlers: 3, objects: 50, updates: 500 }).await.unwrap();
        assert!(figures.unmerged > 0.0 && figures.unmerged <= 1.0, "{}", figures.unmerged);
    }
}
