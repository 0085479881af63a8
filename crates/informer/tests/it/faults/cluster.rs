//! A server that random writes go to, and an informer over it of which every word is checked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use informer::{
    KubeListWatch, SharedInformer,
    model::{ObjectKey, ResourceVersion},
    queue::QueueKind,
    reflector::{Problem, Remedy},
    shared::{RunError, SharedInformerBuilder},
    source::WireOptions,
};
use informer_apiserver::{ApiServer, Fault, Rule, RuleId, Verb, View};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt, api::ListParams};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use serde_json::{Value, json};
use tokio::{
    runtime,
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::validator::{Validator, versions};

/// No fault that ends is felt for longer than this.
const LONGEST: Duration = Duration::from_secs(3_600);
const NAMESPACES: [&str; 2] = ["default", "kube-system"];
const NAMES: usize = 8;

pub(crate) type Versions = BTreeMap<ObjectKey, ResourceVersion>;

/// Plays a story for each seed, in a runtime of its own whose time is paused, and looks for tasks that it left.
pub(crate) fn over_seeds(count: u64, story: impl AsyncFn(Cluster)) {
    let seeds = informer_testing::number("INFORMER_SEED").map_or(0..count, |seed| seed..seed + 1);
    for seed in seeds {
        println!("replay with INFORMER_SEED={seed}");
        let runtime = runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            story(Cluster::new(seed)).await;
            no_task_is_left().await;
        });
    }
}

/// Plays a story in real time, on two threads.
pub(crate) fn in_real_time(story: impl AsyncFn(Cluster)) {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        story(Cluster::new(1)).await;
        no_task_is_left().await;
    });
}

async fn no_task_is_left() {
    let metrics = runtime::Handle::current().metrics();
    let began = Instant::now();
    while metrics.num_alive_tasks() > 0 {
        assert!(began.elapsed() < LONGEST, "{} tasks are left", metrics.num_alive_tasks());
        sleep(Duration::from_millis(1)).await;
    }
}

/// Waits for a condition, and ends at most a thousandth later than that is so: who waits for minutes need not look fifty times a second.
pub(crate) async fn until(condition: impl Fn() -> bool, what: impl Fn() -> String) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < LONGEST, "{}", what());
        sleep((began.elapsed() / 1_000).max(Duration::from_millis(20))).await;
    }
}

/// A server and the chance that rules over a story.
pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
    /// In which form an informer asks: protobuf and gzip in half of the stories.
    pub(crate) wire: WireOptions,
    pub(crate) seed: u64,
    random: Pcg32,
    writes: u64,
}

impl Cluster {
    fn new(seed: u64) -> Self {
        let server = ApiServer::builder().seed(seed).build();
        let wire = WireOptions::default();
        let wire = if (seed / 4).is_multiple_of(2) { wire } else { wire.json().uncompressed() };
        Self { server, wire, seed, random: Pcg32::seed_from_u64(seed), writes: 0 }
    }

    /// A number that chance takes from a range.
    pub(crate) fn pick(&mut self, range: std::ops::Range<usize>) -> usize {
        self.random.random_range(range)
    }

    pub(crate) fn chance(&mut self) -> bool {
        self.random.random()
    }

    /// Waits for any time up to this.
    pub(crate) async fn pause(&mut self, longest: Duration) {
        let share = self.random.random::<f64>();
        sleep(longest.mul_f64(share)).await;
    }

    fn key(&mut self) -> ObjectKey {
        let (namespace, name) = (self.pick(0..NAMESPACES.len()), self.pick(0..NAMES));
        ObjectKey::new(Some(NAMESPACES[namespace]), &format!("map-{name}")).expect("a key")
    }

    /// Writes an object: a new state of it, or a first one.
    pub(crate) fn put(&mut self, key: &ObjectKey) {
        self.writes += 1;
        let (namespace, name) = (key.namespace(), key.name());
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": namespace, "labels": { "app": "web" } },
            "data": { "writes": self.writes.to_string() },
        });
        self.server.put(map).expect("written");
    }

    pub(crate) fn put_named(&mut self, name: &str) {
        self.put(&ObjectKey::new(Some("default"), name).expect("a key"));
    }

    /// Deletes an object; whether it was there.
    pub(crate) fn discard(&self, key: &ObjectKey) -> bool {
        self.server.discard("", "configmaps", key)
    }

    /// So many changes: objects come, change, go, and go and come again.
    pub(crate) fn write(&mut self, count: usize) {
        for _ in 0..count {
            let key = self.key();
            match self.pick(0..10) {
                0..3 => drop(self.discard(&key)),
                3 => {
                    self.discard(&key);
                    self.put(&key);
                }
                _ => self.put(&key),
            }
        }
    }

    /// Changes over some time.
    pub(crate) async fn write_for(&mut self, count: usize, time: Duration) {
        for _ in 0..count {
            self.write(1);
            sleep(time / u32::try_from(count).expect("a small number")).await;
        }
    }

    /// What there is, asked past all faults.
    pub(crate) fn truth(&self) -> Versions {
        let keys = NAMESPACES.iter().flat_map(|namespace| (0..NAMES).map(move |name| (*namespace, name)));
        let there = keys.filter_map(|(namespace, name)| {
            let name = format!("map-{name}");
            let object = self.server.get(("", "configmaps"), namespace, &name)?;
            Some((ObjectKey::new(Some(namespace), &name).expect("a key"), version(&object)))
        });
        there.collect()
    }

    /// What there is, asked by a client in the ordinary way.
    pub(crate) async fn listed(&self) -> Versions {
        let maps: Api<ConfigMap> = Api::all(self.server.client());
        let list = maps.list(&ListParams::default()).await.expect("a list");
        let entry = |map: &ConfigMap| {
            let key = ObjectKey::new(map.namespace().as_deref(), &map.name_any()).expect("a key");
            (key, map.resource_version().expect("a version").into())
        };
        list.items.iter().map(entry).collect()
    }

    /// A fault of lists or watches of config maps.
    pub(crate) fn fault(&self, fault: Fault, verbs: &[Verb], when: impl FnOnce(Rule) -> Rule) -> RuleId {
        let rule = Rule::new(fault).resource("configmaps");
        self.server.faults().add(when(verbs.iter().fold(rule, |rule, verb| rule.verb(*verb))))
    }

    pub(crate) fn heal(&self) {
        self.server.faults().clear();
    }

    /// Ends all watches the way a server does that restarts; what was before this moment is no longer in its history.
    pub(crate) fn end_watches(&self) {
        self.server.rewind(self.server.version()).expect("the newest version is there");
    }

    /// Config maps through a client. The seed chooses between the ways of listing and the queues.
    pub(crate) fn informer(&self, client: Client) -> SharedInformerBuilder<ConfigMap> {
        let queue = if (self.seed / 2).is_multiple_of(2) { QueueKind::InOrder } else { QueueKind::PerKey };
        SharedInformer::builder(KubeListWatch::<ConfigMap>::all(client).wire(self.wire))
            .streaming(self.seed.is_multiple_of(2))
            .queue(queue)
            .seed(self.seed)
    }

    /// An informer of config maps that runs.
    pub(crate) fn watched(&self) -> Watched {
        Watched::run(self.informer(self.server.client()))
    }

    /// A running informer whose first list is there, and whose watch is older than one that would be too short.
    pub(crate) async fn synced(&mut self) -> Watched {
        self.write(20);
        let watched = self.watched();
        watched.converges(self).await;
        sleep(Duration::from_secs(2)).await;
        watched
    }
}

