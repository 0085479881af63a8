use super::*;

fn read(json: &str) -> Status {
    serde_json::from_str(json).unwrap()
}

/// A failure with nothing but a reason and a code.
fn mk_failure(reason: &str, code: u16) -> Status {
    Status { reason: reason.into(), code, ..Status::default() }
}

#[test]
fn the_wire_shape_is_kept_byte_for_byte() {
    for json in [
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#,
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":501}"#,
        concat!(
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
            r#""message":"deployments.apps \"web\" not found","reason":"NotFound","#,
            r#""details":{"name":"web","group":"apps","kind":"deployments"},"code":404}"#
        ),
        concat!(
            r#"{"kind":"Status","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"eyJ2","#,
            r#""remainingItemCount":3},"status":"Failure","message":"too old","reason":"Expired","code":410}"#
        ),
        concat!(
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
            r#""message":"Pod \"x\" is invalid: spec.a: Required value","reason":"Invalid","#,
            r#""details":{"name":"x","kind":"Pod","uid":"u-1","causes":[{"reason":"FieldValueRequired","#,
            r#""message":"Required value","field":"spec.a"}],"retryAfterSeconds":5},"code":422}"#
        ),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Tired","details":{},"code":599}"#,
    ] {
        assert_eq!(serde_json::to_string(&read(json)).unwrap(), json);
    }
}

