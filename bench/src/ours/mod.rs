//! Our side of each comparison, in a process of its own.
//!
//! Each speaks the lines that the peers speak: `synced N`, `settled`, `done N`, or one line of JSON with figures that it
//! measured itself. Those that print words then wait for the end of their input, so that the driver can look at the
//! process meanwhile.

mod delays;
mod fanout;
mod labels;
mod million;
mod queue;
mod reads;
mod relists;
mod sync;
mod watch;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use clap::{Subcommand, ValueEnum};
use informer::{
    Handler, KubeListWatch, RawObject, Registration, SharedInformer, factory::Kind,
    shared::SharedInformerBuilder, source::ListWatch,
};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, GroupVersionKind},
};
use serde::Serialize;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    controllers::{self, witness::Witness},
    process::Usage,
};

/// How long the first list may take.
const SYNC_WITHIN: Duration = Duration::from_secs(600);

/// One side of one comparison.
#[derive(Subcommand)]
pub(crate) enum Side {
    /// Take all pods of a cluster into memory: prints `synced N`, and `settled` when memory has come to rest
    Sync {
        /// The cluster
        #[arg(long, value_name = "FILE")]
        kubeconfig: PathBuf,
        /// As what pods are kept
        #[arg(long, value_enum, default_value_t = Form::Typed)]
        form: Form,
        /// List in pages instead of as a stream
        #[arg(long)]
        paged: bool,
    },
    /// Follow the replay server: prints `synced N`, then `done N` after so many events
    Watch {
        /// The replay server
        #[arg(long, value_name = "URL")]
        server: http::Uri,
        /// How many events are awaited
        #[arg(long, value_name = "N")]
        events: u64,
        /// As what pods are kept
        #[arg(long, value_enum, default_value_t = Form::Typed)]
        form: Form,
    },
    /// Run the controller of the comparison until the input ends: prints `ready`
    Controller {
        /// The server
        #[arg(long, value_name = "URL")]
        server: http::Uri,
    },
    /// Tell many handlers: CPU for each event, without decoding
    Fanout(fanout::Shape),
    /// List 100 objects of many by a label
    Labels(labels::Shape),
    /// Write while others list everything
    Reads(reads::Shape),
    /// List again and again: memory early and late
    Relists(relists::Shape),
    /// Keep a million generated pods packed: memory, a list by label, updates
    Million(million::Shape),
    /// Bring items through a work queue: CPU for each
    Queue(queue::Shape),
    /// Keep items that come in hours: CPU and memory for each
    Delays(delays::Shape),
}

/// What is kept of a pod.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Form {
    /// The whole pod, decoded
    Typed,
    /// Its JSON, as the gateway keeps it
    Raw,
    /// As it came over the wire, compressed
    Packed,
    /// A struct with a few fields
    Projection,
    /// The same fields without the metadata that is beside each object anyway
    Fields,
    /// Metadata only; the rest is not sent
    Metadata,
}

/// Plays one side.
pub(crate) async fn run(side: Side) -> Result<()> {
    match side {
        Side::Sync { kubeconfig, form, paged } => sync::run(client(&kubeconfig).await?, form, !paged).await,
        Side::Watch { server, events, form } => {
            watch::run(Client::try_from(Config::new(server))?, events, form).await
        }
        Side::Controller { server } => controller(server).await,
        Side::Fanout(shape) => print(&fanout::run(&shape).await?),
        Side::Labels(shape) => print(&labels::run(&shape)?),
        Side::Reads(shape) => print(&reads::run(&shape)?),
        Side::Relists(shape) => print(&relists::run(&shape).await?),
        Side::Million(shape) => print(&million::run(&shape).await?),
        Side::Queue(shape) => print(&queue::run(&shape).await?),
        Side::Delays(shape) => print(&delays::run(&shape).await?),
    }
}

/// The controller, as a program has it around it.
async fn controller(server: http::Uri) -> Result<()> {
    let (witness, stop) = (Witness::default(), CancellationToken::new());
    let mut config = Config::new(server);
    config.default_retry = false;
    let client = witness.client(config)?;
    let (end, ended) = (witness.speak(), stop.clone());
    tokio::spawn(async move {
        drop(end.await);
        ended.cancel();
    });
    controllers::ours::run(client, stop, witness).await
}

fn print(figures: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(figures)?);
    Ok(())
}

/// A client for the current context of a kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("cannot read the kubeconfig {}", kubeconfig.display()))?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    config.read_timeout = None;
    Ok(Client::try_from(config)?)
}

/// An informer that runs until this is ended, with one handler that counts.
struct Running<K: Kind> {
    informer: SharedInformer<K>,
    handler: Registration,
    stop: CancellationToken,
    task: JoinHandle<Result<(), informer::shared::RunError>>,
}

impl<K: Kind> Running<K> {
    /// Returns when the handler has heard of everything that the first list brought.
    async fn start(source: impl ListWatch<K>, streaming: bool) -> Result<Self> {
        Self::run(SharedInformer::builder(source).streaming(streaming)).await
    }

    async fn run(builder: SharedInformerBuilder<K>) -> Result<Self> {
        let informer = builder.build()?;
        let mut heard = 0_u64;
        let handler = Handler::new().on_update(move |_, _| heard = std::hint::black_box(heard + 1));
        let handler = informer.add_handler(handler)?;
        let stop = CancellationToken::new();
        let task = tokio::spawn({
            let (informer, stop) = (informer.clone(), stop.clone());
            async move { informer.run(stop).await }
        });
        informer.wait_until_synced(SYNC_WITHIN).await?;
        handler.wait_until_synced(Duration::MAX).await?;
        println!("synced {}", informer.store().len());
        Ok(Self { informer, handler, stop, task })
    }

    /// Says that memory is at rest, and ends with the input.
    async fn end(self) -> Result<()> {
        settle().await?;
        println!("settled");
        end_of_input().await;
        self.stop.cancel();
        Ok(self.task.await??)
    }
}

/// Pods as JSON, kept as the gateway keeps them.
fn raw_pods(client: Client) -> KubeListWatch<RawObject> {
    KubeListWatch::of_kind(client, ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod")))
}

/// Waits until resident memory falls no more: the allocator gives back what is free after a moment.
async fn settle() -> Result<()> {
    let this = Usage::of(std::process::id());
    let mut before = this.resident()?;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = this.resident()?;
        if now >= before {
            break;
        }
        before = now;
    }
    Ok(())
}

async fn end_of_input() {
    // Whatever goes wrong with it is an end, too.
    let _ = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await;
}
