//! Rules: which requests they fit, when they apply, in which order, and how they are counted.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use informer_apiserver::{ApiServer, Fault, Rule, Verb};
use informer_model::Status;
use tower_service::Service;

use crate::{
    client::{Watch, code},
    objects::{MAPS, mk_server, put_maps},
};

/// A fault that can be told from all others, by its code.
fn mk_fault(code: u16) -> Fault {
    let mut status = Status::internal_error("a fault");
    status.code = code;
    Fault::Status(status)
}

const FAULT: u16 = 599;

async fn struck(server: &ApiServer, path: &str) -> bool {
    code(server, path).await == FAULT
}

/// The code of an answer to any method.
async fn send(server: &ApiServer, method: &str, path: &str) -> u16 {
    let request =
        Request::builder().method(method).uri(path).body(Full::new(Bytes::new())).expect("a request");
    server.service().call(request).await.expect("an answer").status().as_u16()
}

#[tokio::test]
async fn a_rule_with_a_verb_fits_only_that_verb() {
    let object = format!("{MAPS}/a");
    let watch = format!("{MAPS}?watch=true&resourceVersion=1");
    let requests = [
        (Verb::Get, "GET", object.as_str()),
        (Verb::List, "GET", MAPS),
        (Verb::Watch, "GET", &watch),
        (Verb::Create, "POST", MAPS),
        (Verb::Update, "PUT", &object),
        (Verb::Patch, "PATCH", &object),
        (Verb::Delete, "DELETE", &object),
        (Verb::DeleteCollection, "DELETE", MAPS),
    ];
    for (wanted, ..) in requests {
        let server = mk_server();
        let id = server.faults().add(Rule::new(mk_fault(FAULT)).verb(wanted));
        for (verb, method, path) in requests {
            assert_eq!(
                send(&server, method, path).await == FAULT,
                verb == wanted,
                "{wanted:?}: {method} {path}"
            );
        }
        assert_eq!(server.faults().hits(id), 1);
    }
}

#[tokio::test]
async fn a_rule_may_have_several_verbs() {
    let server = mk_server();
    server.faults().add(Rule::new(mk_fault(FAULT)).verb(Verb::List).verb(Verb::Get));
    assert!(struck(&server, MAPS).await && struck(&server, &format!("{MAPS}/a")).await);
    assert_ne!(send(&server, "POST", MAPS).await, FAULT);
}

#[tokio::test]
async fn a_rule_with_a_resource_fits_its_plural_name_with_or_without_the_group() {
    let core = "/api/v1/namespaces/default/events";
    let grouped = "/apis/events.k8s.io/v1/namespaces/default/events";
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    for (resource, expected) in [
        ("events", [true, true, false]),
        ("events.events.k8s.io", [false, true, false]),
        ("events.", [true, false, false]),
        ("deployments.apps", [false, false, true]),
        ("deployments", [false, false, true]),
        ("deployments.extensions", [false, false, false]),
        ("deployment", [false, false, false]),
    ] {
        let server = mk_server();
        server.faults().add(Rule::new(mk_fault(FAULT)).resource(resource));
        for (path, expected) in [core, grouped, deployments].into_iter().zip(expected) {
            assert_eq!(struck(&server, path).await, expected, "{resource}: {path}");
        }
    }
}

#[tokio::test]
async fn a_rule_with_a_namespace_fits_requests_for_that_namespace() {
    let server = mk_server();
    server.faults().add(Rule::new(mk_fault(FAULT)).namespace("default"));
    assert!(struck(&server, MAPS).await && struck(&server, &format!("{MAPS}/a")).await);
    assert!(!struck(&server, "/api/v1/namespaces/kube-system/configmaps").await);
    assert!(!struck(&server, "/api/v1/configmaps").await, "that is all namespaces");
    assert!(!struck(&server, "/api/v1/namespaces/default").await, "a namespace is in none");
}

#[tokio::test]
async fn a_rule_with_a_subresource_fits_that_part_and_one_without_fits_all() {
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let parts = ["/web", "/web/status", "/web/scale", ""].map(|part| format!("{deployments}{part}"));
    for (subresource, expected) in [
        (Some("status"), [false, true, false, false]),
        (Some("scale"), [false, false, true, false]),
        (Some(""), [true, false, false, true]),
        (None, [true; 4]),
    ] {
        let server = mk_server();
        let rule = Rule::new(mk_fault(FAULT)).resource("deployments");
        server.faults().add(match subresource {
            Some(subresource) => rule.subresource(subresource),
            None => rule,
        });
        for (path, expected) in parts.iter().zip(expected) {
            assert_eq!(struck(&server, path).await, expected, "{subresource:?}: {path}");
        }
        assert!(!struck(&server, "/version").await, "{subresource:?}");
    }
}

