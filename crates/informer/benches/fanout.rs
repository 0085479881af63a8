//! What it costs to tell many handlers: 100,000 updates over 10,000 objects, told to 1, 10 and 100 handlers.
//!
//! Nothing is decoded: a source hands over ready objects, which pass the reflector, the queue, the store and the
//! processor. Figures are CPU time of the whole process, so the work of every thread counts; each is the best of
//! three. `per delivery` is all of it divided by what handlers were told, `told singly` how much of what happened
//! they were told one by one: a handler that falls behind hears merged events.
//!
//! `cargo bench -p informer --bench fanout`

#[path = "support/process.rs"]
mod process;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

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
use process::cpu_time;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const OBJECTS: u64 = 10_000;
const UPDATES: u64 = 100_000;
/// client-go in the same shape, as measured with its own benchmark: CPU per event at 1, 10 and 100 handlers.
const CLIENT_GO: [(usize, f64); 3] = [(1, 4.8), (10, 12.9), (100, 110.0)];

/// A server that has everything ready, and tells the updates when it is let.
struct Ready {
    objects: Vec<Object<ConfigMap>>,
    updates: Vec<Object<ConfigMap>>,
    go: watch::Receiver<bool>,
}

fn object(number: u64, version: u64) -> Object<ConfigMap> {
    let metadata = ObjectMeta {
        name: Some(format!("object-{number:05}")),
        namespace: Some(format!("namespace-{}", number % 20)),
        resource_version: Some(version.to_string()),
        labels: Some([("app".to_owned(), format!("app-{}", number % 100))].into()),
        ..ObjectMeta::default()
    };
    Object::new(ConfigMap { metadata, ..ConfigMap::default() }).expect("a name")
}

impl ListWatch<ConfigMap> for Ready {
    fn description(&self) -> String {
        "config maps".to_owned()
    }

    fn list(&self, _: ListOptions) -> BoxFuture<'static, Result<ListStream<ConfigMap>, SourceError>> {
        let end = PageEnd { version: OBJECTS.into(), ..PageEnd::default() };
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

/// What one run took.
struct Run {
    cpu: Duration,
    wall: Duration,
    deliveries: u64,
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

async fn run(handlers: usize) -> Run {
    let (go, waiting) = watch::channel(false);
    let source = Ready {
        objects: (0..OBJECTS).map(|number| object(number, number + 1)).collect(),
        updates: (0..UPDATES).map(|n| object(n * 7_919 % OBJECTS, OBJECTS + n + 1)).collect(),
        go: waiting,
    };
    let informer = SharedInformer::builder(source).streaming(false).build().expect("an informer");
    let heard = Arc::new(AtomicU64::new(0));
    let mut registrations = Vec::new();
    for _ in 0..handlers {
        let mut tally = Tally { count: 0, total: Arc::clone(&heard) };
        let handler = Handler::new().on_update(move |_, _| tally.add());
        registrations.push(informer.add_handler(handler).expect("running"));
    }
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (informer, stop) = (informer.clone(), stop.clone());
        async move { informer.run(stop).await }
    });
    informer.wait_until_synced(Duration::from_secs(60)).await.expect("synced");
    for registration in &registrations {
        registration.wait_until_synced().await.expect("synced");
    }
    let (cpu, wall) = (cpu_time(), Instant::now());
    go.send(true).expect("the source listens");
    let last = ResourceVersion::from(OBJECTS + UPDATES);
    informer.wait_for_resource_version(&last, Duration::from_secs(600)).await.expect("all updates");
    // A handler that fell behind is told merged events: it has heard of everything when nothing is pending.
    for registration in &registrations {
        while registration.pending() > 0 {
            tokio::task::yield_now().await;
        }
    }
    let (cpu, wall) = (cpu_time() - cpu, wall.elapsed());
    stop.cancel();
    running.await.expect("no panic").expect("it ran");
    Run { cpu, wall, deliveries: heard.load(Ordering::SeqCst) }
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("tokio");
    println!("{UPDATES} updates over {OBJECTS} objects, CPU time of the whole process, best of three");
    let mut rows = Vec::new();
    for handlers in [1_usize, 10, 100] {
        let runs = (0..3).map(|_| runtime.block_on(run(handlers)));
        let Run { cpu, wall, deliveries } = runs.min_by_key(|run| run.cpu).expect("three runs");
        let per_event = cpu.as_secs_f64() * 1e6 / UPDATES as f64;
        // A handler that falls behind hears merged events: what counts is what was really told.
        let per_delivery = cpu.as_secs_f64() * 1e6 / deliveries.max(1) as f64;
        let told = deliveries as f64 * 100.0 / (handlers as f64 * UPDATES as f64);
        rows.push((handlers, per_event, per_delivery, told, wall));
    }
    println!(
        "\n| handlers | CPU per event | per delivery | told singly | client-go per event | ratio | wall |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (handlers, per_event, per_delivery, told, wall) in rows {
        let go = CLIENT_GO.iter().find(|(count, _)| *count == handlers).map(|(_, micros)| *micros);
        let (go, ratio) = match go {
            Some(go) => (format!("{go} µs"), format!("{:.3}", per_event / go)),
            None => ("–".to_owned(), "–".to_owned()),
        };
        println!(
            "| {handlers} | {per_event:.2} µs | {per_delivery:.3} µs | {told:.0} % | {go} | {ratio} | {wall:.0?} |"
        );
    }
}
