//! What can be chosen about an election, and what cannot.

use std::{env, fs, sync::Arc, time::Duration};

use informer_model::{ObjectKey, is_dns_label, is_dns_subdomain};
use kube::{Api, Client};
use rand::Rng;
use rand_pcg::Pcg32;

use super::{
    LeaderElection, fence,
    machine::{JITTER, Machine, Settings},
    observer::Observer,
};
use crate::{
    CONTROLLER_GRACE,
    metrics::{self, Metrics, Probe},
};

/// What a controller takes, and a little for what ends with it.
const GRACE: Duration = CONTROLLER_GRACE.saturating_add(Duration::from_secs(5));

/// A Lease counts whole seconds, in 32 bits.
const LONGEST: Duration = Duration::from_secs(i32::MAX as u64);

/// Sets an election up.
#[derive(Clone)]
#[must_use]
pub struct LeaderElectionBuilder {
    client: Client,
    namespace: String,
    name: String,
    identity: Option<String>,
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
    release_on_stop: bool,
    grace: Duration,
    metrics: Option<Arc<dyn Metrics>>,
    seed: Option<u64>,
}

/// Why an election cannot be set up this way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionConfigError {
    /// The namespace is none.
    #[error(
        "{0:?} cannot be the namespace of a Lease; give one of up to 63 small letters, digits and dashes, such as the one that the program runs in"
    )]
    Namespace(String),
    /// The name is none.
    #[error(
        "{0:?} cannot be the name of a Lease; give one of up to 253 small letters, digits, dashes and dots"
    )]
    Name(String),
    /// The names do not fit into a fence's annotation.
    #[error(
        "the name and the namespace of the Lease have {0} characters together, too many for the annotation of a fence; choose a shorter name"
    )]
    LongName(usize),
    /// The identity is empty.
    #[error("the identity is empty; give each process a name of its own, or none to have one made up")]
    Identity,
    /// The lease duration is not a number of seconds.
    #[error(
        "a lease duration of {0:?} cannot be written into a Lease; give whole seconds, at least 1 and at most 2147483647"
    )]
    LeaseDuration(Duration),
    /// A leader could go on after another has begun.
    #[error(
        "the lease duration {lease_duration:?} must be longer than the renew deadline {renew_deadline:?}, so that a leader stops before another begins; make it half as long again"
    )]
    LeaseTooShort {
        /// The lease duration.
        lease_duration: Duration,
        /// The renew deadline.
        renew_deadline: Duration,
    },
    /// A leader could not try again.
    #[error(
        "the renew deadline {renew_deadline:?} must be longer than {JITTER} times the retry period {retry_period:?}, so that a leader can try again; make it several times as long"
    )]
    DeadlineTooShort {
        /// The renew deadline.
        renew_deadline: Duration,
        /// The retry period.
        retry_period: Duration,
    },
    /// The retry period is nothing.
    #[error("the retry period is zero, which would ask the server without a pause; give it 2 seconds or so")]
    RetryPeriod,
}

impl LeaderElectionBuilder {
    pub(super) fn new(client: Client, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            client,
            namespace: namespace.into(),
            name: name.into(),
            identity: None,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release_on_stop: true,
            grace: GRACE,
            metrics: None,
            seed: None,
        }
    }

    /// The name of this candidate, which others see in the Lease. Without one it is the host's name, in a cluster that of the
    /// pod, with something random behind it.
    ///
    /// It should be one of this process alone. Of two processes with the same name still only one leads, but a process
    /// that was restarted under its name has to wait until the Lease of the one before it is over.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// How long other candidates wait without seeing a change before they take the Lease: 15 seconds unless set here.
    ///
    /// The clocks of two machines may run differently, as long as none runs more than `lease_duration / renew_deadline`
    /// times as fast as another.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// How long a term lasts after its last renewal: 10 seconds unless set here.
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = deadline;
        self
    }

    /// How long to wait between two attempts: 2 seconds unless set here. Candidates wait for up to 1.2 times as long in
    /// addition, so that they do not come all at once.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = period;
        self
    }

    /// Whether the Lease is given back when the work has ended, so that another candidate need not wait until it is over:
    /// yes unless set here.
    pub fn release_on_stop(mut self, release: bool) -> Self {
        self.release_on_stop = release;
        self
    }

    /// How long the work may go on after `stop` to end by itself, before it is dropped: 25 seconds unless set here, which is
    /// more than the [`Controller`](crate::controller::Controller)'s own [grace](crate::controller::Controller::grace). The term is
    /// renewed meanwhile. Zero is for work that does not heed the `stop`.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Who can ask how the terms of this process go, under the name of the Lease.
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Decides all that is left to chance, for a test.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The election, which begins when it is run.
    pub fn build(self) -> Result<LeaderElection, ElectionConfigError> {
        let Self { namespace, name, lease_duration, renew_deadline, retry_period, .. } = self;
        if !is_dns_label(&namespace) {
            return Err(ElectionConfigError::Namespace(namespace));
        }
        if !is_dns_subdomain(&name) {
            return Err(ElectionConfigError::Name(name));
        }
        let long_name = ElectionConfigError::LongName(namespace.len() + name.len());
        let annotation = fence::annotation(&namespace, &name).ok_or(long_name)?;
        if lease_duration.is_zero() || lease_duration > LONGEST || lease_duration.subsec_nanos() != 0 {
            return Err(ElectionConfigError::LeaseDuration(lease_duration));
        }
        if lease_duration <= renew_deadline {
            return Err(ElectionConfigError::LeaseTooShort { lease_duration, renew_deadline });
        }
        if retry_period.is_zero() {
            return Err(ElectionConfigError::RetryPeriod);
        }
        if renew_deadline.as_secs_f64() <= retry_period.as_secs_f64() * JITTER {
            return Err(ElectionConfigError::DeadlineTooShort { renew_deadline, retry_period });
        }
        let mut chance = rand::make_rng::<Pcg32>();
        let identity = self.identity.unwrap_or_else(|| format!("{}_{:016x}", host(), chance.next_u64()));
        if identity.is_empty() {
            return Err(ElectionConfigError::Identity);
        }
        let release = self.release_on_stop;
        let lease = ObjectKey::new(Some(&namespace), &name).map_err(|_| ElectionConfigError::Name(name))?;
        let observer = Observer::new(lease.clone(), identity.clone(), retry_period);
        if let Some(metrics) = &self.metrics {
            let asked = observer.clone();
            let probe = Probe::new(move || Some(asked.stats()));
            metrics::guarded(lease.name(), || metrics.election(lease.name(), probe));
        }
        let settings = Settings { identity, lease_duration, renew_deadline, retry_period, release };
        let machine = Machine::new(settings, self.seed.unwrap_or_else(|| chance.next_u64()));
        let api = Api::namespaced(self.client, &namespace);
        Ok(LeaderElection { api, lease, annotation, machine, renew_deadline, observer, grace: self.grace })
    }
}

/// The name of the host, which is the pod's in a cluster.
fn host() -> String {
    let told = env::var("HOSTNAME").ok();
    let name = told.or_else(|| fs::read_to_string("/proc/sys/kernel/hostname").ok()).unwrap_or_default();
    match name.trim() {
        "" => "informer".to_owned(),
        name => name.to_owned(),
    }
}
