//! What `KubeListWatch` asks an API server, and what it makes of the answers.

use std::{net::TcpListener, time::Duration};

use crate::support::canned::{Canned, client_of, events, lines, list, watch};
use futures_util::{FutureExt, StreamExt};
use informer::source::{
    KubeListWatch, ListItem, ListOptions, ListWatch, PageEnd, SourceError, VersionMatch, WatchItem,
};
use informer_apiserver::{ApiServer, Fault, Rule};
use informer_model::Status;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Node, Pod},
};
use serde_json::json;

const EMPTY: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[]}"#;

fn put_map(server: &ApiServer, name: &str) {
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "labels": { "n": name } } });
    server.put(map).expect("written");
}

/// A server with config maps of these names.
fn mk_server(names: &[&str]) -> ApiServer {
    let server = ApiServer::builder().seed(1).build();
    names.iter().for_each(|name| put_map(&server, name));
    server
}

fn maps_of(server: &ApiServer) -> KubeListWatch<ConfigMap> {
    KubeListWatch::all(server.client()).in_namespace("default")
}

/// The lines without their versions.
fn names(lines: &[String]) -> Vec<&str> {
    lines.iter().map(|line| line.split('@').next().unwrap_or_default()).collect()
}

/// The first lines of the requests that a list and a watch with these options make.
async fn asked(
    mk_source: impl Fn(kube::Client) -> KubeListWatch<Pod>,
    options: &ListOptions,
) -> (String, String) {
    let server = Canned::json(EMPTY).serve();
    let source = mk_source(server.client());
    let mut page = source.list(options.clone()).await.expect("a list");
    while page.next().await.is_some() {}
    drop(source.watch(options.clone()).await.expect("a watch"));
    let requests = server.requests();
    let [list, watch] = &requests[..] else { panic!("{requests:?}") };
    let accepted = "accept: application/vnd.kubernetes.protobuf,application/json\r\n";
    for head in requests.iter().map(|head| head.to_lowercase()) {
        assert!(head.contains(accepted) && head.contains("accept-encoding: gzip\r\n"), "{head}");
    }
    let line = |head: &str| head.lines().next().unwrap_or_default().replace(" HTTP/1.1", "");
    (line(list), line(watch))
}

#[tokio::test]
async fn a_request_says_what_the_options_say_and_nothing_else() {
    let plain = asked(KubeListWatch::all, &ListOptions::default()).await;
    assert_eq!(plain, ("GET /api/v1/pods".into(), "GET /api/v1/pods?watch=1".into()));

    let options = ListOptions {
        label_selector: Some("a in (b,c)".into()),
        field_selector: Some("spec.nodeName=n 1".into()),
        resource_version: "0".into(),
        resource_version_match: Some(VersionMatch::NotOlderThan),
        limit: Some(500),
        continue_token: Some("a+b/=".into()),
        timeout: Some(Duration::from_secs(300)),
        allow_watch_bookmarks: true,
        send_initial_events: true,
    };
    let query = "labelSelector=a+in+%28b%2Cc%29&fieldSelector=spec.nodeName%3Dn+1&resourceVersion=0\
        &resourceVersionMatch=NotOlderThan&limit=500&continue=a%2Bb%2F%3D&timeoutSeconds=300\
        &allowWatchBookmarks=true&sendInitialEvents=true";
    let (list, watch) = asked(|client| KubeListWatch::all(client).in_namespace("shop"), &options).await;
    assert_eq!(list, format!("GET /api/v1/namespaces/shop/pods?{query}"));
    assert_eq!(watch, format!("GET /api/v1/namespaces/shop/pods?watch=1&{query}"));
}

