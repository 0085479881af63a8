//! Which requests get the same informer.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use informer::{SharedInformer, factory::Scope, model::Selector, source::MemorySource};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};

use super::{SOON, mk_factory, mk_server, story, watches};

#[test]
fn c31_the_same_type_twice_is_the_same_informer_whichever_way_it_is_asked_for() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let factory = mk_factory(&server);
        let maps = factory.informer_for::<ConfigMap>();
        assert!(maps.ptr_eq(&factory.informer_for()));
        assert!(maps.ptr_eq(&factory.clone().core().v1().config_maps().informer()));
        let made = factory.informer_for_with::<ConfigMap>(|_| panic!("the first constructor wins")).unwrap();
        assert!(maps.ptr_eq(&made));
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert!(maps.ptr_eq(&factory.informer_for()), "running makes no difference");
        assert_eq!(factory.core().v1().config_maps().lister().list(&Selector::everything()).len(), 1);
        assert_eq!(watches(&server), [("configmaps".to_owned(), 1)].into());
        factory.shutdown().await;
    });
}

#[test]
fn c31_two_scopes_are_two_informers_with_a_watch_each() {
    story(async {
        let server = mk_server(&[("shop", "a"), ("shop", "b"), ("bank", "a")]);
        let factory = mk_factory(&server);
        let labelled = Scope::everything().labels(&"app=a".parse().unwrap());
        let scopes = [Scope::everything(), Scope::namespace("shop").unwrap(), labelled];
        let informers: Vec<SharedInformer<ConfigMap>> =
            scopes.iter().map(|scope| factory.scoped(scope.clone()).informer_for()).collect();
        for (scope, informer) in scopes.iter().zip(&informers) {
            assert!(informer.ptr_eq(&factory.scoped(scope.clone()).informer_for()));
        }
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        let sizes: Vec<usize> = informers.iter().map(|informer| informer.store().len()).collect();
        assert_eq!(sizes, [3, 2, 2]);
        assert_eq!(watches(&server), [("configmaps".to_owned(), 3)].into());
        let mut names: Vec<&str> = informers.iter().map(SharedInformer::name).collect();
        names.dedup();
        assert_eq!(names.len(), 3, "{names:?}");
        factory.shutdown().await;
    });
}

#[test]
fn c31_a_kind_without_namespaces_is_one_informer_in_every_scope() {
    story(async {
        let server = mk_server(&[]);
        let node = serde_json::json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" } });
        server.put(node).unwrap();
        let factory = mk_factory(&server);
        let nodes = factory.informer_for::<Node>();
        assert!(nodes.ptr_eq(&factory.scoped(Scope::namespace("shop").unwrap()).informer_for()));
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert_eq!(nodes.store().len(), 1);
        factory.shutdown().await;
    });
}

#[test]
fn c31_concurrent_first_requests_make_one_informer() {
    let server = mk_server(&[("shop", "a")]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        for _ in 0..50 {
            let (factory, made) = (mk_factory(&server), Arc::new(AtomicUsize::new(0)));
            let barrier = Arc::new(tokio::sync::Barrier::new(8));
            let requests = (0..8).map(|number| {
                let (factory, made, barrier) = (factory.clone(), Arc::clone(&made), Arc::clone(&barrier));
                tokio::spawn(async move {
                    barrier.wait().await;
                    let make = |factory: &informer::SharedInformerFactory| {
                        made.fetch_add(1, Ordering::Relaxed);
                        factory.builder_for::<ConfigMap>().build()
                    };
                    match number % 2 {
                        0 => factory.informer_for(),
                        _ => factory.informer_for_with(make).unwrap(),
                    }
                })
            });
            let requests: Vec<_> = requests.collect();
            let mut informers = Vec::new();
            for request in requests {
                informers.push(request.await.unwrap());
            }
            assert!(informers.iter().all(|informer| informer.ptr_eq(&informers[0])));
            assert_eq!(factory.health().len(), 1, "what was made in vain is not kept");
        }
    });
}

#[test]
fn c31_a_constructor_may_take_another_source_and_ask_the_factory_for_other_kinds() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let factory = mk_factory(&server);
        let maps = factory
            .informer_for_with::<ConfigMap>(|factory| {
                let _secrets = factory.informer_for::<Secret>();
                SharedInformer::builder(MemorySource::new()).name("in memory").build()
            })
            .unwrap();
        assert_eq!(factory.informer_for::<ConfigMap>().name(), "in memory");
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert!(maps.store().is_empty());
        assert_eq!(watches(&server), [("secrets".to_owned(), 1)].into());
        factory.shutdown().await;
    });
}

#[test]
fn c33_a_list_of_namespaces_is_one_informer_over_one_watch_for_each() {
    story(async {
        let server = mk_server(&[("shop", "a"), ("bank", "a"), ("zoo", "a")]);
        let builder = informer::SharedInformerFactory::builder(server.client());
        let factory = builder.namespaces(["shop", "bank", "shop"]).build().unwrap();
        let maps = factory.informer_for::<ConfigMap>();
        assert!(maps.ptr_eq(&factory.core().v1().config_maps().informer()));
        factory.start().unwrap();
        let report = factory.wait_for_cache_sync(SOON).await.unwrap();
        assert_eq!(report.informers.len(), 1);
        let keys: Vec<String> = maps.store().snapshot().iter().map(|map| map.key().to_string()).collect();
        assert_eq!(keys, ["bank/a", "shop/a"]);
        assert_eq!(watches(&server), [("configmaps".to_owned(), 2)].into());
        factory.shutdown().await;
    });
}
