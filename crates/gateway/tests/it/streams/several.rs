//! Several streams over one connection.

use std::collections::BTreeMap;

use serde_json::json;

use super::events::{Event, Events, Rig, mk_map, put};
use crate::support::query;

const SEVERAL: &str = "/_streams";

/// The next events, each with the number of its stream; until this many have come that are not about whose they are.
async fn told(events: &mut Events, of: &mut u64, count: usize) -> BTreeMap<u64, Vec<Event>> {
    let mut told: BTreeMap<u64, Vec<Event>> = BTreeMap::new();
    let mut left = count;
    while left > 0 {
        let event = events.event().await;
        if event.name == "of" {
            *of = event.data["stream"].as_u64().expect("a number");
            continue;
        }
        told.entry(*of).or_default().push(event);
        left -= 1;
    }
    told
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

#[tokio::test]
async fn each_stream_is_told_as_if_it_were_alone() {
    let rig = Rig::new();
    put(&rig.server, "a/one", "old");
    let (_, id) = rig.follow(&[]).await;
    put(&rig.server, "b/two", "new");
    let of = [
        "core/v1/configmaps?namespace=a".to_owned(),
        "core/v1/namespaces?fields=metadata.name".to_owned(),
        format!("core/v1/configmaps?lastEventId={id}"),
    ];
    let parameters: Vec<(&str, &str)> = of.iter().map(|of| ("of", of.as_str())).collect();
    let mut events = rig.open(&query(SEVERAL, &parameters), &[]).await;
    let mut number = u64::MAX;
    let begun = told(&mut events, &mut number, 7).await;
    assert_eq!(names(&begun[&0]), ["snapshot", "items", "synced"]);
    assert_eq!(names(&begun[&1]), ["snapshot", "items", "synced"]);
    assert_eq!(begun[&2][0].show(), "added two new", "it goes on from where it was");
    put(&rig.server, "a/one", "new");
    let changed = told(&mut events, &mut number, 2).await;
    assert_eq!(changed[&0][0].show(), "modified one new");
    assert_eq!(changed[&2][0].show(), "modified one new");
    assert!(!changed.contains_key(&1));
}

#[tokio::test]
async fn one_that_is_refused_does_not_hurt_the_others() {
    let rig = Rig::with(|builder| builder.max_streams(2, 2));
    let of = ["core/v1/podz", "core/v1/configmaps?nonsense=1", "configmaps", "core/v1/configmaps"];
    let mut events = rig.open(&query(SEVERAL, &of.map(|of| ("of", of))), &[]).await;
    let mut number = u64::MAX;
    let told = told(&mut events, &mut number, 5).await;
    for (stream, code) in [(0, 404), (1, 400), (2, 404)] {
        let [refused] = &told[&stream][..] else { panic!("{told:?}") };
        assert_eq!((refused.name.as_str(), &refused.data["code"]), ("refused", &json!(code)), "{refused:?}");
        assert!(refused.data["message"].as_str().is_some_and(|message| !message.is_empty()), "{refused:?}");
    }
    assert_eq!(names(&told[&3]), ["snapshot", "synced"]);
    rig.server.put(mk_map("a/one", json!({}), "new")).expect("a map");
    assert_eq!(events.event().await.show(), "added one new");
    drop(events);
    let of = [("of", "core/v1/configmaps"); 3];
    let mut events = rig.open(&query(SEVERAL, &of), &[]).await;
    let told = self::told(&mut events, &mut number, 7).await;
    let refused: Vec<&Event> = told.values().flatten().filter(|event| event.name == "refused").collect();
    assert!(refused.len() == 1 && refused[0].data["code"] == 429, "each counts as a stream: {told:?}");
}

#[tokio::test]
async fn the_answer_ends_when_all_have() {
    let rig = Rig::new();
    let of = [("of", "core/v1/podz"), ("of", "core/v1/configmaps")];
    let mut events = rig.open(&query(SEVERAL, &of), &[]).await;
    told(&mut events, &mut 0, 3).await;
    rig.gateway.stop();
    let end = events.event().await;
    assert_eq!((end.name.as_str(), &end.data["reason"]), ("end", &json!("shutting down")));
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let rig = Rig::new();
    for parameters in [&[][..], &[("of", "core/v1/pods"), ("limit", "1")], &[("of", "core/v1/pods"); 33]] {
        let refused = rig.try_open(&query(SEVERAL, parameters), &[]).await;
        let Err((code, _, status)) = refused else { panic!("{parameters:?} is a stream") };
        assert_eq!((code.as_u16(), &status["kind"]), (400, &json!("Status")), "{status}");
    }
}
