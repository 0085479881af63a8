//! Kinds and namespaces that come and go while a factory runs.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use http::Request;
use informer::{
    Departure, DynamicObject, Handler, Namespaces, SharedInformer, SharedInformerFactory,
    factory::Scope,
    model::{ObjectKey, Selector, Status},
};
use informer_apiserver::{ApiServer, Fault, Rule, Verb};
use informer_testing::custom_resource;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Client, client::Body, core::PartialObjectMeta};
use serde_json::json;
use tokio::runtime::Handle;
use tower_service::Service;

use super::{SOON, config_map, mk_server, story, until, watches};

/// What was asked of a server, by path, also what it does not serve.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<BTreeMap<String, usize>>>);

impl Asked {
    /// How many requests there were with this in their path.
    fn about(&self, part: &str) -> usize {
        let asked = self.0.lock().expect("no panic");
        asked.iter().filter(|(path, _)| path.contains(part)).map(|(_, times)| times).sum()
    }
}

/// A connection whose requests are counted.
#[derive(Clone)]
struct Counted {
    server: informer_apiserver::Connection,
    asked: Asked,
}

type Refused = <informer_apiserver::Connection as Service<Request<Body>>>::Error;
type Answer = <informer_apiserver::Connection as Service<Request<Body>>>::Response;

impl Service<Request<Body>> for Counted {
    type Response = Answer;
    type Error = Refused;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Refused>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        *self.asked.0.lock().expect("no panic").entry(request.uri().path().to_owned()).or_default() += 1;
        Box::pin(self.server.call(request))
    }
}

fn counting(server: &ApiServer) -> (Client, Asked) {
    let asked = Asked::default();
    (Client::new(Counted { server: server.service(), asked: asked.clone() }, "default"), asked)
}

fn put_namespace(server: &ApiServer, name: &str, labels: &[(&str, &str)]) {
    let labels: BTreeMap<_, _> = labels.iter().copied().collect();
    let metadata = json!({ "name": name, "labels": labels });
    server.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })).expect("written");
}

fn discard(server: &ApiServer, (group, plural): (&str, &str), key: &str) {
    let key: ObjectKey = key.parse().expect("a key");
    assert!(server.discard(group, plural, &key), "{key} was there");
}

const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

fn install(server: &ApiServer) {
    server.put(custom_resource("Website", &["ws"])).expect("written");
}

fn uninstall(server: &ApiServer) {
    discard(server, DEFINITIONS, "websites.example.com");
}

fn put_site(server: &ApiServer, name: &str) {
    let metadata = json!({ "name": name, "namespace": "shop" });
    server
        .put(json!({ "apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata }))
        .expect("written");
}

#[derive(Debug, Clone, serde::Deserialize)]
struct Website {
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
}

informer::projection!(Website of {
    group: "example.com",
    version: "v1",
    kind: "Website",
    plural: "websites",
    scope: Namespaced,
});

/// What handlers hear, in short: `*` initial, `+` added, `-` deleted with the reason.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }

    fn listen<K: Send + Sync + 'static>(&self, informer: &SharedInformer<K>) {
        let (added, deleted) = (self.clone(), self.clone());
        let handler = Handler::<K>::new()
            .on_add(move |object, initial| {
                let sign = if initial { '*' } else { '+' };
                added.0.lock().expect("no panic").push(format!("{sign}{}", object.key()));
            })
            .on_delete(move |gone| {
                let why = match gone.departure() {
                    Some(Departure::Kind) => " kind",
                    Some(Departure::Namespace) => " namespace",
                    Some(_) => " else",
                    None => "",
                };
                deleted.0.lock().expect("no panic").push(format!("-{}{why}", gone.key()));
            });
        informer.add_handler(handler).expect("it runs");
    }
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[test]
fn c44_namespaces_are_followed_by_their_labels() {
    story(async {
        let server = mk_server(&[("shop", "a"), ("bank", "b")]);
        put_namespace(&server, "shop", &[("team", "web")]);
        let (client, asked) = counting(&server);
        let selector: Selector = "team=web".parse().unwrap();
        let factory = SharedInformerFactory::builder(client)
            .scope(Scope::namespaces_matching(&selector))
            .build()
            .unwrap();
        let (maps, heard) = (factory.informer_for::<ConfigMap>(), Heard::default());
        assert!(maps.ptr_eq(&factory.informer_for()), "the selector is part of what tells informers apart");
        heard.listen(&maps);
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        settle().await;
        assert_eq!(heard.take(), ["*shop/a"]);
        assert!(maps.name().contains("labelled \"team=web\""), "{}", maps.name());

        put_namespace(&server, "bank", &[("team", "web")]);
        settle().await;
        assert_eq!(heard.take(), ["*bank/b"], "its labels say so now");
        put_namespace(&server, "bank", &[("team", "db")]);
        settle().await;
        assert_eq!(heard.take(), ["-bank/b namespace"]);
        discard(&server, ("", "configmaps"), "shop/a");
        discard(&server, ("", "namespaces"), "shop");
        settle().await;
        assert_eq!(heard.take(), ["-shop/a"], "what was deleted is told as ever");
        let before = asked.about("/namespaces/");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(asked.about("/namespaces/"), before, "requests to what is gone");
        assert_eq!(maps.health().sources.len(), 0, "{}", maps.health());
        assert!(factory.health().iter().all(informer::Health::is_healthy));
        let other = factory.scoped(Scope::namespaces_matching(&"team=db".parse().unwrap()));
        assert!(!maps.ptr_eq(&other.informer_for()), "another selector");
        factory.shutdown().await;
    });
}

#[test]
fn c44_a_selector_whose_namespaces_may_not_be_listed_is_named() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let refused =
            Status::forbidden("namespaces", "", "", "User \"web\" cannot list resource \"namespaces\"");
        for verb in [Verb::List, Verb::Watch] {
            server.faults().add(Rule::new(Fault::Status(refused.clone())).verb(verb).resource("namespaces"));
        }
        let scope = Scope::namespaces_matching(&Selector::everything());
        let factory = SharedInformerFactory::builder(server.client()).scope(scope).build().unwrap();
        let maps = factory.informer_for::<ConfigMap>();
        factory.start().unwrap();
        let error = factory.wait_for_cache_sync(Duration::from_secs(10)).await.unwrap_err().to_string();
        assert!(error.contains("the namespaces to list are not known yet"), "{error}");
        assert!(error.contains("User \"web\" cannot list"), "{error}");
        server.faults().clear();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert_eq!(maps.store().len(), 1);
        factory.shutdown().await;
    });
}

