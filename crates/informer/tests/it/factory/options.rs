//! What a factory's options do to its informers.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::StreamExt;
use informer::{
    Event, EventHandler, Notice, Object, SharedInformerFactory,
    metrics::{Levels, Measurement, Metrics, Probe},
    queue::{QueueKind, Transform},
    reflector::Backoff,
};
use informer_apiserver::{Fault, Rule};
use informer_model::Status;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use tokio::time::Instant;

use super::{SOON, mk_server, story};

#[test]
fn the_hook_has_the_last_word_on_every_request() {
    story(async {
        let server = mk_server(&[("shop", "a"), ("shop", "b")]);
        let builder = SharedInformerFactory::builder(server.client());
        let factory = builder
            .tweak_list_options(|options| options.label_selector = Some("app=b".into()))
            .build()
            .unwrap();
        let maps = factory.core().v1().config_maps().lister();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert!(maps.get("shop/a").is_err() && maps.get("shop/b").is_ok());
        factory.shutdown().await;
    });
}

#[test]
fn c14_c15_queue_and_pages_of_a_factory_are_those_of_its_informers() {
    for (queue, order) in
        [(QueueKind::InOrder, ["a", "b", "a", "b"]), (QueueKind::PerKey, ["a", "a", "b", "b"])]
    {
        story(async {
            let server = mk_server(&[("shop", "a"), ("shop", "b")]);
            let asked = Arc::new(Mutex::new(Vec::new()));
            let asking = Arc::clone(&asked);
            let factory = SharedInformerFactory::builder(server.client())
                .streaming(false)
                .queue(queue)
                .settings(|settings| settings.page_size = Some(1))
                .tweak_list_options(move |options| asking.lock().unwrap().push(options.limit))
                .build()
                .unwrap();
            asked.lock().unwrap().clear(); // it was tried once
            let maps = factory.informer_for::<ConfigMap>();
            factory.start().unwrap();
            factory.wait_for_cache_sync(SOON).await.unwrap();
            assert_eq!(asked.lock().unwrap()[0], Some(1));
            let heard = maps.subscribe().unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            // All of it comes at once.
            for round in ["1", "2"] {
                for name in ["a", "b"] {
                    let metadata = json!({ "name": name, "namespace": "shop" });
                    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "round": round } });
                    server.put(map).unwrap();
                }
            }
            let updates = heard.take_until(tokio::time::sleep(Duration::from_secs(1))).filter_map(|notice| {
                let updated = matches!(notice.event, Event::Updated { .. });
                std::future::ready(updated.then(|| notice.event.key().name().to_owned()))
            });
            assert_eq!(updates.collect::<Vec<String>>().await, order, "{queue:?}");
            factory.shutdown().await;
        });
    }
}

/// Keeps what informers can be asked.
#[derive(Default)]
struct Probes(Mutex<Vec<Probe<Levels>>>);

impl Metrics for Probes {
    fn record(&self, _: &str, _: Measurement<'_>) {}

    fn informer(&self, _: &str, probe: Probe<Levels>) {
        self.0.lock().unwrap().push(probe);
    }
}

#[test]
fn the_bytes_of_an_informer_are_those_of_the_objects_that_it_has_now() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let probes = Arc::new(Probes::default());
        let factory =
            SharedInformerFactory::builder(server.client()).metrics(probes.clone()).build().unwrap();
        let maps = factory.informer_for::<ConfigMap>();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        let mut before = 0;
        let mut told = async || {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let levels = probes.0.lock().unwrap()[0].ask().unwrap();
            let sum: usize = maps.store().snapshot().iter().map(|map| map.wire_bytes()).sum();
            assert_eq!((levels.bytes, levels.objects), (sum as u64, maps.store().len()));
            let change = levels.bytes as i64 - before;
            before = levels.bytes as i64;
            change
        };
        assert!(told().await > 10, "what was listed");
        let metadata = json!({ "name": "b", "namespace": "shop" });
        let map = |text: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "text": text } });
        server.put(map("x")).unwrap();
        let added = told().await;
        server.put(map(&"x".repeat(100_001))).unwrap();
        assert!(added > 10 && (100_000..100_020).contains(&told().await), "what was told by the watch");
        for name in ["a", "b"] {
            server.discard("", "configmaps", &format!("shop/{name}").parse().unwrap());
        }
        told().await;
        assert_eq!(before, 0, "what is gone");
        factory.shutdown().await;
    });
}

#[test]
fn c30_the_grace_of_a_factory_is_that_of_its_informers() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let factory =
            SharedInformerFactory::builder(server.client()).grace(Duration::from_secs(3)).build().unwrap();
        struct Endless;
        impl EventHandler<ConfigMap> for Endless {
            async fn on_add(&mut self, _: &Object<ConfigMap>, _: bool) {
                pending::<()>().await;
            }
        }
        factory.core().v1().config_maps().informer().add_handler(Endless).unwrap();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        let began = Instant::now();
        factory.shutdown().await;
        assert_eq!(began.elapsed(), Duration::from_secs(3));
    });
}

#[test]
fn c16_metadata_is_changed_for_every_type_and_then_each_type_in_its_own_way() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let metadata = json!({ "name": "a", "namespace": "shop", "annotations": { "note": "x" } });
        server.put(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata })).unwrap();
        let factory = SharedInformerFactory::builder(server.client())
            .transform_metadata(|metadata| {
                metadata.annotations = None;
                metadata.labels.get_or_insert_default().insert("seen".into(), "once".into());
            })
            .transform(Transform::new(|map: &mut ConfigMap| {
                let labels = map.metadata.labels.iter().flatten().count();
                map.data = Some([("labels".to_owned(), labels.to_string())].into());
            }))
            .build()
            .unwrap();
        let (maps, secrets) = (factory.core().v1().config_maps(), factory.core().v1().secrets());
        let (maps, secrets) = (maps.lister(), secrets.lister());
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        let (map, secret) = (maps.get("shop/a").unwrap(), secrets.get("shop/a").unwrap());
        assert_eq!(map.data.as_ref().unwrap()["labels"], "2", "the metadata comes first");
        assert!(secret.metadata.annotations.is_none());
        assert_eq!(secrets.list(&"seen=once".parse().unwrap()).len(), 1, "what is indexed is what is kept");
        factory.shutdown().await;
    });
}

