//! The first list: as a stream, whole, in pages, and of a part only.

use informer::SharedInformer;

use super::running::{Running, data, maps};
use crate::{
    objects::{mk_labelled, mk_map},
    stage::{Stage, play},
};

async fn with_maps(stage: &Stage) {
    for (name, app) in [("a", "web"), ("b", "db"), ("c", "web"), ("d", "db"), ("e", "web")] {
        stage.make(&stage.maps(), mk_labelled(name, app)).await;
    }
}

#[test]
fn an_informer_syncs_by_every_kind_of_list() {
    play("sync", async |stage| {
        with_maps(stage).await;
        let source = || maps(stage, stage.client().clone());
        let streaming = SharedInformer::builder(source());
        let plain = SharedInformer::builder(source()).streaming(false);
        // A server that answers from its cache has no pages: only a list of the newest version comes in them.
        let newest = source().tweak(|options| options.resource_version = Default::default());
        let pages = SharedInformer::builder(newest).streaming(false).page_size(2);
        for (how, builder) in [("streaming", streaming), ("not streaming", plain), ("pages of two", pages)] {
            stage.note(how);
            let running = Running::synced(builder, data).await;
            running.heard.tell_unordered(stage, 5).await;
            let trouble = running.informer.health().trouble().is_some();
            stage.note(format!("trouble: {trouble}"));
            running.ends_like(stage, &stage.maps(), &[]).await;
        }
    });
}

#[test]
fn an_informer_of_nothing_is_synced_too() {
    play("sync_empty", async |stage| {
        for streaming in [true, false] {
            let builder = SharedInformer::builder(maps(stage, stage.client().clone())).streaming(streaming);
            let running = Running::synced(builder, data).await;
            stage.note(format!("streaming {streaming}: {} events", running.heard.count()));
            stage.make(&stage.maps(), mk_map("a")).await;
            running.heard.tell(stage, 1).await;
            stage.remove(&format!("{}/a", stage.maps())).await;
            running.heard.tell(stage, 1).await;
            running.ends_like(stage, &stage.maps(), &[]).await;
        }
    });
}

#[test]
fn selectors_make_an_informer_of_a_part() {
    play("sync_selectors", async |stage| {
        with_maps(stage).await;
        let path = stage.maps();
        for streaming in [true, false] {
            let by_label =
                maps(stage, stage.client().clone()).label_selector(&"app=web".parse().expect("a selector"));
            let by_field = maps(stage, stage.client().clone())
                .field_selector(&"metadata.name!=a".parse().expect("a selector"));
            let by_label =
                Running::synced(SharedInformer::builder(by_label).streaming(streaming), data).await;
            let by_field =
                Running::synced(SharedInformer::builder(by_field).streaming(streaming), data).await;
            stage.note(format!("streaming {streaming}, by label"));
            by_label.heard.tell_unordered(stage, 3).await;
            stage.note("by field");
            by_field.heard.tell_unordered(stage, 4).await;
            let relabel = async |name: &str, app: &str| {
                let labels = serde_json::json!({ "metadata": { "labels": { "app": app } } });
                stage.change(&format!("{path}/{name}"), labels).await;
            };
            relabel("b", "web").await;
            relabel("c", "db").await;
            relabel("b", "db").await;
            relabel("c", "web").await;
            stage.note("relabelled: by label");
            by_label.heard.tell(stage, 4).await;
            stage.note("by field");
            by_field.heard.tell(stage, 4).await;
            by_label.ends_like(stage, &path, &[("labelSelector", "app=web")]).await;
            by_field.ends_like(stage, &path, &[("fieldSelector", "metadata.name!=a")]).await;
        }
    });
}
