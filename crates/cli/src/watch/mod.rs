//! `informer watch`: a resource of a cluster through a shared informer, event by event.
//!
//! In: the name of a resource and which cluster. Out: every event on stdout, in one of several forms; how it
//! goes on stderr. The way of an event: the informer keeps its text, [`event`] says what became of it, [`output`]
//! makes text of it, [`sink`] writes that.

mod diff;
mod event;
mod line;
mod output;
pub(crate) mod progress;
mod sink;
mod teller;

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use informer::{
    KubeListWatch, RawObject, SharedInformer,
    discovery::{Discovery, ResolveError, ServedResource},
};
use informer_model::{FieldSelector, ResourceArg, Selector};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use self::{output::Form, progress::Progress, sink::Sink, teller::Teller};
use crate::{
    cluster::{Cluster, ClusterOptions},
    failure::Failure,
    flags, logging,
    signal::interrupt,
};

/// The demo cluster has so many pods,
const DEMO_PODS: usize = 60;
/// and so many changes per second.
const DEMO_CHURN: f64 = 4.0;
/// How long the informer has to end.
const ENDING: Duration = Duration::from_secs(3);
/// The delays between attempts to reach a server at first.
const FIRST_DELAY: Duration = Duration::from_millis(200);
const LONGEST_DELAY: Duration = Duration::from_secs(3);

/// Watch a resource: everything that exists, then every change as it happens, with what has changed.
#[derive(Args)]
#[command(
    long_about = "Watch a resource: everything that exists, then every change as it happens, with what has changed.

It lists once, watches from there, and keeps what it knows, so that an update can be told as the
fields that differ. When the connection is lost it goes on by itself and tells what it missed.

Events go to stdout, everything else to stderr:

    + ADDED    shop/web-0  @1004  initial
    ~ UPDATED  shop/web-0  @1017  status.phase: Pending → Running
    = RESYNC   shop/web-0  @1017
    - DELETED  shop/web-0  @1020",
    after_help = "Examples:
  informer watch pods --demo                       no cluster needed
  informer watch pods -A -l app=web                by label, in all namespaces
  informer watch deploy -n shop -o wide
  informer watch websites.example.com -o json | jq -c 'select(.type==\"DELETED\").key'

With -o json each line is a document with \"type\" (ADDED, UPDATED, RESYNC or DELETED), \"key\" and
\"object\". An update has \"old\" too, what existed before has \"initial\": true, and a deletion that
was noticed late has \"finalStateKnown\": false. After the last initial object there is one
{\"type\": \"SYNCED\", \"objects\": N}.

Exit code: 0 if ended by Ctrl-C, SIGTERM or the reader of its output; 1 if the cluster cannot be
watched; 2 if the arguments make no sense. $RUST_LOG chooses what is logged, in place of -v."
)]
pub(crate) struct Options {
    /// What to watch, as for kubectl: pods, po, deployments.apps, apps/v1/deployments, websites.example.com
    #[arg(value_parser = flags::resource)]
    resource: ResourceArg,

    /// The namespace; by default that of the kubeconfig's context
    #[arg(short, long, value_name = "NAME", value_parser = flags::namespace, conflicts_with = "all_namespaces")]
    namespace: Option<String>,

    /// All namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Only objects with these labels: app=web,tier!=test,env in (a,b)
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = Selector::parse)]
    selector: Option<Selector>,

    /// Only objects with these fields: status.phase=Running,spec.nodeName=node-1
    #[arg(long, value_name = "FIELDS", value_parser = FieldSelector::parse)]
    field_selector: Option<FieldSelector>,

    /// What to print for each event; by default a line
    #[arg(short, long, value_name = "FORM", value_enum)]
    output: Option<Form>,

    /// Leave out what exists already, show only changes
    #[arg(long)]
    watch_only: bool,

    /// Show everything again so often: 30s, 10m
    #[arg(long, value_name = "PERIOD", value_parser = flags::resync, default_value = "0", hide_default_value = true)]
    resync: Duration,

    #[command(flatten)]
    cluster: ClusterOptions,

    /// Watch a made-up cluster inside this process, all namespaces unless one is named
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    demo: bool,

    /// How long to try to reach the server at first; later it is tried for ever
    #[arg(long, value_name = "TIME", value_parser = flags::timeout, default_value = "30s")]
    timeout: Duration,

    /// Log what the informer does; twice for more
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// Watches until the user or the reader of the output ends it.
pub(crate) async fn run(options: Options) -> Result<()> {
    logging::begin(options.verbose, logging::WITHOUT_INFORMERS);
    // Signals keep their usual meaning until a program that logs the user in has ended.
    let cluster = match options.demo {
        true => Cluster::demo(DEMO_PODS, DEMO_CHURN)?,
        false => Cluster::connect(&options.cluster).await?,
    };
    let (stop, interrupted) = (CancellationToken::new(), interrupt());
    let watching = watch(&options, &cluster, &stop);
    tokio::pin!(watching);
    tokio::select! {
        result = &mut watching => return result,
        () = interrupted => stop.cancel(),
    }
    watching.await
}

