//! Decides which events are sent, which are repetitions of others, and which are too many.
//!
//! What happened comes in with its moment, and what to write next goes out: no clock, no requests, no task. Everything that was
//! observed is accounted for in [`RecorderStats`], and what is kept is bounded, whatever comes in.

mod allowance;
mod recent;
mod similar;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use hashbrown::HashMap;
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use super::{
    Limits, RecorderStats,
    event::{Report, Topic},
    name::event_name,
};
use allowance::Allowances;
use recent::Recent;
use similar::Similar;

/// A young series is written no more often than this.
const FIRST_REFRESH: Duration = Duration::from_secs(10);

type SeriesId = u64;

/// See the module.
#[derive(Debug)]
pub(super) struct Correlator {
    limits: Limits,
    stats: RecorderStats,
    /// The series that are tracked or have something to be written.
    series: HashMap<SeriesId, Series>,
    tracked: Recent<Key, SeriesId>,
    similar: Similar,
    allowances: Allowances,
    /// Series with something to be written, and from when on it may be. Those in the outbox are not among them.
    due: BTreeSet<(Instant, SeriesId)>,
    outbox: VecDeque<Entry>,
    /// What is being written, and which count of it.
    writing: Option<(SeriesId, u64)>,
    closed: bool,
    begun: SeriesId,
    marks: u64,
    stamp: u64,
}

/// One event of the cluster and its repetitions.
#[derive(Debug)]
struct Series {
    key: Key,
    report: Arc<Report>,
    name: String,
    began: (Instant, Timestamp),
    last: (Instant, Timestamp),
    /// When it was last written.
    refreshed: Instant,
    count: u64,
    /// Of these, how many the server has been told of; 0 while it has not heard of any.
    written: u64,
    /// Whether a repetition goes here; otherwise it is to be forgotten once all is written.
    tracked: bool,
    queued: bool,
}

/// What makes an event a repetition. All that were combined have no note here.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    topic: Arc<Topic>,
    note: Option<Arc<str>>,
}

#[derive(Debug)]
enum Entry {
    Series(SeriesId),
    /// All that was recorded before this number was given out comes before it.
    Mark(u64),
}

/// What became of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is to be sent.
    Queued,
    /// It is the first of the repetitions that are written together, later.
    Scheduled,
    /// It is one of them.
    Counted,
    /// Its object had too many.
    Suppressed,
    /// There is no room, or it comes too late.
    Dropped,
}

/// What is to be done.
#[derive(Debug)]
pub(super) enum Next {
    /// Write this, and say what became of it before asking again.
    Write(Write),
    /// All before a mark has been written or given up.
    Reached(u64),
    /// Nothing, until something is observed or this moment.
    Wait(Option<Instant>),
    /// Nothing any more.
    Finished,
}

/// An event as it is to be in the cluster.
#[derive(Debug, Clone)]
pub(super) struct Write {
    pub(super) report: Arc<Report>,
    pub(super) name: String,
    pub(super) began: Timestamp,
    pub(super) count: u64,
    pub(super) last: Timestamp,
    /// Whether it should be there already, with a lower count.
    pub(super) there: bool,
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is there, under this name.
    Written(String),
    /// It is given up.
    Failed,
}

