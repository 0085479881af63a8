//! What goes wrong with watches that are open already.

use std::time::Duration;

use futures_util::FutureExt;
use http_body_util::BodyExt;
use informer_apiserver::{ApiServer, Body, Fault, Rule, Verb};

use crate::{
    client::{Watch, read, send},
    objects::{MAPS, mk_server, put_maps},
};

/// A watch from now on.
async fn open(server: &ApiServer) -> Body {
    let path = format!("{MAPS}?watch=1&resourceVersion={}", server.version());
    send(&mut server.service(), &path).await.expect("a watch").into_body()
}

/// How many bytes come before nothing more does, and what that is.
async fn heard(body: &mut Body) -> (usize, &'static str) {
    let mut bytes = 0;
    loop {
        match tokio::time::timeout(Duration::from_secs(1), body.frame()).await {
            Ok(Some(Ok(frame))) => bytes += frame.into_data().expect("data").len(),
            Ok(Some(Err(_))) => return (bytes, "broken"),
            Ok(None) => return (bytes, "end"),
            Err(_) => return (bytes, "silence"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_breaks_connections_reaches_watches_that_are_open() {
    for (fault, expected) in [
        (Fault::Reset, (0, "broken")),
        (Fault::CutAfter(0), (0, "broken")),
        (Fault::CutAfter(10), (10, "broken")),
        (Fault::StallAfter(0), (0, "silence")),
        (Fault::StallAfter(10), (10, "silence")),
    ] {
        let server = mk_server();
        let mut watch = open(&server).await;
        put_maps(&server, &["a"]);
        assert_eq!(heard(&mut watch).await.1, "silence", "it is open");
        let id = server.faults().add(Rule::new(fault.clone()));
        put_maps(&server, &["b"]);
        assert_eq!(heard(&mut watch).await, expected, "{fault:?}, with bytes counted from now on");
        assert_eq!(server.faults().hits(id), 1);
        put_maps(&server, &["c"]);
        if expected.1 == "silence" {
            assert_eq!(heard(&mut watch).await, (0, "silence"), "{fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_nothing_to_tell_is_broken_at_once() {
    let server = mk_server();
    let mut watch = open(&server).await;
    assert!(watch.frame().now_or_never().is_none());
    let reading = tokio::spawn(async move { read(watch).await });
    tokio::task::yield_now().await;
    server.faults().add(Rule::new(Fault::CutAfter(0)));
    assert!(reading.await.expect("no panic").1.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_open_watch_counts_like_a_request_and_the_first_one_first() {
    let server = mk_server();
    let mut watches = [open(&server).await, open(&server).await, open(&server).await];
    let other = format!("/api/v1/pods?watch=1&resourceVersion={}", server.version());
    let mut other = send(&mut server.service(), &other).await.expect("a watch").into_body();
    let id = server.faults().add(Rule::new(Fault::CutAfter(0)).resource("configmaps").nth([2, 4]));
    let mut ends = Vec::new();
    for watch in &mut watches {
        ends.push(heard(watch).await.1);
    }
    assert_eq!((ends, heard(&mut other).await.1), (vec!["silence", "broken", "silence"], "silence"));
    assert_eq!(heard(&mut open(&server).await).await.1, "broken", "the fourth");
    assert_eq!(server.faults().hits(id), 2);
    server.faults().add(Rule::new(Fault::CutAfter(0)).verb(Verb::List));
    assert_eq!(heard(&mut watches[0]).await.1, "silence");
}

#[tokio::test(start_paused = true)]
async fn how_an_answer_is_written_is_decided_when_it_begins() {
    let server = mk_server();
    let mut watch = Watch::of(&server, "resourceVersion=1").await;
    for fault in [Fault::Gzip, Fault::OneByteAtATime, Fault::Refuse, Fault::Html] {
        let id = server.faults().add(Rule::new(fault));
        put_maps(&server, &["a"]);
        assert_eq!(watch.now().len(), 1);
        assert_eq!(server.faults().hits(id), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn breaking_watches_ends_them_after_what_they_have_to_tell_and_no_others() {
    let server = mk_server();
    let mut watch = open(&server).await;
    let names: Vec<String> = (0..500).map(|n| format!("map-{n}")).collect();
    put_maps(&server, &names.iter().map(String::as_str).collect::<Vec<_>>());
    server.break_watches();
    let (told, error) = read(watch).await;
    assert_eq!(told.iter().filter(|byte| **byte == b'\n').count(), 500);
    assert!(error.is_some());
    watch = open(&server).await;
    put_maps(&server, &["next"]);
    assert_eq!(heard(&mut watch).await.1, "silence", "it was opened later");
    server.faults().add(Rule::new(Fault::StallAfter(0)).times(1));
    server.break_watches();
    assert_eq!(heard(&mut watch).await, (0, "broken"), "even one that had stalled");
}
