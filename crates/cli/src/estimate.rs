//! `informer estimate`: what a cluster takes in memory, before anybody runs out of it.
//!
//! In: names of resources, or none for all of them. Out: a table on stdout, a row for each resource: how many objects there are,
//! what a list of them takes on the wire, and what a cache of them takes in each form. A sample of the objects is read; the rest
//! is counted by the server.

use std::{
    collections::HashSet,
    fmt::Write as _,
    io::{self, Write},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use futures_util::StreamExt;
use http::{Request, header};
use http_body_util::BodyExt;
use informer::{
    DynamicObject, KubeListWatch, Object, Packed,
    discovery::{Discovery, ServedResource},
    packed::packed_kinds,
    source::{ListItem, ListOptions, ListWatch, SourceError},
};
use informer_model::{ResourceArg, decoded_bytes};
use kube::{Resource, client::Body};
use serde::Serialize;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::{
    cluster::{Cluster, ClusterOptions},
    failure::Failure,
    flags, logging,
    signal::interrupt,
    text::{printable, thousands},
    watch::progress::Progress,
};

/// The demo cluster has so many pods.
const DEMO_PODS: usize = 2_000;
/// How many objects are asked for at once.
const PAGE: u32 = 500;
/// How long the server may take for an answer.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a training of a dictionary is waited for, which takes a tenth of a second.
const TRAINING: Duration = Duration::from_secs(5);
/// What a cache keeps for each object beside its body and labels: key, version, and its places in orders and indexes.
/// `informer-bench million` measures it: what there is in all, less the packed bodies.
const BESIDE: usize = 300;
/// Groups that show objects of the core group a second time.
const SECOND_VIEWS: [(&str, &str); 1] = [("events.k8s.io", "events")];

/// Tell what caching a cluster will cost: memory for each resource, before you cache it
#[derive(Args)]
#[command(
    long_about = "Tell what caching a cluster will cost: memory for each resource, before you cache it.

It reads a sample of each resource and asks the server how many there are. Nothing is kept, and
nothing is written to the cluster.

  ON THE WIRE  a list of all objects, as this server sends it to an informer
  TYPED        decoded into the types of k8s-openapi
  JSON         as text without managedFields, which is what `informer serve` keeps
  METADATA     PartialObjectMeta: no spec, no status
  PACKED       Packed<K>: compressed with a dictionary of its kind",
    after_help = "Examples:
  informer estimate                       everything that the cluster serves
  informer estimate pods secrets          two resources
  informer estimate --demo                no cluster needed
  informer estimate -o json | jq .sum

Figures of memory are estimates: within a fifth, where the sample is like the rest. An informer
takes some 20 MB besides, once for the process. TYPED counts custom resources as DynamicObject."
)]
pub(crate) struct Options {
    /// Which resources, as for kubectl: pods, deploy, websites.example.com; by default all
    #[arg(value_parser = flags::resource)]
    resources: Vec<ResourceArg>,

    /// Only objects in this namespace
    #[arg(short, long, value_name = "NAME", value_parser = flags::namespace)]
    namespace: Option<String>,

    /// How many objects of each resource are read
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    sample: u32,

    /// What to print
    #[arg(short, long, value_name = "FORM", value_enum, default_value_t = Form::Table)]
    output: Form,

    #[command(flatten)]
    cluster: ClusterOptions,

    /// Look at a made-up cluster inside this process
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    demo: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A row for each resource, the largest first
    Table,
    /// One document
    Json,
}

/// What objects take, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cost {
    objects: u64,
    on_the_wire: f64,
    typed: f64,
    json: f64,
    metadata: f64,
    packed: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    resource: String,
    #[serde(flatten)]
    cost: Cost,
}

#[derive(Debug, Serialize)]
struct Estimate {
    resources: Vec<Row>,
    /// Of these resources.
    sum: Cost,
    /// What could not be read, and why.
    missing: Vec<String>,
}

/// Prints the estimate.
pub(crate) async fn run(options: Options) -> Result<()> {
    logging::begin(0, logging::WITHOUT_INFORMERS);
    let cluster = match options.demo {
        true => Cluster::demo(DEMO_PODS, 0.0)?,
        false => Cluster::connect(&options.cluster).await?,
    };
    let estimate = tokio::select! {
        estimate = estimate(&options, &cluster) => estimate?,
        () = interrupt() => return Ok(()),
    };
    let text = match options.output {
        Form::Table => table(&estimate),
        Form::Json => serde_json::to_string_pretty(&estimate)? + "\n",
    };
    io::stdout().write_all(text.as_bytes()).context("cannot write the estimate")?;
    for missing in &estimate.missing {
        let _ = writeln!(io::stderr(), "not counted: {missing}");
    }
    if estimate.resources.is_empty() && !estimate.missing.is_empty() {
        bail!("nothing of {} can be read", cluster.name);
    }
    Ok(())
}

