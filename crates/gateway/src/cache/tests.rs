use futures_util::FutureExt;
use informer_apiserver::ApiServer;
use serde_json::json;

use super::{changes::Place, *};

/// So long something may take that depends on nobody.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A cluster with a config map, and a cache of it.
pub(crate) fn mk_cache() -> (ApiServer, Arc<Cache>) {
    let server = ApiServer::builder().seed(1).build();
    put(&server, "one", "");
    let discovery = Discovery::new(server.client());
    let factory = SharedInformerFactory::builder(server.client()).discovery(discovery.clone());
    let factory = factory.build().expect("a factory");
    let limits = CacheLimits::default();
    let cache = Cache::new(discovery, factory.clone(), None, Secrets::Hidden, factory, limits, true);
    (server, Arc::new(cache))
}

/// Puts a config map into the cluster.
pub(crate) fn put(server: &ApiServer, name: &str, text: &str) {
    let metadata = json!({"namespace": "default", "name": name});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}});
    server.put(map).expect("a config map");
}

/// The config maps, complete.
pub(crate) async fn mk_collection(cache: &Arc<Cache>) -> Arc<Collection> {
    cache.collection(&served(cache).await).await.expect("the config maps")
}

async fn served(cache: &Cache) -> ServedResource {
    let maps = ResourceArg::try_from("core/v1/configmaps").expect("a name");
    cache.resolve(&maps).await.expect("config maps")
}

#[tokio::test]
async fn a_caller_that_is_never_polled_again_keeps_nobody_from_beginning_with_a_resource() {
    let (_server, cache) = mk_cache();
    let served = served(&cache).await;
    let changing = cache.changing.lock().await;
    let mut stalled = Box::pin(cache.collection(&served));
    assert!((&mut stalled).now_or_never().is_none());
    // It stands in the queue.
    tokio::task::yield_now().await;
    drop(changing);
    let second = timeout(SOON, cache.collection(&served)).await.expect("it begins");
    assert_eq!(second.expect("the config maps").store.len(), 1);
    drop(stalled);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_never_polled_again_keeps_nobody_from_the_past() {
    let (server, cache) = mk_cache();
    let place = Place::parse(&server.version().to_string()).expect("a place");
    put(&server, "two", "");
    let collection = mk_collection(&cache).await;
    assert!(collection.changes.after(&place).is_err(), "it was before the first list");
    let mut stalled = Box::pin(collection.recall(&place));
    assert!((&mut stalled).now_or_never().is_none());
    collection.recall(&place).await;
    assert!(collection.changes.after(&place).is_ok(), "the cluster has told it");
    drop(stalled);
}