#[tokio::test]
async fn a_rule_with_a_client_fits_its_user_agent_by_the_whole_of_it_or_its_first_name() {
    let kubectl = "kubectl/v1.34.1 (linux/amd64) kubernetes/abc";
    for (client, agent, expected) in [
        ("kubectl", kubectl, true),
        (kubectl, kubectl, true),
        ("a", "a", true),
        ("a", "a b", true),
        ("kube", kubectl, false),
        ("kubernetes", kubectl, false),
        ("kubectl", "", false),
    ] {
        let server = mk_server();
        server.faults().add(Rule::new(mk_fault(FAULT)).client(client));
        for path in [MAPS, "/version"] {
            let request = Request::get(path).header("user-agent", agent).body(Full::new(Bytes::new()));
            let answer = server.service().call(request.expect("a request")).await.expect("an answer");
            assert_eq!(answer.status() == FAULT, expected, "{client:?}: {agent:?}");
            assert!(!struck(&server, path).await, "a client without a name");
        }
    }
}

#[tokio::test]
async fn clients_of_one_server_are_told_apart_by_their_names() {
    let server = mk_server();
    let [a, b] = ["a", "b"].map(|name| server.client_named(name));
    let lost = server.faults().add(Rule::new(Fault::DropEvent).client("a"));
    let refused = server.faults().add(Rule::new(mk_fault(FAULT)).verb(Verb::List).client("b"));
    let lists = async |client: &kube::Client| {
        client.request_text(Request::get(MAPS).body(Vec::new()).expect("a request")).await.is_ok()
    };
    assert!(lists(&a).await && !lists(&b).await && lists(&server.client()).await);
    let watch = async |client: &kube::Client| {
        let request = Request::get(format!("{MAPS}?watch=1&resourceVersion=1&timeoutSeconds=1"));
        client.request_text(request.body(Vec::new()).expect("a request")).await.expect("a watch")
    };
    put_maps(&server, &["m"]);
    tokio::time::pause();
    assert_eq!((watch(&a).await.lines().count(), watch(&b).await.lines().count()), (0, 1));
    assert_eq!((server.faults().hits(lost), server.faults().hits(refused)), (1, 1));
}

#[tokio::test]
async fn a_rule_about_nothing_special_fits_discovery_too_and_others_do_not() {
    let about_the_server =
        ["/", "/version", "/healthz", "/api", "/apis", "/api/v1", "/apis/apps", "/openapi/v3"];
    let server = mk_server();
    let everything = server.faults().add(Rule::new(mk_fault(FAULT)));
    for path in about_the_server {
        assert!(struck(&server, path).await, "{path}");
    }
    assert!(struck(&server, "/no/such/path").await);
    server.faults().remove(everything);
    server.faults().add(Rule::new(mk_fault(FAULT)).verb(Verb::Get));
    server.faults().add(Rule::new(mk_fault(FAULT)).resource("configmaps"));
    server.faults().add(Rule::new(mk_fault(FAULT)).namespace("default"));
    for path in about_the_server {
        assert!(!struck(&server, path).await, "{path}");
    }
}

#[tokio::test]
async fn times_and_nth_count_the_requests_that_fit() {
    let server = mk_server();
    let first = server.faults().add(Rule::new(mk_fault(598)).verb(Verb::List).times(2));
    let some = server.faults().add(Rule::new(mk_fault(FAULT)).verb(Verb::List).nth([1, 3, 3]));
    let mut codes = Vec::new();
    for _ in 0..6 {
        assert_eq!(code(&server, &format!("{MAPS}/a")).await, 404, "a get does not count");
        codes.push(code(&server, MAPS).await);
    }
    // What the first rule has answered, the second was not asked about.
    assert_eq!(codes, [598, 598, 599, 200, 599, 200]);
    assert_eq!((server.faults().hits(first), server.faults().hits(some)), (2, 2));
}

