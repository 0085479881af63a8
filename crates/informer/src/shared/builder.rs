//! What can be chosen about an informer before it runs.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{
    Inner, Plan, SharedInformer,
    joining::Joining,
    options::{InformerOptions, informer_options},
};
use crate::{
    EventHandler, Object,
    coverage::Coverage,
    metrics::Metrics,
    monitor::{Monitor, ProblemHandler},
    pipelines::PipelineConfig,
    queue::{Delta, QueueKind, Transform},
    reflector::{Backoff, Problem, ReflectorSettings, Remedy},
    source::ListWatch,
    store::{self, IndexError, Store, StoreWriter},
    unshared::{DeltaProcessor, Informer},
};

/// Builds a [`SharedInformer`]. Every option has a default that is right for most.
#[must_use]
pub struct SharedInformerBuilder<K> {
    coverage: Coverage<K>,
    name: Option<String>,
    options: InformerOptions,
    transform: Option<Transform<K>>,
    on_problem: Option<ProblemHandler>,
    writer: StoreWriter<K>,
    store: Store<K>,
    failure: Option<BuildError>,
}

/// Why an informer cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
    /// What comes and goes is followed by informers that are shared.
    #[error(
        "an informer that is not shared covers the same for ever: to follow namespaces or a kind, build a shared one"
    )]
    Unshared,
}

impl<K: Send + Sync + 'static> SharedInformerBuilder<K> {
    pub(crate) fn new(source: impl ListWatch<K>) -> Self {
        Self::covering(Coverage::fixed(vec![Arc::new(source)]))
    }

    pub(crate) fn covering(coverage: Coverage<K>) -> Self {
        let (writer, store) = store::new();
        Self {
            coverage,
            name: None,
            options: InformerOptions::default(),
            transform: None,
            on_problem: None,
            writer,
            store,
            failure: None,
        }
    }

    /// Adds another source: one for each namespace makes one informer of a list of namespaces.
    pub fn source(mut self, source: impl ListWatch<K>) -> Self {
        self.coverage.fixed.push(Arc::new(source));
        self
    }

    /// What the informer is called in logs, metrics and errors. Default: what it lists.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Changes every object once before it is kept, for example to drop fields that are not needed.
    pub fn transform(mut self, transform: Transform<K>) -> Self {
        self.transform = Some(transform);
        self
    }

    /// Adds an index; see [`Store::add_index`].
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

    /// Calls this with every problem of listing and watching, and what is done about it. It should be quick.
    pub fn watch_error_handler(mut self, handler: impl Fn(&Problem, Remedy) + Send + Sync + 'static) -> Self {
        self.on_problem = Some(Arc::new(handler));
        self
    }

    informer_options!(options);

    /// The informer, ready to run.
    pub fn build(self) -> Result<SharedInformer<K>, BuildError> {
        self.check()?;
        let (plan, monitor) = self.into_parts();
        let inner = Inner {
            store: plan.writer.store(),
            #[cfg(feature = "controller")]
            #[cfg(feature = "controller")]
            coverage: plan.coverage.clone(),
            monitor: Arc::new(monitor),
            joining: Joining::new(),
            plan: Mutex::new(Some(plan)),
            stop: CancellationToken::new(),
            failure: OnceLock::new(),
        };
        Ok(SharedInformer { inner: Arc::new(inner) })
    }

    /// An informer that is not shared: it tells this handler alone, in the task that runs it.
    pub fn build_unshared<H: EventHandler<K>>(self, handler: H) -> Result<Informer<K, H>, BuildError> {
        self.check_unshared()?;
        Ok(Informer::of(self, handler))
    }

    /// Lists and watches, and hands batches of [`Delta`]s to a function. It has no store of its own: `known` is the one that
    /// the function maintains, if it does.
    pub fn build_processor<P, F>(
        self,
        known: Store<K>,
        process: P,
    ) -> Result<DeltaProcessor<K, P>, BuildError>
    where
        P: FnMut(Vec<Delta<K>>) -> F,
        F: Future<Output = Vec<Delta<K>>>,
    {
        self.check_unshared()?;
        Ok(DeltaProcessor::of(self, known, process))
    }

    /// Whether all that was chosen goes together.
    fn check(&self) -> Result<(), BuildError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.options.has_empty_pages() {
            return Err(BuildError::PageSize);
        }
        let sources = &self.coverage.fixed;
        for (at, second) in sources.iter().enumerate() {
            let overlaps = |first: &&Arc<dyn ListWatch<K>>| match (first.namespace(), second.namespace()) {
                (Some(one), Some(other)) => one == other,
                _ => true,
            };
            if let Some(first) = sources[..at].iter().find(overlaps) {
                let (first, second) = (first.description(), second.description());
                return Err(BuildError::Overlap { first, second });
            }
            if self.coverage.follows_namespaces() {
                let first = "the namespaces that are followed".to_owned();
                return Err(BuildError::Overlap { first, second: second.description() });
            }
        }
        Ok(())
    }

    /// The same for the forms that are not shared.
    fn check_unshared(&self) -> Result<(), BuildError> {
        if self.coverage.changes() {
            return Err(BuildError::Unshared);
        }
        self.check()
    }

    /// What every form of informer is made of.
    pub(crate) fn into_parts(self) -> (Plan<K>, Monitor) {
        let InformerOptions { resync, grace, queue, settings, metrics, seed } = self.options;
        let descriptions: Vec<String> =
            self.coverage.fixed.iter().map(|source| source.description()).collect();
        let name = self.name.unwrap_or_else(|| match descriptions.is_empty() {
            true => "objects of the namespaces that are followed".to_owned(),
            false => descriptions.join(", "),
        });
        let monitor =
            Monitor::new(name, descriptions).with_metrics(metrics).with_problem_handler(self.on_problem);
        let config = PipelineConfig { settings, seed, queue, transform: self.transform };
        (Plan { coverage: self.coverage, config, writer: self.writer, resync, grace }, monitor)
    }

    /// With all of these at once.
    pub(crate) fn with_options(mut self, options: InformerOptions) -> Self {
        self.options = options;
        self
    }
}
