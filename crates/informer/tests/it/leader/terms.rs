//! Terms begin, go on, end and pass to another.

use std::time::Duration;

use informer::{leader::Role, model::ObjectKey};
use informer_apiserver::{ApiServer, Fault, Rule, Verb};
use informer_testing::Deadline;
use kube::api::PostParams;

use super::stage::{Candidate, Log, election, leases, seconds, spec, took};

#[tokio::test(start_paused = true)]
async fn the_first_candidate_leads_at_once_and_renews_its_term_every_retry_period() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    assert!(took(log.heard("ann leads 1")).await < 0.1);
    let first = spec(&server).await;
    assert_eq!(first.holder_identity.as_deref(), Some("ann"));
    assert_eq!((first.lease_duration_seconds, first.lease_transitions), (Some(15), Some(1)));
    seconds(60).await;
    let later = spec(&server).await;
    assert_ne!(first.renew_time, later.renew_time);
    assert_eq!((first.acquire_time, later.lease_transitions), (later.acquire_time, Some(1)));
    let updates = server.requests()[&("update", "leases".to_owned())];
    assert!((28..=31).contains(&updates), "{updates} renewals in a minute");
    assert!(ann.observer.is_leader() && ann.observer.health().is_healthy());
    assert_eq!(log.take(), "ann sees ann, ann leads 1");
    ann.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_given_back_is_taken_at_once_and_only_after_the_work_has_ended() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    let bob = Candidate::start(&server, "bob", &log);
    seconds(30).await;
    assert_eq!(log.take(), "ann sees ann, ann leads 1, bob sees ann");
    ann.end().await;
    assert_eq!(log.take(), "ann drops, ann: the term is over: the leader has resigned");
    assert_eq!(spec(&server).await.holder_identity.as_deref(), Some(""));
    assert!(took(log.heard("bob leads 2")).await < 4.5);
    bob.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_dead_leader_is_taken_after_the_lease_duration_and_not_before() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    let bob = Candidate::start(&server, "bob", &log);
    seconds(31).await; // ann has renewed about a second ago
    ann.die().await;
    let waited = took(log.heard("bob leads 2")).await;
    assert!((13.0..24.0).contains(&waited), "{waited}");
    bob.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_release_the_lease_stays_until_it_is_over() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::with(election(&server, "ann").release_on_stop(false), "ann", &log);
    log.heard("ann leads 1").await;
    ann.end().await;
    assert_eq!(spec(&server).await.holder_identity.as_deref(), Some("ann"));
    let bob = Candidate::start(&server, "bob", &log);
    assert!(took(log.heard("bob leads 2")).await >= 15.0);
    bob.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_with_the_name_of_a_dead_one_waits_and_gets_a_token_of_its_own() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let before = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    before.die().await;
    let again = Candidate::start(&server, "ann", &log);
    assert!(took(log.heard("ann leads 2")).await >= 15.0, "the one before might still lead");
    again.end().await;
}

#[tokio::test(start_paused = true)]
async fn of_two_living_processes_with_one_name_only_one_leads() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let (one, other) = (Candidate::start(&server, "ann", &log), Candidate::start(&server, "ann", &log));
    for _ in 0..300 {
        seconds(1).await;
        assert!(!(one.observer.is_leader() && other.observer.is_leader()));
    }
    assert!(!log.take().contains("leads 2"));
    one.end().await;
    other.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_others_write_into_the_metadata_is_kept_and_costs_no_term() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    for round in 0..10 {
        let mut lease = leases(&server).get("boss").await.unwrap();
        lease.metadata.labels.get_or_insert_default().insert(format!("round-{round}"), "1".to_owned());
        leases(&server).replace("boss", &PostParams::default(), &lease).await.unwrap();
        seconds(3).await;
    }
    assert_eq!(leases(&server).get("boss").await.unwrap().metadata.labels.unwrap().len(), 10);
    assert_eq!(log.take(), "ann sees ann, ann leads 1");
    assert!(ann.observer.health().is_healthy(), "{}", ann.observer.health());
    ann.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_or_emptied_by_hand_stops() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    for (holder, words) in [("eve", "\"eve\" has taken the Lease"), ("", "somebody has emptied the Lease")] {
        let deadline = Deadline::start();
        while !ann.observer.is_leader() {
            deadline.check("a leader");
            seconds(1).await;
        }
        let mut lease = leases(&server).get("boss").await.unwrap();
        lease.spec.get_or_insert_default().holder_identity = Some(holder.to_owned());
        leases(&server).replace("boss", &PostParams::default(), &lease).await.unwrap();
        log.heard(&format!("ann: the term is over: {words}")).await;
    }
    assert!(took(log.heard("ann leads 3")).await < 5.0);
    ann.end().await;
}

