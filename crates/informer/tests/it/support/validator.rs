//! A handler that believes nothing: it checks every event it hears against what it heard before and against the
//! cache, and in the end against the server.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use informer::{
    Event, EventHandler, Notice, Object, Registration, SharedInformer, Subscription, Tombstone,
    model::{ObjectKey, ResourceVersion},
    store::Store,
};
use kube::Resource;

/// What a validator knows, shared by its handler and the test.
pub(crate) struct Validator<K: 'static> {
    record: Arc<Mutex<Record<K>>>,
    /// The server went back in time at some point: versions may fall.
    rewound: Arc<AtomicBool>,
    pub(crate) registration: Registration,
}

struct Record<K> {
    name: String,
    /// What the handler would say is there, by what it heard.
    known: BTreeMap<ObjectKey, Object<K>>,
    /// Every event in words, for whoever has to find out what happened.
    story: Vec<String>,
    violations: Vec<String>,
}

/// The handler of a validator.
pub(crate) struct Listening<K> {
    record: Arc<Mutex<Record<K>>>,
    rewound: Arc<AtomicBool>,
    cache: Store<K>,
    /// Which objects may be told as initial; all of them if nobody says.
    existed: Option<Existed<K>>,
}

type Existed<K> = Box<dyn Fn(&Object<K>) -> bool + Send + Sync>;

impl<K: Resource + Send + Sync + 'static> Validator<K> {
    /// Adds a validator to an informer.
    pub(crate) fn add(informer: &SharedInformer<K>, name: &str) -> Self {
        Self::add_as(informer, name, |listening| listening)
    }

    /// Adds a validator that is called by another handler, such as a slow one or one with a filter.
    pub(crate) fn add_as<H: EventHandler<K>>(
        informer: &SharedInformer<K>,
        name: &str,
        handler: impl FnOnce(Listening<K>) -> H,
    ) -> Self {
        let listening = Listening::new(informer.store(), name);
        let (record, rewound) = (Arc::clone(&listening.record), Arc::clone(&listening.rewound));
        let registration = informer.add_handler(handler(listening)).expect("the informer has not stopped");
        Self { record, rewound, registration }
    }

    /// A validator for what a subscription hands out: whoever polls it calls [`Listening::hear`].
    pub(crate) fn of(
        informer: &SharedInformer<K>,
        name: &str,
        subscription: &Subscription<K>,
    ) -> (Self, Listening<K>) {
        let listening = Listening::new(informer.store(), name);
        let (record, rewound) = (Arc::clone(&listening.record), Arc::clone(&listening.rewound));
        (Self { record, rewound, registration: subscription.registration().clone() }, listening)
    }

    /// From now on versions may fall.
    pub(crate) fn allow_rewinding(&self) {
        self.rewound.store(true, Ordering::SeqCst);
    }

    /// How many events it heard.
    pub(crate) fn events(&self) -> usize {
        self.record.lock().unwrap().story.len()
    }

    /// What it heard, in words.
    pub(crate) fn story(&self) -> Vec<String> {
        self.record.lock().unwrap().story.clone()
    }

    /// Key and version of all that is there, by what it heard.
    pub(crate) fn known(&self) -> BTreeMap<ObjectKey, ResourceVersion> {
        versions(self.record.lock().unwrap().known.values())
    }

    /// All that is there, by what it heard.
    pub(crate) fn last_words(&self) -> BTreeMap<ObjectKey, Object<K>> {
        self.record.lock().unwrap().known.clone()
    }

    /// Fails the test if an event was not legal.
    pub(crate) fn check(&self) {
        let record = self.record.lock().unwrap();
        let (name, violations, story) = (&record.name, &record.violations, &record.story);
        assert!(violations.is_empty(), "{name}: {violations:#?}\nit heard {story:#?}");
    }

    /// Fails the test unless the last word on every key is what the cache has.
    pub(crate) fn check_last_word(&self, cache: &Store<K>) {
        self.check();
        let cached = versions(cache.snapshot().iter());
        assert_eq!(self.known(), cached, "the last words of {:?} and the cache", self.story());
    }
}

