//! Coming back to a stream.

use std::time::Duration;

use informer_testing::Deadline;
use tokio::time::sleep;

use super::events::{Events, MAPS, Rig, discard, mk_cluster, names, put};
use crate::support::{Stage, query};

/// Changes that a stream hears of: the ids, and what was shown.
async fn told(events: &mut Events, count: usize) -> Vec<(String, String)> {
    let mut told = Vec::new();
    for _ in 0..count {
        let event = events.event().await;
        told.push((event.id().to_owned(), event.show()));
    }
    told
}

#[tokio::test]
async fn from_every_id_a_stream_goes_on_exactly_once_with_all_that_came_after() {
    let stage = Stage::open(mk_cluster()).await;
    let mut events = Events::of(&stage, MAPS, &[]).await;
    let (_, id) = events.snapshot().await;
    for round in 0..5 {
        put(&stage.server, "a/one", &round.to_string());
        put(&stage.server, "b/two", &round.to_string());
        discard(&stage.server, "b/two");
    }
    let all = told(&mut events, 15).await;
    let mut ids = vec![id];
    ids.extend(all.iter().map(|(id, _)| id.clone()));
    let mut resumed = Vec::new();
    for (after, id) in ids.iter().enumerate() {
        let mut events = match after % 2 {
            0 => Events::of(&stage, MAPS, &[("last-event-id", id)]).await,
            _ => Events::of(&stage, &query(MAPS, &[("lastEventId", id)]), &[]).await,
        };
        assert_eq!(told(&mut events, 15 - after).await, all[after..], "after {id}");
        resumed.push(events);
    }
    put(&stage.server, "a/last", "new");
    for events in &mut resumed {
        assert_eq!(events.shown(1).await, ["added last new"], "nothing came twice");
    }
    drop(resumed);
    drop(events);
    stage.close().await;
}

#[tokio::test]
async fn what_is_no_longer_known_is_a_reset_with_all_there_is() {
    let rig = Rig::with(|builder| builder.changes_kept(4));
    put(&rig.server, "a/gone", "old");
    let (events, id) = rig.follow(&[]).await;
    drop(events);
    discard(&rig.server, "a/gone");
    for number in 0..9 {
        put(&rig.server, &format!("a/c-{number}"), "new");
    }
    let now = rig.server.version().to_string();
    rig.follow(&[("minResourceVersion", &now)]).await;
    for id in [&*id, "1", "nonsense", "7.7.7", "-1", "9999999999999999999999x"] {
        let mut events = rig.resume(id).await;
        let head = events.event().await;
        assert_eq!(head.name, "reset", "{id}");
        assert!(head.data["reason"].as_str().unwrap().contains(id), "{}", head.data);
        let (items, synced) = events.snapshot_after(&head).await;
        assert_eq!(names(&items).len(), 9, "{id}");
        assert_eq!(synced, now);
    }
    let mut events = rig.resume("").await;
    assert_eq!(events.event().await.name, "snapshot", "an empty id is none");
}

#[tokio::test(start_paused = true)]
async fn an_id_of_the_future_is_waited_for_and_then_a_reset() {
    let rig = Rig::new();
    let (_events, id) = rig.follow(&[]).await;
    let id: u64 = id.parse().expect("a number");
    let mut events = rig.resume(&(id + 1_000).to_string()).await;
    assert_eq!(events.event().await.name, "reset");

    let (server, ahead) = (rig.server.clone(), (id + 2).to_string());
    let soon = tokio::spawn(async move {
        sleep(Duration::from_secs(2)).await;
        for text in ["1", "2", "3"] {
            put(&server, "a/one", text);
        }
    });
    let mut events = rig.resume(&ahead).await;
    assert_eq!(events.shown(1).await, ["modified one 3"], "another gateway had told of the others");
    soon.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_back_in_time_is_a_reset_for_all() {
    let rig = Rig::new();
    put(&rig.server, "a/kept", "old");
    let version = rig.server.version();
    let (mut events, _) = rig.follow(&[]).await;
    for number in 0..5 {
        put(&rig.server, &format!("a/undone-{number}"), "new");
    }
    assert_eq!(events.shown(5).await.len(), 5);
    let id = rig.server.version().to_string();
    rig.server.rewind(version).expect("it is known");
    put(&rig.server, "a/after", "new");
    let head = loop {
        let event = events.event().await;
        if event.name == "reset" {
            break event;
        }
    };
    let (mut items, _) = events.snapshot_after(&head).await;
    // The cache may have been on its way.
    let deadline = Deadline::start();
    while names(&items) != ["after", "kept"] {
        deadline.check("what is there after the rewind");
        let event = events.event().await;
        match &*event.name {
            "reset" => items = events.snapshot_after(&event).await.0,
            "added" => items.push(event.data["object"].clone()),
            other => panic!("{other} after a reset"),
        }
    }
    assert_eq!(rig.resume(&id).await.event().await.name, "reset", "an id of before means nothing");
}

#[tokio::test]
async fn a_gateway_of_some_namespaces_follows_each_of_them() {
    let rig = Rig::with(|builder| builder.namespaces(["a", "b"]));
    let (mut events, _) = rig.follow(&[]).await;
    let mut expected = Vec::new();
    for number in 0..20 {
        let key = if number % 5 == 4 { "b/two" } else { "a/one" };
        put(&rig.server, key, &number.to_string());
        let event = events.event().await;
        assert_ne!(event.name, "reset", "nothing went back in time");
        expected.push(event.show());
    }
    let last = |name: &str| expected.iter().rev().find(|shown| shown.contains(name)).cloned();
    assert_eq!(last("one").as_deref(), Some("modified one 18"));
    assert_eq!(last("two").as_deref(), Some("modified two 19"));
    // One who comes now has it all, whichever namespace was heard of last.
    let (mut late, _) = rig.follow(&[]).await;
    put(&rig.server, "a/one", "end");
    let deadline = Deadline::start();
    while late.event().await.show() != "modified one end" {
        deadline.check("the last change");
    }
}

#[tokio::test]
async fn who_comes_back_far_behind_is_not_sent_away_again() {
    let rig = Rig::with(|builder| builder.changes_kept(100));
    let (events, id) = rig.follow(&[]).await;
    drop(events);
    for number in 0..90 {
        put(&rig.server, "a/one", &number.to_string());
    }
    // Somebody else makes sure that it is all known.
    rig.follow(&[("minResourceVersion", &rig.server.version().to_string())]).await;
    let mut events = rig.resume(&id).await;
    let shown = events.shown(90).await;
    assert_eq!((&*shown[0], &*shown[89]), ("added one 0", "modified one 89"));
}
