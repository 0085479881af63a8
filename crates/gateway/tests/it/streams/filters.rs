//! Streams of some of the objects.

use serde_json::json;

use super::events::{Rig, discard, mk_map};

impl Rig {
    fn put_labelled(&self, key: &str, app: &str, text: &str) {
        self.server.put(mk_map(key, json!({"app": app}), text)).expect("a map");
    }
}

#[tokio::test]
async fn an_object_that_begins_to_match_is_added_and_one_that_no_longer_does_is_deleted() {
    let rig = Rig::new();
    rig.put_labelled("a/in", "web", "1");
    rig.put_labelled("a/out", "db", "1");
    let (mut events, _) = rig.follow(&[("labelSelector", "app=web")]).await;
    rig.put_labelled("a/out", "db", "2");
    rig.put_labelled("a/out", "web", "3");
    rig.put_labelled("a/out", "web", "4");
    rig.put_labelled("a/in", "db", "5");
    rig.put_labelled("a/in", "db", "6");
    discard(&rig.server, "a/in");
    discard(&rig.server, "a/out");
    assert_eq!(
        events.shown(4).await,
        // Of what is gone the last state that matched is told.
        ["added out 3", "modified out 4", "deleted in 1", "deleted out 4"]
    );
}

#[tokio::test]
async fn fields_and_namespaces_filter_as_labels_do() {
    let rig = Rig::new();
    let parameters = [("fieldSelector", "data.text in (x,y)"), ("namespace", "a")];
    let (mut events, _) = rig.follow(&parameters).await;
    for (key, text) in
        [("b/one", "x"), ("a/two", "z"), ("a/two", "x"), ("a/two", "y"), ("a/two", "z"), ("a/two", "x")]
    {
        rig.put_labelled(key, "web", text);
    }
    assert_eq!(events.shown(4).await, ["added two x", "modified two y", "deleted two y", "added two x"]);
}

#[tokio::test]
async fn filters_hold_for_what_is_missed_and_for_the_snapshot() {
    let rig = Rig::new();
    for (key, app) in [("a/one", "web"), ("a/two", "db"), ("b/three", "web")] {
        rig.put_labelled(key, app, "1");
    }
    let path = "/_stream/core/v1/configmaps?labelSelector=app%3Dweb&namespace=a";
    let mut events = rig.open(path, &[]).await;
    let (items, id) = events.snapshot().await;
    assert_eq!(items.len(), 1);
    drop(events);
    for (key, app) in [("a/one", "db"), ("a/two", "web"), ("b/three", "db"), ("b/four", "web")] {
        rig.put_labelled(key, app, "2");
    }
    let mut events = rig.open(path, &[("last-event-id", &id)]).await;
    assert_eq!(events.shown(2).await, ["deleted one 1", "added two 2"]);
}