async fn watch(options: &Options, cluster: &Cluster, stop: &CancellationToken) -> Result<()> {
    // A spinner and a log do not get along.
    let spin = options.verbose == 0 && std::env::var_os("RUST_LOG").is_none();
    let progress = Progress::begin(format!("watching {} of {}", options.resource, cluster.name), spin);
    let finding = find(options, cluster, &progress);
    let Some(served) = stop.run_until_cancelled(finding).await.transpose()? else { return Ok(()) };

    let mut source =
        KubeListWatch::<RawObject>::of_kind(cluster.client.clone(), served.api.clone()).wire(cluster.wire);
    if let Some(namespace) = namespace(options, cluster).filter(|_| served.namespaced) {
        source = source.in_namespace(namespace);
    }
    if let Some(selector) = &options.selector {
        source = source.label_selector(selector);
    }
    if let Some(selector) = &options.field_selector {
        source = source.field_selector(selector);
    }
    let builder = SharedInformer::builder(source).name(served.name()).resync(options.resync);
    let informer = builder.build()?;
    let events = informer.subscribe()?;
    let running = tokio::spawn({
        let (informer, stop) = (informer.clone(), stop.clone());
        async move { informer.run(stop).await }
    });

    let sink = Sink::open().context("cannot start a thread")?;
    let teller = Teller::new(options, &served, &informer, &sink, progress);
    let told = stop.run_until_cancelled(teller.tell(events)).await.unwrap_or(Ok(()));
    stop.cancel();
    // It has ended or it ends with the process.
    let _ = tokio::time::timeout(ENDING, running).await;
    let written = sink.close().await;
    told?;
    written.context("cannot write the events")
}

/// The namespace to watch; `None` is all.
fn namespace<'a>(options: &'a Options, cluster: &'a Cluster) -> Option<&'a str> {
    match &options.namespace {
        None if options.all_namespaces => None,
        None => cluster.namespace.as_deref(),
        Some(named) => Some(named),
    }
}

/// Asks the server what the resource is, for as long as it may yet answer.
async fn find(options: &Options, cluster: &Cluster, progress: &Progress) -> Result<ServedResource> {
    let deadline = Instant::now() + options.timeout;
    let mut delay = FIRST_DELAY;
    let mut last = Failure::unanswered(options.timeout);
    let discovery = Discovery::new(cluster.client.clone());
    loop {
        let failure = match timeout_at(deadline, discovery.resolve(&options.resource)).await {
            Ok(Ok(served)) => return Ok(served),
            Ok(Err(ResolveError::Server(error))) => Failure::from(&error),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(cannot(cluster, &last)),
        };
        if !failure.may_pass() {
            return Err(cannot(cluster, &failure));
        }
        if last != failure {
            let limit = options.timeout.as_secs_f64();
            progress.say(&format!("{}: {failure}; trying again for {limit} s", cluster.name));
        }
        last = failure;
        if Instant::now() + delay > deadline {
            return Err(cannot(cluster, &last));
        }
        sleep(delay).await;
        delay = (delay * 2).min(LONGEST_DELAY);
    }
}

fn cannot(cluster: &Cluster, failure: &Failure) -> anyhow::Error {
    anyhow!("cannot watch {}: {failure}", cluster.name)
}

#[cfg(test)]
mod tests {
    use informer::{Object, RawObject};
    use kube::core::ApiResource;
    use serde_json::Value;

    pub(super) fn pods() -> ApiResource {
        ApiResource {
            group: String::new(),
            version: "v1".into(),
            api_version: "v1".into(),
            kind: "Pod".into(),
            plural: "pods".into(),
        }
    }

    pub(super) fn object(value: Value) -> Object<RawObject> {
        Object::new(serde_json::from_value(value).unwrap()).unwrap()
    }
}
