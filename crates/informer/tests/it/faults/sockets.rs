//! Faults that need a real connection: refused, half-open, lost with the server, or to somebody else.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use informer::{
    reflector::{Backoff, Remedy},
    shared::SharedInformerBuilder,
};
use informer_apiserver::{
    Fault, Listener,
    Verb::{List, Watch},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, Config};

use super::cluster::{Cluster, Watched, in_real_time, until};

pub(crate) fn client(address: SocketAddr) -> Client {
    let mut config = Config::new(format!("http://{address}").parse().expect("a URL"));
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

/// Nobody waits long for a test.
fn impatient(builder: SharedInformerBuilder<ConfigMap>, streaming: bool) -> SharedInformerBuilder<ConfigMap> {
    let initial = Duration::from_millis(5);
    let backoff = Backoff { initial, max: 10 * initial, ..Backoff::default() };
    builder
        .streaming(streaming)
        .backoff(backoff)
        .settings(|settings| settings.watch_timeout = Duration::from_secs(1))
}

async fn listen(cluster: &Cluster, address: SocketAddr) -> Listener {
    cluster.server.listen(address).await.expect("the port")
}

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

#[test]
fn f08_a_half_open_connection_is_closed_and_reopened() {
    in_real_time(async |mut cluster| {
        cluster.write(20);
        let listener = listen(&cluster, ANY_PORT).await;
        let watched = Watched::run(impatient(cluster.informer(client(listener.address())), true));
        watched.converges(&cluster).await;
        let stalled = cluster.fault(Fault::StallAfter(0), &[Watch], |rule| rule.times(1));
        cluster.end_watches();
        until(|| cluster.server.faults().hits(stalled) == 1, || "not stalled".to_owned()).await;
        cluster.write(20);
        watched.has_had("silent watch").await;
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn f19_a_server_that_restarts_finds_its_informers_again() {
    in_real_time(async |mut cluster| {
        cluster.write(20);
        let listener = listen(&cluster, ANY_PORT).await;
        let address = listener.address();
        let crowd: Vec<Watched> = (0..20)
            .map(|number| Watched::run(impatient(cluster.informer(client(address)), number % 2 == 0)))
            .collect();
        for watched in &crowd {
            watched.converges(&cluster).await;
        }
        drop(listener);
        for watched in &crowd {
            watched.has_had("connection refused").await;
        }
        cluster.write(20);
        let listener = listen(&cluster, address).await;
        for watched in &crowd {
            watched.converges(&cluster).await;
        }
        for watched in crowd {
            watched.stop().await;
        }
        drop(listener);
    });
}

#[test]
fn f20_a_refused_connection_is_tried_again_without_a_list() {
    in_real_time(async |mut cluster| {
        cluster.write(20);
        let listener = listen(&cluster, ANY_PORT).await;
        let address = listener.address();
        let watched = Watched::run(impatient(cluster.informer(client(address)), false));
        watched.converges(&cluster).await;
        cluster.write(1);
        watched.converges(&cluster).await;
        drop(listener);
        watched.has_had("connection refused").await;
        cluster.write(20);
        let listener = listen(&cluster, address).await;
        watched.converges(&cluster).await;
        for (problem, remedy) in watched.problems() {
            if problem.cause() == "connection refused" {
                assert!(matches!(remedy, Remedy::Rewatch(_)), "{problem}: {remedy}");
            }
        }
        watched.ends_well(&cluster).await;
        drop(listener);
    });
}

#[test]
fn f20_connections_that_are_reset_or_cut_at_random_end_with_the_right_cache() {
    in_real_time(async |mut cluster| {
        cluster.write(20);
        let listener = listen(&cluster, ANY_PORT).await;
        cluster.fault(Fault::Reset, &[List, Watch], |rule| rule.probability(0.2));
        cluster.fault(Fault::Refuse, &[List, Watch], |rule| rule.probability(0.2));
        for bytes in [10, 1_000, 3_000] {
            cluster.fault(Fault::CutAfter(bytes), &[List, Watch], |rule| rule.probability(0.2));
        }
        for streaming in [true, false] {
            let watched = Watched::run(impatient(cluster.informer(client(listener.address())), streaming));
            for _ in 0..30 {
                cluster.write(10);
                cluster.pause(Duration::from_millis(20)).await;
            }
            watched.converges(&cluster).await;
            watched.stop().await;
        }
        cluster.heal();
    });
}

/// Somebody at the server's address who answers, but is no API server.
struct Impostor {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Impostor {
    /// Gives each connection the next of these answers.
    fn new(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind(ANY_PORT).expect("a port");
        let (address, over) = (listener.local_addr().expect("an address"), Arc::new(AtomicBool::new(false)));
        let done = Arc::clone(&over);
        let thread = thread::spawn(move || {
            for answer in answers.iter().cycle() {
                let (mut stream, _) = listener.accept().expect("a connection");
                if done.load(SeqCst) {
                    return;
                }
                let _ = stream.read(&mut [0; 4_096]);
                let _ = stream.write_all(answer);
            }
        });
        Self { address, over, thread }
    }

    fn leave(self) {
        self.over.store(true, SeqCst);
        drop(TcpStream::connect(self.address));
        self.thread.join().expect("no panic");
    }
}

fn http(content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )
    .into_bytes();
    answer.extend_from_slice(body);
    answer
}

#[test]
fn f23_whatever_somebody_else_answers_at_that_address_is_not_taken_for_the_cluster() {
    let noise: Vec<u8> = (0..=255).cycle().skip(77).take(3_000).collect();
    let pods = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}"#;
    let answers = vec![
        noise.clone(),
        http("application/json", &noise),
        http("application/json", b"null"),
        http("application/json", b"[]"),
        http("application/json", b"{}"),
        http("application/json", b"{\"items\":[1,2,3]}"),
        http("application/json", pods),
        http("text/plain", b"OK"),
        http("application/octet-stream", &noise),
        http("application/json", b""),
    ];
    for answer in answers {
        for streaming in [false, true] {
            let shown = String::from_utf8_lossy(&answer).into_owned();
            let answer = answer.clone();
            in_real_time(async |mut cluster| {
                let impostor = Impostor::new(vec![answer.clone()]);
                let address = impostor.address;
                let watched = Watched::run(impatient(cluster.informer(client(address)), streaming));
                until(|| watched.problems().len() >= 4, || shown.clone()).await;
                assert!(!watched.informer.has_synced(), "taken for an answer: {shown}");
                let health = watched.informer.health();
                assert!(health.trouble().is_some(), "{health}");
                // A streaming list without a word only ends too early; the ordinary one after it says what came.
                let says_why = || watched.problems().iter().any(|(problem, _)| problem.error().is_some());
                until(says_why, || shown.clone()).await;
                impostor.leave();
                cluster.write(20);
                let listener = listen(&cluster, address).await;
                watched.ends_well(&cluster).await;
                drop(listener);
            });
        }
    }
}
