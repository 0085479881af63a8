//! What becomes of events when the program ends.

use std::time::Duration;

use informer::events::{Limits, RecordedEvent};
use informer_apiserver::{Fault, Verb};
use tokio::time::{Instant, sleep};
use tracing::Level;

use super::{
    log_lines::LogLines,
    stage::{HOUR, MINUTE, SECOND, Stage, check, events, mk, settle},
};

#[tokio::test(start_paused = true)]
async fn what_was_recorded_before_the_stop_is_sent() {
    let stage = Stage::run();
    for number in 0..500 {
        stage.record(&format!("map-{number}"), "");
    }
    for _ in 0..10 {
        stage.record("map-7", "");
    }
    let told = Instant::now();
    let stats = stage.end().await;
    assert_eq!((stats.sent, stats.aggregated, stats.waiting()), (500, 10, 0));
    assert_eq!(told.elapsed(), Duration::ZERO, "and that is the end of it");
}

#[tokio::test(start_paused = true)]
async fn counts_that_wait_for_their_time_are_written_at_the_stop() {
    let stage = Stage::run();
    stage.record("settings", "again");
    settle().await;
    stage.record("settings", "again");
    settle().await;
    assert_eq!(stage.notes().await, ["again ×1"]);
    stage.stop.cancel();
    settle().await;
    assert_eq!(stage.notes().await, ["again ×2"]);
    stage.record("settings", "too late");
    assert_eq!(stage.end().await.dropped, 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_waited_for_a_few_seconds() {
    let log = LogLines::default();
    let _listening = log.listen();
    for fault in [Fault::StallAfter(0), Fault::Refuse, Fault::Delay(HOUR)] {
        let stage = Stage::run();
        stage.fault(fault, &[Verb::Create], |rule| rule);
        for number in 0..30 {
            stage.record(&format!("map-{number}"), "");
        }
        sleep(MINUTE).await;
        let told = Instant::now();
        stage.stop.cancel();
        stage.running.await.expect("no panic");
        assert_eq!(told.elapsed(), 5 * SECOND);
        let stats = stage.recorder.stats();
        assert_eq!((stats.dropped, stats.waiting()), (30, 0));
        let lines = log.take(Level::WARN);
        let last = lines.last().expect("a line");
        assert!(last.contains("left=30") && last.contains("website-controller"), "{last}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_waits_for_a_server_tries_once_more_at_the_stop() {
    let stage = Stage::run();
    let down = stage.fault(Fault::Refuse, &[Verb::Create], |rule| rule);
    stage.record("settings", "");
    sleep(MINUTE).await;
    stage.server.faults().remove(down);
    let told = Instant::now();
    assert_eq!(stage.end().await.sent, 1);
    assert_eq!(told.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn without_a_time_to_drain_the_end_is_at_once() {
    let limits = Limits { drain: Duration::ZERO, ..Limits::default() };
    let stage = Stage::run_with(|builder| builder.limits(limits));
    stage.fault(Fault::Delay(SECOND), &[Verb::Create], |rule| rule);
    stage.record("settings", "");
    settle().await;
    let told = Instant::now();
    stage.stop.cancel();
    stage.running.await.expect("no panic");
    assert!(told.elapsed() <= Duration::from_millis(1));
    assert_eq!(stage.recorder.stats().dropped, 1);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_is_dropped_takes_nothing_more_in_and_nobody_waits_for_it() {
    let (server, recorder, delivery) = Stage::build(|builder| builder);
    recorder.record(&mk("settings"), RecordedEvent::normal("Changed", ""));
    drop(delivery);
    recorder.record(&mk("settings"), RecordedEvent::normal("Changed", ""));
    recorder.flush(Duration::ZERO).await.expect("nothing to wait for");
    assert_eq!((recorder.stats().dropped, recorder.stats().waiting()), (2, 0));
    check(&events(&server).await, recorder.stats());

    let stage = Stage::run();
    stage.fault(Fault::Delay(HOUR), &[Verb::Create], |rule| rule);
    stage.record("settings", "");
    settle().await;
    let flushing = tokio::spawn({
        let recorder = stage.recorder.clone();
        async move { recorder.flush(HOUR).await }
    });
    settle().await;
    stage.running.abort();
    flushing.await.expect("no panic").expect("given up");
    assert_eq!(stage.recorder.stats().dropped, 1);
}
