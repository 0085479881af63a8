//! Work that runs while its process leads.

use std::{future::poll_fn, panic::AssertUnwindSafe, task::Poll, time::Duration};

use futures_util::FutureExt;
use informer::leader::{Callbacks, LeaderElection, Lost, Stale};
use informer_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};
use serde_json::json;
use tokio::time::{advance, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::stage::{Candidate, Log, NotedDrop, election, seconds, spec, took};

#[tokio::test(start_paused = true)]
async fn work_that_ends_gives_its_value_and_the_lease_back() {
    let (server, stop) = (ApiServer::builder().build(), CancellationToken::new());
    let election = election(&server, "ann").build().unwrap();
    let value = election.run_while_leader(stop, |leadership| async move { leadership.fence().is_ok() }).await;
    assert_eq!(value, Some(true));
    let spec = spec(&server).await;
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some(""), Some(1)));
}

#[tokio::test(start_paused = true)]
async fn work_whose_term_is_lost_is_dropped_and_begins_anew_with_the_next_term() {
    let (server, log, stop) = (ApiServer::builder().build(), Log::default(), CancellationToken::new());
    let election = election(&server, "ann").build().unwrap();
    let notes = log.clone();
    let running = tokio::spawn(election.run_while_leader(stop.clone(), move |leadership| {
        let notes = notes.clone();
        async move {
            let _dropped = NotedDrop(notes.clone(), "dropped".to_owned());
            notes.note(format!("term {}", notes.count(leadership.token())));
            loop {
                sleep(Duration::from_millis(100)).await;
                assert!(leadership.fence().is_ok(), "polled after the end of its term");
            }
        }
    }));
    log.heard("term 1").await;
    let rule = server.faults().add(Rule::new(Fault::Refuse).resource("leases"));
    log.heard("dropped").await;
    server.faults().remove(rule);
    log.heard("term 2").await;
    stop.cancel();
    let nothing: Option<()> = running.await.unwrap();
    assert_eq!(nothing, None);
    assert_eq!(log.take(), "term 1, dropped, term 2, dropped");
}

#[tokio::test(start_paused = true)]
async fn f31_work_that_comes_back_from_a_long_pause_gets_no_fence_and_is_not_polled_again() {
    let (server, log, stop) = (ApiServer::builder().build(), Log::default(), CancellationToken::new());
    let election = election(&server, "ann").build().unwrap();
    let observer = election.observer();
    let notes = log.clone();
    let work = move |leadership: informer::leader::Leadership| {
        let (notes, observer) = (notes.clone(), observer.clone());
        async move {
            if notes.count(leadership.token()) > 1 {
                return;
            }
            assert!(leadership.fence().is_ok() && observer.check(Duration::ZERO).is_ok());
            // The clock goes on, and neither a timer nor the election can run: as in a process that is stopped.
            advance(Duration::from_secs(20)).now_or_never();
            assert_eq!(leadership.fence(), Err(Lost::Deadline(Duration::from_secs(10))));
            assert_eq!(leadership.lost().await, Lost::Deadline(Duration::from_secs(10)));
            assert!(observer.check(Duration::from_secs(11)).is_ok() && !observer.is_leader());
            let overdue = observer.check(Duration::from_secs(5)).unwrap_err().to_string();
            assert!(
                overdue.contains("the term of \"ann\" for the Lease default/boss was over 10"),
                "{overdue}"
            );
            assert!(
                observer.health().to_string().contains("its term was over 10 s ago"),
                "{}",
                observer.health()
            );
            notes.note("late");
            // Awake again at once, before the runtime has looked at any timer.
            let mut woken = false;
            poll_fn(|context| {
                context.waker().wake_by_ref();
                if std::mem::replace(&mut woken, true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            notes.note("polled again");
        }
    };
    let running = tokio::spawn(election.run_while_leader(stop, work));
    let ended = timeout(Duration::from_secs(60), running).await.expect("a second term");
    assert_eq!(ended.expect("no panic"), Some(()));
    assert_eq!(log.take(), "late");
}

#[tokio::test(start_paused = true)]
async fn work_may_end_by_itself_within_the_grace_and_is_renewed_meanwhile() {
    let (server, log, stop) = (ApiServer::builder().build(), Log::default(), CancellationToken::new());
    let election = election(&server, "ann").grace(Duration::from_secs(60)).build().unwrap();
    let (notes, heard) = (log.clone(), stop.clone());
    let running = tokio::spawn(election.run_while_leader(stop.clone(), move |leadership| {
        let (notes, stop) = (notes.clone(), heard.clone());
        async move {
            notes.note("begun");
            stop.cancelled().await;
            seconds(40).await;
            leadership.fence().is_ok()
        }
    }));
    log.heard("begun").await;
    stop.cancel();
    let lasted = took(async { assert_eq!(running.await.unwrap(), Some(true)) }).await;
    assert!((40.0..41.0).contains(&lasted), "{lasted}");
    assert_eq!(spec(&server).await.holder_identity.as_deref(), Some(""));
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_within_the_grace_is_dropped() {
    let (server, log, stop) = (ApiServer::builder().build(), Log::default(), CancellationToken::new());
    let election = election(&server, "ann").grace(Duration::from_secs(5)).build().unwrap();
    let notes = log.clone();
    let running = tokio::spawn(election.run_while_leader(stop.clone(), move |_| {
        notes.note("begun");
        std::future::pending::<()>()
    }));
    log.heard("begun").await;
    stop.cancel();
    let lasted = took(async { assert_eq!(running.await.unwrap(), None) }).await;
    assert!((5.0..5.5).contains(&lasted), "{lasted}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_work_has_ended_stops_at_once() {
    let (server, stop) = (ApiServer::builder().build(), CancellationToken::new());
    let election =
        LeaderElection::builder(server.client(), "default", "boss").identity("ann").build().unwrap();
    let (log, told) = (Log::default(), stop.clone());
    let notes = log.clone();
    let running = tokio::spawn(async move {
        let callbacks = Callbacks::new().on_started(|_| async { notes.note("done") });
        election.run(told, callbacks).await;
    });
    log.heard("done").await;
    seconds(60).await;
    assert_eq!(spec(&server).await.holder_identity.as_deref(), Some("ann"), "the term goes on");
    stop.cancel();
    assert!(took(async { running.await.unwrap() }).await < 0.1);
    assert_eq!(spec(&server).await.holder_identity.as_deref(), Some(""));
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_work_comes_out_after_the_lease_was_given_back() {
    let (server, stop) = (ApiServer::builder().build(), CancellationToken::new());
    let early = election(&server, "ann").build().unwrap();
    let run = early.run_while_leader(stop.clone(), |_| -> std::future::Ready<()> { panic!("as planned") });
    let panic = AssertUnwindSafe(run).catch_unwind().await.unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"as planned"));
    assert_eq!(spec(&server).await.holder_identity.as_deref(), Some(""));

    let log = Log::default();
    let callbacks = Callbacks::new()
        .on_started(|_| async { panic!("as planned") })
        .on_stopped(|why| log.note(why.to_string()))
        .on_new_leader(|_| panic!("nobody minds"));
    let late = election(&server, "bob").build().unwrap();
    let panic = AssertUnwindSafe(late.run(stop, callbacks)).catch_unwind().await.unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"as planned"));
    let spec = spec(&server).await;
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some(""), Some(2)));
    assert_eq!(log.take(), "the term is over: the leader has resigned");
}