#[test]
fn c44_the_informer_of_the_namespaces_may_be_stopped_and_another_takes_over() {
    story(async {
        let server = mk_server(&[("shop", "a"), ("bank", "b")]);
        put_namespace(&server, "shop", &[("team", "web")]);
        let selector: Selector = "team=web".parse().unwrap();
        let scope = Scope::namespaces_matching(&selector);
        let factory = SharedInformerFactory::builder(server.client()).scope(scope).build().unwrap();
        let maps = factory.informer_for::<ConfigMap>();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        let labelled = factory.scoped(Scope::everything().labels(&selector));
        assert!(labelled.stop_informer::<PartialObjectMeta<Namespace>>().await);
        put_namespace(&server, "bank", &[("team", "web")]);
        settle().await;
        assert_eq!(maps.store().len(), 1, "nobody follows the namespaces");
        assert!(factory.stop_informer::<ConfigMap>().await);
        let maps = factory.informer_for::<ConfigMap>();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        until(|| maps.store().len() == 2, "both namespaces").await;
        factory.shutdown().await;
    });
}

#[test]
fn c43_a_set_is_part_of_what_tells_informers_apart() {
    story(async {
        let server = mk_server(&[("shop", "a"), ("bank", "b")]);
        let (one, other) = (Namespaces::of(["shop"]).unwrap(), Namespaces::of(["shop"]).unwrap());
        let factory =
            SharedInformerFactory::builder(server.client()).scope(Scope::following(&one)).build().unwrap();
        let maps = factory.informer_for::<ConfigMap>();
        assert!(maps.ptr_eq(&factory.scoped(Scope::following(&one.clone())).informer_for()));
        let others = factory.scoped(Scope::following(&other)).informer_for::<ConfigMap>();
        assert!(!maps.ptr_eq(&others), "another set");
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        one.add("bank").unwrap();
        maps.wait_until_namespace_synced("bank", SOON).await.unwrap();
        assert_eq!((maps.store().len(), others.store().len()), (2, 1));
        assert_ne!(maps.name(), others.name());
        factory.shutdown().await;
    });
}

