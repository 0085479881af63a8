use http::Request;

use super::*;

fn mk_guard(allowed: &[&str]) -> Guard {
    mk_guard_on("127.0.0.1:8888", allowed, false)
}

fn mk_guard_on(address: &str, allowed: &[&str], tls: bool) -> Guard {
    let allowed = allowed.iter().map(|host| host.parse().expect("a host")).collect();
    Guard::new(address.parse().expect("an address"), allowed, tls)
}

fn mk_parts(url: &str, headers: &[(&str, &str)]) -> Parts {
    let request = headers
        .iter()
        .fold(Request::get(url), |request, (name, value)| request.header(*name, *value))
        .body(())
        .expect("a request");
    request.into_parts().0
}

fn code(checked: Result<(), Status>) -> u16 {
    checked.map_or_else(|status| status.code, |()| 200)
}

/// The code for a request to an allowed host with these headers.
fn asked(url: &str, headers: &[(&str, &str)]) -> u16 {
    let headers: Vec<_> = [("host", "localhost:8888")].iter().chain(headers).copied().collect();
    code(mk_guard(&[]).check(&mk_parts(url, &headers)))
}

#[test]
fn only_the_names_of_the_gateway_are_answered() {
    let guard = mk_guard(&["gateway.example.com", "other.example.com:99"]);
    let ask = |host: &str| code(guard.check(&mk_parts("/", &[("host", host)])));
    for host in [
        "localhost:8888",
        "LOCALHOST:8888",
        "127.0.0.1:8888",
        "[::1]:8888",
        "gateway.example.com",
        "Gateway.Example.com:1234",
        "other.example.com:99",
    ] {
        assert_eq!(ask(host), 200, "{host}");
    }
    for host in [
        "evil.example",
        "localhost",
        "localhost:8889",
        "localhost.:8888",
        "localhost.evil.example:8888",
        "127.0.0.1.evil.example:8888",
        "127.0.0.2:8888",
        "127.1:8888",
        "10.0.0.1:8888",
        "[::2]:8888",
        "other.example.com",
        "other.example.com:98",
        "a.gateway.example.com",
    ] {
        assert_eq!(ask(host), 421, "{host}");
    }
    for host in ["", "a b", "user@localhost:8888", "localhost:8888:8888", "localhost:", "[::1", "ö:8888"] {
        assert_eq!(ask(host), 400, "{host}");
    }
}

#[test]
fn a_foreign_host_is_told_which_flag_allows_it() {
    let status =
        mk_guard(&[]).check(&mk_parts("/", &[("host", "gateway.example.com")])).expect_err("foreign");
    assert!(status.message.contains("\"gateway.example.com\"") && status.message.contains("--allow-host"));
    assert_eq!((status.code, status.is_success()), (421, false));
}

#[test]
fn in_http_2_the_host_is_in_the_address_and_a_header_beside_it_must_be_ours_too() {
    let guard = mk_guard_on("127.0.0.1:8888", &[], true);
    let ask = |url: &str, headers: &[(&str, &str)]| {
        let mut parts = mk_parts(url, headers);
        parts.version = Version::HTTP_2;
        code(guard.check(&parts))
    };
    assert_eq!(ask("https://localhost:8888/", &[]), 200);
    assert_eq!(ask("https://localhost:8888/", &[("host", "127.0.0.1:8888")]), 200);
    assert_eq!(ask("https://evil.example:8888/", &[]), 421);
    assert_eq!(ask("https://localhost:8888/", &[("host", "evil.example:8888")]), 421);
    assert_eq!(ask("https://evil.example:8888/", &[("host", "localhost:8888")]), 421);
    assert_eq!(ask("/", &[]), 400);
}

#[test]
fn there_is_exactly_one_host() {
    assert_eq!(code(mk_guard(&[]).check(&mk_parts("/", &[]))), 400);
    assert_eq!(asked("/", &[("host", "localhost:8888")]), 400);
    assert_eq!(asked("/", &[("host", "evil.example")]), 400);
}

#[test]
fn a_host_in_the_request_line_is_judged_as_well_as_the_header() {
    let ask = |url: &str, host: &str| code(mk_guard(&[]).check(&mk_parts(url, &[("host", host)])));
    assert_eq!(ask("http://127.0.0.1:8888/", "localhost:8888"), 200);
    assert_eq!(ask("http://evil.example/", "localhost:8888"), 421);
    assert_eq!(ask("http://localhost:8888/", "evil.example"), 421);
    assert_eq!(ask("http://user@localhost:8888/", "localhost:8888"), 400);
}

