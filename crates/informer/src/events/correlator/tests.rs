//! The correlator by itself: time is a number, and the server a map.

mod model;

use std::collections::BTreeMap;

use informer_testing::histories;
use k8s_openapi::api::core::v1::ObjectReference;
use proptest::prelude::*;

use super::*;
use crate::events::{EventType, RecordedEvent};
use model::Model;

/// What the tests' objects have happen to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Happening {
    object: u32,
    warning: bool,
    reason: u32,
    note: u32,
}

fn mk(object: u32, note: u32) -> Happening {
    Happening { object, warning: true, reason: 0, note }
}

/// A correlator, a clock and a server.
struct Stage {
    correlator: Correlator,
    now: Instant,
    /// What the server has: each event with its topic, note and count.
    server: BTreeMap<String, (Arc<Report>, u64)>,
    /// How many were recorded before each mark.
    marks: BTreeMap<u64, u64>,
}

impl Stage {
    fn new(limits: Limits) -> Self {
        Self {
            correlator: Correlator::new(limits),
            now: Instant::now(),
            server: BTreeMap::new(),
            marks: BTreeMap::new(),
        }
    }

    fn observe(&mut self, happening: Happening) -> Verdict {
        let regarding = ObjectReference {
            name: Some(format!("web-{}", happening.object)),
            // The version does not matter.
            resource_version: Some(self.correlator.stats.recorded.to_string()),
            ..ObjectReference::default()
        };
        let event = RecordedEvent {
            type_: if happening.warning { EventType::Warning } else { EventType::Normal },
            ..RecordedEvent::normal(format!("reason-{}", happening.reason), happening.note.to_string())
        };
        let report = Report::new(regarding, event).expect("a reference");
        self.correlator.observe(report, self.now, Timestamp::default())
    }

    fn seconds(&mut self, count: u64) {
        self.now += Duration::from_secs(count);
    }

    /// What is to be written now, if anything is.
    fn next_write(&mut self) -> Option<Write> {
        loop {
            match self.correlator.next(self.now) {
                Next::Write(write) => {
                    assert_eq!(write.there, self.server.contains_key(&write.name), "{write:?}");
                    return Some(write);
                }
                Next::Reached(mark) => {
                    let (stats, before) = (self.correlator.stats(), self.marks[&mark]);
                    assert!(
                        stats.waiting() <= stats.recorded - before,
                        "what came before a mark is done: {stats}"
                    );
                }
                Next::Wait(_) | Next::Finished => return None,
            }
        }
    }

    fn answer(&mut self, write: &Write, fails: bool) {
        let outcome = if fails {
            Outcome::Failed
        } else {
            self.server.insert(write.name.clone(), (Arc::clone(&write.report), write.count));
            Outcome::Written(write.name.clone())
        };
        self.correlator.settle(outcome, self.now);
    }

    /// Writes what is to be written next, or fails to.
    fn step(&mut self, fails: bool) -> Option<Write> {
        let write = self.next_write()?;
        self.answer(&write, fails);
        self.check();
        Some(write)
    }

    /// Writes all that is to be written now.
    fn work(&mut self) {
        while self.step(false).is_some() {}
    }

    fn flush(&mut self) {
        let mark = self.correlator.flush();
        self.marks.insert(mark, self.correlator.stats().recorded);
    }

    /// How many there are on the server, repetitions included.
    fn counted(&self) -> u64 {
        self.server.values().map(|(_, count)| count).sum()
    }

