//! The core against a naive model, over random histories. What tasks see of it is under `tests/`.

use std::collections::{BTreeMap, BTreeSet};

use informer_testing::histories;
use proptest::prelude::*;

use super::core::{Core, Moment, Taken};

/// One step of a history. Items are small numbers.
#[derive(Debug, Clone)]
enum Step {
    Add(u8, i32),
    AddAfter(u8, i32, Moment),
    Take,
    /// The worker that has had its item for the longest (or a later one) wants it again after a while.
    Requeue(usize, Moment),
    /// The worker that has had its item for the longest (or a later one) is done.
    Done(usize),
    Advance(Moment),
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let item = 0..6_u8;
    let priority = prop_oneof![4 => Just(0), 1 => -2..3];
    let step = prop_oneof![
        6 => (item.clone(), priority.clone()).prop_map(|(item, priority)| Step::Add(item, priority)),
        4 => (item, priority, 0..20_u64).prop_map(|(item, priority, delay)| Step::AddAfter(item, priority, delay)),
        6 => Just(Step::Take),
        5 => (0..4_usize).prop_map(Step::Done),
        4 => (0..4_usize, 0..20_u64).prop_map(|(nth, delay)| Step::Requeue(nth, delay)),
        3 => (0..12_u64).prop_map(Step::Advance),
        1 => Just(Step::Close),
    ];
    prop::collection::vec(step, 0..60)
}

/// The queue as one would write it without thinking of speed.
#[derive(Default)]
struct Model {
    now: Moment,
    /// Item, priority, when it was added; in the order of the queue among those of one priority.
    queued: Vec<(u8, i32, Moment)>,
    /// Item, since when.
    taken: Vec<(u8, Moment)>,
    /// Priority, when it was added.
    again: BTreeMap<u8, (i32, Moment)>,
    /// Item, when it is due, priority, whether a worker wants it, in the order in which they were asked for.
    delayed: Vec<(u8, Moment, i32, bool)>,
    adds: u64,
    closed: bool,
}

impl Model {
    fn add(&mut self, item: u8, priority: i32, now: Moment) {
        if let Some(at) = self.queued.iter().position(|(queued, ..)| *queued == item) {
            let (_, before, since) = self.queued[at];
            if priority > before {
                self.queued.remove(at);
                self.queued.push((item, priority, since));
            }
        } else if let Some((before, _)) = self.again.get_mut(&item) {
            *before = priority.max(*before);
        } else {
            self.adds += 1;
            if self.taken.iter().any(|(taken, _)| *taken == item) {
                self.again.insert(item, (priority, now));
            } else {
                self.queued.push((item, priority, now));
            }
        }
    }

    fn add_after(&mut self, item: u8, priority: i32, due: Moment) {
        match self.delayed.iter().position(|(delayed, .., wanted)| *delayed == item && !wanted) {
            None => self.delayed.push((item, due, priority, false)),
            Some(at) => {
                self.delayed[at].2 = priority.max(self.delayed[at].2);
                if due < self.delayed[at].1 {
                    let (_, _, priority, _) = self.delayed.remove(at);
                    self.delayed.push((item, due, priority, false));
                }
            }
        }
    }

    /// The delay that a worker wanted for an item is over.
    fn unwanted(&mut self, item: u8) {
        self.delayed.retain(|(delayed, .., wanted)| *delayed != item || !wanted);
    }

    fn promote(&mut self) {
        let now = self.now;
        while let Some(at) = (0..self.delayed.len())
            .filter(|at| self.delayed[*at].1 <= now)
            .min_by_key(|at| (self.delayed[*at].1, *at))
        {
            let (item, due, priority, _) = self.delayed.remove(at);
            self.add(item, priority, due);
        }
    }

    fn take(&mut self) -> Option<(u8, Moment)> {
        let highest = self.queued.iter().map(|(_, priority, _)| *priority).max()?;
        let at = self.queued.iter().position(|(_, priority, _)| *priority == highest)?;
        let (item, _, since) = self.queued.remove(at);
        self.unwanted(item);
        self.taken.push((item, self.now));
        Some((item, self.now - since))
    }

