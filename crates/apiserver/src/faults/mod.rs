//! Faults on demand: what goes wrong in real clusters, when you want it to.
//!
//! A [`Rule`] says what goes wrong and with which requests or events. Rules are asked in the order in which
//! they were added, until one of them leaves nothing to the next: a request that was refused or answered, an
//! event that was lost. Everything that is left to chance follows from the seed of the server.

mod body;
mod rule;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use body::Break;
pub(crate) use body::{HTML, breakable, broken};
use bytes::Bytes;
use informer_serving::media::Encoding;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use rule::Occasion;
pub(crate) use rule::Requested;
pub use rule::{Fault, Rule};
use tokio::sync::mpsc;

use crate::{present::error_event, verbs::Verb};

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
    /// The watches that are open, in the order in which they were opened.
    watches: BTreeMap<u64, (Arc<Requested>, mpsc::UnboundedSender<Break>)>,
    opened: u64,
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

impl Active {
    /// Whether something goes wrong with a request that it may be about.
    fn strikes(&mut self, request: &Requested) -> bool {
        if !self.rule.fits(request) {
            return false;
        }
        self.fitted += 1;
        let applies = self.rule.applies(self.fitted, &mut self.random);
        self.hits += u64::from(applies);
        applies
    }
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
        let mut active = Active { id, rule, random, fitted: 0, hits: 0 };
        if let Some(broken) = Break::by(&active.rule.fault) {
            for (_, breaks) in rules.watches.values().filter(|(request, _)| active.strikes(request)) {
                // Whoever is gone by now need not be told.
                let _ = breaks.send(broken);
            }
        }
        rules.active.push(active);
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

    /// What goes wrong with a request, and, of a watch, the handle by which it is broken later.
    pub(crate) fn request(&self, request: &Arc<Requested>) -> (Vec<Fault>, Option<OpenWatch>) {
        // In one step: a rule is about a watch when it begins or when the rule is added, and not both.
        let mut rules = self.lock();
        let struck = rules.strike(Occasion::Request, request);
        let is_watch = request.objects.as_ref().is_some_and(|(verb, _)| *verb == Verb::Watch);
        let watch = is_watch.then(|| {
            let (breaks, told) = mpsc::unbounded_channel();
            rules.opened += 1;
            let number = rules.opened;
            rules.watches.insert(number, (Arc::clone(request), breaks));
            OpenWatch { faults: self.clone(), number, told }
        });
        (struck, watch)
    }

    /// Breaks the connections of all open watches.
    pub(crate) fn break_watches(&self) {
        for (_, breaks) in self.lock().watches.values() {
            let _ = breaks.send(Break::NEXT);
        }
    }

    /// The faults of one watch, whose events are written like this.
    pub(crate) fn watch(&self, request: &Arc<Requested>, encoding: Encoding) -> WatchFaults {
        WatchFaults { faults: self.clone(), request: Arc::clone(request), encoding, ended: false }
    }
}

impl Rules {
    /// What goes wrong on an occasion.
    fn strike(&mut self, occasion: Occasion, request: &Requested) -> Vec<Fault> {
        let mut struck = Vec::new();
        for active in &mut self.active {
            if active.rule.fault.occasion() == occasion && active.strikes(request) {
                struck.push(active.rule.fault.clone());
                if active.rule.fault.is_final() {
                    break;
                }
            }
        }
        struck
    }
}

/// A watch whose connection can be broken, until this is dropped.
pub(crate) struct OpenWatch {
    faults: Faults,
    number: u64,
    told: mpsc::UnboundedReceiver<Break>,
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.faults.lock().watches.remove(&self.number);
    }
}

/// What goes wrong with the events of one watch.
pub(crate) struct WatchFaults {
    faults: Faults,
    request: Arc<Requested>,
    encoding: Encoding,
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
        self.faults.lock().strike(occasion, &self.request)
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
                    frames = [Some(error_event(&status, self.encoding)), None];
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
