//! Carries out what the machine says: asks the source, keeps the time, fills the queue.

use std::{
    any::Any,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use informer_model::{ObjectKey, ResourceVersion};
use rand::Rng;
use rand_pcg::Pcg32;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Action, Input, Machine, Phase, Problem, ReflectorSettings, Remedy, list::List};
use crate::{
    Object, Tombstone,
    metrics::Measurement,
    monitor::Monitor,
    panic_message,
    queue::{Queue, Replacement, SharedQueue, Transform},
    source::{
        ListItem, ListStream, ListWatch, PageEnd, SourceError, Unusable, WatchChange, WatchItem, WatchStream,
    },
    store::Store,
    trace, until,
};

/// For how long objects of a list, or events of a watch, are taken before anybody else may run: one may take a
/// microsecond or a millisecond.
const SLICE: Duration = Duration::from_millis(2);
/// And how many at most, whatever the clock says.
const IN_A_ROW: usize = 1_024;
/// A watch that has been open for this long has got over the last problem: one that closes at once does not.
const SETTLED: Duration = Duration::from_secs(2);

/// Lists and watches a source, and puts what it hears into a queue.
///
/// It ends only when it is told to stop; every failure leads to another attempt. An informer has one for each of
/// its sources. On its own it is for programs that want the raw deltas:
///
/// ```
/// use informer::{queue::{InOrderFifo, SharedQueue}, reflector::{Reflector, ReflectorSettings}, source::MemorySource};
/// use k8s_openapi::api::core::v1::Node;
/// use tokio_util::sync::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (source, stop) = (MemorySource::<Node>::new(), CancellationToken::new());
/// let queue = SharedQueue::new(InOrderFifo::new());
/// let reflector = Reflector::new(source, queue.clone(), ReflectorSettings::default());
/// let running = tokio::spawn(reflector.run(stop.clone()));
///
/// let deltas = queue.pop(10).await.expect("the first list");
/// assert_eq!(deltas.len(), 1);
/// stop.cancel();
/// running.await.expect("it ends");
/// # }
/// ```
pub struct Reflector<K, Q> {
    source: Arc<dyn ListWatch<K>>,
    queue: SharedQueue<K, Q>,
    machine: Machine,
    /// Empty, but for its room.
    actions: Vec<Action>,
    monitor: Arc<Monitor>,
    /// Which of the informer's sources this is.
    pipeline: usize,
    transform: Option<Transform<K>>,
    cache: Option<Store<K>>,
    io: Io<K>,
    probe: Option<BoxFuture<'static, Result<(PageEnd, u64), SourceError>>>,
    /// How old the word of another pipeline about the server may be, twice over.
    period: Option<Duration>,
    list: List<K>,
    began: Instant,
    list_began: Option<Instant>,
    opened: Option<Instant>,
    /// An event that came late, and the version that was reached before it.
    late: Option<(Payload<K>, ResourceVersion)>,
}

