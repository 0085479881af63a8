//! Several controllers, their caches, the election, events and endpoints, started and stopped together in the right order.
//!
//! A [`Manager`] only puts together what can be had alone: nothing of it is needed for any part. [`Manager::run`] starts the parts, ends all of
//! them in order when one of them fails or the stop comes, and says what went wrong first.

mod caches;
#[cfg(feature = "endpoints")]
mod endpoints;
mod error;
mod health;
mod life;
mod parts;
#[cfg(feature = "signals")]
mod signals;

use std::{error::Error, fmt, future::Future, hash::Hash, time::Duration};

use tokio_util::sync::CancellationToken;

#[cfg(feature = "endpoints")]
pub use self::endpoints::{Endpoints, ListenError};
pub use self::{
    caches::Caches,
    error::ManagerError,
    health::{HealthReport, ManagerObserver},
};
use self::{
    health::{Known, Question},
    parts::Part,
};
#[cfg(feature = "events")]
use crate::events::Delivery;
#[cfg(feature = "leader")]
use crate::leader::{LeaderElection, Leadership};
use crate::{
    CONTROLLER_GRACE,
    controller::{Action, Controller},
    sync::Arc,
};

/// How long work may go on after the stop: a controller's own grace, and a little for what ends with it.
const GRACE: Duration = CONTROLLER_GRACE.saturating_add(Duration::from_secs(2));

/// What a part works in that needs the term, if there is an election.
#[derive(Clone, Default)]
struct Term {
    #[cfg(feature = "leader")]
    leadership: Option<Leadership>,
}

/// Runs the parts of a program together.
///
/// ```
/// use informer::{
///     SharedInformerFactory,
///     controller::{Action, Controller},
///     events::Recorder,
///     leader::LeaderElection,
///     manager::Manager,
/// };
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use tokio_util::sync::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = informer_apiserver::ApiServer::builder().build().client();
/// let factory = SharedInformerFactory::builder(client.clone()).build()?;
/// let controller = Controller::new("maps").of(&factory.informer_for::<ConfigMap>());
/// let (recorder, delivery) = Recorder::builder(client.clone(), "example.com/maps").build()?;
/// let stop = CancellationToken::new();
/// # let stopping = stop.clone();
/// # tokio::spawn(async move { tokio::time::sleep(std::time::Duration::from_secs(60)).await; stopping.cancel(); });
/// Manager::new()
///     .caches(&factory)
///     .events(delivery)
///     .election(LeaderElection::builder(client, "default", "maps").build()?)
///     .controller(controller, move |key| {
///         let _recorder = recorder.clone();
///         async move {
///             println!("{key}");
///             Ok::<_, kube::Error>(Action::AwaitChange)
///         }
///     })
///     .run(stop)
///     .await?;
/// # Ok(()) }
/// ```
///
/// # What is promised
///
/// - **The start.** The endpoints answer first, then events are sent and caches fill, and what needs no term runs. Controllers, and what else
///   needs the term, begin with it: an instance that waits for its turn has warm caches. Without an election they begin at once.
/// - **The stop.** No call begins; those that run may end. Then the term is given back, then what has run without a term ends, then the caches,
///   then the events that the last calls have recorded are sent, and the endpoints go last. From the stop on the process is not ready. All of
///   it is over within the 30 seconds that a pod has: work has [22 seconds](Self::grace), the rest of what holds the process up 2 more, events 5.
/// - **An error of one part**, its panic too, is a stop for all, and `run` ends with it, by its name. What goes wrong after it is in the log. A
///   part that ends well ends nothing else.
/// - **The term is lost**: controllers are dropped where they are waiting, everything else is stopped in order, and `run` ends with
///   [`ManagerError::TermLost`]. It does not go on as a candidate, because only the end of the process surely ends everything that a term has
///   begun: tasks of its own, threads, and what is remembered. What started the process starts it again.
/// - **A second stop** ([`at_once`](Self::at_once)), or dropping `run`, ends everything at once.
#[must_use = "a manager does nothing until it is run"]
pub struct Manager {
    /// With the term, and beside it.
    leading: Vec<Part<Term>>,
    others: Vec<Part<()>>,
    caches: Vec<Arc<dyn Caches>>,
    #[cfg(feature = "leader")]
    election: Option<LeaderElection>,
    #[cfg(feature = "events")]
    deliveries: Vec<Delivery>,
    #[cfg(feature = "endpoints")]
    endpoints: Vec<Endpoints>,
    grace: Duration,
    at_once: CancellationToken,
    known: Arc<Known>,
}

impl Default for Manager {
    fn default() -> Self {
        Self::new()
    }
}

impl Manager {
    /// A manager of nothing.
    pub fn new() -> Self {
        Self {
            leading: Vec::new(),
            others: Vec::new(),
            caches: Vec::new(),
            #[cfg(feature = "leader")]
            election: None,
            #[cfg(feature = "events")]
            deliveries: Vec::new(),
            #[cfg(feature = "endpoints")]
            endpoints: Vec::new(),
            grace: GRACE,
            at_once: CancellationToken::new(),
            known: Arc::default(),
        }
    }

