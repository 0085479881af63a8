//! What all requests share, and who asks.

use std::{
    sync::{Arc, atomic::AtomicBool},
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
    share::{Full, Limits, Share, Shares},
    work::{Account, Work},
};

/// How many resources that are not known a caller may name at once, and how soon the next one: each time the cluster is
/// asked for all that there are. Beyond that, what is known counts.
pub(crate) const UNKNOWN_KINDS: u32 = 10;
pub(crate) const UNKNOWN_KIND_EVERY: Duration = Duration::from_secs(1);

/// How many may follow at the same time.
pub(crate) const STREAMS: Limits = Limits { of_one: 2_048, in_all: 4_096 };

/// How many objects answers may have that are being read, where each costs a handle: a list that is chosen by a selector is
/// held until its client has it.
pub(crate) const ANSWERS: Limits = Limits { of_one: 2_000_000, in_all: 32_000_000 };

/// The gateway's inside.
pub(crate) struct App {
    pub(crate) cache: Arc<Cache>,
    pub(crate) access: Access,
    pub(crate) pages: Pages,
    pub(crate) work: Work,
    /// The namespaces that are kept; all if there is none.
    pub(crate) namespaces: Vec<String>,
    /// Streams and watches.
    pub(crate) streams: Arc<Shares>,
    /// Objects of answers that are being read.
    pub(crate) answers: Arc<Shares>,
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

    /// One more who follows, unless there are too many.
    pub(crate) fn stream(&self, asker: &Asker) -> Result<Share, Status> {
        let too_many = |what: &str, limit: usize| {
            format!("there are {limit} streams {what} already, which is the limit")
        };
        self.streams.take(&asker.account, 1).map_err(|full| {
            let why = match full {
                Full::OfOne(limit) => too_many("of this client", limit),
                Full::InAll(limit) => too_many("in all", limit),
            };
            Status::too_many_requests(why, 5)
        })
    }

    /// Room for a long answer of so many objects.
    pub(crate) fn answer(&self, asker: &Asker, objects: usize) -> Result<Share, Status> {
        self.answers.take(&asker.account, objects).map_err(|full| {
            let whose = match full {
                Full::OfOne(_) => "to this client",
                Full::InAll(_) => "to all clients",
            };
            let why = format!(
                "long answers {whose} that are not read to their end leave no room for another: read them first, or ask for less at a time with limit="
            );
            Status::too_many_requests(why, 5)
        })
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
