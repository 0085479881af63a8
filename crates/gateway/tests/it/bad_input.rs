//! Input that is wrong or hostile: the right code, an answer in JSON, and a gateway that goes on.

use serde_json::Value;

use crate::support::*;

/// The gateway is as it was.
async fn still_works(stage: &Stage) {
    assert_eq!(stage.get("/core/v1/pods").await.items().len(), 5);
}

/// A failure has a JSON body: a `Status` with its own code, or the message of a plain list.
#[track_caller]
fn well_formed(answer: &Answer, what: &str) {
    assert_eq!(answer.header("content-type"), "application/json", "{what}: {}", answer.text());
    assert_eq!(answer.header("x-content-type-options"), "nosniff", "{what}");
    assert!(matches!(answer.header("cache-control"), "no-store" | "no-cache"), "{what}");
    let body = answer.json();
    let told = body["msg"].as_str().or(body["message"].as_str()).unwrap_or_default();
    assert!(!told.is_empty() && !told.contains("panicked"), "{what}: {body}");
    if body.get("msg").is_none() {
        assert_eq!((&body["kind"], &body["code"]), (&"Status".into(), &answer.code.into()), "{what}");
    }
}

/// The answers in what came over a connection, each with its code and its body.
fn answers(bytes: &[u8]) -> Vec<(u16, String)> {
    let (mut found, mut rest) = (Vec::new(), bytes);
    while let Some(end) = rest.windows(4).position(|window| window == b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let length = length.map_or(0, |length| length.trim().parse().expect("a length"));
        rest = &rest[end + 4..];
        found.push((code, String::from_utf8_lossy(&rest[..length]).into_owned()));
        rest = &rest[length..];
    }
    found
}

#[tokio::test]
async fn selectors_orders_and_fields_that_make_no_sense_are_400_with_their_position() {
    let stage = Stage::open(mk_demo(5)).await;
    for route in ["/core/v1/pods", "/deploy", "/api/v1/pods", "/_stream/core/v1/pods"] {
        for (name, value, position) in [
            ("labelSelector", "a=b,,c", 4),
            ("labelSelector", "a in b", 5),
            ("labelSelector", "a in (b", 7),
            ("labelSelector", "(", 0),
            ("labelSelector", "a=\u{e9}", 2),
            ("fieldSelector", "status.phase", 12),
            ("fieldSelector", "a[=1", 2),
            ("fieldSelector", "a in (", 6),
            ("fieldSelector", "a..b=1", 2),
            ("sort", "a,", 2),
            ("sort", "a b", 2),
            ("fields", "a,b[", 4),
            ("fields", "a.['x", 2),
        ] {
            let answer = stage.ask(route, &[(name, value)]).await;
            assert_eq!(answer.code, 400, "{route} {name}={value}: {}", answer.text());
            well_formed(&answer, value);
            let is_for_lists_only = name == "sort" && route.starts_with("/_stream");
            let place =
                if is_for_lists_only { "no parameter".to_owned() } else { format!(" at byte {position}") };
            assert!(answer.text().contains(&place), "{route} {name}={value}: {}", answer.text());
        }
    }
    still_works(&stage).await;
    stage.close().await;
}

#[tokio::test]
async fn numbers_tokens_and_parameters_that_are_none_are_400() {
    let stage = Stage::open(mk_demo(5)).await;
    for query in [
        "limit=-1",
        "limit=1.5",
        "limit=1e3",
        "limit=99999999999999999999",
        "limit=%00",
        "continue=x",
        "continue=..",
        "continue=ffffffffffffffffffffffffffffffffff.1",
        "minResourceVersion=",
        "minResourceVersion=-1",
        "minResourceVersion=1;drop",
        "as=xml",
        "as=table&fields=a",
        "unknown=1",
        "LIMIT=1",
        "%6cimit=x",
        "labels[a]=b",
        "=",
        "%ff=1",
        "limit=%ff",
        "labelSelector=%C3%28",
    ] {
        let answer = stage.get(&format!("/core/v1/pods?{query}")).await;
        assert_eq!(answer.code, 400, "{query}: {}", answer.text());
        well_formed(&answer, query);
    }
    for query in ["limit=1", "sort=a", "continue=a.1", "interval=0ms", "interval=1h", "explain=1", "watch=1"]
    {
        stage.get(&format!("/_stream/core/v1/pods?{query}")).await.fails(400);
    }
    for harmless in
        ["", "&", "&&", "namespace=", "sort=", "fields=", "labelSelector=", "fieldSelector=", "%6cimit=0"]
    {
        assert_eq!(stage.get(&format!("/core/v1/pods?{harmless}")).await.items().len(), 5, "{harmless}");
    }
    stage.close().await;
}

