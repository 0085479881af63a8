//! Which items wait, which are delayed, which are with a worker: the queue without a clock, a lock or a task.
//!
//! Moments come in as nanoseconds since the queue was made. Each item is kept once, in a slot; queues and the heap of delays
//! hold the slot's number.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
    hash::{BuildHasher, Hash},
    mem::take,
};

use hashbrown::{DefaultHashBuilder, HashTable};

/// Nanoseconds since the queue was made.
pub(super) type Moment = u64;

/// The number of a slot.
pub(super) type Id = u32;

/// No delay. No moment is that late.
const NEVER: Moment = Moment::MAX;

/// Fewer stale entries than this are not worth tidying up.
const FEW: usize = 64;

/// The memory of so many items may be kept.
const MANY: usize = 1024;

/// All that is known of an item.
struct Slot<T> {
    /// `None` while nobody uses the slot.
    item: Option<T>,
    hash: u64,
    /// When it is to be queued, as each asked for.
    due: [Moment; 2],
    /// When it was added.
    queued_at: Moment,
    /// Since when a worker has it.
    taken_at: Moment,
    /// Which entry of the ready queue is the valid one.
    ticket: u32,
    /// What it is queued with, or will be when the worker is done.
    priority: i32,
    /// What it will be queued with when it is due as anybody asked for.
    due_priority: i32,
    queued: bool,
    /// Where it stands among those that are with a worker.
    taken: Option<u32>,
    /// It was added while a worker had it.
    again: bool,
}

impl<T> Slot<T> {
    fn is_delayed(&self) -> bool {
        self.due != [NEVER; 2]
    }
}

/// Who asked for a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Anybody,
    /// Who had the item. It is over when a worker has the item again, who may ask for another.
    Worker,
}

/// An entry of a ready queue. It is stale if the slot has another ticket.
#[derive(Clone, Copy)]
struct Entry {
    id: Id,
    ticket: u32,
}

/// An entry of the heap of delays, the earliest first, among equals the one that came first. It is stale if the slot is due
/// at another moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Delay {
    due: Moment,
    order: u64,
    id: Id,
    by: By,
}

/// What a worker gets.
#[derive(Debug, PartialEq)]
pub(super) struct Taken<T> {
    pub(super) id: Id,
    pub(super) item: T,
    /// How long ago the item was added.
    pub(super) waited: Moment,
}

/// What a core no longer needs. Of millions of items it takes a while to drop, which nobody should wait for.
pub(super) struct Remains<T> {
    slots: Vec<Slot<T>>,
    /// Only memory.
    rest: (Vec<Id>, HashTable<Id>, VecDeque<Entry>, BinaryHeap<Reverse<Delay>>),
}

impl<T> Remains<T> {
    /// How many items there are at most.
    pub(super) fn len(&self) -> usize {
        self.slots.len().max(self.rest.3.len())
    }
}

/// Items, queued, delayed and taken.
pub(super) struct Core<T> {
    slots: Vec<Slot<T>>,
    free: Vec<Id>,
    by_item: HashTable<Id>,
    hasher: DefaultHashBuilder,
    /// Items of priority zero, which most are.
    ready: VecDeque<Entry>,
    /// Items of other priorities, the highest first.
    ranked: BTreeMap<Reverse<i32>, VecDeque<Entry>>,
    /// How many entries both have, stale ones too.
    entries: usize,
    tickets: u32,
    delays: BinaryHeap<Reverse<Delay>>,
    delay_order: u64,
    /// How many entries of the heap are not stale.
    dues: usize,
    queued: usize,
    /// Those that are with a worker.
    taken: Vec<Id>,
    delayed: usize,
    adds: u64,
    closed: bool,
    remains: Option<Remains<T>>,
}

