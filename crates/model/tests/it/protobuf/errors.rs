//! The envelope, and bytes that are no object.

use informer_model::{ProtobufErrorKind as Kind, decode_protobuf};
use serde_json::json;

use super::{decode, message, message::Message, objects::objects};

/// Where a body is wrong, in which field, and how.
pub(crate) fn error_of(body: &[u8]) -> (usize, String, Kind) {
    let error = decode_protobuf(body).expect_err("an error");
    (error.position, error.place, error.kind)
}

#[test]
fn json_may_be_inside_the_envelope() {
    let body = |raw: &str, content_type: &str| {
        let kind = message().text(1, "example.com/v1").text(2, "Gear");
        message().sub(1, kind).text(2, raw).text(4, content_type).prefixed()
    };
    let gear = decode_protobuf(&body(r#"{"spec":{"teeth":5}}"#, "application/json")).unwrap();
    assert_eq!(gear, json!({ "apiVersion": "example.com/v1", "kind": "Gear", "spec": { "teeth": 5 } }));
    assert!(matches!(error_of(&body("[]", "application/json")).2, Kind::Json(_)));
    assert_eq!(error_of(&body("a: b", "application/yaml")).2, Kind::ContentType("application/yaml".into()));
    let packed = message().text(3, "gzip").prefixed();
    assert_eq!(error_of(&packed).2, Kind::ContentEncoding("gzip".into()));
}

#[test]
fn errors_name_the_byte_and_the_field() {
    assert_eq!(error_of(b""), (0, String::new(), Kind::Prefix));
    assert_eq!(error_of(b"{}"), (0, String::new(), Kind::Prefix));
    let unknown = decode_protobuf(&message().envelope("example.com/v1", "Gear")).unwrap_err().to_string();
    assert_eq!(
        unknown,
        r#"protobuf: no kind "Gear" of "example.com/v1" is known in protobuf at byte 0 in runtime.Unknown"#
    );
    let wrong = message().sub(2, message().number(10, 5)).envelope("v1", "Pod");
    assert_eq!(
        decode_protobuf(&wrong).unwrap_err().to_string(),
        format!(
            "protobuf: expected a length and bytes, found an integer at byte {} in core/v1.PodSpec.nodeName",
            wrong.len() - 2
        )
    );
    let group = message().sub(2, message().raw(&[0x0b, 0x0c])).envelope("v1", "Pod");
    assert_eq!(error_of(&group), (group.len() - 2, "core/v1.PodSpec".into(), Kind::WireType(3)));
    let text = message().sub(1, message().bytes(1, b"ab\xff")).envelope("v1", "Pod");
    assert_eq!(error_of(&text), (text.len() - 1, "meta/v1.ObjectMeta.name".into(), Kind::Utf8));
    let number =
        message().sub(2, message().sub(7, message().sub(4, message().sub(1, message().double(9, f64::NAN)))));
    let number = number.envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    assert_eq!(error_of(&number).1, "apiextensions/v1.JSONSchemaProps.maximum");
    assert_eq!(error_of(&number).2, Kind::Number);
}

#[test]
fn fields_of_newer_clients_are_passed_over() {
    let newer = message().number(900, 1).text(901, "x").double(902, 1.0).raw(&[0xbd, 0x38, 1, 2, 3, 4]);
    let pod = decode("v1", "Pod", message().sub(1, newer.text(1, "a")).number(99, 1));
    assert_eq!(pod["metadata"], json!({ "name": "a" }));
}

#[test]
fn deep_nesting_is_an_error_even_on_a_small_stack() {
    let nested = |levels: usize| {
        let schema = (0..levels).fold(message(), |inside, _| message().sub(28, inside));
        let version = message().sub(4, message().sub(1, schema));
        message()
            .sub(2, message().sub(7, version))
            .envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    };
    let envelopes = (0..10_000).fold(message().envelope("v1", "Pod"), |inside, _| {
        message().sub(2, message().bytes(1, &inside)).envelope("v1", "WatchEvent")
    });
    // Half of what a thread has by default, although nothing is optimised.
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let thread = small.spawn(move || {
        assert!(decode_protobuf(&nested(90)).is_ok());
        assert_eq!(error_of(&nested(100)).2, Kind::Depth);
        assert_eq!(error_of(&nested(10_000)).2, Kind::Depth);
        assert_eq!(error_of(&envelopes).2, Kind::Depth);
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn many_short_messages_take_bounded_memory() {
    let list = |items: usize, item: &[u8]| {
        let list = (0..items).fold(message(), |list, _| list.bytes(2, item));
        decode_protobuf(&list.envelope("apps/v1", "DeploymentList"))
    };
    assert_eq!(list(50, b"").unwrap()["items"].as_array().unwrap().len(), 50);
    assert_eq!(list(100_000, b"").map_err(|error| error.kind), Err(Kind::Memory));
    // What a client writes of its shortest deployment is enough for what it becomes.
    let shortest = objects().into_iter().find(|object| object.name == "deployment without selector").unwrap();
    let item = Message::inside(&shortest.protobuf);
    assert_eq!(list(10_000, &item).unwrap()["items"].as_array().unwrap().len(), 10_000);
}