    /// The informers of a [factory](crate::SharedInformerFactory), or of several [clusters](crate::clusters::Clusters): they are started here, and
    /// shut down.
    pub fn caches(mut self, caches: &(impl Caches + Clone)) -> Self {
        let caches: Arc<dyn Caches> = Arc::new(caches.clone());
        self.known.caches(Arc::clone(&caches));
        self.caches.push(caches);
        self
    }

    /// Controllers, and what else [needs the term](Self::leading_runnable), run while this process leads. The manager's [grace](Self::grace)
    /// counts, not the election's.
    #[cfg(feature = "leader")]
    pub fn election(mut self, election: LeaderElection) -> Self {
        self.known.election(election.observer());
        self.election = Some(election);
        self
    }

    /// Sends the events of a [`Recorder`](crate::events::Recorder), also those that the last calls record.
    #[cfg(feature = "events")]
    pub fn events(mut self, delivery: Delivery) -> Self {
        self.deliveries.push(delivery);
        self
    }

    /// Answers probes and scrapes.
    #[cfg(feature = "endpoints")]
    pub fn endpoints(mut self, endpoints: Endpoints) -> Self {
        self.endpoints.push(endpoints);
        self
    }

    /// A controller and its function; see [`Controller::run`]. If there is an election, it runs while this process leads.
    pub fn controller<T, R, F, E>(self, controller: Controller<T>, reconcile: R) -> Self
    where
        T: Hash + Eq + Clone + fmt::Debug + Send + 'static,
        R: Fn(T) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Action, E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        self.controlled(controller, |_| Some(reconcile), false)
    }

    /// A controller whose function is made when the term begins: for writes that carry it
    /// ([`Writes::fenced`](crate::client::Writes::fenced)).
    #[cfg(feature = "leader")]
    pub fn fenced_controller<T, M, R, F, E>(self, controller: Controller<T>, reconcile: M) -> Self
    where
        T: Hash + Eq + Clone + fmt::Debug + Send + 'static,
        M: FnOnce(Leadership) -> R + Send + 'static,
        R: Fn(T) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Action, E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        self.controlled(controller, |term| term.leadership.map(reconcile), true)
    }

    fn controlled<T, M, R, F, E>(mut self, controller: Controller<T>, make: M, needs_term: bool) -> Self
    where
        T: Hash + Eq + Clone + fmt::Debug + Send + 'static,
        M: FnOnce(Term) -> Option<R> + Send + 'static,
        R: Fn(T) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Action, E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        self.known.controller(controller.observer());
        let name = format!("controller {}", controller.name());
        let run = |term, stop| async move {
            match make(term) {
                Some(reconcile) => controller.run(stop, reconcile).await,
                None => Ok(()),
            }
        };
        self.leading.push(Part::new(name, needs_term, run));
        self
    }

    /// Anything else that is to run from the start until the stop, also while another process leads: a server of webhooks, or what adds
    /// [clusters](crate::clusters::Clusters::follow). It should end when the token says so. It is told after the controllers have ended.
    pub fn runnable<M, F, E>(mut self, name: impl Into<String>, run: M) -> Self
    where
        M: FnOnce(CancellationToken) -> F + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        self.others.push(Part::new(name.into(), false, |(), stop| run(stop)));
        self
    }

    /// Anything else that is to run while this process leads. It is polled by the election, and dropped when the term is over: what blocks its
    /// thread keeps the term from being renewed.
    #[cfg(feature = "leader")]
    pub fn leading_runnable<M, F, E>(mut self, name: impl Into<String>, run: M) -> Self
    where
        M: FnOnce(Leadership, CancellationToken) -> F + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        let run = |term: Term, stop| async move {
            match term.leadership {
                Some(leadership) => run(leadership, stop).await,
                None => Ok(()),
            }
        };
        self.leading.push(Part::new(name.into(), true, run));
        self
    }

    /// Something that must be so for the process to be of any use: if it is not, it should be started again (`/healthz`).
    pub fn health_check<E: fmt::Display>(
        self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.known.check(Question::Healthy, name.into(), check);
        self
    }

    /// Something that must be so before the process is given work (`/readyz`), besides caches that are complete.
    pub fn ready_check<E: fmt::Display>(
        self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.known.check(Question::Ready, name.into(), check);
        self
    }

    /// How long controllers, and what else needs the term, may go on after the stop: 22 seconds unless set here, 2 more than a
    /// [controller](Controller::grace) takes by default. The pod's `terminationGracePeriodSeconds` should be 8 seconds more.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The second stop: when this token is cancelled, nothing is waited for any more, and the term is not given back.
    pub fn at_once(mut self, stop: CancellationToken) -> Self {
        self.at_once = stop;
        self
    }

    /// For looking at the program while it runs.
    pub fn observer(&self) -> ManagerObserver {
        ManagerObserver::new(Arc::clone(&self.known))
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.leading.iter().map(|part| &part.name);
        let names: Vec<&String> = names.chain(self.others.iter().map(|part| &part.name)).collect();
        f.debug_struct("Manager").field("parts", &names).finish_non_exhaustive()
    }
}
