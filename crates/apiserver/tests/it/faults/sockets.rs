//! The faults of connections, as a client outside of this process sees them: byte by byte.

use std::{
    io::{self, ErrorKind, Read},
    net::SocketAddr,
};

use flate2::read::MultiGzDecoder;
use informer_apiserver::{ApiServer, Fault, Listener, Rule, Verb};
use informer_testing::socket;
use tokio::net::TcpStream;

use crate::{
    client::get,
    objects::{MAPS, mk_server, put_maps},
};

/// One request on a connection of its own.
struct Raw {
    stream: TcpStream,
    /// What has come so far.
    seen: Vec<u8>,
}

impl Raw {
    async fn get(address: SocketAddr, path: &str) -> Self {
        let request = socket::get_request(address, path, &[]);
        Self { stream: socket::open(address, request.as_bytes()).await, seen: Vec::new() }
    }

    /// Reads until there is something new; false at the end.
    async fn more(&mut self) -> io::Result<bool> {
        loop {
            self.stream.readable().await?;
            match self.try_more() {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    fn try_more(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let read = self.stream.try_read(&mut buffer)?;
        self.seen.extend_from_slice(&buffer[..read]);
        Ok(read > 0)
    }

    /// Reads until the connection ends, well or not.
    async fn read_out(&mut self) -> io::Result<()> {
        while self.more().await? {}
        Ok(())
    }

    /// The head, and what there is of the body: whether its end came, too.
    fn answer(&self) -> (String, Vec<u8>, bool) {
        let end = self.seen.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
        let head = String::from_utf8_lossy(&self.seen[..end]).to_lowercase();
        if !head.contains("transfer-encoding: chunked") {
            return (head, self.seen[end..].to_vec(), true);
        }
        let (body, ended) = unchunk(&self.seen[end..]);
        (head, body, ended)
    }
}

/// A chunked body, and whether it is whole.
fn unchunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(line) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..line]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return (body, true);
        }
        bytes = &bytes[line + 2..];
        body.extend_from_slice(&bytes[..size.min(bytes.len())]);
        bytes = bytes.get(size + 2..).unwrap_or_default();
    }
    (body, false)
}

async fn listening() -> (ApiServer, Listener, Vec<u8>) {
    let server = mk_server();
    put_maps(&server, &["a", "b"]);
    let listener = server.listen("127.0.0.1:0".parse().expect("an address")).await.expect("a port");
    let whole = get(&server, MAPS).await.1.to_vec();
    (server, listener, whole)
}

#[tokio::test]
async fn a_refused_request_ends_the_connection_without_a_byte() {
    let (server, listener, whole) = listening().await;
    server.faults().add(Rule::new(Fault::Refuse).times(1));
    let mut raw = Raw::get(listener.address(), MAPS).await;
    let _ = raw.read_out().await;
    assert!(raw.seen.is_empty());
    let mut raw = Raw::get(listener.address(), MAPS).await;
    raw.read_out().await.expect("an end");
    assert_eq!(raw.answer().1, whole, "the next connection works");
}

#[tokio::test]
async fn a_reset_comes_after_the_head() {
    let (server, listener, _) = listening().await;
    server.faults().add(Rule::new(Fault::Reset));
    for path in [MAPS.to_owned(), format!("{MAPS}/a"), format!("{MAPS}?watch=1")] {
        let mut raw = Raw::get(listener.address(), &path).await;
        let end = raw.read_out().await.map_err(|e| e.kind());
        let (head, body, ended) = raw.answer();
        assert!(head.starts_with("http/1.1 200 ok"), "{path}: {head}");
        assert!(body.is_empty() && !ended, "{path}");
        assert_eq!(end, Err(ErrorKind::ConnectionReset), "{path}");
    }
}

#[tokio::test]
async fn a_body_is_cut_after_any_number_of_bytes() {
    let (server, listener, whole) = listening().await;
    for bytes in 0..=whole.len() {
        let id = server.faults().add(Rule::new(Fault::CutAfter(bytes)));
        let mut raw = Raw::get(listener.address(), MAPS).await;
        let _ = raw.read_out().await;
        let (head, body, ended) = raw.answer();
        assert!(head.starts_with("http/1.1 200 ok"), "{head}");
        assert_eq!((body.as_slice(), ended), (&whole[..bytes], false), "cut after {bytes}");
        server.faults().remove(id);
    }
}

#[tokio::test]
async fn a_long_body_is_cut_where_it_should_be() {
    let (server, listener, _) = listening().await;
    for i in 0..1_000 {
        let mut map = crate::objects::mk_config_map(&format!("map-{i}"));
        map["data"]["filler"] = "x".repeat(1_000).into();
        server.put(map).expect("written");
    }
    let whole = get(&server, MAPS).await.1;
    for bytes in [100_000, 700_001, whole.len()] {
        let id = server.faults().add(Rule::new(Fault::CutAfter(bytes)));
        let mut raw = Raw::get(listener.address(), MAPS).await;
        let _ = raw.read_out().await;
        let (_, body, ended) = raw.answer();
        assert!(body == whole[..bytes] && !ended, "{} of {bytes} bytes", body.len());
        server.faults().remove(id);
    }
}

#[tokio::test]
async fn a_stalled_connection_stays_open_and_silent() {
    let watch = format!("{MAPS}?watch=1");
    for (path, bytes) in [(MAPS, 0), (MAPS, 5), (MAPS, usize::MAX), (&watch, 0), (&watch, 30)] {
        let (server, listener, whole) = listening().await;
        let bytes = bytes.min(whole.len());
        server.faults().add(Rule::new(Fault::StallAfter(bytes)).times(1));
        let mut raw = Raw::get(listener.address(), path).await;
        while !raw.seen.windows(4).any(|window| window == b"\r\n\r\n") || raw.answer().1.len() < bytes {
            assert!(raw.more().await.expect("no failure"), "no end");
        }
        // Others are served meanwhile, and an event that comes later does not get through.
        put_maps(&server, &["a"]);
        Raw::get(listener.address(), MAPS).await.read_out().await.expect("an answer");
        assert_eq!(raw.try_more().map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
        let (_, body, ended) = raw.answer();
        assert_eq!((body.len(), ended), (bytes, false), "{path}");
    }
}

#[tokio::test]
async fn a_body_comes_one_byte_at_a_time_and_is_the_same() {
    let (server, listener, whole) = listening().await;
    server.faults().add(Rule::new(Fault::OneByteAtATime));
    let mut raw = Raw::get(listener.address(), MAPS).await;
    raw.read_out().await.expect("an end");
    let (_, body, ended) = raw.answer();
    assert!(body == whole && ended);
    let chunks = raw.seen.windows(3).filter(|window| window == b"1\r\n").count();
    assert!(chunks >= whole.len(), "{chunks} chunks for {} bytes", whole.len());
}

#[tokio::test]
async fn gzip_comes_through_as_it_is() {
    let (server, listener, whole) = listening().await;
    server.faults().add(Rule::new(Fault::Gzip).verb(Verb::List));
    let mut raw = Raw::get(listener.address(), MAPS).await;
    raw.read_out().await.expect("an end");
    let (head, body, ended) = raw.answer();
    assert!(head.contains("content-encoding: gzip") && ended, "{head}");
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(body.as_slice()).read_to_end(&mut unpacked).expect("gzip");
    assert_eq!(unpacked, whole);
}
