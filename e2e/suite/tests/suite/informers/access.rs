//! Permissions and tokens that are taken away and come back.

use informer::SharedInformer;

use super::running::{Running, data, impatient, maps};
use crate::{
    cluster::Cluster,
    objects::mk_map,
    stage::{Stage, play},
};

/// Where the token of a scenario's account is. On the embedded server there is none.
fn token_file(stage: &Stage) -> std::path::PathBuf {
    match &stage.cluster {
        Cluster::Embedded(_) => std::path::PathBuf::new(),
        Cluster::Real(plane) => plane.directory().join(format!("{}.token", stage.namespace)),
    }
}

async fn watched(stage: &Stage) -> Running<k8s_openapi::api::core::v1::ConfigMap> {
    stage.make(&stage.maps(), mk_map("a")).await;
    let client = stage.account(&token_file(stage)).await;
    stage.allow_account().await;
    let running =
        Running::synced(SharedInformer::builder(maps(stage, client)).settings(impatient), data).await;
    running.heard.tell(stage, 1).await;
    running.is_well(stage).await;
    running
}

#[test]
fn a_permission_that_is_taken_away_is_a_state_until_it_is_given_back() {
    play("permission_removed", async |stage| {
        let running = watched(stage).await;
        stage.forbid_account().await;
        stage.make(&stage.maps(), mk_map("b")).await;
        running.is_troubled_by(stage, "forbidden").await;
        stage.remove(&format!("{}/a", stage.maps())).await;
        stage.allow_account().await;
        running.is_well(stage).await;
        running.ends_like(stage, &stage.maps(), &[]).await;
    });
}

#[test]
fn a_token_that_is_revoked_is_a_state_until_there_is_another_one() {
    play("token_revoked", async |stage| {
        let running = watched(stage).await;
        stage.revoke_account().await;
        running.is_troubled_by(stage, "unauthorized").await;
        stage.make(&stage.maps(), mk_map("b")).await;
        stage.renew_account(&token_file(stage)).await;
        running.is_well(stage).await;
        running.ends_like(stage, &stage.maps(), &[]).await;
    });
}