#[test]
fn without_a_port_the_default_one_is_meant() {
    let ask =
        |address, tls, host| code(mk_guard_on(address, &[], tls).check(&mk_parts("/", &[("host", host)])));
    assert_eq!(ask("127.0.0.1:80", false, "localhost"), 200);
    assert_eq!(ask("127.0.0.1:80", true, "localhost"), 421);
    assert_eq!(ask("127.0.0.1:443", true, "localhost"), 200);
    assert_eq!(ask("192.0.2.1:443", true, "192.0.2.1"), 200);
}

#[test]
fn an_address_is_ours_when_the_connection_came_to_it() {
    let guard = mk_guard_on("0.0.0.0:8443", &[], true);
    let mut parts = mk_parts("/livez", &[("host", "10.1.2.3:8443")]);
    assert_eq!(code(guard.check(&parts)), 421);
    parts.extensions.insert(Local("10.1.2.3:8443".parse().expect("an address")));
    assert_eq!(code(guard.check(&parts)), 200, "as the probe of a kubelet asks");
    parts.extensions.insert(Local("[::ffff:10.1.2.3]:8443".parse().expect("an address")));
    assert_eq!(code(guard.check(&parts)), 200);
    parts.extensions.insert(Local("10.1.2.4:8443".parse().expect("an address")));
    assert_eq!(code(guard.check(&parts)), 421);
}

#[test]
fn a_page_of_another_site_is_refused() {
    for origin in [
        "http://evil.example",
        "http://localhost",
        "http://localhost:8889",
        "https://localhost:8888",
        "null",
        "",
        "http://127.0.0.1:8888",
        "file://",
        "localhost:8888",
        "http://localhost:8888/",
        "http://LOCALHOST:8888@a",
    ] {
        assert_eq!(asked("/_resources", &[("origin", origin)]), 403, "{origin}");
    }
    assert_eq!(asked("/_resources", &[("origin", "http://localhost:8888")]), 200);
    let twice = [("origin", "http://localhost:8888"), ("origin", "http://evil.example")];
    assert_eq!(asked("/_resources", &twice), 403);
}

#[test]
fn an_allowed_name_may_have_a_proxy_that_does_the_tls() {
    let guard = mk_guard(&["gateway.example.com"]);
    let ask =
        |origin| code(guard.check(&mk_parts("/", &[("host", "gateway.example.com"), ("origin", origin)])));
    assert_eq!((ask("https://gateway.example.com"), ask("http://gateway.example.com")), (200, 200));
    assert_eq!((ask("https://gateway.example.com:1"), ask("https://evil.example")), (403, 403));
}

