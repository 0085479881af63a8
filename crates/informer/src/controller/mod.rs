//! From events to work: a [`Controller`] turns what informers tell into keys, and calls a function for each of them.
//!
//! ```text
//! informers ─▶ feeds: which keys is this about? ─▶ work queue ─▶ N workers ─▶ reconcile(key)
//!                                                      ▲                        │ failed: after a while
//!                                                      └────────────────────────┘ or: in ten minutes
//! ```
//!
//! The function is told a key, not what happened to it: it looks into the caches and brings the world to what they ask for.
//! One key is never with two workers. Everything between can be had alone: the [queue](crate::workqueue), its limiters,
//! handlers that fill it.

mod conditions;
mod feed;
mod finalizer;
mod health;
mod joined;
mod owner;
mod predicate;
mod traced;
mod worker;

use std::{
    any::{Any, TypeId, type_name},
    fmt,
    future::Future,
    hash::{BuildHasher, Hash, RandomState},
    time::Duration,
};

use futures_util::Stream;
use informer_model::ObjectKey;
use kube::Resource;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

pub(crate) use self::joined::NOT_NEWS;
pub use self::{
    conditions::{condition, find_condition, is_condition_true, set_condition},
    feed::Feed,
    finalizer::{FinalizerError, FinalizerEvent, finalizer},
    health::{ControllerHealth, ControllerObserver},
    owner::{
        AlreadyOwned, is_controlled_by, owner_of, owners_of, set_controller_reference, set_owner_reference,
    },
    predicate::{PointerError, Predicate},
};
use self::{
    joined::{Fed, OfStream, Source},
    traced::Traces,
    worker::Worker,
};
use crate::{
    AnyInformer, CONTROLLER_GRACE, Event, Object, SharedInformer,
    metrics::Metrics,
    shared::AddHandlerError,
    sync::Arc,
    workqueue::{self, ItemExponential, WorkQueue},
};

/// What becomes of a key that was reconciled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Nothing, until something changes. What an earlier call asked for is over.
    AwaitChange,
    /// It is looked at again after this time, or earlier if something changes: then that call decides anew. A zero, over and
    /// over, is stretched from 5 ms up to 1,000 s, so that it cannot become a busy loop; it is no failure.
    RequeueAfter(Duration),
}

impl Action {
    /// It is looked at again after this time.
    pub fn after(delay: Duration) -> Self {
        Self::RequeueAfter(delay)
    }

    /// The same, later by a chance of up to this part of the time: what was asked for at one moment comes at many.
    #[must_use]
    pub fn jitter(self, part: f64) -> Self {
        match self {
            Self::RequeueAfter(delay) => {
                let chance = RandomState::new().hash_one(0) as f64 / u64::MAX as f64;
                let more = Duration::try_from_secs_f64(delay.as_secs_f64() * chance * part);
                Self::RequeueAfter(delay.saturating_add(more.unwrap_or_default()))
            }
            Self::AwaitChange => self,
        }
    }
}

/// What becomes of a key that could not be reconciled; see [`Controller::error_policy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnError {
    /// It is tried again when the queue's limiter says so.
    Retry,
    /// It is tried again after this time. That is no failure for the limiter, and no warning in the log. A zero, over and over, is stretched as for
    /// [`Action::RequeueAfter`].
    RetryAfter(Duration),
    /// It is not tried again until something changes: trying would not help.
    Terminal,
}

