//! Protobuf against JSON.
//!
//! `objects.json` has been written by a program over `k8s.io/api` 0.37: objects made for this test, in
//! protobuf (hex) and in JSON. An empty list or map is nowhere in them where JSON tells it from none, because
//! protobuf does not.

mod bytes;
mod errors;
mod message;
mod objects;
mod rules;

use informer_model::decode_protobuf;
use message::Message;
use objects::objects;
use serde_json::Value;

/// What stands for an object of a kind that has this message.
fn decode(api_version: &str, kind: &str, message: Message) -> Value {
    decode_protobuf(&message.envelope(api_version, kind)).unwrap_or_else(|error| panic!("{error}"))
}

fn message() -> Message {
    Message::default()
}

#[test]
fn objects_are_what_kubernetes_writes_as_json() {
    let objects = objects();
    assert!(objects.len() > 30);
    for object in objects {
        let decoded =
            decode_protobuf(&object.protobuf).unwrap_or_else(|error| panic!("{}: {error}", object.name));
        assert_eq!(decoded, object.json, "{}", object.name);
    }
}
