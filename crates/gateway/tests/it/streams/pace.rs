//! How fast events come: heartbeats, intervals, and clients that cannot keep up.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::events::{Events, MAPS, Rig, discard, put};

#[tokio::test(start_paused = true)]
async fn something_comes_every_ten_seconds_and_says_where_the_stream_is() {
    let rig = Rig::new();
    let (mut events, id) = rig.follow(&[("labelSelector", "app=none")]).await;
    let began = Instant::now();
    let beat = events.next().await.expect("a heartbeat");
    assert_eq!((&*beat.name, beat.id()), ("", &*id));
    assert_eq!(began.elapsed().as_secs(), 10);
    // Not for this client, but its place moves on.
    put(&rig.server, "a/one", "new");
    let beat = events.next().await.expect("a heartbeat");
    assert_eq!((&*beat.name, beat.id()), ("", &*rig.server.version().to_string()));
    assert_eq!(began.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn with_an_interval_many_changes_of_one_object_are_one() {
    let rig = Rig::new();
    put(&rig.server, "a/gone", "0");
    let (mut events, _) = rig.follow(&[("interval", "500ms")]).await;
    put(&rig.server, "a/one", "first");
    assert_eq!(events.shown(1).await, ["added one first"]);
    let began = Instant::now();
    for number in 1..=5 {
        put(&rig.server, "a/one", &number.to_string());
        put(&rig.server, "a/two", &number.to_string());
        put(&rig.server, "a/gone", &number.to_string());
    }
    put(&rig.server, "a/short", "0");
    discard(&rig.server, "a/short");
    discard(&rig.server, "a/gone");
    put(&rig.server, "a/last", "0");
    // Who comes and goes meanwhile was never there.
    for (shown, id) in [
        ("modified one 5", None),
        ("added two 5", None),
        ("deleted gone 5", None),
        ("added last 0", Some(rig.server.version().to_string())),
    ] {
        let event = events.event().await;
        assert_eq!((&*event.show(), event.id), (shown, id), "who has a part of it has none of it");
    }
    assert_eq!(began.elapsed().as_millis(), 500);
}

#[tokio::test(start_paused = true)]
async fn an_interval_holds_back_neither_heartbeats_nor_the_end() {
    let rig = Rig::new();
    let (mut events, _) = rig.follow(&[("interval", "60s")]).await;
    put(&rig.server, "a/one", "first");
    assert_eq!(events.shown(1).await, ["added one first"]);
    let began = Instant::now();
    put(&rig.server, "a/one", "second");
    assert_eq!(events.next().await.expect("a heartbeat").name, "");
    assert_eq!(began.elapsed().as_secs(), 10);
    rig.gateway.stop();
    let event = events.event().await;
    assert_eq!((&*event.name, began.elapsed().as_secs()), ("end", 10));
    assert_eq!(events.next().await, None);
}

/// Changes that are in the cache, whoever reads them.
async fn change(rig: &Rig, count: usize) {
    for number in 0..count {
        put(&rig.server, "a/one", &number.to_string());
    }
    let version = rig.server.version().to_string();
    rig.follow(&[("minResourceVersion", &version), ("labelSelector", "app=none")]).await;
    sleep(Duration::from_secs(1)).await;
}

async fn cut(events: &mut Events) {
    let event = events.event().await;
    assert_eq!((&*event.name, event.id.as_deref()), ("end", None), "the client keeps its id: {event:?}");
    assert_eq!(event.data["reason"], "slow client");
    assert!(event.data["retryAfterMs"].as_u64().is_some_and(|millis| millis > 0));
    assert_eq!(events.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_is_cut_off_while_it_can_still_go_on_from_where_it_is() {
    let rig = Rig::with(|builder| builder.changes_kept(100));
    let (mut events, _) = rig.follow(&[]).await;
    put(&rig.server, "a/one", "first");
    let id = events.event().await.id().to_owned();
    change(&rig, 60).await;
    cut(&mut events).await;
    let mut events = rig.resume(&id).await;
    let shown = events.shown(60).await;
    assert_eq!((&*shown[0], &*shown[59]), ("modified one 0", "modified one 59"));
    change(&rig, 40).await;
    assert_eq!(events.shown(40).await.len(), 40, "less than half is no reason");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_slept_too_long_begins_anew() {
    let rig = Rig::with(|builder| builder.changes_kept(100));
    let (mut events, _) = rig.follow(&[]).await;
    put(&rig.server, "a/one", "first");
    let id = events.event().await.id().to_owned();
    change(&rig, 150).await;
    cut(&mut events).await;
    let mut events = rig.resume(&id).await;
    let head = events.event().await;
    assert_eq!(head.name, "reset");
    let (items, _) = events.snapshot_after(&head).await;
    assert_eq!(items[0]["data"]["text"], "149");

    // One that never got to the end of its snapshot: the stream itself begins anew.
    let mut events = rig.open(MAPS, &[]).await;
    let head = events.event().await;
    change(&rig, 150).await;
    events.snapshot_after(&head).await;
    let head = events.event().await;
    assert_eq!(head.name, "reset");
    events.snapshot_after(&head).await;
    put(&rig.server, "a/one", "last");
    assert_eq!(events.shown(1).await, ["modified one last"]);
}
