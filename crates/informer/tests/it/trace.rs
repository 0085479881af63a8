//! One trace for each change, as a subscriber sees it.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use informer::{
    SharedInformer,
    controller::{Action, Controller},
    source::MemorySource,
};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span::{Attributes, Id, Record},
};

use super::support::log_lines::ask_each_time;

/// A subscriber that remembers the spans of traces and of controllers, up to a level.
#[derive(Clone)]
struct Spans(Arc<Mutex<State>>, Level);

#[derive(Default)]
struct State {
    last: u64,
    /// By number: how many handles there are of it.
    open: HashMap<u64, usize>,
    seen: Vec<Seen>,
    /// What began and ended, in order.
    story: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct Seen {
    id: u64,
    name: &'static str,
    parent: Option<u64>,
    links: Vec<u64>,
    fields: HashMap<&'static str, String>,
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

impl Spans {
    fn listening(level: Level) -> (Self, tracing::subscriber::DefaultGuard) {
        ask_each_time();
        let spans = Self(Arc::default(), level);
        let guard = tracing::subscriber::set_default(spans.clone());
        (spans, guard)
    }

    /// The spans of this name.
    fn named(&self, name: &str) -> Vec<Seen> {
        self.0.lock().unwrap().seen.iter().filter(|span| span.name == name).cloned().collect()
    }

    fn story(&self) -> Vec<String> {
        self.0.lock().unwrap().story.clone()
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours =
            ["informer::trace", "informer::controller"].iter().any(|of| metadata.target().starts_with(of));
        ours && *metadata.level() <= self.1
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::from_level(self.1))
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut state = self.0.lock().unwrap();
        state.last += 1;
        let mut seen = Seen { id: state.last, name: span.metadata().name(), ..Seen::default() };
        seen.parent = span.parent().map(Id::into_u64);
        span.record(&mut seen);
        state.story.push(format!("+{}", seen.name));
        let id = seen.id;
        state.open.insert(id, 1);
        state.seen.push(seen);
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        let mut state = self.0.lock().unwrap();
        let seen = state.seen.iter_mut().find(|seen| seen.id == span.into_u64()).expect("a span");
        seen.links.push(follows.into_u64());
    }

    fn event(&self, event: &Event<'_>) {
        if let Some(parent) = event.parent() {
            let mut state = self.0.lock().unwrap();
            let name = state.seen.iter().find(|seen| seen.id == parent.into_u64()).map(|seen| seen.name);
            let mut said = Seen::default();
            event.record(&mut said);
            state.story.push(format!("{} {}", name.unwrap_or_default(), said.fields["message"]));
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}

    fn clone_span(&self, id: &Id) -> Id {
        *self.0.lock().unwrap().open.get_mut(&id.into_u64()).expect("it is open") += 1;
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut state = self.0.lock().unwrap();
        let handles = state.open.get_mut(&id.into_u64()).expect("it is open");
        *handles -= 1;
        if *handles > 0 {
            return false;
        }
        state.open.remove(&id.into_u64());
        let name = state.seen.iter().find(|seen| seen.id == id.into_u64()).map(|seen| seen.name);
        state.story.push(format!("-{}", name.unwrap_or_default()));
        true
    }
}

/// A controller of config maps, whose calls take a second.
struct Stage {
    source: MemorySource<ConfigMap>,
    maps: SharedInformer<ConfigMap>,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Stage {
    /// With one map that was there before.
    async fn start() -> Self {
        let source = MemorySource::<ConfigMap>::new();
        source.put(map("before", "0")).unwrap();
        let maps = SharedInformer::builder(source.clone()).name("maps").build().unwrap();
        let (stop, controller) = (CancellationToken::new(), Controller::new("maps").of(&maps));
        maps.start().unwrap();
        let until = stop.clone();
        let running = tokio::spawn(async move {
            let calls = controller.run(until, |_| async {
                sleep(Duration::from_secs(1)).await;
                Ok::<_, String>(Action::AwaitChange)
            });
            calls.await.unwrap();
        });
        sleep(Duration::from_secs(5)).await;
        Self { source, maps, stop, running }
    }

    async fn end(self) {
        self.stop.cancel();
        self.running.await.unwrap();
        self.maps.stop().await.unwrap();
    }
}

fn map(name: &str, value: &str) -> ConfigMap {
    let metadata = json!({ "name": name, "namespace": "shop" });
    serde_json::from_value(json!({ "metadata": metadata, "data": { "a": value } })).unwrap()
}

#[tokio::test(start_paused = true)]
async fn c48_a_change_is_one_trace_from_the_watch_to_the_end_of_its_reconcile() {
    let (spans, _listening) = Spans::listening(Level::TRACE);
    let stage = Stage::start().await;
    assert_eq!(spans.named("change").len(), 0, "what was there before has no trace");
    assert_eq!(spans.named("reconcile")[0].parent, None);
    let before = spans.story().len();
    stage.source.put(map("web", "1")).unwrap();
    sleep(Duration::from_secs(5)).await;

    let changes = spans.named("change");
    let [change] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(
        (change.parent, &*change.fields["key"], &*change.fields["informer"]),
        (None, "shop/web", "\"maps\"")
    );
    let version = stage.maps.store().resource_version().to_string();
    assert_eq!(change.fields["version"], version);
    for name in ["handler", "queued", "reconcile"] {
        let last = spans.named(name).pop().unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(last.parent, Some(change.id), "{name}");
    }
    assert_eq!(spans.named("handler")[0].fields["name"], "\"controller maps\"");
    let expected = [
        "+change",
        "change in the cache",
        "+handler",
        "+queued",
        "-handler",
        "-queued",
        "+reconcile",
        "-reconcile",
        "-change",
    ];
    assert_eq!(spans.story()[before..], expected);
    stage.end().await;
    assert!(spans.0.lock().unwrap().open.is_empty(), "every span has ended");
}

#[tokio::test(start_paused = true)]
async fn c48_a_call_that_is_about_several_changes_is_linked_to_each() {
    let (spans, _listening) = Spans::listening(Level::TRACE);
    let stage = Stage::start().await;
    for value in ["1", "2", "3"] {
        // The first is being worked on when the others come.
        stage.source.put(map("web", value)).unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(5)).await;
    let changes: Vec<u64> = spans.named("change").iter().map(|change| change.id).collect();
    let calls = spans.named("reconcile");
    let [_, first, second] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!((first.parent, &first.links[..]), (Some(changes[0]), &[][..]));
    assert_eq!((second.parent, &second.links[..]), (Some(changes[1]), &changes[2..]));
    stage.end().await;
    assert!(spans.0.lock().unwrap().open.is_empty());
}

#[tokio::test(start_paused = true)]
async fn c48_nothing_is_traced_that_no_subscriber_wants() {
    let (spans, _listening) = Spans::listening(Level::DEBUG);
    let stage = Stage::start().await;
    stage.source.put(map("web", "1")).unwrap();
    sleep(Duration::from_secs(5)).await;
    stage.end().await;
    let calls = spans.named("reconcile");
    assert!(calls.len() == 2 && calls.iter().all(|call| call.parent.is_none()), "{calls:?}");
    assert!(["change", "handler", "queued"].iter().all(|name| spans.named(name).is_empty()));
}
