//! How it ends.

use super::start_on;
use crate::command::{Server, pod};

#[tokio::test(flavor = "multi_thread")]
async fn signals_end_it_cleanly() {
    let server = Server::with_pods().await;
    for signal in ["-INT", "-TERM"] {
        let mut watch = start_on(&server, &["pods"]);
        watch.said("synced");
        watch.signal(signal);
        let (code, out, said) = watch.end();
        assert_eq!((code, said), (Some(0), Vec::new()), "{signal}");
        assert_eq!(out.lines().count(), 2, "nothing of what was told is lost: {out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_while_it_waits_for_the_server() {
    let server = Server::start().await;
    server.api.shutdown();
    let mut watch = start_on(&server, &["pods", "--timeout", "1h"]);
    watch.said("trying again for 3600 s");
    watch.signal("-INT");
    assert_eq!(watch.end().0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_who_has_seen_enough_ends_it_quietly() {
    let server = Server::with_pods().await;
    let mut watch = start_on(&server, &["pods"]);
    watch.line();
    watch.said("synced");
    watch.hang_up();
    server.put(pod("web-2", "Pending"));
    let (code, _, said) = watch.end();
    assert_eq!((code, said), (Some(0), Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_who_does_not_read_does_not_keep_it_from_ending() {
    let server = Server::start().await;
    for at in 0..3_000 {
        server.put(pod(&format!("web-{at}"), "Running"));
    }
    let mut watch = start_on(&server, &["pods", "-o", "yaml"]);
    watch.line();
    watch.signal("-INT");
    // The pipe is read only after the process has ended.
    let (code, _, _) = watch.end_unread();
    assert_eq!(code, Some(0));
}