#[tokio::test]
async fn what_is_too_long_is_refused() {
    let stage = Stage::open(mk_demo(5)).await;
    let long = stage.get(&format!("/core/v1/pods?namespace={}", "a".repeat(17_000))).await;
    long.fails(414);
    stage.get(&format!("/{}", "a/".repeat(9_000))).await.fails(414);
    let selector = format!("app={}", "a".repeat(9_000));
    let message = stage.ask("/core/v1/pods", &[("labelSelector", &selector)]).await;
    assert!(message.fails(400).contains("8192 are allowed"));
    let headers: Vec<(String, &str)> = (0..150).map(|n| (format!("x-header-{n}"), "1")).collect();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    stage.get_with("/livez", &headers).await.fails(431);
    stage.get_with("/livez", &[("x-long", &"a".repeat(40_000))]).await.fails(431);
    for name in ["a".repeat(10_000), "a.".repeat(5_000)] {
        well_formed(&stage.get(&format!("/core/v1/{name}")).await, "a long name");
        well_formed(&stage.get(&format!("/api/v1/namespaces/{name}/pods/{name}")).await, "a long namespace");
    }
    let path = format!("metadata{}", ".a".repeat(3_000));
    assert_eq!(
        stage.ask("/core/v1/pods", &[("fields", &path)]).await.items().len(),
        5,
        "a deep path leads nowhere"
    );
    let paths = vec!["spec.containers[*].image"; 300].join(",");
    assert_eq!(stage.ask("/core/v1/pods", &[("fields", &paths)]).await.items().len(), 5);
    assert_eq!(stage.ask("/core/v1/pods", &[("sort", &paths)]).await.items().len(), 5);
    still_works(&stage).await;
    stage.close().await;
}

#[tokio::test]
async fn a_foreign_host_is_421_and_a_foreign_page_403() {
    let stage = Stage::open(mk_demo(5)).await;
    let port = stage.address.port();
    for host in [
        "evil.example.com",
        &format!("evil.example.com:{port}"),
        "localhost:1",
        "127.0.0.1",
        &format!("10.0.0.1:{port}"),
    ] {
        for path in ["/core/v1/pods", "/", "/livez", "/metrics", "/api/v1/pods?watch=1"] {
            let answer = stage.get_with(path, &[("host", host)]).await;
            assert!(answer.fails(421).contains("rebinding"), "{host} {path}");
        }
    }
    for host in ["", "a b", "localhost:x", "user@localhost", "[::1", "localhost:99999"] {
        stage.get_with("/livez", &[("host", host)]).await.fails(400);
    }
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
        assert_eq!(stage.get_with("/livez", &[("host", &host)]).await.code, 200, "{host}");
    }
    for headers in [
        [("origin", "http://evil.example.com")],
        [("origin", "null")],
        [("origin", "https://localhost")],
        [("sec-fetch-site", "cross-site")],
        [("sec-fetch-site", "same-site")],
    ] {
        let answer = stage.get_with("/core/v1/pods", &headers).await;
        answer.fails(403);
        assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("access-control-")), "no CORS");
    }
    let own = format!("http://{}", stage.address);
    let page = [("origin", own.as_str()), ("sec-fetch-site", "same-origin")];
    assert_eq!(stage.get_with("/core/v1/pods", &page).await.items().len(), 5);
    stage.close().await;
}

