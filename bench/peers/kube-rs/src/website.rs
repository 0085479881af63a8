//! kube-runtime's side: a `Website` becomes a ConfigMap, a Deployment and a Service. What is compared is this file, without comments and
//! the lines of the witness.

use std::{fmt::Debug, sync::Arc, time::Duration};

use futures_util::StreamExt;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Service},
    },
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
    runtime::{
        Controller, Predicate, WatchStreamExt,
        controller::{Action, Config},
        finalizer::{Error, Event, finalizer},
        predicates, reflector, watcher,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::{
    problem::{
        NAME, Website, WebsiteStatus, named, readiness, shape_config_map, shape_deployment, shape_service,
    },
    witness::Witness,
};

struct Context {
    client: Client,
    witness: Witness,
}

/// Runs until the stop.
pub(crate) async fn run(
    client: Client,
    stop: impl Future<Output = ()> + Send + Sync + 'static,
    witness: Witness,
) {
    let (reader, writer) = reflector::store();
    let changed = watcher(Api::<Website>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .modify(|site| site.managed_fields_mut().clear())
        .reflect(writer)
        .applied_objects()
        // Of a change of finalizers the generation knows nothing, and `finalizer` waits for it.
        .predicate_filter(predicates::generation.combine(predicates::finalizers), Default::default());
    Controller::for_stream(changed, reader)
        .owns(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Deployment>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Service>::all(client.clone()), watcher::Config::default())
        .with_config(Config::default().concurrency(4))
        .graceful_shutdown_on(stop)
        .run(reconcile, error_policy, Arc::new(Context { client, witness }))
        .for_each(|result| async {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        })
        .await;
}

async fn reconcile(site: Arc<Website>, context: Arc<Context>) -> Result<Action, Error<kube::Error>> {
    context.witness.read(Some(&*site));
    let sites = context.api(&site);
    finalizer(&sites, NAME, site, |event| async {
        match event {
            Event::Apply(site) => context.apply(&site).await,
            Event::Cleanup(site) => context.clean_up(&site).await,
        }
    })
    .await
}

fn error_policy(_: Arc<Website>, _: &Error<kube::Error>, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

impl Context {
    fn api<K>(&self, site: &Website) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &site.namespace().unwrap_or_default())
    }

    async fn apply(&self, site: &Website) -> kube::Result<Action> {
        self.put(site, shape_config_map).await?;
        let deployment = self.put(site, shape_deployment).await?;
        self.put(site, shape_service).await?;
        let (ready_replicas, is_ready) = readiness(&deployment);
        let status = WebsiteStatus {
            observed_generation: site.metadata.generation,
            ready_replicas,
            conditions: vec![ready_condition(site, is_ready)],
        };
        let status =
            json!({ "apiVersion": Website::api_version(&()), "kind": Website::kind(&()), "status": status });
        let (sites, params) = (self.api::<Website>(site), PatchParams::apply(NAME).force());
        sites.patch_status(&site.name_any(), &params, &Patch::Apply(status)).await?;
        Ok(Action::await_change())
    }

    async fn put<K>(&self, site: &Website, shape: impl FnOnce(&Website, &mut K)) -> kube::Result<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + Default + Serialize + DeserializeOwned,
    {
        let mut wanted = named(site);
        shape(site, &mut wanted);
        let params = PatchParams::apply(NAME).force();
        self.api(site).patch(&site.name_any(), &params, &Patch::Apply(&wanted)).await
    }

    async fn clean_up(&self, site: &Website) -> kube::Result<Action> {
        self.delete::<ConfigMap>(site).await?;
        self.delete::<Deployment>(site).await?;
        self.delete::<Service>(site).await?;
        Ok(Action::await_change())
    }

    async fn delete<K>(&self, site: &Website) -> kube::Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        match self.api::<K>(site).delete(&site.name_any(), &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            deleted => deleted.map(drop),
        }
    }
}

/// The time of the transition stays as long as the status does.
fn ready_condition(site: &Website, is_ready: bool) -> Condition {
    let status = if is_ready { "True" } else { "False" };
    let conditions = site.status.iter().flat_map(|status| &status.conditions);
    let since = conditions.filter(|before| before.type_ == "Ready" && before.status == status);
    let now = || Time(Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default());
    Condition {
        type_: "Ready".into(),
        status: status.into(),
        reason: if is_ready { "Ready" } else { "Starting" }.into(),
        last_transition_time: since
            .map(|before| before.last_transition_time.clone())
            .next()
            .unwrap_or_else(now),
        message: String::new(),
        observed_generation: None,
    }
}
