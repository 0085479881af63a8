//! What an informer's parts note about themselves, in one place: for `health()`, the log and the metrics.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use informer_model::ResourceVersion;
use tokio::{sync::watch, time::Instant};

use crate::{
    health::{Health, Life, SourceHealth, SyncError, Trouble},
    metrics::{self, Measurement, Metrics},
    panic_message,
    reflector::{Phase, Problem, Remedy},
    source::Unusable,
    trace::Heard,
};

/// Told of every problem of a round, as it happens.
pub(crate) type ProblemHandler = Arc<dyn Fn(&Problem, Remedy) + Send + Sync>;

pub(crate) struct Monitor {
    name: String,
    metrics: Option<Arc<dyn Metrics>>,
    on_problem: Option<ProblemHandler>,
    heard: Heard,
    /// What the whole informer is up to, for those who wait for a change of it.
    progress: watch::Sender<Progress>,
    state: Mutex<State>,
    /// Whether `state` may have any trouble, or anything in quarantine. It is asked for every event, which then needs no lock;
    /// who asks has noted what is amiss itself, so the order of other memory does not matter.
    amiss: AtomicBool,
}

/// How far the informer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) life: Life,
    pub(crate) synced: bool,
}

struct State {
    /// Each by its number, which no other one has after it.
    pipelines: BTreeMap<usize, Pipeline>,
    /// Why there is nothing to list, in words.
    absent: Option<Arc<str>>,
    /// What cannot be used, by the pipeline it came from and its name.
    quarantine: BTreeMap<(usize, String), Unusable>,
    started: Option<Instant>,
    /// The newest version that the server is known to have, and since when.
    server: Option<(ResourceVersion, Instant)>,
}

impl State {
    fn is_amiss(&self) -> bool {
        !self.quarantine.is_empty() || self.pipelines.values().any(|pipeline| pipeline.trouble.is_some())
    }

    fn saw(&mut self, version: &ResourceVersion, now: Instant) {
        if self.server.as_ref().is_none_or(|(known, _)| version >= known) {
            self.server = Some((version.clone(), now));
        }
    }
}

struct Pipeline {
    description: String,
    phase: Phase,
    since: Instant,
    version: ResourceVersion,
    received: usize,
    trouble: Option<Noted>,
    last_trouble: Option<Noted>,
}

struct Noted {
    problem: Problem,
    /// Whether a watch was among what went wrong: then a list does not show that it is over.
    of_watch: bool,
    remedy: Remedy,
    times: u64,
    began: Instant,
    last: Instant,
}

impl Noted {
    fn told(&self) -> Trouble {
        Trouble {
            problem: self.problem.clone(),
            remedy: self.remedy,
            times: self.times,
            began: self.began.elapsed(),
            last: self.last.elapsed(),
        }
    }
}

impl Pipeline {
    fn new(description: String) -> Self {
        Self {
            description,
            phase: Phase::Idle,
            since: Instant::now(),
            version: ResourceVersion::UNSET,
            received: 0,
            trouble: None,
            last_trouble: None,
        }
    }
}

impl Monitor {
    pub(crate) fn new(name: String, descriptions: Vec<String>) -> Self {
        let pipelines = descriptions.into_iter().map(Pipeline::new).enumerate().collect();
        Self {
            name,
            metrics: None,
            on_problem: None,
            heard: Heard::default(),
            progress: watch::Sender::new(Progress { life: Life::NotStarted, synced: false }),
            state: Mutex::new(State {
                pipelines,
                absent: None,
                quarantine: BTreeMap::new(),
                started: None,
                server: None,
            }),
            amiss: AtomicBool::new(false),
        }
    }

    pub(crate) fn with_metrics(mut self, metrics: Option<Arc<dyn Metrics>>) -> Self {
        self.metrics = metrics;
        self
    }

    pub(crate) fn with_problem_handler(mut self, handler: Option<ProblemHandler>) -> Self {
        self.on_problem = handler;
        self
    }