    /// Nothing is lost, and what is kept is bounded.
    fn check(&self) {
        let Self { correlator, .. } = self;
        let (stats, limits) = (correlator.stats(), correlator.limits);
        assert_eq!(self.counted(), stats.sent + stats.aggregated, "{stats}");
        assert_eq!(self.server.len() as u64, stats.sent);
        let unwritten: u64 = correlator.series.values().map(|series| series.count - series.written).sum();
        assert_eq!(unwritten, stats.waiting(), "{stats}");
        for kept in [correlator.tracked.len(), correlator.similar.len(), correlator.allowances.len()] {
            assert!(kept <= limits.tracked, "{kept}");
        }
        let marks = correlator.outbox.iter().filter(|entry| matches!(entry, Entry::Mark(_))).count();
        assert!(correlator.outbox.len() - marks <= limits.queue + limits.tracked);
        assert!(
            correlator.series.len() <= limits.queue + 2 * limits.tracked + 1,
            "{}",
            correlator.series.len()
        );
        assert!(correlator.due.len() <= limits.tracked);
    }
}

#[test]
fn repetitions_are_written_when_a_series_is_twice_as_old_and_then_every_five_minutes() {
    let mut stage = Stage::new(Limits::default());
    let mut written = Vec::new();
    for second in 0..2_000_u64 {
        stage.observe(mk(0, 0));
        if let Some(write) = stage.step(false) {
            assert_eq!(write.count, second + 1, "all that happened so far");
            written.push(second);
        }
        assert!(stage.step(false).is_none());
        stage.seconds(1);
    }
    assert_eq!(written, [0, 10, 20, 40, 80, 160, 320, 620, 920, 1_220, 1_520, 1_820]);
    assert_eq!(stage.server.len(), 1);
}

#[test]
fn a_series_ends_after_six_quiet_minutes_with_its_last_count_written() {
    let mut stage = Stage::new(Limits::default());
    for _ in 0..7 {
        stage.observe(mk(0, 0));
    }
    stage.work();
    stage.observe(mk(0, 0));
    let Next::Wait(Some(due)) = stage.correlator.next(stage.now) else { panic!("nothing is due") };
    assert_eq!(due - stage.now, FIRST_REFRESH);
    stage.seconds(359);
    assert_eq!(stage.observe(mk(0, 0)), Verdict::Counted);
    stage.seconds(360);
    assert_eq!(stage.observe(mk(0, 0)), Verdict::Queued);
    stage.work();
    let counts: Vec<u64> = stage.server.values().map(|(_, count)| *count).collect();
    assert_eq!(counts, [9, 1]);
    stage.seconds(360);
    assert!(matches!(stage.correlator.next(stage.now), Next::Wait(None)));
    assert_eq!((stage.correlator.series.len(), stage.correlator.tracked.len()), (0, 0), "it is forgotten");
}

#[test]
fn an_object_may_have_25_events_of_a_type_and_then_one_in_five_minutes() {
    let mut stage = Stage::new(Limits::default());
    let of = |reason| Happening { reason, ..mk(0, 0) };
    let verdicts: Vec<Verdict> = (0..30).map(|reason| stage.observe(of(reason))).collect();
    assert_eq!(verdicts[..25], [Verdict::Queued; 25]);
    assert_eq!(verdicts[25..], [Verdict::Suppressed; 5]);
    assert_eq!(stage.observe(of(3)), Verdict::Counted, "a repetition makes no event");
    assert_eq!(stage.observe(Happening { warning: false, ..of(30) }), Verdict::Queued, "another type");
    assert_eq!(stage.observe(mk(1, 0)), Verdict::Queued, "another object");
    stage.seconds(299);
    assert_eq!(stage.observe(of(31)), Verdict::Suppressed);
    stage.seconds(1);
    assert_eq!(stage.observe(of(32)), Verdict::Queued);
    assert_eq!(stage.observe(of(33)), Verdict::Suppressed);
    stage.seconds(3_600 * 24);
    assert!(
        (100..125).all(|reason| stage.observe(of(reason)) == Verdict::Queued),
        "all of the burst is back"
    );
    assert_eq!(stage.observe(of(125)), Verdict::Suppressed, "and no more than that");
}