#[tokio::test]
async fn selectors_of_source_and_request_both_count_and_a_tweak_has_the_last_word() {
    let mk = |client| {
        KubeListWatch::all(client)
            .in_namespace("")
            .label_selector(&"app=web".parse().expect("a selector"))
            .field_selector(&"metadata.name=a".parse().expect("a selector"))
            .tweak(|options| options.limit = options.limit.map(|limit| limit * 2))
            .tweak(|options| options.limit = options.limit.map(|limit| limit + 1))
    };
    let options =
        ListOptions { label_selector: Some("!canary".into()), limit: Some(10), ..ListOptions::default() };
    let (list, _) = asked(mk, &options).await;
    assert_eq!(
        list,
        "GET /api/v1/pods?labelSelector=app%3Dweb%2C%21canary&fieldSelector=metadata.name%3Da&limit=21"
    );
}

#[tokio::test]
async fn a_source_says_in_words_what_it_lists() {
    let client = || mk_server(&[]).client();
    let pods = KubeListWatch::<Pod>::all(client()).in_namespace("shop");
    assert_eq!(pods.description(), "pods in namespace \"shop\"");
    assert_eq!(ListWatch::namespace(&pods), Some("shop"));
    let deployments = KubeListWatch::<Deployment>::all(client());
    assert_eq!(deployments.description(), "deployments.apps in all namespaces");
    let nodes = KubeListWatch::<Node>::all(client()).label_selector(&"a=b".parse().expect("a selector"));
    assert_eq!(nodes.description(), "nodes with labels \"a=b\"");
}

#[tokio::test]
async fn c02_a_page_ends_with_its_version_the_token_of_the_next_and_what_remains() {
    let server = mk_server(&["a", "b", "c"]);
    let source = maps_of(&server);
    let mut options = ListOptions { limit: Some(2), ..ListOptions::default() };
    let mut seen = Vec::new();
    let mut ends: Vec<PageEnd> = Vec::new();
    loop {
        let mut page = source.list(options.clone()).await.expect("a list");
        while let Some(item) = page.next().await {
            match item.expect("an item") {
                ListItem::End(end) => ends.push(end),
                item => seen.extend(lines(&[item])),
            }
        }
        options.continue_token = ends.last().and_then(|end| end.continue_token.clone());
        if options.continue_token.is_none() {
            break;
        }
    }
    assert_eq!(names(&seen), ["default/a", "default/b", "default/c"]);
    assert_eq!((ends.len(), ends[0].remaining, ends[1].remaining), (2, Some(1), None));
    assert_eq!(ends[0].version, server.version().into());
    assert_eq!(ends[1].version, ends[0].version);
}

#[tokio::test(start_paused = true)]
async fn c03_a_streaming_list_gives_what_exists_the_bookmark_and_what_follows() {
    let server = mk_server(&["a", "b"]);
    let options = ListOptions {
        resource_version_match: Some(VersionMatch::NotOlderThan),
        allow_watch_bookmarks: true,
        send_initial_events: true,
        ..ListOptions::default()
    };
    let mut stream = maps_of(&server).watch(options).await.expect("a watch");
    let mut seen: Vec<WatchItem<ConfigMap>> = Vec::new();
    while !matches!(seen.last(), Some(WatchItem::Bookmark { initial_events_end: true, .. })) {
        seen.push(stream.next().await.expect("more").expect("an item"));
    }
    let complete = format!("Bookmark {} initial", server.version());
    put_map(&server, "c");
    seen.push(stream.next().await.expect("more").expect("an item"));
    let seen = events(&seen);
    assert_eq!(names(&seen)[..2], ["Added default/a", "Added default/b"]);
    assert_eq!((seen[2].as_str(), names(&seen)[3]), (complete.as_str(), "Added default/c"));
}

#[tokio::test]
async fn a_stream_that_was_asked_in_vain_loses_nothing() {
    let server = mk_server(&[]);
    let options = ListOptions { resource_version: server.version().into(), ..ListOptions::default() };
    let mut stream = maps_of(&server).watch(options).await.expect("a watch");
    for name in ["a", "b", "c"] {
        assert!(stream.next().now_or_never().is_none(), "nothing has happened");
        put_map(&server, name);
        let item = stream.next().await.expect("more").expect("an item");
        assert_eq!(names(&events(&[item])), [format!("Added default/{name}")]);
    }
}

