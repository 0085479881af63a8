//! What is found by which name, and when a server is asked.

use std::{pin::pin, time::Duration};

use crate::support::canned::Canned;
use futures_util::{FutureExt, StreamExt, future::join_all, stream};
use informer::{
    discovery::{Catalog, Discovery, ResolveError, ServedResource},
    source::SourceError,
};
use informer_apiserver::{ApiServer, Fault, Rule, RuleId};
use informer_model::{ResourceArg, ResourceArgError, Status};
use informer_testing::custom_resource;
use tokio::time::{Instant, timeout};

/// A round is a document for the core group and one for all others.
const ROUND: u64 = 2;

fn name(text: &str) -> ResourceArg {
    text.parse().expect("a name")
}

fn mk_server() -> ApiServer {
    ApiServer::builder().seed(1).build()
}

/// Lets every answer come a second later, and counts them.
fn slow(server: &ApiServer) -> RuleId {
    server.faults().add(Rule::new(Fault::Delay(Duration::from_secs(1))))
}

fn put_websites(server: &ApiServer) {
    server.put(custom_resource("Website", &["ws"])).expect("a definition");
}

fn drop_websites(server: &ApiServer) {
    let key = "websites.example.com".parse().expect("a key");
    assert!(server.discard("apiextensions.k8s.io", "customresourcedefinitions", &key));
}

async fn catalog() -> Catalog {
    Discovery::new(mk_server().client()).catalog().await.expect("a catalog").as_ref().clone()
}

#[tokio::test]
async fn the_core_group_comes_first_with_all_that_is_known_of_a_resource() {
    let catalog = catalog().await;
    assert_eq!(catalog.resources[0].api.api_version, "v1");
    let pods = catalog.find(&name("pods")).expect("pods");
    assert_eq!((pods.api.kind.as_str(), pods.singular.as_str()), ("Pod", "pod"));
    assert_eq!((pods.short_names.as_slice(), pods.namespaced), (&["po".to_owned()][..], true));
    assert!(pods.categories.contains(&"all".to_owned()) && pods.verbs.contains(&"watch".to_owned()));
    assert_eq!((pods.name().as_str(), pods.singular_name().as_str()), ("pods", "pod"));
    let deployments = catalog.find(&name("deployments")).expect("deployments");
    assert_eq!(deployments.name(), "deployments.apps");
    assert_eq!(deployments.singular_name(), "deployment.apps");
    assert_eq!(deployments.resource(), "apps/v1/deployments".parse());
    assert!(!catalog.find(&name("nodes")).expect("nodes").namespaced);
}

#[tokio::test]
async fn everything_that_kubectl_understands_is_understood() {
    let catalog = catalog().await;
    for (typed, api_version, kind) in [
        ("pods", "v1", "Pod"),
        ("pod", "v1", "Pod"),
        ("po", "v1", "Pod"),
        ("pods.v1", "v1", "Pod"),
        ("v1/pods", "v1", "Pod"),
        ("deploy", "apps/v1", "Deployment"),
        ("deployments.apps", "apps/v1", "Deployment"),
        ("deploy.apps", "apps/v1", "Deployment"),
        ("deployments.v1.apps", "apps/v1", "Deployment"),
        ("apps/v1/deployments", "apps/v1", "Deployment"),
        ("apps/v1/deployment", "apps/v1", "Deployment"),
        ("events", "v1", "Event"),
        ("events.events.k8s.io", "events.k8s.io/v1", "Event"),
        ("ingressclass", "networking.k8s.io/v1", "IngressClass"),
    ] {
        let served = catalog.find(&name(typed)).expect(typed);
        assert_eq!(
            (served.api.api_version.as_str(), served.api.kind.as_str()),
            (api_version, kind),
            "{typed}"
        );
    }
}