/// Calls a function for every key that informers say something about.
///
/// ```
/// use std::{error::Error, time::Duration};
///
/// use informer::{SharedInformerFactory, controller::{Action, Controller}};
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
/// use kube::Client;
/// use tokio_util::sync::CancellationToken;
///
/// async fn control(client: Client, stop: CancellationToken) -> Result<(), Box<dyn Error>> {
///     let factory = SharedInformerFactory::new(client, Duration::ZERO);
///     let services = factory.core().v1().services();
///     let controller = Controller::new("services")
///         .of(&services.informer())
///         .owns::<Service, Deployment>(&factory.apps().v1().deployments().informer())
///         .watches(&factory.core().v1().config_maps().informer(), |map| {
///             map.data.as_ref()?.get("service")?.parse().ok()
///         })
///         .workers(4);
///     factory.start()?;
///
///     let lister = services.lister();
///     controller
///         .run(stop, move |key| {
///             let service = lister.get(&key);
///             async move {
///                 println!("{key}: {}", if service.is_ok() { "make it so" } else { "it is gone" });
///                 Ok::<_, kube::Error>(Action::RequeueAfter(Duration::from_secs(600)))
///             }
///         })
///         .await?;
///     factory.shutdown().await;
///     Ok(())
/// }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), Box<dyn Error>> {
/// # let server = informer_apiserver::ApiServer::builder().build();
/// # server.put(serde_json::json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } }))?;
/// # server.put(serde_json::json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "shop" }, "spec": { "ports": [{ "port": 80 }] } }))?;
/// # let stop = CancellationToken::new();
/// # let stopped = async { tokio::time::sleep(Duration::from_secs(60)).await; stop.cancel(); };
/// # tokio::join!(control(server.client(), stop.clone()), stopped).0
/// # }
/// ```
#[must_use = "a controller does nothing until it is run"]
pub struct Controller<T = ObjectKey> {
    name: String,
    queue: WorkQueue<T>,
    sources: Vec<Box<dyn Source<T>>>,
    /// Something that was asked for and cannot be.
    wrong: Option<ControllerError>,
    workers: usize,
    sync_within: Option<Duration>,
    grace: Duration,
    on_failure: Option<OnFailure<T>>,
    error_policy: Option<ErrorPolicy<T>>,
    metrics: Option<Arc<dyn Metrics>>,
    observer: ControllerObserver,
}

/// What to do about errors of a type.
struct ErrorPolicy<T> {
    error: TypeId,
    name: &'static str,
    decide: Arc<Decide<T>>,
}

type Decide<T> = dyn Fn(&T, &dyn Any) -> OnError + Send + Sync;

type OnFailure<T> = Arc<dyn Fn(&T, Failure<'_>) + Send + Sync>;

/// A key could not be reconciled. It is tried again when the queue's limiter says so, unless the
/// [error policy](Controller::error_policy) says something else.
///
/// ```
/// use informer::controller::Failure;
///
/// fn is_forbidden(failure: Failure<'_>) -> bool {
///     matches!(failure.cause(), Some(kube::Error::Api(status)) if status.code == 403)
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Failure<'a> {
    /// What the error that the function returned says, or its panic.
    pub error: &'a str,
    cause: Option<&'a dyn Any>,
    /// Whether it panicked.
    pub panicked: bool,
    /// How often in a row it has failed for this key, where the limiter counts that.
    pub times: u32,
    /// Whether it is not tried again until something changes, as the [error policy](Controller::error_policy) says.
    pub terminal: bool,
}

impl<'a> Failure<'a> {
    /// The error itself. `E` is the type that the function returns: also `anyhow::Error`, or a box, from which one goes on to
    /// what is in it.
    pub fn cause<E: 'static>(&self) -> Option<&'a E> {
        self.cause?.downcast_ref()
    }
}

/// Why a controller does not run, or did not end well.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ControllerError {
    /// It has no workers.
    #[error("controller {controller:?} has no workers; give it at least one")]
    NoWorkers {
        /// The controller's name.
        controller: String,
    },
    /// The error policy would never be asked.
    #[error("the error policy of controller {controller:?} is for {of}, and its function returns {is}")]
    ErrorPolicy {
        /// The controller's name.
        controller: String,
        /// The type that the policy is for.
        of: &'static str,
        /// The type that the function returns.
        is: &'static str,
    },
    /// A period of no time.
    #[error("controller {controller:?} is to reconcile every 0 s; a period is longer than zero")]
    NoPeriod {
        /// The controller's name.
        controller: String,
    },
    /// The queue would hand nothing out.
    #[error(
        "the queue of controller {controller:?} is shut down already; a controller needs a new one to run again"
    )]
    QueueShutDown {
        /// The controller's name.
        controller: String,
    },
    /// An informer has stopped, or stopped before its cache was complete.
    #[error("controller {controller:?}: {reason}")]
    InformerStopped {
        /// The controller's name.
        controller: String,
        /// Which one, and what that means.
        reason: String,
    },
    /// The caches were not complete in time.
    #[error(
        "controller {controller:?} did not start, its caches were not complete after {within:?}: {missing}"
    )]
    NotSynced {
        /// The controller's name.
        controller: String,
        /// How long it has waited.
        within: Duration,
        /// What each of the others is doing.
        missing: String,
    },
    /// Some calls went on for too long after the stop and were dropped where they were waiting.
    #[error(
        "controller {controller:?}: {calls} calls had not ended {grace:?} after the stop and were dropped"
    )]
    Unfinished {
        /// The controller's name.
        controller: String,
        /// How many.
        calls: usize,
        /// How long they had.
        grace: Duration,
    },
}