#[test]
fn c26_a_type_has_the_resync_period_that_was_chosen_for_it() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let metadata = json!({ "name": "a", "namespace": "shop" });
        server.put(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata })).unwrap();
        let factory = SharedInformerFactory::builder(server.client())
            .resync(Duration::from_secs(600))
            .custom_resync::<Secret>(Duration::from_secs(60))
            .build()
            .unwrap();
        let maps = factory.informer_for::<ConfigMap>().subscribe().unwrap();
        let secrets = factory.informer_for::<Secret>().subscribe().unwrap();
        factory.start().unwrap();
        let after = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        let maps = maps.take_until(after(630)).filter(|notice| std::future::ready(notice.is_resync()));
        let secrets = secrets.take_until(after(630)).filter(|notice| std::future::ready(notice.is_resync()));
        let (maps, secrets): (Vec<Notice<ConfigMap>>, Vec<Notice<Secret>>) =
            tokio::join!(maps.collect(), secrets.collect());
        assert_eq!((maps.len(), secrets.len()), (1, 10));
        factory.shutdown().await;
    });
}

#[test]
fn lists_are_asked_for_in_pages_of_the_size_that_was_chosen() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let asking = Arc::clone(&asked);
        let builder = SharedInformerFactory::builder(server.client()).streaming(false).page_size(3);
        let builder = builder.tweak_list_options(move |options| {
            asking.lock().expect("no panic").push((options.limit, options.send_initial_events));
        });
        let factory = builder.build().unwrap();
        asked.lock().unwrap().clear(); // it was tried once
        let maps = factory.informer_for::<ConfigMap>();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert_eq!(maps.store().len(), 1);
        assert_eq!(asked.lock().unwrap()[0], (Some(3), false));
        factory.shutdown().await;
    });
}

#[test]
fn managed_fields_are_kept_only_if_asked_for() {
    story(async {
        let server = mk_server(&[]);
        let fields = json!([{ "manager": "kubectl", "operation": "Update", "apiVersion": "v1" }]);
        let metadata = json!({ "name": "a", "namespace": "shop", "managedFields": fields });
        server.put(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })).unwrap();
        for keep in [false, true] {
            let builder = SharedInformerFactory::builder(server.client());
            let builder = if keep { builder.keep_managed_fields() } else { builder };
            let factory = builder.build().unwrap();
            let maps = factory.core().v1().config_maps().lister();
            factory.start().unwrap();
            factory.wait_for_cache_sync(SOON).await.unwrap();
            assert_eq!(maps.get("shop/a").unwrap().metadata.managed_fields.is_some(), keep);
            factory.shutdown().await;
        }
    });
}

#[test]
fn problems_of_all_informers_are_told_by_name_and_the_chosen_delays_are_kept() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        server.faults().add(Rule::new(Fault::Status(Status::internal_error("no"))).resource("secrets"));
        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = Arc::clone(&told);
        let hour = Duration::from_secs(3_600);
        let factory = SharedInformerFactory::builder(server.client())
            .backoff(Backoff { initial: hour, max: hour, jitter: 0.0, ..Backoff::default() })
            .watch_error_handler(move |informer, problem, _| {
                telling.lock().expect("no panic").push(format!("{informer}: {}", problem.cause()));
            })
            .build()
            .unwrap();
        let _both = (factory.informer_for::<ConfigMap>(), factory.informer_for::<Secret>());
        factory.start().unwrap();
        tokio::time::sleep(hour / 2).await;
        let first = told.lock().unwrap().clone();
        assert!(
            !first.is_empty() && first.iter().all(|line| line.starts_with("secrets in all namespaces: ")),
            "{first:?}"
        );
        tokio::time::sleep(hour).await;
        assert!(told.lock().unwrap().len() > first.len(), "it was tried again an hour after");
        factory.shutdown().await;
    });
}

/// Who has synced, and who has stopped.
#[derive(Default)]
struct Tellers(Mutex<Vec<String>>);

impl Metrics for Tellers {
    fn record(&self, informer: &str, measurement: Measurement<'_>) {
        let told = match measurement {
            Measurement::Synced { .. } => "synced",
            Measurement::Stopped => "stopped",
            _ => return,
        };
        self.0.lock().unwrap().push(format!("{informer}: {told}"));
    }
}

#[test]
fn measurements_of_all_informers_go_to_one_place() {
    story(async {
        let server = mk_server(&[]);
        let tellers = Arc::new(Tellers::default());
        let builder = SharedInformerFactory::builder(server.client()).name("web");
        let factory = builder.metrics(tellers.clone()).namespace("shop").build().unwrap();
        let _both = (factory.informer_for::<ConfigMap>(), factory.informer_for::<Secret>());
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        factory.shutdown().await;
        let mut told = tellers.0.lock().unwrap().clone();
        told.sort_unstable();
        let names = ["configmaps", "secrets"].map(|plural| format!("web: {plural} in namespace \"shop\""));
        let expected =
            names.iter().flat_map(|name| ["stopped", "synced"].map(|word| format!("{name}: {word}")));
        assert_eq!(told, expected.collect::<Vec<_>>());
    });
}
