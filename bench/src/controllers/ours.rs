//! Our side: a `Website` becomes a ConfigMap, a Deployment and a Service. What is compared is this file, without comments and the
//! lines of the witness.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use informer::{
    CancellationToken, Object, SharedInformerFactory,
    client::{WriteError, Writes},
    controller::{
        Action, Controller, Feed, FinalizerError, FinalizerEvent, Predicate, condition, finalizer,
        set_condition,
    },
    model::ObjectKey,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};
use kube::{
    Client,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::{
    website::{NAME, Website, named, readiness, shape_config_map, shape_deployment, shape_service},
    witness::Witness,
};

struct Context {
    sites: Writes<Website>,
    maps: Writes<ConfigMap>,
    deployments: Writes<Deployment>,
    services: Writes<Service>,
    witness: Witness,
}

pub(crate) async fn run(client: Client, stop: CancellationToken, witness: Witness) -> Result<()> {
    let factory = SharedInformerFactory::new(client.clone(), Duration::ZERO);
    let (sites, maps) = (factory.informer_for::<Website>(), factory.informer_for::<ConfigMap>());
    let (deployments, services) = (factory.informer_for::<Deployment>(), factory.informer_for::<Service>());
    let context = Arc::new(Context {
        sites: Writes::new(client.clone(), &sites),
        maps: Writes::new(client.clone(), &maps),
        deployments: Writes::new(client.clone(), &deployments),
        services: Writes::new(client, &services),
        witness,
    });
    let controller = Controller::new("websites")
        .feed(Feed::of(&sites).when(Predicate::generation_changed()))
        .owns::<Website, _>(&maps)
        .owns::<Website, _>(&deployments)
        .owns::<Website, _>(&services)
        .workers(4);
    factory.start()?;
    let reconcile = move |key| {
        let context = Arc::clone(&context);
        async move { context.reconcile(&key).await }
    };
    controller.run(stop, reconcile).await?;
    factory.shutdown().await;
    Ok(())
}

impl Context {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, FinalizerError<WriteError>> {
        // What the last call has written is in the caches by now.
        let Ok(site) = self.sites.lister().at_once().get(key) else { return Ok(Action::AwaitChange) };
        self.witness.read(Some(&*site));
        self.witness.read(self.maps.lister().at_once().get(key).ok().as_deref());
        self.witness.read(self.deployments.lister().at_once().get(key).ok().as_deref());
        self.witness.read(self.services.lister().at_once().get(key).ok().as_deref());
        finalizer(&self.sites, NAME, &site, async |event| match event {
            FinalizerEvent::Apply(site) => self.apply(&site).await,
            FinalizerEvent::Cleanup(site) => self.clean_up(site.key()).await,
        })
        .await
    }

    async fn apply(&self, site: &Object<Website>) -> Result<Action, WriteError> {
        self.maps.create_or_update(named(site), |map| shape_config_map(site, map)).await?;
        let shape = |deployment: &mut _| shape_deployment(site, deployment);
        let (_, deployment) = self.deployments.create_or_update(named(site), shape).await?;
        self.services.create_or_update(named(site), |service| shape_service(site, service)).await?;
        let (mut status, (ready_replicas, is_ready)) =
            (site.status.clone().unwrap_or_default(), readiness(&deployment));
        (status.ready_replicas, status.observed_generation) = (ready_replicas, site.metadata.generation);
        let reason = if is_ready { "Ready" } else { "Starting" };
        set_condition(&mut status.conditions, condition("Ready", is_ready, reason, ""));
        if site.status.as_ref() != Some(&status) {
            // Without the version: nobody else writes the status, and a change of the spec meanwhile is no reason to refuse it.
            let patch = Patch::Merge(json!({ "status": status }));
            self.sites.patch_status(site.key(), &PatchParams::default(), &patch).await?;
        }
        Ok(Action::AwaitChange)
    }

    async fn clean_up(&self, key: &ObjectKey) -> Result<Action, WriteError> {
        if let Some(map) = self.maps.lister().get_opt(key).await? {
            self.maps.delete_seen(&map).await?;
        }
        if let Some(deployment) = self.deployments.lister().get_opt(key).await? {
            self.deployments.delete_seen(&deployment).await?;
        }
        if let Some(service) = self.services.lister().get_opt(key).await? {
            self.services.delete_seen(&service).await?;
        }
        Ok(Action::AwaitChange)
    }
}
