//! What a controller is doing, for a person.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::health::{Ago, Life};

/// A call that takes longer than this is slow.
const SLOW: Duration = Duration::from_secs(60);

/// Looks at a controller while it runs; see [`Controller::observer`](super::Controller::observer). It is cheap to clone (an `Arc`).
#[derive(Clone)]
pub struct ControllerObserver(Arc<Shared>);

struct Shared {
    controller: String,
    state: Mutex<State>,
}

struct State {
    life: Life,
    synced: bool,
    slow_after: Duration,
    began: u64,
    /// The calls that run, in the order of their beginning.
    calls: BTreeMap<u64, (String, Instant)>,
}

/// The state of a controller at one moment. Printed, it is a line that a person can read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControllerHealth {
    /// Its name.
    pub controller: String,
    /// Whether it runs.
    pub life: Life,
    /// Whether its caches are complete.
    pub synced: bool,
    /// How many calls run.
    pub calls: usize,
    /// The calls that take too long: each with its key, and for how long, the longest first.
    pub slow: Vec<(String, Duration)>,
}

impl ControllerObserver {
    pub(super) fn new(controller: &str) -> Self {
        let state = State {
            life: Life::NotStarted,
            synced: false,
            slow_after: SLOW,
            began: 0,
            calls: BTreeMap::new(),
        };
        Self(Arc::new(Shared { controller: controller.to_owned(), state: Mutex::new(state) }))
    }

    /// What the controller is doing.
    pub fn health(&self) -> ControllerHealth {
        let state = self.lock();
        let slow = state.calls.values().map(|(key, began)| (key, began.elapsed()));
        let slow = slow.filter(|(_, lasting)| *lasting > state.slow_after);
        ControllerHealth {
            controller: self.0.controller.clone(),
            life: state.life,
            synced: state.synced,
            calls: state.calls.len(),
            slow: slow.map(|(key, lasting)| (key.clone(), lasting)).collect(),
        }
    }

    pub(super) fn slow_after(&self, time: Duration) {
        self.lock().slow_after = time;
    }

    /// The controller runs until this is dropped.
    pub(super) fn run(&self) -> Run {
        self.lock().life = Life::Running;
        Run(self.clone())
    }

    pub(super) fn synced(&self) {
        self.lock().synced = true;
    }

    /// A call runs until this is dropped.
    pub(super) fn call(&self, key: &impl fmt::Debug) -> Call<'_> {
        let mut state = self.lock();
        state.began += 1;
        let nth = state.began;
        state.calls.insert(nth, (format!("{key:?}"), Instant::now()));
        Call(self, nth)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Run(ControllerObserver);

impl Drop for Run {
    fn drop(&mut self) {
        self.0.lock().life = Life::Stopped;
    }
}

pub(super) struct Call<'a>(&'a ControllerObserver, u64);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.lock().calls.remove(&self.1);
    }
}

impl ControllerHealth {
    /// Whether it runs, its caches are complete, and no call takes too long.
    pub fn is_healthy(&self) -> bool {
        self.life == Life::Running && self.synced && self.slow.is_empty()
    }
}

impl fmt::Display for ControllerHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller, life, synced, calls, slow } = self;
        match life {
            Life::NotStarted => return write!(f, "controller {controller}: not started"),
            Life::Running if !synced => return write!(f, "controller {controller}: waits for its caches"),
            Life::Running => write!(f, "controller {controller}: {calls} calls")?,
            Life::Stopped | Life::Failed => write!(f, "controller {controller}: stopped")?,
        }
        for (key, lasting) in slow {
            write!(f, "; the call for {key} has been running for {}", Ago(*lasting))?;
        }
        Ok(())
    }
}

impl fmt::Debug for ControllerObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ControllerObserver({})", self.health())
    }
}