#[test]
fn events_that_differ_in_their_note_alone_are_combined_after_ten() {
    let mut stage = Stage::new(Limits::default());
    for note in 0..1_000 {
        stage.observe(mk(0, note));
    }
    stage.observe(mk(0, 3));
    stage.work();
    let events: Vec<(&str, u64)> =
        stage.server.values().map(|(report, count)| (report.note.as_str(), *count)).collect();
    assert_eq!(events.len(), 11);
    assert_eq!((events[3], events[4]), (("3", 2), ("4", 1)), "a note that has its own event keeps it");
    assert_eq!(events[10], ("(combined from similar events): 10", 990));
    assert_eq!(stage.correlator.stats().suppressed, 0);
    stage.seconds(599);
    assert_eq!(
        stage.observe(mk(0, 2_000)),
        Verdict::Queued,
        "the series has ended, but notes are still combined"
    );
    stage.work();
    assert_eq!(stage.server.values().last().unwrap().0.note, "(combined from similar events): 2000");
    stage.seconds(600);
    stage.observe(mk(0, 3_000));
    stage.work();
    assert_eq!(stage.server.values().last().unwrap().0.note, "3000", "ten quiet minutes");
}

#[test]
fn a_full_queue_takes_no_new_events_but_counts_repetitions() {
    let mut stage = Stage::new(Limits { queue: 2, ..Limits::default() });
    let verdicts = [0, 1, 2, 0, 1].map(|object| stage.observe(mk(object, 0)));
    assert_eq!(
        verdicts,
        [Verdict::Queued, Verdict::Queued, Verdict::Dropped, Verdict::Counted, Verdict::Counted]
    );
    stage.work();
    assert_eq!(stage.observe(mk(2, 0)), Verdict::Queued);
    stage.work();
    assert_eq!((stage.counted(), stage.correlator.stats().dropped), (5, 1));
}

#[test]
fn very_many_different_events_take_no_more_room_than_a_few_thousand() {
    let mut stage = Stage::new(Limits::default());
    for object in 0..200_000 {
        let happening = mk(object, object);
        assert_eq!(stage.observe(happening), Verdict::Queued);
        // One that repeats has last words when it is forgotten.
        if object % 3 == 0 {
            stage.correlator.next(stage.now);
            stage.correlator.settle(Outcome::Written(String::new()), stage.now);
            stage.observe(happening);
        }
        while matches!(stage.correlator.next(stage.now), Next::Write(_)) {
            stage.correlator.settle(Outcome::Written(String::new()), stage.now);
        }
    }
    let Correlator { series, tracked, similar, allowances, due, outbox, stats, .. } = &stage.correlator;
    for kept in [series.len(), tracked.len(), similar.len(), allowances.len(), due.len(), outbox.len()] {
        assert!(kept <= 4_096, "{kept}");
    }
    assert_eq!(stats.sent, 200_000);
    assert_eq!(stats.aggregated + stats.waiting(), 66_667);
}

#[test]
fn what_comes_after_the_end_is_dropped_and_what_is_left_is_given_up_with_its_number() {
    let mut stage = Stage::new(Limits::default());
    stage.observe(mk(0, 0));
    stage.work();
    stage.observe(mk(0, 0));
    stage.observe(mk(1, 0));
    stage.correlator.close();
    assert_eq!(stage.observe(mk(0, 0)), Verdict::Dropped);
    assert!(stage.step(false).is_some(), "the new one first: it was there first");
    assert_eq!(stage.correlator.abandon(), 1);
    let stats = stage.correlator.stats();
    assert_eq!((stats.recorded, stats.sent, stats.dropped, stats.waiting()), (4, 2, 2, 0));
    assert!(matches!(stage.correlator.next(stage.now), Next::Finished));
}

/// Something that a test does.
#[derive(Debug, Clone)]
enum Act {
    Observe(Happening),
    Seconds(u64),
    Step {
        fails: bool,
    },
    Flush,
    /// Things happen between a write and its answer.
    InBetween {
        happening: Happening,
        flush: bool,
        fails: bool,
    },
}

