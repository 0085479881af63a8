//! What one caller's requests do to the others.
//!
//! The gateway is another process (this program again) with a demo cluster in motion. Each load is what an outsider found to
//! hurt: requests that are expensive to answer, many at a time. Beside it somebody asks for `/livez` every few
//! milliseconds. What counts is how long `/livez` takes, how long the first byte of each answer takes, the memory, and that
//! everybody gets the answers that are right.
//!
//! `cargo bench -p informer-gateway --bench attacks` (or `… -- --quick`, or `… -- --pods 30000 --seconds 5 --only pages`).
//! With `--judge` it fails where a limit is missed. A wrong answer, or none, fails at once. Of times and memory two tries out
//! of three in a row must be good; a try during which other processes kept the machine busy says nothing about times.
//! The clients have a lower priority than the gateway: it is the gateway that is measured.

#[path = "support/companion.rs"]
mod companion;
#[path = "support/machine.rs"]
mod machine;
#[path = "support/process.rs"]
mod process;

use std::{
    collections::BTreeMap,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Command, ExitCode},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use companion::{Companion, is_set, number};
use informer::source::WireOptions;
use informer_apiserver::{ApiServer, DemoCluster};
use informer_gateway::Gateway;
use machine::{forget_peak, machine_time};
use process::{cpu_time, memory};
use tokio::{net::TcpListener, runtime::Runtime};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is promised under each load.
const LIVEZ_P99: Duration = Duration::from_millis(50);
const FIRST_BYTE: Duration = Duration::from_secs(2);
/// How often `/livez` is asked for.
const PROBE_EVERY: Duration = Duration::from_millis(5);
/// How often a load is tried before it counts as missed: as soon as two tries out of three in a row were good, it is good.
const TRIES: usize = 6;
/// How much memory a load may take beyond what was there before it, also for a moment.
const MEMORY: f64 = 200.0;
/// What part of the machine others may take while a try counts, and how often it is tried again for that.
const OTHERS: f64 = 0.2;
const DISTURBED: usize = 10;
/// How long a client that resumes reads before it comes again.
const RESUMED: Duration = Duration::from_millis(300);

const TABLE: &str = "accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n";
const GZIP: &str = "accept-encoding: gzip\r\n";
const ZSTD: &str = "accept-encoding: zstd\r\n";
const OK: &[u16] = &[200];
const REFUSED: &[u16] = &[400];
const TOO_LONG: &[u16] = &[414];

/// How the clients of a load behave.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// Reads an answer to its end, and asks again.
    Repeats,
    /// Follows a stream, and counts the seconds without an event.
    Follows,
    /// Reads a little, and then nothing.
    Stalls,
    /// Reads a list page by page, and then again.
    Pages,
    /// Reads what it has missed of a stream, and comes again.
    Resumes,
}

struct Load {
    name: &'static str,
    clients: usize,
    manner: Manner,
    /// `{n}` in it stands for the number of the client, `{v}` for a version of when all began.
    path: String,
    headers: &'static str,
    /// The answers that are right.
    codes: &'static [u16],
}

/// So many parts of a text.
fn many(count: usize, separator: &str, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(separator)
}

