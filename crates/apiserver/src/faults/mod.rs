//! Faults on demand: what goes wrong in real clusters, when you want it to.
//!
//! A [`Rule`] says what goes wrong and with which requests or events. Rules are asked in the order in which
//! they were added, until one of them leaves nothing to the next: a request that was refused or answered, an
//! event that was lost. Everything that is left to chance follows from the seed of the server.

mod body;
mod rule;

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

pub(crate) use body::{HTML, broken};
use bytes::Bytes;
use informer_serving::{envelope::error_event, path::Place};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use rule::Occasion;
pub use rule::{Fault, Rule};

use crate::verbs::Verb;

/// The number of a rule that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleId(u64);

/// The faults of a server. A clone is another handle to the same ones.
#[derive(Debug, Clone)]
pub struct Faults(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    seed: u64,
    rules: Mutex<Rules>,
    /// How many rules are about events: almost always none, and watches are busy.
    about_events: AtomicUsize,
}

#[derive(Debug, Default)]
struct Rules {
    added: u64,
    active: Vec<Active>,
}

#[derive(Debug)]
struct Active {
    id: RuleId,
    rule: Rule,
    random: Pcg64Mcg,
    /// How often it fitted, and how often it applied.
    fitted: u64,
    hits: u64,
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Shared { seed, rules: Mutex::default(), about_events: AtomicUsize::new(0) }))
    }

    fn lock(&self) -> MutexGuard<'_, Rules> {
        self.0.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recount(&self, rules: &Rules) {
        let about_events = rules.active.iter().filter(|a| a.rule.fault.occasion() != Occasion::Request);
        self.0.about_events.store(about_events.count(), Relaxed);
    }

    /// Lets something go wrong from now on.
    pub fn add(&self, rule: Rule) -> RuleId {
        let mut rules = self.lock();
        rules.added += 1;
        let id = RuleId(rules.added);
        // Each rule has chances of its own: adding one does not change what happens by another.
        let random = Pcg64Mcg::seed_from_u64(self.0.seed ^ id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rules.active.push(Active { id, rule, random, fitted: 0, hits: 0 });
        self.recount(&rules);
        id
    }

    /// Ends a fault.
    pub fn remove(&self, id: RuleId) {
        let mut rules = self.lock();
        rules.active.retain(|active| active.id != id);
        self.recount(&rules);
    }

    /// Ends all faults.
    pub fn clear(&self) {
        let mut rules = self.lock();
        rules.active.clear();
        self.recount(&rules);
    }

    /// How often a rule that is still there has applied.
    pub fn hits(&self, id: RuleId) -> u64 {
        self.lock().active.iter().find(|active| active.id == id).map_or(0, |active| active.hits)
    }

    /// What goes wrong on an occasion.
    fn strike(&self, occasion: Occasion, request: Option<(Verb, &Place)>) -> Vec<Fault> {
        let mut struck = Vec::new();
        for active in &mut self.lock().active {
            if active.rule.fault.occasion() == occasion && active.rule.fits(request) {
                active.fitted += 1;
                if active.rule.applies(active.fitted, &mut active.random) {
                    active.hits += 1;
                    struck.push(active.rule.fault.clone());
                    if active.rule.fault.is_final() {
                        break;
                    }
                }
            }
        }
        struck
    }

    /// What goes wrong with a request.
    pub(crate) fn request(&self, request: Option<(Verb, &Place)>) -> Vec<Fault> {
        self.strike(Occasion::Request, request)
    }

    /// The faults of one watch.
    pub(crate) fn watch(&self, place: &Place) -> WatchFaults {
        WatchFaults { faults: self.clone(), place: place.clone(), ended: false }
    }
}

/// What goes wrong with the events of one watch.
pub(crate) struct WatchFaults {
    faults: Faults,
    place: Place,
    ended: bool,
}

impl WatchFaults {
    /// Whether a fault has ended the watch.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    fn strike(&self, occasion: Occasion) -> Vec<Fault> {
        if self.faults.0.about_events.load(Relaxed) == 0 {
            return Vec::new();
        }
        self.faults.strike(occasion, Some((Verb::Watch, &self.place)))
    }

    /// What becomes of an event: itself, twice itself, nothing, or an error.
    pub(crate) fn event(&mut self, frame: Bytes) -> impl Iterator<Item = Bytes> + use<> {
        let mut frames = [Some(frame).filter(|_| !self.ended), None];
        let struck = if self.ended { Vec::new() } else { self.strike(Occasion::Event) };
        for fault in struck {
            match fault {
                Fault::DropEvent => frames = [None, None],
                Fault::DuplicateEvent => frames[1] = frames[0].clone(),
                Fault::StreamError(status) => {
                    frames = [Some(error_event(&status)), None];
                    self.ended = true;
                }
                _ => {}
            }
        }
        frames.into_iter().flatten()
    }

    /// A bookmark, if it is not lost.
    pub(crate) fn bookmark(&self, frame: Bytes) -> Option<Bytes> {
        self.strike(Occasion::Bookmark).is_empty().then_some(frame)
    }

    /// The bookmark that closes the initial events, if it is not lost.
    pub(crate) fn end_of_initial_events(&self, frame: Bytes) -> Option<Bytes> {
        self.strike(Occasion::InitialEventsEnd).is_empty().then_some(frame)
    }
}
