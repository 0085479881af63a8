//! How a program is doing: for probes, and for people.

#[cfg(feature = "leader")]
use std::time::Duration;
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::Caches;
#[cfg(feature = "leader")]
use crate::leader::Observer;
use crate::{controller::ControllerObserver, health::Life, panic_message};

/// How long a term may be over before a leader that has not noticed should be started anew: as long as in Kubernetes' own components.
#[cfg(feature = "leader")]
const OVERDUE: Duration = Duration::from_secs(20);

/// Looks at a program while its [`Manager`](super::Manager) runs. It is cheap to clone (an `Arc`).
#[derive(Clone)]
pub struct ManagerObserver(Arc<Known>);

/// What a probe asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Healthy,
    Ready,
}

/// What is known of the parts.
#[derive(Default)]
pub(super) struct Known(Mutex<State>);

struct State {
    life: Life,
    caches: Vec<Arc<dyn Caches>>,
    controllers: Vec<ControllerObserver>,
    #[cfg(feature = "leader")]
    election: Option<Observer>,
    checks: Vec<(Question, String, Arc<Check>)>,
}

type Check = dyn Fn() -> Result<(), String> + Send + Sync;

impl Default for State {
    fn default() -> Self {
        Self {
            life: Life::NotStarted,
            caches: Vec::new(),
            controllers: Vec::new(),
            #[cfg(feature = "leader")]
            election: None,
            checks: Vec::new(),
        }
    }
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn caches(&self, caches: Arc<dyn Caches>) {
        self.lock().caches.push(caches);
    }

    pub(super) fn controller(&self, observer: ControllerObserver) {
        self.lock().controllers.push(observer);
    }

    #[cfg(feature = "leader")]
    pub(super) fn election(&self, observer: Observer) {
        self.lock().election = Some(observer);
    }

    pub(super) fn check<E: fmt::Display>(
        &self,
        question: Question,
        name: String,
        check: impl Fn() -> Result<(), E> + Send + Sync + 'static,
    ) {
        let check = move || check().map_err(|error| error.to_string());
        self.lock().checks.push((question, name, Arc::new(check)));
    }

    /// The manager runs until this is dropped, or the stop comes.
    pub(super) fn run(self: &Arc<Self>) -> Ready {
        self.lock().life = Life::Running;
        Ready(Arc::clone(self))
    }
}

pub(super) struct Ready(Arc<Known>);

impl Drop for Ready {
    fn drop(&mut self) {
        self.0.lock().life = Life::Stopped;
    }
}

impl ManagerObserver {
    pub(super) fn new(known: Arc<Known>) -> Self {
        Self(known)
    }

    /// Whether the process should go on, which is what a liveness probe asks. It should not if an informer has panicked, if it has not noticed for 20
    /// seconds that its term is over, or if a [check](super::Manager::health_check) fails. Slow calls of controllers are named, and harm nothing.
    pub fn health(&self) -> HealthReport {
        let mut report = HealthReport { question: "healthz", checks: Vec::new() };
        for (name, health) in self.informers() {
            let result = if health.life == Life::Failed { Err(()) } else { Ok(()) };
            report.note(name, health, result);
        }
        #[cfg(feature = "leader")]
        if let Some(election) = self.0.lock().election.clone() {
            let health = election.health();
            match election.check(OVERDUE) {
                Ok(()) => report.note("leader election".to_owned(), health, Ok(())),
                Err(overdue) => report.note("leader election".to_owned(), overdue, Err(())),
            }
        }
        let controllers = self.0.lock().controllers.clone();
        for health in controllers.iter().map(ControllerObserver::health) {
            report.note(format!("controller {}", health.controller), health, Ok(()));
        }
        self.ask(Question::Healthy, &mut report);
        report
    }

    /// Whether the process can be given work, which is what a readiness probe asks: the manager runs, the caches are complete, and no
    /// [check](super::Manager::ready_check) fails. A candidate is ready too. Caches of one of several [clusters](crate::clusters) are named only: a cluster that
    /// is lost harms no other.
    pub fn ready(&self) -> HealthReport {
        let mut report = HealthReport { question: "readyz", checks: Vec::new() };
        let (words, runs) = match self.0.lock().life {
            Life::Running => ("runs", Ok(())),
            Life::NotStarted => ("has not started", Err(())),
            Life::Stopped | Life::Failed => ("has been told to stop", Err(())),
        };
        report.note("manager".to_owned(), words, runs);
        for (name, health) in self.informers() {
            let waits = health.life == Life::Running && !health.synced && !name.starts_with(OF_CLUSTER);
            report.note(name, health, if waits { Err(()) } else { Ok(()) });
        }
        self.ask(Question::Ready, &mut report);
        report
    }

    fn informers(&self) -> Vec<(String, crate::Health)> {
        let caches = self.0.lock().caches.clone();
        let all = caches.iter().flat_map(|caches| caches.health());
        all.map(|(cluster, health)| {
            let name = match cluster {
                Some(cluster) => format!("{OF_CLUSTER} {cluster}: {}", health.informer),
                None => format!("cache {}", health.informer),
            };
            (name, health)
        })
        .collect()
    }

    /// Asks what a program has added.
    fn ask(&self, question: Question, report: &mut HealthReport) {
        let checks = self.0.lock().checks.clone();
        for (_, name, check) in checks.into_iter().filter(|(asked, ..)| *asked == question) {
            let result = catch_unwind(AssertUnwindSafe(|| check()));
            match result.unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_message(&*panic)))) {
                Ok(()) => report.checks.push((name, Ok(String::new()))),
                Err(error) => report.checks.push((name, Err(error))),
            }
        }
    }
}

/// How the caches of one of several clusters are called.
const OF_CLUSTER: &str = "cluster";

impl fmt::Debug for ManagerObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManagerObserver({})", self.ready())
    }
}

/// What several checks say. Printed, it is what Kubernetes' own components answer to `?verbose`, with reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthReport {
    question: &'static str,
    checks: Vec<(String, Result<String, String>)>,
}

impl HealthReport {
    fn note(&mut self, name: String, words: impl fmt::Display, result: Result<(), ()>) {
        let words = words.to_string();
        self.checks.push((name, result.map(|()| words.clone()).map_err(|()| words)));
    }

    /// Whether no check fails.
    pub fn is_ok(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The checks that fail, by name, and why.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.checks.iter().filter_map(|(name, result)| Some((name.as_str(), result.as_ref().err()?.as_str())))
    }
}

impl fmt::Display for HealthReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, result) in &self.checks {
            match result {
                Ok(words) if words.is_empty() => writeln!(f, "[+]{name} ok")?,
                Ok(words) => writeln!(f, "[+]{name} ok: {words}")?,
                Err(reason) => writeln!(f, "[-]{name} failed: {reason}")?,
            }
        }
        write!(f, "{} check {}", self.question, if self.is_ok() { "passed" } else { "failed" })
    }
}
