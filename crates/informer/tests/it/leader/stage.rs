//! A server, and candidates that tell what happens to them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use informer::leader::{Callbacks, LeaderElection, LeaderElectionBuilder, Observer};
use informer_apiserver::ApiServer;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// What happened, in order, and the tokens of all terms.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>, Arc<Mutex<Vec<u64>>>);

impl Log {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// Counts a term, whose token must be greater than those before it.
    pub(crate) fn count(&self, token: u64) -> usize {
        let mut tokens = self.1.lock().unwrap();
        assert!(tokens.last().is_none_or(|last| *last < token), "{token} after {tokens:?}");
        tokens.push(token);
        tokens.len()
    }

    /// What was noted since the last time.
    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap()).join(", ")
    }

    /// Waits until something was noted.
    pub(crate) async fn heard(&self, what: &str) {
        let noted = || self.0.lock().unwrap().iter().any(|line| line == what);
        let waiting = async {
            while !noted() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let heard = timeout(Duration::from_secs(120), waiting).await;
        heard.unwrap_or_else(|_| panic!("never heard {what:?}, but {:?}", self.take()));
    }
}

/// A candidate that runs.
pub(crate) struct Candidate {
    pub(crate) observer: Observer,
    pub(crate) stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Candidate {
    /// Starts a candidate that notes what happens to it under its name.
    pub(crate) fn start(server: &ApiServer, name: &'static str, log: &Log) -> Self {
        Self::with(election(server, name), name, log)
    }

    pub(crate) fn with(builder: LeaderElectionBuilder, name: &'static str, log: &Log) -> Self {
        let election = builder.build().expect("settings that go together");
        let (observer, stop) = (election.observer(), CancellationToken::new());
        let (started, stopped, seen) = (log.clone(), log.clone(), log.clone());
        let callbacks = Callbacks::new()
            .on_started(move |leadership| {
                started.note(format!("{name} leads {}", started.count(leadership.token())));
                let dropped = NotedDrop(started.clone(), format!("{name} drops"));
                async move {
                    let _dropped = dropped;
                    std::future::pending::<()>().await;
                }
            })
            .on_stopped(move |why| stopped.note(format!("{name}: {why}")))
            .on_new_leader(move |leader| seen.note(format!("{name} sees {leader}")));
        let running = tokio::spawn(election.run(stop.clone(), callbacks));
        Self { observer, stop, running }
    }

    /// Says stop and waits for the end.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.running.await.expect("no panic");
    }

    /// The process dies: nothing of it runs any more, and nothing is given back.
    pub(crate) async fn die(self) {
        self.running.abort();
        assert!(self.running.await.expect_err("it was running").is_cancelled());
    }
}

/// Notes that it is dropped.
pub(crate) struct NotedDrop(pub(crate) Log, pub(crate) String);

impl Drop for NotedDrop {
    fn drop(&mut self) {
        self.0.note(self.1.clone());
    }
}

pub(crate) fn election(server: &ApiServer, identity: &str) -> LeaderElectionBuilder {
    let election = LeaderElection::builder(server.client(), "default", "boss").identity(identity).seed(7);
    // Most work in these tests would go on for ever.
    election.grace(Duration::ZERO)
}

pub(crate) fn leases(server: &ApiServer) -> Api<Lease> {
    Api::namespaced(server.client(), "default")
}

/// What the Lease says.
pub(crate) async fn spec(server: &ApiServer) -> LeaseSpec {
    leases(server).get("boss").await.expect("there is one").spec.expect("it says something")
}

pub(crate) async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}

/// How long something took, in seconds.
pub(crate) async fn took(what: impl Future<Output = ()>) -> f64 {
    let began = Instant::now();
    what.await;
    began.elapsed().as_secs_f64()
}