fn loads(quick: bool) -> Vec<Load> {
    let pods = "/core/v1/pods";
    let load = |name, clients, manner, path: String, headers| Load {
        name,
        clients,
        manner,
        path,
        headers,
        codes: OK,
    };
    let repeated =
        |name, clients, path: String, codes| Load { codes, ..load(name, clients, Manner::Repeats, path, "") };
    let negative = |terms| many(terms, ",", |n| format!("a{n}!=b")).replace('!', "%21").replace('=', "%3D");
    let page = format!("/_stream{pods}?as=table&interval=100ms");
    let sorted = |keys| format!("{pods}?limit=1&sort={}", many(keys, ",", |n| format!("a{n}")));
    let fields = many(256, ",", |n| format!("spec.a{n}"));
    // Most systems let a process have 1,024 open files unless it asks for more.
    let slow = if quick { 400 } else { 1_000 };
    let all = "/api/v1/pods";
    vec![
        load("nothing", 0, Manner::Repeats, pods.into(), ""),
        repeated(
            "2,500 times the same sort key",
            4,
            format!("{pods}?limit=1&sort={}", many(2_500, ",", |_| "a".into())),
            OK,
        ),
        repeated("8,000 sort keys", 4, sorted(8_000), TOO_LONG),
        repeated("600 sort keys", 16, sorted(600), REFUSED),
        repeated("8 sort keys", 16, sorted(8), OK),
        repeated(
            "1,300 negative terms",
            2,
            format!("{pods}?limit=1&labelSelector={}", negative(1_300)),
            &[400, 414],
        ),
        repeated("256 negative terms", 16, format!("{pods}?limit=1&labelSelector={}", negative(256)), OK),
        repeated(
            "2,200 fields",
            4,
            format!("{pods}?fields={}", many(2_200, ",", |n| format!("a{n}"))),
            REFUSED,
        ),
        repeated("256 fields", 16, format!("{pods}?fields={fields}"), OK),
        load("Table", 4, Manner::Repeats, all.into(), TABLE),
        load("Table", 16, Manner::Repeats, all.into(), TABLE),
        load("gzip", 16, Manner::Repeats, all.into(), GZIP),
        load("full list", 16, Manner::Repeats, all.into(), ""),
        load("limit=1, page after page", 16, Manner::Pages, format!("{pods}?limit=1"), ""),
        load(
            "limit=1 of a selector",
            16,
            Manner::Pages,
            format!("{pods}?limit=1&labelSelector=app%21%3Dx{{n}}"),
            "",
        ),
        load("pages", 16, Manner::Follows, page.clone(), ""),
        load(
            "pages, each another one",
            16,
            Manner::Follows,
            format!("{page}&labelSelector=app%21%3Dx{{n}}"),
            "",
        ),
        load("pages", 100, Manner::Follows, page, ""),
        load("slow readers", slow, Manner::Stalls, all.into(), ""),
        load("slow readers with zstd", slow, Manner::Stalls, all.into(), ZSTD),
        // What they hold of all objects is more than one caller may.
        Load {
            codes: &[200, 429],
            ..load(
                "slow readers with a selector",
                slow,
                Manner::Stalls,
                format!("{all}?labelSelector=app%21%3Dx{{n}}"),
                "",
            )
        },
        load(
            "resume with 256 fields",
            16,
            Manner::Resumes,
            format!("/_stream{pods}?fields={fields}&lastEventId={{v}}"),
            "",
        ),
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
    /// Connections that were not accepted, or were cut before an answer.
    failed: AtomicU64,
    /// How many answers had which status.
    codes: Mutex<BTreeMap<u16, u64>>,
}

impl Seen {
    fn codes(&self) -> BTreeMap<u16, u64> {
        self.codes.lock().expect("no panic").clone()
    }
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

/// A header of an answer.
fn header(answer: &[u8], name: &str) -> Option<String> {
    let head = String::from_utf8_lossy(answer);
    let value = head.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix(name))?;
    Some(value.strip_prefix(": ")?.to_owned())
}

/// One client, until the load ends.
fn client(address: SocketAddr, load: &Load, number: usize, seen: &Seen, ended: &AtomicBool) {
    let mut buffer = vec![0; 128 * 1024];
    let path = load.path.replace("{n}", &number.to_string());
    let mut token = None;
    while !ended.load(Ordering::Relaxed) {
        let began = Instant::now();
        let page = token.take().map(|token: String| format!("{path}&continue={}", token.replace('%', "%25")));
        let Ok(mut stream) = connect(address, page.as_ref().unwrap_or(&path), load.headers) else {
            seen.failed.fetch_add(1, Ordering::Relaxed);
            thread::sleep(PROBE_EVERY);
            continue;
        };
        let mut last: Option<Instant> = None;
        let whole = loop {
            match stream.read(&mut buffer) {
                Ok(0) => break true,
                Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    break true;
                }
                Ok(read) => {
                    match last.replace(Instant::now()) {
                        None => {
                            seen.first_byte.fetch_max(micros(began.elapsed()), Ordering::Relaxed);
                            let code = buffer
                                .get(9..12)
                                .and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
                            let mut codes = seen.codes.lock().expect("no panic");
                            *codes.entry(code.unwrap_or_default()).or_default() += 1;
                            drop(codes);
                            if load.manner == Manner::Pages {
                                token = header(&buffer[..read], "x-continue");
                            }
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
            if load.manner == Manner::Resumes && last.is_some() && began.elapsed() >= RESUMED {
                break true;
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
            None if whole => drop(seen.failed.fetch_add(1, Ordering::Relaxed)),
            None => {
                seen.without.fetch_add(1, Ordering::Relaxed);
                seen.first_byte.fetch_max(micros(began.elapsed()), Ordering::Relaxed);
            }
            Some(_) => {}
        }
    }
}

/// What `/livez` did.
struct Probed {
    /// How long it took, sorted.
    took: Vec<Duration>,
    failed: usize,
}

impl Probed {
    fn at(&self, part: f64) -> Duration {
        let last = self.took.len().saturating_sub(1);
        self.took.get(((self.took.len() as f64 * part) as usize).min(last)).copied().unwrap_or(Duration::MAX)
    }
}

/// Asks for `/livez` until the load ends.
fn probe(address: SocketAddr, lasts: Duration, ended: &AtomicBool) -> Probed {
    let (mut took, mut failed) = (Vec::new(), 0);
    while !ended.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answer = connect(address, "/livez", "").and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            Ok(answer)
        });
        let is_good = answer.is_ok_and(|answer| answer.starts_with(b"HTTP/1.1 200"));
        failed += usize::from(!is_good);
        // No answer is worse than any.
        let mut waited = if is_good { began.elapsed() } else { lasts.max(began.elapsed()) };
        // Who would have asked in the meantime would have waited for the rest of it.
        while waited > PROBE_EVERY {
            took.push(waited);
            waited -= PROBE_EVERY;
        }
        took.push(waited);
        thread::sleep(PROBE_EVERY);
    }
    took.sort_unstable();
    Probed { took, failed }
}

/// Asks for `/livez` whenever it is told to, on a thread that does not give way as the clients do.
struct Prober {
    begin: Sender<(SocketAddr, Duration, Arc<AtomicBool>)>,
    probed: Receiver<Probed>,
}

impl Prober {
    fn start() -> Self {
        let (begin, begun) = channel::<(_, _, Arc<AtomicBool>)>();
        let (tell, probed) = channel();
        thread::spawn(move || {
            for (address, lasts, ended) in begun {
                tell.send(probe(address, lasts, &ended)).expect("it is waited for");
            }
        });
        Self { begin, probed }
    }
}

/// What a try has shown.
struct Trial {
    /// What must never be.
    wrong: Vec<String>,
    /// What was too much.
    missed: Vec<String>,
    /// What took too long.
    slow: Vec<String>,
    /// What part of the machine others took.
    others: f64,
}

/// The gateway's CPU time, its memory and the most that it had since it was told to forget that.
fn figures(gateway: &mut Companion) -> [f64; 3] {
    gateway.say("figures");
    let figures = gateway.hear();
    let figures: Vec<f64> =
        figures.split_whitespace().map(|figure| figure.parse().expect("a figure")).collect();
    figures.try_into().expect("three")
}

/// Runs a load. What memory it takes is counted from `base` on: what an earlier try of it took is still there.
fn run(
    address: SocketAddr,
    load: &Arc<Load>,
    gateway: &mut Companion,
    prober: &Prober,
    lasts: Duration,
    base: f64,
) -> Trial {
    gateway.say("forget");
    let knows_peak = gateway.hear() == "true";
    let [cpu_before, before, _] = figures(gateway);
    let (machine, own_cpu) = (machine_time(), cpu_time());
    let (seen, ended) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(false)));
    let began = Instant::now();
    prober.begin.send((address, lasts, Arc::clone(&ended))).expect("it waits");
    let clients: Vec<_> = (0..load.clients)
        .map(|number| {
            let (load, seen, ended) = (Arc::clone(load), Arc::clone(&seen), Arc::clone(&ended));
            let small = thread::Builder::new().stack_size(256 * 1024);
            small.spawn(move || client(address, &load, number, &seen, &ended)).expect("a thread")
        })
        .collect();
    thread::sleep(lasts);
    let [cpu, resident, peak] = figures(gateway);
    ended.store(true, Ordering::Relaxed);
    let livez = prober.probed.recv().expect("no panic");
    clients.into_iter().for_each(|client| client.join().expect("no panic"));
    let wall = began.elapsed().as_secs_f64();
    let ours = (cpu_time() - own_cpu).as_secs_f64() + figures(gateway)[0] - cpu_before;
    let [busy, all] = [0, 1].map(|part| machine_time()[part].saturating_sub(machine[part]).as_secs_f64());
    let others = ((busy - ours) / all).max(0.0);
    let (p99, worst) = (livez.at(0.99), livez.at(1.0));
    let first = Duration::from_micros(seen.first_byte.load(Ordering::Relaxed));
    let [without, failed, answers, bytes] =
        [&seen.without, &seen.failed, &seen.answers, &seen.bytes].map(|count| count.load(Ordering::Relaxed));
    let silence = Duration::from_micros(seen.silence.load(Ordering::Relaxed));
    let silent = match load.manner {
        Manner::Follows => format!("{:.2} s", silence.as_secs_f64()),
        _ => "–".to_owned(),
    };
    let codes = seen.codes();
    println!(
        "| {} | {} | {} | {:.1} ms | {:.1} ms | {:.1} ms | {:.2} s | {without} | {silent} | {answers} | {:.0} MB/s | {:.0} % | {:.0} % | {before:.0} → {resident:.0}, peak {} MB |",
        load.clients,
        load.name,
        codes.keys().map(u16::to_string).collect::<Vec<_>>().join(", "),
        livez.at(0.5).as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3,
        worst.as_secs_f64() * 1e3,
        first.as_secs_f64(),
        bytes as f64 / 1e6 / wall,
        100.0 * (cpu - cpu_before) / wall,
        100.0 * others,
        if knows_peak { format!("{peak:.0}") } else { "not known".to_owned() },
    );
    let (mut wrong, mut missed, mut slow) = (Vec::new(), Vec::new(), Vec::new());
    let odd: Vec<_> = codes.iter().filter(|(code, _)| !load.codes.contains(code)).collect();
    if !odd.is_empty() {
        wrong.push(format!("answers and how many: {odd:?}, {:?} is right", load.codes));
    }
    if load.clients > 0 && codes.is_empty() {
        wrong.push("nobody had an answer".to_owned());
    }
    if livez.took.is_empty() || livez.failed > 0 {
        wrong.push(format!("{} of the requests for /livez failed", livez.failed));
    }
    if failed > 0 {
        missed.push(format!("{failed} connections failed"));
    }
    if p99 > LIVEZ_P99 {
        slow.push(format!("livez p99 {p99:?}, {LIVEZ_P99:?} is promised"));
    }
    if first > FIRST_BYTE {
        slow.push(format!("first byte after {first:?}, {FIRST_BYTE:?} is promised"));
    }
    if load.manner == Manner::Follows && silence > FIRST_BYTE {
        slow.push(format!("a stream said nothing for {silence:?}"));
    }
    let most = if knows_peak { peak.max(resident) } else { resident };
    if most - base > MEMORY {
        missed.push(format!("{:.0} MB more, {MEMORY} MB are allowed", most - base));
    }
    // The gateway comes to rest before the next.
    thread::sleep(Duration::from_millis(500));
    Trial { wrong, missed, slow, others }
}

