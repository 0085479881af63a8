//! What happens to a whole cluster: the past is forgotten, the server starts again, a backup is restored.

use informer::{KubeListWatch, SharedInformer};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::PartialObjectMeta;
use serde_json::json;

use super::running::{Running, data, impatient, maps, until};
use crate::{
    objects::{mk_map, mk_pod},
    stage::{Stage, play_alone},
};

async fn watched(stage: &Stage) -> Running<ConfigMap> {
    for name in ["a", "b"] {
        stage.make(&stage.maps(), mk_map(name)).await;
    }
    let builder = SharedInformer::builder(maps(stage, stage.client().clone())).settings(impatient);
    let running = Running::synced(builder, data).await;
    running.heard.tell_unordered(stage, 2).await;
    running
}

#[test]
fn a_version_that_was_forgotten_leads_to_a_new_list() {
    play_alone("forgotten", async |stage| {
        let running = watched(stage).await;
        // What the watch has seen is older than all that the server remembers afterwards.
        for name in ["x", "y", "z"] {
            stage.make(&stage.core("secrets"), json!({ "metadata": { "name": name } })).await;
        }
        stage.cluster.compact();
        stage.cluster.restart();
        until("the version is found to be too old", || running.had("version expired")).await;
        stage.note("the version expired");
        running.is_well(stage).await;
        stage.note(format!("{} events, because nothing has changed", running.heard.count()));
        stage.make(&stage.maps(), mk_map("c")).await;
        stage.remove(&format!("{}/a", stage.maps())).await;
        running.heard.tell(stage, 2).await;
        running.ends_like(stage, &stage.maps(), &[]).await;
    });
}

#[test]
fn informers_go_on_after_the_server_was_started_again() {
    play_alone("restarted", async |stage| {
        let (client, namespace) = (stage.client(), stage.namespace.as_str());
        let maps = watched(stage).await;
        let secrets = KubeListWatch::<Secret>::all(client.clone()).in_namespace(namespace);
        let secrets = SharedInformer::builder(secrets).settings(impatient).streaming(false);
        let secrets = Running::synced(secrets, |secret| secret.type_.clone().unwrap_or_default()).await;
        let pods = KubeListWatch::<PartialObjectMeta<k8s_openapi::api::core::v1::Pod>>::all(client.clone());
        let pods = SharedInformer::builder(pods.in_namespace(namespace)).settings(impatient);
        let pods = Running::synced(pods, |pod| pod.metadata.name.clone().unwrap_or_default()).await;
        stage.cluster.restart();
        stage.make(&stage.maps(), mk_map("c")).await;
        stage.change(&format!("{}/a", stage.maps()), json!({ "data": { "a": "2" } })).await;
        stage.make(&stage.core("secrets"), json!({ "metadata": { "name": "s" } })).await;
        stage.make(&stage.core("pods"), mk_pod("p")).await;
        stage.note("config maps");
        maps.heard.tell_unordered(stage, 2).await;
        maps.ends_like(stage, &stage.maps(), &[]).await;
        stage.note("secrets");
        secrets.heard.tell(stage, 1).await;
        secrets.ends_like(stage, &stage.core("secrets"), &[]).await;
        stage.note("metadata of pods");
        pods.heard.tell(stage, 1).await;
        pods.ends_like(stage, &stage.core("pods"), &[]).await;
    });
}

#[test]
fn a_restored_backup_is_noticed_and_the_cache_goes_back_with_it() {
    play_alone("restored", async |stage| {
        let running = watched(stage).await;
        let backup = stage.cluster.save("before");
        stage.make(&stage.maps(), mk_map("c")).await;
        // When that is heard, the informer has come back to the server, which was down to be saved.
        running.heard.tell(stage, 1).await;
        // A server writes for itself when it starts: what is lost of what the informer has seen must be more, or the
        // version would not show it.
        stage.make(&stage.core("secrets"), json!({ "metadata": { "name": "busy" } })).await;
        for number in 0..200 {
            let patch = json!({ "metadata": { "annotations": { "number": number.to_string() } } });
            stage.change(&format!("{}/busy", stage.core("secrets")), patch).await;
        }
        stage.change(&format!("{}/b", stage.maps()), json!({ "data": { "a": "2" } })).await;
        stage.remove(&format!("{}/a", stage.maps())).await;
        running.heard.tell(stage, 2).await;
        stage.cluster.restore(&backup);
        stage.note("restored");
        running.heard.tell_unordered(stage, 3).await;
        stage.note(format!("the version was found to have gone back: {}", running.had("version rewound")));
        running.is_well(stage).await;
        stage.make(&stage.maps(), mk_map("d")).await;
        running.heard.tell(stage, 1).await;
        running.ends_like(stage, &stage.maps(), &[]).await;
    });
}
