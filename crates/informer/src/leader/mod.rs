//! Elects one leader among the processes that want to be it, with a Lease on the API server.
//!
//! In comes the name of a Lease and the work of a leader. The [`LeaderElection`] runs the work while this process leads,
//! and hands it a [`Leadership`], which says at any moment whether the term still lasts and gives out a [`Fence`] for
//! writes. An [`Observer`] says in words what is going on.
//!
//! A pure machine has the rules, without any I/O; a driver carries them out.

mod builder;
mod callbacks;
mod driver;
mod fence;
mod leadership;
#[doc(hidden)]
pub mod machine;
mod observer;
mod problem;

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    pin::pin,
    sync::Arc,
    thread,
    time::Duration,
};

use futures_util::FutureExt;
use informer_model::ObjectKey;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::{
    builder::{ElectionConfigError, LeaderElectionBuilder},
    callbacks::Callbacks,
    fence::{Fence, Stale},
    leadership::{Leadership, Lost},
    observer::{LeaderHealth, LeaderStats, LeaderTrouble, Observer, Overdue, Role},
    problem::ElectionProblem,
};
use self::{
    driver::{Driver, Event},
    machine::Machine,
};
use crate::until;

/// A candidate for the leadership that goes with a Lease. Running it uses it up.
///
/// ```
/// use informer::leader::LeaderElection;
/// use tokio_util::sync::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = informer_apiserver::ApiServer::builder().build().client();
/// let election = LeaderElection::builder(client, "default", "painter").build()?;
/// let stop = CancellationToken::new();
/// let painted = election
///     .run_while_leader(stop, |leadership| async move {
///         leadership.fence().map(|fence| format!("painted in term {}", fence.token()))
///     })
///     .await;
/// assert!(painted.expect("nobody said stop")?.starts_with("painted in term "));
/// # Ok(()) }
/// ```
///
/// # What is promised
///
/// - **One leader.** Leadership ends by itself, on the process's own monotonic clock, `renew_deadline` after the last
///   answered renewal was *sent*. Others take the Lease only after they have not seen it change for the `lease_duration`
///   that stands in it, on their own clocks. No two wall clocks are compared. So no two processes have a valid
///   [`fence`](Leadership::fence) at the same time, as long as no clock runs more than `lease_duration / renew_deadline`
///   times (1.5 with the defaults) as fast as another. A monotonic clock goes on while a process is stopped. While a whole
///   machine sleeps, it may stand still: then what remains is the check of a [`Fence`].
/// - **No work of a lost term.** The work is polled by the election itself. When the term is over, it is dropped before
///   anything else happens, and never polled again. What it has spawned is the work's own to end, such as by a `JoinSet`
///   that is dropped with it. A work that blocks its thread keeps the term from being renewed.
/// - **Every term has its own token**, greater than all before it, also when a process gets its own Lease back, and when the
///   Lease was deleted: it is the version of the Lease that the term began with, and no version comes twice. So whatever
///   happens to a Lease, an earlier leader cannot overwrite what a later one wrote with a [`Fence`].
/// - **A Lease can be deleted.** A leader that finds its Lease gone, or another one in its place, ends its term at once. A
///   candidate that has seen the term waits for `lease_duration` before it makes a new Lease. Who has not seen it, because
///   it was just started, makes one at once: for the rest of its term, at most `renew_deadline` after the deletion, the
///   earlier leader may then have a valid fence too, with the smaller token.
/// - **The Lease is given back only after the work has ended**, also if it ended by a panic.
/// - **Nothing ends the election but `stop`** and the end of the work. What goes wrong is tried again after the retry
///   period, is in the [health](Observer::health), and is logged once when it begins and once when it is over.
///
/// The user needs the verbs `get`, `create` and `update` on `leases` of the group `coordination.k8s.io`.
pub struct LeaderElection {
    api: Api<Lease>,
    lease: ObjectKey,
    annotation: Arc<str>,
    machine: Machine,
    renew_deadline: Duration,
    observer: Observer,
    grace: Duration,
}

/// How a term ended.
enum Ended<T> {
    Lost(Lost),
    Finished(thread::Result<T>),
    Stopped,
}