impl Correlator {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            stats: RecorderStats::default(),
            series: HashMap::new(),
            tracked: Recent::new(limits.tracked),
            similar: Similar::new(&limits),
            allowances: Allowances::new(&limits),
            due: BTreeSet::new(),
            outbox: VecDeque::new(),
            writing: None,
            closed: false,
            begun: 0,
            marks: 0,
            stamp: 0,
        }
    }

    pub(super) fn stats(&self) -> RecorderStats {
        self.stats
    }

    /// Something happened that can never be sent.
    pub(super) fn refuse(&mut self) {
        self.stats.recorded += 1;
        self.stats.failed += 1;
    }

    /// Something happened, at a moment and at a time of the day.
    pub(super) fn observe(&mut self, report: Report, now: Instant, time: Timestamp) -> Verdict {
        self.stats.recorded += 1;
        if self.closed {
            self.stats.dropped += 1;
            return Verdict::Dropped;
        }
        let (key, report) = self.similar.classify(report, now);
        if let Some(id) = self.tracked.get(&key).copied() {
            if let Some(series) = self.series.get_mut(&id)
                && now.duration_since(series.last.0) < self.limits.series_end
            {
                series.count += 1;
                series.last = (now, time);
                return if self.schedule(id) { Verdict::Scheduled } else { Verdict::Counted };
            }
            self.untrack(id);
        }
        if !self.has_room() {
            self.stats.dropped += 1;
            return Verdict::Dropped;
        }
        if !self.allowances.take(&key.topic, now) {
            self.stats.suppressed += 1;
            return Verdict::Suppressed;
        }
        self.begin(key, report, now, time);
        Verdict::Queued
    }

    /// Whether a new series can be queued, and the last words of the one that it makes room for, if it does.
    fn has_room(&self) -> bool {
        let forgotten = self.tracked.oldest().filter(|_| self.tracked.is_full());
        let last_words = forgotten.is_some_and(|id| self.needs_a_place(*id));
        self.outbox.len() + usize::from(last_words) < self.limits.queue
    }

    fn begin(&mut self, key: Key, report: Report, now: Instant, time: Timestamp) {
        if self.tracked.is_full()
            && let Some(id) = self.tracked.oldest().copied()
        {
            self.untrack(id);
        }
        // Names that grow with the time list in the order of the time, and are unique even if the clock stands still.
        let nanoseconds = u64::try_from(time.as_nanosecond()).unwrap_or_default();
        self.stamp = nanoseconds.max(self.stamp.saturating_add(1));
        self.begun += 1;
        let series = Series {
            key: key.clone(),
            name: event_name(report.topic.regarding.name(), self.stamp),
            report: Arc::new(report),
            began: (now, time),
            last: (now, time),
            refreshed: now,
            count: 1,
            written: 0,
            tracked: true,
            queued: true,
        };
        self.series.insert(self.begun, series);
        self.tracked.insert(key, self.begun);
        self.outbox.push_back(Entry::Series(self.begun));
    }

    /// What to do now.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        self.forget_ended(now);
        while let Some(&(moment, id)) = self.due.first().filter(|(moment, _)| *moment <= now) {
            self.due.remove(&(moment, id));
            self.queue(id);
        }
        while let Some(entry) = self.outbox.pop_front() {
            let id = match entry {
                Entry::Mark(mark) => return Next::Reached(mark),
                Entry::Series(id) => id,
            };
            let Some(series) = self.series.get_mut(&id) else { continue };
            series.queued = false;
            if series.count == series.written {
                self.tidy(id);
                continue;
            }
            self.writing = Some((id, series.count));
            return Next::Write(Write {
                report: Arc::clone(&series.report),
                name: series.name.clone(),
                began: series.began.1,
                count: series.count,
                last: series.last.1,
                there: series.written > 0,
            });
        }
        if self.closed {
            return Next::Finished;
        }
        Next::Wait(self.due.first().map(|(moment, _)| *moment))
    }

    /// What became of the last [`Next::Write`].
    pub(super) fn settle(&mut self, outcome: Outcome, now: Instant) {
        let Some((id, count)) = self.writing.take() else { return };
        let Some(series) = self.series.get_mut(&id) else { return };
        series.refreshed = now;
        match outcome {
            Outcome::Written(name) => {
                let first = u64::from(series.written == 0);
                self.stats.sent += first;
                self.stats.aggregated += count - series.written - first;
                (series.written, series.name) = (count, name);
            }
            // What came meanwhile shares its fate.
            Outcome::Failed => {
                self.stats.failed += series.count - series.written;
                series.count = series.written;
                if series.written == 0 {
                    self.untrack(id);
                }
            }
        }
        self.tidy(id);
    }

    /// Has everything written that waits for its time, and gives a number for the moment when that is done.
    pub(super) fn flush(&mut self) -> u64 {
        self.queue_all();
        if let Some(Entry::Mark(mark)) = self.outbox.back() {
            return *mark;
        }
        self.marks += 1;
        self.outbox.push_back(Entry::Mark(self.marks));
        self.marks
    }

    /// Takes nothing more in, and has the rest written.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.queue_all();
    }

    /// Gives up what is not written, and tells how much that was.
    pub(super) fn abandon(&mut self) -> u64 {
        let left = self.stats.waiting();
        let stats = RecorderStats { dropped: self.stats.dropped + left, ..self.stats };
        *self = Self { stats, closed: true, ..Self::new(self.limits) };
        left
    }

    fn forget_ended(&mut self, now: Instant) {
        while let Some(id) = self.tracked.oldest().copied() {
            let series = self.series.get(&id);
            if series.is_some_and(|series| now.duration_since(series.last.0) < self.limits.series_end) {
                return;
            }
            self.untrack(id);
        }
    }

    /// Nothing more is counted in a series. What was counted is written.
    fn untrack(&mut self, id: SeriesId) {
        let Some(series) = self.series.get_mut(&id) else { return };
        series.tracked = false;
        self.tracked.remove(&series.key);
        self.tidy(id);
    }

    /// Forgets a series that is not tracked and written, and else sees to it that it is going to be.
    fn tidy(&mut self, id: SeriesId) {
        let Some(series) = self.series.get(&id) else { return };
        let busy = series.queued || self.writing.is_some_and(|(writing, _)| writing == id);
        if busy {
            return;
        }
        match (series.is_unwritten(), series.tracked) {
            (true, true) => drop(self.schedule(id)),
            (true, false) => {
                self.due.remove(&(series.due(&self.limits), id));
                self.queue(id);
            }
            (false, true) => {}
            (false, false) => drop(self.series.remove(&id)),
        }
    }

    /// Puts a series down for its next write, unless that is on its way. Whether it was not before.
    fn schedule(&mut self, id: SeriesId) -> bool {
        let Some(series) = self.series.get(&id) else { return false };
        let busy = series.queued || self.writing.is_some_and(|(writing, _)| writing == id);
        !busy && self.due.insert((series.due(&self.limits), id))
    }

    fn queue(&mut self, id: SeriesId) {
        if let Some(series) = self.series.get_mut(&id)
            && !series.queued
        {
            series.queued = true;
            self.outbox.push_back(Entry::Series(id));
        }
    }

    fn queue_all(&mut self) {
        while let Some((_, id)) = self.due.pop_first() {
            self.queue(id);
        }
        // More of it may have come since it is being written.
        if let Some((id, _)) = self.writing
            && self.needs_a_place(id)
        {
            self.queue(id);
        }
    }

    /// Whether a series has something to be written that is neither in the outbox nor being written.
    fn needs_a_place(&self, id: SeriesId) -> bool {
        let writing = self.writing.filter(|(writing, _)| *writing == id).map_or(0, |(_, count)| count);
        self.series
            .get(&id)
            .is_some_and(|series| !series.queued && series.count > series.written.max(writing))
    }
}

impl Series {
    fn is_unwritten(&self) -> bool {
        self.count > self.written
    }

    /// From when on repetitions may be written: when the series is twice as old as it was the last time.
    fn due(&self, limits: &Limits) -> Instant {
        let age = self.refreshed.duration_since(self.began.0);
        self.refreshed + age.max(FIRST_REFRESH).min(limits.refresh)
    }
}
