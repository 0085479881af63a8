//! A process: a runtime of its own with a clock of its own, so that it can be stopped for a while, or killed wherever it waits.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use informer::{model::ObjectKey, workqueue::WorkQueue};
use kube::Client;
use tokio::{
    runtime::{Builder, Runtime},
    task::{JoinHandle, yield_now},
    time::{Instant, advance, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    program::{self, Temper},
    terms::Terms,
    way::Way,
    world::World,
};

/// What is known of a process from outside.
pub(crate) struct Life {
    pub(crate) identity: String,
    /// When it began, on the clock of the world, and how fast its own clock runs.
    pub(crate) born: Duration,
    pub(crate) rate: f64,
    pub(crate) terms: Mutex<Terms>,
    pub(crate) queue: Mutex<Option<WorkQueue<ObjectKey>>>,
    /// The last answered write of each object.
    answered: Mutex<HashMap<(String, ObjectKey), Answered>>,
    clock: Mutex<Clock>,
}

#[derive(Debug, Clone)]
pub(crate) enum Answered {
    Version(u64),
    Gone(String),
}

/// When its own clock began, and the last time that it stood still: what it said before, and where it was after that.
#[derive(Default)]
struct Clock {
    began: Option<Instant>,
    jump: Option<(Instant, Duration)>,
}

impl Life {
    /// How long it has run, by its own clock.
    pub(crate) fn now(&self) -> Duration {
        self.clock.lock().unwrap().began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// The same for what is sent. What was decided before the process was stopped is sent right after it.
    pub(crate) fn decided(&self) -> Duration {
        let now = self.now();
        match self.clock.lock().unwrap().jump {
            Some((to, before)) if Instant::now() == to => before,
            _ => now,
        }
    }

    /// What its clock says at a moment of the world.
    pub(crate) fn locally(&self, global: Duration) -> Duration {
        global.saturating_sub(self.born).mul_f64(self.rate)
    }

    /// A moment of its clock on that of the world.
    pub(crate) fn globally(&self, local: Duration) -> Duration {
        self.born + local.div_f64(self.rate)
    }

    pub(crate) fn answered(&self, plural: &str, key: ObjectKey, answered: Answered) {
        self.answered.lock().unwrap().insert((plural.to_owned(), key), answered);
    }

    /// Whether the caches show what calls for a key have written, for lives in which nobody else writes.
    pub(crate) fn check_fresh(
        &self,
        world: &World,
        key: &ObjectKey,
        cached: impl Fn(&str, &ObjectKey) -> Option<(String, String)>,
    ) {
        if !world.is_calm() {
            return;
        }
        let about = |other: &ObjectKey| other == key || other.name().starts_with(&format!("{}-", key.name()));
        for ((plural, other), answered) in self.answered.lock().unwrap().iter() {
            if !about(other) {
                continue;
            }
            let cached = cached(plural, other);
            let stale = match (answered, &cached) {
                // It may be gone by now.
                (Answered::Version(_), None) => world.get(plural, other).is_some(),
                (Answered::Version(wrote), Some((version, _))) => version.parse::<u64>().unwrap() < *wrote,
                (Answered::Gone(_), None) => false,
                (Answered::Gone(gone), Some((_, uid))) => uid == gone,
            };
            if stale {
                world.wrong(format!(
                    "{}: a call for {key} finds {cached:?} of {plural} {other} after {answered:?}",
                    self.identity
                ));
            }
        }
    }
}

pub(crate) struct Process {
    pub(crate) life: Arc<Life>,
    pub(crate) way: Way,
    runtime: Runtime,
    main: JoinHandle<()>,
    pub(crate) stop: CancellationToken,
    /// Until when it stands still.
    pub(crate) paused: Option<Duration>,
}

impl Process {
    pub(crate) fn start(world: &Arc<World>, temper: Temper, rate: f64) -> Self {
        // Whoever runs it has a turn after each task.
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).event_interval(1).build();
        let runtime = runtime.unwrap();
        let life = Arc::new(Life {
            identity: temper.identity.clone(),
            born: world.now(),
            rate,
            terms: Mutex::default(),
            queue: Mutex::default(),
            answered: Mutex::default(),
            clock: Mutex::default(),
        });
        let (way, stop) = (Way::new(world, &life, temper.seed), CancellationToken::new());
        let (taken, known, stopping, clock) =
            (way.clone(), Arc::clone(&life), stop.clone(), Arc::clone(&life));
        let world = Arc::clone(world);
        let main = runtime.spawn(async move {
            let client = Client::new(taken, "default");
            program::run(client, temper, world, known, stopping).await;
        });
        runtime.block_on(async { clock.clock.lock().unwrap().began = Some(Instant::now()) });
        Self { life, way, runtime, main, stop, paused: None }
    }

    /// Lets it run until a moment of the world.
    pub(crate) fn run(&self, until: Duration) {
        let (began, until) = (self.life.clock.lock().unwrap().began, self.life.locally(until));
        let began = began.expect("it has begun");
        self.runtime.block_on(async { sleep_until(began + until).await });
    }

    /// Lets so many of its tasks run, in no time.
    pub(crate) fn step(&self, tasks: u32) {
        self.runtime.block_on(async {
            for _ in 0..tasks {
                yield_now().await;
            }
        });
    }

    /// It runs again. Its clock has not stood still.
    pub(crate) fn resume(&mut self, now: Duration) {
        self.paused = None;
        let (life, now) = (Arc::clone(&self.life), self.life.locally(now));
        self.runtime.block_on(async {
            let before = life.now();
            let slept = now.saturating_sub(before);
            life.clock.lock().unwrap().jump = Some((Instant::now() + slept, before));
            advance(slept).await;
        });
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.main.is_finished()
    }

    pub(crate) fn tasks(&self) -> usize {
        self.runtime.metrics().num_alive_tasks()
    }

    /// Nothing of it runs any more.
    pub(crate) fn kill(self) {
        self.life.terms.lock().unwrap().die();
    }
}
