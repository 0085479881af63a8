//! Whatever is sent, the answer is a `Status` that blames the sender, never a panic, and the server goes on.

use informer_apiserver::ApiServer;
use informer_testing::socket;
use serde_json::{Value, json};

use crate::{
    client::{self, Answer, Api, JSON, JSON_PATCH, MERGE_PATCH, query},
    objects::{CRDS, MAPS, PODS, WIDGETS, mk_config_map, mk_crd, mk_widget},
};

const A: &str = "/api/v1/namespaces/default/configmaps/a";
const WIDGET: &str = "/apis/example.com/v1/namespaces/default/widgets/a";
const YAML: &str = "application/yaml";

async fn with_objects() -> Api {
    let api = Api::new();
    api.post(MAPS, &mk_config_map("a")).await.ok();
    api.post(CRDS, &mk_crd()).await.ok();
    api.post(WIDGETS, &mk_widget("a", "red")).await.ok();
    api
}

/// The answer must blame the sender; that it is a whole `Status` and tells of no panic is checked by the client.
#[track_caller]
fn refused(answer: &Answer, what: &str) {
    assert!((400..500).contains(&answer.code), "{what}: {} {}", answer.code, answer.body);
}

/// Everything is as it was, and writes work.
async fn still_works(api: &Api) {
    assert_eq!(api.get(A).await.ok()["data"]["a"], "1");
    assert_eq!(api.get(WIDGET).await.ok()["spec"]["color"], "red");
    api.post(MAPS, &mk_config_map("after")).await.ok();
    api.delete(&format!("{MAPS}/after")).await.ok();
}

#[tokio::test]
async fn a_body_that_is_no_json_object_is_refused() {
    let api = with_objects().await;
    let deep = [b"[".repeat(200_000), b"{\"a\":".repeat(100_000)];
    let mut bodies: Vec<&[u8]> = vec![
        b"",
        b" ",
        b"{",
        b"}",
        b"[]",
        b"5",
        b"null",
        b"\"x\"",
        b"{\"a\":}",
        b"{} {}",
        b"{'a':1}",
        b"\xff\xfe",
        b"{\"\xff\":1}",
        b"{\"a\":\"\\ud800\"}",
        b"\0",
        b"NaN",
        b"{\"metadata\":{\"name\":1e999}}",
        b"<html></html>",
        b"{\"a\":1,}",
    ];
    bodies.extend(deep.iter().map(Vec::as_slice));
    for body in bodies {
        let what = body.escape_ascii().to_string().chars().take(40).collect::<String>();
        for (method, path, r#type) in [
            ("POST", MAPS, JSON),
            ("PUT", A, JSON),
            ("POST", WIDGETS, JSON),
            ("PATCH", A, JSON_PATCH),
            ("POST", CRDS, JSON),
        ] {
            // A list of no operations is a patch, and one object after blanks is one.
            if r#type == JSON_PATCH && body == b"[]" {
                continue;
            }
            refused(
                &api.send(method, path, &[("content-type", r#type)], body.to_vec()).await,
                &format!("{method} {what}"),
            );
        }
        if !body.is_empty() {
            refused(
                &api.send("DELETE", A, &[("content-type", JSON)], body.to_vec()).await,
                &format!("DELETE {what}"),
            );
        }
    }
    for body in [&b""[..], b"[]", b"5", b"{", b"\xff"] {
        refused(&api.send("PATCH", A, &[("content-type", MERGE_PATCH)], body.to_vec()).await, "merge patch");
    }
    still_works(&api).await;
}

#[tokio::test]
async fn a_body_that_is_no_yaml_object_is_refused() {
    let api = with_objects().await;
    let laughs = (1..20).fold("a0: &a0 [x, x]\n".to_owned(), |text, i| {
        let last = i - 1;
        format!("{text}a{i}: &a{i} [*a{last}, *a{last}, *a{last}, *a{last}, *a{last}]\n")
    });
    let deep = "[".repeat(100_000);
    for body in [
        "",
        "---",
        "- a",
        "a",
        ": :",
        "a: [",
        "a: *unknown",
        "\t- x",
        "a: 1\n---\nb: 2",
        "!!binary x",
        "%YAML 9.9",
        "? - a\n: b",
        "{a: b}}",
        "&a [*a]",
        &laughs,
        &deep,
    ] {
        let what: String = body.chars().take(40).collect();
        refused(&api.send("POST", MAPS, &[("content-type", YAML)], body.to_owned()).await, &what);
        refused(&api.send("POST", WIDGETS, &[("content-type", YAML)], body.to_owned()).await, &what);
    }
    still_works(&api).await;
}

#[tokio::test]
async fn what_is_nested_too_deeply_to_be_read_again_is_refused() {
    let api = with_objects().await;
    let yaml = format!(
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: deep}}\nspec: {}1{}\n",
        "{a: ".repeat(300),
        "}".repeat(300)
    );
    let answer = api.send("POST", WIDGETS, &[("content-type", YAML)], yaml).await;
    refused(&answer, "YAML");

    // A patch can put its subject one level deeper with three operations.
    let wrap = [
        json!({ "op": "add", "path": "/n", "value": {} }),
        json!({ "op": "move", "from": "/spec", "path": "/n/spec" }),
        json!({ "op": "move", "from": "/n", "path": "/spec" }),
    ];
    let patch: Vec<Value> = wrap.iter().cycle().take(3 * 500).cloned().collect();
    refused(&api.patch(WIDGET, JSON_PATCH, &Value::Array(patch)).await, "JSON patch");
    still_works(&api).await;
    api.delete(WIDGET).await.ok();
}