#[test]
fn c44_a_thousand_namespaces_that_come_and_go_leave_nothing_behind() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        put_namespace(&server, "shop", &[("team", "web")]);
        let (client, asked) = counting(&server);
        let scope = Scope::namespaces_matching(&"team=web".parse().unwrap());
        let factory = SharedInformerFactory::builder(client).scope(scope).build().unwrap();
        let maps = factory.informer_for::<ConfigMap>();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        settle().await;
        let tasks = Handle::current().metrics().num_alive_tasks();
        for cycle in 0..1_000 {
            let name = format!("tmp-{}", cycle % 7);
            put_namespace(&server, &name, &[("team", "web")]);
            server.put(config_map(&name, "x")).unwrap();
            until(|| maps.store().len() == 2, "its object").await;
            discard(&server, ("", "configmaps"), &format!("{name}/x"));
            discard(&server, ("", "namespaces"), &name);
            until(|| maps.store().len() == 1 && maps.health().sources.len() == 1, "it is gone").await;
        }
        settle().await;
        assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks, "tasks are left");
        let before = asked.about("/tmp-");
        assert!(before <= 3_000, "{before} requests in 1,000 cycles");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(asked.about("/tmp-"), before, "requests to what is gone");
        assert_eq!(maps.store().snapshot().index_values("namespace").unwrap(), ["shop"]);
        factory.shutdown().await;
    });
}

#[test]
fn c45_an_informer_ends_with_its_definition_and_begins_with_it_again() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let (client, asked) = counting(&server);
        let factory = SharedInformerFactory::builder(client).follow_kinds(Duration::MAX).build().unwrap();
        let (sites, maps, heard) =
            (factory.informer_for::<Website>(), factory.informer_for::<ConfigMap>(), Heard::default());
        heard.listen(&sites);
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.expect("what is not there is synced: it has no objects");
        assert_eq!(asked.about("websites"), 0, "nothing is asked of what is not there");
        let words = sites.health().to_string();
        assert!(
            words.contains("the server has no websites in example.com/v1") && sites.health().absent.is_some(),
            "{words}"
        );
        assert!(sites.health().is_healthy(), "that is a state and no trouble: {words}");

        install(&server);
        put_site(&server, "blog");
        until(|| sites.store().len() == 1, "the website").await;
        settle().await;
        assert_eq!(heard.take(), ["*shop/blog"]);
        assert_eq!(sites.health().absent, None);
        let lister = informer::Lister::new(sites.store());
        assert_eq!(lister.served(), Ok(()));

        uninstall(&server);
        until(|| sites.health().absent.is_some(), "it is gone").await;
        settle().await;
        assert_eq!(heard.take(), ["-shop/blog"], "the server has told of the deletion itself");
        assert!(sites.store().is_empty() && sites.has_synced());
        let gone = lister.served().unwrap_err().to_string();
        assert_eq!(
            gone,
            "websites.example.com is not served: its CustomResourceDefinition websites.example.com is gone"
        );
        let missing = lister.get("shop/blog").unwrap_err().to_string();
        assert!(
            missing
                .ends_with("as it is not served: its CustomResourceDefinition websites.example.com is gone"),
            "{missing}"
        );
        let before = asked.about("websites");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(asked.about("websites"), before, "requests to what is gone");

        install(&server);
        put_site(&server, "docs");
        until(|| sites.store().len() == 1, "it is back").await;
        settle().await;
        assert_eq!(heard.take(), ["*shop/docs"], "the same handle goes on");
        assert_eq!(lister.served(), Ok(()));

        // Out of reach while it goes, nobody has told of the deletion.
        server.faults().add(Rule::new(Fault::Refuse).resource("websites"));
        server.break_watches();
        settle().await;
        uninstall(&server);
        until(|| sites.health().absent.is_some(), "it is gone").await;
        settle().await;
        assert_eq!(heard.take(), ["-shop/docs kind"]);
        assert!(sites.health().is_healthy(), "{}", sites.health());
        assert!(maps.health().is_healthy());
        factory.shutdown().await;
    });
}

#[test]
fn c45_a_definition_that_takes_the_place_of_another_is_listed_anew() {
    story(async {
        let server = mk_server(&[]);
        install(&server);
        put_site(&server, "blog");
        let factory = SharedInformerFactory::builder(server.client()).follow_kinds(SOON).build().unwrap();
        let (sites, heard) = (factory.informer_for::<Website>(), Heard::default());
        heard.listen(&sites);
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        settle().await;
        assert_eq!(heard.take(), ["*shop/blog"]);
        // In one go, so that nobody sees it gone.
        uninstall(&server);
        install(&server);
        put_site(&server, "blog");
        put_site(&server, "docs");
        settle().await;
        until(|| sites.store().len() == 2, "what the other has").await;
        settle().await;
        assert_eq!(heard.take(), ["-shop/blog", "*shop/blog", "*shop/docs"]);
        // Out of reach meanwhile, nobody has told that it was another one.
        server.faults().add(Rule::new(Fault::Refuse).resource("websites"));
        server.break_watches();
        settle().await;
        uninstall(&server);
        install(&server);
        put_site(&server, "docs");
        settle().await;
        assert_eq!(heard.take(), ["-shop/blog kind", "-shop/docs kind"]);
        server.faults().clear();
        until(|| sites.store().len() == 1, "what the third has").await;
        settle().await;
        assert_eq!(heard.take(), ["*shop/docs"]);
        factory.shutdown().await;
    });
}

