//! Faults of single events.

use std::time::Duration;

use informer_apiserver::{ApiServer, Fault, Rule};
use informer_model::Status;

use crate::{
    client::{Watch, version},
    objects::{discard_map, mk_server, put_maps},
};

const STREAMING: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

#[tokio::test]
async fn an_error_comes_instead_of_the_nth_event_and_ends_the_watch() {
    let server = mk_server();
    let status = Status::expired("too old resource version");
    let id = server.faults().add(Rule::new(Fault::StreamError(status.clone())).nth([2]));
    let mut watch = Watch::of(&server, "resourceVersion=1").await;
    let mut other = Watch::of(&server, "resourceVersion=1").await;
    put_maps(&server, &["a", "b", "c"]);
    assert_eq!(watch.line().await, "ADDED a");
    let event = watch.next().await.expect("an event");
    assert_eq!(event["type"], "ERROR");
    assert_eq!(serde_json::from_value::<Status>(event["object"].clone()).expect("a Status"), status);
    assert_eq!(watch.now(), ["end"]);
    assert_eq!(other.now(), ["ADDED a", "ADDED b", "ADDED c"], "the rule was for the second event of all");
    assert_eq!(server.faults().hits(id), 1);
}

#[tokio::test]
async fn a_watch_says_one_error_and_no_more_whatever_is_waiting() {
    let server = mk_server();
    let id = server.faults().add(Rule::new(Fault::StreamError(Status::internal_error("etcd is gone"))));
    let mut watch = Watch::of(&server, "resourceVersion=1").await;
    put_maps(&server, &["a", "b", "c"]);
    assert_eq!(watch.now(), ["ERROR", "end"]);
    assert_eq!(server.faults().hits(id), 1);
    let mut initial = Watch::of(&server, "resourceVersion=0").await;
    assert_eq!(initial.now(), ["ERROR", "end"], "initial events are events");
    let mut streaming = Watch::of(&server, STREAMING).await;
    assert_eq!(streaming.now(), ["ERROR", "end"], "and no bookmark closes them");
}

#[tokio::test]
async fn an_event_is_lost_and_the_watch_goes_on() {
    let server = mk_server();
    put_maps(&server, &["a", "b"]);
    server.faults().add(Rule::new(Fault::DropEvent).nth([2, 4]));
    let mut watch = Watch::of(&server, STREAMING).await;
    assert_eq!(watch.now(), ["ADDED a", "BOOKMARK"], "an initial event may be lost, too");
    put_maps(&server, &["c"]);
    discard_map(&server, "a");
    discard_map(&server, "b");
    assert_eq!(watch.now(), ["ADDED c", "DELETED b"], "a DELETED was lost");
}

#[tokio::test]
async fn an_event_comes_twice() {
    let server = mk_server();
    server.faults().add(Rule::new(Fault::DuplicateEvent).nth([1, 3]));
    let mut watch = Watch::of(&server, "resourceVersion=1").await;
    put_maps(&server, &["a", "b"]);
    discard_map(&server, "a");
    assert_eq!(watch.now(), ["ADDED a", "ADDED a", "ADDED b", "DELETED a", "DELETED a"]);
}

#[tokio::test]
async fn an_event_that_was_lost_does_not_come_twice() {
    let server = mk_server();
    server.faults().add(Rule::new(Fault::DropEvent).times(1));
    let twice = server.faults().add(Rule::new(Fault::DuplicateEvent).times(1));
    let mut watch = Watch::of(&server, "resourceVersion=1").await;
    put_maps(&server, &["a", "b"]);
    assert_eq!(watch.now(), ["ADDED b", "ADDED b"]);
    assert_eq!(server.faults().hits(twice), 1);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_lost_and_events_are_not() {
    let server = ApiServer::builder().seed(1).bookmark_interval(Duration::from_secs(10)).build();
    let id = server.faults().add(Rule::new(Fault::DropBookmark).nth([1, 3]));
    let mut watch = Watch::of(&server, "resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=45").await;
    let start = tokio::time::Instant::now();
    put_maps(&server, &["a"]);
    assert_eq!(watch.line().await, "ADDED a");
    // Of those at 10, 20, 30, 40 and 43 seconds two are lost.
    let mut seen = Vec::new();
    while let Some(event) = watch.next().await {
        assert_eq!((&event["type"], version(&event["object"])), (&"BOOKMARK".into(), server.version()));
        seen.push(start.elapsed().as_secs());
    }
    assert_eq!(seen, [20, 40, 43]);
    assert_eq!((server.faults().hits(id), start.elapsed().as_secs()), (2, 45));
}

#[tokio::test(start_paused = true)]
async fn the_bookmark_that_closes_a_streaming_list_never_comes() {
    let server = ApiServer::builder().seed(1).bookmark_interval(Duration::from_secs(10)).build();
    put_maps(&server, &["a"]);
    let id = server.faults().add(Rule::new(Fault::DropInitialEventsEnd));
    let mut watch = Watch::of(&server, &format!("{STREAMING}&timeoutSeconds=25")).await;
    assert_eq!(watch.now(), ["ADDED a"]);
    put_maps(&server, &["b"]);
    assert_eq!(watch.line().await, "ADDED b", "it watches all the same");
    while let Some(event) = watch.next().await {
        assert_eq!(event["type"], "BOOKMARK", "the usual ones come");
        assert!(event.pointer("/object/metadata/annotations").is_none(), "{event}");
    }
    assert_eq!(server.faults().hits(id), 1);
    server.faults().clear();
    let mut watch = Watch::of(&server, STREAMING).await;
    assert_eq!(watch.now(), ["ADDED a", "ADDED b", "BOOKMARK"]);
}

#[tokio::test(start_paused = true)]
async fn losing_bookmarks_leaves_the_closing_one_alone() {
    let server = mk_server();
    server.faults().add(Rule::new(Fault::DropBookmark));
    let mut watch = Watch::of(&server, &format!("{STREAMING}&timeoutSeconds=300")).await;
    assert_eq!(watch.lines(2).await, ["BOOKMARK", "end"]);
}