#[tokio::test]
async fn a_patch_that_makes_an_object_larger_than_any_body_is_refused() {
    let api = with_objects().await;
    let text = "x".repeat(1024 * 1024);
    api.merge(WIDGET, &json!({ "spec": { "text": text } })).await.ok();
    let copies: Vec<Value> = (0..20)
        .map(|i| json!({ "op": "copy", "from": "/spec/text", "path": format!("/spec/text{i}") }))
        .collect();
    refused(&api.patch(WIDGET, JSON_PATCH, &Value::Array(copies)).await, "copies");
    still_works(&api).await;
}

#[tokio::test]
async fn metadata_of_the_wrong_type_is_refused() {
    let api = with_objects().await;
    for (field, value) in [
        ("name", json!(5)),
        ("name", json!([])),
        ("name", json!({})),
        ("namespace", json!(5)),
        ("namespace", json!("../kube-system")),
        ("labels", json!([])),
        ("labels", json!("x")),
        ("labels", json!({ "a": 1 })),
        ("labels", json!({ "a": null, "b": {} })),
        ("annotations", json!([1])),
        ("annotations", json!({ "a": [] })),
        ("finalizers", json!("x")),
        ("finalizers", json!([1])),
        ("finalizers", json!({})),
        ("ownerReferences", json!(["x"])),
        ("generateName", json!(5)),
        ("uid", json!(5)),
        ("resourceVersion", json!(5)),
        ("resourceVersion", json!("x")),
        ("deletionTimestamp", json!("yesterday")),
        ("creationTimestamp", json!(5)),
        ("generation", json!("one")),
    ] {
        let mut map = mk_config_map("b");
        map["metadata"][field] = value.clone();
        refused(&api.post(MAPS, &map).await, &format!("{field}: {value}"));
    }
    for metadata in [json!(5), json!([]), json!("x"), json!(null), json!({ "name": null })] {
        let mut map = mk_config_map("b");
        map["metadata"] = metadata.clone();
        refused(&api.post(MAPS, &map).await, &metadata.to_string());
    }
    still_works(&api).await;
}

#[tokio::test]
async fn types_of_the_wrong_type_are_refused() {
    let api = with_objects().await;
    for (api_version, kind) in [
        (json!(1), json!("ConfigMap")),
        (json!("v1"), json!(["ConfigMap"])),
        (json!({}), json!({})),
        (json!("v1"), json!("Nothing")),
    ] {
        let mut map = mk_config_map("b");
        (map["apiVersion"], map["kind"]) = (api_version, kind);
        refused(&api.post(MAPS, &map).await, &map.to_string());
    }
    still_works(&api).await;
}

