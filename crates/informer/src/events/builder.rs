//! What can be chosen about a recorder.

use std::sync::Arc;

use informer_model::{LabelError, validate_label_key};
use kube::Client;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::{Delivery, Limits, Recorder, delivery::Post};
use crate::{
    backoff::Backoff,
    metrics::{self, Metrics, Probe},
};

/// The most bytes of an instance's name that the API takes.
const INSTANCE: usize = 128;

/// Builds a [`Recorder`]. Every option has a default that is right for most.
pub struct RecorderBuilder {
    client: Client,
    controller: String,
    instance: Option<String>,
    limits: Limits,
    backoff: Backoff,
    metrics: Option<Arc<dyn Metrics>>,
    seed: Option<u64>,
}

/// Why a recorder cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecorderBuildError {
    /// The API would take no event of a controller of this name.
    #[error(
        "{name:?} cannot be the name of a controller, which is like a label key, `example.com/websites`: {error}"
    )]
    Controller {
        /// The name.
        name: String,
        /// What is wrong with it.
        error: LabelError,
    },
    /// The API would take no event of an instance of this name.
    #[error("the name of an instance has 1 to 128 bytes, and {name:?} has {}", name.len())]
    Instance {
        /// The name.
        name: String,
    },
    /// With this limit at zero, nothing would ever be sent.
    #[error("the limit `{limit}` must be at least 1")]
    Zero {
        /// Its name in [`Limits`].
        limit: &'static str,
    },
}

impl RecorderBuilder {
    pub(super) fn new(client: Client, controller: String) -> Self {
        let (limits, backoff) = (Limits::default(), Backoff::default());
        Self { client, controller, instance: None, limits, backoff, metrics: None, seed: None }
    }

    /// Which of several programs that do the same this is. Default: `$HOSTNAME`, which is the name of the pod in a cluster, and
    /// without that the name of the controller.
    #[must_use]
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = Some(name.into());
        self
    }

    /// How much is sent and kept.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The delays after failures.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Who can ask what became of the events, under the name of the controller.
    #[must_use]
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Lets the seed decide all that is left to chance, so that a run can be repeated.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The recorder, and what sends its events.
    pub fn build(self) -> Result<(Recorder, Delivery), RecorderBuildError> {
        let Self { client, controller, instance, limits, backoff, metrics, seed } = self;
        if let Err((_, error)) = validate_label_key(&controller) {
            return Err(RecorderBuildError::Controller { name: controller, error });
        }
        let fits = |name: &String| (1..=INSTANCE).contains(&name.len());
        let instance = match instance {
            Some(name) if fits(&name) => name,
            Some(name) => return Err(RecorderBuildError::Instance { name }),
            // A controller's name may be longer than that of an instance.
            None => {
                let host = std::env::var("HOSTNAME").ok().filter(fits);
                host.unwrap_or_else(|| controller.chars().take(INSTANCE).collect())
            }
        };
        let limits = limits.checked()?;
        let seed = seed.unwrap_or_else(|| rand::make_rng::<Pcg32>().next_u64());
        let recorder = Recorder::new(controller.clone(), limits);
        if let Some(metrics) = &metrics {
            let asked = recorder.clone();
            let probe = Probe::new(move || Some(asked.stats()));
            metrics::guarded(&controller, || metrics.recorder(&controller, probe));
        }
        let post = Post::new(client, controller, instance, limits.tries, backoff, Pcg32::seed_from_u64(seed));
        let delivery = Delivery::new(recorder.clone(), post, limits.drain);
        Ok((recorder, delivery))
    }
}
