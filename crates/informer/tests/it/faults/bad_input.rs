//! What a person learns when an informer cannot do what it was told: the type, the cause, what to do; once.

use std::{net::SocketAddr, time::Duration};

use informer::{KubeListWatch, SharedInformer, SyncError, model::Status};
use informer_apiserver::{
    Fault,
    Verb::{List, Watch},
};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use tokio::time::sleep;
use tracing::Level;

use super::{
    cluster::{Watched, in_real_time, over_seeds},
    log_lines::LogLines,
    sockets::client,
};

/// Whether a text has all of these words.
fn has(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words:?} is not in: {text}");
    }
}

/// A server that answers every list and watch like this: health, error and log say what is wrong, in these words.
fn says(fault: Fault, words: &[&str]) {
    over_seeds(4, async |mut cluster| {
        let log = LogLines::default();
        let _logging = log.listen();
        cluster.write(20);
        cluster.fault(fault.clone(), &[List, Watch], |rule| rule);
        let watched = cluster.watched();
        let error = watched.informer.wait_until_synced(Duration::from_secs(300)).await;
        let error = error.expect_err("it cannot be synced");
        assert!(matches!(error, SyncError::Deadline { .. }));
        has(&error.to_string(), &["not synced within 300s", "configmaps in all namespaces"]);
        has(&error.to_string(), words);
        has(&watched.informer.health().to_string(), words);
        let warnings = log.lines(Level::WARN);
        assert_eq!(warnings.len(), 1, "one line for one state: {warnings:#?}");
        has(&warnings[0], &["configmaps in all namespaces", "in trouble"]);
        has(&warnings[0], words);

        // Another cause is another state, and so is the end of it.
        cluster.heal();
        cluster.fault(Fault::Status(Status::from_response(418, "teapot")), &[List, Watch], |rule| rule);
        sleep(Duration::from_secs(300)).await;
        cluster.heal();
        watched.converges(&cluster).await;
        sleep(Duration::from_secs(15)).await;
        let warnings = log.lines(Level::WARN);
        assert_eq!(warnings.len(), 2, "{warnings:#?}");
        has(&warnings[1], &["teapot"]);
        let news = log.lines(Level::INFO);
        assert_eq!(news.iter().filter(|line| line.contains("works again")).count(), 1, "{news:#?}");
        assert!(watched.informer.health().is_healthy(), "{}", watched.informer.health());
        watched.ends_well(&cluster).await;
    });
}

#[test]
fn c12_an_expired_token_is_named() {
    says(Fault::Status(Status::unauthorized("Unauthorized")), &["Unauthorized", "check the credentials"]);
}

#[test]
fn c12_a_missing_permission_is_named() {
    let why = "User \"web\" cannot list resource \"configmaps\" in API group \"\"";
    let status = Status::forbidden("configmaps", "", "", why);
    says(Fault::Status(status), &["User \"web\" cannot list", "grant the verbs list and watch"]);
}

#[test]
fn c12_a_proxy_in_between_is_shown_by_what_it_says() {
    says(Fault::Html, &["not that of a Kubernetes API server", "text/html", "It works!"]);
}

#[test]
fn c12_a_connection_that_ends_without_an_answer_is_named() {
    says(Fault::Refuse, &["the server cannot be reached", "refused by a fault"]);
}

#[test]
fn c12_an_unknown_resource_is_named() {
    over_seeds(4, async |cluster| {
        let log = LogLines::default();
        let _logging = log.listen();
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Gizmo"));
        let source = KubeListWatch::<DynamicObject>::of_kind(cluster.server.client(), kind);
        let builder = SharedInformer::builder(source).streaming(cluster.seed % 2 == 0);
        let watched = Watched::run(builder);
        let error = watched.informer.wait_until_synced(Duration::from_secs(120)).await;
        let error = error.expect_err("there is no such thing").to_string();
        has(
            &error,
            &["gizmos.example.com", "could not find the requested resource", "CustomResourceDefinition"],
        );
        assert_eq!(log.lines(Level::WARN).len(), 1, "{:#?}", log.lines(Level::WARN));
        watched.stop().await;
    });
}

#[test]
fn c12_a_server_that_is_not_there_is_named() {
    in_real_time(async |cluster| {
        // A port that was free a moment ago.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address: SocketAddr = listener.local_addr().expect("an address");
        drop(listener);
        let watched = Watched::run(cluster.informer(client(address)));
        watched.has_had("connection refused").await;
        let error = watched.informer.wait_until_synced(Duration::ZERO).await.expect_err("nobody is there");
        has(&error.to_string(), &["configmaps in all namespaces", "onnection refused", "in trouble"]);
        watched.stop().await;
    });
}

#[test]
fn c12_an_informer_that_stops_before_it_is_synced_says_so() {
    over_seeds(2, async |cluster| {
        cluster.fault(Fault::Refuse, &[List, Watch], |rule| rule);
        let watched = cluster.watched();
        let informer = watched.informer.clone();
        let waiting =
            tokio::spawn(async move { informer.wait_until_synced(Duration::from_secs(3_600)).await });
        sleep(Duration::from_secs(10)).await;
        watched.stop().await;
        let error = waiting.await.expect("no panic").expect_err("stopped").to_string();
        has(&error, &["configmaps in all namespaces", "has stopped before it was synced"]);
    });
}
