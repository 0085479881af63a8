//! The forms in which an informer can have objects: typed, dynamic, metadata only, a few fields.

use informer::{DynamicObject, KubeListWatch, SharedInformer, discovery::Discovery};
use informer_testing::widgets;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::core::{ApiResource, PartialObjectMeta};
use serde::Deserialize;
use serde_json::json;

use super::running::{Running, data, maps};
use crate::{
    objects::{CRDS, mk_labelled},
    stage::play,
};

/// One entry of a config map.
#[derive(Clone, Debug, Deserialize)]
struct Entry {
    metadata: ObjectMeta,
    data: Data,
}

#[derive(Clone, Debug, Deserialize)]
struct Data {
    a: String,
}

informer::projection!(Entry of ConfigMap);

fn labels(metadata: &ObjectMeta) -> String {
    format!("{:?}", metadata.labels.clone().unwrap_or_default())
}

#[test]
fn an_informer_has_objects_in_the_form_that_is_wanted() {
    play("forms", async |stage| {
        let (path, client) = (stage.maps(), stage.client());
        stage.make(&path, mk_labelled("a", "web")).await;
        let typed = Running::synced(SharedInformer::builder(maps(stage, client.clone())), data).await;
        let namespace = stage.namespace.as_str();
        let kind = ApiResource::erase::<ConfigMap>(&());
        let dynamic = KubeListWatch::<DynamicObject>::of_kind(client.clone(), kind).in_namespace(namespace);
        let show = |map: &DynamicObject| map.data.get("data").map(ToString::to_string).unwrap_or_default();
        let dynamic = Running::synced(SharedInformer::builder(dynamic), show).await;
        let metadata =
            KubeListWatch::<PartialObjectMeta<ConfigMap>>::all(client.clone()).in_namespace(namespace);
        let metadata = Running::synced(SharedInformer::builder(metadata), |map| labels(&map.metadata)).await;
        let entries = KubeListWatch::<Entry>::all(client.clone()).in_namespace(namespace);
        let entries = Running::synced(SharedInformer::builder(entries), |map| map.data.a.clone()).await;
        stage
            .change(
                &format!("{path}/a"),
                json!({ "data": { "a": "2" }, "metadata": { "labels": { "x": "y" } } }),
            )
            .await;
        stage.note("typed");
        typed.heard.tell(stage, 2).await;
        typed.ends_like(stage, &path, &[]).await;
        stage.note("dynamic");
        dynamic.heard.tell(stage, 2).await;
        dynamic.ends_like(stage, &path, &[]).await;
        stage.note("metadata");
        metadata.heard.tell(stage, 2).await;
        metadata.ends_like(stage, &path, &[]).await;
        stage.note("a field");
        entries.heard.tell(stage, 2).await;
        entries.ends_like(stage, &path, &[]).await;
    });
}

#[test]
fn names_mean_the_same_resources() {
    play("resolve", async |stage| {
        let group = "resolved.example.com";
        stage.make(CRDS, widgets(group)).await;
        let path = format!("/apis/{group}/v1/widgets");
        stage.until(&path, |answer| answer.code == 200).await;
        stage.until("/apis", |answer| answer.body.to_string().contains(group)).await;
        let discovery = Discovery::new(stage.client().clone());
        for name in [
            "cm",
            "pods",
            "deployments.apps",
            "deploy",
            "ing",
            "events.events.k8s.io",
            &format!("widgets.{group}"),
            "nothings",
        ] {
            let line = match discovery.resolve(&name.parse().expect("a name")).await {
                Ok(served) => {
                    let (api, names) = (&served.api, served.short_names.join(","));
                    format!(
                        "{} {} {} {names} namespaced {}",
                        api.api_version, api.plural, api.kind, served.namespaced
                    )
                }
                Err(error) => error.to_string(),
            };
            stage.note(format!("{name}: {line}"));
        }
        stage.remove(&format!("{CRDS}/widgets.{group}")).await;
    });
}
