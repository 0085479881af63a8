use axum::{extract::Request as AxumRequest, routing::get};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use informer_testing::Deadline;
use rustls::{ClientConfig, RootCertStore, crypto::ring::default_provider, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{Notify, mpsc},
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::*;

mod multiplexed;

/// A server whose router tells what happens to it.
struct Served {
    address: SocketAddr,
    shutdown: CancellationToken,
    ended: JoinHandle<()>,
    /// `/wait` answers when it is told to.
    go_on: Arc<Notify>,
    /// What becomes of `/wait` and `/endless`: `begun`, `dropped`.
    news: mpsc::UnboundedReceiver<&'static str>,
}

/// Says when it goes.
struct Dropped(mpsc::UnboundedSender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

async fn mk_server(limits: Limits, tls: Option<Tls>) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (shutdown, go_on) = (CancellationToken::new(), Arc::new(Notify::new()));
    let (tell, news) = mpsc::unbounded_channel();
    let (waits, endless_tell) = (Arc::clone(&go_on), tell.clone());
    let router = Router::new()
        .route("/", get(async || "hello"))
        .route(
            "/addresses",
            get(async |request: AxumRequest| {
                let (peer, local) = (request.extensions().get::<Peer>(), request.extensions().get::<Local>());
                format!("{} {}", peer.expect("a peer").0, local.expect("an address").0)
            }),
        )
        .route(
            "/wait",
            get(async move || {
                let _ = tell.send("begun");
                waits.notified().await;
                "done"
            }),
        )
        .route(
            "/endless",
            get(async move || {
                let _ = endless_tell.send("begun");
                let dropped = Dropped(endless_tell);
                Body::from_stream(stream::repeat_with(move || {
                    let _ = &dropped;
                    Ok::<_, Infallible>(Bytes::from(vec![b'x'; 64 * 1024]))
                }))
            }),
        )
        .route(
            "/silent",
            get(async || {
                Body::from_stream(stream::iter([Ok::<_, Infallible>("x")]).chain(stream::pending()))
            }),
        );
    let ended = tokio::spawn(serve(
        listener,
        tls,
        router,
        limits.clone(),
        ConnectionLimits::new(&limits),
        shutdown.clone(),
    ));
    Served { address, shutdown, ended, go_on, news }
}

async fn mk_plain() -> Served {
    mk_server(Limits::default(), None).await
}

impl Served {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("a connection")
    }

    async fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.expect("sent");
        stream
    }

    /// What comes back for these bytes, to the end.
    async fn exchange(&self, bytes: &[u8]) -> String {
        // A server that has seen enough may close before all is sent.
        let mut stream = self.connect().await;
        let _ = stream.write_all(bytes).await;
        rest(&mut stream).await
    }

    async fn get(&self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        self.exchange(request.as_bytes()).await
    }
}

/// What comes until the connection ends, one way or the other.
async fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

const HELLO: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