/// Key and version of each object.
pub(crate) fn versions<'a, K: 'a>(
    objects: impl IntoIterator<Item = &'a Object<K>>,
) -> BTreeMap<ObjectKey, ResourceVersion> {
    objects.into_iter().map(|object| (object.key().clone(), object.resource_version().clone())).collect()
}

impl<K: Resource + Send + Sync + 'static> Listening<K> {
    fn new(cache: Store<K>, name: &str) -> Self {
        let (violations, story, known) = Default::default();
        let record = Arc::new(Mutex::new(Record { name: name.to_owned(), known, story, violations }));
        Self { record, rewound: Arc::new(AtomicBool::new(false)), cache, existed: None }
    }

    /// Says which objects may be told as initial.
    pub(crate) fn expecting(mut self, existed: impl Fn(&Object<K>) -> bool + Send + Sync + 'static) -> Self {
        self.existed = Some(Box::new(existed));
        self
    }

    /// Hears an event.
    pub(crate) fn hear(&self, notice: &Notice<K>) {
        match &notice.event {
            Event::Added(object) => self.added(object, notice.initial),
            Event::Updated { old, new } => self.updated(old, new),
            Event::Deleted(gone) => self.deleted(gone),
        }
    }

    fn heard(&self, what: impl Debug, event: impl FnOnce(&mut Record<K>) -> Result<(), String>) {
        let mut record = self.record.lock().unwrap();
        let what = format!("{what:?}");
        if let Err(violation) = event(&mut record) {
            let at = record.story.len();
            record.violations.push(format!("event {at}, {what}: {violation}"));
        }
        record.story.push(what);
    }

    /// The cache changes before anybody hears of it, so it is never older than what is told.
    fn is_cached(&self, told: &Object<K>) -> Result<(), String> {
        match self.cache.get(told.key()) {
            Some(cached)
                if cached.resource_version() < told.resource_version()
                    && !self.rewound.load(Ordering::SeqCst) =>
            {
                Err(format!("told of {told:?}, the cache has {cached:?}"))
            }
            _ => Ok(()),
        }
    }

    fn added(&self, object: &Object<K>, initial: bool) {
        self.heard(("added", object, initial), |record| {
            self.is_cached(object)?;
            let existed = self.existed.as_ref().is_none_or(|existed| existed(object));
            if initial && !existed && !self.rewound.load(Ordering::SeqCst) {
                return Err("initial, but it came later".to_owned());
            }
            match record.known.insert(object.key().clone(), object.clone()) {
                Some(known) => Err(format!("added what is there already: {known:?}")),
                None => Ok(()),
            }
        });
    }

    fn updated(&self, old: &Object<K>, new: &Object<K>) {
        self.heard(("updated", old, new), |record| {
            self.is_cached(new)?;
            match record.known.insert(new.key().clone(), new.clone()) {
                None => return Err("updated what was never added".to_owned()),
                // Deleted and made anew while the handler was far behind: the old object may be the final state.
                Some(known)
                    if known.resource_version() != old.resource_version()
                        && old.meta().uid == new.meta().uid
                        && !self.rewound.load(Ordering::SeqCst) =>
                {
                    return Err(format!("the old object is not what was told last: {known:?}"));
                }
                Some(_) => {}
            }
            if new.resource_version() < old.resource_version() && !self.rewound.load(Ordering::SeqCst) {
                return Err("the version fell".to_owned());
            }
            Ok(())
        });
    }

    fn deleted(&self, gone: &Tombstone<K>) {
        let what = ("deleted", gone.key(), gone.object(), gone.final_state_known());
        self.heard(what, |record| match record.known.remove(gone.key()) {
            None => Err("deleted what was never added".to_owned()),
            Some(_) => Ok(()),
        });
    }
}

impl<K: Resource + Send + Sync + 'static> EventHandler<K> for Listening<K> {
    async fn on_add(&mut self, object: &Object<K>, initial: bool) {
        self.added(object, initial);
    }

    async fn on_update(&mut self, old: &Object<K>, new: &Object<K>) {
        self.updated(old, new);
    }

    async fn on_delete(&mut self, gone: &Tombstone<K>) {
        self.deleted(gone);
    }
}
