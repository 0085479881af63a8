//! Resources that nobody knew when the program was compiled, and resources that come and go.

use std::{sync::Arc, sync::Mutex, time::Duration};

use informer::{
    DynamicObject, Handler, SharedInformerFactory,
    discovery::ResolveError,
    factory::Scope,
    model::{GroupVersionResource, ObjectKey, ResourceArg, Selector},
};
use informer_apiserver::ApiServer;
use informer_testing::custom_resource;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Node},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::core::PartialObjectMeta;
use serde::Deserialize;
use serde_json::json;
use tracing::Level;

use super::{SOON, config_map, log_lines::LogLines, mk_factory, mk_server, story, until, watches};

/// What a program might want to know of a website.
#[derive(Debug, Clone, Deserialize)]
struct Website {
    metadata: ObjectMeta,
    spec: WebsiteSpec,
}

#[derive(Debug, Clone, Deserialize)]
struct WebsiteSpec {
    host: String,
}

informer::projection!(Website of {
    group: "example.com",
    version: "v1",
    kind: "Website",
    plural: "websites",
    scope: Namespaced,
});

fn install_websites(server: &ApiServer) {
    server.put(custom_resource("Website", &["ws"])).expect("written");
}

fn uninstall_websites(server: &ApiServer) {
    let key = ObjectKey::new(None, "websites.example.com").expect("a key");
    assert!(server.discard("apiextensions.k8s.io", "customresourcedefinitions", &key));
}

fn put_website(server: &ApiServer, name: &str) {
    let metadata = json!({ "name": name, "namespace": "shop", "labels": { "site": name } });
    let spec = json!({ "host": format!("{name}.example.com"), "pages": [{ "path": "/" }] });
    let site =
        json!({ "apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata, "spec": spec });
    server.put(site).expect("written");
}

#[test]
fn f16_a_custom_resource_is_named_while_it_is_missing_followed_when_it_comes_and_buried_when_it_goes() {
    let log = LogLines::default();
    let _guard = log.listen();
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let factory = mk_factory(&server);
        let (sites, maps) = (factory.informer_for::<Website>(), factory.informer_for::<ConfigMap>());
        let deleted = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&deleted);
        let bury = Handler::<Website>::new()
            .on_delete(move |gone| told.lock().expect("no panic").push(gone.key().to_string()));
        sites.add_handler(bury).unwrap();
        factory.start().unwrap();

        let error = factory.wait_for_cache_sync(Duration::from_secs(20)).await.unwrap_err();
        let missing: Vec<&str> = error.0.failures().map(|(name, _)| name).collect();
        assert_eq!(missing, ["websites.example.com in all namespaces"]);
        let text = error.to_string();
        assert!(
            text.contains("could not find the requested resource")
                && text.contains("that its CustomResourceDefinition is installed"),
            "{text}"
        );
        assert!(maps.has_synced(), "the others go on");

        install_websites(&server);
        put_website(&server, "blog");
        put_website(&server, "docs");
        factory.wait_for_cache_sync(Duration::from_secs(60)).await.unwrap();
        until(|| sites.store().len() == 2, "both websites").await;
        let blog = sites.store().get(&"shop/blog".parse().unwrap()).unwrap();
        assert_eq!(blog.spec.host, "blog.example.com");

        log.take(Level::WARN);
        uninstall_websites(&server);
        until(|| deleted.lock().unwrap().len() == 2, "both deletions").await;
        until(|| sites.health().trouble().is_some(), "trouble").await;
        assert!(sites.store().is_empty());
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        let health = sites.health();
        assert!(health.synced && !health.is_healthy(), "{health}");
        assert!(health.to_string().contains("CustomResourceDefinition"), "{health}");
        let warnings = log.take(Level::WARN);
        assert!(warnings.len() <= 20, "{} warnings in an hour: {warnings:#?}", warnings.len());

        install_websites(&server);
        put_website(&server, "blog");
        until(|| sites.store().len() == 1, "it is back").await;
        factory.shutdown().await;
    });
}

