//! Starting, waiting, stopping one, stopping all.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use informer::{
    EventHandler, Object, SharedInformer, SharedInformerFactory, SyncError, factory::ShutDown, health::Life,
};
use informer_apiserver::{Fault, Rule, Verb};
use informer_model::Status;
use informer_testing::seed;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use tokio_util::sync::CancellationToken;

use super::{SOON, config_map, mk_factory, mk_server, story, until, watches};

/// Takes half a minute for each object.
#[derive(Default)]
struct Slow {
    begun: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl EventHandler<ConfigMap> for Slow {
    async fn on_add(&mut self, _: &Object<ConfigMap>, _: bool) {
        self.begun.store(true, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(30)).await;
        self.ended.store(true, Ordering::Relaxed);
    }
}

#[test]
fn c31_starting_again_starts_only_what_is_new() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let factory = mk_factory(&server);
        let maps = factory.informer_for::<ConfigMap>();
        factory.start().unwrap();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        let secrets = factory.informer_for::<Secret>();
        let report = factory.wait_for_cache_sync(SOON).await.unwrap();
        assert_eq!(
            (report.informers.len(), report.not_started.len()),
            (1, 1),
            "it covers those that were started"
        );
        assert!(report.to_string().contains("not started yet: secrets"), "{report}");
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert!(maps.has_synced() && secrets.has_synced());
        let once = |resource: &str| (resource.to_owned(), 1);
        assert_eq!(watches(&server), [once("configmaps"), once("secrets")].into());
        factory.shutdown().await;
    });
}

#[test]
fn c31_waiting_tells_which_type_cannot_sync_and_why() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let refused = Status::forbidden("secrets", "", "", "User \"web\" cannot list resource \"secrets\"");
        for verb in [Verb::List, Verb::Watch] {
            server.faults().add(Rule::new(Fault::Status(refused.clone())).verb(verb).resource("secrets"));
        }
        let factory = mk_factory(&server);
        let (_maps, _secrets) = (factory.informer_for::<ConfigMap>(), factory.informer_for::<Secret>());
        factory.start().unwrap();
        let error = factory.wait_for_cache_sync(Duration::from_secs(5)).await.unwrap_err();
        let failures: Vec<_> = error.0.failures().collect();
        let [("secrets in all namespaces", SyncError::Deadline { health, .. })] = failures[..] else {
            panic!("{failures:?}")
        };
        assert!(health.trouble().is_some());
        let text = error.to_string();
        assert!(
            text.starts_with("1 of 2 informers synced; not synced within 5s: secrets in all namespaces: ")
                && text.contains("User \"web\" cannot list")
                && text.contains("grant the verbs list and watch"),
            "{text}"
        );
        server.faults().clear();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert!(factory.health().iter().all(|health| health.synced));
        factory.shutdown().await;
    });
}

#[test]
fn c31_shutdown_waits_for_the_last_handler_and_forbids_later_starts() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let factory = mk_factory(&server);
        let maps = factory.informer_for::<ConfigMap>();
        let slow = Slow::default();
        let (begun, ended) = (Arc::clone(&slow.begun), Arc::clone(&slow.ended));
        maps.add_handler(slow).unwrap();
        factory.start().unwrap();
        until(|| begun.load(Ordering::Relaxed), "a running callback").await;
        let (one, two) = (factory.shutdown(), factory.clone());
        tokio::join!(one, two.shutdown());
        assert!(ended.load(Ordering::Relaxed) && maps.is_stopped() && factory.is_shut_down());
        assert_eq!(factory.start(), Err(ShutDown));
        let late = factory.informer_for::<Secret>();
        assert_eq!(factory.start(), Err(ShutDown));
        assert_eq!(late.health().life, Life::NotStarted);
        assert!(!factory.informer_for::<ConfigMap>().is_stopped(), "a stopped one is never handed out");
        factory.shutdown().await;
        assert_eq!(maps.store().len(), 1, "who holds it keeps the cache as it was");
    });
}

#[test]
fn c32_one_informer_is_stopped_and_started_anew_without_touching_the_others() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let factory = mk_factory(&server);
        let (old, secrets) = (factory.informer_for::<ConfigMap>(), factory.informer_for::<Secret>());
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();

        assert!(factory.stop_informer::<ConfigMap>().await);
        assert!(old.is_stopped() && !secrets.is_stopped());
        assert!(!factory.stop_informer::<ConfigMap>().await, "there is none any more");
        assert_eq!(factory.health().len(), 1);

        server.put(config_map("shop", "b")).unwrap();
        let new = factory.informer_for::<ConfigMap>();
        assert!(!new.ptr_eq(&old));
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert_eq!((old.store().len(), new.store().len()), (1, 2));
        assert_eq!(watches(&server)["secrets"], 1, "the other went on");

        assert!(factory.stop(&new).await && !factory.stop(&old).await);
        assert!(new.is_stopped() && factory.stop(&secrets).await);
        factory.shutdown().await;
    });
}