#[tokio::test]
async fn paths_that_climb_or_are_encoded_oddly_are_refused() {
    let api = with_objects().await;
    for path in [
        "/api/v1/namespaces/../configmaps",
        "/api/v1/namespaces/%2e%2e/configmaps",
        "/api/v1/namespaces/default/configmaps/..%2fsecrets",
        "/api/v1/namespaces/default/configmaps/%2e",
        "/api/v1/namespaces/default/configmaps/a%00",
        "/api/v1/namespaces/default/configmaps/%252e%252e",
        "/api/v1/namespaces/default/configmaps/%ff%fe",
        "/api/v1/namespaces/default/configmaps/%5c",
        "/api/v1/namespaces/default/configmaps/%c3%28",
        "/api/v1/namespaces/default/configmaps/a/../a",
        "/api/v1/namespaces//configmaps/a",
        "/api/v1/namespaces/%20/configmaps/a",
        "/apis/../api/v1",
        "/apis/%2e%2e/v1/x",
    ] {
        for method in ["GET", "PUT", "DELETE"] {
            refused(&api.send(method, path, &[], "").await, &format!("{method} {path}"));
        }
    }
    let long = format!("/api/v1/namespaces/default/configmaps/{}", "a".repeat(10_000));
    refused(&api.get(&long).await, "a long name");
    still_works(&api).await;
}

#[tokio::test]
async fn queries_that_make_no_sense_are_refused() {
    let api = with_objects().await;
    let long = "a,".repeat(8_000);
    let max = i64::MAX.to_string();
    for parameters in [
        &[("resourceVersion", "-1")][..],
        &[("resourceVersion", "1e3")],
        &[("resourceVersion", "\u{661}")],
        &[("limit", "many")],
        &[("limit", "99999999999999999999")],
        &[("continue", "../../etc")],
        &[("continue", "AAAA")],
        &[("labelSelector", "a in (")],
        &[("labelSelector", &long)],
        &[("labelSelector", "\0")],
        &[("fieldSelector", "=")],
        &[("fieldSelector", "spec.nodeName=a")],
        &[("fieldSelector", "metadata.name=a\\")],
        &[("watch", "true"), ("timeoutSeconds", "soon")],
        &[("watch", "true"), ("resourceVersion", "x")],
        &[("watch", "true"), ("sendInitialEvents", "perhaps")],
    ] {
        refused(
            &api.get(&query(MAPS, parameters)).await,
            &format!("{parameters:?}").chars().take(80).collect::<String>(),
        );
    }
    // Numbers that are only large are numbers.
    for parameters in [&[("limit", max.as_str())][..], &[("limit", "-5")], &[("x", &long)], &[("", "")]] {
        assert_eq!(api.get(&query(MAPS, parameters)).await.names(), ["a"]);
    }
    assert_eq!(api.get(&format!("{MAPS}?{}", "&=&".repeat(10_000))).await.names(), ["a"]);
    assert_eq!(api.get(&format!("{MAPS}?%ff=%zz&limit=%31")).await.names(), ["a"]);
    still_works(&api).await;
}

#[tokio::test]
async fn a_watch_may_be_as_long_as_a_number_can_say() {
    let api = with_objects().await;
    for timeout in [i64::MAX.to_string(), u32::MAX.to_string(), "1000000000000".into()] {
        let path =
            query(MAPS, &[("watch", "true"), ("timeoutSeconds", &timeout), ("allowWatchBookmarks", "true")]);
        assert_eq!(api.watch(&path).await.lines(1).await, ["ADDED a"], "{timeout}");
    }
}