#[test]
fn missing_null_unknown_and_senseless_fields_are_borne() {
    let bare = Status::default();
    for json in [
        r#"{"kind":"Status"}"#,
        r#"{"kind":"Status","apiVersion":"meta.k8s.io/v1","status":"Failure","extra":{"a":[1]}}"#,
        concat!(
            r#"{"code":null,"details":null,"reason":null,"message":null,"status":null,"metadata":null,"#,
            r#""apiVersion":null,"kind":"Status"}"#
        ),
        r#"{"kind":"Status","metadata":{"selfLink":"","resourceVersion":null,"continue":null,"remainingItemCount":null}}"#,
        r#"{"kind":"Status","status":"Perhaps","reason":"","code":-1}"#,
        r#"{"kind":"Status","code":4.5e300}"#,
        r#"{"kind":"Status","code":"404"}"#,
        r#"{"kind":"Status","code":70000}"#,
    ] {
        assert_eq!(read(json), bare, "{json}");
    }
    let details = read(
        r#"{"kind":"Status","details":{"name":null,"group":null,"kind":null,"uid":null,"causes":null,"retryAfterSeconds":-4}}"#,
    );
    assert_eq!(details.details, Some(Box::default()));
    let cause =
        read(r#"{"kind":"Status","details":{"causes":[{"reason":null,"message":"m","field":null}]}}"#);
    assert_eq!(cause.details.unwrap().causes, [StatusCause::new("", "", "m")]);
    assert_eq!(read(r#"{"kind":"Status","reason":"Tired"}"#).reason, Reason::Other("Tired".into()));
}

#[test]
fn what_is_not_a_status_is_refused() {
    for (json, complaint) in [
        (r#"{"kind":"Pod","apiVersion":"v1","status":{"phase":"Running"}}"#, "expected kind `Status`"),
        (r#"{"kind":"Status","apiVersion":"example.com/v1"}"#, "expected apiVersion `v1`"),
        (r#"{"apiVersion":"v1","code":404}"#, "missing field `kind`"),
        ("{}", "missing field `kind`"),
        ("[]", ""),
        ("404", ""),
        ("null", ""),
        (r#"{"kind":null}"#, ""),
    ] {
        let error = serde_json::from_str::<Status>(json).unwrap_err().to_string();
        assert!(error.contains(complaint), "{json}: {error}");
    }
}

#[test]
fn every_reason_has_its_text_and_its_code() {
    assert_eq!(reason::ALL.len(), 19);
    for reason in reason::ALL {
        let text = reason.as_str();
        assert_eq!(Reason::from(text), *reason);
        assert!(reason.is_known() && !reason.is_unknown() && !matches!(reason, Reason::Other(_)), "{text}");
        let status = Status::failure(reason.clone(), "m");
        assert_eq!(Some(status.code), reason.code());
        assert_eq!(read(&serde_json::to_string(&status).unwrap()), status);
        for other in reason::ALL {
            assert_eq!(status.has_reason(other), other == reason, "{text} is no {other}");
        }
    }
    assert_eq!(Reason::from(""), Reason::Unknown);
    for (code, reason) in [(409, Reason::Conflict), (410, Reason::Gone), (500, Reason::InternalError)] {
        assert_eq!(Reason::of_code(code), Some(reason), "the one that its code alone stands for");
    }
    assert_eq!((Reason::of_code(200), Reason::of_code(0)), (None, None));
}

#[test]
fn questions_go_by_the_reason_and_by_the_code_only_without_a_known_one() {
    type Question = fn(&Status) -> bool;
    type Answers = &'static [(&'static str, u16)];
    let table: &[(&str, Question, Answers, Answers)] = &[
        ("expired", Status::is_expired, &[("Expired", 410), ("Expired", 0)], &[("", 410), ("Gone", 410)]),
        (
            "gone",
            Status::is_gone,
            &[("Gone", 410), ("Gone", 0), ("", 410), ("Tired", 410)],
            &[("Expired", 410), ("NotFound", 410), ("", 404)],
        ),
        (
            "relist",
            Status::needs_relist,
            &[("Expired", 410), ("Gone", 410), ("", 410), ("Expired", 0), ("Tired", 410)],
            &[("NotFound", 404), ("Timeout", 504), ("Conflict", 410), ("", 0)],
        ),
        (
            "conflict",
            Status::is_conflict,
            &[("Conflict", 409), ("", 409), ("Tired", 409)],
            &[("AlreadyExists", 409), ("", 400)],
        ),
        ("exists", Status::is_already_exists, &[("AlreadyExists", 409)], &[("Conflict", 409), ("", 409)]),
        (
            "not found",
            Status::is_not_found,
            &[("NotFound", 404), ("", 404), ("NotFound", 500)],
            &[("Forbidden", 404), ("", 403)],
        ),
        (
            "forbidden",
            Status::is_forbidden,
            &[("Forbidden", 403), ("", 403)],
            &[("NotFound", 403), ("Unauthorized", 401)],
        ),
        (
            "unauthorized",
            Status::is_unauthorized,
            &[("Unauthorized", 401), ("", 401)],
            &[("Forbidden", 401), ("", 403)],
        ),
        ("invalid", Status::is_invalid, &[("Invalid", 422), ("", 422)], &[("BadRequest", 422), ("", 400)]),
        ("timeout", Status::is_timeout, &[("Timeout", 504), ("", 504)], &[("ServerTimeout", 504), ("", 500)]),
        (
            "too many",
            Status::is_too_many_requests,
            &[("TooManyRequests", 429), ("", 429), ("Forbidden", 429), ("TooManyRequests", 500)],
            &[("", 503), ("Timeout", 504)],
        ),
    ];
    for (name, question, yes, no) in table {
        for &(reason, code) in *yes {
            assert!(question(&mk_failure(reason, code)), "{name}: {reason:?} {code}");
        }
        for &(reason, code) in *no {
            assert!(!question(&mk_failure(reason, code)), "{name}: {reason:?} {code}");
        }
        assert!(!question(&Status::success()), "{name}: success");
    }
}

#[test]
fn c01_a_version_that_is_too_large_is_recognised_from_every_server() {
    let cause = |reason: &str, message: &str| [StatusCause::new(reason, "", message)];
    let said = |message: &str, status: Status| Status { message: message.into(), ..status };
    for (is, status) in [
        (true, Status::too_large_resource_version(&9.into(), &7.into())),
        (true, mk_failure("Timeout", 504).with_causes(cause("ResourceVersionTooLarge", ""))),
        (true, mk_failure("", 0).with_causes(cause("ResourceVersionTooLarge", ""))),
        (true, mk_failure("Timeout", 504).with_causes(cause("", "Too large resource version"))),
        (true, mk_failure("", 504).with_causes(cause("", "Too large resource version"))),
        (true, Status::timeout("Too large resource version: 9, current: 7", 1)),
        (true, said("Too large resource version: 9, current: 7", mk_failure("", 500))),
        (false, mk_failure("Timeout", 504)),
        (false, Status::timeout("request did not complete within 60s", 1)),
        (false, mk_failure("Timeout", 504).with_causes(cause("", "Another cause"))),
        (false, mk_failure("Invalid", 422).with_causes(cause("", "Too large resource version"))),
        (false, Status::expired("too old resource version: 7 (9)")),
        (false, Status::success()),
    ] {
        assert_eq!(status.is_too_large_version(), is, "{status:?}");
    }
}

#[test]
fn a_server_says_how_long_to_wait() {
    let seconds = |status: Status| status.retry_after().map(|wait| wait.as_secs());
    assert_eq!(seconds(Status::too_many_requests("later", 7)), Some(7));
    assert_eq!(seconds(Status::too_many_requests("later", 0)), None);
    assert_eq!(seconds(Status::too_large_resource_version(&2.into(), &1.into())), Some(1));
    assert_eq!(seconds(Status::server_timeout("pods", "", "list", 0)), Some(0), "at once is an answer too");
    assert_eq!(seconds(mk_failure("ServerTimeout", 500)), None, "but not without details");
    assert_eq!(seconds(Status::not_found("pods", "", "x")), None);
}

#[test]
fn constructors_say_what_users_of_kubectl_know() {
    let cause =
        |field: &str, message: &str| StatusCause::new(StatusCause::FIELD_VALUE_INVALID, field, message);
    for (status, code, message) in [
        (Status::unauthorized("Unauthorized"), 401, "Unauthorized"),
        (Status::forbidden("pods", "", "x", "no access"), 403, r#"pods "x" is forbidden: no access"#),
        (
            Status::forbidden("deployments", "apps", "", "no access"),
            403,
            "deployments.apps is forbidden: no access",
        ),
        (Status::forbidden("", "", "", "no access"), 403, "forbidden: no access"),
        (Status::not_found("pods", "", "x"), 404, r#"pods "x" not found"#),
        (Status::already_exists("deployments", "apps", "x"), 409, r#"deployments.apps "x" already exists"#),
        (
            Status::conflict("pods", "", "x", "stale"),
            409,
            r#"Operation cannot be fulfilled on pods "x": stale"#,
        ),
        (Status::apply_conflict("1 conflict", [cause(".spec", "kubectl")]), 409, "1 conflict"),
        (Status::gone("gone"), 410, "gone"),
        (Status::expired("too old"), 410, "too old"),
        (Status::invalid("Pod", "", "x", []), 422, r#"Pod "x" is invalid"#),
        (Status::invalid("Pod", "", "x", [cause("a", "b")]), 422, r#"Pod "x" is invalid: a: b"#),
        (
            Status::invalid("Job", "batch", "x", [cause("a", "b"), cause("", "c"), cause("a", "b")]),
            422,
            r#"Job.batch "x" is invalid: [a: b, c]"#,
        ),
        (
            Status::server_timeout("pods", "", "list", 2),
            500,
            "The list operation against pods could not be completed at this time, please try again.",
        ),
        (Status::timeout("slow", 0), 504, "Timeout: slow"),
        (
            Status::too_large_resource_version(&"99999999999999999999".into(), &7.into()),
            504,
            "Timeout: Too large resource version: 99999999999999999999, current: 7",
        ),
        (Status::too_many_requests("later", 1), 429, "later"),
        (Status::bad_request("what?"), 400, "what?"),
        (
            Status::method_not_allowed("pods", "", "patch"),
            405,
            r#"patch is not supported on resources of kind "pods""#,
        ),
        (
            Status::not_acceptable(&["application/json", "application/yaml"]),
            406,
            "only the following media types are accepted: application/json, application/yaml",
        ),
        (Status::request_entity_too_large("limit is 3"), 413, "Request entity too large: limit is 3"),
        (
            Status::unsupported_media_type(&["application/json"]),
            415,
            "the body of the request was in an unknown format - accepted media types include: application/json",
        ),
        (Status::internal_error("disk"), 500, "Internal error occurred: disk"),
        (
            Status::store_read_error("pods", "", "/pods/a", [cause("/pods/a/x", "bad")]),
            500,
            r#"pods under "/pods/a" cannot be read from the storage"#,
        ),
        (Status::not_implemented("no"), 501, "no"),
        (Status::service_unavailable("not ready"), 503, "not ready"),
        (
            Status::from_response(502, " <html>\n<body>…"),
            502,
            r#"the server answered with HTTP code 502 and not with a Status: "<html>""#,
        ),
    ] {
        assert_eq!((status.message.as_str(), status.code), (message, code));
        assert_eq!(status.to_string(), message);
        assert!(!status.is_success());
        assert_eq!(status.reason.code().unwrap_or(code), code, "{message}");
        assert_eq!(read(&serde_json::to_string(&status).unwrap()), status);
    }
    let details = *Status::not_found("deployments", "apps", "x").details.unwrap();
    assert_eq!([details.name, details.group, details.kind], ["x", "apps", "deployments"]);
    let html = Status::from_response(404, "<html>");
    assert!(html.is_not_found() && html.details.unwrap().causes[0].message == "<html>");
    let expired = Status::expired("too old").with_continue("eyJ2");
    assert_eq!(read(&serde_json::to_string(&expired).unwrap()).metadata.continue_token, "eyJ2");
}

#[test]
fn an_error_is_one_line_that_is_never_empty() {
    for (status, line) in [
        (Status::bad_request("  a\n\tb\r\n\nc "), "a b c"),
        (Status::bad_request("\n"), "BadRequest (HTTP code 400)"),
        (mk_failure("Tired", 0), "Tired"),
        (mk_failure("", 502), "Failure with HTTP code 502"),
        (mk_failure("", 0), "Failure without a message"),
        (Status::success(), "Success without a message"),
    ] {
        assert_eq!(status.to_string(), line);
    }
    assert!(size_of::<Status>() <= 96, "an error type is moved often: {} bytes", size_of::<Status>());
}
