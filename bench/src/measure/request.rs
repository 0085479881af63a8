//! A request over a plain socket, whose cost beside the server's is small.

use std::{
    fmt,
    io::{Read, Write},
    net::TcpStream,
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, de::IgnoredAny};

/// A request without a body to a server on loopback.
pub(super) struct Request {
    method: &'static str,
    url: String,
    path: String,
}

#[derive(Deserialize)]
struct Answer {
    msg: Vec<IgnoredAny>,
}

impl Request {
    pub(super) fn get(url: &str, path: String) -> Self {
        Self { method: "GET", url: url.to_owned(), path }
    }

    pub(super) fn post(url: &str, path: String) -> Self {
        Self { method: "POST", url: url.to_owned(), path }
    }

    /// Reads the answer to its end. It must be a good one.
    pub(super) fn send(&self) -> Result<()> {
        self.exchange("1.1", false).map(drop)
    }

    /// How many objects the answer has. HTTP/1.0 knows no chunks, so the body is what comes after the head.
    pub(super) fn objects(&self) -> Result<usize> {
        let body = self.exchange("1.0", true)?;
        Ok(serde_json::from_slice::<Answer>(&body).context("a list of objects")?.msg.len())
    }

    /// The body, or its beginning unless it is to be kept.
    fn exchange(&self, version: &str, keep: bool) -> Result<Vec<u8>> {
        let (method, path) = (self.method, &self.path);
        let address = self.url.strip_prefix("http://").unwrap_or(&self.url);
        let mut socket = TcpStream::connect(address).with_context(|| format!("{self}"))?;
        write!(
            socket,
            "{method} {path} HTTP/{version}\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )?;
        let (mut buffer, mut answer) = (vec![0; 1 << 20], Vec::new());
        loop {
            let read = socket.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            if keep || answer.len() < 4_096 {
                answer.extend_from_slice(&buffer[..read]);
            }
        }
        let head =
            answer.windows(4).position(|end| end == b"\r\n\r\n").context("an answer without a head")?;
        let body = answer.split_off(head + 4);
        let head = String::from_utf8_lossy(&answer);
        let status = head.split_whitespace().nth(1).unwrap_or_default();
        ensure!(status == "200", "{self}: {head}{}", String::from_utf8_lossy(&body));
        Ok(body)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.url, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers once.
    fn answering(answer: &'static str) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            // All of the request: what is left unread would make the end of the answer a reset.
            let (mut request, mut byte) = (Vec::new(), [0]);
            while !request.ends_with(b"\r\n\r\n") && socket.read(&mut byte).unwrap() > 0 {
                request.extend(byte);
            }
            socket.write_all(answer.as_bytes()).unwrap();
        });
        url
    }

    #[test]
    fn the_objects_of_an_answer_are_counted_and_refusals_are_errors() {
        let good = answering("HTTP/1.0 200 OK\r\n\r\n{\"msg\":[{\"a\":1},{}]}");
        assert_eq!(Request::get(&good, "/".into()).objects().unwrap(), 2);
        let bad = answering("HTTP/1.0 404 Not Found\r\n\r\n{\"msg\":\"no\"}");
        let error = Request::get(&bad, "/x".into()).objects().unwrap_err();
        assert!(error.to_string().contains("404"), "{error}");
    }
}