impl Controller<ObjectKey> {
    /// The objects of this informer are what is reconciled, by their keys.
    pub fn of<K: Send + Sync + 'static>(self, informer: &SharedInformer<K>) -> Self {
        self.feed(Feed::of(informer))
    }

    /// The objects of this informer belong to others, of kind `Owner`: a change is about the owner that controls them, as
    /// their owner references say.
    pub fn owns<Owner, K>(self, informer: &SharedInformer<K>) -> Self
    where
        Owner: Resource<DynamicType: Default> + 'static,
        K: Resource + Send + Sync + 'static,
    {
        self.feed(Feed::owns::<Owner>(informer))
    }
}

impl<T: Hash + Eq + Clone + fmt::Debug + Send + 'static> Controller<T> {
    /// A controller with one worker, which hears of nothing yet. The name is for logs and metrics.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let queue = WorkQueue::builder().name_by_default(&name).build();
        let observer = ControllerObserver::new(&name);
        Self {
            name,
            queue,
            sources: Vec::new(),
            wrong: None,
            workers: 1,
            sync_within: None,
            grace: CONTROLLER_GRACE,
            on_failure: None,
            error_policy: None,
            metrics: None,
            observer,
        }
    }

    /// A change of an object is about these items. When an object changes, what it was and what it is both count.
    pub fn watches<K, F, I>(self, informer: &SharedInformer<K>, items: F) -> Self
    where
        K: Send + Sync + 'static,
        F: Fn(&Object<K>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item = T>,
    {
        self.feed(Feed::mapped(informer, items))
    }

    /// An event is about these items, or about none: the most general way to choose them.
    pub fn watches_events<K, F, I>(self, informer: &SharedInformer<K>, items: F) -> Self
    where
        K: Send + Sync + 'static,
        F: Fn(&Event<K>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item = T>,
    {
        self.feed(Feed::events(informer, items))
    }

    /// What an informer tells, with [predicates](Predicate), a priority, or another mapping.
    pub fn feed<K: Send + Sync + 'static>(mut self, feed: Feed<K, T>) -> Self {
        self.sources.push(feed.into_source(&self.name));
        self
    }

    /// The items of any stream, read as long as the controller runs; a channel, for example. Its end ends nothing else.
    ///
    /// ```
    /// use futures_util::stream::poll_fn;
    /// use informer::{controller::Controller, model::ObjectKey};
    /// use tokio::sync::mpsc;
    ///
    /// fn fed(mut keys: mpsc::Receiver<ObjectKey>) -> Controller {
    ///     Controller::new("websites").stream(poll_fn(move |context| keys.poll_recv(context)))
    /// }
    /// ```
    pub fn stream(mut self, items: impl Stream<Item = T> + Send + 'static) -> Self {
        self.sources.push(Box::new(OfStream::new(&self.name, items, 0)));
        self
    }

    /// The items that a function says after each period, behind what changes: all keys of a cache, for example, where the world can change
    /// without an event.
    pub fn every<F, I>(mut self, period: Duration, items: F) -> Self
    where
        F: Fn() -> I + Send + 'static,
        I: IntoIterator<Item = T> + 'static,
    {
        if period.is_zero() {
            self.wrong = Some(ControllerError::NoPeriod { controller: self.name.clone() });
            return self;
        }
        self.sources.push(Box::new(OfStream::periodic(&self.name, period, items)));
        self
    }

    /// How many keys are worked on at the same time. Default: one.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Another queue than the default one: with its own limiter or metrics. It has the controller's name unless it has one.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use informer::{controller::Controller, metrics::Metrics, workqueue::WorkQueue};
    ///
    /// fn measured(metrics: Arc<dyn Metrics>) -> Controller {
    ///     Controller::new("websites").with_queue(WorkQueue::builder().metrics(metrics)) // name="websites"
    /// }
    /// ```
    pub fn with_queue(mut self, queue: workqueue::WorkQueueBuilder<T>) -> Self {
        self.queue = queue.name_by_default(&self.name).build();
        self
    }

    /// Who is told how calls end, and what the queue measures, under the controller's name. It makes a queue of its own: say it before
    /// [`with_queue`](Self::with_queue), and give the metrics to that one too.
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.metrics = Some(Arc::clone(&metrics));
        self.with_queue(WorkQueue::builder().metrics(metrics))
    }

    /// For looking at the controller while it runs.
    pub fn observer(&self) -> ControllerObserver {
        self.observer.clone()
    }

    /// A call that takes longer than this is named by the [observer](Self::observer)'s health. Default: a minute.
    pub fn slow_after(self, time: Duration) -> Self {
        self.observer.slow_after(time);
        self
    }

    /// For how long the caches may take to be complete before [`run`](Self::run) gives up. Default: for as long as it takes;
    /// every half minute a line in the log says what is missing.
    pub fn sync_within(mut self, within: Duration) -> Self {
        self.sync_within = Some(within);
        self
    }

    /// How long a call may go on after the stop. Default: 20 seconds.
    ///
    /// [`LeaderElection`](crate::leader::LeaderElection)s wait for 5 seconds more by default. If you set more here, set theirs too
    /// ([`grace`](crate::leader::LeaderElectionBuilder::grace)), and the pod's `terminationGracePeriodSeconds`.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// What is done about a failure besides trying again. Default: a line in the log.
    pub fn on_failure(mut self, tell: impl Fn(&T, Failure<'_>) + Send + Sync + 'static) -> Self {
        self.on_failure = Some(Arc::new(tell));
        self
    }

    /// The controller's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What becomes of a key when the function returns an error: tried again as the limiter says, after a time, or not. `E` is the type that the function
    /// returns. A panic is always tried again. Default: all are.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use informer::{client::WriteError, controller::{Controller, OnError}};
    ///
    /// fn with_policy(controller: Controller) -> Controller {
    ///     controller.error_policy(|_key, error: &WriteError| match error {
    ///         error if error.is_conflict() => OnError::RetryAfter(Duration::ZERO), // somebody else was faster: look again
    ///         WriteError::Unfenced(_) => OnError::Terminal,
    ///         _ => OnError::Retry,
    ///     })
    /// }
    /// ```
    pub fn error_policy<E: 'static>(
        mut self,
        decide: impl Fn(&T, &E) -> OnError + Send + Sync + 'static,
    ) -> Self {
        let decide = move |key: &T, error: &dyn Any| {
            error.downcast_ref().map_or(OnError::Retry, |error| decide(key, error))
        };
        self.error_policy =
            Some(ErrorPolicy { error: TypeId::of::<E>(), name: type_name::<E>(), decide: Arc::new(decide) });
        self
    }

    /// The queue: whatever is added there is reconciled too. It is shut down when the controller ends.
    pub fn queue(&self) -> WorkQueue<T> {
        self.queue.clone()
    }

    /// Runs until it is told to stop, or until its queue is shut down.
    ///
    /// It waits until all caches are complete, and never runs the informers: their factory does. What existed before comes
    /// with a low priority, so that what changes meanwhile is not behind it. A call that fails or panics is repeated when the
    /// limiter says so.
    ///
    /// After the stop no call begins any more, those that run may end, and what is queued is dropped: the next run hears of
    /// everything again. Dropping the future ends everything at once.
    pub async fn run<R, F, E>(self, stop: CancellationToken, reconcile: R) -> Result<(), ControllerError>
    where
        R: Fn(T) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Action, E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let controller = || self.name.clone();
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        if let Some(policy) = self.error_policy.as_ref().filter(|policy| policy.error != TypeId::of::<E>()) {
            let (of, is) = (policy.name, type_name::<E>());
            return Err(ControllerError::ErrorPolicy { controller: controller(), of, is });
        }
        if self.workers == 0 {
            return Err(ControllerError::NoWorkers { controller: controller() });
        }
        if self.queue.is_shut_down() {
            return Err(ControllerError::QueueShutDown { controller: controller() });
        }
        let _running = self.observer.run();
        let traces = Traces::default();
        let fed = Fed::join(&self.sources, &self.queue, &traces).map_err(|error: AddHandlerError| {
            ControllerError::InformerStopped { controller: controller(), reason: error.to_string() }
        })?;
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            synced = self.wait_for_caches(&fed) => synced?,
        }
        self.observer.synced();
        tracing::info!(
            controller = self.name,
            workers = self.workers,
            "controller starts: its caches are complete"
        );
        // Dropped, it ends what waits for caches.
        let waiting = stop.child_token().drop_guard();
        let worker = Worker {
            name: self.name.clone(),
            queue: self.queue.clone(),
            written: Arc::default(),
            traces,
            waiting: waiting.token().clone(),
            reconcile: Arc::new(reconcile),
            eager: Arc::new(ItemExponential::default()),
            on_failure: self.on_failure.clone(),
            metrics: self.metrics.clone(),
            observer: self.observer.clone(),
            error_policy: self.error_policy.as_ref().map(|policy| Arc::clone(&policy.decide)),
            stop: stop.clone(),
        };
        let mut workers: JoinSet<()> = (0..self.workers).map(|_| worker.clone().run()).collect();
        tokio::select! {
            () = stop.cancelled() => {}
            () = all_ended(&mut workers) => {}
        }
        drop(fed);
        if timeout(self.grace, all_ended(&mut workers)).await.is_err() {
            let calls = self.queue.stats().processing;
            workers.shutdown().await;
            return Err(ControllerError::Unfinished { controller: controller(), calls, grace: self.grace });
        }
        Ok(())
    }

    async fn wait_for_caches(&self, fed: &Fed<T>) -> Result<(), ControllerError> {
        let saying_what_is_missing = async {
            loop {
                tokio::time::sleep(Duration::from_secs(30)).await;
                tracing::warn!(controller = self.name, "controller waits for its caches: {}", self.missing());
            }
        };
        // What is later than any moment is never.
        let within = self.sync_within.and_then(|within| Instant::now().checked_add(within));
        tokio::select! {
            biased;
            synced = fed.synced() => synced.map_err(|error| ControllerError::InformerStopped {
                controller: self.name.clone(),
                reason: error.to_string(),
            }),
            () = crate::until(within) => Err(ControllerError::NotSynced {
                controller: self.name.clone(),
                within: self.sync_within.unwrap_or_default(),
                missing: self.missing(),
            }),
            () = saying_what_is_missing => Ok(()),
        }
    }

    /// What those informers are doing that are not synced.
    fn missing(&self) -> String {
        let informers = self.sources.iter().filter_map(|source| source.informer());
        let missing: Vec<String> = informers
            .filter(|informer: &&dyn AnyInformer| !informer.has_synced())
            .map(|informer| informer.health().to_string())
            .collect();
        if missing.is_empty() {
            "handlers are still hearing of what is in them".to_owned()
        } else {
            missing.join("; ")
        }
    }
}

/// Waits for all workers. A panic that is not one of the function goes on here.
async fn all_ended(workers: &mut JoinSet<()>) {
    while let Some(ended) = workers.join_next().await {
        if let Err(error) = ended
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl<T> fmt::Debug for Controller<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let informers: Vec<&str> =
            self.sources.iter().filter_map(|source| Some(source.informer()?.name())).collect();
        f.debug_struct("Controller")
            .field("name", &self.name)
            .field("informers", &informers)
            .finish_non_exhaustive()
    }
}
