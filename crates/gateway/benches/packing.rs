//! What keeping objects packed costs and saves: the same requests to a gateway that keeps their JSON as text and to one that packs
//! it, and the forms beside each other in which an object could be kept.
//!
//! `cargo bench -p informer-gateway --bench packing` (or `… -- --pods 30000 --rounds 9`). Times are those of this process, answers to
//! their last byte, without a network; the least of all rounds counts, in which the gateways take turns. Memory is that of a process
//! with nothing but a gateway, after the first list and after it has been asked for all objects.

#[path = "support/companion.rs"]
mod companion;
#[path = "support/process.rs"]
mod process;

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use axum::{Router, body::Body};
use companion::{Companion, is_set, number};
use http::Request;
use http_body_util::BodyExt;
use informer::{Packed, RawObject, SharedInformerFactory};
use informer_apiserver::{ApiServer, DemoCluster};
use informer_gateway::{Gateway, Packing};
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, Config};
use process::{cpu_time, memory};
use serde_json::Value;
use tokio::{runtime::Runtime, task::block_in_place};
use tower_service::Service;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is asked, and whether what is looked at stands beside a packed object.
const REQUESTS: [(&str, &str); 12] = [
    ("all", "/core/v1/pods"),
    ("all, as a client of Kubernetes", "/api/v1/pods"),
    ("one page of 100", "/core/v1/pods?limit=100"),
    ("by label", "/core/v1/pods?labelSelector=app%3Dcheckout"),
    ("by phase, beside", "/core/v1/pods?fieldSelector=status.phase%3DPending&limit=1"),
    ("by node, beside", "/core/v1/pods?fieldSelector=spec.nodeName%3Dnone&limit=1"),
    (
        "by phase and node, beside",
        "/core/v1/pods?fieldSelector=status.phase%3DRunning,spec.nodeName%3Dnone&limit=1",
    ),
    ("sorted by start, beside", "/core/v1/pods?sort=-status.startTime&limit=1"),
    ("by image, in the text", "/core/v1/pods?fieldSelector=spec.containers[0].image%3Dnone&limit=1"),
    ("sorted by image, in the text", "/core/v1/pods?sort=spec.containers[0].image&limit=1"),
    ("two fields of all", "/core/v1/pods?fields=metadata.name,status.phase"),
    ("table of all", "/core/v1/pods?as=table"),
];

async fn get(router: &Router, path: &str) -> usize {
    let request = Request::get(path).header("host", "127.0.0.1:8888").body(Body::empty());
    let response = router.clone().call(request.expect("a request")).await.expect("an answer");
    assert_eq!(response.status(), 200, "{path}");
    let (mut body, mut bytes) = (response.into_body(), 0);
    while let Some(frame) = body.frame().await {
        bytes += frame.expect("a whole answer").into_data().map_or(0, |data| data.len());
    }
    bytes
}

async fn mk_gateway(client: Client, packing: Packing) -> Router {
    let gateway = Gateway::builder(client).packing(packing).build().expect("a gateway");
    let router = gateway.router(([127, 0, 0, 1], 8888).into()).expect("an address of this machine");
    let began = Instant::now();
    get(&router, "/core/v1/pods?limit=1").await;
    let synced = began.elapsed();
    let request = Request::get("/_informers").header("host", "127.0.0.1:8888").body(Body::empty());
    let response = router.clone().call(request.expect("a request")).await.expect("an answer");
    let text = response.into_body().collect().await.expect("an answer").to_bytes();
    let told: Value = serde_json::from_slice(&text).expect("JSON");
    let pods = &told["informers"][0];
    println!(
        "{packing:?}: {} objects, {} packed, {} bytes as text, {} kept; first answer after {synced:?}",
        pods["objects"], pods["packed"], pods["bytes"], pods["keptBytes"]
    );
    router
}

fn micros(time: Duration, objects: usize) -> f64 {
    time.as_secs_f64() * 1e6 / objects as f64
}