/// The version of an object as JSON.
pub(crate) fn version(object: &Value) -> ResourceVersion {
    object["metadata"]["resourceVersion"].as_str().expect("a version").into()
}

/// A running informer and those who listen to it.
pub(crate) struct Watched<K: 'static = ConfigMap> {
    pub(crate) informer: SharedInformer<K>,
    pub(crate) handlers: Vec<Validator<K>>,
    problems: Arc<Mutex<Vec<(Problem, Remedy)>>>,
    stop: CancellationToken,
    running: JoinHandle<Result<(), RunError>>,
}

impl<K: kube::Resource + Send + Sync + 'static> Watched<K> {
    pub(crate) fn run(builder: SharedInformerBuilder<K>) -> Self {
        let problems = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&problems);
        let note = move |problem: &Problem, remedy| told.lock().unwrap().push((problem.clone(), remedy));
        let informer = builder.watch_error_handler(note).build().expect("good options");
        let handlers = vec![Validator::add(&informer, "the first")];
        let (stop, running) = (CancellationToken::new(), informer.clone());
        let running = tokio::spawn({
            let stop = stop.clone();
            async move { running.run(stop).await }
        });
        Self { informer, handlers, problems, stop, running }
    }

    /// Another handler comes.
    pub(crate) fn join(&mut self) {
        self.handlers.push(Validator::add(&self.informer, "a late one"));
    }

    /// What the cache has.
    pub(crate) fn cached(&self) -> Versions {
        versions(self.informer.store().snapshot().iter())
    }

    /// What went wrong so far, in a few words each.
    pub(crate) fn causes(&self) -> Vec<&'static str> {
        self.problems.lock().unwrap().iter().map(|(problem, _)| problem.cause()).collect()
    }

    /// What went wrong so far, and what was done about it.
    pub(crate) fn problems(&self) -> Vec<(Problem, Remedy)> {
        self.problems.lock().unwrap().clone()
    }

    pub(crate) fn had(&self, cause: &str) -> bool {
        self.causes().contains(&cause)
    }

    /// Waits until a problem of this cause was told.
    pub(crate) async fn has_had(&self, cause: &str) {
        until(|| self.had(cause), || format!("{cause}: {:?}", self.problems())).await;
    }

    /// Waits until the cache is this, and every handler has heard of all of it.
    pub(crate) async fn holds(&self, wanted: impl Fn() -> Versions) {
        let explain = || {
            let (health, problems) = (self.informer.health(), self.problems());
            format!("the server has {:#?}\nthe cache {:#?}\n{health}\n{problems:#?}", wanted(), self.cached())
        };
        until(|| self.informer.has_synced() && self.cached() == wanted(), explain).await;
        for handler in &self.handlers {
            let differs = || format!("{:?} is the last word of {:?}", handler.known(), handler.story());
            until(|| handler.known() == self.cached(), differs).await;
            handler.check_last_word(&self.informer.store());
        }
    }

    /// Tells the informer to stop, and waits until it has.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.running.await.expect("no panic").expect("it ran");
        for handler in &self.handlers {
            handler.check();
        }
        assert!(self.informer.is_stopped());
    }
}

impl Watched {
    /// Waits until the cache is what the server has.
    pub(crate) async fn converges(&self, cluster: &Cluster) {
        self.holds(|| cluster.truth()).await;
    }

    /// The end of every story: all is as it should be, also for one who comes last, and nothing goes on.
    pub(crate) async fn ends_well(mut self, cluster: &Cluster) {
        self.join();
        self.converges(cluster).await;
        cluster.heal();
        assert_eq!(self.cached(), cluster.listed().await, "the cache and a list of the server");
        self.stop().await;
    }
}
