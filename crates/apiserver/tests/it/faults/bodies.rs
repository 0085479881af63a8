//! Bodies that are cut, stalled, sent by the byte or compressed.

use std::io::{ErrorKind, Read};

use flate2::{bufread::GzDecoder, read::MultiGzDecoder};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use informer_apiserver::{ApiServer, BoxError, Fault, Rule, Verb};
use serde_json::Value;

use crate::{
    client::{Watch, get, read, send},
    objects::{MAPS, mk_server, put_maps},
};

/// A server with two ConfigMaps, and the body of their list.
async fn listed() -> (ApiServer, Vec<u8>) {
    let server = mk_server();
    put_maps(&server, &["a", "b"]);
    let body = get(&server, MAPS).await.1.to_vec();
    (server, body)
}

fn kind(error: &BoxError) -> Option<ErrorKind> {
    error.downcast_ref::<std::io::Error>().map(std::io::Error::kind)
}

#[tokio::test]
async fn a_reset_comes_after_the_head_and_before_the_body() {
    let (server, _) = listed().await;
    server.faults().add(Rule::new(Fault::Reset));
    for path in [MAPS.to_owned(), format!("{MAPS}/a"), format!("{MAPS}?watch=1"), "/version".to_owned()] {
        let response = send(&mut server.service(), &path).await.expect("a head");
        assert_eq!(response.status(), 200);
        let (bytes, error) = read(response.into_body()).await;
        assert!(bytes.is_empty(), "{path}");
        assert_eq!(kind(&error.expect("a failure")), Some(ErrorKind::ConnectionReset), "{path}");
    }
}

#[tokio::test]
async fn a_body_is_cut_after_any_number_of_bytes() {
    let (server, whole) = listed().await;
    for bytes in 0..=whole.len() {
        let id = server.faults().add(Rule::new(Fault::CutAfter(bytes)));
        let response = send(&mut server.service(), MAPS).await.expect("a head");
        let (seen, error) = read(response.into_body()).await;
        assert_eq!(seen, whole[..bytes], "cut after {bytes}");
        assert_eq!(kind(&error.expect("a failure")), Some(ErrorKind::UnexpectedEof), "cut after {bytes}");
        server.faults().remove(id);
    }
}

#[tokio::test]
async fn a_body_that_is_shorter_than_the_cut_or_the_stall_ends_well() {
    let (server, whole) = listed().await;
    for fault in
        [Fault::CutAfter(whole.len() + 1), Fault::StallAfter(whole.len() + 1), Fault::CutAfter(usize::MAX)]
    {
        let id = server.faults().add(Rule::new(fault));
        assert_eq!(get(&server, MAPS).await.1, whole);
        server.faults().remove(id);
    }
}