/// Keeping protobuf and writing JSON for each reader, beside keeping JSON.
async fn forms(server: &ApiServer) {
    let factory: SharedInformerFactory = SharedInformerFactory::new(server.client(), Duration::ZERO);
    let informer = factory.packed::<Pod>().informer();
    factory.start().expect("a start");
    informer.wait_until_synced(Duration::from_secs(120)).await.expect("all pods");
    let snapshot = informer.store().snapshot();
    let protobuf: Vec<_> = snapshot.iter().skip(9_000).collect();
    let began = Instant::now();
    let raw: Vec<RawObject> = protobuf.iter().map(|pod| pod.project().expect("a pod")).collect();
    let transcoded = micros(began.elapsed(), raw.len());
    let fields = |pod: &&informer::Object<Packed<Pod>>| black_box(pod.project::<Fields>().is_ok());
    let began = Instant::now();
    assert!(protobuf.iter().all(fields));
    let projected = micros(began.elapsed(), raw.len());
    let began = Instant::now();
    let json: Vec<_> = raw.iter().map(Packed::of_json).collect();
    let packed = micros(began.elapsed(), raw.len());
    let mut out = Vec::new();
    let began = Instant::now();
    for object in &json {
        out.clear();
        object.append_json(&mut out).expect("an object");
        black_box(&out);
    }
    let unpacked = micros(began.elapsed(), raw.len());
    let began = Instant::now();
    let parts =
        |object: &Packed<RawObject>| object.with_json(|json| serde_json::from_str::<Fields>(json).is_ok());
    assert!(json.iter().all(|object| parts(object) == Ok(true)));
    let read = micros(began.elapsed(), raw.len());
    let mean = |bytes: usize| bytes / raw.len();
    println!("\n| kept as | bytes | as text, µs | two fields, µs |\n|---|---|---|---|");
    println!("| JSON | {} | 0 | |", mean(raw.iter().map(|raw| raw.json().len()).sum()));
    let bytes = mean(json.iter().map(Packed::packed_bytes).sum());
    println!("| JSON, packed in {packed:.1} µs | {bytes} | {unpacked:.1} | {read:.1} |");
    let bytes = mean(protobuf.iter().map(|pod| pod.packed_bytes()).sum());
    println!("| protobuf, packed | {bytes} | {transcoded:.1} | {projected:.1} |");
    factory.shutdown().await;
}

#[derive(serde::Deserialize)]
struct Fields {
    #[expect(dead_code, reason = "it is decoded")]
    spec: Option<Spec>,
    #[expect(dead_code, reason = "it is decoded")]
    status: Option<Status>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[expect(dead_code, reason = "it is decoded")]
    node_name: Option<String>,
}

#[derive(serde::Deserialize)]
struct Status {
    #[expect(dead_code, reason = "it is decoded")]
    phase: Option<String>,
}

async fn run(pods: usize, rounds: usize) {
    let server = ApiServer::builder().build();
    server.load_demo(&DemoCluster::new(1, pods)).expect("a demo cluster");
    let listener = server.listen(([127, 0, 0, 1], 0).into()).await.expect("a port");
    for packing in [NEVER, AUTO] {
        // The tasks that answer go on meanwhile.
        block_in_place(|| {
            let mut gateway = Companion::start(&[packing.to_owned(), "--server".to_owned(), listener.url()]);
            for _ in 0..3 {
                println!("{}", gateway.hear());
            }
            gateway.say("end");
            gateway.end();
        });
    }
    let [text, packed] = [Packing::Never, Packing::Auto].map(|packing| mk_gateway(server.client(), packing));
    let routers = [text.await, packed.await];
    println!("\n| pods | text, ms | packed, ms | ratio | MB |\n|---|---|---|---|---|");
    for (name, path) in REQUESTS {
        let (mut least, mut bytes) = ([f64::MAX; 2], [0; 2]);
        for _ in 0..rounds {
            for (which, router) in routers.iter().enumerate() {
                let began = Instant::now();
                bytes[which] = get(router, path).await;
                least[which] = least[which].min(began.elapsed().as_secs_f64() * 1e3);
            }
        }
        assert_eq!(bytes[0], bytes[1], "{path}");
        let [text, packed] = least;
        println!(
            "| {name} | {text:.2} | {packed:.2} | {:.2} | {:.1} |",
            packed / text,
            bytes[0] as f64 / 1e6
        );
    }
    forms(&server).await;
}

const NEVER: &str = "--never";
const AUTO: &str = "--auto";

/// A gateway and nothing else: what it takes.
async fn alone(packing: Packing, url: String) {
    let client = Client::try_from(Config::new(url.parse().expect("a URL"))).expect("a client");
    let router = mk_gateway(client, packing).await;
    let figures = || (memory("VmRSS"), memory("VmHWM"), cpu_time());
    let (now, peak, cpu) = figures();
    println!("memory after the first list: {now:.0} MB, at most {peak:.0} MB; {cpu:?} of CPU");
    for _ in 0..10 {
        get(&router, "/core/v1/pods").await;
    }
    let (now, peak, after) = figures();
    println!(
        "after ten lists of all: {now:.0} MB, at most {peak:.0} MB; {:?} of CPU each",
        (after - cpu) / 10
    );
}

fn main() {
    if is_set("--server") {
        let url = std::env::args().skip_while(|argument| argument != "--server").nth(1).expect("a URL");
        let packing = if is_set(AUTO) { Packing::Auto } else { Packing::Never };
        let runtime = Runtime::new().expect("tokio");
        runtime.block_on(async { tokio::spawn(alone(packing, url)).await.expect("it ends") });
        return;
    }
    let runtime = Runtime::new().expect("tokio");
    runtime.block_on(async {
        // On a worker, as requests are answered.
        let work = tokio::spawn(run(number("--pods", 30_000), number("--rounds", 7)));
        work.await.expect("it ends");
    });
}