#[tokio::test(start_paused = true)]
async fn c35_after_its_deletion_the_lease_is_made_anew_when_nobody_can_lead_any_more_and_its_count_goes_on() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    let bob = Candidate::start(&server, "bob", &log);
    seconds(5).await;
    delete_lease(&server);
    log.take();
    log.heard("ann: the term is over: the Lease was deleted").await;
    let waited = took(async {
        let deadline = Deadline::start();
        while spec_of(&server).await != Some(2) {
            deadline.check("a new Lease");
            seconds(1).await;
        }
    })
    .await;
    assert!((12.0..26.0).contains(&waited), "{waited}");
    assert!(ann.observer.is_leader() != bob.observer.is_leader());
    ann.end().await;
    bob.end().await;
}

fn delete_lease(server: &ApiServer) {
    let boss = ObjectKey::new(Some("default"), "boss").unwrap();
    assert!(server.discard("coordination.k8s.io", "leases", &boss));
}

#[tokio::test(start_paused = true)]
async fn c35_who_makes_the_lease_anew_at_once_because_it_saw_none_has_a_greater_token() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    delete_lease(&server);
    let bob = Candidate::start(&server, "bob", &log);
    // The log takes no token that is not greater than those before it.
    log.heard("bob leads 2").await;
    log.heard("ann: the term is over: \"bob\" has taken the Lease").await;
    assert!(ann.observer.health().token < bob.observer.health().token);
    assert_eq!(spec(&server).await.lease_transitions, Some(1), "the count of a new Lease");
    ann.end().await;
    bob.end().await;
}

async fn spec_of(server: &ApiServer) -> Option<i32> {
    leases(server).get_opt("boss").await.unwrap()?.spec?.lease_transitions
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_hang_stops_by_itself_before_another_can_begin() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    let bob = Candidate::start(&server, "bob", &log);
    seconds(4).await;
    let hang = Fault::Delay(Duration::from_secs(3_600));
    let rule = server.faults().add(Rule::new(hang).resource("leases").verb(Verb::Update));
    let lasted = took(log.heard("ann: the term is over: it was not renewed within 10s")).await;
    assert!((7.9..=10.1).contains(&lasted), "{lasted}");
    assert!(!bob.observer.is_leader());
    assert_eq!(ann.observer.health().role, Role::Candidate);
    server.faults().remove(rule);
    seconds(30).await;
    assert!(ann.observer.is_leader() != bob.observer.is_leader(), "somebody leads again");
    ann.end().await;
    bob.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewal_hangs_tries_again_in_time_on_a_slow_server() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    let slow = Fault::Delay(Duration::from_millis(900));
    server.faults().add(Rule::new(slow).resource("leases"));
    for _ in 0..5 {
        let hang = Fault::Delay(Duration::from_secs(3_600));
        server.faults().add(Rule::new(hang).resource("leases").verb(Verb::Update).times(1));
        seconds(20).await;
        assert!(ann.observer.health().is_healthy(), "{}", ann.observer.health());
    }
    assert_eq!(log.take(), "ann sees ann, ann leads 1");
    ann.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_count_that_was_raised_by_hand_goes_on_from_there() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    let mut lease = leases(&server).get("boss").await.unwrap();
    lease.spec.get_or_insert_default().lease_transitions = Some(41);
    leases(&server).replace("boss", &PostParams::default(), &lease).await.unwrap();
    log.heard("ann leads 2").await;
    assert_eq!(spec(&server).await.lease_transitions, Some(42));
    ann.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_for_a_moment_costs_no_term() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    for fault in [Fault::Refuse, Fault::Reset, Fault::CutAfter(10), Fault::StallAfter(10), Fault::Html] {
        let rule = server.faults().add(Rule::new(fault.clone()).resource("leases"));
        seconds(4).await;
        server.faults().remove(rule);
        seconds(12).await;
        assert!(ann.observer.is_leader(), "after {fault:?}: {}", ann.observer.health());
        assert!(ann.observer.health().is_healthy(), "after {fault:?}: {}", ann.observer.health());
    }
    assert_eq!(log.take(), "ann sees ann, ann leads 1");
    ann.end().await;
}
