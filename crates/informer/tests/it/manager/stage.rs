//! A server, and a program that a manager runs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use informer::{
    SharedInformer, SharedInformerFactory,
    controller::Controller,
    leader::{LeaderElection, LeaderElectionBuilder},
    manager::{Manager, ManagerError, ManagerObserver},
};
use informer_apiserver::ApiServer;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::Api;
use serde_json::json;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// What was noted, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// What was noted since the last time.
    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap()).join(", ")
    }

    /// Waits until something was noted.
    pub(crate) async fn heard(&self, what: &str) {
        let waiting = async {
            while !self.0.lock().unwrap().iter().any(|line| line == what) {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let heard = timeout(Duration::from_secs(120), waiting).await;
        heard.unwrap_or_else(|_| panic!("never heard {what:?}, but {:?}", self.take()));
    }
}

/// A server with one config map, and the informer of it.
pub(crate) struct Stage {
    pub(crate) server: ApiServer,
    pub(crate) factory: SharedInformerFactory,
    pub(crate) maps: SharedInformer<ConfigMap>,
    pub(crate) log: Log,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let server = ApiServer::builder().seed(1).build();
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "default" } });
        server.put(map).expect("written");
        Self::at(server)
    }

    /// Another program at a server.
    pub(crate) fn at(server: ApiServer) -> Self {
        let factory = SharedInformerFactory::new(server.client(), Duration::ZERO);
        let maps = factory.informer_for::<ConfigMap>();
        Self { server, factory, maps, log: Log::default() }
    }

    pub(crate) fn controller(&self) -> Controller {
        Controller::new("maps").of(&self.maps)
    }

    pub(crate) fn election(&self, identity: &str) -> LeaderElectionBuilder {
        LeaderElection::builder(self.server.client(), "default", "boss").identity(identity).seed(7)
    }

    /// Who has the Lease.
    pub(crate) fn holder(&self) -> impl Future<Output = String> + Send + 'static {
        let leases = Api::<Lease>::namespaced(self.server.client(), "default");
        async move {
            let spec = leases.get("boss").await.expect("a Lease").spec;
            spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
        }
    }
}

/// A manager at work.
pub(crate) struct Running {
    pub(crate) stop: CancellationToken,
    pub(crate) at_once: CancellationToken,
    pub(crate) observer: ManagerObserver,
    pub(crate) task: JoinHandle<Result<(), ManagerError>>,
}

impl Running {
    pub(crate) fn start(manager: Manager) -> Self {
        let (stop, at_once) = (CancellationToken::new(), CancellationToken::new());
        let observer = manager.observer();
        let task = tokio::spawn(manager.at_once(at_once.clone()).run(stop.clone()));
        Self { stop, at_once, observer, task }
    }

    /// Says stop, waits for the end, and says how long that took.
    pub(crate) async fn end(self) -> (Result<(), ManagerError>, Duration) {
        let began = Instant::now();
        self.stop.cancel();
        (self.task.await.expect("it does not panic"), began.elapsed())
    }

    /// Waits until it ends by itself.
    pub(crate) async fn failure(self) -> ManagerError {
        let ended = timeout(Duration::from_secs(300), self.task).await.expect("it ends");
        ended.expect("it does not panic").expect_err("something went wrong")
    }
}

pub(crate) async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}
