//! What goes wrong is said in words, logged once, and tried again without haste.

use informer::{
    leader::{LeaderElection, Role},
    model::Status,
};
use informer_apiserver::{ApiServer, Fault, Rule, Verb};
use informer_testing::Deadline;
use serde_json::{Value, json};
use tracing::Level;

use super::{
    canned::Canned,
    log_lines::LogLines,
    stage::{Candidate, Log, election, seconds, spec, took},
};

fn put(server: &ApiServer, spec: Value) {
    let metadata = json!({ "name": "boss", "namespace": "default" });
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec });
    server.put(lease).expect("written");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_use_leases_is_told_what_to_grant_and_asks_without_haste() {
    let (server, log, lines) = (ApiServer::builder().build(), Log::default(), LogLines::default());
    let _listening = lines.listen();
    let why = "User \"eve\" cannot use it";
    let no = Status::forbidden("leases", "coordination.k8s.io", "boss", why);
    let rule = server.faults().add(Rule::new(Fault::Status(no)).resource("leases"));
    let ann = Candidate::start(&server, "ann", &log);
    seconds(120).await;
    let health = ann.observer.health();
    assert!(!health.is_healthy() && health.role == Role::Candidate);
    let text = health.to_string();
    for part in [
        "the Lease default/boss: \"ann\" is a candidate for 2 min 0 s, nobody was seen to lead",
        "in trouble for",
        "cannot get the Lease default/boss: ",
        why,
        "grant the verbs get, create and update on leases of the group coordination.k8s.io in the namespace \"default\"",
        "trying again every 2s",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    let asked = server.requests()[&("get", "leases".to_owned())];
    assert!((25..=60).contains(&asked), "{asked} requests in two minutes");
    let warnings = lines.take(Level::WARN);
    assert!(warnings.len() == 1 && warnings[0].contains("grant the verbs"), "{warnings:#?}");

    server.faults().remove(rule);
    assert!(took(log.heard("ann leads 1")).await < 5.0);
    assert!(ann.observer.health().is_healthy());
    let notes = lines.take(Level::INFO);
    assert!(notes.iter().any(|note| note.contains("works again")), "{notes:#?}");
    assert_eq!(lines.take(Level::WARN), Vec::<String>::new());
    ann.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_in_a_missing_namespace_is_said_in_words_and_made_once_there_is_one() {
    let (server, log, lines) = (ApiServer::builder().build(), Log::default(), LogLines::default());
    let _listening = lines.listen();
    let client = server.client();
    let builder = LeaderElection::builder(client, "nowhere", "boss").identity("ann");
    let ann = Candidate::with(builder, "ann", &log);
    seconds(60).await;
    let text = ann.observer.health().to_string();
    assert!(
        text.contains("cannot create the Lease nowhere/boss: its namespace \"nowhere\" does not exist; create the namespace"),
        "{text}"
    );
    assert!(server.requests()[&("create", "leases".to_owned())] <= 31);
    assert_eq!(lines.take(Level::WARN).len(), 1);
    server
        .put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "nowhere" } }))
        .expect("written");
    assert!(took(log.heard("ann leads 1")).await < 5.0);
    ann.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_says_nothing_is_taken_at_once() {
    for empty in [json!({}), json!({ "holderIdentity": "" }), json!({ "leaseTransitions": 6 }), Value::Null] {
        let (server, log) = (ApiServer::builder().build(), Log::default());
        let count = empty["leaseTransitions"].as_i64().unwrap_or(0) + 1;
        put(&server, empty);
        let ann = Candidate::start(&server, "ann", &log);
        assert!(took(log.heard("ann leads 1")).await < 0.1);
        assert_eq!(spec(&server).await.lease_transitions.map(i64::from), Some(count));
        ann.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_with_nonsense_in_it_is_reported_and_taken_when_nobody_renews_it() {
    for duration in [json!(-5), json!(0), Value::Null] {
        let (server, log) = (ApiServer::builder().build(), Log::default());
        let spec =
            json!({ "holderIdentity": "old", "leaseDurationSeconds": duration, "leaseTransitions": -3 });
        put(&server, spec);
        let ann = Candidate::start(&server, "ann", &log);
        seconds(5).await;
        let text = ann.observer.health().to_string();
        assert!(text.contains("the Lease is held by \"old\" and says"), "{text}");
        assert!(text.contains("for its duration in seconds; 15s is taken instead"), "{text}");
        let waited = took(log.heard("ann leads 1")).await;
        assert!((9.9..20.0).contains(&waited), "{waited}");
        assert!(ann.observer.health().is_healthy());
        ann.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_for_years_is_respected_and_remarked_on() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    put(&server, json!({ "holderIdentity": "old", "leaseDurationSeconds": i32::MAX }));
    let ann = Candidate::start(&server, "ann", &log);
    seconds(3_600).await;
    assert_eq!(log.take(), "ann sees old");
    let text = ann.observer.health().to_string();
    assert!(text.contains("\"old\" was last seen to lead") && text.contains("delete the Lease if"), "{text}");
    ann.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_read_is_reported_with_what_to_do() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    put(&server, json!({ "holderIdentity": "old", "leaseDurationSeconds": "soon" }));
    let ann = Candidate::start(&server, "ann", &log);
    seconds(60).await;
    let text = ann.observer.health().to_string();
    assert!(text.contains("repair the Lease, or delete it: kubectl delete lease -n default boss"), "{text}");
    assert!(server.requests()[&("get", "leases".to_owned())] <= 31, "it must not spin");
    put(&server, json!({}));
    assert!(took(log.heard("ann leads 1")).await < 5.0);
    ann.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_count_of_terms_that_has_come_to_its_end_begins_anew_and_costs_nothing() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    put(&server, json!({ "leaseTransitions": i32::MAX }));
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    assert_eq!(spec(&server).await.lease_transitions, Some(1));
    seconds(60).await;
    ann.end().await;
    let bob = Candidate::start(&server, "bob", &log);
    log.heard("bob leads 2").await;
    bob.end().await;
    assert_eq!(spec(&server).await.lease_transitions, Some(2));
}

#[tokio::test]
async fn a_version_that_is_no_number_is_reported_for_it_would_be_the_token() {
    let metadata = json!({ "name": "boss", "namespace": "default", "resourceVersion": "etcd-7" });
    let lease =
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {} });
    let server = Canned::json(lease.to_string()).serve();
    let builder = LeaderElection::builder(server.client(), "default", "boss").identity("ann");
    let ann = Candidate::with(builder, "ann", &Log::default());
    let deadline = Deadline::start();
    while ann.observer.health().is_healthy() {
        deadline.check("trouble");
        tokio::task::yield_now().await;
    }
    let text = ann.observer.health().to_string();
    assert!(text.contains("the resourceVersion of the Lease is \"etcd-7\", which is no number"), "{text}");
    ann.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_problem_that_becomes_another_one_is_logged_again() {
    let (server, log, lines) = (ApiServer::builder().build(), Log::default(), LogLines::default());
    let _listening = lines.listen();
    server.faults().add(Rule::new(Fault::Refuse).resource("leases"));
    let ann = Candidate::start(&server, "ann", &log);
    seconds(60).await;
    server.faults().clear();
    server.faults().add(Rule::new(Fault::Status(Status::unauthorized("no"))).resource("leases"));
    seconds(60).await;
    let warnings = lines.take(Level::WARN);
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    assert!(warnings[1].contains("check the credentials"), "{warnings:#?}");
    ann.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_cannot_give_the_lease_back_ends_all_the_same() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    server
        .faults()
        .add(Rule::new(Fault::StallAfter(0)).verb(Verb::Update).verb(Verb::Get).resource("leases"));
    assert!(took(ann.end()).await <= 5.1);
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_that_was_carried_out_unheard_is_recognised() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    server.faults().add(Rule::new(Fault::CutAfter(1)).verb(Verb::Create).resource("leases").times(1));
    let ann = Candidate::start(&server, "ann", &log);
    // The first term was never known to have begun; the Lease is this process's own, so there is nobody to wait for.
    assert!(took(log.heard("ann leads 1")).await < 5.0);
    assert_eq!(spec(&server).await.lease_transitions, Some(2));
    ann.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_observer_says_what_goes_on_before_during_and_after() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let election = election(&server, "ann").build().unwrap();
    assert_eq!(election.observer().health().to_string(), "the Lease default/boss: \"ann\" has not started");
    let ann = Candidate::start(&server, "ann", &log);
    let bob = Candidate::start(&server, "bob", &log);
    seconds(61).await;
    let (leader, other) = if ann.observer.is_leader() {
        (&ann.observer, &bob.observer)
    } else {
        (&bob.observer, &ann.observer)
    };
    let name = leader.health().identity;
    assert_eq!(other.leader(), Some(name.clone()));
    let (text, token) = (leader.health().to_string(), leader.health().token.unwrap());
    assert!(
        text.starts_with(&format!(
            "the Lease default/boss: {name:?} leads for 1 min 1 s with token {token}, renewed"
        )),
        "{text}"
    );
    let text = other.health().to_string();
    assert!(
        text.ends_with(&format!("is a candidate for 1 min 1 s, {name:?} was last seen to lead")),
        "{text}"
    );
    let observer = ann.observer.clone();
    ann.end().await;
    bob.end().await;
    assert_eq!(observer.health().to_string(), "the Lease default/boss: \"ann\" has stopped");
}
