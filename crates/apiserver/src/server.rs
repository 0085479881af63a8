//! The server itself, and how to make one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::HeaderValue;
use informer_model::{ObjectKey, Status};
use informer_serving::path::Place;
use jiff::Timestamp;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    builtin, custom,
    demo::{Change, DemoCluster, View},
    faults::Faults,
    import::Fields,
    replica::Replica,
    service::Connection,
    store::Store,
    verbs::Verb,
};

/// The characters of generated names: none that could spell a word.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// What the server keeps in motion.
pub(crate) struct Server {
    pub store: Store,
    pub faults: Faults,
    pub replica: Arc<Replica>,
    pub bookmark_interval: Duration,
    random: Mutex<Pcg64Mcg>,
    stop: watch::Sender<bool>,
    requests: Mutex<HashMap<(Verb, String), u64>>,
    ready: AtomicBool,
}

impl Server {
    fn random<R>(&self, draw: impl FnOnce(&mut Pcg64Mcg) -> R) -> R {
        draw(&mut self.random.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn new_uid(&self) -> String {
        let bytes = self.random(|random| {
            let mut bytes = [0; 16];
            random.fill_bytes(&mut bytes);
            bytes
        });
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// The end of a generated name.
    pub(crate) fn new_suffix(&self) -> String {
        self.random(|random| {
            (0..5).map(|_| char::from(SUFFIX[random.random_range(0..SUFFIX.len())])).collect()
        })
    }

    /// An address in the range of services, neither the first nor the last.
    pub(crate) fn new_address(&self) -> String {
        let number: u16 = self.random(|random| random.random_range(1..u16::MAX));
        let [high, low] = number.to_be_bytes();
        format!("10.96.{high}.{low}")
    }

    /// How long a watch lives that does not say: between half an hour and an hour.
    pub(crate) fn watch_life(&self) -> Duration {
        Duration::from_secs(self.random(|random| random.random_range(1_800..3_600)))
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Waits until the server is stopped.
    pub(crate) async fn stopped(&self) {
        // The sender lives in `self`: waiting ends only when it says so.
        let _ = self.stop.subscribe().wait_for(|stopped| *stopped).await;
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub(crate) fn count(&self, request: Option<&(Verb, Place)>) {
        // What is not served is not counted: there is no end to what could be asked for.
        let served = |place: &Place| self.store.find(&place.group, &place.plural).is_some();
        if let Some((verb, place)) = request.filter(|(_, place)| served(place)) {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            *requests.entry((*verb, place.plural.clone())).or_default() += 1;
        }
    }
}

/// An API server in this process.
///
/// A clone is another handle to the same server. It needs no port and no files: [`client`](Self::client) talks
/// to it directly, and what it holds is gone with the last handle. See [`listen`](Self::listen) for programs
/// outside this process.
#[derive(Clone)]
pub struct ApiServer(pub(crate) Arc<Server>);

/// How a server is to be.
#[derive(Debug, Clone)]
pub struct ApiServerBuilder {
    seed: Option<u64>,
    history: usize,
    bookmark_interval: Duration,
}

impl ApiServerBuilder {
    /// Makes uids, generated names and faults that are left to chance follow from a seed: the same requests in
    /// the same order then get the same answers, apart from times.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How many changes of each resource are kept: 10,000 unless said otherwise. Versions from before are
    /// expired, and a watch that falls so far behind is cut off.
    #[must_use]
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes;
        self
    }

    /// How often a watch that wants bookmarks gets one: each minute unless said otherwise.
    #[must_use]
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.bookmark_interval = interval.clamp(Duration::from_millis(1), Duration::from_secs(24 * 60 * 60));
        self
    }

    /// A server with the four namespaces that every cluster begins with, and nothing else.
    pub fn build(self) -> ApiServer {
        let seed = self.seed.unwrap_or_else(entropy);
        let server = Server {
            store: Store::new(builtin::resources(), self.history),
            faults: Faults::new(seed),
            replica: Arc::default(),
            bookmark_interval: self.bookmark_interval,
            random: Mutex::new(Pcg64Mcg::seed_from_u64(seed)),
            stop: watch::Sender::new(false),
            requests: Mutex::default(),
            ready: AtomicBool::new(true),
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            // A namespace with a good name can always be written.
            let _ = server.import(namespace, Fields::Checked);
        }
        ApiServer(Arc::new(server))
    }
}

/// A seed that nobody asked for.
fn entropy() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Timestamp::now().as_nanosecond())
}

/// Numbers about a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// How many objects there are.
    pub objects: usize,
    /// How many bytes they have as JSON.
    pub bytes: usize,
    /// The newest version.
    pub version: u64,
}

/// The version to go back to is no longer in the history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("version {0} is no longer in the history of the server, see ApiServerBuilder::history")]
pub struct TooOld(pub u64);

impl ApiServer {
    /// Whether `/readyz` says that the server is ready, as it does unless told otherwise: for whoever fills it first. Everything
    /// else is answered all the same.
    pub fn set_ready(&self, ready: bool) {
        self.0.ready.store(ready, Ordering::Release);
    }

