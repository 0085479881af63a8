//! What one caller's requests do to the others.
//!
//! The gateway is another process (this program again) with a demo cluster in motion. Each load is what an outsider found to
//! hurt: requests that are expensive to answer, many at a time. Beside it somebody asks for `/livez` every few
//! milliseconds. What counts is how long `/livez` takes, how long the first byte of each answer takes, and the memory.
//!
//! `cargo bench -p informer-gateway --bench attacks` (or `… -- --quick`, or `… -- --pods 30000 --seconds 5 --only pages`).
//! With `--judge` it fails where a limit is missed.

#[path = "support/companion.rs"]
mod companion;
#[path = "support/process.rs"]
mod process;

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use companion::{Companion, is_set, number};
use informer::source::WireOptions;
use informer_apiserver::{ApiServer, DemoCluster};
use informer_gateway::Gateway;
use process::{cpu_time, memory};
use tokio::{net::TcpListener, runtime::Runtime};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is promised under each load.
const LIVEZ_P99: Duration = Duration::from_millis(50);
const FIRST_BYTE: Duration = Duration::from_secs(2);
/// How often `/livez` is asked for.
const PROBE_EVERY: Duration = Duration::from_millis(5);
/// How often a load is tried before it counts as missed.
const TRIES: usize = 6;
/// How much memory a load may take beyond what was there before it.
const MEMORY: f64 = 200.0;

const TABLE: &str = "accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n";
const GZIP: &str = "accept-encoding: gzip\r\n";

/// How the clients of a load behave.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// Reads an answer to its end, and asks again.
    Repeats,
    /// Follows a stream, and counts the seconds without an event.
    Follows,
    /// Reads a little, and then nothing.
    Stalls,
}

struct Load {
    name: &'static str,
    clients: usize,
    manner: Manner,
    /// `{n}` in it stands for the number of the client.
    path: String,
    headers: &'static str,
}

/// So many parts of a text.
fn many(count: usize, separator: &str, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(separator)
}

fn loads(quick: bool) -> Vec<Load> {
    let pods = "/core/v1/pods";
    let load = |name, clients, manner, path: String, headers| Load { name, clients, manner, path, headers };
    let negative = |terms| many(terms, ",", |n| format!("a{n}!=b")).replace('!', "%21").replace('=', "%3D");
    let page = format!("/_stream{pods}?as=table&interval=100ms");
    vec![
        load("nothing", 0, Manner::Repeats, pods.into(), ""),
        load(
            "2,500 sort keys",
            4,
            Manner::Repeats,
            format!("{pods}?limit=1&sort={}", many(2_500, ",", |_| "a".into())),
            "",
        ),
        load(
            "8 sort keys",
            16,
            Manner::Repeats,
            format!("{pods}?limit=1&sort={}", many(8, ",", |n| format!("spec.a{n}"))),
            "",
        ),
        load(
            "1,300 negative terms",
            2,
            Manner::Repeats,
            format!("{pods}?limit=1&labelSelector={}", negative(1_300)),
            "",
        ),
        load(
            "256 negative terms",
            16,
            Manner::Repeats,
            format!("{pods}?limit=1&labelSelector={}", negative(256)),
            "",
        ),
        load(
            "2,200 fields",
            4,
            Manner::Repeats,
            format!("{pods}?fields={}", many(2_200, ",", |n| format!("a{n}"))),
            "",
        ),
        load(
            "256 fields",
            16,
            Manner::Repeats,
            format!("{pods}?fields={}", many(256, ",", |n| format!("spec.a{n}"))),
            "",
        ),
        load("Table", 4, Manner::Repeats, "/api/v1/pods".into(), TABLE),
        load("Table", 16, Manner::Repeats, "/api/v1/pods".into(), TABLE),
        load("gzip", 16, Manner::Repeats, "/api/v1/pods".into(), GZIP),
        load("full list", 16, Manner::Repeats, "/api/v1/pods".into(), ""),
        load("pages", 16, Manner::Follows, page.clone(), ""),
        load(
            "pages, each another one",
            16,
            Manner::Follows,
            format!("{page}&labelSelector=app%21%3Dx{{n}}"),
            "",
        ),
        load("pages", 100, Manner::Follows, page, ""),
        // Most systems let a process have 1,024 open files unless it asks for more.
        load("slow readers", if quick { 400 } else { 1_000 }, Manner::Stalls, "/api/v1/pods".into(), ""),
    ]
}

