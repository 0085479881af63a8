//! Elections that cannot be, and what is said about them.

use std::time::Duration;

use informer::leader::{LeaderElection, LeaderElectionBuilder};
use informer_apiserver::ApiServer;

fn mk(namespace: &str, name: &str) -> LeaderElectionBuilder {
    LeaderElection::builder(ApiServer::builder().build().client(), namespace, name)
}

fn refusal(builder: LeaderElectionBuilder) -> String {
    builder.build().map(drop).expect_err("refused").to_string()
}

#[tokio::test]
async fn names_that_no_server_takes_are_refused() {
    for namespace in ["", "Shop", "a/b", "..", &"n".repeat(64)] {
        assert!(refusal(mk(namespace, "boss")).contains("cannot be the namespace of a Lease; give one"));
    }
    for name in ["", "Boss", "a/b", "-boss", &"n".repeat(254)] {
        assert!(refusal(mk("shop", name)).contains("cannot be the name of a Lease; give one"));
    }
    assert!(refusal(mk("shop", &"n".repeat(250))).contains("choose a shorter name"));
    assert!(refusal(mk("shop", "boss").identity("")).contains("give each process a name of its own"));
}

#[tokio::test]
async fn times_that_do_not_go_together_are_refused() {
    let seconds = Duration::from_secs;
    let cases = [
        (mk("shop", "boss").lease_duration(Duration::ZERO), "at least 1"),
        (mk("shop", "boss").lease_duration(Duration::MAX), "at most 2147483647"),
        (mk("shop", "boss").lease_duration(Duration::from_millis(15_500)), "give whole seconds"),
        (mk("shop", "boss").lease_duration(seconds(10)), "must be longer than the renew deadline"),
        (mk("shop", "boss").renew_deadline(Duration::MAX), "must be longer than the renew deadline"),
        (mk("shop", "boss").renew_deadline(Duration::ZERO), "must be longer than 1.2 times the retry period"),
        (mk("shop", "boss").renew_deadline(Duration::from_millis(2_400)), "must be longer than 1.2 times"),
        (mk("shop", "boss").retry_period(seconds(9)), "must be longer than 1.2 times the retry period"),
        (mk("shop", "boss").retry_period(Duration::MAX), "must be longer than 1.2 times the retry period"),
        (mk("shop", "boss").retry_period(Duration::ZERO), "give it 2 seconds or so"),
    ];
    for (builder, words) in cases {
        let refusal = refusal(builder);
        assert!(refusal.contains(words), "{words:?} is not in {refusal:?}");
        assert!(!refusal.contains('\n'));
    }
    let shortest = mk("shop", "boss").lease_duration(seconds(1)).renew_deadline(Duration::from_millis(500));
    shortest.retry_period(Duration::from_millis(100)).build().map(drop).expect("these do");
}

#[tokio::test]
async fn each_process_gets_a_name_of_its_own() {
    let name = || mk("shop", "boss").build().expect("good settings").observer().health().identity;
    let (one, other) = (name(), name());
    assert_ne!(one, other);
    assert!(
        one.split_once('_').is_some_and(|(host, chance)| !host.is_empty() && chance.len() == 16),
        "{one}"
    );
}
