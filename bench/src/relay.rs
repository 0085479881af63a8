//! A relay on loopback that counts what a server sends: the bytes on the wire, as they are, TLS and all.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Relays connections until it is dropped.
pub(crate) struct Relay {
    address: SocketAddr,
    received: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Relay {
    /// In front of the server with this address, such as `https://127.0.0.1:6443`.
    pub(crate) async fn to(url: &str) -> Result<Self> {
        let target: SocketAddr = url
            .rsplit('/')
            .next()
            .and_then(|address| address.parse().ok())
            .with_context(|| format!("{url} is no address on loopback"))?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let received = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&received);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let count = Arc::clone(&count);
                connections.spawn(async move {
                    let server = TcpStream::connect(target).await?;
                    let (mut from_client, to_client) = client.into_split();
                    let (from_server, mut to_server) = server.into_split();
                    tokio::try_join!(
                        tokio::io::copy(&mut from_client, &mut to_server),
                        counted(from_server, to_client, &count)
                    )
                });
            }
        });
        Ok(Self { address, received, task })
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// How many bytes the server has sent.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn counted(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: &AtomicU64,
) -> std::io::Result<u64> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            to.shutdown().await?;
            return Ok(count.load(Ordering::Relaxed));
        }
        to.write_all(&buffer[..read]).await?;
        count.fetch_add(read as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_server_sends_is_passed_on_and_counted() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Relay::to(&format!("https://{}", server.local_addr().unwrap())).await.unwrap();
        let mut client = TcpStream::connect(relay.address).await.unwrap();
        let (mut accepted, _) = server.accept().await.unwrap();
        client.write_all(b"question").await.unwrap();
        let mut question = [0; 8];
        accepted.read_exact(&mut question).await.unwrap();
        accepted.write_all(&[7; 100_000]).await.unwrap();
        drop(accepted);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!((&question, answer.len(), relay.received()), (b"question", 100_000, 100_000));
    }
}