#[test]
fn c32_one_that_somebody_else_stopped_is_not_handed_out() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let factory = mk_factory(&server);
        let (maps, stop) = (factory.informer_for::<ConfigMap>(), CancellationToken::new());
        let running = tokio::spawn({
            let (maps, stop) = (maps.clone(), stop.clone());
            async move { maps.run(stop).await }
        });
        maps.wait_until_synced(SOON).await.unwrap();
        factory.start().unwrap();
        assert!(maps.ptr_eq(&factory.informer_for()), "it runs, whoever runs it");
        stop.cancel();
        running.await.unwrap().unwrap();
        let new = factory.informer_for::<ConfigMap>();
        assert!(!new.ptr_eq(&maps));
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert!(new.has_synced());
        factory.shutdown().await;
    });
}

/// Ends the factory that it hears from, in the middle of a callback.
struct Ending(SharedInformerFactory, Arc<AtomicBool>);

impl EventHandler<ConfigMap> for Ending {
    async fn on_add(&mut self, _: &Object<ConfigMap>, _: bool) {
        assert!(self.0.stop_informer::<ConfigMap>().await);
        self.0.shutdown().await;
        self.1.store(true, Ordering::Relaxed);
    }
}

#[test]
fn c31_a_handler_may_end_the_factory_that_it_hears_from() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let (factory, returned) = (mk_factory(&server), Arc::new(AtomicBool::new(false)));
        let (maps, secrets) = (factory.informer_for::<ConfigMap>(), factory.informer_for::<Secret>());
        maps.add_handler(Ending(factory.clone(), Arc::clone(&returned))).unwrap();
        factory.start().unwrap();
        until(|| returned.load(Ordering::Relaxed), "the callback has returned").await;
        factory.shutdown().await;
        assert!(maps.is_stopped() && secrets.is_stopped());
    });
}

#[test]
fn c30_cancelling_the_token_ends_all_informers() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let stop = CancellationToken::new();
        let builder = SharedInformerFactory::builder(server.client()).cancellation_token(stop.clone());
        let factory = builder.name("web").build().unwrap();
        let (maps, nodes) = (factory.informer_for::<ConfigMap>(), factory.informer_for::<Node>());
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert_eq!((maps.name(), nodes.name()), ("web: configmaps in all namespaces", "web: nodes"));
        stop.cancel();
        factory.shutdown().await;
        assert!(maps.is_stopped() && nodes.is_stopped());
        assert_eq!(factory.start(), Err(ShutDown));
    });
}

#[test]
fn dropping_the_factory_stops_nothing() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let stop = CancellationToken::new();
        let lister = {
            let builder = SharedInformerFactory::builder(server.client());
            let factory = builder.cancellation_token(stop.clone()).build().unwrap();
            let lister = factory.core().v1().config_maps().lister();
            factory.start().unwrap();
            lister
        };
        until(|| lister.get("shop/a").is_ok(), "the first list").await;
        server.put(config_map("shop", "b")).unwrap();
        until(|| lister.get("shop/b").is_ok(), "a change").await;
        stop.cancel();
    });
}

#[test]
fn c32_however_many_threads_ask_start_and_stop_at_once_one_of_each_is_left_and_in_the_end_none_runs() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let seed = seed();
    println!("INFORMER_SEED={seed} makes the same choices again");
    runtime.block_on(async {
        let server = mk_server(&[("shop", "a")]);
        let factory = mk_factory(&server);
        let tasks: Vec<_> = (0..8)
            .map(|number| {
                let (factory, mut rng) = (factory.clone(), Pcg32::seed_from_u64(seed ^ number));
                tokio::spawn(async move {
                    let mut handed = Vec::new();
                    for _ in 0..60 {
                        match rng.random_range(0..6) {
                            0 => drop(factory.stop_informer::<ConfigMap>().await),
                            1 => factory.start().unwrap(),
                            2 => drop(factory.health()),
                            _ => handed.push(factory.informer_for::<ConfigMap>()),
                        }
                    }
                    handed
                })
            })
            .collect();
        let mut handed = Vec::new();
        for task in tasks {
            handed.extend(task.await.unwrap());
        }
        let last = factory.informer_for::<ConfigMap>();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert!(last.has_synced() && factory.health().len() == 1);
        let running = |informer: &SharedInformer<ConfigMap>| informer.health().life == Life::Running;
        assert!(handed.iter().all(|informer| informer.ptr_eq(&last) || !running(informer)));
        factory.shutdown().await;
        assert!(!handed.iter().any(running) && last.is_stopped());
    });
}
