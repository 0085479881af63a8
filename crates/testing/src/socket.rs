//! HTTP on a socket, byte for byte, for what a client library would hide or mend.

use std::{fmt::Display, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// An answer that has come to its end.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The code of the status line.
    pub code: u16,
    /// The status line and the headers.
    pub head: String,
    /// What comes after them, as it came: the sizes of chunks are in it.
    pub body: String,
}

/// The text of a GET after whose answer the server closes the connection. Headers are whole lines.
pub fn get_request(host: impl Display, path: &str, headers: &[&str]) -> String {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n")
}

/// Sends bytes on a connection of their own, of which the caller reads what it wants.
///
/// # Panics
/// When nobody listens there, or the connection is lost before all is sent.
pub async fn open(address: SocketAddr, request: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request).await.expect("sent");
    stream
}

/// Sends bytes on a connection of their own, and reads until the other side ends it. A request that is understood
/// asks for that with `Connection: close`; `then_end` says that nothing more will come, for a server that waits for
/// the rest of a request.
///
/// # Panics
/// When nobody listens there.
pub async fn exchange(address: SocketAddr, bytes: &[u8], then_end: bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // The other side may have had enough before all of it is written.
    let _ = stream.write_all(bytes).await;
    if then_end {
        let _ = stream.shutdown().await;
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    answer
}

/// The answer to a request, which must be text.
///
/// # Panics
/// When what comes is no answer.
pub async fn send(address: SocketAddr, request: &str) -> Answer {
    let answer = String::from_utf8(exchange(address, request.as_bytes(), false).await).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
    Answer { code, head: head.to_owned(), body: body.to_owned() }
}

/// The answer to a GET. Headers are whole lines.
///
/// # Panics
/// As [`send`].
pub async fn get(address: SocketAddr, path: &str, headers: &[&str]) -> Answer {
    send(address, &get_request(address, path, headers)).await
}
