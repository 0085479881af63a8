//! Many clients at a time that count: each must hear of every version exactly once and in order.
//!
//! The cluster must write nothing but the objects of the stream, so that each version is one event.

use std::{net::SocketAddr, time::Duration};

use informer_testing::socket;
use tokio::{io::AsyncReadExt, net::TcpStream, sync::watch, task::JoinSet};

/// What clients ask for: little of each object.
pub(crate) const PATH: &str = "/_stream/core/v1/configmaps?fields=metadata.name,metadata.resourceVersion";

/// What one client has heard.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// The last version; none before the snapshot is complete.
    last: Option<u64>,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    pub(crate) twice: u64,
    /// Resets and ends.
    pub(crate) cut: u64,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The next id is that of a heartbeat, which says where the stream is, again.
    beats: bool,
}

impl Heard {
    /// Takes what came off the socket. Sizes of chunks are lines that mean nothing here.
    fn feed(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.hear(&line);
                self.line = line;
                self.line.clear();
            }
        }
    }

    fn hear(&mut self, line: &[u8]) {
        if line.starts_with(b"event: reset") || line.starts_with(b"event: end") {
            self.cut += 1;
            return;
        }
        let beats = std::mem::replace(&mut self.beats, line.starts_with(b": heartbeat"));
        let Some(id) = line.strip_prefix(b"id: ").map(<[u8]>::trim_ascii) else { return };
        // An id with a number is one of several of a version: not what a watch tells.
        let version = std::str::from_utf8(id).ok().and_then(|id| id.parse::<u64>().ok());
        match (version, self.last) {
            (Some(version), None) => self.last = Some(version),
            (Some(version), Some(last)) if version > last => {
                self.events += 1;
                self.lost += version - last - 1;
                self.last = Some(version);
            }
            (Some(version), Some(last)) if version == last && beats => {}
            _ => self.twice += 1,
        }
    }
}

/// All who follow, and all who only connect.
pub(crate) struct Crowd {
    address: SocketAddr,
    clients: JoinSet<Heard>,
    stalled: Vec<TcpStream>,
    synced: watch::Sender<usize>,
    /// The version to hear of before the end.
    until: watch::Sender<u64>,
}

impl Crowd {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let (synced, until) = (watch::Sender::new(0), watch::Sender::new(u64::MAX));
        Self { address, clients: JoinSet::new(), stalled: Vec::new(), synced, until }
    }

    async fn connect(&self) -> TcpStream {
        let request = socket::get_request(self.address, PATH, &[]);
        socket::open(self.address, request.as_bytes()).await
    }

    /// So many more that follow, and wait until each has its snapshot.
    pub(crate) async fn follow(&mut self, count: usize) {
        for _ in 0..count {
            let stream = self.connect().await;
            self.clients.spawn(attend(stream, self.synced.clone(), self.until.subscribe()));
        }
        let all = self.clients.len();
        let _ = self.synced.subscribe().wait_for(|synced| *synced >= all).await;
    }

    /// So many more that never read.
    pub(crate) async fn stall(&mut self, count: usize) {
        for _ in 0..count {
            let stream = self.connect().await;
            self.stalled.push(stream);
        }
    }

    /// What each has heard when it has come to this version, or when nothing has come for so long.
    pub(crate) async fn end(self, version: u64) -> Vec<Heard> {
        self.until.send_replace(version);
        self.clients.join_all().await
    }
}

/// Reads until the version has come. Who waits for half a minute in vain has lost it.
async fn attend(
    mut stream: TcpStream,
    synced: watch::Sender<usize>,
    mut until: watch::Receiver<u64>,
) -> Heard {
    let (mut heard, mut buffer) = (Heard::default(), vec![0; 16 * 1024]);
    loop {
        let wanted = *until.borrow_and_update();
        if heard.last.is_some_and(|last| last >= wanted) {
            return heard;
        }
        tokio::select! {
            read = tokio::time::timeout(Duration::from_secs(30), stream.read(&mut buffer)) => {
                let count = read.map_or(0, |read| read.unwrap_or(0));
                let was_synced = heard.last.is_some();
                heard.feed(&buffer[..count]);
                if !was_synced && heard.last.is_some() {
                    synced.send_modify(|synced| *synced += 1);
                }
                if count == 0 {
                    heard.cut += 1;
                    heard.lost += wanted.saturating_sub(heard.last.unwrap_or_default()).min(1);
                    return heard;
                }
            }
            _ = until.changed() => {}
        }
    }
}
