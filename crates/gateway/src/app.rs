//! What all requests share, and who asks.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use informer_model::Status;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    access::{Access, Caller, RECHECK},
    allowance::Allowances,
    cache::Cache,
    metrics::{RequestMetrics, Tally},
    pages::Pages,
    work::{Account, Work},
};

/// How many resources that are not known a caller may name at once, and how soon the next one: each time the cluster is
/// asked for all that there are. Beyond that, what is known counts.
pub(crate) const UNKNOWN_KINDS: u32 = 10;
pub(crate) const UNKNOWN_KIND_EVERY: Duration = Duration::from_secs(1);

/// The gateway's inside.
pub(crate) struct App {
    pub(crate) cache: Arc<Cache>,
    pub(crate) access: Access,
    pub(crate) pages: Pages,
    pub(crate) work: Work,
    /// The namespaces that are kept; all if there is none.
    pub(crate) namespaces: Vec<String>,
    pub(crate) streams: Arc<Streams>,
    /// How often a caller may name a resource that is not known.
    pub(crate) unknown_kinds: Allowances<Account>,
    pub(crate) registry: Registry,
    pub(crate) metrics: RequestMetrics,
    pub(crate) tally: Arc<Tally>,
    /// Everything that was to be in memory from the start is.
    pub(crate) preloaded: AtomicBool,
    pub(crate) stop: CancellationToken,
}

impl App {
    /// Whether everybody may see everything.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.access, Access::Open)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub(crate) async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    /// When somebody who follows is to be checked next.
    pub(crate) fn next_check(&self) -> Instant {
        // A day is never: where everybody may see everything there is nothing to check.
        Instant::now() + if self.is_open() { Duration::from_secs(86_400) } else { RECHECK }
    }
}

/// Who asks, and from where.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) caller: Caller,
    /// On whose account the request is answered.
    pub(crate) account: Account,
}

/// How many follow at the same time.
pub(crate) struct Streams {
    open: AtomicUsize,
    by_client: Mutex<HashMap<Account, usize>>,
    limits: StreamLimits,
}

/// How many may follow at the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamLimits {
    pub(crate) in_all: usize,
    pub(crate) by_client: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self { in_all: 4_096, by_client: 2_048 }
    }
}

/// Somebody follows, until it is dropped.
pub(crate) struct StreamTicket {
    streams: Arc<Streams>,
    client: Account,
}

impl Streams {
    pub(crate) fn new(limits: StreamLimits) -> Self {
        Self { open: AtomicUsize::new(0), by_client: Mutex::default(), limits }
    }

    /// How many there are.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// One more, unless there are too many.
    pub(crate) fn ticket(self: &Arc<Self>, asker: &Asker) -> Result<StreamTicket, Status> {
        let client = asker.account.clone();
        let mut by_client = self.by_client.lock().unwrap_or_else(PoisonError::into_inner);
        let too_many = |what: &str, limit| {
            Status::too_many_requests(
                format!("there are {limit} streams {what} already, which is the limit"),
                5,
            )
        };
        if self.open() >= self.limits.in_all {
            return Err(too_many("in all", self.limits.in_all));
        }
        let own = by_client.entry(client.clone()).or_default();
        if *own >= self.limits.by_client {
            return Err(too_many("of this client", self.limits.by_client));
        }
        *own += 1;
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(StreamTicket { streams: Arc::clone(self), client })
    }
}

impl Drop for StreamTicket {
    fn drop(&mut self) {
        let mut by_client = self.streams.by_client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = by_client.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                by_client.remove(&self.client);
            }
        }
        self.streams.open.fetch_sub(1, Ordering::Relaxed);
    }
}