    /// A server to be described.
    pub fn builder() -> ApiServerBuilder {
        ApiServerBuilder { seed: None, history: 10_000, bookmark_interval: Duration::from_secs(60) }
    }

    /// A client that talks to this server without a socket.
    ///
    /// It must be called in a tokio runtime.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// The same with a name, which [`Rule::client`](crate::Rule::client) tells apart from others: its `User-Agent`.
    ///
    /// ```
    /// use informer_apiserver::{ApiServer, Fault, Rule};
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube::{Api, api::ListParams};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let server = ApiServer::builder().build();
    /// let [leader, follower] = ["leader", "follower"].map(|name| Api::<Pod>::all(server.client_named(name)));
    /// // The network of one of them is down.
    /// server.faults().add(Rule::new(Fault::Refuse).client("leader"));
    /// assert!(leader.list(&ListParams::default()).await.is_err());
    /// assert!(follower.list(&ListParams::default()).await.is_ok());
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the name cannot be the value of a header.
    pub fn client_named(&self, name: &str) -> kube::Client {
        let agent = HeaderValue::from_str(name).expect("the name of a client is the value of a header");
        kube::Client::new(Connection { agent: Some(agent), ..self.service() }, "default")
    }

    /// The server as a tower service, for clients of another make.
    pub fn service(&self) -> Connection {
        Connection { server: Arc::clone(&self.0), replica: None, agent: None }
    }

    /// A client of a second replica of this server, which can be made to lag behind.
    pub fn replica_client(&self) -> kube::Client {
        let replica = Some(Arc::clone(&self.0.replica));
        kube::Client::new(Connection { replica, ..self.service() }, "default")
    }

    /// Holds the second replica at a version, or lets it catch up. Its consistent reads are still up to date:
    /// what lags is its cache, which answers watches and reads at version "0" or at a given one.
    pub fn hold_replica(&self, version: Option<u64>) {
        self.0.replica.hold(version);
    }

    /// What goes wrong.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Breaks the connections of all open watches: after what they have still to tell they end with an error.
    pub fn break_watches(&self) {
        self.0.faults.break_watches();
    }

    /// Writes an object as it is, with its status, over what is there under its name. Its kind must be served
    /// and its namespace must exist.
    ///
    /// Beyond that only its metadata is checked, which makes this the way to a **corrupt** object: one whose
    /// other fields have the wrong types.
    pub fn put(&self, object: Value) -> Result<(), Status> {
        self.0.import(object, Fields::AsTheyAre).map(drop)
    }

    /// Deletes an object at once, finalizers or not. Whether it was there.
    pub fn discard(&self, group: &str, resource: &str, key: &ObjectKey) -> bool {
        self.0.discard(group, resource, key)
    }

    /// Writes a whole generated cluster.
    pub fn load_demo(&self, cluster: &DemoCluster) -> Result<usize, Status> {
        let mut loaded = 0;
        for object in cluster.objects() {
            self.put(object)?;
            loaded += 1;
        }
        Ok(loaded)
    }

    /// Makes one change of a demo cluster in motion.
    pub fn apply(&self, change: Change) -> Result<(), Status> {
        match change {
            Change::Create(object) | Change::Update(object) => self.put(object),
            Change::Delete { group, plural, namespace, name } => {
                let key = ObjectKey::new(Some(&namespace), &name);
                self.discard(group, plural, &key.map_err(|e| Status::bad_request(e.to_string()))?);
                Ok(())
            }
        }
    }

    /// Forgets all history: every older version is expired from now on, as after a compaction of etcd.
    pub fn compact(&self) {
        self.0.store.write(|state| state.compact(u64::MAX));
    }

    /// Goes back to an older version, as if an older backup had been restored: the counter goes back, too, and
    /// open watches end.
    pub fn rewind(&self, version: u64) -> Result<(), TooOld> {
        self.0.store.write(|state| {
            state.rewind(version).map_err(|_| TooOld(version))?;
            custom::refresh(state);
            Ok(())
        })
    }

    /// The newest version.
    pub fn version(&self) -> u64 {
        self.0.store.version()
    }

    /// How much there is.
    pub fn size(&self) -> Size {
        let (objects, bytes) = self.0.store.size();
        Size { objects, bytes, version: self.version() }
    }

    /// How many requests there were, by verb and plural name of the resource.
    pub fn requests(&self) -> BTreeMap<(&'static str, String), u64> {
        let requests = self.0.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.iter().map(|((verb, plural), count)| ((verb.name(), plural.clone()), *count)).collect()
    }

    /// Ends all watches and all listeners. Requests that are being answered are answered.
    pub fn shutdown(&self) {
        self.0.stop();
    }
}

/// A demo cluster in motion looks at what is there.
impl View for ApiServer {
    fn get(&self, (group, plural): (&str, &str), namespace: &str, name: &str) -> Option<Value> {
        let (id, resource) = self.0.store.find(group, plural)?;
        let stored = self.0.store.get(id, &ObjectKey::new(Some(namespace), name).ok()?)?;
        Some(stored.value(&resource, &resource.versions.first()?.name))
    }
}