    /// The changes that are on their way to the cache, if anybody wants to hear of them.
    pub(crate) fn heard(&self) -> &Heard {
        &self.heard
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn metrics(&self) -> Option<&Arc<dyn Metrics>> {
        self.metrics.as_ref()
    }

    pub(crate) fn measure(&self, measurement: Measurement<'_>) {
        if let Some(metrics) = &self.metrics {
            metrics::guarded(&self.name, || metrics.record(&self.name, measurement));
        }
    }

    // The informer as a whole

    /// Notes that the informer begins, unless it did before.
    pub(crate) fn start(&self) -> Result<(), Life> {
        let mut before = Life::NotStarted;
        self.progress.send_if_modified(|progress| {
            before = progress.life;
            if before == Life::NotStarted {
                progress.life = Life::Running;
            }
            before == Life::NotStarted
        });
        if before != Life::NotStarted {
            return Err(before);
        }
        let mut state = self.lock();
        state.started = Some(Instant::now());
        // Which pipelines there are is for the informer to say now.
        state.pipelines.clear();
        drop(state);
        tracing::debug!(informer = self.name, "started");
        Ok(())
    }

    pub(crate) fn synced(&self, objects: usize) {
        let took = self.lock().started.map(|started| started.elapsed()).unwrap_or_default();
        self.progress.send_modify(|progress| progress.synced = true);
        self.measure(Measurement::Synced { took });
        tracing::info!(informer = self.name, objects, ?took, "synced");
    }

    pub(crate) fn stop(&self) {
        self.progress.send_modify(|progress| progress.life = Life::Stopped);
        self.measure(Measurement::Stopped);
        tracing::debug!(informer = self.name, "stopped");
    }

    pub(crate) fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// Waits until the first list is in the cache, which has so many objects.
    pub(crate) async fn wait_until_synced(
        &self,
        within: Duration,
        objects: impl Fn() -> usize,
    ) -> Result<(), SyncError> {
        let mut progress = self.progress.subscribe();
        let decided = progress.wait_for(|progress| progress.synced || progress.life == Life::Stopped);
        let Ok(decided) = tokio::time::timeout(within, decided).await else {
            let health = Box::new(self.health(objects()));
            return Err(SyncError::Deadline { waited: within, health });
        };
        if decided.is_ok_and(|progress| progress.synced) {
            Ok(())
        } else {
            Err(SyncError::Stopped { informer: self.name.clone() })
        }
    }

    /// Waits until the informer has stopped.
    pub(crate) async fn wait_until_stopped(&self) {
        // The sender is in `self`, so this ends only with the informer.
        let _ = self.progress.subscribe().wait_for(|progress| progress.life == Life::Stopped).await;
    }

    // Its reflectors

    /// Notes that there is a pipeline of this number now.
    pub(crate) fn join(&self, pipeline: usize, description: String) {
        self.lock().pipelines.insert(pipeline, Pipeline::new(description));
    }

    /// Forgets a pipeline. What its reflector still notes while it ends is not heard.
    pub(crate) fn leave(&self, pipeline: usize) {
        let mut state = self.lock();
        state.pipelines.remove(&pipeline);
        let known = state.quarantine.len();
        state.quarantine.retain(|(from, _), _| *from != pipeline);
        let count = state.quarantine.len();
        drop(state);
        if count != known {
            self.measure(Measurement::Quarantined(count));
        }
    }

    /// Notes why there is nothing to list, or that there is.
    pub(crate) fn absent(&self, why: Option<Arc<str>>) {
        let mut state = self.lock();
        if state.absent != why {
            match why.as_deref() {
                Some(why) => tracing::info!(informer = self.name, why, "has nothing to list"),
                None => tracing::info!(informer = self.name, "has something to list"),
            }
            state.absent = why;
        }
    }

    /// Notes what a pipeline is doing now, the version that it has reached, and how much it has of a list in the making.
    pub(crate) fn phase(
        &self,
        pipeline: usize,
        phase: Phase,
        version: &ResourceVersion,
        received: usize,
        now: Instant,
    ) {
        let mut state = self.lock();
        let Some(pipeline) = state.pipelines.get_mut(&pipeline) else { return };
        if pipeline.phase != phase {
            (pipeline.phase, pipeline.since) = (phase, now);
            tracing::debug!(informer = self.name, source = pipeline.description, ?phase, "goes on");
        }
        pipeline.received = received;
        if pipeline.version != *version {
            pipeline.version = version.clone();
            state.saw(version, now);
        }
    }

    /// Notes which version the server has.
    pub(crate) fn saw(&self, version: &ResourceVersion) {
        self.lock().saw(version, Instant::now());
    }

    /// How long ago any pipeline heard that the server has this version or a later one, if none has heard since that it went
    /// back in time.
    pub(crate) fn vouches(&self, version: &ResourceVersion) -> Option<Duration> {
        let state = self.lock();
        let (_, heard) = state.server.as_ref().filter(|(known, _)| known >= version)?;
        (state.pipelines.len() > 1).then(|| heard.elapsed())
    }

    /// The version that a pipeline has reached.
    pub(crate) fn version(&self, pipeline: usize) -> ResourceVersion {
        self.lock().pipelines.get(&pipeline).map(|pipeline| pipeline.version.clone()).unwrap_or_default()
    }

    /// Notes a problem. The log gets a line when the state changes, not for every repetition.
    pub(crate) fn problem(&self, pipeline: usize, problem: Problem, remedy: Remedy) {
        if let Some(tell) = &self.on_problem {
            let told = catch_unwind(AssertUnwindSafe(|| tell(&problem, remedy)));
            if let Err(panic) = told {
                let message = panic_message(&*panic);
                tracing::error!(informer = self.name, message, "the watch-error handler panicked");
            }
        }
        let now = Instant::now();
        let mut state = self.lock();
        self.amiss.store(true, Relaxed);
        if matches!(problem, Problem::Rewound { .. }) {
            state.server = None;
        }
        let Some(pipeline) = state.pipelines.get_mut(&pipeline) else { return };
        // A watch that goes on at once, or a question that was not answered, is no change of state.
        let harmless = matches!(remedy, Remedy::GoOn) || remedy == Remedy::Rewatch(Duration::ZERO);
        let news = pipeline.trouble.as_ref().is_none_or(|known| known.problem.cause() != problem.cause());
        if let Problem::VersionStuck { .. } = problem {
            // All works, but for a check that nobody would miss before it is needed. It comes here once.
            let source = &pipeline.description;
            tracing::warn!(informer = self.name, source, %problem, "a restored backup would not be noticed");
        } else if news && !harmless {
            let advice = problem.advice();
            tracing::warn!(informer = self.name, source = pipeline.description, %problem, %remedy, advice, "in trouble");
        } else {
            tracing::debug!(informer = self.name, source = pipeline.description, %problem, %remedy, "a problem");
        }
        let of_watch = problem.is_of_watch();
        let fresh = Noted { problem, of_watch, remedy, times: 1, began: now, last: now };
        match &mut pipeline.trouble {
            None if harmless => pipeline.last_trouble = Some(fresh),
            Some(_) if harmless => {}
            Some(known) => {
                (known.problem, known.remedy, known.last) = (fresh.problem, remedy, now);
                known.of_watch |= of_watch;
                known.times += 1;
            }
            none => *none = Some(fresh),
        }
    }

    /// Notes that a list is complete. If lists were what went wrong, the source works again.
    pub(crate) fn listed(&self, pipeline: usize) {
        self.over(pipeline, |trouble| !trouble.of_watch);
    }

    /// Notes that a source works again.
    pub(crate) fn recovered(&self, pipeline: usize) {
        self.over(pipeline, |_| true);
    }

    fn over(&self, pipeline: usize, is_over: impl FnOnce(&mut Noted) -> bool) {
        if !self.amiss.load(Relaxed) {
            return;
        }
        let mut state = self.lock();
        let trouble =
            state.pipelines.get_mut(&pipeline).and_then(|pipeline| pipeline.trouble.take_if(is_over));
        self.amiss.store(state.is_amiss(), Relaxed);
        let Some(pipeline) = state.pipelines.get_mut(&pipeline) else { return };
        if let Some(trouble) = trouble {
            let lasted = trouble.began.elapsed();
            let (name, source, times) = (&self.name, &pipeline.description, trouble.times);
            tracing::info!(informer = name, source, times, ?lasted, "works again");
            pipeline.last_trouble = Some(trouble);
        }
    }

    // What cannot be used

    pub(crate) fn quarantine(&self, pipeline: usize, unusable: Unusable) {
        self.warn_of(&unusable);
        let mut state = self.lock();
        if !state.pipelines.contains_key(&pipeline) {
            return;
        }
        self.amiss.store(true, Relaxed);
        state.quarantine.insert((pipeline, unusable.name.clone()), unusable);
        let count = state.quarantine.len();
        drop(state);
        self.measure(Measurement::Quarantined(count));
    }

    /// Notes what a list has that cannot be used; everything else from that source can.
    pub(crate) fn quarantine_list(&self, pipeline: usize, unusable: Vec<Unusable>) {
        let mut state = self.lock();
        if unusable.is_empty() && state.quarantine.is_empty() || !state.pipelines.contains_key(&pipeline) {
            return;
        }
        self.amiss.store(true, Relaxed);
        let known = std::mem::take(&mut state.quarantine);
        let (before, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            known.into_iter().partition(|((from, _), _)| *from == pipeline);
        state.quarantine = others;
        for one in unusable {
            if before.get(&(pipeline, one.name.clone())).is_none_or(|known| known.error != one.error) {
                self.warn_of(&one);
            }
            state.quarantine.insert((pipeline, one.name.clone()), one);
        }
        let count = state.quarantine.len();
        drop(state);
        self.measure(Measurement::Quarantined(count));
    }

    /// An object is usable again, or gone.
    pub(crate) fn release(&self, pipeline: usize, name: &str) {
        if !self.amiss.load(Relaxed) {
            return;
        }
        let mut state = self.lock();
        if state.quarantine.is_empty() {
            return;
        }
        if state.quarantine.remove(&(pipeline, name.to_owned())).is_some() {
            let count = state.quarantine.len();
            drop(state);
            self.measure(Measurement::Quarantined(count));
        }
    }

    pub(crate) fn quarantined(&self) -> Vec<Unusable> {
        self.lock().quarantine.values().cloned().collect()
    }

    fn warn_of(&self, unusable: &Unusable) {
        let Unusable { name, error, .. } = unusable;
        tracing::warn!(informer = self.name, object = name, error, "quarantined: it cannot be used");
    }

    pub(crate) fn health(&self, objects: usize) -> Health {
        let Progress { life, synced } = self.progress();
        let state = self.lock();
        let source = |pipeline: &Pipeline| SourceHealth {
            description: pipeline.description.clone(),
            phase: pipeline.phase,
            lasting: pipeline.since.elapsed(),
            version: pipeline.version.clone(),
            received: pipeline.received,
            trouble: pipeline.trouble.as_ref().map(Noted::told),
            last_trouble: pipeline.last_trouble.as_ref().map(Noted::told),
        };
        let sources = state.pipelines.values().map(source).collect();
        let (quarantined, absent) = (state.quarantine.len(), state.absent.as_deref().map(str::to_owned));
        Health {
            informer: self.name.clone(),
            life,
            synced,
            objects,
            bytes: None,
            quarantined,
            absent,
            sources,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
