//! A server, an informer and the listeners, and everything that can happen to them.

use std::{
    collections::BTreeSet,
    fmt::Display,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt;
use informer::{
    SharedInformer,
    model::ObjectKey,
    queue::{QueueKind, Transform},
    shared::RunError,
    source::MemorySource,
    store::IndexHandle,
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use tokio::{
    sync::Notify,
    task::{JoinHandle, yield_now},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Story,
    listeners::{Listener, PLANNED, Setting},
    moment::Past,
    support::{Config, data_keys, key},
    way::{Births, Way},
};

/// An object with this among its data is refused by the transform, if there is one.
pub(crate) const REFUSED: &str = "refused";
/// An object with this among its data makes the transform panic.
pub(crate) const THORNY: &str = "thorny";
/// How often the transform has changed an object; more than once is a mistake.
pub(crate) const TRANSFORMED: &str = "transformed";

/// How many objects there are in a namespace, at most: a few, or more than are applied in one step.
const FEW: usize = 8;
const MANY: usize = 800;

/// Where objects are written. An informer covers all of them, or some as a list of namespaces.
pub(crate) const NAMESPACES: [&str; 3] = ["a", "b", "c"];

pub(crate) struct World {
    pub(crate) rng: Pcg32,
    story: Story,
    pub(crate) server: MemorySource<ConfigMap>,
    pub(crate) informer: SharedInformer<ConfigMap>,
    /// Its sources.
    pub(crate) ways: Vec<Way>,
    births: Births,
    /// So many objects in each namespace: a few, or more than are applied in one step.
    names: usize,
    /// How often everything is shown again.
    resync: Duration,
    /// A handler is being shown everything again.
    shown: Arc<Notify>,
    /// The namespaces that the informer covers.
    pub(crate) scope: Vec<&'static str>,
    pub(crate) transforms: bool,
    /// The cache is always what the server had at one version: changes come one by one and from one watch.
    pub(crate) exact: bool,
    pub(crate) past: Past,
    pub(crate) stop: CancellationToken,
    pub(crate) running: Option<JoinHandle<Result<(), RunError>>>,
    pub(crate) listeners: Vec<Listener>,
    /// Listeners that have been removed, and how many events they had heard by then.
    pub(crate) removed: Vec<(Listener, usize)>,
    pub(crate) indexes: Vec<IndexHandle<ConfigMap>>,
    /// Which object was spoiled at which version.
    pub(crate) spoiled: BTreeSet<(ObjectKey, String)>,
    /// The highest version that the server ever had.
    pub(crate) highest: u64,
    /// The oldest version that can be gone back to.
    pub(crate) oldest: u64,
    /// How many of the next writes watches do not hear of.
    pub(crate) losing: usize,
    /// The server has gone back in time.
    pub(crate) rewound: bool,
    /// Something happened that no client can notice: only another list gets it right.
    pub(crate) needs_list: bool,
    writes: u64,
}

impl World {
    pub(crate) fn new(seed: u64, story: Story) -> Self {
        let mut rng = Pcg32::seed_from_u64(seed);
        let server = MemorySource::new();
        let names = if rng.random_bool(0.05) { MANY } else { FEW };
        let several = rng.random_bool(if names == MANY { 0.8 } else { 0.4 });
        let scope = if several { NAMESPACES[..2].to_vec() } else { NAMESPACES.to_vec() };
        let ways = match several {
            true => scope.iter().map(|namespace| Way::new(server.scoped(namespace))).collect(),
            false => vec![Way::new(server.clone())],
        };
        let forbidden = rng.random_bool(0.2).then(|| rng.random_range(0..ways.len()));
        if let Some(forbidden) = forbidden {
            ways[forbidden].mishaps.forbidden.store(true, Ordering::SeqCst);
        }
        let builder = SharedInformer::builder(ways[0].clone());
        let builder = ways[1..].iter().fold(builder, |builder, way| builder.source(way.clone()));
        let queue = if rng.random() { QueueKind::InOrder } else { QueueKind::PerKey };
        let streaming = rng.random();
        let resync = Duration::from_secs([0, 60, 200][rng.random_range(0..3)]);
        // A slow handler must have heard of all of them before the next time.
        let resync = if names == MANY { Duration::from_secs(200) } else { resync };
        let mut builder = builder
            .name("simulated")
            .seed(rng.random())
            .queue(queue)
            .streaming(streaming)
            .resync(resync)
            .index("data", data_keys);
        let page_size = rng.random_bool(0.5).then(|| rng.random_range(1..8));
        if let Some(page_size) = page_size {
            builder = builder.page_size(page_size);
        }
        let transforms = rng.random_bool(0.4);
        if transforms {
            builder = builder.transform(Transform::new(transform));
        }
        let informer = builder.build().expect("settings that go together");
        let indexes = vec![informer.store().index("data").expect("it was built with it")];
        let world = Self {
            rng,
            story,
            server,
            informer,
            births: Births::new(ways.clone()),
            ways,
            names,
            resync,
            shown: Arc::default(),
            scope,
            transforms,
            exact: queue == QueueKind::InOrder && !several,
            past: Past::default(),
            stop: CancellationToken::new(),
            running: None,
            listeners: Vec::new(),
            removed: Vec::new(),
            indexes,
            spoiled: BTreeSet::new(),
            highest: 0,
            oldest: 1,
            losing: 0,
            rewound: false,
            needs_list: false,
            writes: 0,
        };
        world.tell(format_args!(
            "{queue:?}, streaming: {streaming}, page size {page_size:?}, resync {resync:?}, transform: {transforms}, {names} names, forbidden: {forbidden:?}, namespaces {:?}",
            world.scope
        ));
        world
    }

    pub(crate) fn tell(&self, what: impl Display) {
        self.story.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(what.to_string());
    }

    /// Plays the whole life.
    pub(crate) async fn live(mut self) {
        let most = if self.names == MANY { 3 * MANY } else { 10 };
        for _ in 0..self.rng.random_range(0..most) {
            self.write();
        }
        let start_at = self.rng.random_range(0..4);
        for step in 0..self.rng.random_range(10..60) {
            if step == start_at {
                self.start();
            }
            if self.rng.random_bool(0.003) {
                self.tell("stop in the middle");
                return self.end().await;
            }
            self.step().await;
            self.check_moment();
        }
        if self.running.is_none() {
            self.start();
        }
        self.converge().await;
        self.end().await;
    }

    fn start(&mut self) {
        self.tell("start");
        let (informer, stop) = (self.informer.clone(), self.stop.clone());
        self.running = Some(tokio::spawn(async move { informer.run(stop).await }));
    }

    async fn step(&mut self) {
        match self.rng.random_range(0..100) {
            0..10 if self.names == MANY => self.rush().await,
            0..30 => self.write(),
            30..32 => {
                let count = self.rng.random_range(2..60);
                (0..count).for_each(|_| self.write());
            }
            32 => self.burst(),
            33..60 => self.pass_time().await,
            60..70 => self.listen(),
            70..75 => self.leave().await,
            75..77 => self.index(),
            77..79 => self.rush().await,
            _ => self.misbehave(),
        }
    }

    async fn pass_time(&mut self) {
        let millis = match self.rng.random_range(0..5) {
            0 => 0,
            1 => self.rng.random_range(1..50),
            2 => self.rng.random_range(50..5_000),
            3 => self.rng.random_range(5_000..120_000),
            _ => self.rng.random_range(120_000..600_000),
        };
        self.tell(format_args!("{millis} ms pass"));
        sleep(Duration::from_millis(millis)).await;
    }

    /// Writes in the moment in which everything is shown again, while that is on its way.
    async fn rush(&mut self) {
        self.tell("writes follow the next resync");
        // Of one that has been told before nothing is on its way any more.
        let _ = self.shown.notified().now_or_never();
        let _ = timeout(self.resync, self.shown.notified()).await;
        for _ in 0..self.rng.random_range(1..60) {
            self.write();
            yield_now().await;
        }
    }

    // Who listens

    fn listen(&mut self) {
        if self.rng.random() {
            let most = self.rng.random_range(1..2_000);
            self.listeners.iter_mut().for_each(|listener| {
                listener.poll(most);
            });
        }
        if self.listeners.len() < 5 {
            let number = self.listeners.len() + self.removed.len();
            let (births, version) = (self.births.clone(), self.version());
            let setting = Setting {
                existed: Box::new(move |object: &Config| births.existed(object, version)),
                shown: Arc::clone(&self.shown),
                resyncs: self.names == FEW,
            };
            let listener = Listener::add(&self.informer, number, &mut self.rng, setting);
            if self.rewound {
                listener.validator.allow_rewinding();
            }
            self.tell(format_args!("{} joins", listener.name));
            self.listeners.push(listener);
        }
    }

    async fn leave(&mut self) {
        if self.listeners.is_empty() {
            return;
        }
        let mut listener = self.listeners.remove(self.rng.random_range(0..self.listeners.len()));
        self.tell(format_args!("{} leaves", listener.name));
        if listener.polled.take().is_none() {
            listener.validator.registration.remove().await.expect("this is outside of the handler");
        }
        let heard = listener.validator.events();
        self.removed.push((listener, heard));
    }

    fn index(&mut self) {
        let name = format!("data-{}", self.indexes.len());
        self.tell(format_args!("index {name}"));
        self.indexes.push(self.informer.add_index(&name, data_keys).expect("a new name"));
    }

    // What is written

    fn some_key(&mut self) -> ObjectKey {
        let (namespace, name) = (self.rng.random_range(0..3), self.rng.random_range(0..self.names));
        key(&format!("{}/o{name}", NAMESPACES[namespace]))
    }

    fn write(&mut self) {
        let key = self.some_key();
        match self.rng.random_range(0..10) {
            0..6 => self.put(&key),
            6..8 => self.delete(&key),
            8 => {
                self.delete(&key);
                self.put(&key);
            }
            _ => {
                let version = self.server.spoil(&key, "spoiled, as planned");
                if let Some(version) = version {
                    self.tell(format_args!("spoil {key}@{version}"));
                    self.spoiled.insert((key.clone(), version.to_string()));
                    self.written(&key, false);
                }
            }
        }
    }

    pub(crate) fn put(&mut self, key: &ObjectKey) {
        let mut data = vec![("written".to_owned(), self.writes.to_string())];
        let k = self.rng.random_range(0..4);
        data.push((format!("k{k}"), String::new()));
        let odd = [REFUSED, THORNY].map(|odd| self.rng.random_bool(0.07).then(|| odd.to_owned()));
        let odd: Vec<String> = odd.into_iter().flatten().collect();
        data.extend(odd.iter().map(|odd| (odd.clone(), String::new())));
        let labels = [("tier".to_owned(), k.to_string())];
        let metadata = ObjectMeta {
            name: Some(key.name().to_owned()),
            namespace: key.namespace().map(str::to_owned),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        };
        let data = Some(data.into_iter().collect());
        let version =
            self.server.put(ConfigMap { metadata, data, ..ConfigMap::default() }).expect("it has a name");
        self.tell(format_args!("put {key}@{version} k{k} {}", odd.join(" ")));
        self.births.note(&self.server.get(key).expect("it was written"));
        // After a rewinding the same version is given out again.
        self.spoiled.remove(&(key.clone(), version.to_string()));
        self.written(key, odd.is_empty() || !self.transforms);
    }

    fn delete(&mut self, key: &ObjectKey) {
        if let Some(version) = self.server.delete(key) {
            self.tell(format_args!("delete {key}@{version}"));
            self.written(key, true);
        }
    }

    /// More than a slow handler can hear one by one.
    fn burst(&mut self) {
        if self.listeners.iter().any(|listener| listener.name.contains("slow") || listener.polled.is_some()) {
            for _ in 0..1_100 {
                let key = self.some_key();
                self.put(&key);
            }
        }
    }

    fn written(&mut self, key: &ObjectKey, usable: bool) {
        self.writes += 1;
        // Of many objects only the end is looked at: remembering each moment of them would be most of the work.
        if self.names == FEW {
            self.past.written(&self.server, key, usable);
        }
        self.needs_list |= self.rewound || self.losing > 0;
        self.losing = self.losing.saturating_sub(1);
        self.highest = self.highest.max(self.version());
    }

    pub(crate) fn version(&self) -> u64 {
        self.server.version().to_string().parse().expect("a number")
    }
}

fn transform(object: &mut ConfigMap) -> Result<(), String> {
    let data = object.data.get_or_insert_default();
    if data.contains_key(REFUSED) {
        return Err("refused, as planned".to_owned());
    }
    assert!(!data.contains_key(THORNY), "{PLANNED}");
    *data.entry(TRANSFORMED.to_owned()).or_default() += "I";
    Ok(())
}
