//! Random histories of writes and reads.

use std::collections::BTreeMap;

use futures_util::{FutureExt, StreamExt};
use informer::source::{ListOptions, ListWatch, WatchChange, WatchItem, WatchStream};
use informer_testing::histories;
use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;

use super::{
    client::{Server, at, labelled, page, put_labelled},
    support::{Config, key, show},
};

/// A step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Put(u8, bool),
    Delete(u8),
    Compact,
    /// The client reads what there is.
    Read,
    /// The client's watch ends and is opened again where it was.
    Rewatch,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6u8, any::<bool>()).prop_map(|(name, labelled)| Step::Put(name, labelled)),
        3 => (0..6u8).prop_map(Step::Delete),
        1 => Just(Step::Compact),
        3 => Just(Step::Read),
        2 => Just(Step::Rewatch),
    ]
}

/// A client that does nothing but believe its watch.
struct Client {
    options: ListOptions,
    seen: BTreeMap<String, Config>,
    watch: WatchStream<ConfigMap>,
}

impl Client {
    fn open(server: &Server, options: &ListOptions) -> WatchStream<ConfigMap> {
        server.watch(options.clone()).now_or_never().expect("no waiting").expect("a watch")
    }

    fn read(&mut self, server: &Server) {
        while let Some(Some(item)) = self.watch.next().now_or_never() {
            match item.expect("nothing breaks") {
                WatchItem::Object(change, object) => {
                    self.options.resource_version = object.resource_version().clone();
                    let known = self.seen.remove(object.key().as_str());
                    assert_eq!(known.is_some(), change != WatchChange::Added, "{change:?} {object:?}");
                    if change != WatchChange::Deleted {
                        self.seen.insert(object.key().to_string(), object);
                    }
                }
                WatchItem::Error(status) => {
                    assert_eq!(status.code, 410);
                    self.seen.clear();
                    self.options.resource_version = "".into();
                    self.watch = Self::open(server, &self.options);
                    // What exists comes in no order of versions: the watch goes on after all of it.
                    for item in std::iter::from_fn(|| self.watch.next().now_or_never().flatten()) {
                        let Ok(WatchItem::Object(WatchChange::Added, object)) = item else {
                            panic!("{item:?}")
                        };
                        self.seen.insert(object.key().to_string(), object);
                    }
                    self.options.resource_version = server.version();
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Who watches sees in the end what a list has, whatever it selects and however often its watch ends.
#[test]
fn who_watches_sees_what_a_list_has() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _clock = runtime.enter();
    histories(&prop::collection::vec(step(), 0..40), |steps| {
        let server = Server::new();
        let mut clients = [at("1"), labelled(at("1"), "app"), labelled(at("1"), "!app")]
            .map(|options| Client { watch: Client::open(&server, &options), options, seen: BTreeMap::new() });
        for step in steps.iter().chain([&Step::Read]) {
            match step {
                Step::Put(name, labelled) => {
                    let labels: &[(&str, &str)] = if *labelled { &[("app", "web")] } else { &[] };
                    put_labelled(&server, &format!("ns/{name}"), labels);
                }
                Step::Delete(name) => drop(server.delete(&key(&format!("ns/{name}")))),
                Step::Compact => server.compact(),
                Step::Read => clients.iter_mut().for_each(|client| client.read(&server)),
                Step::Rewatch => {
                    for client in &mut clients {
                        client.watch = Client::open(&server, &client.options);
                    }
                }
            }
        }
        for client in &clients {
            let options = ListOptions { resource_version: "".into(), ..client.options.clone() };
            let (expected, _) = page(&server, options).now_or_never().expect("no waiting").unwrap();
            assert_eq!(show(client.seen.values()), expected);
        }
    });
}