fn happenings() -> impl Strategy<Value = Happening> {
    (0..3_u32, any::<bool>(), 0..3_u32, 0..5_u32).prop_map(|(object, warning, reason, note)| Happening {
        object,
        warning,
        reason,
        note,
    })
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        8 => happenings().prop_map(Act::Observe),
        2 => prop_oneof![0..20_u64, 300..700_u64].prop_map(Act::Seconds),
        6 => prop::bool::weighted(0.2).prop_map(|fails| Act::Step { fails }),
        1 => Just(Act::Flush),
        2 => (happenings(), any::<bool>(), any::<bool>())
            .prop_map(|(happening, flush, fails)| Act::InBetween { happening, flush, fails }),
    ];
    prop::collection::vec(act, 0..200)
}

fn small_limits() -> impl Strategy<Value = Limits> {
    (1..6_usize, 1..6_usize, 1..5_u32, 1..4_usize, 0..700_u64).prop_map(
        |(queue, tracked, burst, similar, refresh)| {
            let (refill, refresh) = (Duration::from_secs(64), Duration::from_secs(refresh));
            Limits { queue, tracked, burst, similar, refill, refresh, ..Limits::default() }
        },
    )
}

#[test]
fn whatever_happens_every_event_is_accounted_for() {
    histories(&(small_limits(), acts(), any::<bool>(), happenings()), |(limits, acts, ends, last)| {
        let mut stage = Stage::new(limits);
        for act in acts {
            match act {
                Act::Observe(happening) => drop(stage.observe(happening)),
                Act::Seconds(count) => stage.seconds(count),
                Act::Step { fails } => drop(stage.step(fails)),
                Act::Flush => stage.flush(),
                Act::InBetween { happening, flush, fails } => {
                    let Some(write) = stage.next_write() else { continue };
                    stage.observe(happening);
                    if flush {
                        stage.flush();
                    }
                    stage.answer(&write, fails);
                }
            }
            stage.check();
        }
        if ends {
            // The end comes in the middle of a write.
            stage.observe(last);
            let write = stage.next_write();
            stage.observe(last);
            stage.correlator.close();
            if let Some(write) = write {
                stage.answer(&write, false);
            }
            stage.work();
            assert!(matches!(stage.correlator.next(stage.now), Next::Finished));
            assert_eq!(stage.correlator.stats().waiting(), 0);
        }
        let waiting = stage.correlator.stats().waiting();
        assert_eq!(stage.correlator.abandon(), waiting);
        let RecorderStats { recorded, suppressed, dropped, failed, .. } = stage.correlator.stats();
        assert_eq!(stage.counted() + suppressed + dropped + failed, recorded);
    });
}

#[test]
fn it_decides_as_plain_lists_of_everything_do() {
    histories(&(small_limits(), acts()), |(limits, acts)| {
        // With room for all: what is dropped depends on how fast it is sent, which the model knows nothing of.
        let limits = Limits { queue: 1_000, ..limits };
        let (mut stage, mut model) = (Stage::new(limits), Model::new(limits));
        for act in acts {
            match act {
                Act::Observe(happening) | Act::InBetween { happening, .. } => {
                    let verdict = match stage.observe(happening) {
                        Verdict::Scheduled => Verdict::Counted,
                        other => other,
                    };
                    assert_eq!(verdict, model.observe(happening));
                }
                Act::Seconds(count) => {
                    stage.seconds(count);
                    model.seconds(count);
                }
                Act::Step { .. } => drop(stage.step(false)),
                Act::Flush => stage.flush(),
            }
        }
        stage.correlator.close();
        stage.work();
        let event = |(report, count): &(Arc<Report>, u64)| {
            let (topic, note) = (&report.topic, report.note.clone());
            let reason = format!("{:?} {}", topic.type_, topic.reason);
            (topic.regarding.name().to_owned(), reason, note, *count)
        };
        let mut events: Vec<_> = stage.server.values().map(event).collect();
        events.sort();
        assert_eq!(events, model.events());
    });
}
