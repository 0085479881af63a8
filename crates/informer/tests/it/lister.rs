//! What a lister says of the cache.

use crate::support::{key, mk, mk_labelled, show};
use informer::{
    Lister,
    model::{Selector, Status},
    store::{self, Store, StoreWriter},
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};

fn filled() -> (StoreWriter<ConfigMap>, Store<ConfigMap>) {
    let (mut writer, store) = store::new::<ConfigMap>();
    writer.write(|batch| {
        batch.insert(mk_labelled("shop/web-0", 1, &[("app", "web")]));
        batch.insert(mk_labelled("shop/db-0", 2, &[("app", "db")]));
        batch.insert(mk_labelled("blog/web-0", 3, &[("app", "web")]));
        batch.insert(mk_labelled("loose", 4, &[("app", "web")]));
    });
    (writer, store)
}

fn selector(text: &str) -> Selector {
    text.parse().expect("a selector")
}

#[test]
fn c18_a_list_has_what_the_selector_matches_in_the_order_of_keys() {
    let lister = Lister::new(filled().1);
    assert_eq!(show(&lister.list(&Selector::everything())), "blog/web-0@3 loose@4 shop/db-0@2 shop/web-0@1");
    assert_eq!(show(&lister.list(&selector("app=web"))), "blog/web-0@3 loose@4 shop/web-0@1");
    assert_eq!(show(&lister.list(&Selector::nothing())), "");
}

#[test]
fn c18_a_namespace_is_listed_alone() {
    let lister = Lister::new(filled().1);
    let shop = lister.namespace("shop");
    assert_eq!(show(&shop.list(&Selector::everything())), "shop/db-0@2 shop/web-0@1");
    assert_eq!(show(&shop.list(&selector("app=web"))), "shop/web-0@1");
    assert_eq!(
        show(&lister.namespace("").list(&selector("app=web"))),
        "blog/web-0@3 loose@4 shop/web-0@1",
        "all"
    );
    assert_eq!(show(&lister.namespace("nowhere").list(&Selector::everything())), "");
}

#[test]
fn an_object_is_had_by_key_by_text_or_by_name_in_its_namespace() {
    let lister = Lister::new(filled().1);
    let by_key = lister.get(&key("shop/web-0")).unwrap();
    assert!(lister.get("shop/web-0").unwrap().ptr_eq(&by_key));
    assert!(lister.get(&"shop/web-0".to_owned()).unwrap().ptr_eq(&by_key));
    assert!(lister.namespace("shop").get("web-0").unwrap().ptr_eq(&by_key));
    assert_eq!(show([&lister.get("loose").unwrap()]), "loose@4", "without a namespace");
    assert_eq!(show([&lister.namespace("").get("loose").unwrap()]), "loose@4");
}

#[test]
fn what_is_missing_is_named_as_kubernetes_names_it() {
    let lister = Lister::new(filled().1);
    let missing = lister.get(&key("shop/web-9")).unwrap_err();
    assert_eq!(missing.to_string(), r#"configmaps "shop/web-9" not found in the cache"#);
    assert_eq!(lister.namespace("shop").get("web-9").unwrap_err(), missing);
    assert_eq!(Status::from(missing), Status::not_found("configmaps", "", "web-9"));

    let deployments = Lister::new(store::new::<Deployment>().1);
    let missing = deployments.namespace("shop").get("web").unwrap_err();
    assert_eq!(missing.to_string(), r#"deployments.apps "shop/web" not found in the cache"#);
    assert_eq!(Status::from(missing).to_string(), r#"deployments.apps "web" not found"#);
}

#[test]
fn what_cannot_be_a_key_is_not_found() {
    let lister = Lister::new(filled().1);
    for text in ["", "/", "shop/", "/web-0", "shop/web-0/log", "shop//web-0"] {
        assert_eq!(lister.get(text).unwrap_err().key, text);
    }
    let shop = lister.namespace("shop");
    assert_eq!(shop.get("").unwrap_err().key, "shop/");
    assert_eq!(shop.get("../blog/web-0").unwrap_err().key, "shop/../blog/web-0");
    assert_eq!(lister.namespace("").get("shop/web-0").unwrap_err().key, "shop/web-0", "that is not a name");
}

#[test]
fn objects_of_any_kind_are_named_after_their_resource() {
    let websites = "websites.v1.example.com".parse().unwrap();
    let lister = Lister::of_resource(filled().1, &websites);
    let missing = lister.get("shop/front").unwrap_err();
    assert_eq!(missing.to_string(), r#"websites.example.com "shop/front" not found in the cache"#);
    assert_eq!(format!("{lister:?}"), "Lister(websites.example.com: 4 objects)");
}

#[test]
fn c19_a_snapshot_stays_what_it_was_and_a_lister_does_not() {
    let (mut writer, store) = filled();
    let lister = Lister::new(store);
    let before = lister.snapshot();
    writer.write(|batch| {
        batch.insert(mk("shop/new", 5));
        batch.remove(&key("loose"));
    });
    assert_eq!(show(before.iter()), "blog/web-0@3 loose@4 shop/db-0@2 shop/web-0@1");
    assert_eq!(
        show(&lister.namespace("shop").list(&Selector::everything())),
        "shop/db-0@2 shop/new@5 shop/web-0@1"
    );
    assert!(lister.get("loose").is_err());
}