#[tokio::test]
async fn never_and_always_are_possible() {
    let server = mk_server();
    server.faults().add(Rule::new(mk_fault(FAULT)).times(0));
    server.faults().add(Rule::new(mk_fault(FAULT)).nth([]));
    server.faults().add(Rule::new(mk_fault(FAULT)).nth([0]));
    server.faults().add(Rule::new(mk_fault(FAULT)).probability(0.0));
    server.faults().add(Rule::new(mk_fault(FAULT)).probability(-3.0));
    server.faults().add(Rule::new(mk_fault(FAULT)).probability(f64::NAN));
    assert!(!struck(&server, MAPS).await);
    server.faults().add(Rule::new(mk_fault(FAULT)).probability(7.0));
    assert!(struck(&server, MAPS).await);
}

/// Which of a hundred requests a rule strikes.
async fn pattern(server: &ApiServer) -> Vec<bool> {
    let mut pattern = Vec::new();
    for _ in 0..100 {
        pattern.push(struck(server, MAPS).await);
    }
    pattern
}

#[tokio::test]
async fn chance_follows_from_the_seed_and_each_rule_has_its_own() {
    let rule = || Rule::new(mk_fault(FAULT)).probability(0.5).resource("configmaps");
    let with_seed = |seed| {
        let server = ApiServer::builder().seed(seed).build();
        server.faults().add(rule());
        server
    };
    let once = pattern(&with_seed(5)).await;
    assert_eq!(once, pattern(&with_seed(5)).await, "same seed, same pattern");
    assert_ne!(once, pattern(&with_seed(6)).await);
    let struck = once.iter().filter(|struck| **struck).count();
    assert!((25..75).contains(&struck), "{struck} of 100");

    let beside = with_seed(5);
    beside.faults().add(Rule::new(mk_fault(FAULT)).probability(0.5).resource("pods"));
    put_maps(&beside, &["a"]);
    let mut with_others = Vec::new();
    for _ in 0..100 {
        code(&beside, "/api/v1/pods").await;
        with_others.push(code(&beside, MAPS).await == FAULT);
    }
    assert_eq!(once, with_others, "what another rule does changes nothing");

    let second = ApiServer::builder().seed(5).build();
    let gone = second.faults().add(rule());
    second.faults().remove(gone);
    second.faults().add(rule());
    assert_ne!(once, pattern(&second).await, "another rule has other chances");
}

#[tokio::test]
async fn the_rule_that_was_added_first_has_the_first_word() {
    let server = mk_server();
    let first = server.faults().add(Rule::new(mk_fault(598)).times(1));
    let second = server.faults().add(Rule::new(mk_fault(597)).times(1));
    let third = server.faults().add(Rule::new(Fault::OneByteAtATime));
    assert_eq!((code(&server, MAPS).await, server.faults().hits(second)), (598, 0));
    assert_eq!((code(&server, MAPS).await, server.faults().hits(second)), (597, 1));
    assert_eq!((code(&server, MAPS).await, server.faults().hits(third)), (200, 1));
    assert_eq!(server.faults().hits(first), 1);
}

#[tokio::test]
async fn a_rule_that_is_removed_is_over_and_counts_no_more() {
    let server = mk_server();
    let faults = server.faults().clone();
    let [a, b] = [598, 597].map(|code| faults.add(Rule::new(mk_fault(code))));
    assert_eq!(code(&server, MAPS).await, 598);
    faults.remove(a);
    faults.remove(a);
    assert_eq!((faults.hits(a), code(&server, MAPS).await, faults.hits(b)), (0, 597, 1));
    faults.clear();
    assert_eq!((code(&server, MAPS).await, faults.hits(b)), (200, 0));
    let c = faults.add(Rule::new(mk_fault(596)));
    assert!(c != a && c != b, "a number is not used again");
}

#[tokio::test]
async fn a_rule_about_events_is_asked_for_each_event_of_the_watches_that_it_fits() {
    let server = mk_server();
    let id =
        server.faults().add(Rule::new(Fault::DropEvent).resource("configmaps").namespace("default").nth([2]));
    let mut watch = Watch::of(&server, "resourceVersion=0").await;
    put_maps(&server, &["a", "b", "c"]);
    assert_eq!(watch.now(), ["ADDED a", "ADDED c"]);
    assert_eq!(server.faults().hits(id), 1);
    let other = server.faults().add(Rule::new(Fault::DropEvent).resource("pods"));
    put_maps(&server, &["d"]);
    assert_eq!(watch.now(), ["ADDED d"]);
    assert_eq!(server.faults().hits(other), 0);
}
