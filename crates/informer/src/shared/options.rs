//! What can be chosen of every informer, whatever its objects are: of one by itself, and of all those of a factory.

use std::{sync::Arc, time::Duration};

use crate::{metrics::Metrics, queue::QueueKind, reflector::ReflectorSettings};

/// How long is waited after a stop by default.
const GRACE: Duration = Duration::from_secs(30);
/// Who could end at once needs a moment to do so.
pub(crate) const LEAST_GRACE: Duration = Duration::from_millis(100);

/// The options, with defaults that are right for most.
#[derive(Clone)]
pub(crate) struct InformerOptions {
    pub(crate) resync: Duration,
    pub(crate) grace: Duration,
    pub(crate) queue: QueueKind,
    pub(crate) settings: ReflectorSettings,
    pub(crate) metrics: Option<Arc<dyn Metrics>>,
    pub(crate) seed: Option<u64>,
}

impl Default for InformerOptions {
    fn default() -> Self {
        Self {
            resync: Duration::ZERO,
            grace: GRACE,
            queue: QueueKind::default(),
            settings: ReflectorSettings::default(),
            metrics: None,
            seed: None,
        }
    }
}

impl InformerOptions {
    /// A page of no objects never ends.
    pub(crate) fn has_empty_pages(&self) -> bool {
        self.settings.page_size == Some(0)
    }
}

/// The methods of a builder that set the [`InformerOptions`] in it.
macro_rules! informer_options {
    ($($options:ident).+) => {
        /// How often handlers are shown everything again that have no period of their own. Zero, the default, is never;
        /// any other period counts as one between a second and thirty years.
        pub fn resync(mut self, period: Duration) -> Self {
            self.$($options).+.resync = period;
            self
        }

        /// How long handlers may go on after the stop with what they are doing; see
        /// [`SharedInformer::run`](crate::SharedInformer::run). Default: 30 seconds; at least 100 milliseconds. Half of it is
        /// for handlers alone: a reflector is waited for no longer than the other half.
        pub fn grace(mut self, grace: Duration) -> Self {
            self.$($options).+.grace = grace.max(crate::shared::options::LEAST_GRACE);
            self
        }

        /// In which order changes reach the cache.
        pub fn queue(mut self, kind: QueueKind) -> Self {
            self.$($options).+.queue = kind;
            self
        }

        /// The most objects in one page of a list.
        pub fn page_size(mut self, objects: u32) -> Self {
            self.$($options).+.settings.page_size = Some(objects);
            self
        }

        /// The delays after failures.
        pub fn backoff(mut self, backoff: Backoff) -> Self {
            self.$($options).+.settings.backoff = backoff;
            self
        }

        /// Whether lists are taken as streams where the server can do that. Default: yes.
        pub fn streaming(mut self, streaming: bool) -> Self {
            self.$($options).+.settings.streaming = streaming;
            self
        }

        /// Changes anything about listing and watching: `.settings(|settings| settings.probe_period = None)`.
        pub fn settings(mut self, change: impl FnOnce(&mut ReflectorSettings)) -> Self {
            change(&mut self.$($options).+.settings);
            self
        }

        /// Lets the seed decide all that is left to chance in listing and watching, so that a run can be repeated.
        pub fn seed(mut self, seed: u64) -> Self {
            self.$($options).+.seed = Some(seed);
            self
        }

        /// Where measurements go.
        pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
            self.$($options).+.metrics = Some(metrics);
            self
        }
    };
}
pub(crate) use informer_options;