/// What is going on with the source.
enum Io<K> {
    Nothing,
    OpeningList(BoxFuture<'static, Result<ListStream<K>, SourceError>>),
    Listing { stream: ListStream<K>, objects: u64 },
    OpeningWatch(BoxFuture<'static, Result<WatchStream<K>, SourceError>>),
    Watching(WatchStream<K>),
}

/// What an input was about, for the actions that follow it.
enum Payload<K> {
    Nothing,
    Object(WatchChange, Object<K>),
    Unusable(WatchChange, Unusable),
}

impl<K, Q> Reflector<K, Q>
where
    K: Send + Sync + 'static,
    Q: Queue<K> + Send + 'static,
{
    /// A reflector of a source into a queue.
    pub fn new(source: impl ListWatch<K>, queue: SharedQueue<K, Q>, settings: ReflectorSettings) -> Self {
        let source: Arc<dyn ListWatch<K>> = Arc::new(source);
        let monitor = Arc::new(Monitor::new("reflector".to_owned(), vec![source.description()]));
        Self::pipeline(source, queue, settings, None, monitor, 0)
    }

    /// A reflector of one of an informer's sources. If there was one before it, it goes on from the version that
    /// the monitor knows. Without a seed nobody knows what chance brings.
    pub(crate) fn pipeline(
        source: Arc<dyn ListWatch<K>>,
        queue: SharedQueue<K, Q>,
        settings: ReflectorSettings,
        seed: Option<u64>,
        monitor: Arc<Monitor>,
        pipeline: usize,
    ) -> Self {
        let seed = seed.unwrap_or_else(|| rand::make_rng::<Pcg32>().next_u64());
        Self {
            source,
            queue,
            period: settings.probe_period,
            machine: Machine::new(settings, seed).resume(monitor.version(pipeline)),
            actions: Vec::new(),
            monitor,
            pipeline,
            transform: None,
            cache: None,
            io: Io::Nothing,
            probe: None,
            list: List::default(),
            began: Instant::now(),
            list_began: None,
            opened: None,
            late: None,
        }
    }

    /// Changes every object once, as it arrives.
    #[must_use]
    pub fn transform(mut self, transform: Option<Transform<K>>) -> Self {
        self.transform = transform;
        self
    }

    /// Takes objects that a list repeats unchanged from this cache: a list then needs little memory beside it.
    #[must_use]
    pub fn reuse(mut self, cache: Store<K>) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Runs until it is told to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        self.began = Instant::now();
        let stopped = stop.cancelled();
        tokio::pin!(stopped);
        let began = self.handle(Input::Start, Payload::Nothing);
        self.note(began);
        loop {
            let (input, payload) = tokio::select! {
                biased;
                () = &mut stopped => return,
                () = until(self.deadline()) => (Input::Timer, Payload::Nothing),
                answer = answer(&mut self.probe) => {
                    self.probe = None;
                    (Input::Probed(answer), Payload::Nothing)
                }
                heard = AssertUnwindSafe(
                    next(&mut self.io, &mut self.list, self.transform.as_ref(), self.cache.as_ref())
                ).catch_unwind() => heard.unwrap_or_else(panicked),
            };
            // What has arrived together is taken together, and handed on together.
            let adding = self.queue.adding();
            let began = self.handle(input, payload);
            let mut now = began;
            for _ in 0..IN_A_ROW {
                let (Io::Watching(stream), None) = (&mut self.io, &self.late) else { break };
                if stop.is_cancelled() {
                    return;
                }
                let item = catch_unwind(AssertUnwindSafe(|| stream.next().now_or_never()));
                let (input, payload) = match item {
                    Ok(Some(item)) => watched(item),
                    Ok(None) => break,
                    Err(panic) => panicked(panic),
                };
                now = self.handle(input, payload);
                if now >= began + SLICE {
                    break;
                }
            }
            // Before anybody is woken for what was handed on.
            self.note(now);
            drop(adding);
            if let Some((payload, reached)) = self.late.take() {
                stop.run_until_cancelled(self.apply_late(payload, reached)).await;
            }
            tokio::task::yield_now().await;
        }
    }

    /// A moment that no clock has never comes.
    fn deadline(&self) -> Option<Instant> {
        let machine = self.machine.deadline().and_then(|after| self.began.checked_add(after));
        let settled = self.opened.map(|opened| opened + SETTLED);
        [machine, settled].into_iter().flatten().min()
    }

    /// Answers when that was.
    fn handle(&mut self, input: Input, payload: Payload<K>) -> Instant {
        let now = Instant::now();
        if input == Input::Timer && self.opened.is_some_and(|opened| now >= opened + SETTLED) {
            self.opened = None;
            self.monitor.recovered(self.pipeline);
        }
        match &input {
            Input::WatchOpened => {
                self.opened = Some(now);
                self.monitor.measure(Measurement::WatchOpened);
            }
            Input::WatchClosed(_) => self.close(),
            Input::ListFailed(_) => {
                self.io = Io::Nothing;
                self.monitor.measure(Measurement::ListFailed);
            }
            Input::WatchRefused(_) | Input::Page { .. } => self.io = Io::Nothing,
            Input::Probed(Ok((end, _))) => self.monitor.saw(&end.version),
            _ => {}
        }
        let (mut payload, mut actions) = (payload, mem::take(&mut self.actions));
        self.machine.tell(now - self.began, input, &mut actions);
        for action in actions.drain(..) {
            self.perform(action, &mut payload);
        }
        self.actions = actions;
        now
    }

    /// Notes how far this is, for whoever asks.
    fn note(&self, now: Instant) {
        let (phase, version) = (self.machine.phase(), self.machine.last_version());
        self.monitor.phase(self.pipeline, phase, version, self.list.len(), now);
    }

    fn perform(&mut self, action: Action, payload: &mut Payload<K>) {
        match action {
            Action::List(options) => {
                self.list_began.get_or_insert_with(Instant::now);
                let source = Arc::clone(&self.source);
                self.io = Io::OpeningList(async move { source.list(options).await }.boxed());
            }
            Action::CancelList => self.io = Io::Nothing,
            Action::Watch(options) => {
                if options.send_initial_events {
                    self.list_began = Some(Instant::now());
                }
                let source = Arc::clone(&self.source);
                self.io = Io::OpeningWatch(async move { source.watch(options).await }.boxed());
            }
            Action::Probe { options, version_only } => {
                let period = self.period.filter(|_| version_only);
                if let Some(ago) = self.monitor.vouches(self.machine.last_version())
                    && period.is_some_and(|period| ago < period / 2)
                {
                    let actions = self.machine.handle(self.began.elapsed(), Input::Vouched(ago));
                    debug_assert!(actions.is_empty(), "{actions:?}");
                    return;
                }
                let source = Arc::clone(&self.source);
                let counting = AssertUnwindSafe(async move { count(source.list(options).await?).await });
                let answer = counting.catch_unwind().map(|answer| {
                    let message = |panic: Panic| format!("the source panicked: {}", panic_message(&*panic));
                    answer.unwrap_or_else(|panic| Err(SourceError::Broken(message(panic))))
                });
                self.probe = Some(answer.boxed());
            }
            Action::CloseWatch => self.close(),
            Action::Collect => self.collect(mem::replace(payload, Payload::Nothing)),
            Action::Discard => {
                self.list = List::default();
                self.list_began = None;
            }
            Action::Replace(version) => self.replace(version),
            Action::Apply => self.apply(mem::replace(payload, Payload::Nothing), None),
            Action::ApplyLate(reached) => {
                self.late = Some((mem::replace(payload, Payload::Nothing), reached));
            }
            Action::Bookmark(version) => {
                self.monitor.recovered(self.pipeline);
                // A closed queue means that the informer is ending: nobody needs it any more.
                let _ = self.queue.bookmark(version);
            }
            Action::Skip(why) => self.skip(&why),
            Action::Report(problem, remedy) => self.report(problem, remedy),
        }
    }

    fn skip(&self, why: &str) {
        self.monitor.measure(Measurement::Skipped);
        tracing::warn!(informer = self.monitor.name(), why, "an event of the watch was skipped");
    }

    /// An event that is older than what was told before it. Whether it is news about its object, the cache says when
    /// all that waits before it has been applied. What the cache has not may have been deleted since.
    async fn apply_late(&mut self, payload: Payload<K>, reached: ResourceVersion) {
        let about = match &payload {
            Payload::Nothing => None,
            Payload::Object(change, object) => Some((*change, object.key(), object.resource_version())),
            Payload::Unusable(change, unusable) => {
                unusable.key.as_ref().map(|key| (*change, key, &unusable.version))
            }
        };
        if let (Some((change, key, version)), Some(cache)) = (about, &self.cache) {
            self.queue.idle().await;
            if cache.get(key).is_some_and(|cached| cached.resource_version() < version) {
                self.apply(payload, Some(reached));
                let actions = self.machine.handle(self.began.elapsed(), Input::AppliedLate(change));
                debug_assert!(actions.is_empty(), "{actions:?}");
                return;
            }
        }
        self.skip("an event that is not newer than what was seen");
    }

    fn close(&mut self) {
        self.io = Io::Nothing;
        self.opened = None;
    }

    fn report(&mut self, problem: Problem, remedy: Remedy) {
        if problem.is_of_watch() && !matches!(problem, Problem::Panicked(_)) {
            self.monitor.measure(Measurement::WatchFailed);
        }
        if remedy.relists() && self.machine.phase() != Phase::Idle && !self.machine.last_version().is_unset()
        {
            self.monitor.measure(Measurement::Relist { cause: problem.cause() });
        }
        self.monitor.problem(self.pipeline, problem, remedy);
    }

    fn collect(&mut self, payload: Payload<K>) {
        match payload {
            Payload::Nothing => {}
            Payload::Object(WatchChange::Deleted, object) => self.list.remove(object.key()),
            Payload::Object(_, object) if self.is_elsewhere(&object) => {}
            Payload::Object(_, object) => {
                take(&mut self.list, object, self.transform.as_ref(), self.cache.as_ref());
            }
            Payload::Unusable(WatchChange::Deleted, unusable) => {
                if let Some(key) = &unusable.key {
                    self.list.remove(key);
                }
            }
            Payload::Unusable(_, unusable) => self.list.put_unusable(unusable),
        }
    }

    /// Whether an object lies outside of the namespace that was asked for. Kept, it could never be deleted: no list
    /// of that namespace would miss it.
    fn is_elsewhere(&self, object: &Object<K>) -> bool {
        let elsewhere = self.source.namespace().is_some_and(|one| object.key().namespace() != Some(one));
        if elsewhere {
            let (informer, source) = (self.monitor.name(), self.source.description());
            self.monitor.measure(Measurement::Skipped);
            tracing::warn!(informer, source, object = %object.key(), "skipped: it lies in another namespace");
        }
        elsewhere
    }

    fn replace(&mut self, version: ResourceVersion) {
        let listed = self.list.len();
        let (mut objects, unusable) = self.list.take();
        objects.retain(|object| !self.is_elsewhere(object));
        let took = self.list_began.take().map_or(Duration::ZERO, |began| began.elapsed());
        self.monitor.measure(Measurement::Listed { objects: listed, took });
        let keys: Vec<ObjectKey> = unusable.iter().filter_map(|one| one.key.clone()).collect();
        self.monitor.quarantine_list(self.pipeline, unusable);
        self.monitor.listed(self.pipeline);
        let namespace = self.source.namespace().map(Arc::from);
        let _ = self.queue.replace(Replacement { namespace, objects, unusable: keys, version });
    }

    /// Puts an event into the queue. With one that comes late, the version that was reached before goes in at the same
    /// time: taken out alone, it would take the cache back to its own.
    fn apply(&mut self, payload: Payload<K>, reached: Option<ResourceVersion>) {
        self.monitor.recovered(self.pipeline);
        match payload {
            Payload::Nothing => {}
            Payload::Object(_, object) if self.is_elsewhere(&object) => {}
            Payload::Object(change, object) => {
                let version = object.resource_version().clone();
                match transformed(self.transform.as_ref(), object) {
                    Ok(object) => {
                        self.monitor.release(self.pipeline, object.key().as_str());
                        if trace::is_wanted() {
                            let (key, version) = (object.key(), object.resource_version());
                            self.monitor.heard().begin(self.monitor.name(), key, version);
                        }
                        let _ = self.queue.push(|queue| {
                            match change {
                                WatchChange::Added => queue.added(object),
                                WatchChange::Modified => queue.updated(object),
                                WatchChange::Deleted => queue.deleted(Tombstone::Final(object)),
                            }
                            if let Some(reached) = reached {
                                queue.bookmark(reached);
                            }
                        });
                    }
                    Err(unusable) => {
                        self.apply_unusable(change, Unusable { version, ..unusable }, reached);
                    }
                }
            }
            Payload::Unusable(change, unusable) => self.apply_unusable(change, unusable, reached),
        }
    }

    /// What cannot be used stays in the cache as it was, unless it is gone.
    fn apply_unusable(&mut self, change: WatchChange, unusable: Unusable, reached: Option<ResourceVersion>) {
        let version = reached.unwrap_or_else(|| unusable.version.clone());
        match (change, unusable.key.clone()) {
            (WatchChange::Deleted, Some(key)) => {
                self.monitor.release(self.pipeline, key.as_str());
                let _ = self.queue.deleted(Tombstone::Unknown { key, last_seen: None });
            }
            _ => self.monitor.quarantine(self.pipeline, unusable),
        }
        if !version.is_unset() {
            let _ = self.queue.bookmark(version);
        }
    }
}

fn transformed<K>(transform: Option<&Transform<K>>, object: Object<K>) -> Result<Object<K>, Unusable> {
    let Some(transform) = transform else { return Ok(object) };
    let version = object.resource_version().clone();
    transform.apply(object).map_err(|error| Unusable {
        name: error.key.to_string(),
        error: error.to_string(),
        key: Some(error.key),
        version,
    })
}

/// Takes an object into a list: the cache's, if it is the same, else as the transform leaves it.
fn take<K>(
    list: &mut List<K>,
    object: Object<K>,
    transform: Option<&Transform<K>>,
    cache: Option<&Store<K>>,
) {
    if let Some(cached) = cache.and_then(|cache| cache.get(object.key()))
        && cached.same_bytes(&object)
    {
        list.put(cached);
        return;
    }
    match transformed(transform, object) {
        Ok(object) => list.put(object),
        Err(unusable) => list.put_unusable(unusable),
    }
}

async fn answer<T>(probe: &mut Option<BoxFuture<'static, T>>) -> T {
    match probe {
        Some(probe) => probe.await,
        None => std::future::pending().await,
    }
}

/// Reads a list for what it says of itself.
async fn count<K>(mut page: ListStream<K>) -> Result<(PageEnd, u64), SourceError> {
    let mut objects = 0;
    while let Some(item) = page.next().await {
        match item? {
            ListItem::End(end) => return Ok((end, objects)),
            ListItem::Object(_) | ListItem::Unusable(_) => objects += 1,
        }
    }
    Err(SourceError::Broken("the list ended before it was complete".to_owned()))
}

/// The next thing that the source has to say. It may be dropped and called again.
async fn next<K>(
    io: &mut Io<K>,
    list: &mut List<K>,
    transform: Option<&Transform<K>>,
    cache: Option<&Store<K>>,
) -> (Input, Payload<K>) {
    let input = match io {
        Io::Nothing => std::future::pending().await,
        Io::OpeningList(opening) => match opening.await {
            Ok(stream) => {
                *io = Io::Listing { stream, objects: 0 };
                Input::ListGoesOn
            }
            Err(error) => Input::ListFailed(error),
        },
        Io::OpeningWatch(opening) => match opening.await {
            Ok(stream) => {
                *io = Io::Watching(stream);
                Input::WatchOpened
            }
            Err(error) => Input::WatchRefused(error),
        },
        Io::Listing { stream, objects } => {
            let began = Instant::now();
            for _ in 0..IN_A_ROW {
                match stream.next().await {
                    Some(Ok(ListItem::Object(object))) => take(list, object, transform, cache),
                    Some(Ok(ListItem::Unusable(unusable))) => list.put_unusable(unusable),
                    Some(Ok(ListItem::End(end))) => {
                        return (Input::Page { end, objects: *objects }, Payload::Nothing);
                    }
                    Some(Err(error)) => return (Input::ListFailed(error), Payload::Nothing),
                    None => {
                        let error = SourceError::Broken("the list ended before it was complete".to_owned());
                        return (Input::ListFailed(error), Payload::Nothing);
                    }
                }
                *objects += 1;
                if began.elapsed() >= SLICE {
                    break;
                }
            }
            Input::ListGoesOn
        }
        Io::Watching(stream) => return watched(stream.next().await),
    };
    (input, Payload::Nothing)
}

type Panic = Box<dyn Any + Send>;

/// What a panic of the source is to the machine.
fn panicked<K>(panic: Panic) -> (Input, Payload<K>) {
    (Input::Panicked(panic_message(&*panic)), Payload::Nothing)
}

/// What an item of a watch is to the machine.
fn watched<K>(item: Option<Result<WatchItem<K>, SourceError>>) -> (Input, Payload<K>) {
    match item {
        Some(Ok(WatchItem::Object(change, object))) => {
            let version = object.resource_version().clone();
            (Input::Event(change, version), Payload::Object(change, object))
        }
        Some(Ok(WatchItem::Unusable(change, unusable))) => {
            (Input::Event(change, unusable.version.clone()), Payload::Unusable(change, unusable))
        }
        Some(Ok(WatchItem::Bookmark { version, initial_events_end })) => {
            (Input::Bookmark(version, initial_events_end), Payload::Nothing)
        }
        Some(Ok(WatchItem::Error(status))) => (Input::ErrorEvent(*status), Payload::Nothing),
        Some(Ok(WatchItem::Foreign(what))) => (Input::Foreign(what), Payload::Nothing),
        Some(Err(error)) => (Input::WatchClosed(Some(error)), Payload::Nothing),
        None => (Input::WatchClosed(None), Payload::Nothing),
    }
}