async fn estimate(options: &Options, cluster: &Cluster) -> Result<Estimate> {
    let mut progress = Progress::begin(format!("asking {} what it serves", cluster.name), true);
    let asked = timeout(ANSWER, Discovery::new(cluster.client.clone()).refresh()).await;
    let failed = |failure: Failure| anyhow::anyhow!("cannot ask {}: {failure}", cluster.name);
    let catalog = asked.map_err(|_| failed(Failure::unanswered(ANSWER)))?;
    let catalog = catalog.map_err(|error| failed(Failure::from(&error)))?;
    let mut chosen: Vec<&ServedResource> = match &options.resources[..] {
        [] => catalog.resources.iter().filter(|served| can_be_cached(served)).collect(),
        named => named.iter().map(|name| catalog.find(name)).collect::<Result<_, _>>()?,
    };
    // One resource has several names and versions. Of the versions of a group the preferred one comes first.
    let mut seen = HashSet::new();
    chosen.retain(|served| seen.insert(served.name()));
    let mut estimate = Estimate { resources: Vec::new(), sum: Cost::default(), missing: Vec::new() };
    for (done, served) in chosen.iter().enumerate() {
        progress.doing(format!("{} of {}: {}", done + 1, chosen.len(), printable(&served.name())));
        match timeout(ANSWER, cost(options, cluster, served)).await {
            Ok(Ok(cost)) => {
                estimate.sum = estimate.sum.and(&cost);
                estimate.resources.push(Row { resource: served.name(), cost });
            }
            Ok(Err(error)) => estimate.missing.push(format!("{}: {}", served.name(), Failure::from(&error))),
            Err(_) => estimate.missing.push(format!("{}: {}", served.name(), Failure::unanswered(ANSWER))),
        }
    }
    progress.clear();
    estimate.resources.sort_by(|one, other| other.cost.json.total_cmp(&one.cost.json));
    Ok(estimate)
}

/// Whether informers can hold a resource, and it is not a second view of another one.
fn can_be_cached(served: &ServedResource) -> bool {
    let can = |verb: &str| served.verbs.iter().any(|other| other == verb);
    can("list") && can("watch") && !SECOND_VIEWS.contains(&(&*served.api.group, &*served.api.plural))
}

/// Reads a sample of a resource.
async fn cost(options: &Options, cluster: &Cluster, served: &ServedResource) -> Result<Cost, SourceError> {
    let mut source =
        KubeListWatch::<Packed<DynamicObject>>::of_kind(cluster.client.clone(), served.api.clone());
    source = source.wire(cluster.wire);
    let namespace = options.namespace.as_deref().filter(|_| served.namespaced);
    if let Some(namespace) = namespace {
        source = source.in_namespace(namespace);
    }
    let (mut sample, mut continue_token) = (Sample::default(), None);
    let total = loop {
        let limit = Some(PAGE.min(options.sample));
        let mut page = source.list(ListOptions { limit, continue_token, ..ListOptions::default() }).await?;
        let end = loop {
            match page.next().await {
                Some(Ok(ListItem::Object(object))) => sample.add(&served.api, &object),
                // It takes memory where it can be read.
                Some(Ok(ListItem::Unusable(_))) => {}
                Some(Ok(ListItem::End(end))) => break end,
                Some(Err(error)) => return Err(error),
                None => return Err(SourceError::Broken("the list ended before its end".to_owned())),
            }
        };
        continue_token = end.continue_token;
        match (&continue_token, end.remaining) {
            (None, _) => break sample.objects,
            (Some(_), Some(remaining)) if sample.objects >= u64::from(options.sample) => {
                break sample.objects + remaining;
            }
            _ => trained(&served.api).await,
        }
    };
    let listed = wire_bytes(cluster, served, namespace).await?;
    Ok(sample.of_all(total, listed))
}

