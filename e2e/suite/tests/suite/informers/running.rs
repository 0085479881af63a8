//! An informer that runs, and what its handlers heard.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use informer::{
    Handler, KubeListWatch, Object, SharedInformer,
    reflector::{Backoff, Problem, ReflectorSettings, Remedy},
    shared::{Registration, RunError, SharedInformerBuilder},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, Resource};
use serde_json::Value;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use crate::stage::{Ask, Stage};

/// Longer than this nothing takes, also not until a client reads its token again.
const LONGEST: Duration = Duration::from_secs(120);

/// What a handler heard, line by line.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<String>>>);

/// An informer that runs.
pub(crate) struct Running<K: 'static> {
    pub(crate) informer: SharedInformer<K>,
    pub(crate) heard: Heard,
    problems: Arc<Mutex<Vec<&'static str>>>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
    _registration: Registration,
}

/// Settings that try again soon, and whose watches are short.
pub(crate) fn impatient(settings: &mut ReflectorSettings) {
    let (initial, max) = (Duration::from_millis(200), Duration::from_secs(1));
    settings.backoff = Backoff { initial, max, ..Backoff::default() };
    settings.watch_timeout = Duration::from_secs(2);
}

/// The config maps of the stage's namespace.
pub(crate) fn maps(stage: &Stage, client: Client) -> KubeListWatch<ConfigMap> {
    KubeListWatch::all(client).in_namespace(stage.namespace.as_str())
}

/// What is in a config map.
pub(crate) fn data(map: &ConfigMap) -> String {
    let data = map.data.clone().unwrap_or_default();
    data.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < LONGEST, "waited in vain until {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

impl Heard {
    fn lines(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handler that writes down what it hears, with what `show` says of an object.
    pub(crate) fn handler<K: Send + Sync + 'static>(&self, show: fn(&K) -> String) -> Handler<K> {
        let (added, updated, deleted) = (self.clone(), self.clone(), self.clone());
        let name = |object: &Object<K>| object.key().name().to_owned();
        Handler::new()
            .on_add(move |object: &Object<K>, initial| {
                let initial = if initial { " at first" } else { "" };
                added.lines().push(format!("added {} ({}){initial}", name(object), show(object)));
            })
            .on_update(move |old: &Object<K>, new: &Object<K>| {
                updated.lines().push(format!("updated {} ({} → {})", name(new), show(old), show(new)));
            })
            .on_delete(move |gone| {
                let last = gone.object().map(|object| show(object)).unwrap_or_default();
                let how = if gone.final_state_known() { "" } else { ", found out later" };
                deleted.lines().push(format!("deleted {} ({last}){how}", gone.key().name()));
            })
    }

    /// Writes down so many lines, in their order, and begins anew.
    pub(crate) async fn tell(&self, stage: &Stage, count: usize) {
        until(&format!("{count} events are heard, not {:?}", self.lines()), || self.lines().len() >= count)
            .await;
        for line in std::mem::take(&mut *self.lines()) {
            stage.note(format!("  {line}"));
        }
    }

    /// The same for events that come in any order.
    pub(crate) async fn tell_unordered(&self, stage: &Stage, count: usize) {
        let from = stage.transcript().lines.len();
        self.tell(stage, count).await;
        stage.transcript().lines[from..].sort();
    }

    pub(crate) fn count(&self) -> usize {
        self.lines().len()
    }
}

impl<K: Resource + Send + Sync + 'static> Running<K> {
    pub(crate) fn start(builder: SharedInformerBuilder<K>, show: fn(&K) -> String) -> Self {
        let problems = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&problems);
        let note = move |problem: &Problem, _: Remedy| {
            told.lock().unwrap_or_else(PoisonError::into_inner).push(problem.cause());
        };
        let informer = builder.seed(1).watch_error_handler(note).build().expect("settings that go together");
        let heard = Heard::default();
        let registration = informer.add_handler(heard.handler(show)).expect("it has not stopped");
        let (stop, runner) = (CancellationToken::new(), informer.clone());
        let task = tokio::spawn({
            let stop = stop.clone();
            async move { runner.run(stop).await }
        });
        Self { informer, heard, problems, stop, task, _registration: registration }
    }

    pub(crate) async fn synced(builder: SharedInformerBuilder<K>, show: fn(&K) -> String) -> Self {
        let running = Self::start(builder, show);
        running.informer.wait_until_synced(LONGEST).await.expect("it syncs");
        running
    }

    /// Whether a problem of this cause was told.
    pub(crate) fn had(&self, cause: &str) -> bool {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).contains(&cause)
    }

    /// Writes down what is wrong, once it is this.
    pub(crate) async fn is_troubled_by(&self, stage: &Stage, cause: &str) {
        let now = || self.informer.health().trouble().map(|(_, trouble)| trouble.problem.cause());
        until(&format!("it is troubled by {cause:?}"), || now() == Some(cause)).await;
        let health = self.informer.health();
        let advice = health.trouble().and_then(|(_, trouble)| trouble.problem.advice()).unwrap_or("-");
        stage.note(format!("trouble: {cause}; {advice}"));
    }

    /// Waits until nothing is wrong.
    pub(crate) async fn is_well(&self, stage: &Stage) {
        until("it is healthy", || self.informer.health().is_healthy()).await;
        stage.note("well");
    }

    /// Waits until the cache is what the server lists, and writes down what that is. Then the informer ends.
    pub(crate) async fn ends_like(self, stage: &Stage, path: &str, parameters: &[(&str, &str)]) {
        self.is_like(stage, path, parameters).await;
        self.stop.cancel();
        self.task.await.expect("no panic").expect("it ran once");
    }

    pub(crate) async fn is_like(&self, stage: &Stage, path: &str, parameters: &[(&str, &str)]) {
        let answer = stage.send(&Ask { method: "GET", path, parameters, ..Ask::default() }).await;
        let text =
            |item: &Value, field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
        let items = answer.body["items"].as_array().expect("a list");
        let listed: BTreeMap<String, String> =
            items.iter().map(|item| (text(item, "name"), text(item, "resourceVersion"))).collect();
        let cached = || -> BTreeMap<String, String> {
            let snapshot = self.informer.store().snapshot();
            let entry =
                |object: &Object<K>| (object.key().name().to_owned(), object.resource_version().to_string());
            snapshot.iter().map(entry).collect()
        };
        until(&format!("{:?} is {listed:?}; {}", cached(), self.informer.health()), || cached() == listed)
            .await;
        let names: Vec<&str> = listed.keys().map(String::as_str).collect();
        stage.note(format!("the cache is what the server has: {}", names.join(" ")));
    }
}
