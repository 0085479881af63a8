//! What is told of which objects.

use serde_json::json;

use super::{informer, start_on};
use crate::command::{Running, Server, pod};

/// A line without its version, which is the server's choice.
fn plain(line: &str) -> String {
    let words = line.split_whitespace().filter(|word| !word.starts_with('@'));
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_listed_and_then_every_change_is_told_with_what_changed() {
    let server = Server::with_pods().await;
    let mut watch = start_on(&server, &["pods"]);
    let initial: Vec<String> = watch.lines(2).iter().map(|line| plain(line)).collect();
    assert_eq!(initial, ["+ ADDED default/web-0 initial", "+ ADDED default/web-1 initial"]);
    let synced = watch.said("synced: ");
    assert!(synced.starts_with("synced: 2 pods in ") && synced.ends_with(" s"), "{synced}");

    server.put(pod("web-1", "Running"));
    assert_eq!(plain(&watch.line()), "~ UPDATED default/web-1 status.phase: Pending → Running");
    let mut labelled = pod("web-1", "Running");
    labelled["metadata"]["labels"] = json!({"app": "b", "example.com/team": "x"});
    labelled["spec"]["containers"][0]["image"] = json!("web:2");
    server.put(labelled);
    assert_eq!(
        plain(&watch.line()),
        "~ UPDATED default/web-1 metadata.labels.app: web-1 → b, +metadata.labels[example.com/team]: x, spec.containers[web].image: web:1 → web:2"
    );
    server.put(pod("web-2", "Pending"));
    assert_eq!(plain(&watch.line()), "+ ADDED default/web-2");
    server.discard("web-0");
    let deleted = watch.line();
    assert_eq!(plain(&deleted), "- DELETED default/web-0");
    assert!(deleted.contains(&format!("@{}", server.api.version())), "{deleted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_choose_on_the_server() {
    let server = Server::with_pods().await;
    let mut watch = start_on(&server, &["po", "-l", "app in (web-1, web-2)"]);
    assert_eq!(plain(&watch.line()), "+ ADDED default/web-1 initial");
    watch.said("synced: 1 pods");
    server.put(pod("web-3", "Pending"));
    server.put(pod("web-2", "Pending"));
    assert_eq!(plain(&watch.line()), "+ ADDED default/web-2");

    let mut watch = start_on(&server, &["pods", "--field-selector", "status.phase=Running"]);
    assert_eq!(plain(&watch.line()), "+ ADDED default/web-0 initial");
    watch.said("synced: 1 pods");
    server.put(pod("web-0", "Failed"));
    assert_eq!(plain(&watch.line()), "- DELETED default/web-0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_that_of_the_kubeconfig_a_named_one_or_all() {
    let server = Server::with_pods().await;
    let mut elsewhere = pod("db-0", "Running");
    elsewhere["metadata"]["namespace"] = json!("bank");
    server.api.load("apiVersion: v1\nkind: Namespace\nmetadata: {name: bank}\n").expect("loaded");
    server.put(elsewhere);
    start_on(&server, &["pods"]).said("synced: 2 pods");
    start_on(&server, &["pods", "-A"]).said("synced: 3 pods");
    assert_eq!(plain(&start_on(&server, &["pods", "-n", "bank"]).line()), "+ ADDED bank/db-0 initial");
    start_on(&server, &["namespaces", "-n", "bank"]).said("synced: 5 namespaces");
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_are_watched_like_any_other() {
    let server = Server::start().await;
    let manifests = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: websites.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: websites, singular: website, kind: Website, shortNames: [ws]}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: example.com/v1
kind: Website
metadata: {namespace: default, name: home}
spec: {url: 'https://example.com'}
";
    server.api.load(manifests).expect("loaded");
    for name in ["websites.example.com", "website", "ws", "example.com/v1/websites"] {
        let mut watch = start_on(&server, &[name]);
        assert_eq!(plain(&watch.line()), "+ ADDED default/home initial", "{name}");
        watch.said("synced: 1 websites");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resync_shows_everything_again() {
    let server = Server::with_pods().await;
    let mut watch = start_on(&server, &["pods", "--resync", "1s", "--watch-only"]);
    let again: Vec<String> = watch.lines(2).iter().map(|line| plain(line)).collect();
    assert_eq!(again, ["= RESYNC default/web-0", "= RESYNC default/web-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_exists_can_be_left_out() {
    let server = Server::with_pods().await;
    let mut watch = start_on(&server, &["pods", "--watch-only"]);
    watch.said("synced: 2 pods");
    server.put(pod("web-0", "Failed"));
    assert_eq!(plain(&watch.line()), "~ UPDATED default/web-0 status.phase: Running → Failed");
}

#[test]
fn a_demo_cluster_needs_no_cluster_and_is_in_motion() {
    let mut watch = Running::start(informer(&["pods", "--demo"]));
    let initial = watch.lines(60);
    assert!(
        initial.iter().all(|line| line.starts_with("+ ADDED ") && line.ends_with("initial")),
        "{initial:#?}"
    );
    watch.said("synced: 60 pods");
    let next = watch.line();
    assert!(["+ ADDED ", "~ UPDATED ", "- DELETED "].iter().any(|word| next.starts_with(word)), "{next}");
    let mut nodes = Running::start(informer(&["no", "--demo", "-o", "name"]));
    assert!(nodes.line().starts_with("node/"));
}
