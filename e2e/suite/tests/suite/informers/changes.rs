//! Live changes: several handlers, an index, and a kind that comes and goes.

use std::time::Duration;

use informer::{DynamicObject, KubeListWatch, SharedInformer};
use informer_testing::widgets;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use super::running::{Heard, Running, data, impatient, maps, until};
use crate::{
    objects::{CRDS, mk_held, mk_labelled, mk_map, mk_widget},
    stage::play,
};

#[test]
fn handlers_hear_every_change_in_order_with_what_was_before() {
    play("changes", async |stage| {
        let path = stage.maps();
        stage.make(&path, mk_labelled("a", "web")).await;
        let builder = SharedInformer::builder(maps(stage, stage.client().clone()));
        let builder = builder
            .index("app", |map| map.metadata.labels.as_ref().and_then(|labels| labels.get("app").cloned()));
        let running = Running::synced(builder, data).await;
        running.heard.tell(stage, 1).await;
        stage.make(&path, mk_labelled("b", "db")).await;
        stage.change(&format!("{path}/a"), json!({ "data": { "a": "2" } })).await;
        stage.change(&format!("{path}/a"), json!({ "data": { "a": "3" } })).await;
        stage.change(&format!("{path}/b"), json!({ "metadata": { "labels": { "app": "web" } } })).await;
        running.heard.tell(stage, 4).await;
        let index = running.informer.store().index("app").expect("the index");
        until("the index has b", || index.count("web") == 2).await;
        let names: Vec<String> = index.get("web").iter().map(|map| map.key().name().to_owned()).collect();
        stage.note(format!("in the index: web {names:?}, db {}", index.count("db")));
        stage.note("a handler that comes later");
        let late = Heard::default();
        let registration = running.informer.add_handler(late.handler(data)).expect("it runs");
        registration.wait_until_synced(Duration::from_secs(20)).await.expect("synced in time");
        late.tell_unordered(stage, 2).await;
        stage.note("a deletion in steps, a deletion, and an object that comes again");
        stage.make(&path, mk_held("held")).await;
        stage.remove(&format!("{path}/held")).await;
        stage.change(&format!("{path}/held"), json!({ "metadata": { "finalizers": null } })).await;
        stage.remove(&format!("{path}/b")).await;
        stage.make(&path, mk_map("b")).await;
        running.heard.tell(stage, 5).await;
        late.tell(stage, 5).await;
        running.ends_like(stage, &path, &[]).await;
    });
}

#[test]
fn a_kind_that_comes_goes_and_comes_is_followed() {
    play("kind_comes_and_goes", async |stage| {
        let group = "followed.example.com";
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", "Widget"));
        let source = KubeListWatch::<DynamicObject>::of_kind(stage.client().clone(), kind);
        let source = source.in_namespace(stage.namespace.as_str());
        let builder = SharedInformer::builder(source).settings(impatient);
        let color = |widget: &DynamicObject| {
            widget.pointer("/spec/color").map(ToString::to_string).unwrap_or_default()
        };
        let running = Running::start(builder, color);
        let path = stage.group(&format!("{group}/v1"), "widgets");
        for round in 1..=2 {
            stage.note(format!("round {round}"));
            running.is_troubled_by(stage, "not found").await;
            stage.make(CRDS, widgets(group)).await;
            stage.until(&path, |answer| answer.code == 200).await;
            running.is_well(stage).await;
            stage.make(&path, mk_widget(group, "a")).await;
            stage.change(&format!("{path}/a"), json!({ "spec": { "color": "blue" } })).await;
            running.heard.tell(stage, 2).await;
            running.is_like(stage, &path, &[]).await;
            stage.remove(&format!("{CRDS}/widgets.{group}")).await;
            running.heard.tell(stage, 1).await;
            stage.until(&path, |answer| answer.code == 404).await;
        }
        stage.make(CRDS, widgets(group)).await;
        stage.until(&path, |answer| answer.code == 200).await;
        running.is_well(stage).await;
        running.ends_like(stage, &path, &[]).await;
        stage.remove(&format!("{CRDS}/widgets.{group}")).await;
    });
}
