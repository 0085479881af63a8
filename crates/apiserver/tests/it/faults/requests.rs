//! Faults that come instead of an answer, or before it.

use std::time::Duration;

use informer_apiserver::{Fault, Refused, Rule};
use informer_model::{Reason, Status};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::ListParams};
use tokio::time::Instant;

use crate::{
    client::{code, get, send},
    objects::{MAPS, mk_server},
};

#[tokio::test]
async fn a_refused_request_has_no_answer() {
    let server = mk_server();
    server.faults().add(Rule::new(Fault::Refuse).times(2));
    assert!(matches!(send(&mut server.service(), MAPS).await, Err(Refused)));
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let refused = maps.list(&ListParams::default()).await.expect_err("a failure");
    assert!(matches!(refused, kube::Error::Service(_)), "{refused:?}");
    assert_eq!(code(&server, MAPS).await, 200, "both times are over");
}

#[tokio::test]
async fn a_status_comes_instead_of_the_answer_with_its_code_and_its_retry_after() {
    let server = mk_server();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    for (expected, retry_after, status) in [
        (401, None, Status::unauthorized("the token has expired")),
        (403, None, Status::forbidden("configmaps", "", "", "not any more")),
        (404, None, Status::not_found("configmaps", "", "a")),
        (410, None, Status::expired("too old")),
        (410, None, Status::gone("too old")),
        (429, Some("7"), Status::too_many_requests("slower", 7)),
        (500, None, Status::internal_error("broken")),
        (503, None, Status::service_unavailable("not ready")),
        (503, Some("2"), Status::service_unavailable("not ready").with_retry_after(2)),
        (504, Some("1"), Status::timeout("too slow", 1)),
    ] {
        let id = server.faults().add(Rule::new(Fault::Status(status.clone())));
        let (parts, body) = get(&server, MAPS).await;
        assert_eq!(parts.status, expected);
        assert_eq!(parts.headers["content-type"], "application/json");
        let header = parts.headers.get("retry-after").map(|value| value.to_str().expect("text"));
        assert_eq!(header, retry_after, "{status}");
        assert_eq!(serde_json::from_slice::<Status>(&body).expect("a Status"), status);
        match maps.list(&ListParams::default()).await {
            Err(kube::Error::Api(seen)) => {
                assert_eq!(
                    (seen.code, Reason::from(seen.reason.as_str())),
                    (expected, status.reason.clone())
                );
            }
            other => panic!("{other:?} instead of {status}"),
        }
        server.faults().remove(id);
    }
}

#[tokio::test]
async fn a_proxy_answers_with_a_page_and_200() {
    let server = mk_server();
    server.faults().add(Rule::new(Fault::Html));
    let (parts, body) = get(&server, MAPS).await;
    assert_eq!(
        (parts.status.as_u16(), &parts.headers["content-type"]),
        (200, &"text/html".parse().expect("a header"))
    );
    assert!(body.starts_with(b"<html>"));
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    let unread = maps.list(&ListParams::default()).await.expect_err("no list");
    assert!(matches!(unread, kube::Error::SerdeError(_)), "{unread:?}");
}

#[tokio::test(start_paused = true)]
async fn a_delayed_answer_comes_as_much_later_and_not_sooner() {
    let server = mk_server();
    server.faults().add(Rule::new(Fault::Delay(Duration::from_secs(40))).times(1));
    let start = Instant::now();
    assert_eq!(code(&server, MAPS).await, 200);
    assert_eq!(start.elapsed(), Duration::from_secs(40));
    assert_eq!(code(&server, MAPS).await, 200);
    assert_eq!(start.elapsed(), Duration::from_secs(40), "only the first one");
}

#[tokio::test(start_paused = true)]
async fn a_delay_counts_only_before_what_ends_the_request() {
    let server = mk_server();
    let (delay, failure) =
        (Fault::Delay(Duration::from_secs(5)), Fault::Status(Status::internal_error("broken")));
    server.faults().add(Rule::new(delay.clone()));
    server.faults().add(Rule::new(failure.clone()));
    let start = Instant::now();
    assert_eq!((code(&server, MAPS).await, start.elapsed()), (500, Duration::from_secs(5)));
    server.faults().clear();
    server.faults().add(Rule::new(failure));
    let unasked = server.faults().add(Rule::new(delay));
    let start = Instant::now();
    assert_eq!((code(&server, MAPS).await, start.elapsed()), (500, Duration::ZERO));
    assert_eq!(server.faults().hits(unasked), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_be_delayed_for_ever() {
    let server = mk_server();
    server.faults().add(Rule::new(Fault::Delay(Duration::MAX)));
    let answer = tokio::time::timeout(Duration::from_secs(1_000_000), code(&server, MAPS)).await;
    assert!(answer.is_err(), "nothing came");
}