/// What the clients of a load saw.
#[derive(Default)]
struct Seen {
    answers: AtomicU64,
    bytes: AtomicU64,
    /// In microseconds.
    first_byte: AtomicU64,
    /// The longest time between two pieces of a stream that had begun.
    silence: AtomicU64,
    /// Those that had no byte when the load ended.
    without: AtomicU64,
    /// The status of the last answer.
    code: AtomicU64,
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn connect(address: SocketAddr, path: &str, headers: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes())?;
    Ok(stream)
}

/// One client, until the load ends.
fn client(address: SocketAddr, load: &Load, number: usize, seen: &Seen, ended: &AtomicBool) {
    let mut buffer = vec![0; 128 * 1024];
    let path = load.path.replace("{n}", &number.to_string());
    while !ended.load(Ordering::Relaxed) {
        let began = Instant::now();
        let Ok(mut stream) = connect(address, &path, load.headers) else { continue };
        let mut last: Option<Instant> = None;
        let whole = loop {
            match stream.read(&mut buffer) {
                Ok(0) => break true,
                Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    break true;
                }
                Ok(read) => {
                    let code = std::str::from_utf8(&buffer[9..12]).ok().and_then(|code| code.parse().ok());
                    match last.replace(Instant::now()) {
                        None => {
                            seen.first_byte.fetch_max(micros(began.elapsed()), Ordering::Relaxed);
                            seen.code.store(code.unwrap_or_default(), Ordering::Relaxed);
                        }
                        Some(last) => {
                            seen.silence.fetch_max(micros(last.elapsed()), Ordering::Relaxed);
                        }
                    }
                    seen.bytes.fetch_add(read as u64, Ordering::Relaxed);
                }
                Err(_) => {}
            }
            if ended.load(Ordering::Relaxed) {
                break false;
            }
            while load.manner == Manner::Stalls && last.is_some() && !ended.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(100));
            }
        };
        match last {
            Some(_) if whole => drop(seen.answers.fetch_add(1, Ordering::Relaxed)),
            Some(last) if load.manner == Manner::Follows => {
                seen.silence.fetch_max(micros(last.elapsed()), Ordering::Relaxed);
            }
            None => {
                seen.without.fetch_add(1, Ordering::Relaxed);
                seen.first_byte.fetch_max(micros(began.elapsed()), Ordering::Relaxed);
            }
            Some(_) => {}
        }
    }
}

/// How long `/livez` takes, sorted.
fn probe(address: SocketAddr, ended: &AtomicBool) -> Vec<Duration> {
    let mut took = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answered = connect(address, "/livez", "").and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            stream.read_to_end(&mut Vec::new())
        });
        if answered.is_ok_and(|read| read > 0) {
            took.push(began.elapsed());
        }
        thread::sleep(PROBE_EVERY);
    }
    took.sort_unstable();
    took
}

