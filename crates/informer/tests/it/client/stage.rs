//! A server whose watches come late, and an informer of it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt, future::BoxFuture};
use informer::{
    KubeListWatch, SharedInformer,
    client::Writes,
    source::{ListOptions, ListStream, ListWatch, SourceError, WatchStream},
};
use informer_apiserver::ApiServer;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::api::PostParams;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};
use tokio::{sync::watch, time::sleep};

pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// How late the events of watches come: for as long as they are held, and then each after a while of its own.
#[derive(Clone)]
pub(crate) struct Lateness {
    held: watch::Sender<bool>,
    chance: Arc<Mutex<Pcg64Mcg>>,
    most: Duration,
}

impl Lateness {
    pub(crate) fn new(seed: u64, most: Duration) -> Self {
        let chance = Arc::new(Mutex::new(Pcg64Mcg::seed_from_u64(seed)));
        Self { held: watch::Sender::new(false), chance, most }
    }

    pub(crate) fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }

    async fn pass(self) {
        let late = self.most.mul_f64(self.chance.lock().unwrap().random_range(0.0..=1.0));
        if !late.is_zero() {
            sleep(late).await;
        }
        let _ = self.held.subscribe().wait_for(|held| !held).await;
    }
}

/// A source whose events come late.
pub(crate) struct Late<K: kube::Resource>(pub(crate) KubeListWatch<K>, pub(crate) Lateness);

impl<K> ListWatch<K> for Late<K>
where
    K: kube::Resource,
    KubeListWatch<K>: ListWatch<K>,
    K: Send + Sync + 'static,
{
    fn covers(&self, metadata: &ObjectMeta, object: &dyn Fn() -> Value) -> bool {
        self.0.covers(metadata, object)
    }

    fn namespace(&self) -> Option<&str> {
        self.0.namespace()
    }

    fn description(&self) -> String {
        self.0.description()
    }

    fn list(&self, options: ListOptions) -> BoxFuture<'static, Result<ListStream<K>, SourceError>> {
        self.0.list(options)
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'static, Result<WatchStream<K>, SourceError>> {
        let (opening, lateness) = (self.0.watch(options), self.1.clone());
        Box::pin(async move {
            let items = opening.await?;
            Ok(items
                .then(move |item| {
                    let lateness = lateness.clone();
                    async move {
                        lateness.pass().await;
                        item
                    }
                })
                .boxed())
        })
    }
}

pub(crate) struct Stage {
    pub(crate) server: ApiServer,
    pub(crate) lateness: Lateness,
    pub(crate) informer: SharedInformer<ConfigMap>,
    pub(crate) maps: Writes<ConfigMap>,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::selecting(|source| source).await
    }

    /// An informer that runs and is synced, of what a source selects.
    pub(crate) async fn selecting(
        choose: impl FnOnce(KubeListWatch<ConfigMap>) -> KubeListWatch<ConfigMap>,
    ) -> Self {
        let server = mk_server(1);
        let lateness = Lateness::new(1, Duration::ZERO);
        let source = Late(choose(KubeListWatch::all(server.client())), lateness.clone());
        let informer = SharedInformer::builder(source).name("configs").seed(1).build().unwrap();
        informer.start().unwrap();
        informer.wait_until_synced(LIMIT).await.unwrap();
        let maps = Writes::new(server.client(), &informer);
        let stage = Self { server, lateness, informer, maps };
        stage.settle().await;
        stage
    }

    /// Lets everything happen that needs no time.
    pub(crate) async fn settle(&self) {
        sleep(Duration::from_millis(5)).await;
    }

    pub(crate) async fn create(&self, key: &str) -> ConfigMap {
        self.maps.create(&PostParams::default(), &mk(key)).await.unwrap()
    }

    pub(crate) async fn end(self) {
        self.lateness.hold(false);
        self.informer.stop().await.unwrap();
    }
}

pub(crate) fn mk_server(seed: u64) -> ApiServer {
    let server = ApiServer::builder().seed(seed).build();
    for name in ["shop", "bank"] {
        server.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })).unwrap();
    }
    server
}

pub(crate) fn mk(key: &str) -> ConfigMap {
    let key = super::support::key(key);
    let metadata = ObjectMeta {
        name: Some(key.name().to_owned()),
        namespace: key.namespace().map(str::to_owned),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}
