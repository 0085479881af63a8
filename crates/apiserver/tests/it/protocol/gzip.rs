//! `Accept-Encoding`, and what is compressed for those who take gzip.

use bytes::Bytes;
use flate2::bufread::GzDecoder;
use http::HeaderMap;
use http_body_util::BodyExt;
use informer_apiserver::{Fault, Rule};
use serde_json::{Value, json};

use crate::{
    client::{Api, JSON, PROTOBUF, query},
    objects::{MAPS, mk_config_map},
};

const GZIP: (&str, &str) = ("accept-encoding", "br, gzip");
const STREAMING: [(&str, &str); 4] = [
    ("watch", "true"),
    ("sendInitialEvents", "true"),
    ("resourceVersionMatch", "NotOlderThan"),
    ("allowWatchBookmarks", "true"),
];

/// A server with so many ConfigMaps of a bit more than 1 KB.
async fn with_maps(count: usize) -> Api {
    let api = Api::new();
    for i in 0..count {
        let mut map = mk_config_map(&format!("map-{i:03}"));
        map["data"] = json!({ "filler": "x".repeat(1000) });
        api.post(MAPS, &map).await.ok();
    }
    api
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

/// Caches are told that others may get it otherwise.
#[track_caller]
fn is_marked(headers: &HeaderMap) {
    assert_eq!(headers["content-encoding"], "gzip");
    assert_eq!(headers["vary"], "Accept-Encoding");
}

async fn bytes(api: &Api, path: &str, headers: &[(&str, &str)]) -> Bytes {
    let response = api.call("GET", path, headers, Bytes::new()).await;
    response.into_body().collect().await.expect("a whole body").to_bytes()
}

#[tokio::test]
async fn a_long_list_is_one_member() {
    let api = with_maps(300).await;
    for accept in [JSON, PROTOBUF] {
        let plain = api.get_as(MAPS, accept).await;
        assert!(plain.headers.get("content-encoding").is_none() && plain.headers.get("vary").is_none());
        let headers = [("accept", accept), GZIP];
        let packed = api.send("GET", MAPS, &headers, "").await;
        is_marked(&packed.headers);
        assert_eq!(packed.headers["content-type"], accept);
        assert_eq!(packed.ok(), plain.ok(), "{accept}");
        assert_eq!(members(&bytes(&api, MAPS, &headers).await), 1);
    }
}

#[tokio::test]
async fn what_is_short_and_what_was_not_asked_for_is_left_as_it_is() {
    let api = with_maps(200).await;
    let one = format!("{MAPS}/map-000");
    let limited = query(MAPS, &[("limit", "50")]);
    let none = format!("{MAPS}/none");
    for (path, coding) in [
        (&one, "gzip"),
        (&limited, "gzip"),
        (&none, "gzip"),
        (&MAPS.to_owned(), "deflate"),
        (&MAPS.to_owned(), "gzip;q=0"),
    ] {
        let answer = api.send("GET", path, &[("accept-encoding", coding)], "").await;
        assert!(answer.headers.get("content-encoding").is_none(), "{path} {coding}");
        assert!(answer.body.is_object(), "{path} {coding}");
    }
}

#[tokio::test]
async fn the_limit_is_128_kib_for_every_answer() {
    let api = Api::new();
    for (name, length, is_packed) in [("short", 130_000, false), ("long", 132_000, true)] {
        let mut map = mk_config_map(name);
        map["data"] = json!({ "filler": "x".repeat(length) });
        let created = api.post(MAPS, &map).await.ok();
        let answer = api.send("GET", &format!("{MAPS}/{name}"), &[GZIP], "").await;
        assert_eq!(answer.headers.contains_key("content-encoding"), is_packed, "{name}");
        assert_eq!(answer.ok(), created);
    }
}

#[tokio::test]
async fn a_streaming_list_has_a_member_for_each_flush_and_goes_on_so() {
    for accept in [JSON, PROTOBUF] {
        let api = with_maps(300).await;
        let path = query(MAPS, &STREAMING);
        let headers = [("accept", accept), GZIP];
        let mut watch = api.watch_with(&path, &headers).await;
        is_marked(&watch.headers);
        let initial = watch.lines(301).await;
        assert_eq!((initial[0].as_str(), initial[300].as_str()), ("ADDED map-000", "BOOKMARK"));
        assert!(watch.is_silent());
        api.delete(&format!("{MAPS}/map-000")).await.ok();
        assert_eq!(watch.line().await, "DELETED map-000", "it can be read as soon as it has happened");
        let path = format!("{path}&timeoutSeconds=1");
        tokio::time::pause();
        let flushes = members(&bytes(&api, &path, &headers).await);
        assert!(flushes > 4, "{flushes}");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_streaming_list_that_is_refused_is_not_compressed() {
    let api = Api::new();
    let refused = query(MAPS, &[("watch", "true"), ("sendInitialEvents", "true")]);
    let answer = api.send("GET", &refused, &[GZIP], "").await;
    assert!(answer.headers.get("content-encoding").is_none());
    answer.fails(422, "Invalid");
}

#[tokio::test]
async fn an_ordinary_watch_is_never_compressed() {
    let api = with_maps(200).await;
    for accept in [JSON, PROTOBUF] {
        let mut watch = api.watch_with(&query(MAPS, &[("watch", "true")]), &[("accept", accept), GZIP]).await;
        assert!(watch.headers.get("content-encoding").is_none() && watch.headers.get("vary").is_none());
        assert_eq!(watch.lines(200).await.len(), 200);
    }
}

#[tokio::test]
async fn a_fault_does_not_compress_what_is_compressed() {
    let api = with_maps(200).await;
    let plain: Value = api.get(MAPS).await.ok();
    api.server.faults().add(Rule::new(Fault::Gzip));
    let packed = api.send("GET", MAPS, &[GZIP], "").await;
    assert_eq!(packed.ok(), plain);
}