/// Runs a load; whether everything was within its limits.
fn run(address: SocketAddr, load: &Arc<Load>, gateway: &mut Companion, lasts: Duration) -> bool {
    let figures = |gateway: &mut Companion| -> Vec<f64> {
        gateway.say("figures");
        gateway.hear().split_whitespace().map(|figure| figure.parse().expect("a figure")).collect()
    };
    let before = figures(gateway);
    let (seen, ended) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(false)));
    let began = Instant::now();
    let livez = {
        let ended = Arc::clone(&ended);
        thread::spawn(move || probe(address, &ended))
    };
    let clients: Vec<_> = (0..load.clients)
        .map(|number| {
            let (load, seen, ended) = (Arc::clone(load), Arc::clone(&seen), Arc::clone(&ended));
            let small = thread::Builder::new().stack_size(256 * 1024);
            small.spawn(move || client(address, &load, number, &seen, &ended)).expect("a thread")
        })
        .collect();
    thread::sleep(lasts);
    let after = figures(gateway);
    ended.store(true, Ordering::Relaxed);
    let livez = livez.join().expect("no panic");
    clients.into_iter().for_each(|client| client.join().expect("no panic"));
    let wall = began.elapsed().as_secs_f64();
    let of = |part: f64| livez.get((livez.len() as f64 * part) as usize).copied().unwrap_or(lasts);
    let (p99, worst) = (of(0.99), livez.last().copied().unwrap_or(lasts));
    let first = Duration::from_micros(seen.first_byte.load(Ordering::Relaxed));
    let silence = match load.manner {
        Manner::Follows => {
            format!("{:.2} s", seen.silence.load(Ordering::Relaxed) as f64 / 1e6)
        }
        _ => "–".to_owned(),
    };
    let [cpu, resident, peak] = after[..] else { panic!("{after:?} are no figures") };
    println!(
        "| {} | {} | {} | {:.1} ms | {:.1} ms | {:.1} ms | {:.2} s | {} | {silence} | {} | {:.0} MB/s | {:.0} % | {:.0} → {resident:.0}, peak {peak:.0} MB |",
        load.clients,
        load.name,
        seen.code.load(Ordering::Relaxed),
        of(0.5).as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3,
        worst.as_secs_f64() * 1e3,
        first.as_secs_f64(),
        seen.without.load(Ordering::Relaxed),
        seen.answers.load(Ordering::Relaxed),
        seen.bytes.load(Ordering::Relaxed) as f64 / 1e6 / wall,
        100.0 * (cpu - before[0]) / wall,
        before[1],
    );
    // The gateway comes to rest before the next.
    thread::sleep(Duration::from_millis(500));
    p99 <= LIVEZ_P99 && first <= FIRST_BYTE && resident - before[1] <= MEMORY
}

/// The process of the gateway.
async fn serve(pods: usize) {
    let server = ApiServer::builder().build();
    let cluster = DemoCluster::new(1, pods);
    server.load_demo(&cluster).expect("a demo cluster");
    let gateway = Gateway::builder(server.client())
        .wire(WireOptions::default().json().uncompressed())
        .max_connections(4_096, 4_096)
        .build()
        .expect("a gateway");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn({
        let gateway = gateway.clone();
        async move { gateway.serve(listener).await }
    });
    gateway.preload(&["pods".parse().expect("a resource")], |_, loaded| assert!(loaded.is_ok())).await;
    tokio::spawn(async move {
        let mut churn = cluster.churn();
        let mut tick = tokio::time::interval(Duration::from_millis(10));
        loop {
            tick.tick().await;
            if let Some(change) = churn.next(jiff::Timestamp::now(), &server) {
                // What it wanted to change may be gone.
                let _ = server.apply(change);
            }
        }
    });
    println!("{address}");
    let questions = tokio::task::spawn_blocking(|| {
        for line in std::io::stdin().lines() {
            assert_eq!(line.expect("a line"), "figures");
            let peak = memory("VmHWM");
            println!("{} {} {peak}", cpu_time().as_secs_f64(), memory("VmRSS"));
        }
    });
    questions.await.expect("no panic");
}

fn main() -> ExitCode {
    let quick = is_set("--quick");
    let pods = number("--pods", if quick { 3_000 } else { 30_000 });
    if is_set("--gateway") {
        Runtime::new().expect("tokio").block_on(serve(pods));
        return ExitCode::SUCCESS;
    }
    let lasts = Duration::from_secs(number("--seconds", if quick { 2 } else { 8 }) as u64);
    let only = std::env::args().skip_while(|argument| argument != "--only").nth(1);
    let arguments = ["--gateway", "--pods"].map(str::to_owned);
    let mut gateway = Companion::start(&[&arguments[..], &[pods.to_string()]].concat());
    let address = gateway.hear().parse().expect("an address");
    println!(
        "{pods} pods, 100 changes a second\n\n| clients | each asks for | answer | livez p50 | p99 | worst | first byte, worst | without a byte | longest silence | answers | sent | CPU | memory |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    let (mut good, is_judged) = (true, is_set("--judge"));
    for load in loads(quick) {
        if only.as_deref().is_none_or(|only| load.name.contains(only)) {
            let load = Arc::new(load);
            // A machine on which others work as well is slow for a while, and then no longer.
            good &= (0..TRIES).any(|_| run(address, &load, &mut gateway, lasts) || !is_judged);
        }
    }
    gateway.end();
    if good || !is_judged {
        return ExitCode::SUCCESS;
    }
    println!("a limit was missed: livez {LIVEZ_P99:?}, first byte {FIRST_BYTE:?}, {MEMORY} MB more");
    ExitCode::FAILURE
}
