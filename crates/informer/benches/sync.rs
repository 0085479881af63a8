//! A cluster of 30,000 pods over HTTP: what it takes to sync, and what stays in memory, for each type that a pod can be
//! taken as.
//!
//! The server is another process (this program again), so the figures are the informer's alone: CPU time, resident
//! memory after the sync, and the most it ever was. Then 1,000 relists of 1,000 pods, one after another: the memory
//! must not grow. It fails if the peak is more than 1.2 times what stays, or if the relists make it grow.
//!
//! `cargo bench -p informer --bench sync` (or `… -- --pods 3000 --relists 100 --relist-pods 300`)

#[path = "support/process.rs"]
mod process;

use std::{
    io::{BufRead, BufReader},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use informer::{
    DynamicObject, KubeListWatch, SharedInformer,
    factory::Kind,
    model::Status,
    reflector::{Backoff, Settings},
};
use informer_apiserver::{ApiServer, DemoCluster, Fault, Rule, Verb};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::core::{ApiResource, GroupVersionKind, PartialObjectMeta};
use process::cpu_time;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

// The allocator of the binary: what is freed goes back soon, so that resident memory means something.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A line of `/proc/self/status` in kB, as MB.
fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let value = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    let kilobytes: f64 =
        value.and_then(|value| value.split_whitespace().next()?.parse().ok()).expect("a number");
    kilobytes / 1024.0
}

/// The server's process: prints its address and ends with its input.
async fn serve(pods: usize) {
    let server = ApiServer::builder().build();
    server.load_demo(&DemoCluster::new(7, pods)).expect("a cluster");
    let listener = server.listen(([127, 0, 0, 1], 0).into()).await.expect("a free port");
    println!("{}", listener.url());
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await;
}

/// A few fields of a pod.
#[derive(Clone, Deserialize)]
struct Placed {
    metadata: ObjectMeta,
    #[expect(dead_code, reason = "it is decoded and kept, that is all")]
    spec: Place,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is decoded and kept, that is all")]
struct Place {
    node_name: Option<String>,
    priority: Option<i32>,
    scheduler_name: Option<String>,
}

informer::projection!(Placed of Pod);

/// One way of syncing, by its name; whether it kept the peak low.
async fn sync_as(way: &str, pods: usize) -> bool {
    match way {
        "pages" => sync::<Pod>(way, pods, (), false).await,
        "streaming" => sync::<Pod>(way, pods, (), true).await,
        "projection" => sync::<Placed>(way, pods, (), true).await,
        "metadata" => sync::<PartialObjectMeta<Pod>>(way, pods, (), true).await,
        _ => {
            let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
            sync::<DynamicObject>(way, pods, kind, true).await
        }
    }
}

async fn sync<K: Kind>(way: &str, pods: usize, kind: K::DynamicType, streaming: bool) -> bool {
    let this = std::env::current_exe().expect("a path");
    let mut server = Command::new(this)
        .args(["--serve", &pods.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a server");
    let mut url = String::new();
    BufReader::new(server.stdout.take().expect("piped")).read_line(&mut url).expect("an address");
    let client =
        kube::Client::try_from(kube::Config::new(url.trim().parse().expect("an address"))).expect("a client");
    let informer = SharedInformer::builder(KubeListWatch::<K>::of_kind(client, kind))
        .streaming(streaming)
        .build()
        .expect("an informer");
    let (before, cpu, began) = (memory("VmRSS"), cpu_time(), Instant::now());
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (informer, stop) = (informer.clone(), stop.clone());
        async move { informer.run(stop).await }
    });
    informer.wait_until_synced(Duration::from_secs(600)).await.expect("synced");
    let (cpu, wall) = ((cpu_time() - cpu).as_secs_f64(), began.elapsed());
    let (after, peak) = (memory("VmRSS"), memory("VmHWM"));
    let objects = informer.store().len();
    let ratio = (peak - before) / (after - before);
    println!(
        "| {way} | {objects} | {cpu:.2} s | {wall:.1?} | {after:.0} MB | {:.1} KB | {peak:.0} MB | {ratio:.2} |",
        (after - before) * 1024.0 / objects as f64,
    );
    stop.cancel();
    running.await.expect("no panic").expect("it ran");
    drop(server.stdin.take());
    server.wait().expect("it ends");
    ratio <= 1.2
}

async fn relist(relists: u64, pods: usize) -> bool {
    let server = ApiServer::builder().build();
    server.load_demo(&DemoCluster::new(7, pods)).expect("a cluster");
    server.faults().add(Rule::new(Fault::Status(Status::expired("for this bench"))).verb(Verb::Watch));
    let settings = Settings {
        streaming: false,
        backoff: Backoff { initial: Duration::ZERO, max: Duration::ZERO, ..Backoff::default() },
        ..Settings::default()
    };
    let informer = SharedInformer::builder(KubeListWatch::<Pod>::all(server.client()))
        .settings(settings)
        .build()
        .expect("an informer");
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (informer, stop) = (informer.clone(), stop.clone());
        async move { informer.run(stop).await }
    });
    let lists =
        || server.requests().iter().filter(|((verb, _), _)| *verb == "list").map(|(_, n)| n).sum::<u64>();
    let wait = async |count: u64| {
        while lists() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        memory("VmRSS")
    };
    let early = wait(relists / 10).await;
    let late = wait(relists).await;
    println!("relists of {pods} pods: {early:.0} MB after {}, {late:.0} MB after {}", relists / 10, lists());
    stop.cancel();
    running.await.expect("no panic").expect("it ran");
    late <= early * 1.1
}

fn main() -> ExitCode {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("tokio");
    let arguments: Vec<String> = std::env::args().collect();
    let number = |flag: &str, default: usize| {
        let at = arguments.iter().position(|argument| argument == flag);
        at.map_or(default, |at| arguments.get(at + 1).and_then(|value| value.parse().ok()).expect("a number"))
    };
    if arguments.iter().any(|argument| argument == "--serve") {
        runtime().block_on(serve(number("--serve", 0)));
        return ExitCode::SUCCESS;
    }
    // One way of syncing for each process: the peak is the process's.
    let (pods, relists) = (number("--pods", 30_000), number("--relists", 1_000));
    if let Some(way) = arguments.iter().find_map(|argument| argument.strip_prefix("--sync=")) {
        return if runtime().block_on(sync_as(way, pods)) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    println!(
        "| list | pods | CPU | wall | memory after | per pod | peak | peak / after |\n|---|---|---|---|---|---|---|---|"
    );
    let this = std::env::current_exe().expect("a path");
    let mut good = true;
    for way in ["pages", "streaming", "dynamic", "projection", "metadata"] {
        let way = format!("--sync={way}");
        let status = Command::new(&this).args([&way, "--pods", &pods.to_string()]).status().expect("itself");
        good &= status.success();
    }
    if !good {
        println!("the peak is more than 1.2 times what stays");
    }
    if !runtime().block_on(relist(relists as u64, number("--relist-pods", 1_000))) {
        println!("memory grows with every relist");
        good = false;
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
