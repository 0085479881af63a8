//! What becomes of a key after a call, and of a call after the stop.

use std::{
    future::{Ready, ready},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use informer::{
    controller::{Action, Controller},
    leader::LeaderElection,
    model::ObjectKey,
};
use informer_apiserver::ApiServer;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    controller::{Running, slow},
    stage::{Log, Stage, informer, put, seconds, server},
    support::key,
};

type Answer = Result<Action, String>;
/// When calls began, in seconds.
type Times = Arc<Mutex<Vec<u64>>>;

/// What a call for a key answers, in the order of the calls; nothing more after that.
fn answers(answers: impl IntoIterator<Item = Answer>) -> (Times, impl Fn(ObjectKey) -> Ready<Answer>) {
    let answers = Mutex::new(answers.into_iter().collect::<Vec<_>>().into_iter());
    let (times, began) = (Times::default(), Instant::now());
    let noted = Arc::clone(&times);
    let answer = move |_| {
        noted.lock().unwrap().push(began.elapsed().as_secs());
        ready(answers.lock().unwrap().next().unwrap_or(Ok(Action::AwaitChange)))
    };
    (times, answer)
}

#[tokio::test(start_paused = true)]
async fn c36_what_a_call_answers_replaces_what_the_one_before_it_asked_for() {
    let (later, failed) =
        (|seconds| Ok(Action::RequeueAfter(Duration::from_secs(seconds))), || Err("no".to_owned()));
    for (answer, expected) in [
        (Ok(Action::AwaitChange), &[0, 10][..]),
        (later(500), &[0, 10, 510]),
        // Its own delay, and nothing after it.
        (failed(), &[0, 10, 11]),
    ] {
        let server = server(&["shop/a"]);
        let stage = Stage::synced(&server, informer(&server)).await;
        let (times, reconcile) = answers([later(100), answer]);
        let controller = Running::start(slow(Controller::new("configs")).of(&stage.informer), reconcile);
        seconds(10).await;
        put(&server, "shop/a");
        seconds(1_000).await;
        assert_eq!(*times.lock().unwrap(), expected);
        controller.end().await.unwrap();
        stage.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c36_a_retry_that_waits_is_over_when_a_change_came_first_and_went_well() {
    let server = server(&["shop/a"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let failed = || Err("no".to_owned());
    let (times, reconcile) = answers([failed(), failed(), failed(), failed()]);
    let controller = Running::start(slow(Controller::new("configs")).of(&stage.informer), reconcile);
    seconds(10).await;
    put(&server, "shop/a");
    seconds(1_000).await;
    assert_eq!(*times.lock().unwrap(), [0, 1, 3, 7, 10], "the next one was due at 15");
    controller.end().await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_what_is_asked_for_does_not_come_while_a_call_runs_that_came_before_it() {
    let server = server(&["shop/a"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let (times, answer) = answers([Ok(Action::RequeueAfter(Duration::from_secs(10)))]);
    let reconcile = move |key| {
        let answer = answer(key);
        async {
            seconds(5).await;
            answer.await
        }
    };
    let controller = Running::start(Controller::new("configs").of(&stage.informer), reconcile);
    seconds(14).await; // the first call has ended at 5, the next one is due at 15
    put(&server, "shop/a");
    seconds(1_000).await;
    assert_eq!(*times.lock().unwrap(), [0, 14]);
    controller.end().await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_what_others_delay_in_the_queue_comes_whatever_calls_answer() {
    let server = server(&["shop/a"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let (times, reconcile) = answers([Ok(Action::RequeueAfter(Duration::from_secs(30)))]);
    let controller = Controller::new("configs").of(&stage.informer);
    let queue = controller.queue();
    let controller = Running::start(controller, reconcile);
    seconds(1).await;
    queue.add_after(key("shop/a"), Duration::from_secs(59));
    seconds(9).await;
    put(&server, "shop/a");
    seconds(1_000).await;
    assert_eq!(*times.lock().unwrap(), [0, 10, 60]);
    controller.end().await.unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_to_be_looked_at_again_at_once_is_no_failure() {
    let server = server(&["shop/a"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let (times, reconcile) = answers((0..8).map(|_| Ok(Action::RequeueAfter(Duration::ZERO))));
    let controller = Controller::new("configs").of(&stage.informer);
    let queue = controller.queue();
    let controller = Running::start(controller, reconcile);
    seconds(60).await;
    assert_eq!(times.lock().unwrap().len(), 9);
    assert_eq!((queue.stats().retries, queue.failures(&key("shop/a"))), (0, 0));
    controller.end().await.unwrap();
    stage.end().await;
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("the shop is closed since {0}")]
struct Closed(u32);

#[tokio::test(start_paused = true)]
async fn c36_who_is_told_of_a_failure_gets_the_error_itself() {
    let server = server(&["shop/a"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let told = Log::default();
    let log = told.clone();
    let controller = Controller::new("configs").of(&stage.informer).on_failure(move |_, failure| {
        assert_eq!(failure.cause::<String>(), None);
        log.note(format!("{}:{:?}", failure.panicked, failure.cause::<Closed>()));
    });
    let (stop, calls) = (CancellationToken::new(), AtomicUsize::new(0));
    let ended = tokio::spawn(controller.run(stop.clone(), move |_| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        async move {
            match call {
                0 => Err(Closed(7)),
                1 => panic!("for this test"),
                _ => Ok(Action::AwaitChange),
            }
        }
    }));
    seconds(10).await;
    assert_eq!(told.take(), "false:Some(Closed(7)) true:None");
    stop.cancel();
    ended.await.unwrap().unwrap();
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn c36_calls_of_a_leader_may_end_after_the_stop_without_being_asked_for() {
    let server = server(&["shop/a"]);
    let stage = Stage::synced(&server, informer(&server)).await;
    let client = ApiServer::builder().build().client();
    let election = LeaderElection::builder(client, "default", "boss").build().unwrap();
    let (observer, stop, log) = (election.observer(), CancellationToken::new(), Log::default());
    let (noted, stopping, configs) = (log.clone(), stop.clone(), stage.informer.clone());
    let ended = tokio::spawn(election.run_while_leader(stop.clone(), move |leadership| {
        let noted = noted.clone();
        Controller::new("configs").of(&configs).run(stopping.clone(), move |_| {
            let (noted, leadership) = (noted.clone(), leadership.clone());
            async move {
                noted.note("begin");
                seconds(19).await;
                noted.note(format!("end:{}", leadership.fence().is_ok()));
                Ok::<_, String>(Action::AwaitChange)
            }
        })
    }));
    seconds(1).await;
    stop.cancel();
    ended.await.unwrap().expect("the controller has ended by itself").unwrap();
    assert_eq!(log.take(), "begin end:true");
    assert!(!observer.is_leader());
    stage.end().await;
}
