//! Protobuf against JSON.
//!
//! `objects.json` has been written by a program over `k8s.io/api` 0.37: objects made for this test, in
//! protobuf (hex) and in JSON. An empty list or map is nowhere in them where JSON tells it from none, because
//! protobuf does not.

mod bytes;
mod encoding;
mod errors;
mod message;
mod objects;
mod rules;

use informer_model::{JSON_TEXT, OBJECT_BYTES, ProtobufObject, decode_protobuf};
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
        let read = ProtobufObject::new(&object.protobuf).unwrap();
        let Written::<true>(text) = read.keep_managed_fields().decode().unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), object.json, "{}", object.name);
        let Written::<false>(whole) = read.keep_managed_fields().decode().unwrap();
        assert_eq!(decode_protobuf(&whole).unwrap(), object.json, "{}", object.name);
        let Written::<false>(bytes) = read.decode().unwrap();
        let mut unmanaged = object.json;
        if let Some(metadata) = unmanaged.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        assert_eq!(decode_protobuf(&bytes).unwrap(), unmanaged, "{}", object.name);
    }
}

/// An object as it is written without anything in between, as JSON or in protobuf again.
struct Written<const JSON: bool>(Vec<u8>);

impl<'de, const JSON: bool> serde::Deserialize<'de> for Written<JSON> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes<const JSON: bool>;
        impl<const JSON: bool> serde::de::Visitor<'_> for Bytes<JSON> {
            type Value = Written<JSON>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Written<JSON>, E> {
                Ok(Written(bytes.to_vec()))
            }
        }
        deserializer.deserialize_newtype_struct(if JSON { JSON_TEXT } else { OBJECT_BYTES }, Bytes::<JSON>)
    }
}

#[test]
fn a_type_gets_the_fields_that_it_asks_for_and_nothing_else_is_looked_at() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Placed {
        kind: String,
        api_version: Option<Version>,
        metadata: Named,
        spec: Place,
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Version(String);
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Named {
        name: String,
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Place {
        node_name: Option<String>,
        host_network: Option<bool>,
    }
    // The containers are no messages at all, and nobody asks for them.
    let spec = message().bytes(2, &[0xff; 9]).bytes(2, &[0xfe]).text(10, "n1").number(11, 0);
    let pod = message().sub(1, message().text(1, "a")).sub(2, spec).envelope("v1", "Pod");
    let placed: Placed = ProtobufObject::new(&pod).unwrap().decode().unwrap();
    let spec = Place { node_name: Some("n1".into()), host_network: None };
    let api_version = Some(Version("v1".into()));
    assert_eq!(
        placed,
        Placed { kind: "Pod".into(), api_version, metadata: Named { name: "a".into() }, spec }
    );
    assert!(decode_protobuf(&pod).is_err());

    let wrong = ProtobufObject::new(&pod).unwrap().decode::<std::collections::BTreeMap<String, i64>>();
    let error = wrong.unwrap_err().to_string();
    assert!(error.starts_with("protobuf: invalid type: string \"v1\", expected i64"), "{error}");
}

#[test]
fn the_head_tells_who_it_is_and_leaves_managed_fields_out() {
    let labels = |value| message().text(1, "app").text(2, value);
    let metadata = |managed: &str| {
        let metadata = message().text(1, "web-0").text(3, "shop").text(6, "7").sub(11, labels("web"));
        metadata.sub(17, message().text(1, managed)).sub(17, message())
    };
    let pod = |managed| {
        let pod = message().sub(1, metadata(managed)).sub(2, message().text(10, "n1"));
        pod.envelope("v1", "Pod")
    };
    let (one, other) = (pod("kubelet"), pod("kubectl, and longer"));
    let head = ProtobufObject::new(&one).unwrap().head().unwrap();
    assert_eq!(
        (head.name, head.namespace, head.resource_version, &head.labels[..]),
        (Some("web-0"), Some("shop"), Some("7"), &[("app", "web")][..])
    );
    assert_eq!(head.parts.concat(), ProtobufObject::new(&other).unwrap().head().unwrap().parts.concat());
    assert!(!String::from_utf8_lossy(&head.parts.concat()).contains("kubelet"));
    let without: Value = ProtobufObject::new(&one).unwrap().decode().unwrap();
    assert_eq!(without["metadata"].get("managedFields"), None);
    let bare = ProtobufObject::item("v1", "Pod", &[]);
    assert!(!bare.head().unwrap().has_metadata && bare.decode::<Value>().is_ok());
}