#[tokio::test]
async fn f22_all_events_of_one_packet_are_there_without_waiting() {
    let event = r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}}}"#;
    let source = KubeListWatch::<Pod>::all(Canned::json(event.repeat(5_000)).serve().client());
    let (items, error) = watch(&source, ListOptions::default()).await;
    assert_eq!((items.len(), error), (5_000, None));
}

#[tokio::test]
async fn f20_an_error_of_the_server_is_told_in_its_own_words() {
    let server = mk_server(&[]);
    for status in [
        Status::expired("too old"),
        Status::forbidden("configmaps", "", "", "no"),
        Status::too_many_requests("slow down", 7),
        Status::unauthorized("who are you"),
    ] {
        let id = server.faults().add(Rule::new(Fault::Status(status.clone())));
        let (_, listed) = list(&maps_of(&server)).await;
        let (_, watched) = watch(&maps_of(&server), ListOptions::default()).await;
        server.faults().remove(id);
        assert_eq!(listed.as_ref().and_then(SourceError::status), Some(&status));
        assert_eq!(watched, listed);
    }
}

#[tokio::test]
async fn f20_an_error_without_a_status_shows_what_came_and_keeps_retry_after() {
    let retry = |value: &'static str| Canned::new(503, "<h1>busy</h1>").header("retry-after", value);
    let bare = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"later","details":{"retryAfterSeconds":5}}"#;
    for (answer, code, seconds, words) in [
        (retry("11"), 503, Some(11), "<h1>busy"),
        (retry("Wed, 21 Oct 2015 07:28:00 GMT"), 503, None, "<h1>busy"),
        (Canned::json(bare).code(429).header("retry-after", "9"), 429, Some(5), "later"),
        (Canned::new(500, "x".repeat(1 << 20)), 500, None, "xxx"),
        (Canned::new(404, ""), 404, None, "could not find the requested resource"),
    ] {
        let (_, error) = list(&KubeListWatch::<Pod>::all(answer.serve().client())).await;
        let Some(SourceError::Status(status)) = error else { panic!("{error:?}") };
        assert_eq!((status.code, status.retry_after()), (code, seconds.map(Duration::from_secs)), "{status}");
        assert!(status.to_string().contains(words) && status.to_string().len() < 300, "{status}");
    }
}

#[tokio::test]
async fn f20_a_refused_connection_is_told_from_one_that_failed_otherwise() {
    let address =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let (_, error) = list(&KubeListWatch::<Pod>::all(client_of(address))).await;
    assert!(
        matches!(&error, Some(SourceError::Refused(words)) if words.contains("onnection refused")),
        "{error:?}"
    );

    let server = mk_server(&[]);
    server.faults().add(Rule::new(Fault::Refuse));
    let (_, error) = list(&maps_of(&server)).await;
    assert_eq!(error, Some(SourceError::Unreachable("the connection was refused by a fault".into())));

    server.faults().clear();
    server.faults().add(Rule::new(Fault::Reset));
    let (_, error) = list(&maps_of(&server)).await;
    assert!(matches!(error, Some(SourceError::Broken(_))), "{error:?}");
}

#[tokio::test]
async fn f23_a_page_of_a_proxy_is_malformed() {
    let server = mk_server(&["a"]);
    server.faults().add(Rule::new(Fault::Html));
    let (_, listed) = list(&maps_of(&server)).await;
    let (_, watched) = watch(&maps_of(&server), ListOptions::default()).await;
    for error in [listed, watched] {
        assert!(
            matches!(&error, Some(SourceError::Malformed(text)) if text.contains("It works!")),
            "{error:?}"
        );
    }
}