#[tokio::test]
async fn everything_but_reading_is_405_everywhere() {
    let stage = Stage::open(mk_demo(5)).await;
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"] {
        for path in
            ["/", "/core/v1/pods", "/deploy", "/api/v1/pods", "/_stream/core/v1/pods", "/nothing", "/livez"]
        {
            let answer = stage.send(method, path, &[]).await;
            answer.fails(405);
            assert_eq!(answer.header("allow"), "GET, HEAD", "{method} {path}");
        }
    }
    let body =
        "GET /core/v1/pods HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    let body = body.replace("HOST", &stage.address.to_string());
    assert_eq!(answers(&stage.raw(body.as_bytes()).await)[0].0, 400, "a GET has no body");
    still_works(&stage).await;
    stage.close().await;
}

#[tokio::test]
async fn paths_that_climb_or_hide_something_are_refused() {
    let stage = Stage::open(mk_demo(5)).await;
    for path in [
        "/../etc/passwd",
        "/_page/../Cargo.toml",
        "/_page/%2e%2e",
        "/_page/..%2f..%2fCargo.toml",
        "/_page/%2e%2e%2fsecret",
        "/_page/..%5cx",
        "/core/v1/%2e%2e",
        "/core/v1/pods%2f..",
        "/core/v1/pods%00",
        "/core/v1/po%0ads",
        "/core/v1/pods%2500",
        "/core%2fv1/v1/pods",
        "/api/v1/namespaces/%2e%2e/pods",
        "/api/v1/namespaces/default%2fpods/x",
        "/api/v1/./pods",
        "/apis/apps/v1/../../../api/v1/secrets",
        "/api/%76%31/../v1/secrets",
        "/core/v1/%ff",
        "/core/v1/%c0%ae",
        "/core/v1/%",
        "/core/v1/%zz",
    ] {
        let answer = stage.get(path).await;
        assert_eq!(answer.code, 400, "{path}: {}", answer.text());
        well_formed(&answer, path);
    }
    for path in [
        "//core/v1/pods",
        "/core//v1/pods",
        "/core/v1/pods/extra/more",
        "/_page/",
        "/_page/main.js.map",
        "/_page/Main.js",
        "/_page/tests%20x",
        "/favicon.ico",
        "/.git",
        "/_owned",
        "/_stream/core/v1",
        "/api/v1/%70od",
        "/readyz/x",
    ] {
        let answer = stage.get(path).await;
        assert_eq!(answer.code, 404, "{path}: {}", answer.text());
        well_formed(&answer, path);
    }
    assert_eq!(
        stage.get("/core/v1/%70ods").await.items().len(),
        5,
        "what is only written in another way is the same"
    );
    assert_eq!(stage.get("/core/v1/%73ecrets").await.code, 403, "and refused the same");
    assert_eq!(stage.get("/api/%761/secrets").await.code, 403);
    stage.close().await;
}

#[tokio::test]
async fn bytes_that_are_no_request_are_400_or_the_end() {
    let stage = Stage::open(mk_demo(5)).await;
    let host = stage.address.to_string();
    let hosted = |text: &str| text.replace("HOST", &host).into_bytes();
    let inputs: Vec<Vec<u8>> = vec![
        b"\0\0\0\0\0\0\0\0\r\n\r\n".to_vec(),
        vec![0xff; 10_000],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".repeat(20),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GET / FTP\r\n\r\n".to_vec(),
        b"GET /a b HTTP/1.1\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n".to_vec(),
        b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nHost a\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\n Host: a\r\n\r\n".to_vec(),
        hosted("GET / HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\nConnection: close\r\n\r\n"),
        hosted("GET http://evil.example.com/ HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"),
        hosted(
            "GET / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
        ),
        hosted("GET / HTTP/1.1\r\nHost: HOST\r\nContent-Length: -1\r\n\r\n"),
        hosted("GET / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"),
        hosted("GET / HTTP/1.1\r\nHost: HOST\r\nX: a\r\n\tb\r\n\r\n"),
        hosted("CONNECT HOST HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"),
        hosted("OPTIONS * HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"),
        [b"GET /".to_vec(), vec![b'a'; 100_000], b" HTTP/1.1\r\n\r\n".to_vec()].concat(),
        [b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'a'; 100_000], b"\r\n\r\n".to_vec()].concat(),
    ];
    for input in inputs {
        let answer = stage.raw(&input).await;
        let shown = String::from_utf8_lossy(&input[..input.len().min(60)]).into_owned();
        for (code, body) in answers(&answer) {
            assert!((400..500).contains(&code), "{shown:?}: {code} {body}");
            if !body.is_empty() {
                let status: Value =
                    serde_json::from_str(&body).unwrap_or_else(|_| panic!("{shown:?}: {body}"));
                assert_eq!(status["code"], code, "{shown:?}");
            }
        }
    }
    for part in
        [&b""[..], b"\r\n\r\n\r\n", b"G", b"GET / HTTP/1.1\r\nHost: a", b"GET / HTTP/1.1\r\nHost: a\r\n"]
    {
        assert!(
            answers(&stage.raw_then_end(part).await).iter().all(|(code, _)| *code == 400),
            "{}",
            part.escape_ascii()
        );
    }
    still_works(&stage).await;
    stage.close().await;
}