#[tokio::test]
async fn a_watch_is_cut_at_every_byte_of_its_frames_without_waiting_for_the_next_event() {
    let (server, _) = listed().await;
    let path = format!("{MAPS}?watch=1&resourceVersion=1&timeoutSeconds=60");
    let mut whole = Vec::new();
    let mut body = send(&mut server.service(), &path).await.expect("a watch").into_body();
    while let Some(Some(Ok(frame))) = body.frame().now_or_never() {
        whole.extend_from_slice(&frame.into_data().expect("data"));
    }
    assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 2, "two frames");
    for bytes in 0..=whole.len() {
        let id = server.faults().add(Rule::new(Fault::CutAfter(bytes)).verb(Verb::Watch));
        let body = send(&mut server.service(), &path).await.expect("a watch").into_body();
        let (seen, error) = read(body).await;
        assert_eq!((seen.as_ref(), error.is_some()), (&whole[..bytes], true), "cut after {bytes}");
        server.faults().remove(id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_body_has_neither_more_bytes_nor_an_end() {
    let (server, whole) = listed().await;
    let path = format!("{MAPS}?watch=1&resourceVersion=1&timeoutSeconds=60");
    for (path, bytes) in [(MAPS, 0), (MAPS, 7), (MAPS, whole.len()), (&path, 0), (&path, 10)] {
        let id = server.faults().add(Rule::new(Fault::StallAfter(bytes)));
        let mut body = send(&mut server.service(), path).await.expect("a head").into_body();
        let mut seen = 0;
        let end = loop {
            match tokio::time::timeout(std::time::Duration::from_secs(86_400), body.frame()).await {
                Ok(Some(frame)) => seen += frame.expect("no failure").into_data().expect("data").len(),
                Ok(None) => break "an end",
                Err(_) => break "nothing for a day",
            }
        };
        assert_eq!((seen, end), (bytes, "nothing for a day"), "{path}");
        server.faults().remove(id);
    }
}

#[tokio::test]
async fn a_body_comes_one_byte_at_a_time_and_is_the_same() {
    let (server, whole) = listed().await;
    server.faults().add(Rule::new(Fault::OneByteAtATime));
    let mut body = send(&mut server.service(), MAPS).await.expect("a head").into_body();
    let mut seen = Vec::new();
    while let Some(frame) = body.frame().await {
        let piece = frame.expect("no failure").into_data().expect("data");
        assert_eq!(piece.len(), 1);
        seen.extend_from_slice(&piece);
    }
    assert_eq!(seen, whole);
    let mut watch = Watch::of(&server, "resourceVersion=1").await;
    put_maps(&server, &["c"]);
    assert_eq!(watch.now(), ["ADDED a", "ADDED b", "ADDED c"]);
}

/// How many gzip members there are, one after another.
fn members(mut bytes: &[u8]) -> usize {
    let mut members = 0;
    while !bytes.is_empty() {
        std::io::copy(&mut GzDecoder::new(&mut bytes), &mut std::io::sink()).expect("a member");
        members += 1;
    }
    members
}

#[tokio::test]
async fn gzip_has_one_member_for_each_piece_and_says_so() {
    let server = mk_server();
    for i in 0..300 {
        let mut map = crate::objects::mk_config_map(&format!("map-{i}"));
        map["data"]["filler"] = "x".repeat(1_000).into();
        server.put(map).expect("written");
    }
    let mut pieces = 0;
    let mut plain = Vec::new();
    let mut body = send(&mut server.service(), MAPS).await.expect("a head").into_body();
    while let Some(frame) = body.frame().await {
        plain.extend_from_slice(&frame.expect("no failure").into_data().expect("data"));
        pieces += 1;
    }
    assert!(pieces > 1, "a list of {} bytes comes in pieces", plain.len());

    server.faults().add(Rule::new(Fault::Gzip));
    let (parts, packed) = get(&server, MAPS).await;
    assert_eq!(parts.headers["content-encoding"], "gzip");
    assert!(!parts.headers.contains_key("content-length"));
    assert_eq!(members(&packed), pieces);
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(packed.as_ref()).read_to_end(&mut unpacked).expect("gzip");
    assert_eq!(unpacked, plain);
}

#[tokio::test]
async fn a_gzip_watch_has_one_member_for_each_event_as_it_happens() {
    let server = mk_server();
    server.faults().add(Rule::new(Fault::Gzip).verb(Verb::Watch));
    let mut watch = Watch::of(&server, "resourceVersion=1").await;
    assert_eq!(watch.now(), [""; 0]);
    put_maps(&server, &["a", "b"]);
    assert_eq!(watch.now(), ["ADDED a", "ADDED b"]);
    put_maps(&server, &["c"]);
    assert_eq!(watch.now(), ["ADDED c"]);
    let body =
        send(&mut server.service(), &format!("{MAPS}?watch=1&resourceVersion=1")).await.expect("a watch");
    let mut body = body.into_body();
    for _ in 0..3 {
        let piece = body.frame().await.expect("more").expect("no failure").into_data().expect("data");
        let mut event = Vec::new();
        assert_eq!(members(&piece), 1);
        MultiGzDecoder::new(piece.as_ref()).read_to_end(&mut event).expect("gzip");
        assert!(serde_json::from_slice::<Value>(&event).is_ok(), "one whole event");
    }
}

#[tokio::test]
async fn body_faults_follow_each_other_in_the_order_of_their_rules() {
    let (server, _) = listed().await;
    server.faults().add(Rule::new(Fault::Gzip));
    server.faults().add(Rule::new(Fault::OneByteAtATime));
    server.faults().add(Rule::new(Fault::CutAfter(20)));
    let response = send(&mut server.service(), MAPS).await.expect("a head");
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let (seen, error) = read(response.into_body()).await;
    assert_eq!((seen.len(), &seen[..2], error.is_some()), (20, &[0x1f, 0x8b][..], true));
}