    fn done(&mut self, nth: usize) -> Option<(u8, Moment)> {
        if nth >= self.taken.len() {
            return None;
        }
        let (item, since) = self.taken.remove(nth);
        if let Some((priority, added)) = self.again.remove(&item) {
            self.queued.push((item, priority, added));
        }
        Some((item, self.now - since))
    }
}

#[test]
fn c34_the_queue_does_what_a_naive_one_does() {
    histories(&steps(), |steps| {
        let (mut core, mut model) = (Core::new(), Model::default());
        let mut ids = BTreeMap::new();
        for step in steps {
            core.promote(model.now);
            model.promote();
            match step {
                Step::Add(item, priority) => {
                    core.add(item, priority, model.now);
                    if !model.closed {
                        model.add(item, priority, model.now);
                    }
                }
                Step::AddAfter(item, priority, delay) => {
                    let due = model.now + delay;
                    let before = core.next_due();
                    let earlier = core.add_at(item, priority, due);
                    assert_eq!(earlier, core.next_due() != before);
                    if !model.closed {
                        model.add_after(item, priority, due);
                    }
                }
                Step::Take => {
                    let taken = core.take(model.now);
                    let expected = model.take();
                    assert_eq!(taken.as_ref().map(|Taken { item, waited, .. }| (*item, *waited)), expected);
                    if let Some(Taken { id, item, .. }) = taken {
                        assert_eq!(ids.insert(item, id), None, "two workers have {item}");
                    }
                }
                Step::Requeue(nth, delay) => {
                    if let Some((item, _)) = model.taken.get(nth).copied() {
                        let (due, before) = (model.now + delay, core.next_due());
                        let earlier = core.requeue_at(ids[&item], due);
                        assert_eq!(earlier, !model.closed && before.is_none_or(|before| due < before));
                        if !model.closed {
                            model.unwanted(item);
                            model.delayed.push((item, due, 0, true));
                        }
                    }
                }
                Step::Done(nth) => {
                    if let Some((item, worked)) = model.done(nth) {
                        assert_eq!(core.done(ids.remove(&item).unwrap(), model.now), worked);
                    }
                }
                Step::Advance(by) => model.now += by,
                Step::Close => {
                    core.close();
                    model.closed = true;
                    model.delayed.clear();
                }
            }
            assert_eq!(core.queued(), model.queued.len());
            assert_eq!(core.taken(), model.taken.len());
            let delayed: BTreeSet<u8> = model.delayed.iter().map(|(item, ..)| *item).collect();
            assert_eq!(core.delayed(), delayed.len());
            assert_eq!(core.adds(), model.adds);
            assert_eq!(core.next_due(), model.delayed.iter().map(|(_, due, ..)| *due).min());
            let unfinished: Vec<_> = model.taken.iter().map(|(_, since)| model.now - since).collect();
            let expected = (unfinished.iter().sum(), unfinished.iter().copied().max().unwrap_or(0));
            assert_eq!(core.unfinished(model.now), expected);
            assert_eq!(core.is_idle(), model.queued.is_empty() && model.taken.is_empty());
        }
    });
}

#[test]
fn items_are_freed_when_they_are_done() {
    let item = std::sync::Arc::new(());
    let mut core = Core::new();
    core.add(item.clone(), 0, 0);
    core.add_at(item.clone(), 0, 5);
    let taken = core.take(1).unwrap();
    core.add(item.clone(), 0, 2);
    assert_eq!(core.done(taken.id, 3), 2);
    let again = core.take(4).unwrap();
    core.done(again.id, 4);
    core.close();
    drop((taken, again, core.take_remains()));
    assert_eq!(std::sync::Arc::strong_count(&item), 1);
}

#[test]
fn what_is_moved_again_and_again_leaves_nothing_behind() {
    let mut core = Core::new();
    for round in 0..10_000 {
        core.add("ranked", round, 0);
        core.add_at("delayed", 0, 1_000_000 - round as Moment);
    }
    core.add("taken", 20_000, 0);
    let id = core.take(0).unwrap().id;
    for round in 0..10_000 {
        core.requeue_at(id, 1_000_000 + round);
    }
    assert_eq!((core.queued(), core.delayed()), (1, 2));
    assert!(core.stale() < 200, "{} stale entries", core.stale());
}
