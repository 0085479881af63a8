//! What must hold for any answer to a list or watch of the library.
//!
//! `cargo fuzz` drives it with libFuzzer; `crates/informer/tests/it/fuzz_corpus.rs` drives it on stable Rust with the seeds
//! in `fuzz/seeds/wire` and random mutations of them. The first byte of an input says what the answer is: a watch (1) or a
//! list, protobuf (2) or JSON, gzip (4) or plain; the second how long its pieces are; the rest is its body.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response, header};
use http_body::Frame;
use http_body_util::StreamBody;
use informer::{
    DynamicObject, KubeListWatch, Object, RawObject,
    kube::{Client, Resource, client::Body, core::ApiResource},
    source::{ListItem, ListOptions, ListWatch, WatchItem},
};
use k8s_openapi::api::core::v1::Pod;
use serde::de::DeserializeOwned;
use tower_service::Service;

type Pieces = stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>;

/// A server that has one answer.
#[derive(Clone)]
struct Answer {
    kind: u8,
    pieces: Vec<Bytes>,
}

impl Service<Request<Body>> for Answer {
    type Response = Response<StreamBody<Pieces>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let media = match self.kind & 3 {
            0 | 1 => "application/json",
            2 => "application/vnd.kubernetes.protobuf",
            _ => "application/vnd.kubernetes.protobuf;stream=watch",
        };
        let frames: Vec<_> = self.pieces.iter().map(|piece| Ok(Frame::data(piece.clone()))).collect();
        let mut answer = Response::builder().header(header::CONTENT_TYPE, media);
        if self.kind & 4 != 0 {
            answer = answer.header(header::CONTENT_ENCODING, "gzip");
        }
        ready(Ok(answer.body(StreamBody::new(stream::iter(frames))).expect("a valid answer")))
    }
}

/// Any bytes are objects, things that cannot be used, or an error. All types agree on who the objects are, however the bytes
/// come, and the JSON of an object is JSON.
pub(crate) fn wire(data: &[u8]) {
    let [kind, length, body @ ..] = data else { return };
    let cut = |length: usize| body.chunks(length.max(1)).map(Bytes::copy_from_slice).collect();
    let whole = Answer { kind: *kind, pieces: cut(body.len()) };
    let pieces = Answer { kind: *kind, pieces: cut(usize::from(*length)) };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let pods = ApiResource::erase::<Pod>(&());
        let raw = read::<RawObject>(&whole, &pods, |object| {
            serde_json::from_str::<&serde_json::value::RawValue>(object.json()).expect("JSON");
        });
        let (raw, broken) = raw.await;
        let (in_pieces, broken_in_pieces) = read::<RawObject>(&pieces, &pods, |_| ()).await;
        // What gzip gives before it finds itself broken depends on how much of it comes at once.
        if *kind & 4 == 0 || !(broken || broken_in_pieces) {
            assert_eq!((&raw, broken), (&in_pieces, broken_in_pieces), "whole, and in pieces");
        }
        let (decoded, _) = read::<DynamicObject>(&whole, &pods, |_| ()).await;
        for (raw, decoded) in raw.iter().zip(&decoded) {
            if let (Some(raw), Some(decoded)) = (raw, decoded) {
                assert_eq!(raw, decoded, "as text, and decoded");
            }
        }
    });
}

/// Who each object says to be; `None` for what cannot be used, or is no object. And whether it ended in an error.
async fn read<K>(answer: &Answer, kind: &ApiResource, look: fn(&Object<K>)) -> (Vec<Option<String>>, bool)
where
    K: Resource<DynamicType = ApiResource> + DeserializeOwned + Send + Sync + 'static,
{
    let who = |object: Object<K>| {
        look(&object);
        Some(format!("{} {} {}", object.key(), object.resource_version(), object.labels()))
    };
    let source = KubeListWatch::<K>::of_kind(Client::new(answer.clone(), "default"), kind.clone());
    let (mut read, mut broken) = (Vec::new(), false);
    if answer.kind & 1 == 0 {
        let Ok(mut list) = source.list(ListOptions::default()).await else { return (read, true) };
        while let Some(item) = list.next().await {
            match item {
                Ok(ListItem::Object(object)) => read.push(who(object)),
                Ok(ListItem::Unusable(_) | ListItem::End(_)) => read.push(None),
                Err(_) => broken = true,
            }
        }
    } else {
        let Ok(mut watch) = source.watch(ListOptions::default()).await else { return (read, true) };
        while let Some(item) = watch.next().await {
            match item {
                Ok(WatchItem::Object(_, object)) => read.push(who(object)),
                Ok(_) => read.push(None),
                Err(_) => broken = true,
            }
        }
    }
    (read, broken)
}
