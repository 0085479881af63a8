//! A million pods in one process, packed.
//!
//! The server is in this process too. It makes the pods up while they are read, with the generator of the demo cluster, and keeps
//! none: first it tells them as a streaming list in protobuf, then it tells many of them again, changed. What the generator takes is part of
//! the CPU here, and of the time; memory is that of the informer but for a few megabytes.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use clap::Args;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use http::{Request, Response, header::CONTENT_TYPE};
use http_body::Frame;
use http_body_util::StreamBody;
use informer::{
    Handler, KubeListWatch, Packed, SharedInformer, model::encode_watch_event, packed::packed_kinds,
};
use informer_apiserver::DemoCluster;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, client::Body};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{runtime::Handle as Runtime, sync::mpsc};
use tower_service::Service;

use super::{SYNC_WITHIN, settle};
use crate::process::Usage;

/// How many pods have the label that is listed by.
const WANTED: usize = 100;
/// Bytes that are sent at once.
const PIECE: usize = 64 << 10;
const SEED: u64 = 7;

#[derive(Args)]
pub(crate) struct Shape {
    /// How many pods there are
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pods: usize,
    /// How many of them are updated
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    updates: usize,
    /// With how many pods a list by label is compared
    #[arg(long, value_name = "N", default_value_t = 30_000)]
    beside: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pods: usize,
    sync_s: f64,
    sync_cpu_s: f64,
    /// Resident after the sync, beyond what was before it.
    memory_mb: f64,
    bytes_each: f64,
    plain_bytes_each: f64,
    packed_bytes_each: f64,
    list_us: f64,
    /// Over the same list in fewer pods.
    list_ratio: f64,
    updates_per_s: f64,
    updates_heard: u64,
    memory_after_updates_mb: f64,
}

pub(super) async fn run(&Shape { pods, updates, beside }: &Shape) -> Result<Figures> {
    let few = measure(beside, 0).await?;
    eprintln!("{beside} pods: {few:?}");
    let many = measure(pods, updates.min(pods)).await?;
    ensure!(many.updates_heard == updates.min(pods) as u64, "{} updates were heard", many.updates_heard);
    Ok(Figures { list_ratio: many.list_us / few.list_us, ..many })
}

async fn measure(pods: usize, updates: usize) -> Result<Figures> {
    let this = Usage::of(std::process::id());
    settle().await?;
    let (before, cpu, began) = (this.resident()?, this.cpu()?, Instant::now());
    let (go, start) = mpsc::channel(1);
    let client = Client::new(Generator::new(pods, updates, start), "default");
    let builder = SharedInformer::builder(KubeListWatch::<Packed<Pod>>::all(client));
    let informer = builder.settings(|settings| settings.probe_period = None).build()?;
    let heard = Arc::<AtomicU64>::default();
    let counting = Arc::clone(&heard);
    let handler = Handler::new().unmerged().on_update(move |_, _| {
        counting.fetch_add(1, Relaxed);
    });
    let handler = informer.add_handler(handler)?;
    informer.start()?;
    informer.wait_until_synced(SYNC_WITHIN).await?;
    handler.wait_until_synced(SYNC_WITHIN).await?;
    let (sync_s, sync_cpu_s) = (began.elapsed().as_secs_f64(), (this.cpu()? - cpu).as_secs_f64());
    ensure!(informer.store().len() == pods, "{} pods are in the cache", informer.store().len());
    settle().await?;
    let memory_mb = this.resident()? - before;

    let wanted = "bench=wanted".parse()?;
    let mut times = Vec::new();
    for _ in 0..1_000 {
        let start = Instant::now();
        ensure!(informer.store().snapshot().list(&wanted).len() == WANTED.min(pods), "pods with the label");
        times.push(start.elapsed());
    }
    times.sort();

    let start = Instant::now();
    go.send(()).await?;
    let last = pods + updates;
    informer.wait_for_resource_version(&last.to_string().into(), SYNC_WITHIN).await?;
    while handler.pending() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let updates_per_s = updates as f64 / start.elapsed().as_secs_f64();
    settle().await?;
    let memory_after_updates_mb = this.resident()? - before;
    let kinds = packed_kinds();
    let kind = kinds.iter().find(|kind| kind.kind == "v1/Pod").context("pods were packed")?;
    informer.stop().await?;
    Ok(Figures {
        pods,
        sync_s,
        sync_cpu_s,
        memory_mb,
        bytes_each: memory_mb * 1e6 / pods as f64,
        plain_bytes_each: kind.plain_bytes as f64 / kind.objects as f64,
        packed_bytes_each: kind.packed_bytes as f64 / kind.objects as f64,
        list_us: times[times.len() / 2].as_secs_f64() * 1e6,
        list_ratio: 1.0,
        updates_per_s,
        updates_heard: heard.load(Relaxed),
        memory_after_updates_mb,
    })
}

/// A server that answers one watch, with pods that it makes up.
#[derive(Clone)]
struct Generator {
    pieces: Arc<Mutex<Option<mpsc::Receiver<Bytes>>>>,
}

impl Generator {
    /// Pods at once, updates when it is told to.
    fn new(pods: usize, updates: usize, mut start: mpsc::Receiver<()>) -> Self {
        let (sender, pieces) = mpsc::channel(16);
        let runtime = Runtime::current();
        thread::spawn(move || {
            let mut out = Out { sender, piece: Vec::new() };
            let cluster = DemoCluster::new(SEED, pods);
            let each = || cluster.objects().filter(|object| object["kind"] == "Pod").enumerate();
            let every = (pods / WANTED).max(1);
            for (number, mut pod) in each() {
                pod["metadata"]["resourceVersion"] = (number + 1).to_string().into();
                if number % every == 0 && number / every < WANTED {
                    pod["metadata"]["labels"]["bench"] = "wanted".into();
                }
                out.tell("ADDED", &pod)?;
            }
            let end = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "resourceVersion": pods.to_string(),
                "annotations": { "k8s.io/initial-events-end": "true" } } });
            out.tell("BOOKMARK", &end)?;
            out.flush()?;
            start.blocking_recv()?;
            for (number, mut pod) in each().take(updates) {
                pod["metadata"]["resourceVersion"] = (pods + number + 1).to_string().into();
                pod["status"]["phase"] = "Unknown".into();
                out.tell("MODIFIED", &pod)?;
            }
            out.flush()?;
            // The watch stays open until its reader goes.
            runtime.block_on(out.sender.closed());
            Some(())
        });
        Self { pieces: Arc::new(Mutex::new(Some(pieces))) }
    }
}

impl Service<Request<Body>> for Generator {
    type Response = Response<StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner).take();
        let code = if pieces.is_some() { 200 } else { 503 };
        let body = stream::unfold(pieces, async |pieces| {
            let mut pieces = pieces?;
            Some((Ok(Frame::data(pieces.recv().await?)), Some(pieces)))
        });
        let answer = Response::builder()
            .status(code)
            .header(CONTENT_TYPE, "application/vnd.kubernetes.protobuf;stream=watch")
            .body(StreamBody::new(body.boxed()));
        ready(Ok(answer.expect("a whole answer")))
    }
}

/// Writes until nobody reads.
struct Out {
    sender: mpsc::Sender<Bytes>,
    piece: Vec<u8>,
}

impl Out {
    fn tell(&mut self, change: &str, pod: &Value) -> Option<()> {
        self.piece.extend(encode_watch_event(change, pod).ok()?);
        if self.piece.len() < PIECE { Some(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Option<()> {
        self.sender.blocking_send(std::mem::take(&mut self.piece).into()).ok()
    }
}