#[tokio::test]
async fn requests_one_after_the_other_are_answered_one_after_the_other() {
    let stage = Stage::open(mk_demo(5)).await;
    let one =
        |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{more}\r\n", stage.address);
    let requests = [one("/livez", ""), one("/nothing", ""), one("/livez", "Connection: close\r\n")].concat();
    let codes: Vec<u16> =
        answers(&stage.raw(requests.as_bytes()).await).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [200, 404, 200]);
    stage.close().await;
}

#[tokio::test]
async fn headers_of_any_bytes_are_harmless() {
    let stage = Stage::open(mk_demo(5)).await;
    for name in [
        "Accept",
        "Accept-Encoding",
        "If-None-Match",
        "Last-Event-ID",
        "Authorization",
        "Origin",
        "Sec-Fetch-Site",
        "Cookie",
    ] {
        for value in
            [&b"\xff\xfe"[..], b"", b",,,,;;;;====", b"*", b"\"", b"W/\"", b"a;q=9999999999999999", b"-1"]
        {
            for path in ["/core/v1/pods", "/api/v1/pods", "/_stream/core/v1/pods?x", "/"] {
                let head = format!(
                    "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{name}: ",
                    stage.address
                );
                let answer = stage.raw(&[head.as_bytes(), value, b"\r\n\r\n"].concat()).await;
                let head = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
                let code: u16 = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
                assert!(code < 500, "{name}: {:?} at {path}: {code}", value.escape_ascii().to_string());
            }
        }
    }
    still_works(&stage).await;
    stage.close().await;
}

#[tokio::test]
async fn objects_of_any_shape_are_listed_sorted_filtered_and_shown() {
    let stage = Stage::open(mk_demo(5)).await;
    let mut deep = Value::Null;
    for _ in 0..100 {
        deep = serde_json::json!([{ "a": deep }]);
    }
    let odd = [
        serde_json::json!({"spec": [], "status": "x"}),
        serde_json::json!({"spec": {"containers": {"a": 1}, "nodeName": [1]}, "status": {"containerStatuses": 7}}),
        serde_json::json!({"spec": deep, "status": {"phase": {"a": []}, "conditions": [null, 1, "x", {}]}}),
        serde_json::json!({"spec": {"containers": [null, 1, "<img src=x onerror=alert(1)>"]}, "status": null}),
    ];
    for (n, odd) in odd.into_iter().enumerate() {
        let mut pod = mk_pod("default", &format!("odd-{n}"), serde_json::json!({}));
        pod["spec"] = odd["spec"].clone();
        pod["status"] = odd["status"].clone();
        stage.put([pod]);
    }
    let version = stage.server.version().to_string();
    for (name, value) in [
        ("explain", "1"),
        ("as", "table"),
        ("sort", "spec.nodeName,-status.phase"),
        ("fields", "spec.containers[*].image,status.conditions"),
        ("fieldSelector", "spec.containers[*].image!=x"),
    ] {
        let answer = stage.ask("/core/v1/pods", &[(name, value), ("minResourceVersion", &version)]).await;
        assert_eq!((answer.code, answer.header("x-total-count")), (200, "9"), "{name}={value}");
    }
    assert_eq!(
        stage.get("/core/v1/pods?as=table").await.items().len(),
        9,
        "what is deep is shown by its name"
    );
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    assert_eq!(stage.get_with("/api/v1/pods", &table).await.items().len(), 9);
    stage.close().await;
}
