//! The factory against the embedded server: which informers there are, when they run, and every kind of them.

mod bad_input;
mod coming;
mod custom;
mod life;
use crate::support::log_lines;
mod options;
mod sharing;

use std::{collections::BTreeMap, future::Future, time::Duration};

use informer::SharedInformerFactory;
use informer_apiserver::ApiServer;
use serde_json::{Value, json};

/// Long enough in paused time, where it costs nothing.
const SOON: Duration = Duration::from_secs(60);

fn config_map(namespace: &str, name: &str) -> Value {
    let metadata = json!({ "name": name, "namespace": namespace, "labels": { "app": name } });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })
}

/// A server with three namespaces and a config map `namespace/name` for each of these.
fn mk_server(maps: &[(&str, &str)]) -> ApiServer {
    let server = ApiServer::builder().seed(1).build();
    for name in ["shop", "bank", "zoo"] {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        server.put(namespace).expect("written");
    }
    for (namespace, name) in maps {
        server.put(config_map(namespace, name)).expect("written");
    }
    server
}

fn mk_factory(server: &ApiServer) -> SharedInformerFactory {
    SharedInformerFactory::new(server.client(), Duration::ZERO)
}

/// How often the server was asked to watch, by resource.
fn watches(server: &ApiServer) -> BTreeMap<String, u64> {
    let requests = server.requests().into_iter();
    requests
        .filter(|((verb, _), _)| *verb == "watch")
        .map(|((_, resource), times)| (resource, times))
        .collect()
}

/// Waits for a condition in paused time.
async fn until(condition: impl Fn() -> bool, what: &str) {
    for _ in 0..10_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it never came to this: {what}");
}

/// Runs a story in paused time.
fn story(story: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(story);
}
