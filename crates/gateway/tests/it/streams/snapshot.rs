//! What a stream begins with, and the shape of what follows.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::events::{Events, MAPS, Rig, discard, mk_cluster, names, put};
use crate::support::{Stage, mk_demo, query};

#[tokio::test]
async fn a_stream_begins_with_all_there_is_and_goes_on_with_what_changes() {
    let stage = Stage::open(mk_cluster()).await;
    for name in ["a/one", "a/two", "b/three"] {
        put(&stage.server, name, "old");
    }
    let mut events = Events::of(&stage, MAPS, &[]).await;
    let (items, id) = events.snapshot().await;
    assert_eq!(names(&items), ["one", "three", "two"]);
    assert_eq!(items.iter().map(|item| &item["data"]["text"]).collect::<Vec<_>>(), ["old"; 3]);
    assert_eq!(id, stage.server.version().to_string());

    put(&stage.server, "a/four", "new");
    put(&stage.server, "a/one", "new");
    discard(&stage.server, "a/two");
    let mut last = id;
    for (shown, version) in [("added four new", 3), ("modified one new", 2), ("deleted two old", 1)] {
        let event = events.event().await;
        assert_eq!(event.show(), shown);
        assert_eq!(event.id(), (stage.server.version() - version + 1).to_string());
        assert!(event.id().parse::<u64>().unwrap() > last.parse().unwrap());
        last = event.id().to_owned();
    }
    drop(events);
    stage.close().await;
}

#[tokio::test]
async fn a_snapshot_of_nothing_is_complete_at_once() {
    let rig = Rig::new();
    let mut events = rig.open(MAPS, &[]).await;
    let (items, _) = events.snapshot().await;
    assert!(items.is_empty());
    put(&rig.server, "a/one", "new");
    assert_eq!(events.shown(1).await, ["added one new"]);
}

#[tokio::test]
async fn a_large_snapshot_comes_in_pieces_and_misses_nothing_that_happens_meanwhile() {
    let rig = Rig::new();
    for number in 0..600 {
        put(&rig.server, &format!("a/c-{number:03}"), "old");
    }
    let mut events = rig.open(MAPS, &[]).await;
    let head = events.event().await;
    assert_eq!((&*head.name, &head.data["total"]), ("snapshot", &json!(600)));
    put(&rig.server, "a/c-000", "new");
    discard(&rig.server, "a/c-599");
    let (items, _) = events.snapshot_after(&head).await;
    assert_eq!(items.len(), 600);
    assert!(items.iter().all(|item| item["data"]["text"] == "old"), "a snapshot is of one moment");
    assert_eq!(events.shown(2).await, ["modified c-000 new", "deleted c-599 old"]);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_not_read_in_time_ends_with_the_reason() {
    let rig = Rig::new();
    for number in 0..600 {
        put(&rig.server, &format!("a/c-{number:03}"), "old");
    }
    for form in [("as", "table"), ("fields", "metadata.name"), ("namespace", "a")] {
        let path = query(MAPS, &[form]);
        let mut events = rig.open(&path, &[]).await;
        assert_eq!(events.event().await.name, "snapshot");
        assert_eq!(events.event().await.name, "items");
        sleep(Duration::from_secs(299)).await;
        assert_eq!(events.event().await.name, "items", "{form:?}: it has five minutes");
        sleep(Duration::from_secs(2)).await;
        let end = events.event().await;
        assert_eq!((&*end.name, &end.id), ("end", &None), "{form:?}");
        assert_eq!(end.data["reason"], "the snapshot was not read within five minutes");
        assert_eq!(events.next().await, None);
        rig.open(&path, &[]).await.snapshot().await;
    }
    // A client of Kubernetes is told to list again.
    let stage = Stage::inside(rig.server.clone(), |builder| builder);
    let mut watch = stage.stream("/api/v1/configmaps?watch=1", &[]).await;
    watch.next().await.expect("the first piece");
    sleep(Duration::from_secs(301)).await;
    let rest = watch.rest().await;
    let error: Value = serde_json::from_str(&rest).expect("one event, which is the last");
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)), "{error}");
    assert!(rest.contains("not read within five minutes"), "{rest}");
}

#[tokio::test]
async fn fields_are_all_that_is_sent_of_an_object() {
    let rig = Rig::new();
    put(&rig.server, "a/one", "old");
    let mut events = rig.open(&query(MAPS, &[("fields", "metadata.name,data.text")]), &[]).await;
    let (items, _) = events.snapshot().await;
    assert_eq!(items, [json!({"metadata": {"name": "one"}, "data": {"text": "old"}})]);
    put(&rig.server, "a/one", "new");
    let event = events.event().await;
    assert_eq!(event.data, json!({"object": {"metadata": {"name": "one"}, "data": {"text": "new"}}}));
}

#[tokio::test]
async fn streams_of_one_resource_in_several_forms_do_not_mix_them_up() {
    let rig = Rig::new();
    let (mut whole, _) = rig.follow(&[]).await;
    let (mut names, _) = rig.follow(&[("fields", "metadata.name")]).await;
    let (mut texts, _) = rig.follow(&[("fields", "data")]).await;
    let (mut rows, _) = rig.follow(&[("as", "table")]).await;
    put(&rig.server, "a/one", "new");
    assert_eq!(whole.event().await.data["object"]["kind"], "ConfigMap");
    assert_eq!(names.event().await.data, json!({"object": {"metadata": {"name": "one"}}}));
    assert_eq!(texts.event().await.data, json!({"object": {"data": {"text": "new"}}}));
    assert_eq!(rows.event().await.data["row"]["name"], "one");
}

#[tokio::test]
async fn as_a_table_a_stream_has_columns_and_rows_that_line_up() {
    let stage = Stage::open(mk_demo(30)).await;
    let mut events = Events::of(&stage, "/_stream/core/v1/pods?as=table", &[]).await;
    let head = events.event().await;
    let columns = head.data["columns"].as_array().expect("columns").clone();
    assert_eq!(columns[0]["name"], "Name");
    let (rows, _) = events.snapshot_after(&head).await;
    assert_eq!(rows.len(), 30);
    for row in &rows {
        assert_eq!(row["cells"].as_array().expect("cells").len(), columns.len(), "{row}");
        assert_eq!(row["cells"][0], row["name"]);
        assert!(row["uid"].is_string() && row["created"].is_string() && row["namespace"].is_string());
    }
    let (namespace, name) = (rows[0]["namespace"].as_str().unwrap(), rows[0]["name"].as_str().unwrap());
    stage.discard("pods", &format!("{namespace}/{name}"));
    // The cluster may have something to say about the others, but not before that.
    let event = events.event().await;
    assert_eq!((&*event.name, &event.data["row"]["name"]), ("deleted", &rows[0]["name"]));
    drop(events);
    stage.close().await;
}

#[tokio::test]
async fn what_is_not_for_streams_is_refused() {
    let rig = Rig::new();
    for parameter in ["sort", "limit", "continue", "nonsense"] {
        let refused = rig.try_open(&query(MAPS, &[(parameter, "1")]), &[]).await.err().expect(parameter);
        assert_eq!(refused.0, 400);
        assert_eq!(refused.2["kind"], "Status");
        assert!(refused.2["message"].as_str().unwrap().contains(parameter), "{}", refused.2);
    }
    let refused = rig.try_open("/_stream/core/v1/nothings", &[]).await.err().expect("no such resource");
    assert_eq!((refused.0.as_u16(), &refused.2["kind"]), (404, &json!("Status")));
}