#[test]
fn c45_a_version_that_is_served_no_longer_is_gone() {
    story(async {
        let server = mk_server(&[]);
        install(&server);
        put_site(&server, "blog");
        let factory = SharedInformerFactory::builder(server.client()).follow_kinds(SOON).build().unwrap();
        let sites = factory.for_resource("websites").await.unwrap();
        let (informer, lister, heard) = (sites.informer(), sites.lister(), Heard::default());
        heard.listen(&informer);
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert_eq!(informer.store().len(), 1);
        let mut definition = custom_resource("Website", &["ws"]);
        let mut second = definition["spec"]["versions"][0].clone();
        second["name"] = json!("v2");
        definition["spec"]["versions"][0]["served"] = json!(false);
        definition["spec"]["versions"][0]["storage"] = json!(false);
        definition["spec"]["versions"].as_array_mut().unwrap().push(second);
        server.put(definition).unwrap();
        until(|| lister.served().is_err(), "it is gone").await;
        assert!(lister.served().unwrap_err().to_string().ends_with("does not serve version v1"));
        assert!(informer.store().is_empty());
        settle().await;
        assert_eq!(heard.take(), ["*shop/blog", "-shop/blog kind"], "it is still there, in another version");
        let second: SharedInformer<DynamicObject> =
            factory.for_resource("websites.v2.example.com").await.unwrap().informer();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert_eq!(second.store().len(), 1);
        factory.shutdown().await;
    });
}

#[test]
fn c45_where_definitions_may_not_be_read_the_server_is_asked_what_it_serves() {
    story(async {
        let server = mk_server(&[]);
        let refused = Status::forbidden("customresourcedefinitions", "apiextensions.k8s.io", "", "no");
        for verb in [Verb::List, Verb::Watch] {
            let rule =
                Rule::new(Fault::Status(refused.clone())).verb(verb).resource("customresourcedefinitions");
            server.faults().add(rule);
        }
        let (client, asked) = counting(&server);
        let every = Duration::from_secs(30);
        let factory = SharedInformerFactory::builder(client).follow_kinds(every).build().unwrap();
        let (sites, heard) = (factory.informer_for::<Website>(), Heard::default());
        heard.listen(&sites);
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        for _ in 0..3 {
            install(&server);
            put_site(&server, "blog");
            until(|| sites.store().len() == 1, "the website").await;
            uninstall(&server);
            until(|| sites.health().absent.is_some(), "it is gone").await;
            settle().await;
            assert_eq!(heard.take(), ["*shop/blog", "-shop/blog"]);
            let (before, documents) = (asked.about("websites"), asked.about("/apis"));
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            assert_eq!(asked.about("websites"), before, "requests to what is gone");
            let rounds = asked.0.lock().unwrap()["/apis"];
            assert!(rounds <= documents + 125, "{rounds} after {documents}");
        }
        // Once the definitions may be read, they tell, and what is there stays.
        install(&server);
        put_site(&server, "blog");
        until(|| sites.store().len() == 1, "the website").await;
        server.faults().clear();
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(heard.take(), ["*shop/blog"]);
        uninstall(&server);
        settle().await;
        assert_eq!(heard.take(), ["-shop/blog"]);
        assert!(sites.health().absent.is_some(), "without a question");
        factory.shutdown().await;
    });
}

#[test]
fn c45_a_thousand_definitions_that_come_and_go_leave_nothing_behind() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let (client, asked) = counting(&server);
        let factory = SharedInformerFactory::builder(client).follow_kinds(SOON).build().unwrap();
        let (sites, heard) = (factory.informer_for::<Website>(), Heard::default());
        heard.listen(&sites);
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        let tasks = Handle::current().metrics().num_alive_tasks();
        for _ in 0..1_000 {
            install(&server);
            put_site(&server, "blog");
            until(|| sites.store().len() == 1, "the website").await;
            uninstall(&server);
            until(|| sites.health().absent.is_some(), "it is gone").await;
        }
        settle().await;
        assert_eq!(heard.take().len(), 2_000);
        assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks, "tasks are left");
        let before = asked.about("websites");
        // One streaming list that is the watch, and one that found out by itself that it is gone.
        assert!(before <= 2_000, "{before} requests in 1,000 cycles");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(asked.about("websites"), before, "requests to what is gone");
        assert!(sites.health().sources.is_empty() && sites.quarantined().is_empty());
        assert!(watches(&server)["websites"] <= 2_000);
        factory.shutdown().await;
    });
}
