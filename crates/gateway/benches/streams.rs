//! A thousand clients that follow, a thousand changes a second, and fifty clients that never read.
//!
//! The gateway is this process, with the API server whose changes it tells of; all clients are another one (this program
//! again). Every client counts: it fails if one loses an event, hears of one twice or out of order, or is sent away.
//! Then the same without those who never read, which must make no difference.
//!
//! `cargo bench -p informer-gateway --bench streams` (or `… -- --quick`, or `… -- --clients 500 --rate 2000 --seconds 5`)

#[path = "support/companion.rs"]
mod companion;
#[path = "../tests/it/streams/crowd.rs"]
mod crowd;
#[path = "support/process.rs"]
mod process;

use std::{
    net::SocketAddr,
    process::ExitCode,
    time::{Duration, Instant},
};

use companion::{Companion, is_set, number};
use crowd::Crowd;
use informer::source::WireOptions;
use informer_apiserver::ApiServer;
use informer_gateway::Gateway;
use process::{cpu_time, memory};
use serde_json::json;
use tokio::{net::TcpListener, runtime::Runtime, time};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The objects that change in turns.
const OBJECTS: usize = 500;
/// Changes come in this many small bursts a second.
const BURSTS: u32 = 100;

#[derive(Clone, Copy)]
struct Load {
    clients: usize,
    stalled: usize,
    /// Changes a second.
    rate: usize,
    seconds: usize,
}

fn put(server: &ApiServer, number: usize) {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "default", "name": format!("c-{}", number % OBJECTS)},
        "data": {"number": number.to_string()},
    });
    server.put(object).expect("an object");
}

/// Changes at the rate, for the time. How many.
async fn change(server: &ApiServer, load: Load) -> usize {
    let mut burst = time::interval(Duration::from_secs(1) / BURSTS);
    burst.set_missed_tick_behavior(time::MissedTickBehavior::Burst);
    let (all, each) = (load.rate * load.seconds, load.rate.div_ceil(BURSTS as usize));
    for number in 0..all {
        if number % each == 0 {
            burst.tick().await;
        }
        put(server, number);
    }
    all
}

/// One run; whether everybody heard everything.
async fn run(load: Load) -> bool {
    let server = ApiServer::builder().build();
    (0..OBJECTS).for_each(|number| put(&server, number));
    let room = 2 * (load.clients + load.stalled);
    let gateway = Gateway::builder(server.client())
        .wire(WireOptions::default().json().uncompressed())
        .max_streams(room, room)
        .max_connections(room, room)
        .build();
    let gateway = gateway.expect("a gateway");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn({
        let gateway = gateway.clone();
        async move { gateway.serve(listener).await }
    });
    let before = memory("VmRSS");
    let arguments = ["--crowd".into(), address.to_string(), "--clients".into(), load.clients.to_string()];
    let stalled = ["--stalled".into(), load.stalled.to_string()];
    let arguments: Vec<String> = arguments.into_iter().chain(stalled).collect();
    let crowd = tokio::task::spawn_blocking(move || {
        let mut crowd = Companion::start(&arguments);
        assert_eq!(crowd.hear(), "ready", "all clients are connected");
        crowd
    });
    let mut crowd = crowd.await.expect("clients");
    let (connected, cpu, began) = (memory("VmRSS"), cpu_time(), Instant::now());
    let version = server.version();
    let changes = change(&server, load).await;
    assert_eq!(server.version() - version, changes as u64, "each change is a version of its own");
    let wrote_in = began.elapsed();
    let last = server.version().to_string();
    let heard = tokio::task::spawn_blocking(move || {
        crowd.say(&last);
        let heard = crowd.hear();
        crowd.end();
        heard
    });
    let heard = heard.await.expect("figures");
    let (cpu, wall, after) =
        ((cpu_time() - cpu).as_secs_f64(), began.elapsed().as_secs_f64(), memory("VmRSS"));
    gateway.stop();
    serving.await.expect("no panic").expect("it served");

    let figures: Vec<u64> =
        heard.split_whitespace().map(|figure| figure.parse().expect("a figure")).collect();
    let [events, lost, twice, cut] = figures[..] else { panic!("{heard:?} are no figures") };
    let Load { clients, stalled, rate, .. } = load;
    println!(
        "| {clients} | {stalled} | {rate}/s | {:.0}/s | {events} | {:.0}/s | {lost} | {twice} | {cut} | {cpu:.1} s | {:.0} % | {:.1} µs | {before:.0} MB | {connected:.0} MB | {after:.0} MB |",
        changes as f64 / wrote_in.as_secs_f64(),
        events as f64 / wall,
        100.0 * cpu / wall,
        1e6 * cpu / events.max(1) as f64,
    );
    (events, lost, twice, cut) == ((changes * clients) as u64, 0, 0, 0)
}

/// The process of the clients.
async fn attend(address: SocketAddr, load: Load) {
    let mut crowd = Crowd::new(address);
    crowd.stall(load.stalled).await;
    crowd.follow(load.clients).await;
    println!("ready");
    let version = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).expect("a line");
        line.trim().parse().expect("a version")
    });
    let heard = crowd.end(version.await.expect("a version")).await;
    let sum = |figure: fn(&crowd::Heard) -> u64| heard.iter().map(figure).sum::<u64>();
    println!("{} {} {} {}", sum(|h| h.events), sum(|h| h.lost), sum(|h| h.twice), sum(|h| h.cut));
}

fn main() -> ExitCode {
    let runtime = || Runtime::new().expect("tokio");
    let (clients, seconds) = if is_set("--quick") { (100, 5) } else { (1_000, 20) };
    let load = Load {
        clients: number("--clients", clients),
        stalled: number("--stalled", 50),
        rate: number("--rate", 1_000),
        seconds: number("--seconds", seconds),
    };
    if let Some(address) = std::env::args().skip_while(|argument| argument != "--crowd").nth(1) {
        runtime().block_on(attend(address.parse().expect("an address"), load));
        return ExitCode::SUCCESS;
    }
    if !is_set("--measure") {
        // Once more, with as many files as it may have.
        let mut good = true;
        println!(
            "| clients | stalled | wanted | changes | events | delivered | lost | twice | cut | CPU | of one core | per event | memory before | connected | after |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
        );
        for stalled in [load.stalled, 0] {
            let figures = [load.clients, stalled, load.rate, load.seconds];
            let flags = ["--clients", "--stalled", "--rate", "--seconds"];
            let named = flags.iter().zip(figures).flat_map(|(flag, n)| [(*flag).to_owned(), n.to_string()]);
            let arguments: Vec<String> = ["--measure".to_owned()].into_iter().chain(named).collect();
            let mut measured = Companion::start(&arguments);
            println!("{}", measured.hear());
            good &= measured.hear() == "good";
            measured.end();
        }
        if !good {
            println!("a client lost an event, heard of one twice or out of order, or was sent away");
        }
        return if good { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    println!("{}", if runtime().block_on(run(load)) { "good" } else { "bad" });
    ExitCode::SUCCESS
}