/// Waits for a dictionary, as objects that come from a network do: what is read from here on is packed with it.
async fn trained(api: &kube::core::ApiResource) {
    let kind = format!("{}/{}", api.api_version, api.kind);
    let is_trained = || packed_kinds().iter().any(|packed| packed.kind == kind && packed.trainings > 0);
    let is_due = || packed_kinds().iter().any(|packed| packed.kind == kind && packed.training);
    let _ = timeout(TRAINING, async {
        while is_due() && !is_trained() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// How long a page of the list is that the server sends, for each of its objects.
async fn wire_bytes(
    cluster: &Cluster,
    served: &ServedResource,
    namespace: Option<&str>,
) -> Result<f64, SourceError> {
    let path = DynamicObject::url_path(&served.api, namespace);
    let accept = if cluster.wire.protobuf {
        "application/vnd.kubernetes.protobuf,application/json"
    } else {
        "application/json"
    };
    let mut request = Request::get(format!("{path}?limit={PAGE}")).header(header::ACCEPT, accept);
    if cluster.wire.gzip {
        request = request.header(header::ACCEPT_ENCODING, "gzip");
    }
    let request = request.body(Body::empty()).map_err(|error| SourceError::Unreachable(error.to_string()))?;
    let mut body = cluster.client.send(request).await?.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| SourceError::Broken(error.to_string()))?;
        bytes += frame.data_ref().map_or(0, |data| data.len());
    }
    Ok(bytes as f64)
}

/// What the objects take that were read.
#[derive(Default)]
struct Sample {
    objects: u64,
    typed: usize,
    json: usize,
    metadata: usize,
    packed: usize,
    /// How long the newest half was packed: what comes after the sample is packed like that.
    newest: Vec<usize>,
}

impl Sample {
    fn add(&mut self, api: &kube::core::ApiResource, object: &Object<Packed<DynamicObject>>) {
        let value = object.project::<Value>().unwrap_or_default();
        let beside = BESIDE + object.labels().to_string().len();
        self.objects += 1;
        self.typed += decoded_bytes(&api.api_version, &api.kind, &value) + beside;
        self.json += value.to_string().len() + beside;
        self.metadata += decoded_bytes("meta.k8s.io/v1", "PartialObjectMetadata", &value) + beside;
        self.packed += object.packed_bytes() + beside;
        self.newest.push(object.packed_bytes() + beside);
    }

    /// The same of all objects, of which a page takes so many bytes on the wire.
    fn of_all(&self, total: u64, page: f64) -> Cost {
        if self.objects == 0 {
            return Cost { on_the_wire: page, ..Cost::default() };
        }
        let times = total as f64 / self.objects as f64;
        let newest = &self.newest[self.newest.len() / 2..];
        let rest = (total - self.objects) as f64 * newest.iter().sum::<usize>() as f64 / newest.len() as f64;
        Cost {
            objects: total,
            on_the_wire: page * (total as f64 / f64::from(PAGE)).max(1.0),
            typed: self.typed as f64 * times,
            json: self.json as f64 * times,
            metadata: self.metadata as f64 * times,
            packed: self.packed as f64 + rest,
        }
    }
}

impl Cost {
    fn and(&self, other: &Self) -> Self {
        Self {
            objects: self.objects + other.objects,
            on_the_wire: self.on_the_wire + other.on_the_wire,
            typed: self.typed + other.typed,
            json: self.json + other.json,
            metadata: self.metadata + other.metadata,
            packed: self.packed + other.packed,
        }
    }

    fn cells(&self) -> [String; 6] {
        let objects = usize::try_from(self.objects).unwrap_or(usize::MAX);
        let [wire, typed, json, metadata, packed] =
            [self.on_the_wire, self.typed, self.json, self.metadata, self.packed].map(size);
        [thousands(objects), wire, typed, json, metadata, packed]
    }
}

/// The rows, and their sum.
fn table(estimate: &Estimate) -> String {
    let head = ["OBJECTS", "ON THE WIRE", "TYPED", "JSON", "METADATA", "PACKED"].map(str::to_owned);
    let (rows, empty): (Vec<&Row>, Vec<&Row>) =
        estimate.resources.iter().partition(|row| row.cost.objects > 0);
    let rows = rows.into_iter().map(|row| (printable(&row.resource), row.cost.cells()));
    let rows = [("RESOURCE".to_owned(), head)].into_iter().chain(rows);
    let rows: Vec<_> = rows.chain([("all of them".to_owned(), estimate.sum.cells())]).collect();
    let name_width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (name, cells) in &rows {
        let _ = write!(text, "{name:name_width$}");
        for (at, cell) in cells.iter().enumerate() {
            let width = rows.iter().map(|(_, cells)| cells[at].len()).max().unwrap_or_default();
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
    }
    match &empty[..] {
        [] => {}
        [row] => _ = writeln!(text, "There are no {}.", printable(&row.resource)),
        [..] => _ = writeln!(text, "{} resources have no objects.", empty.len()),
    }
    text
}

/// `12.3 MB`.
fn size(bytes: f64) -> String {
    let mut units = ["B", "KB", "MB", "GB"].into_iter();
    let (mut amount, mut unit) = (bytes, units.next().unwrap_or_default());
    for larger in units {
        if amount < 999.5 {
            break;
        }
        (amount, unit) = (amount / 1_000.0, larger);
    }
    let digits = if unit == "B" || amount >= 99.95 { 0 } else { 1 };
    format!("{amount:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_at_most() {
        for (bytes, text) in [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (999.6, "1.0 KB"),
            (12_345.0, "12.3 KB"),
            (99_960.0, "100 KB"),
            (999_600.0, "1.0 MB"),
            (2.5e12, "2500 GB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn what_was_not_read_is_like_the_newest_that_was() {
        let mut sample =
            Sample { objects: 4, typed: 400, json: 200, metadata: 80, packed: 100, ..Sample::default() };
        sample.newest = vec![40, 40, 10, 10];
        let all = sample.of_all(1_000, 5_000.0);
        assert_eq!((all.objects, all.typed, all.json, all.metadata), (1_000, 100_000.0, 50_000.0, 20_000.0));
        assert_eq!((all.packed, all.on_the_wire), (100.0 + 996.0 * 10.0, 10_000.0));
    }
}
