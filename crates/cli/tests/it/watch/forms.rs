//! The forms of output.

use serde_json::Value;

use super::start_on;
use crate::command::{Server, pod};

#[tokio::test(flavor = "multi_thread")]
async fn json_is_a_document_per_line() {
    let server = Server::with_pods().await;
    let mut watch = start_on(&server, &["pods", "-o", "json"]);
    let mut next = || serde_json::from_str::<Value>(&watch.line()).expect("a document");
    let first = next();
    assert_eq!(
        (first["type"].as_str(), first["initial"].as_bool(), first["key"].as_str()),
        (Some("ADDED"), Some(true), Some("default/web-0"))
    );
    assert_eq!(
        (first["object"]["kind"].as_str(), first["object"]["apiVersion"].as_str()),
        (Some("Pod"), Some("v1"))
    );
    next();
    assert_eq!(next(), serde_json::json!({"type": "SYNCED", "objects": 2}));
    server.put(pod("web-1", "Running"));
    let update = next();
    assert_eq!((&update["type"], &update["old"]["status"]["phase"]), (&"UPDATED".into(), &"Pending".into()));
    assert_eq!(update["object"]["status"]["phase"], "Running");
    assert_eq!(update.get("initial"), None);
    server.discard("web-1");
    let gone = next();
    assert_eq!((&gone["type"], gone.get("finalStateKnown")), (&"DELETED".into(), None));
    assert_eq!(gone["object"]["metadata"]["name"], "web-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn yaml_is_a_document_per_event() {
    let server = Server::with_pods().await;
    let mut watch = start_on(&server, &["pods", "-o", "yaml", "--field-selector", "metadata.name=web-1"]);
    watch.said("synced");
    server.put(pod("web-1", "Running"));
    let mut text = String::new();
    while !text.contains("# UPDATED") {
        text += &(watch.line() + "\n");
    }
    let (first, update) = text.rsplit_once("---\n").expect("two documents");
    assert!(first.starts_with("---\n# ADDED default/web-1 (initial)\n"), "{first}");
    assert!(first.contains("\nkind: Pod\n") && first.contains("\n  phase: Pending\n"), "{first}");
    assert_eq!(update, "# UPDATED default/web-1: status.phase: Pending → Running\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_says_what_kind_it_is_of() {
    let server = Server::with_pods().await;
    assert_eq!(
        start_on(&server, &["pods", "-o", "name"]).lines(2),
        ["pod/default/web-0", "pod/default/web-1"]
    );
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: default}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}\n";
    server.api.load(deployment).expect("loaded");
    assert_eq!(start_on(&server, &["deploy", "-o", "name"]).line(), "deployment.apps/default/web");
}

#[tokio::test(flavor = "multi_thread")]
async fn wide_shows_more_of_the_object() {
    let server = Server::with_pods().await;
    let line = start_on(&server, &["pods", "-o", "wide"]).line();
    for part in ["phase=Running", "node=node-1", "age=", "labels=app=web-0"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_into_a_pipe_has_no_colours() {
    let server = Server::with_pods().await;
    let mut watch = start_on(&server, &["pods", "-o", "wide"]);
    let lines = watch.lines(2).concat() + &watch.said("synced");
    assert!(!lines.contains('\x1b'), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_cannot_write_control_characters_to_a_terminal() {
    let server = Server::with_pods().await;
    let mut watch = start_on(&server, &["pods"]);
    watch.said("synced");
    watch.lines(2);
    server.put(pod("web-0", "\u{1b}[2JGone\n- DELETED"));
    let line = watch.line();
    assert!(line.starts_with("~ UPDATED") && !line.contains('\x1b'), "{line:?}");
}