#[tokio::test]
async fn media_types_that_make_no_sense_are_refused() {
    let api = with_objects().await;
    for r#type in
        ["?", ";", "application", "application/json/json", "multipart/form-data; boundary=x", "\u{e4}"]
    {
        let answer =
            api.send("POST", MAPS, &[("content-type", r#type)], mk_config_map("b").to_string()).await;
        assert!(
            [400, 415].contains(&answer.code) || r#type == ";",
            "{type}: {} {}",
            answer.code,
            answer.body
        );
        api.delete(&format!("{MAPS}/b")).await;
    }
    for accept in
        ["?", "application/json;q=x", "application/json;as=Table", "application/json;as=;v=;g=", "x/y;q=1"]
    {
        refused(&api.get_as(MAPS, accept).await, accept);
    }
    still_works(&api).await;
}

#[tokio::test]
async fn hostile_definitions_are_refused_or_harmless() {
    let api = with_objects().await;
    for (pointer, value) in [
        ("/spec", json!(null)),
        ("/spec/names", json!([])),
        ("/spec/names/plural", json!("../pods")),
        ("/spec/group", json!("")),
        ("/spec/group", json!("a/b.c")),
        ("/spec/versions", json!([])),
        ("/spec/versions/0/name", json!("v1/../../x")),
        ("/spec/versions/0/selectableFields/0/jsonPath", json!("..")),
        ("/spec/versions/0/subresources/scale/specReplicasPath", json!(".metadata.name")),
    ] {
        let mut crd = mk_crd();
        crd["metadata"]["name"] = "others.example.com".into();
        crd["spec"]["names"] = json!({ "plural": "others", "kind": "Other" });
        *crd.pointer_mut(pointer).expect("a field") = value.clone();
        refused(&api.post(CRDS, &crd).await, &format!("{pointer}: {value}"));
    }
    still_works(&api).await;
}

#[tokio::test]
async fn corrupt_objects_can_still_be_read_listed_and_deleted() {
    let api = with_objects().await;
    let corrupt = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "odd" },
        "spec": [1, null], "status": { "phase": {}, "containerStatuses": { "a": 1 }, "podIPs": "x" },
    });
    api.server.put(corrupt).expect("written");
    for accept in [JSON, client::TABLE, client::METADATA_LIST] {
        api.get_as(PODS, accept).await.ok();
    }
    let selector = query(PODS, &[("fieldSelector", "spec.nodeName=x,status.phase!=Running")]);
    assert!(api.names(&selector).await.is_empty());
    let answer = api.merge(&format!("{PODS}/odd"), &json!({ "metadata": { "labels": { "a": "b" } } })).await;
    assert!(answer.code < 500, "{} {}", answer.code, answer.body);
    api.delete(&format!("{PODS}/odd")).await.ok();
    still_works(&api).await;
}

/// Sends bytes to a port and reads what comes until the other side closes.
async fn exchange(server: &ApiServer, bytes: &[u8], then_end: bool) -> (u16, String) {
    let listener = server.listen("127.0.0.1:0".parse().expect("an address")).await.expect("a port");
    let answer = socket::exchange(listener.address(), bytes, then_end).await;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let code = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    (code, text)
}

#[tokio::test]
async fn garbage_on_a_socket_is_400_or_the_end() {
    let server = ApiServer::builder().build();
    for bytes in [
        &b"\r\n\r\n\r\n\r\n"[..],
        b"GARBAGE\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /api/v1/pods\x00 HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello over TLS\r\n\r\n",
        b"POST /api/v1/pods HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n",
        b"POST /api/v1/pods HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        b"POST /api/v1/pods HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
    ] {
        let (code, answer) = exchange(&server, bytes, true).await;
        let what = bytes.escape_ascii();
        assert!(answer.is_empty() || (400..500).contains(&code), "{what}: {answer}");
    }
    let (code, _) =
        exchange(&server, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", false)
            .await;
    assert_eq!(code, 200);
}

#[tokio::test]
async fn a_body_of_four_mebibytes_gets_its_answer_on_a_socket() {
    let server = ApiServer::builder().build();
    let mut request = format!(
        "POST {MAPS} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {JSON}\r\ncontent-length: {}\r\n\r\n",
        4 * 1024 * 1024
    )
    .into_bytes();
    request.resize(request.len() + 4 * 1024 * 1024, b'x');
    let (code, text) = exchange(&server, &request, false).await;
    assert_eq!(code, 413, "{text}");
    assert!(text.contains("RequestEntityTooLarge"), "{text}");
}

#[tokio::test]
async fn a_foreign_host_is_403() {
    let server = ApiServer::builder().build();
    for (host, expected) in [
        ("localhost", 200),
        ("LOCALHOST:8080", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:5", 200),
        ("evil.example.com", 403),
        ("localhost.evil.example.com", 403),
        ("127.0.0.1.evil.example.com:80", 403),
        ("10.0.0.1", 403),
    ] {
        let request = format!("GET /version HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let (code, text) = exchange(&server, request.as_bytes(), false).await;
        assert_eq!(code, expected, "{host}: {text}");
        assert!(code == 200 || text.contains("\"reason\":\"Forbidden\""), "{text}");
    }
}

#[tokio::test]
async fn a_port_that_others_can_reach_is_not_opened() {
    let server = ApiServer::builder().build();
    for address in ["0.0.0.0:0", "[::]:0"] {
        assert!(server.listen(address.parse().expect("an address")).await.is_err(), "{address}");
    }
}
