//! Where a controller works: a server of its own with the front before it, websites, and somebody who makes deployments ready.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use informer::{
    CancellationToken, Handler, SharedInformer, SharedInformerFactory,
    controller::{Action, Controller, ControllerError, is_condition_true},
    model::{ObjectKey, Selector},
};
use informer_apiserver::ApiServer;
use k8s_openapi::{
    api::apps::v1::Deployment,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    front::Front,
    website::{Website, WebsiteSpec},
};
use crate::{control_plane::ControlPlane, ours};

/// How long anything may take.
const WITHIN: Duration = Duration::from_secs(600);
/// So many requests of the driver are under way at the same time.
const AT_ONCE: usize = 16;

pub(crate) struct World {
    pub(crate) front: Front,
    client: Client,
    factory: SharedInformerFactory,
    sites: SharedInformer<Website>,
    statuses: mpsc::UnboundedReceiver<Told>,
    stop: CancellationToken,
    kubelet: JoinHandle<Result<(), ControllerError>>,
    server: Server,
}

/// A website with the generation that its status is about.
type Told = (ObjectKey, Option<i64>, Instant);

enum Server {
    Embedded(ApiServer),
    Real(Box<ControlPlane>),
}

impl World {
    /// An empty cluster that knows websites: on the embedded server, or on a real one.
    pub(crate) async fn start(control_plane: Option<&Path>) -> Result<Self> {
        let (server, client) = match control_plane {
            Some(program) => {
                let plane = ControlPlane::start(program).await?;
                let client = ours::client(&plane.kubeconfig()).await?;
                (Server::Real(Box::new(plane)), client)
            }
            None => {
                let server = ApiServer::builder().history(100_000).build();
                let client = server.client();
                (Server::Embedded(server), client)
            }
        };
        define(&client).await?;
        let front = Front::of(client.clone()).await?;
        let factory = SharedInformerFactory::new(client.clone(), Duration::ZERO);
        let (sites, deployments) = (factory.informer_for::<Website>(), factory.informer_for::<Deployment>());
        let (tell, statuses) = mpsc::unbounded_channel();
        sites.add_handler(Handler::<Website>::new().on_update(move |_, site| {
            let generation = site.status.as_ref().and_then(|status| status.observed_generation);
            // Nobody may be waiting any more.
            let _ = tell.send((site.key().clone(), generation, Instant::now()));
        }))?;
        factory.start()?;
        factory.wait_for_cache_sync(WITHIN).await?;
        let stop = CancellationToken::new();
        let kubelet = tokio::spawn(kubelet(client.clone(), deployments, stop.clone()));
        Ok(Self { front, client, factory, sites, statuses, stop, kubelet, server })
    }

    /// Creates so many websites.
    pub(crate) async fn create(&self, sites: usize) -> Result<()> {
        let api = &self.api::<Website>();
        stream::iter(0..sites)
            .map(Ok)
            .try_for_each_concurrent(AT_ONCE, async |site| {
                api.create(&PostParams::default(), &Website::new(&name(site), spec(1))).await.map(drop)
            })
            .await
            .context("cannot create websites")
    }

    /// Gives all websites another image.
    pub(crate) async fn change_all(&self, sites: usize, version: u32) -> Result<()> {
        let change = async |site| self.change(site, version).await.map(drop);
        stream::iter(0..sites).map(Ok).try_for_each_concurrent(AT_ONCE, change).await
    }

    /// Gives a website other settings, and says of which generation it is then.
    async fn change(&self, site: usize, version: u32) -> Result<Option<i64>> {
        let patch = Patch::Merge(json!({ "spec": spec(version) }));
        let site = self.api::<Website>().patch(&name(site), &PatchParams::default(), &patch).await?;
        Ok(site.metadata.generation)
    }

    /// From a change of a website until its status is about it.
    pub(crate) async fn reconciled(&mut self, site: usize, version: u32) -> Result<Duration> {
        let key = ObjectKey::new(Some("default"), &name(site))?;
        let began = Instant::now();
        let generation = self.change(site, version).await?;
        let told = async {
            loop {
                match self.statuses.recv().await.context("the informer has ended")? {
                    (of, observed, at) if of == key && observed == generation => return Ok(at - began),
                    _ => {}
                }
            }
        };
        timeout(WITHIN, told).await.with_context(|| format!("{key} is not reconciled"))?
    }

