//! A processor with what is before and behind it, and handlers that write down what they hear.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use tokio::{sync::Semaphore, time};

use super::super::*;
use crate::{
    Event, Object, Tombstone,
    metrics::Measurement,
    queue::{self, Delta},
    shared::{
        handler::{EventHandler, Handler},
        registration::Registration,
    },
    store::{self, StoreWriter},
    sync::Mutex,
};

pub(super) type Log = Arc<Mutex<Vec<String>>>;

pub(super) fn mk(name: &str, version: u64) -> Object<ConfigMap> {
    let (name, resource_version) = (Some(name.to_owned()), Some(version.to_string()));
    let metadata = ObjectMeta { name, resource_version, ..ObjectMeta::default() };
    Object::new(ConfigMap { metadata, ..ConfigMap::default() }).unwrap()
}

/// A store, the processor behind it, and what a controller does with both.
pub(super) struct Rig {
    pub(super) joining: Arc<Joining<ConfigMap>>,
    pub(super) processor: Processor<ConfigMap>,
    pub(super) writer: StoreWriter<ConfigMap>,
    pub(super) store: Store<ConfigMap>,
    pub(super) panics: Arc<Panics>,
}

#[derive(Default)]
pub(super) struct Panics(pub(super) Mutex<Vec<String>>);

impl Metrics for Panics {
    fn record(&self, informer: &str, measurement: Measurement<'_>) {
        if let Measurement::HandlerPanicked { handler } = measurement {
            self.0.lock().unwrap().push(format!("{informer}/{handler}"));
        }
    }
}

impl Rig {
    pub(super) fn new(resync: Duration) -> Self {
        let joining = Joining::new();
        let (writer, store) = store::new();
        let panics = Arc::new(Panics::default());
        let metrics: Arc<dyn Metrics> = panics.clone();
        let processor = Processor::new(Arc::clone(&joining), resync, "configs", Some(metrics));
        Self { joining, processor, writer, store, panics }
    }

    /// A rig whose first list, empty, is done.
    pub(super) fn listed() -> Self {
        let mut rig = Self::new(Duration::ZERO);
        rig.processor.admit(&rig.store);
        rig.processor.initial_list_done();
        rig
    }

    pub(super) fn add(&mut self, handler: impl EventHandler<ConfigMap>) -> Registration {
        let registration = self.joining.add(handler).unwrap();
        self.processor.admit(&self.store);
        registration
    }

    pub(super) fn apply(&mut self, deltas: Vec<Delta<ConfigMap>>, initial: bool) {
        let mut notices = Vec::new();
        self.writer.write(|batch| {
            queue::apply(deltas, batch, |event| {
                let initial = initial && matches!(event, Event::Added(_));
                notices.push(Notice { event, initial });
            });
        });
        self.processor.distribute(notices, &None);
    }

    pub(super) fn put(&mut self, name: &str, version: u64) {
        self.apply(vec![Delta::Updated(mk(name, version))], false);
    }

    pub(super) fn delete(&mut self, name: &str, version: u64) {
        self.apply(vec![Delta::Deleted(Tombstone::Final(mk(name, version)))], false);
    }
}

/// Paused time moves on only when no task has anything to do.
pub(super) async fn settle() {
    time::sleep(Duration::from_millis(1)).await;
}

pub(super) fn log() -> Log {
    Arc::default()
}

pub(super) fn heard(log: &Log) -> String {
    std::mem::take(&mut *log.lock().unwrap()).join(" ")
}

/// Writes down what it hears: `+` added, `*` added and initial, `~` updated, `.` resync, `-` deleted.
pub(super) fn scribe(log: &Log) -> Handler<ConfigMap> {
    let logs = [log, log, log].map(Arc::clone);
    let [added, updated, deleted] = logs;
    Handler::<ConfigMap>::new()
        .on_add(move |object, initial| {
            added.lock().unwrap().push(format!("{}{object:?}", if initial { '*' } else { '+' }));
        })
        .on_update(move |old, new| {
            let text = match old.ptr_eq(new) {
                true => format!(".{new:?}"),
                false => format!("~{new:?}<{}", old.resource_version()),
            };
            updated.lock().unwrap().push(text);
        })
        .on_delete(move |gone| deleted.lock().unwrap().push(format!("-{}", gone.key())))
}

/// Knows what it was told, and panics at a step that cannot be. May have to ask before each event.
#[derive(Default, Clone)]
pub(super) struct Witness {
    pub(super) known: Arc<Mutex<BTreeMap<String, Object<ConfigMap>>>>,
    events: Arc<AtomicUsize>,
    gate: Option<Arc<Semaphore>>,
    pub(super) faults: Log,
    /// Counted to see when the handler is gone.
    alive: Arc<()>,
}

impl Witness {
    pub(super) fn gated() -> Self {
        Self { gate: Some(Arc::new(Semaphore::new(0))), ..Self::default() }
    }

    pub(super) fn open(&self, events: usize) {
        self.gate.as_ref().unwrap().add_permits(events);
    }

    async fn pass(&self) {
        if let Some(gate) = &self.gate {
            gate.acquire().await.unwrap().forget();
        }
        self.events.fetch_add(1, Ordering::SeqCst);
    }

    fn check(&self, right: bool, text: impl FnOnce() -> String) {
        if !right {
            self.faults.lock().unwrap().push(text());
        }
    }

    pub(super) fn events(&self) -> usize {
        self.events.load(Ordering::SeqCst)
    }

    pub(super) fn is_gone(&self) -> bool {
        Arc::strong_count(&self.alive) == 1
    }

    /// What it knows is what the store has, and it got there in legal steps.
    pub(super) fn agrees_with(&self, store: &Store<ConfigMap>) {
        assert_eq!(heard(&self.faults), "");
        let snapshot = store.snapshot();
        let stored: Vec<String> = snapshot.iter().map(|object| format!("{object:?}")).collect();
        let known: Vec<String> =
            self.known.lock().unwrap().values().map(|object| format!("{object:?}")).collect();
        assert_eq!(known, stored);
    }
}

impl EventHandler<ConfigMap> for Witness {
    async fn on_add(&mut self, object: &Object<ConfigMap>, _initial: bool) {
        self.pass().await;
        let known = self.known.lock().unwrap().insert(object.key().to_string(), object.clone());
        self.check(known.is_none(), || format!("{object:?} added over {known:?}"));
    }

    async fn on_update(&mut self, old: &Object<ConfigMap>, new: &Object<ConfigMap>) {
        self.pass().await;
        let known = self.known.lock().unwrap().insert(new.key().to_string(), new.clone());
        self.check(known.is_some(), || format!("{new:?} updated from {old:?}, but nothing was known"));
    }

    async fn on_delete(&mut self, gone: &Tombstone<ConfigMap>) {
        self.pass().await;
        let known = self.known.lock().unwrap().remove(gone.key().as_str());
        self.check(known.is_some(), || format!("{gone:?} was not known"));
    }
}
