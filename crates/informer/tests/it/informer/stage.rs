//! A server, an informer that runs, and a log of what its handlers hear.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, pending},
};
use informer::{
    Handler, SharedInformer,
    model::Status,
    queue::QueueKind,
    shared::{RunError, SharedInformerBuilder},
    source::{ListOptions, ListStream, ListWatch, MemorySource, SourceError, WatchStream},
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

use super::support::{Config, key};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const QUEUES: [QueueKind; 2] = [QueueKind::InOrder, QueueKind::PerKey];

/// An informer that runs.
pub(crate) struct Stage {
    pub(crate) server: MemorySource<ConfigMap>,
    pub(crate) informer: SharedInformer<ConfigMap>,
    pub(crate) stop: CancellationToken,
    pub(crate) running: JoinHandle<Result<(), RunError>>,
}

impl Stage {
    /// Starts an informer and waits until it is synced.
    pub(crate) async fn synced(
        server: &MemorySource<ConfigMap>,
        informer: SharedInformer<ConfigMap>,
    ) -> Self {
        let stage = Self::start(server, informer);
        stage.informer.wait_until_synced(MINUTE).await.expect("it syncs");
        settle().await;
        stage
    }

    /// Starts an informer.
    pub(crate) fn start(server: &MemorySource<ConfigMap>, informer: SharedInformer<ConfigMap>) -> Self {
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let (informer, stop) = (informer.clone(), stop.clone());
            async move { informer.run(stop).await }
        });
        Self { server: server.clone(), informer, stop, running }
    }

    /// Stops the informer and waits for its end.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.running.await.expect("it does not panic").expect("it ran once");
    }

    /// What the cache has: `key@version`, one after another.
    pub(crate) fn cached(&self) -> String {
        super::support::show(self.informer.store().snapshot().iter())
    }
}

/// A server with these objects.
pub(crate) fn server(keys: &[&str]) -> MemorySource<ConfigMap> {
    let server = MemorySource::new();
    keys.iter().for_each(|key| put(&server, key));
    server
}

pub(crate) fn builder(server: &MemorySource<ConfigMap>) -> SharedInformerBuilder<ConfigMap> {
    SharedInformer::builder(server.clone()).name("configs").seed(1)
}

pub(crate) fn informer(server: &MemorySource<ConfigMap>) -> SharedInformer<ConfigMap> {
    builder(server).build().expect("settings that go together")
}

/// Writes an object, which has something new in it each time.
pub(crate) fn put(server: &MemorySource<ConfigMap>, key: &str) {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    put_with(server, key, &[("written", &WRITES.fetch_add(1, Ordering::Relaxed).to_string())]);
}

pub(crate) fn put_with(server: &MemorySource<ConfigMap>, key_text: &str, data: &[(&str, &str)]) {
    let key = key(key_text);
    let metadata = ObjectMeta {
        name: Some(key.name().to_owned()),
        namespace: key.namespace().map(str::to_owned),
        ..ObjectMeta::default()
    };
    let data = data.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    server.put(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }).expect("it has a name");
}

/// Makes the informer list again: its watch breaks, and the version it had reached is forgotten.
pub(crate) fn force_list(server: &MemorySource<ConfigMap>, meanwhile: impl FnOnce()) {
    server.break_watches();
    meanwhile();
    put(server, "zz/forced");
    server.compact();
}

/// Lets everything happen that needs no time.
pub(crate) async fn settle() {
    sleep(Duration::from_millis(5)).await;
}

pub(crate) async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}

/// What was heard, in short: `*` initial add, `+` add, `~` update, `.` resync, `-` delete, `?` delete with unknown
/// final state.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// What was noted since the last time.
    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap()).join(" ")
    }

    /// A handler that notes everything.
    pub(crate) fn handler(&self) -> Handler<ConfigMap> {
        let (added, updated, deleted) = (self.clone(), self.clone(), self.clone());
        Handler::new()
            .on_add(move |object, initial| {
                added.note(format!("{}{object:?}", if initial { '*' } else { '+' }));
            })
            .on_update(move |old: &Config, new: &Config| {
                updated.note(match old.resource_version() == new.resource_version() {
                    true => format!(".{new:?}"),
                    false => format!("~{old:?}>{}", new.resource_version()),
                });
            })
            .on_delete(move |gone| {
                let sign = if gone.final_state_known() { '-' } else { '?' };
                deleted.note(format!("{sign}{:?}", gone.object().expect("an object")));
            })
    }
}

/// A source that calls out and never hears an answer, to its lists or to its watches.
#[derive(Clone)]
pub(crate) struct Stuck {
    pub(crate) server: MemorySource<ConfigMap>,
    pub(crate) lists: bool,
    pub(crate) watches: bool,
}

impl ListWatch<ConfigMap> for Stuck {
    fn description(&self) -> String {
        "config maps that never arrive".to_owned()
    }

    fn list(&self, options: ListOptions) -> BoxFuture<'static, Result<ListStream<ConfigMap>, SourceError>> {
        if self.lists { pending().boxed() } else { self.server.list(options) }
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'static, Result<WatchStream<ConfigMap>, SourceError>> {
        if self.watches { pending().boxed() } else { self.server.watch(options) }
    }
}

pub(crate) fn forbidden() -> SourceError {
    Status::forbidden("configmaps", "", "", "user \"eve\" cannot list it").into()
}