#[tokio::test]
async fn requests_are_answered_and_know_both_addresses() {
    let served = mk_plain().await;
    assert!(served.get("/").await.ends_with("\r\n\r\nhello"));
    let mut stream = served.send(b"GET /addresses HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    let expected = format!("{} {}", stream.local_addr().expect("an address"), served.address);
    let answer = rest(&mut stream).await;
    assert!(answer.ends_with(&expected), "{answer}");
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let served = mk_plain().await;
    let two = [HELLO, b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"].concat();
    assert_eq!(served.exchange(&two).await.matches("hello").count(), 2);
}

#[tokio::test]
async fn hostile_bytes_end_their_connection_and_nothing_else() {
    let served = mk_plain().await;
    let long = "x".repeat(100 * 1024);
    let many = "x: 1\r\n".repeat(300);
    for (bytes, code) in [
        ("\0\0\0\0".to_owned(), "400"),
        ("\r\n\r\n\r\n\0".to_owned(), "400"),
        ("\u{16}\u{3}\u{1}\u{0}\u{5}".to_owned(), "400"),
        ("nonsense\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/9.9\r\nhost: a\r\n\r\n".to_owned(), "400"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), ""),
        ("GET / HTTP/1.1\r\nhost: a\0b\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\r\nhost : a\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\r\nhost: a\r\n folded\r\n\r\n".to_owned(), "400"),
        ("GET /\u{1} HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: x\r\n\r\n".to_owned(), "400"),
        (format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n"), "4"),
        (format!("GET / HTTP/1.1\r\nhost: a\r\nx: {long}\r\n\r\n"), "431"),
        (format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n"), "431"),
    ] {
        let answer = served.exchange(bytes.as_bytes()).await;
        let shown: String = bytes.chars().take(60).collect();
        // A large head may be cut off before the answer is seen: what matters is that it is not answered.
        let cut = bytes.len() > 64 * 1024 && answer.is_empty();
        assert!(cut || answer.is_empty() == code.is_empty(), "{shown:?}: {answer:?}");
        assert!(answer.is_empty() || answer.starts_with(&format!("HTTP/1.1 {code}")), "{shown:?}: {answer}");
    }
    assert!(served.get("/").await.ends_with("hello"));
}

/// Whoever begins like this and says no more is cut off after ten seconds, without a word.
async fn loses_the_connection(served: &Served, begun: &[u8]) {
    let mut stream = served.send(begun).await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    assert_eq!(rest(&mut stream).await, "");
    assert_eq!(begun.elapsed().as_secs(), 10);
    tokio::time::resume();
}

#[tokio::test]
async fn who_does_not_send_a_head_loses_the_connection() {
    let served = mk_plain().await;
    for begun in [&b""[..], b"GET / HT", b"GET / HTTP/1.1\r\nhost: a\r\nx: "] {
        loses_the_connection(&served, begun).await;
    }
}

#[tokio::test]
async fn a_head_in_small_pieces_has_no_more_time() {
    let served = mk_plain().await;
    let mut stream = served.send(b"GET / HTTP/1.1\r\n").await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    while stream.write_all(b"x: 1\r\n").await.is_ok() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn who_comes_too_late_is_told_so_and_gets_a_place_when_one_is_free() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let served = mk_server(limits, None).await;
    let mut holder = served.send(HELLO).await;
    holder.read_u8().await.expect("it is served");
    let answer = served.get("/").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\"kind\":\"Status\"") && answer.contains("as many connections"), "{answer}");
    assert!(
        answer.contains("\r\nretry-after: 10\r\n") && answer.contains("\r\nconnection: close\r\n"),
        "{answer}"
    );
    drop(holder);
    let deadline = Deadline::start();
    while !served.get("/").await.ends_with("hello") {
        deadline.check("a place");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn one_address_has_its_own_limit() {
    let limits = Limits { by_address: 1, ..Limits::default() };
    let served = mk_server(limits, None).await;
    let mut holder = served.send(HELLO).await;
    holder.read_u8().await.expect("it is served");
    assert!(served.get("/").await.contains("from one address"));
}

#[tokio::test]
async fn who_has_no_place_and_says_nothing_is_cut_soon() {
    let limits = Limits { connections: 0, ..Limits::default() };
    let served = mk_server(limits, None).await;
    let mut stream = served.connect().await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    assert_eq!(rest(&mut stream).await, "");
    assert_eq!(begun.elapsed().as_secs(), REFUSAL.as_secs());
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_the_connection() {
    let mut served = mk_plain().await;
    let _stream = served.send(b"GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(served.news.recv().await, Some("begun"));
    tokio::time::pause();
    assert_eq!(served.news.recv().await, Some("dropped"));
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_answer() {
    let mut served = mk_plain().await;
    let stream = served.send(b"GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(served.news.recv().await, Some("begun"));
    drop(stream);
    assert_eq!(served.news.recv().await, Some("dropped"));
}

#[tokio::test]
async fn a_shutdown_lets_answers_end_and_takes_nothing_new() {
    let mut served = mk_plain().await;
    let mut idle = served.send(HELLO).await;
    idle.read_u8().await.expect("it is served");
    let mut waiting = served.send(b"GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(served.news.recv().await, Some("begun"));
    served.shutdown.cancel();
    assert!(rest(&mut idle).await.ends_with("hello"), "an idle connection ends at once");
    let deadline = Deadline::start();
    while TcpStream::connect(served.address).await.is_ok() {
        deadline.check("nobody listens");
        tokio::task::yield_now().await;
    }
    served.go_on.notify_one();
    assert!(rest(&mut waiting).await.ends_with("done"));
    served.ended.await.expect("it ends");
}

#[tokio::test]
async fn a_shutdown_cuts_what_does_not_end() {
    let served = mk_plain().await;
    let mut stream = served.send(b"GET /silent HTTP/1.1\r\nhost: a\r\n\r\n").await;
    stream.read_u8().await.expect("it is served");
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    served.shutdown.cancel();
    served.ended.await.expect("it ends");
    assert_eq!(begun.elapsed().as_secs(), 10);
    rest(&mut stream).await;
}

fn mk_tls() -> Tls {
    Tls::self_signed(&["localhost".to_owned()]).expect("TLS")
}

/// A connection of TLS as a client that trusts the certificate and speaks this.
async fn connect_tls(served: &Served, tls: &Tls, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(tls.certificate()).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, served.connect().await).await.expect("a handshake")
}

async fn exchange_tls(served: &Served, tls: &Tls, request: &[u8]) -> String {
    let mut stream = connect_tls(served, tls, &[]).await;
    stream.write_all(request).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test]
async fn tls_is_spoken_by_those_who_trust_the_certificate() {
    let tls = mk_tls();
    let served = mk_server(Limits::default(), Some(tls.clone())).await;
    let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    assert!(exchange_tls(&served, &tls, request).await.ends_with("hello"));
    assert!(!served.get("/").await.contains("hello"), "nothing is said without TLS");
    assert!(exchange_tls(&served, &tls, request).await.ends_with("hello"));
}

#[tokio::test]
async fn who_comes_too_late_is_told_so_over_tls() {
    let tls = mk_tls();
    let served = mk_server(Limits { connections: 0, ..Limits::default() }, Some(tls.clone())).await;
    assert!(exchange_tls(&served, &tls, HELLO).await.starts_with("HTTP/1.1 503 "));
}

#[tokio::test]
async fn a_handshake_has_a_limit() {
    let served = mk_server(Limits::default(), Some(mk_tls())).await;
    for begun in [&b""[..], b"\x16\x03\x01\x02\x00"] {
        loses_the_connection(&served, begun).await;
    }
}

#[tokio::test]
async fn a_handshake_does_not_hold_up_a_shutdown() {
    let served = mk_server(Limits::default(), Some(mk_tls())).await;
    let mut stream = served.connect().await;
    served.shutdown.cancel();
    served.ended.await.expect("it ends");
    rest(&mut stream).await;
}

#[test]
fn others_are_served_with_tls_and_authentication_only() {
    let check = |address: &str, tls, auth| check_exposure(address.parse().expect("an address"), tls, auth);
    for address in ["127.0.0.1:8888", "127.3.2.1:0", "[::1]:8888", "[::ffff:127.0.0.1]:8888"] {
        assert_eq!(check(address, false, false), Ok(()), "{address}");
    }
    for address in ["0.0.0.0:8888", "[::]:8888", "192.0.2.1:80", "[2001:db8::1]:80", "[::ffff:10.0.0.1]:80"] {
        assert_eq!(check(address, true, true), Ok(()), "{address}");
        for (tls, auth) in [(false, false), (true, false), (false, true)] {
            let told = check(address, tls, auth).expect_err(address).to_string();
            assert_eq!(told.contains("--tls-self-signed"), !tls, "{told}");
            assert_eq!(told.contains("--auth kubernetes"), !auth, "{told}");
            assert!(told.contains(address), "{told}");
        }
    }
}