impl<T: Hash + Eq + Clone> Core<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_item: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            ready: VecDeque::new(),
            ranked: BTreeMap::new(),
            entries: 0,
            tickets: 0,
            delays: BinaryHeap::new(),
            delay_order: 0,
            dues: 0,
            queued: 0,
            taken: Vec::new(),
            delayed: 0,
            adds: 0,
            closed: false,
            remains: None,
        }
    }

    /// What is to be dropped, outside of any lock.
    pub(super) fn take_remains(&mut self) -> Option<Remains<T>> {
        self.remains.take()
    }

    /// How many items are queued, not counting those that are delayed or with a worker.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// How many items are delayed.
    pub(super) fn delayed(&self) -> usize {
        self.delayed
    }

    /// How many items are with a worker.
    pub(super) fn taken(&self) -> usize {
        self.taken.len()
    }

    /// How many items were added so far. One that was queued already does not count.
    pub(super) fn adds(&self) -> u64 {
        self.adds
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Queues an item, unless it is queued. Of two priorities the higher counts.
    pub(super) fn add(&mut self, item: T, priority: i32, now: Moment) {
        if !self.closed {
            let id = self.slot_of(item);
            self.add_slot(id, priority, now);
        }
    }

    /// Queues an item at a moment, or at an earlier one if that was asked for before.
    ///
    /// Returns whether the earliest moment of all has come closer.
    pub(super) fn add_at(&mut self, item: T, priority: i32, due: Moment) -> bool {
        if self.closed {
            return false;
        }
        let due = due.min(NEVER - 1);
        let before = self.next_due();
        let id = self.slot_of(item);
        let slot = &mut self.slots[id as usize];
        let asked = slot.due[By::Anybody as usize];
        slot.due_priority = if asked == NEVER { priority } else { slot.due_priority.max(priority) };
        if due < asked {
            self.set_due(id, By::Anybody, due);
        }
        before.is_none_or(|before| due < before)
    }

    /// Queues an item that a worker has at a moment, instead of one that this worker asked for before.
    ///
    /// Returns whether the earliest moment of all has come closer.
    pub(super) fn requeue_at(&mut self, id: Id, due: Moment) -> bool {
        if self.closed {
            return false;
        }
        let due = due.min(NEVER - 1);
        let before = self.next_due();
        self.set_due(id, By::Worker, due);
        before.is_none_or(|before| due < before)
    }

    fn set_due(&mut self, id: Id, by: By, due: Moment) {
        let slot = &mut self.slots[id as usize];
        let (was_delayed, before) = (slot.is_delayed(), std::mem::replace(&mut slot.due[by as usize], due));
        self.delayed = self.delayed + usize::from(slot.is_delayed()) - usize::from(was_delayed);
        self.dues = self.dues + usize::from(due != NEVER) - usize::from(before != NEVER);
        if due != NEVER {
            self.delay_order += 1;
            self.delays.push(Reverse(Delay { due, order: self.delay_order, id, by }));
            self.tidy_delays();
        }
    }

    /// The moment when the next delayed item is due.
    pub(super) fn next_due(&mut self) -> Option<Moment> {
        while let Some(&Reverse(delay)) = self.delays.peek() {
            if self.slots[delay.id as usize].due[delay.by as usize] == delay.due {
                return Some(delay.due);
            }
            self.delays.pop();
        }
        None
    }

    /// Queues what is due, in the order of the moments.
    pub(super) fn promote(&mut self, now: Moment) {
        while let Some(due) = self.next_due().filter(|due| *due <= now) {
            let Some(Reverse(delay)) = self.delays.pop() else { break };
            self.set_due(delay.id, delay.by, NEVER);
            let priority = match delay.by {
                By::Anybody => self.slots[delay.id as usize].due_priority,
                By::Worker => 0,
            };
            self.add_slot(delay.id, priority, due);
        }
    }

    /// Hands the next item to a worker.
    pub(super) fn take(&mut self, now: Moment) -> Option<Taken<T>> {
        loop {
            let entry = self.next_entry()?;
            let slot = &mut self.slots[entry.id as usize];
            if !slot.queued || slot.ticket != entry.ticket {
                continue;
            }
            slot.queued = false;
            slot.taken = Some(self.taken.len() as u32);
            slot.taken_at = now;
            self.queued -= 1;
            self.taken.push(entry.id);
            let waited = now.saturating_sub(slot.queued_at);
            let item = slot.item.clone()?;
            if slot.due[By::Worker as usize] != NEVER && !self.closed {
                self.set_due(entry.id, By::Worker, NEVER);
            }
            return Some(Taken { id: entry.id, item, waited });
        }
    }

    /// A worker is done with an item, which is queued once more if it was added meanwhile. Returns how long the worker had
    /// it.
    pub(super) fn done(&mut self, id: Id, now: Moment) -> Moment {
        if let Some(place) = self.slots[id as usize].taken.take() {
            self.taken.swap_remove(place as usize);
            if let Some(moved) = self.taken.get(place as usize) {
                self.slots[*moved as usize].taken = Some(place);
            }
        }
        let slot = &mut self.slots[id as usize];
        let worked = now.saturating_sub(slot.taken_at);
        if take(&mut slot.again) {
            let priority = slot.priority;
            self.enqueue(id, priority);
        }
        self.release(id);
        worked
    }

    /// Takes nothing more in and drops what is delayed, however much that is. What is queued can still be taken.
    pub(super) fn close(&mut self) {
        self.closed = true;
        (self.delayed, self.dues) = (0, 0);
        if self.is_idle() {
            return self.clear();
        }
        let rest = (Vec::new(), HashTable::new(), VecDeque::new(), take(&mut self.delays));
        self.remains = Some(Remains { slots: Vec::new(), rest });
    }

    /// Whether nothing is queued and no worker has anything.
    pub(super) fn is_idle(&self) -> bool {
        self.queued == 0 && self.taken.is_empty()
    }

    /// For how long workers have had what they have now: all together, and the longest.
    pub(super) fn unfinished(&self, now: Moment) -> (Moment, Moment) {
        let since = self.taken.iter().map(|id| now.saturating_sub(self.slots[*id as usize].taken_at));
        since.fold((0, 0), |(all, longest), one| (all.saturating_add(one), longest.max(one)))
    }

    #[cfg(test)]
    pub(super) fn stale(&self) -> usize {
        self.entries + self.delays.len() - self.queued - self.dues
    }

    fn add_slot(&mut self, id: Id, priority: i32, now: Moment) {
        let slot = &mut self.slots[id as usize];
        if slot.queued {
            if priority > slot.priority {
                self.move_to(id, priority);
            }
        } else if slot.again {
            slot.priority = slot.priority.max(priority);
        } else {
            self.adds += 1;
            slot.queued_at = now;
            if slot.taken.is_some() {
                slot.again = true;
                slot.priority = priority;
            } else {
                self.enqueue(id, priority);
            }
        }
    }

    fn enqueue(&mut self, id: Id, priority: i32) {
        self.slots[id as usize].queued = true;
        self.queued += 1;
        self.move_to(id, priority);
    }

    /// Puts a queued item at the end of those of a priority. Where it was before, it no longer is.
    fn move_to(&mut self, id: Id, priority: i32) {
        self.tickets = self.tickets.wrapping_add(1);
        let slot = &mut self.slots[id as usize];
        slot.priority = priority;
        slot.ticket = self.tickets;
        let entry = Entry { id, ticket: slot.ticket };
        self.entries += 1;
        match priority {
            0 => self.ready.push_back(entry),
            _ => self.ranked.entry(Reverse(priority)).or_default().push_back(entry),
        }
        self.tidy_ready();
    }

    fn next_entry(&mut self) -> Option<Entry> {
        self.entries = self.entries.saturating_sub(1);
        if let Some(mut first) = self.ranked.first_entry()
            && (first.key().0 > 0 || self.ready.is_empty())
        {
            let entry = first.get_mut().pop_front();
            if first.get().is_empty() {
                first.remove();
            }
            return entry;
        }
        self.ready.pop_front()
    }

    /// The slot of an item, a new one if it has none.
    fn slot_of(&mut self, item: T) -> Id {
        let hash = self.hasher.hash_one(&item);
        let is_it = |id: &Id| self.slots[*id as usize].item.as_ref() == Some(&item);
        if let Some(id) = self.by_item.find(hash, is_it) {
            return *id;
        }
        let slot = Slot {
            item: Some(item),
            hash,
            due: [NEVER; 2],
            queued_at: 0,
            taken_at: 0,
            ticket: 0,
            priority: 0,
            due_priority: 0,
            queued: false,
            taken: None,
            again: false,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                Id::try_from(self.slots.len() - 1).expect("fewer than 2³² items")
            }
        };
        self.by_item.insert_unique(hash, id, |id| self.slots[*id as usize].hash);
        id
    }

    /// Frees a slot and its item if nothing needs it any more.
    fn release(&mut self, id: Id) {
        let slot = &mut self.slots[id as usize];
        if slot.queued || slot.taken.is_some() || (slot.is_delayed() && !self.closed) {
            return;
        }
        slot.item = None;
        if let Ok(entry) = self.by_item.find_entry(slot.hash, |other| *other == id) {
            entry.remove();
            self.free.push(id);
        }
        if self.by_item.is_empty() || (self.closed && self.is_idle()) {
            self.clear();
        }
    }

    /// Nothing is left but stale entries. A large crowd gives its memory back.
    fn clear(&mut self) {
        self.ranked.clear();
        self.entries = 0;
        if self.closed || self.slots.capacity() > MANY {
            let rest = (
                take(&mut self.free),
                take(&mut self.by_item),
                take(&mut self.ready),
                take(&mut self.delays),
            );
            self.remains = Some(Remains { slots: take(&mut self.slots), rest });
        } else {
            self.ready.clear();
            self.delays.clear();
        }
    }

    /// Drops stale entries when they are the most.
    fn tidy_ready(&mut self) {
        if self.entries <= 2 * self.queued + FEW {
            return;
        }
        let slots = &self.slots;
        let valid = |entry: &Entry| {
            let slot = &slots[entry.id as usize];
            slot.queued && slot.ticket == entry.ticket
        };
        self.ready.retain(valid);
        self.ranked.retain(|_, entries| {
            entries.retain(valid);
            !entries.is_empty()
        });
        self.entries = self.queued;
    }

    fn tidy_delays(&mut self) {
        if self.delays.len() > 2 * self.dues + FEW {
            let slots = &self.slots;
            self.delays.retain(|Reverse(delay)| slots[delay.id as usize].due[delay.by as usize] == delay.due);
        }
    }
}