    /// Waits until all websites are ready, and then until the controller has been quiet for so long. Says how long the first took.
    pub(crate) async fn settled(&self, sites: usize, quiet: Duration) -> Result<Duration> {
        let began = Instant::now();
        let mut ready = 0;
        while ready < sites {
            ensure!(began.elapsed() < WITHIN, "{ready} of {sites} websites are ready after {WITHIN:?}");
            sleep(Duration::from_millis(10)).await;
            ready =
                self.sites.store().list(&Selector::everything()).iter().filter(|site| is_ready(site)).count();
        }
        let took = began.elapsed();
        self.front.quiet(quiet).await;
        Ok(took)
    }

    /// Deletes a child of a website. Says how long it takes until there is another one.
    pub(crate) async fn lose<K>(&self, site: usize) -> Result<Duration>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let (api, name) = (self.api::<K>(), name(site));
        let lost = api.get(&name).await?.uid();
        api.delete(&name, &DeleteParams::background()).await?;
        let began = Instant::now();
        while api.get_opt(&name).await?.is_none_or(|object| object.uid() == lost) {
            ensure!(began.elapsed() < WITHIN, "{} {name} does not come back", K::kind(&()));
            sleep(Duration::from_millis(1)).await;
        }
        Ok(began.elapsed())
    }

    /// Deletes all websites, and waits until they have gone. Says how many children are left.
    pub(crate) async fn delete_all(&self, quiet: Duration) -> Result<usize> {
        self.api::<Website>().delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        let began = Instant::now();
        while !self.sites.store().is_empty() {
            ensure!(began.elapsed() < WITHIN, "{} websites do not go", self.sites.store().len());
            sleep(Duration::from_millis(10)).await;
        }
        self.front.quiet(quiet).await;
        Ok(self.api::<Deployment>().list_metadata(&ListParams::default()).await?.items.len())
    }

    pub(crate) async fn end(self) -> Result<()> {
        self.stop.cancel();
        self.kubelet.await??;
        self.factory.shutdown().await;
        match self.server {
            Server::Embedded(server) => server.shutdown(),
            Server::Real(plane) => plane.end().await?,
        }
        Ok(())
    }

    fn api<K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), "default")
    }
}

fn name(site: usize) -> String {
    format!("site-{site:05}")
}

/// A change of the version is one of all children but the Service.
fn spec(version: u32) -> WebsiteSpec {
    let setting = |number| (format!("setting-{number}"), format!("value {number} of version {version}"));
    WebsiteSpec {
        image: format!("registry.example.com/shop/web:{version}"),
        replicas: 3,
        settings: (0..8).map(setting).collect(),
    }
}

fn is_ready(site: &Website) -> bool {
    site.status.as_ref().is_some_and(|status| {
        let is_ready = is_condition_true(&status.conditions, "Ready");
        is_ready
            && status.observed_generation == site.metadata.generation
            && status.ready_replicas == site.spec.replicas
    })
}

/// Defines websites, and returns when they are served.
async fn define(client: &Client) -> Result<()> {
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": anything },
    });
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": { "name": "websites.bench.example.com" },
        "spec": {
            "group": "bench.example.com", "scope": "Namespaced", "versions": [version],
            "names": { "plural": "websites", "singular": "website", "kind": "Website", "listKind": "WebsiteList" },
        },
    }))?;
    Api::all(client.clone()).create(&PostParams::default(), &definition).await?;
    let (sites, began) = (Api::<Website>::all(client.clone()), Instant::now());
    while let Err(error) = sites.list(&ListParams::default()).await {
        ensure!(began.elapsed() < Duration::from_secs(30), "websites are not served: {error}");
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// What a cluster has to make deployments ready.
async fn kubelet(
    client: Client,
    deployments: SharedInformer<Deployment>,
    stop: CancellationToken,
) -> Result<(), ControllerError> {
    let (lister, client) = (deployments.store(), Arc::new(client));
    let controller = Controller::new("kubelet").of(&deployments).workers(4);
    let reconcile = move |key: ObjectKey| {
        let (deployment, client) = (lister.get(&key), Arc::clone(&client));
        async move {
            let Some(deployment) = deployment else { return Ok(Action::AwaitChange) };
            let (generation, replicas) = (deployment.metadata.generation, deployment.spec.replicas);
            let status = deployment.status.as_ref();
            if status.is_some_and(|status| {
                status.observed_generation == generation && status.ready_replicas == replicas
            }) {
                return Ok(Action::AwaitChange);
            }
            let status: Value = json!({ "status": {
                "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
                "readyReplicas": replicas, "availableReplicas": replicas,
            } });
            let api =
                Api::<Deployment>::namespaced(Client::clone(&client), key.namespace().unwrap_or_default());
            match api.patch_status(key.name(), &PatchParams::default(), &Patch::Merge(status)).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Action::AwaitChange),
                answer => answer.map(|_| Action::AwaitChange),
            }
        }
    };
    controller.run(stop, reconcile).await
}
