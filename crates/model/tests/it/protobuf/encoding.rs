//! Objects written in protobuf, beside what Kubernetes itself writes.

use informer_model::{
    BUILTIN_KINDS, FrameDecoder, Framing, ProtobufEncodeErrorKind as Kind, ProtobufKind, ProtobufList,
    decode_protobuf, encode_protobuf, encode_watch_event, has_protobuf,
};
use serde_json::{Value, json};

use super::{message, objects::objects};

/// Where an object is wrong, and how.
fn error_of(object: &Value) -> (String, Kind) {
    let error = encode_protobuf(object).expect_err("an error");
    (error.path, error.kind)
}

fn pod_with(spec: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "spec": spec })
}

#[test]
fn objects_are_written_byte_by_byte_as_kubernetes_writes_them() {
    for object in objects() {
        let encoded =
            encode_protobuf(&object.json).unwrap_or_else(|error| panic!("{}: {error}", object.name));
        // The null in an enum of this one is the text `null` in its protobuf, which no server has that read JSON.
        let expected = match object.name.as_str() {
            "definition" => encode_protobuf(&decode_protobuf(&object.protobuf).unwrap()).unwrap(),
            _ => object.protobuf,
        };
        assert_eq!(hex(&encoded), hex(&expected), "{}", object.name);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_built_in_kind_has_protobuf_and_so_has_its_list() {
    for kind in BUILTIN_KINDS.iter().filter(|kind| kind.is_in(37)) {
        let group = if kind.group.is_empty() { String::new() } else { format!("{}/", kind.group) };
        let api_version = format!("{group}{}", kind.version);
        assert!(has_protobuf(&api_version, kind.kind), "{api_version} {}", kind.kind);
        assert!(ProtobufList::new(&api_version, &format!("{}List", kind.kind)).is_ok(), "{}", kind.kind);
    }
    assert!(has_protobuf("v1", "Status") && has_protobuf("meta.k8s.io/v1", "PartialObjectMetadataList"));
    assert!(!has_protobuf("example.com/v1", "Gear") && !has_protobuf("meta.k8s.io/v1", "Table"));
}

#[test]
fn a_kind_without_protobuf_is_an_error_that_names_it() {
    let unknown = |api_version: &str, kind: &str| {
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        (String::new(), Kind::UnknownKind { api_version, kind })
    };
    let gear = json!({ "apiVersion": "example.com/v1", "kind": "Gear" });
    assert_eq!(error_of(&gear), unknown("example.com/v1", "Gear"));
    assert_eq!(
        encode_protobuf(&gear).unwrap_err().to_string(),
        r#"protobuf: no kind "Gear" of "example.com/v1" is known in protobuf"#
    );
    for none in [json!({}), json!(null), json!([1]), json!("v1"), json!({ "apiVersion": 1, "kind": {} })] {
        assert_eq!(error_of(&none), unknown("", ""), "{none}");
    }
    assert!(
        ProtobufList::new("v1", "Pod").is_err() && ProtobufList::new("example.com/v1", "GearList").is_err()
    );
}

#[test]
fn a_value_that_its_field_cannot_hold_is_an_error_with_its_path() {
    let map_of = |value: &str| json!({ "apiVersion": "v1", "kind": "Secret", "data": { "k": value } });
    let created = |value: Value| json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "creationTimestamp": value } });
    let (time, bits_32) = ("a time like 2026-01-31T12:00:00Z", "an integer of 32 bits");
    for (object, path, expected, found) in [
        (pod_with(json!("x")), "spec", "an object", "a text"),
        (pod_with(json!({ "containers": {} })), "spec.containers", "a list", "an object"),
        (pod_with(json!({ "containers": [{}, []] })), "spec.containers[1]", "an object", "a list"),
        (pod_with(json!({ "nodeSelector": [] })), "spec.nodeSelector", "an object", "a list"),
        (
            pod_with(json!({ "nodeSelector": { "a.b": 1 } })),
            "spec.nodeSelector.a.b",
            "a text",
            "the number 1",
        ),
        (pod_with(json!({ "hostNetwork": 1 })), "spec.hostNetwork", "true or false", "the number 1"),
        (pod_with(json!({ "priority": 1.5 })), "spec.priority", bits_32, "the number 1.5"),
        (
            pod_with(json!({ "priority": 2_147_483_648_i64 })),
            "spec.priority",
            bits_32,
            "the number 2147483648",
        ),
        (
            pod_with(json!({ "activeDeadlineSeconds": u64::MAX })),
            "spec.activeDeadlineSeconds",
            "an integer of 64 bits",
            "the number 18446744073709551615",
        ),
        (pod_with(json!({ "overhead": { "cpu": true } })), "spec.overhead.cpu", "a quantity", "true"),
        (
            pod_with(json!({ "containers": [{ "livenessProbe": { "tcpSocket": { "port": 1e300 } } }] })),
            "spec.containers[0].livenessProbe.tcpSocket.port",
            "a text or an integer of 32 bits",
            "the number 1e+300",
        ),
        (map_of("a"), "data.k", "base64", "a text"),
        (created(json!(17)), "metadata.creationTimestamp", time, "the number 17"),
        (created(json!("yesterday")), "metadata.creationTimestamp", time, "a text"),
        (created(json!("10000-01-01T00:00:00Z")), "metadata.creationTimestamp", time, "a text"),
    ] {
        assert_eq!(
            error_of(&object),
            (path.to_owned(), Kind::Mismatch { expected, found: found.to_owned() }),
            "{object}"
        );
    }
}

