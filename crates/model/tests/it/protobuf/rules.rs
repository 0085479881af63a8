//! The rules by which protobuf and JSON differ, byte by byte.

use informer_model::ProtobufErrorKind as Kind;
use serde_json::{Value, json};

use super::{decode, errors::error_of, message, message::Message};

#[test]
fn rule_1_quantities_are_texts() {
    let resources = message().sub(2, message().text(1, "cpu").sub(2, message().text(1, "500m"))).sub(
        2,
        message().text(1, "memory"), // an entry without a value
    );
    let container = message().text(1, "a").sub(8, resources);
    let pod = decode("v1", "Pod", message().sub(2, message().sub(2, container)));
    let requests = &pod["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(requests, &json!({ "cpu": "500m", "memory": "0" }));
}

#[test]
fn rule_1_int_or_string_is_one_of_both() {
    let port = |value: Message| {
        let spec = message().sub(1, message().number(3, 80).sub(4, value));
        decode("v1", "Service", message().sub(2, spec))["spec"]["ports"][0]["targetPort"].clone()
    };
    assert_eq!(port(message()), 0);
    assert_eq!(port(message().number(1, 0).number(2, 8080).text(3, "")), 8080);
    assert_eq!(port(message().number(1, 0).number(2, -1)), -1);
    assert_eq!(port(message().number(1, 1).number(2, 5).text(3, "http")), "http");
    let spec = message().sub(1, message().sub(4, message().number(1, 2)));
    let body = message().sub(2, spec).envelope("v1", "Service");
    assert_eq!(error_of(&body).1, "intstr.IntOrString");
    assert_eq!(error_of(&body).2, Kind::IntOrString(2));
}

#[test]
fn rule_1_times_have_seconds_and_micro_times_six_decimals() {
    let event = |time: Message, micro: Message| decode("v1", "Event", message().sub(6, time).sub(10, micro));
    let at = |seconds, nanos| message().number(1, seconds).number(2, nanos);
    let event_at = event(at(1_709_251_199, 999_999_999), at(1_709_251_199, 120_000_999));
    assert_eq!(event_at["firstTimestamp"], "2024-02-29T23:59:59Z");
    assert_eq!(event_at["eventTime"], "2024-02-29T23:59:59.120000Z");
    let epoch = event(message().number(2, 0), at(-1, -1000));
    assert_eq!(epoch["firstTimestamp"], "1970-01-01T00:00:00Z");
    assert_eq!(epoch["eventTime"], "1969-12-31T23:59:58.999999Z", "nanoseconds may be negative");
    let unset = event(message(), at(-62_135_596_800, 0));
    assert_eq!((&unset["firstTimestamp"], &unset["eventTime"]), (&Value::Null, &Value::Null));
    let (_, place, kind) = error_of(&message().sub(6, at(i64::MAX, 0)).envelope("v1", "Event"));
    assert_eq!((place.as_str(), kind), ("meta/v1.Time", Kind::Time));
}

#[test]
fn rule_2_json_is_embedded() {
    let revision =
        |raw: Message| decode("apps/v1", "ControllerRevision", message().sub(2, raw))["data"].clone();
    assert_eq!(revision(message().text(1, r#" {"a":[1,null]} "#)), json!({ "a": [1, null] }));
    assert_eq!(revision(message().text(1, "")), Value::Null);
    assert_eq!(revision(message()), Value::Null);
    let managed = |fields| message().sub(1, message().sub(17, message().sub(7, fields)));
    let pod = decode("v1", "Pod", managed(message().text(1, r#"{"f:spec":{}}"#)));
    assert_eq!(pod["metadata"]["managedFields"][0]["fieldsV1"], json!({ "f:spec": {} }));
    let broken = managed(message().text(1, "{")).envelope("v1", "Pod");
    let (position, place, kind) = error_of(&broken);
    assert_eq!((position, place.as_str()), (broken.len() - 1, "meta/v1.FieldsV1"));
    assert!(matches!(kind, Kind::Json(_)));
}

#[test]
fn rule_2_a_raw_extension_may_be_an_object_in_protobuf() {
    let pod = message().sub(1, message().text(1, "a")).envelope("v1", "Pod");
    let event = decode("v1", "WatchEvent", message().text(1, "ADDED").sub(2, message().bytes(1, &pod)));
    assert_eq!(event["object"]["kind"], "Pod");
    assert_eq!(event["object"]["metadata"], json!({ "name": "a" }));
    assert_eq!(event["type"], "ADDED");
}

#[test]
fn rule_3_schema_unions_are_what_they_hold() {
    let schema = |fields: Message| {
        let version = message().sub(4, message().sub(1, fields));
        let definition = decode(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            message().sub(2, message().sub(7, version)),
        );
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    };
    let string = || message().text(5, "string");
    assert_eq!(schema(message().sub(24, message().sub(1, string())))["items"], json!({ "type": "string" }));
    assert_eq!(schema(message().sub(24, message().sub(2, string())))["items"], json!([{ "type": "string" }]));
    assert_eq!(schema(message().sub(24, message()))["items"], Value::Null);
    assert_eq!(schema(message().sub(30, message()))["additionalProperties"], false);
    assert_eq!(schema(message().sub(30, message().number(1, 1)))["additionalProperties"], true);
    let both = message().number(1, 1).sub(2, string());
    assert_eq!(schema(message().sub(30, both))["additionalProperties"], json!({ "type": "string" }));
    let dependency = |value: Message| message().sub(32, message().text(1, "k").sub(2, value));
    assert_eq!(schema(dependency(message().text(2, "x")))["dependencies"], json!({ "k": ["x"] }));
    assert_eq!(
        schema(dependency(message().sub(1, string())))["dependencies"],
        json!({ "k": { "type": "string" } })
    );
}

#[test]
fn rule_4_named_lists_are_lists() {
    let extra = |value: Message| message().sub(2, message().sub(5, message().text(1, "k").sub(2, value)));
    let review =
        |message| decode("authorization.k8s.io/v1", "SubjectAccessReview", message)["spec"]["extra"].clone();
    assert_eq!(review(extra(message().text(1, "a").text(1, ""))), json!({ "k": ["a", ""] }));
    assert_eq!(review(extra(message())), json!({ "k": [] }));
}

#[test]
fn rule_5_bytes_are_base64_and_whole_doubles_integers() {
    let secret =
        message().sub(2, message().text(1, "k").bytes(2, &[0xff, 0xfe])).sub(2, message().text(1, "e"));
    assert_eq!(decode("v1", "Secret", secret)["data"], json!({ "k": "//4=", "e": "" }));
    let schema = message().double(9, 3.0).double(11, 0.5);
    let version = message().sub(4, message().sub(1, schema));
    let definition = decode(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        message().sub(2, message().sub(7, version)),
    );
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema.to_string(), r#"{"maximum":3,"minimum":0.5}"#);
}

#[test]
fn rule_6_the_envelope_names_the_kind() {
    let namespace = decode("v1", "Namespace", message());
    assert_eq!((&namespace["apiVersion"], &namespace["kind"]), (&json!("v1"), &json!("Namespace")));
    let list = decode("v1", "NamespaceList", message().sub(2, message()));
    assert_eq!(list["items"], json!([{ "metadata": {}, "spec": {}, "status": {} }]), "items have no kind");
    let options = decode("example.com/v1", "DeleteOptions", message().number(1, 0));
    assert_eq!(
        options,
        json!({ "apiVersion": "example.com/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0 })
    );
}

#[test]
fn rule_7_embedded_messages_are_flattened() {
    let source = message().sub(2, message());
    let volume = message().text(1, "tmp").sub(2, source);
    let pod = decode("v1", "Pod", message().sub(2, message().sub(1, volume)));
    assert_eq!(pod["spec"]["volumes"], json!([{ "name": "tmp", "emptyDir": {} }]));
    let rule = message().text(1, "v1");
    let named = message().sub(2, message().text(1, "CREATE").sub(2, rule.text(2, "v1")));
    let constraints = message().sub(2, message().sub(3, named));
    let policy =
        decode("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", message().sub(2, constraints));
    let rules = &policy["spec"]["matchConstraints"]["resourceRules"];
    assert_eq!(
        rules,
        &json!([{ "apiGroups": ["v1"], "apiVersions": ["v1"], "operations": ["CREATE"] }]),
        "two deep"
    );
}

#[test]
fn rule_8_negative_integers_and_packed_lists_are_read() {
    let pod = |spec| decode("v1", "Pod", message().sub(2, spec))["spec"].clone();
    assert_eq!(pod(message().number(25, -10))["priority"], -10);
    assert_eq!(pod(message().number(4, i64::MIN))["terminationGracePeriodSeconds"], i64::MIN);
    let groups = message().number(4, 1).bytes(4, &[2, 0x80, 1]).number(4, 3);
    assert_eq!(
        pod(message().sub(14, groups))["securityContext"]["supplementalGroups"],
        json!([1, 2, 128, 3])
    );
}

#[test]
fn rule_9_zeros_are_left_out_where_json_omits_them() {
    let port = message().text(1, "").number(2, 0).number(3, 0).text(4, "");
    let container = message().text(1, "").text(2, "").sub(6, port).number(16, 0);
    let pod = decode("v1", "Pod", message().sub(2, message().sub(2, container).number(4, 0).number(11, 0)));
    assert_eq!(
        pod["spec"],
        json!({
            "containers": [{ "name": "", "ports": [{ "containerPort": 0 }], "resources": {} }],
            "terminationGracePeriodSeconds": 0,
        })
    );
    assert_eq!(pod["metadata"], json!({}), "a struct is there although nothing came");
    let created = decode("v1", "Pod", message().sub(1, message().sub(8, message())));
    assert_eq!(created["metadata"], json!({}), "a time that is not set is left out here alone");
}

#[test]
fn rule_10_what_is_missing_and_always_written_is_null() {
    let deployment = decode("apps/v1", "Deployment", message());
    assert_eq!(deployment["spec"]["selector"], Value::Null);
    assert_eq!(deployment["spec"]["template"]["spec"], json!({ "containers": null }));
    assert_eq!(decode("rbac.authorization.k8s.io/v1", "Role", message())["rules"], Value::Null);
    assert_eq!(decode("v1", "PodList", message())["items"], json!([]));
}

#[test]
fn rule_11_lists_go_on_and_messages_merge_wherever_they_stand() {
    let metadata = |number, text| message().sub(1, message().text(number, text));
    let pod =
        metadata(14, "a").sub(2, message().text(10, "n1")).then(metadata(14, "b")).then(metadata(1, "x"));
    let pod = decode("v1", "Pod", pod.then(metadata(1, "y")));
    assert_eq!(pod["metadata"], json!({ "finalizers": ["a", "b"], "name": "y" }), "the last text counts");
    assert_eq!(pod["spec"], json!({ "containers": null, "nodeName": "n1" }));
    let role =
        message().sub(2, message()).sub(2, message().text(1, "get")).sub(1, message()).sub(2, message());
    let role = decode("rbac.authorization.k8s.io/v1", "Role", role);
    assert_eq!(role["rules"], json!([{ "verbs": null }, { "verbs": ["get"] }, { "verbs": null }]));
    let unset =
        decode("v1", "Pod", message().sub(2, message().number(11, 1)).sub(2, message().number(11, 0)));
    assert_eq!(unset["spec"], json!({ "containers": null }));
}
