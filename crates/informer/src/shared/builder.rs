//! What can be chosen about an informer before it runs.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{GRACE, Inner, LEAST_GRACE, Plan, SharedInformer, joining::Joining};
use crate::{
    Object,
    metrics::Metrics,
    monitor::{Monitor, ProblemHandler},
    pipelines::PipelineConfig,
    queue::{QueueKind, Transform},
    reflector::{Backoff, Problem, Remedy, Settings},
    source::ListWatch,
    store::{self, IndexError, Store, StoreWriter},
};

/// Builds a [`SharedInformer`]. Every option has a default that is right for most.
pub struct Builder<K> {
    sources: Vec<Arc<dyn ListWatch<K>>>,
    name: Option<String>,
    resync: Duration,
    grace: Duration,
    transform: Option<Transform<K>>,
    queue: QueueKind,
    settings: Settings,
    seed: Option<u64>,
    metrics: Option<Arc<dyn Metrics>>,
    on_problem: Option<ProblemHandler>,
    writer: StoreWriter<K>,
    store: Store<K>,
    failure: Option<BuildError>,
}

/// Why an informer cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// An index cannot be added.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Two of several sources would tell of the same objects.
    #[error(
        "two sources cover the same objects ({first} and {second}): give each a namespace of its own, or use one for all"
    )]
    Overlap {
        /// One of them.
        first: String,
        /// The other one.
        second: String,
    },
    /// A page of no objects never ends.
    #[error("the page size must be at least 1")]
    PageSize,
}

impl<K: Send + Sync + 'static> Builder<K> {
    pub(super) fn new(source: impl ListWatch<K>) -> Self {
        let (writer, store) = store::new();
        Self {
            sources: vec![Arc::new(source)],
            name: None,
            resync: Duration::ZERO,
            grace: GRACE,
            transform: None,
            queue: QueueKind::default(),
            settings: Settings::default(),
            seed: None,
            metrics: None,
            on_problem: None,
            writer,
            store,
            failure: None,
        }
    }

    /// Adds another source: one for each namespace makes one informer of a list of namespaces.
    #[must_use]
    pub fn source(mut self, source: impl ListWatch<K>) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// What the informer is called in logs, metrics and errors. Default: what it lists.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How often handlers are shown everything again that have no period of their own. Default: never.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = period;
        self
    }

    /// How long handlers may go on after the stop with what they are doing; see [`SharedInformer::run`]. Default: 30
    /// seconds; at least 100 milliseconds.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace.max(LEAST_GRACE);
        self
    }

    /// Changes every object once before it is kept, for example to drop what nobody needs.
    #[must_use]
    pub fn transform(mut self, transform: Transform<K>) -> Self {
        self.transform = Some(transform);
        self
    }

    /// Adds an index; see [`Store::add_index`].
    #[must_use]
    pub fn index<F, I>(mut self, name: &str, function: F) -> Self
    where
        F: Fn(&Object<K>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item: AsRef<str>>,
    {
        if let Err(error) = self.store.add_index(name, function) {
            self.failure.get_or_insert(error.into());
        }
        self
    }

    /// In which order changes reach the cache.
    #[must_use]
    pub fn queue(mut self, kind: QueueKind) -> Self {
        self.queue = kind;
        self
    }

    /// Calls this with every problem of listing and watching, and what is done about it. It should be quick.
    #[must_use]
    pub fn watch_error_handler(mut self, handler: impl Fn(&Problem, Remedy) + Send + Sync + 'static) -> Self {
        self.on_problem = Some(Arc::new(handler));
        self
    }

    /// The most objects in one page of a list.
    #[must_use]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.settings.page_size = Some(objects);
        self
    }

    /// The delays after failures.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.settings.backoff = backoff;
        self
    }

    /// Whether lists are taken as streams where the server can do that. Default: yes.
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.settings.streaming = streaming;
        self
    }

    /// Changes anything about listing and watching: `.settings(|settings| settings.probe_period = None)`.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Lets the seed decide all that is left to chance in listing and watching, so that a run can be repeated.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Where measurements go.
    #[must_use]
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// The informer, ready to run.
    pub fn build(self) -> Result<SharedInformer<K>, BuildError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if self.settings.page_size == Some(0) {
            return Err(BuildError::PageSize);
        }
        for (at, second) in self.sources.iter().enumerate() {
            let overlaps = |first: &&Arc<dyn ListWatch<K>>| match (first.namespace(), second.namespace()) {
                (Some(one), Some(other)) => one == other,
                _ => true,
            };
            if let Some(first) = self.sources[..at].iter().find(overlaps) {
                let (first, second) = (first.description(), second.description());
                return Err(BuildError::Overlap { first, second });
            }
        }
        let descriptions: Vec<String> = self.sources.iter().map(|source| source.description()).collect();
        let name = self.name.unwrap_or_else(|| descriptions.join(", "));
        let monitor =
            Monitor::new(name, descriptions).with_metrics(self.metrics).with_problem_handler(self.on_problem);
        let config = PipelineConfig {
            sources: self.sources,
            settings: self.settings,
            seed: self.seed,
            queue: self.queue,
            transform: self.transform,
        };
        let plan = Plan { config, writer: self.writer, resync: self.resync, grace: self.grace };
        let inner = Inner {
            store: self.store,
            monitor: Arc::new(monitor),
            joining: Joining::new(),
            plan: Mutex::new(Some(plan)),
            stop: CancellationToken::new(),
            failure: OnceLock::new(),
        };
        Ok(SharedInformer { inner: Arc::new(inner) })
    }
}