#[tokio::test]
async fn a_slip_of_the_keyboard_is_answered_with_what_was_meant() {
    let mut catalog = catalog().await;
    for (typed, meant) in [
        ("psd", "pods"),
        ("deplyoments", "deployments.apps"),
        ("deployments.app", "deployments.apps"),
        ("deployments.v2.apps", "deployments.apps"),
        ("configmps", "configmaps"),
    ] {
        let error = catalog.find(&name(typed)).expect_err(typed);
        let ResolveError::Unknown { near, .. } = &error else { panic!("{error}") };
        assert!(near.iter().any(|name| name == meant), "{typed}: {error}");
    }
    let strange = name("quarks");
    let error = catalog.find(&strange).expect_err("no such thing").to_string();
    assert_eq!(error, "the server has no resource \"quarks\"; `kubectl api-resources` lists what it has");
    catalog.silent = vec!["metrics.k8s.io/v1".to_owned(), "\u{1b}[31m/v1".to_owned()];
    let error = catalog.find(&strange).expect_err("no such thing").to_string();
    assert!(error.ends_with("(these did not answer: metrics.k8s.io/v1, \\u{1b}[31m/v1)"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_watched_says_what_can_be_done_with_it() {
    let mut catalog = catalog().await;
    let offer = |catalog: &mut Catalog, verbs: &[String]| {
        let change = |served: &mut ServedResource| served.verbs = verbs.to_vec();
        catalog.resources.iter_mut().for_each(change);
        catalog.find(&name("pods")).expect_err("not to be watched").to_string()
    };
    let error = offer(&mut catalog, &["create".to_owned(), "list".to_owned()]);
    assert_eq!(error, "pods cannot be watched: the server offers create, list for it, not list and watch");
    assert!(offer(&mut catalog, &[]).contains("offers nothing for it"));
}

#[test]
fn a_text_that_is_no_name_says_where_it_is_wrong() {
    let wrong: Result<ResourceArg, ResourceArgError> = "po ds".parse();
    let wrong = wrong.expect_err("no name");
    assert_eq!(ResolveError::from(wrong.clone()).to_string(), wrong.to_string());
}

#[tokio::test]
async fn what_is_known_is_not_asked_for_again() {
    let server = mk_server();
    let asked = server.faults().add(Rule::new(Fault::OneByteAtATime));
    let discovery = Discovery::new(server.client());
    assert_eq!(server.faults().hits(asked), 0, "nobody wants to know yet");
    for known in ["pods", "deploy", "nodes"] {
        discovery.clone().resolve(&name(known)).await.expect(known);
    }
    discovery.catalog().await.expect("a catalog");
    assert_eq!(server.faults().hits(asked), ROUND);
    discovery.refresh().await.expect("a catalog");
    assert_eq!(server.faults().hits(asked), 2 * ROUND);
}

#[tokio::test]
async fn a_resource_that_is_new_is_found_and_one_that_is_gone_stays_until_a_refresh() {
    let server = mk_server();
    let discovery = Discovery::new(server.client());
    let websites = name("websites.v1.example.com");
    assert!(matches!(discovery.resolve(&websites).await, Err(ResolveError::Unknown { .. })));
    put_websites(&server);
    let served = discovery.resolve(&websites).await.expect("websites");
    assert_eq!((served.api.kind.as_str(), served.namespaced), ("Website", true));
    assert_eq!(discovery.resolve(&name("ws")).await.as_ref(), Ok(&served));

    drop_websites(&server);
    assert_eq!(discovery.resolve(&websites).await, Ok(served));
    discovery.refresh().await.expect("a catalog");
    assert!(matches!(discovery.resolve(&websites).await, Err(ResolveError::Unknown { .. })));
}

#[tokio::test(start_paused = true)]
async fn many_who_miss_at_once_share_two_rounds_at_most() {
    let server = mk_server();
    let (asked, discovery) = (slow(&server), Discovery::new(server.client()));
    let pods = name("pods");
    let first = join_all((0..50).map(|_| discovery.resolve(&pods))).await;
    assert!(first.iter().all(Result::is_ok));
    assert!(server.faults().hits(asked) <= 2 * ROUND, "{}", server.faults().hits(asked));

    let before = server.faults().hits(asked);
    let websites = name("websites.example.com");
    let missed = join_all((0..50).map(|_| discovery.resolve(&websites))).await;
    assert!(missed.iter().all(|missed| matches!(missed, Err(ResolveError::Unknown { .. }))));
    assert!(server.faults().hits(asked) - before <= 2 * ROUND);
}

#[tokio::test(start_paused = true)]
async fn whoever_misses_hears_of_what_was_asked_after_that() {
    let server = mk_server();
    let asked = slow(&server);
    let discovery = Discovery::new(server.client());
    let websites = name("websites.example.com");
    // The second answer of the first round never comes.
    server.faults().add(Rule::new(Fault::StallAfter(0)).nth([2]));
    let mut early = pin!(discovery.resolve(&websites));
    while server.faults().hits(asked) < ROUND {
        assert!(early.as_mut().now_or_never().is_none());
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    put_websites(&server);
    let (early, late) = tokio::join!(early, discovery.resolve(&websites));
    let given_up = SourceError::Unreachable("no answer within 30s".to_owned());
    assert_eq!(early, Err(ResolveError::Server(given_up)));
    assert_eq!(late.expect("websites").api.kind, "Website");
    assert_eq!(server.faults().hits(asked), 2 * ROUND);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_leaves_nothing_behind() {
    let server = mk_server();
    let discovery = Discovery::new(server.client());
    let pods = name("pods");
    server.faults().add(Rule::new(Fault::StallAfter(0)).times(1));
    assert!(timeout(Duration::from_secs(1), discovery.resolve(&pods)).await.is_err());
    let began = Instant::now();
    discovery.resolve(&pods).await.expect("pods");
    assert_eq!(began.elapsed(), Duration::ZERO, "nobody waits for the answer that never comes");
}

#[tokio::test(start_paused = true)]
async fn somebody_who_waits_and_does_not_go_on_holds_up_nobody() {
    let server = mk_server();
    slow(&server);
    let discovery = Discovery::new(server.client());
    let pods = name("pods");
    let mut idle: Vec<_> = (0..3).map(|_| Box::pin(discovery.resolve(&pods))).collect();
    for waiting in &mut idle {
        assert!(waiting.as_mut().now_or_never().is_none());
    }
    discovery.resolve(&name("nodes")).await.expect("nodes");
    for waiting in idle {
        waiting.await.expect("pods");
    }
    // As a stream of names makes them wait, one of which is asked for on the way.
    let names = ["websites", "gadgets", "pods"].map(name);
    let mut found = stream::iter(&names).map(|name| discovery.resolve(name)).buffered(3);
    while let Some(found) = found.next().await {
        let other = discovery.resolve(&name("quarks")).await;
        assert!(matches!(other, Err(ResolveError::Unknown { .. })));
        assert!(matches!(found, Ok(_) | Err(ResolveError::Unknown { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn a_round_that_fails_is_told_to_all_who_wait_and_leaves_what_was_known() {
    let server = mk_server();
    let discovery = Discovery::new(server.client());
    let pods = discovery.resolve(&name("pods")).await.expect("pods");
    let asked = slow(&server);
    let down = Status::service_unavailable("starting");
    server.faults().add(Rule::new(Fault::Status(down.clone())));
    let websites = name("websites");
    let missed = join_all((0..50).map(|_| discovery.resolve(&websites))).await;
    let expected = ResolveError::Server(SourceError::from(down));
    assert!(missed.iter().all(|missed| missed.as_ref() == Err(&expected)), "{missed:?}");
    assert!(expected.to_string().contains("starting"), "{expected}");
    assert!(server.faults().hits(asked) <= 2, "the first refusal ends a round");
    assert_eq!(discovery.resolve(&name("po")).await, Ok(pods));
    server.faults().clear();
    put_websites(&server);
    discovery.resolve(&websites).await.expect("websites");
}

#[tokio::test]
async fn f23_an_answer_of_somebody_else_is_told_from_one_of_a_server() {
    let html = "<!DOCTYPE html><title>Log in</title>";
    let list = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":"#;
    for (answer, words) in [
        (Canned::new(200, html).header("content-type", "text/html"), "<!DOCTYPE html>"),
        (Canned::json(html), "<!DOCTYPE html>"),
        (Canned::json(""), "it is empty"),
        (Canned::json("{}{}"), "goes on"),
        (Canned::json("{}"), "should list API groups"),
        (Canned::json("[1]"), "[1]"),
        (Canned::json(r#"{"kind":"Status","status":"Success"}"#), "should list API groups"),
        (Canned::json(format!("{list}7}}")), "APIGroupDiscoveryList"),
    ] {
        let error = Discovery::new(answer.serve().client()).catalog().await.expect_err(words);
        assert!(matches!(&error, SourceError::Malformed(text) if text.contains(words)), "{words}: {error:?}");
    }
    let cut = Canned::json(format!("{list}[")).serve();
    let error = Discovery::new(cut.client()).catalog().await.expect_err("half an answer");
    assert!(matches!(error, SourceError::Broken(_)), "{error:?}");
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_past_the_limit() {
    let endless = format!("{{\"kind\":\"{}", "x".repeat((64 << 20) + 1));
    let error =
        Discovery::new(Canned::json(endless).serve().client()).catalog().await.expect_err("too large");
    assert!(
        matches!(&error, SourceError::Malformed(text) if text.contains("over the limit of 67108864 bytes")),
        "{error:?}"
    );
}