#[test]
fn any_resource_is_found_by_any_of_its_names_and_is_one_informer() {
    story(async {
        let server = mk_server(&[]);
        install_websites(&server);
        put_website(&server, "blog");
        let factory = mk_factory(&server);
        let resource: GroupVersionResource = "websites.v1.example.com".parse().unwrap();
        let sites = factory.for_resource(resource).await.unwrap();
        let names = ["websites", "ws", "website.example.com", "example.com/v1/websites"];
        for name in names {
            assert!(factory.for_resource(name).await.unwrap().informer().ptr_eq(&sites.informer()), "{name}");
        }
        let arg: ResourceArg = "websites.example.com".parse().unwrap();
        assert!(factory.for_resource(arg).await.unwrap().informer().ptr_eq(&sites.informer()));
        assert_eq!((sites.kind().kind.as_str(), sites.is_namespaced()), ("Website", true));

        let lister = sites.lister();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        let blog = lister.namespace("shop").get("blog").unwrap();
        assert_eq!(blog.pointer("/spec/pages/0/path"), Some(&json!("/")));
        assert_eq!(blog.try_parse::<Website>().unwrap().spec.host, "blog.example.com");
        assert_eq!(lister.list(&"site=blog".parse().unwrap()).len(), 1);
        let missing = lister.get("shop/none").unwrap_err();
        assert_eq!(missing.to_string(), r#"websites.example.com "shop/none" not found in the cache"#);
        assert_eq!(watches(&server), [("websites".to_owned(), 1)].into());
        assert!(factory.stop(&sites.informer()).await);
        assert!(!sites.informer().is_stopped(), "the handle gives the next one");
        factory.shutdown().await;
    });
}

#[test]
fn one_type_stands_for_many_resources_each_with_its_own_informer() {
    story(async {
        let server = mk_server(&[("shop", "a"), ("bank", "b")]);
        server.put(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" } })).unwrap();
        let factory = mk_factory(&server).scoped(Scope::namespace("shop").unwrap());
        let maps = factory.for_resource("configmaps").await.unwrap();
        let nodes = factory.for_resource("nodes").await.unwrap();
        assert!(!maps.informer().ptr_eq(&nodes.informer()) && !nodes.is_namespaced());
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert_eq!((maps.informer().store().len(), nodes.informer().store().len()), (1, 1));
        factory.shutdown().await;
    });
}

#[test]
fn a_name_that_means_nothing_is_answered_with_what_is_near_it() {
    story(async {
        let factory = mk_factory(&mk_server(&[]));
        let error = factory.for_resource("deploymets.apps").await.unwrap_err();
        assert!(error.to_string().contains("did you mean deployments.apps"), "{error}");
        let error = factory.for_resource("websites.v1.example.com").await.unwrap_err();
        assert!(matches!(error, ResolveError::Unknown { .. }), "{error}");
        let error = factory.for_resource("no such/thing/at/all").await.unwrap_err();
        assert!(matches!(error, ResolveError::Name(_)), "{error}");
        let error = factory.for_resource("componentstatuses").await.unwrap_err();
        assert!(error.to_string().contains("cannot be watched"), "{error}");
        assert!(factory.health().is_empty(), "nothing was made");
    });
}

#[test]
fn a_custom_resource_that_is_new_is_found_without_being_told() {
    story(async {
        let server = mk_server(&[]);
        let factory = mk_factory(&server);
        assert!(factory.for_resource("websites").await.is_err());
        install_websites(&server);
        assert_eq!(factory.for_resource("websites").await.unwrap().kind().kind, "Website");
    });
}

#[test]
fn metadata_alone_is_sent_and_kept_for_types_and_for_names() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let data = json!({ "key": "x".repeat(10_000) });
        let mut map = config_map("shop", "big");
        map["data"] = data;
        server.put(map).unwrap();
        let factory = mk_factory(&server);
        let typed = factory.informer_for::<PartialObjectMeta<ConfigMap>>();
        let named = factory.metadata_for("configmaps").await.unwrap().lister();
        let whole = factory.informer_for::<ConfigMap>();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        let key = "shop/big".parse().unwrap();
        let (typed, whole) = (typed.store().get(&key).unwrap(), whole.store().get(&key).unwrap());
        let named = named.get("shop/big").unwrap();
        assert!(whole.wire_bytes() > 10_000 && typed.wire_bytes() < 1_000 && named.wire_bytes() < 1_000);
        assert_eq!((typed.labels().get("app"), named.labels().get("app")), (Some("big"), Some("big")));
        factory.shutdown().await;
    });
}

/// The objects of a resource as a type of one's own, whose kind is known at run time only.
#[derive(Debug, Clone, Deserialize)]
struct Named {
    metadata: ObjectMeta,
}
informer::projection!(Named of DynamicObject);

#[test]
fn a_resource_may_be_taken_as_any_type_that_leaves_its_kind_open() {
    story(async {
        let server = mk_server(&[("shop", "a")]);
        let factory = SharedInformerFactory::new(server.client(), Duration::ZERO);
        let maps = factory.for_resource_as::<Named>("configmaps").await.unwrap().lister();
        let nodes = factory.core().v1().nodes().lister();
        factory.start().unwrap();
        factory.wait_for_cache_sync(SOON).await.unwrap();
        assert_eq!(maps.get("shop/a").unwrap().metadata.name.as_deref(), Some("a"));
        assert!(nodes.list(&Selector::everything()).is_empty());
        let _: informer::Lister<Node> = nodes;
        factory.shutdown().await;
    });
}