#[test]
fn what_a_browser_says_about_the_site_counts() {
    let ask = |url, site, mode, dest| {
        asked(url, &[("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)])
    };
    for site in ["none", "same-origin"] {
        assert_eq!(ask("/core/v1/pods", site, "cors", "empty"), 200, "{site}");
    }
    for site in ["same-site", "cross-site", "", "nonsense"] {
        assert_eq!(ask("/core/v1/pods", site, "no-cors", "image"), 403, "{site}");
        assert_eq!(ask("/core/v1/pods", site, "navigate", "document"), 403, "{site}: a link to data");
        assert_eq!(ask("/", site, "no-cors", "script"), 403, "{site}");
        assert_eq!(ask("/", site, "navigate", "iframe"), 403, "{site}");
    }
    for url in ["/", "/?resource=core/v1/pods", "/_page/main.js"] {
        assert_eq!(ask(url, "cross-site", "navigate", "document"), 200, "{url}: a link to the page");
        assert_eq!(ask(url, "nonsense", "navigate", "document"), 403, "{url}");
    }
    assert_eq!(asked("/", &[("sec-fetch-site", "cross-site")]), 403, "without a mode it is no link");
    let twice = [("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")];
    assert_eq!(asked("/core/v1/pods", &twice), 403);
}

#[test]
fn nothing_is_written() {
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "WATCH", "get"] {
        let request = Request::builder().method(method).uri("/core/v1/pods").header("host", "localhost:8888");
        let parts = request.body(()).expect("a request").into_parts().0;
        let status = mk_guard(&[]).check(&parts).expect_err(method);
        assert_eq!((status.code, &status.reason), (405, &Reason::MethodNotAllowed), "{method}");
    }
    let head = Request::head("/").header("host", "localhost:8888").body(()).expect("a request");
    assert_eq!(code(mk_guard(&[]).check(&head.into_parts().0)), 200);
}

#[test]
fn a_body_is_refused_before_it_is_read() {
    assert_eq!(asked("/", &[("content-length", "0")]), 200);
    for header in [("content-length", "1"), ("content-length", "x"), ("transfer-encoding", "chunked")] {
        assert_eq!(asked("/", &[header]), 400, "{header:?}");
    }
    assert_eq!(asked("/", &[("content-length", "0"), ("content-length", "5")]), 400);
}

#[test]
fn a_head_has_limits() {
    let url = |length: usize| format!("/?{}", "a".repeat(length - 2));
    assert_eq!((asked(&url(URL_LIMIT), &[]), asked(&url(URL_LIMIT + 1), &[])), (200, 414));
    let many = vec![("x", "1"); HEADER_COUNT_LIMIT];
    assert_eq!((asked("/", &many[1..]), asked("/", &many)), (200, 431));
    let long = "x".repeat(HEADER_LIMIT);
    assert_eq!(asked("/", &[("x", &long[100..])]), 200);
    assert_eq!(asked("/", &[("x", &long)]), 431);
}

#[test]
fn a_selector_has_a_limit_that_counts_what_it_says_and_not_how_it_is_written() {
    for name in ["labelSelector", "fieldSelector", "label%53elector"] {
        let url = |length: usize| format!("/core/v1/pods?limit=1&{name}={}", "a".repeat(length));
        assert_eq!(asked(&url(SELECTOR_LIMIT), &[]), 200, "{name}");
        assert_eq!(asked(&url(SELECTOR_LIMIT + 1), &[]), 400, "{name}");
    }
    let encoded = format!("/core/v1/pods?labelSelector={}", "%61".repeat(5_000));
    assert_eq!(asked(&encoded, &[]), 200);
}

#[test]
fn a_path_has_one_meaning() {
    for path in [
        "/",
        "/core/v1/pods",
        "/api/v1/namespaces/shop/pods/web-0",
        "/_stream/example.com/v1/websites",
        "/a//b",
        "/rbac.authorization.k8s.io/v1/clusterroles",
        "/api/v1/x/system:node",
        "/api/v1/x/%C3%A4",
        "/...",
        "/a../b",
    ] {
        assert_eq!(asked(path, &[]), 200, "{path}");
    }
    for path in [
        "/..",
        "/../etc",
        "/a/./b",
        "/a/../b",
        "/%2e%2e/etc",
        "/a/.%2E",
        "/%2e",
        "/a%2fb",
        "/a%2Fb",
        "/a\\b",
        "/a%5cb",
        "/a%00",
        "/%0a",
        "/%0d%0aX:1",
        "/%1b[31m",
        "/%7f",
        "/%c2%85",
        "/%ff",
        "/%c0%ae%c0%ae",
        "/%e0%80%af",
        "/%ed%a0%80",
        "/%252e",
        "/%",
        "/%zz",
        "/a%2",
        "*",
    ] {
        assert_eq!(asked(path, &[]), 400, "{path}");
    }
}

#[test]
fn a_query_is_text() {
    for query in ["", "labels[k8s-app]=kube-dns", "a=%C3%A4&b=100%", "a=%2e%2e%2f"] {
        assert_eq!(asked(&format!("/deploy?{query}"), &[]), 200, "{query}");
    }
    for query in ["a=%ff", "%c0%ae=1", "a=%00"] {
        assert_eq!(asked(&format!("/deploy?{query}"), &[]), 400, "{query}");
    }
}

#[test]
fn what_a_stranger_wrote_is_shown_in_quotes_and_not_at_length() {
    let host = "x".repeat(10_000);
    let status = mk_guard(&[]).check(&mk_parts("/", &[("host", &host)])).expect_err("foreign");
    assert!(status.message.len() < 500, "{}", status.message);
    assert_eq!(shown("a\"\n\u{1b}"), r#""a\"\n\u{1b}""#);
}
