//! What goes wrong while it runs, and is got over.

use informer_apiserver::{Fault, Rule, Verb};
use informer_model::Status;

use super::start_on;
use crate::command::{Server, pod};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_ready_is_waited_for() {
    let server = Server::with_pods().await;
    server.api.faults().add(Rule::new(Fault::Status(Status::service_unavailable("starting"))).times(2));
    let mut watch = start_on(&server, &["pods"]);
    let said = watch.said("trying again for 30 s");
    assert!(said.contains("starting (503)"), "{said}");
    watch.said("synced: 2 pods");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_told_once_and_what_was_missed_is_made_up_for() {
    let server = Server::with_pods().await;
    let mut watch = start_on(&server, &["pods"]);
    watch.said("synced: 2 pods");
    watch.lines(2);

    let down = Status::service_unavailable("down for maintenance");
    server.api.faults().add(Rule::new(Fault::Status(down)).verb(Verb::List).verb(Verb::Watch));
    server.api.faults().add(Rule::new(Fault::StreamError(Status::expired("too old"))));
    server.put(pod("web-2", "Pending"));
    let said = watch.said("trouble: ");
    assert!(said.contains("down for maintenance (503)") && said.contains("trying again"), "{said}");
    server.discard("web-0");
    server.api.faults().clear();

    let mut missed = watch.lines(2);
    missed.sort();
    assert!(missed[0].starts_with("+ ADDED    default/web-2"), "{missed:?}");
    assert!(missed[1].starts_with("- DELETED  default/web-0"), "{missed:?}");
    assert!(missed[1].ends_with("noticed late: its final state is unknown"), "{missed:?}");
    // An event shows that the watch works again.
    server.put(pod("web-2", "Running"));
    watch.said("recovered: the watch goes on");
    watch.signal("-TERM");
    let (code, _, said) = watch.end();
    assert_eq!((code, said), (Some(0), Vec::new()), "no line for each attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_there_when_asked_for_and_says_nothing_otherwise() {
    let server = Server::with_pods().await;
    start_on(&server, &["pods", "-v"]).said("DEBUG");
    let watch = start_on(&server, &["pods"]);
    watch.signal("-TERM");
    let (_, _, said) = watch.end();
    assert!(said.iter().all(|line| line.starts_with("watching ") || line.starts_with("synced")), "{said:?}");
}