#[test]
fn text_that_is_no_json_is_an_error_and_order_does_not_matter() {
    let encode = |text: &str| {
        ProtobufKind::new("v1", "ConfigMap").unwrap().encode(&mut serde_json::Deserializer::from_str(text))
    };
    for text in ["", "{", r#"{"data":{"a":}}"#, r#"{"data" "a"}"#, "nul"] {
        assert!(matches!(encode(text).unwrap_err().kind, Kind::Json(_)), "{text}");
    }
    let deep = format!(r#"{{"unknown":{}1{},"metadata":{{"name":"a"}}}}"#, "[".repeat(200), "]".repeat(200));
    assert!(encode(&deep).is_ok(), "what is left out may be anything");
    let sorted = encode(r#"{"data":{"a":"1","b":"2"},"metadata":{"labels":{"x":"y"},"name":"a"}}"#).unwrap();
    let other = r#"{"metadata":{"name":"z","name":"\u0061","labels":{"x":"y"}},"data":{"b":"0","a":"1","b":"2"},"new":[{}]}"#;
    assert_eq!(encode(other), Ok(sorted), "of two values under one name the last counts");
    let wrong = encode(r#"{"metadata":{"labels":[]}}"#).unwrap_err();
    assert_eq!(wrong.to_string(), "protobuf: expected an object, found a list at metadata.labels");
}

#[test]
fn deep_nesting_is_an_error_even_on_a_small_stack() {
    let definition = |levels: usize| {
        let schema = (0..levels).fold(json!({}), |inside, _| json!({ "not": inside }));
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "spec": { "versions": [{ "schema": { "openAPIV3Schema": schema } }] },
        })
    };
    let revision = |levels: usize| {
        let data = (0..levels).fold(json!(1), |inside, _| json!([inside]));
        json!({ "apiVersion": "apps/v1", "kind": "ControllerRevision", "data": data })
    };
    // Making such objects, and dropping them, needs more of a stack than encoding them.
    let allowed = [definition(90), revision(127)];
    let refused = [definition(100), revision(128), definition(1000), revision(1000)];
    let (allowed, refused) = (&allowed, &refused);
    std::thread::scope(|scope| {
        // Half of what a thread has by default, although nothing is optimised.
        let small = std::thread::Builder::new().stack_size(1 << 20);
        let encoding = small.spawn_scoped(scope, || {
            for object in allowed {
                assert!(decode_protobuf(&encode_protobuf(object).unwrap()).is_ok());
            }
            for object in refused {
                assert_eq!(error_of(object).1, Kind::Depth);
            }
        });
        encoding.unwrap().join().unwrap();
    });
}

#[test]
fn a_time_keeps_what_its_json_has() {
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "firstTimestamp": "2024-03-01T01:59:59.987654321+02:00",
        "lastTimestamp": "0001-01-01T00:00:00Z",
        "eventTime": "2024-02-29T23:59:59.120000999Z",
    });
    let event = decode_protobuf(&encode_protobuf(&event).unwrap()).unwrap();
    assert_eq!(event["firstTimestamp"], "2024-02-29T23:59:59Z");
    assert_eq!(
        (&event["lastTimestamp"], &event["eventTime"]),
        (&Value::Null, &json!("2024-02-29T23:59:59.120000Z"))
    );
}

#[test]
fn a_union_is_written_as_what_it_is() {
    let schema = json!({
        "items": [{ "type": "string" }],
        "additionalProperties": { "type": "string" },
        "additionalItems": false,
        "dependencies": { "a": ["b"], "c": { "type": "object" } },
        "not": { "items": { "type": "string" }, "additionalItems": true },
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": { "versions": [{ "schema": { "openAPIV3Schema": schema } }] },
    });
    let decoded = decode_protobuf(&encode_protobuf(&definition).unwrap()).unwrap();
    assert_eq!(decoded["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schema);
}

#[test]
fn an_event_is_a_length_a_type_and_an_object_in_its_envelope() {
    let pod = objects().into_iter().find(|object| object.name == "pod").unwrap();
    let event = encode_watch_event("MODIFIED", &pod.json).unwrap();
    let expected = message().text(1, "MODIFIED").sub(2, message().bytes(1, &pod.protobuf));
    let body = [&(event.len() as u32 - 4).to_be_bytes()[..], &expected.prefixed()[4..]].concat();
    assert_eq!(hex(&event), hex(&body));
    let mut frames = FrameDecoder::new(Framing::LengthDelimited);
    frames.push(event);
    let frame = frames.next_frame().unwrap().unwrap();
    let decoded = decode_protobuf(&message().raw(&frame).envelope("v1", "WatchEvent")).unwrap();
    assert_eq!((&decoded["type"], &decoded["object"]), (&json!("MODIFIED"), &pod.json));
    assert!(encode_watch_event("ADDED", &json!({ "kind": "Gear" })).is_err());
}

#[test]
fn a_list_item_by_item_is_the_list_as_a_whole() {
    for object in objects().into_iter().filter(|object| object.name.ends_with("list")) {
        let text = |field: &str| object.json[field].as_str().unwrap();
        let list = ProtobufList::new(text("apiVersion"), text("kind")).unwrap();
        let mut items = Vec::new();
        for item in object.json["items"].as_array().unwrap() {
            list.write_item(item, &mut items).unwrap();
            let written = items.clone();
            assert!(list.write_item(json!({ "metadata": 7 }), &mut items).is_err());
            assert_eq!(items, written, "what failed leaves nothing behind");
        }
        let start = list.start(&object.json["metadata"], items.len()).unwrap();
        let whole = [&start[..], &items, ProtobufList::END].concat();
        assert_eq!(hex(&whole), hex(&object.protobuf), "{}", object.name);
    }
}