impl LeaderElection {
    /// An election by the Lease of this name, to be described. The Lease is made if there is none; its namespace is not.
    pub fn builder(
        client: Client,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> LeaderElectionBuilder {
        LeaderElectionBuilder::new(client, namespace, name)
    }

    /// For looking at the election while it runs.
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// Waits until this process leads and does the work. Ends with what the work ended with, or with nothing if `stop` came
    /// first.
    ///
    /// A work whose term is lost is dropped, and begins anew with the next term. On `stop` it has to end by itself, and is
    /// dropped if it has not within the [grace](LeaderElectionBuilder::grace). A panic of the work comes out of here, after the Lease was
    /// given back.
    pub async fn run_while_leader<F, W, T>(self, stop: CancellationToken, mut work: F) -> Option<T>
    where
        F: FnMut(Leadership) -> W,
        W: Future<Output = T>,
    {
        let grace = self.grace;
        let mut driver = Driver::start(self);
        let mut nobody = Callbacks::new();
        while let Some(leadership) = elected(&mut driver, &stop, &mut nobody).await {
            let outcome = match lead(&mut driver, async { work(leadership).await }, &stop, grace).await {
                Ended::Lost(_) => continue,
                Ended::Stopped => break,
                Ended::Finished(outcome) => outcome,
            };
            driver.resign();
            driver.finish().await;
            return outcome.map_or_else(|panic| resume_unwind(panic), Some);
        }
        driver.resign();
        driver.finish().await;
        None
    }

    /// Waits until this process leads and does the work, for one term. On `stop` the work has to end by itself within the grace, and the Lease is given
    /// back; a work whose term is lost is dropped.
    #[cfg(feature = "controller")]
    pub(crate) async fn run_one_term<F, W>(
        self,
        stop: &CancellationToken,
        grace: Duration,
        work: F,
    ) -> Result<(), Lost>
    where
        F: FnOnce(Leadership) -> W,
        W: Future<Output = ()>,
    {
        let mut driver = Driver::start(self);
        if let Some(leadership) = elected(&mut driver, stop, &mut Callbacks::new()).await
            && let Ended::Lost(why) = lead(&mut driver, work(leadership), stop, grace).await
        {
            return Err(why);
        }
        driver.resign();
        driver.finish().await;
        Ok(())
    }

    /// Takes part until `stop`, and tells what happens. The work of [`Callbacks::on_started`] may end before its term; on
    /// `stop` it has to, and is dropped if it has not within the [grace](LeaderElectionBuilder::grace).
    ///
    /// ```
    /// use informer::leader::{Callbacks, LeaderElection};
    /// use tokio_util::sync::CancellationToken;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = informer_apiserver::ApiServer::builder().build().client();
    /// let election = LeaderElection::builder(client, "default", "painter").identity("ann").build()?;
    /// let stop = CancellationToken::new();
    /// let callbacks = Callbacks::new()
    ///     .on_new_leader(|name| println!("{name} leads now"))
    ///     .on_started(async |leadership| {
    ///         println!("this is term {}", leadership.token());
    ///         stop.cancel();
    ///     })
    ///     .on_stopped(|why| println!("{why}"));
    /// election.run(stop.clone(), callbacks).await;
    /// # Ok(()) }
    /// ```
    pub async fn run(self, stop: CancellationToken, mut callbacks: Callbacks<'_>) {
        let grace = self.grace;
        let mut driver = Driver::start(self);
        let mut panicked = None;
        while let Some(leadership) = elected(&mut driver, &stop, &mut callbacks).await {
            let work = async {
                callbacks.started(leadership).await;
                stop.cancelled().await;
            };
            match lead(&mut driver, work, &stop, grace).await {
                Ended::Lost(why) => callbacks.stopped(&why),
                ended => {
                    driver.resign();
                    callbacks.stopped(&Lost::Resigned);
                    panicked = if let Ended::Finished(outcome) = ended { outcome.err() } else { None };
                    break;
                }
            }
        }
        driver.resign();
        driver.finish().await;
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }
}

/// Waits for a term, or for `stop`.
async fn elected(
    driver: &mut Driver,
    stop: &CancellationToken,
    callbacks: &mut Callbacks<'_>,
) -> Option<Leadership> {
    loop {
        let event = tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            event = driver.next() => event,
        };
        match event {
            Event::Gained(leadership) => return Some(leadership),
            Event::NewLeader(leader) => callbacks.new_leader(&leader),
            Event::Lost(_) | Event::Done => {}
        }
    }
}

/// Does the work of a term. When this returns, the work has been dropped.
async fn lead<T>(
    driver: &mut Driver,
    work: impl Future<Output = T>,
    stop: &CancellationToken,
    grace: Duration,
) -> Ended<T> {
    let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
    let (mut stopping, mut cut) = (false, None);
    loop {
        tokio::select! {
            biased;
            // First, so that the work is polled only while the term lasts.
            event = driver.next() => if let Event::Lost(why) = event {
                return Ended::Lost(why);
            },
            () = stop.cancelled(), if !stopping => {
                if grace.is_zero() {
                    return Ended::Stopped;
                }
                (stopping, cut) = (true, Instant::now().checked_add(grace));
            }
            () = until(cut) => return Ended::Stopped,
            outcome = &mut work => return Ended::Finished(outcome),
        }
    }
}