#[tokio::test(start_paused = true)]
async fn callbacks_come_in_the_order_of_what_happened() {
    let (server, log) = (ApiServer::builder().build(), Log::default());
    let ann = Candidate::start(&server, "ann", &log);
    log.heard("ann leads 1").await;
    let bob = Candidate::start(&server, "bob", &log);
    seconds(5).await;
    // Ann's renewals are refused; bob's looks are not.
    let rule = server.faults().add(Rule::new(Fault::Refuse).verb(Verb::Update).resource("leases"));
    log.heard("ann: the term is over: it was not renewed within 10s").await;
    server.faults().remove(rule);
    log.heard("ann leads 2").await;
    ann.end().await;
    log.heard("bob leads 3").await;
    bob.end().await;
    let expected = [
        "ann sees ann",
        "ann leads 1",
        "bob sees ann",
        "ann drops",
        "ann: the term is over: it was not renewed within 10s",
        "ann leads 2",
        "ann drops",
        "ann: the term is over: the leader has resigned",
        "bob sees bob",
        "bob leads 3",
        "bob drops",
        "bob: the term is over: the leader has resigned",
    ];
    assert_eq!(log.take(), expected.join(", "));
}

#[tokio::test(start_paused = true)]
async fn an_election_that_is_dropped_ends_its_term() {
    let (server, stop) = (ApiServer::builder().build(), CancellationToken::new());
    let (send, kept) = tokio::sync::oneshot::channel();
    let mut send = Some(send);
    let election = election(&server, "ann").build().unwrap();
    let run = election.run_while_leader(stop, |leadership| {
        let _ = send.take().expect("one term").send(leadership);
        std::future::pending::<()>()
    });
    assert!(timeout(Duration::from_secs(1), run).await.is_err());
    let leadership = kept.await.unwrap();
    assert_eq!(leadership.fence(), Err(Lost::Resigned));
    assert!(leadership.cancellation().is_cancelled());
    assert_eq!(spec(&server).await.holder_identity.as_deref(), Some("ann"), "nobody could give it back");
}

#[tokio::test(start_paused = true)]
async fn f31_a_write_of_an_earlier_term_is_refused_by_the_object_and_by_the_server() {
    let server = ApiServer::builder().build();
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    let map = serde_json::from_value(json!({ "metadata": { "name": "settings" } })).unwrap();
    let empty = maps.create(&PostParams::default(), &map).await.unwrap();

    let fence_of = async |name| {
        let election = election(&server, name).build().unwrap();
        election
            .run_while_leader(CancellationToken::new(), |term| async move { term.fence() })
            .await
            .unwrap()
            .unwrap()
    };
    let (earlier, later) = (fence_of("ann").await, fence_of("bob").await);
    assert!(earlier.token() < later.token());

    let mut written = empty.clone();
    later.check(&written.metadata).unwrap();
    later.stamp(&mut written.metadata);
    let written = maps.replace("settings", &PostParams::default(), &written).await.unwrap();
    // The earlier leader has read the object before that, and writes after it.
    let mut late = empty;
    earlier.check(&late.metadata).unwrap();
    earlier.stamp(&mut late.metadata);
    let conflict = maps.replace("settings", &PostParams::default(), &late).await.unwrap_err();
    assert!(matches!(conflict, kube::Error::Api(status) if status.code == 409));
    // It reads the object anew.
    let stale = earlier.check(&written.metadata).unwrap_err();
    assert!(
        matches!(stale, Stale::Newer { own, found, .. } if (own, found) == (earlier.token(), later.token()))
    );
    assert_eq!(later.check(&written.metadata), Ok(()));
}