/// Tries a load until it is clear whether it keeps its limits.
fn judge(load: &Load, mut run: impl FnMut() -> Trial) -> bool {
    let (mut tries, mut disturbed) = (Vec::new(), 0);
    while tries.len() < TRIES {
        let trial = run();
        if !trial.wrong.is_empty() {
            println!("{} clients, {}: {}", load.clients, load.name, trial.wrong.join("; "));
            return false;
        }
        let is_good = trial.missed.is_empty() && trial.slow.is_empty();
        if !is_good {
            let missed = [&trial.missed[..], &trial.slow].concat().join("; ");
            println!("{} clients, {}: {missed}", load.clients, load.name);
            if trial.missed.is_empty() && trial.others > OTHERS {
                disturbed += 1;
                if disturbed == DISTURBED {
                    println!("{}: its times are not judged, others keep the machine busy", load.name);
                    return true;
                }
                continue;
            }
        }
        tries.push(is_good);
        let good = tries.iter().rev().take(3).filter(|good| **good).count();
        if good >= 2 {
            return true;
        }
    }
    false
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
            match line.expect("a line").as_str() {
                "forget" => println!("{}", forget_peak()),
                _ => println!("{} {} {}", cpu_time().as_secs_f64(), memory("VmRSS"), memory("VmHWM")),
            }
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
    let prober = Prober::start();
    // What is begun from here on gives way to the gateway and to those who ask for `/livez`.
    let own = std::process::id().to_string();
    let renice = Command::new("renice").args(["-n", "10", "-p", &own]).output();
    if !renice.is_ok_and(|renice| renice.status.success()) {
        println!("the clients do not give way: there is no renice");
    }
    let version = connect(address, "/core/v1/pods?limit=1", "").and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(header(&answer, "x-resource-version"))
    });
    let version = version.expect("an answer").expect("a version");
    println!(
        "{pods} pods, 100 changes a second\n\n| clients | each asks for | answer | livez p50 | p99 | worst | first byte, worst | without a byte | longest silence | answers | sent | CPU | CPU of others | memory |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    let (mut good, is_judged) = (true, is_set("--judge"));
    for mut load in loads(quick) {
        if only.as_deref().is_none_or(|only| load.name.contains(only)) {
            load.path = load.path.replace("{v}", &version);
            let load = Arc::new(load);
            let base = figures(&mut gateway)[1];
            let mut run = || run(address, &load, &mut gateway, &prober, lasts, base);
            if is_judged {
                good &= judge(&load, run);
            } else {
                run();
            }
        }
    }
    gateway.end();
    if good {
        return ExitCode::SUCCESS;
    }
    println!("a limit was missed: livez {LIVEZ_P99:?}, first byte {FIRST_BYTE:?}, {MEMORY} MB more");
    ExitCode::FAILURE
}
