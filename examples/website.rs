//! A whole controller: a `Website` becomes a Deployment and a Service, with status, finalizer, events and leader election.
//! Start it twice: one instance works, the other one takes over when the first one ends.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc, time::Duration};

use anyhow::Result;
use informer::{
    Object, SharedInformerFactory,
    controller::{Action, Controller, owner_of},
    events::{RecordedEvent, Recorder},
    leader::{LeaderElection, Leadership},
    model::ObjectKey,
    store::Store,
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio_util::sync::CancellationToken;

/// The name of this controller in finalizers and events.
const NAME: &str = "example.com/website";

#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Website", namespaced, status = "WebsiteStatus")]
#[kube(derive = "PartialEq", derive = "Default")]
pub(crate) struct WebsiteSpec {
    pub(crate) image: String,
    pub(crate) replicas: i32,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebsiteStatus {
    pub(crate) ready_replicas: i32,
    pub(crate) observed_generation: Option<i64>,
}

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init(); // what goes wrong, and is tried again
    let (stop, identity) = (CancellationToken::new(), format!("website-{}", std::process::id()));
    let interrupted = stop.clone();
    tokio::spawn(async move { tokio::signal::ctrl_c().await.map(|()| interrupted.cancel()) });
    run(Client::try_default().await?, identity, stop).await
}

/// Takes part until the stop: the caches are filled at once, the work is done while this instance leads.
pub(crate) async fn run(client: Client, identity: String, stop: CancellationToken) -> Result<()> {
    match Api::all(client.clone()).create(&PostParams::default(), &Website::crd()).await {
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
        defined => drop(defined?),
    }
    let factory = SharedInformerFactory::new(client.clone(), Duration::ZERO);
    let websites = factory.informer_for::<Website>();
    let (deployments, services) = (factory.informer_for::<Deployment>(), factory.informer_for::<Service>());
    let (recorder, delivery) = Recorder::builder(client.clone(), NAME).instance(&identity).build()?;
    let recorded = CancellationToken::new(); // after `stop`: calls that run when it comes go on recording
    let delivery = tokio::spawn(delivery.run(recorded.clone()));
    factory.start()?;

    let election =
        LeaderElection::builder(client.clone(), "default", "website").identity(&identity).build()?;
    let ended = election.run_while_leader(stop.clone(), |leadership| {
        println!("{identity} leads, term {}", leadership.token());
        let context = Arc::new(Context {
            client: client.clone(),
            websites: websites.store(),
            deployments: deployments.store(),
            services: services.store(),
            leadership,
            recorder: recorder.clone(),
        });
        let controller = Controller::new("websites").of(&websites).workers(4);
        let controller = controller.owns::<Website, _>(&deployments).owns::<Website, _>(&services);
        controller.run(stop.clone(), move |key| {
            let context = Arc::clone(&context);
            async move { context.reconcile(&key).await.map(|()| Action::AwaitChange).or_else(outdated) }
        })
    });
    let ended = ended.await.transpose();
    factory.shutdown().await;
    recorded.cancel();
    delivery.await?;
    Ok(ended.map(drop)?)
}

struct Context {
    client: Client,
    websites: Store<Website>,
    deployments: Store<Deployment>,
    services: Store<Service>,
    leadership: Leadership,
    recorder: Recorder,
}

impl Context {
    /// Brings the world to what a website asks for. An error comes back later, and later, until it is none.
    async fn reconcile(&self, key: &ObjectKey) -> Result<()> {
        let Some(now) = self.websites.get(key) else { return Ok(()) };
        let mut site = Website::clone(&now);
        if site.meta().deletion_timestamp.is_some() {
            // One after the other: each deletion is an event that brings the key back, until only the finalizer is left.
            if self.delete(&self.deployments, key).await? || self.delete(&self.services, key).await? {
                return Ok(());
            }
            site.finalizers_mut().retain(|name| name != NAME);
            return self.write(&self.websites, site).await;
        }
        if !site.finalizers().iter().any(|name| name == NAME) {
            site.finalizers_mut().push(NAME.to_owned());
            return self.write(&self.websites, site).await; // and the change comes back
        }
        let deployment = self.deployments.get(key).as_deref().cloned().unwrap_or_default();
        let ready_replicas = deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
        self.write(&self.deployments, shaped_deployment(&site, deployment)).await?;
        let service = self.services.get(key).as_deref().cloned().unwrap_or_default();
        self.write(&self.services, shaped_service(&site, service)).await?;
        let observed_generation = site.meta().generation;
        site.status = Some(WebsiteStatus { ready_replicas, observed_generation });
        if now.status == site.status {
            return Ok(());
        }
        if now.status.as_ref().is_none_or(|status| status.observed_generation != observed_generation) {
            self.recorder.record(&site, RecordedEvent::normal("Applied", format!("{:?}", site.spec)));
        }
        self.leadership.fence()?.check(site.meta())?;
        let written = self.api(key).replace_status(key.name(), &PostParams::default(), &site).await?;
        see(&self.websites, &written).await
    }

    /// Writes an object, unless it is so already. A new one has no version yet.
    async fn write<K: Kind>(&self, cache: &Store<K>, mut object: K) -> Result<()> {
        let key = ObjectKey::new(object.namespace().as_deref(), &object.name_any())?;
        if cache.get(&key).is_some_and(|now| *now == object) {
            return Ok(());
        }
        // What a later leader has written stays: it carries a higher number, or its version is not the one we read.
        let fence = self.leadership.fence()?;
        fence.check(object.meta())?;
        fence.stamp(object.meta_mut());
        let written = match object.resource_version() {
            Some(_) => self.api(&key).replace(key.name(), &PostParams::default(), &object).await?,
            None => self.api(&key).create(&PostParams::default(), &object).await?,
        };
        see(cache, &written).await
    }

    /// Deletes what belongs to the website, and says whether there was anything.
    async fn delete<K: Kind>(&self, cache: &Store<K>, key: &ObjectKey) -> Result<bool> {
        let is_owned = |object: &Object<K>| owner_of::<Website>(object.meta(), &()).as_ref() == Some(key);
        let Some(object) = cache.get(key).filter(is_owned) else { return Ok(false) };
        self.leadership.fence()?.check(object.meta())?;
        let version = object.meta().resource_version.clone();
        let seen = Preconditions { resource_version: version, uid: object.uid() };
        let only_as_seen = DeleteParams::default().preconditions(seen);
        Ok(self.api::<K>(key).delete(key.name(), &only_as_seen).await.map(|_| true)?)
    }

    fn api<K: Kind>(&self, key: &ObjectKey) -> Api<K> {
        Api::namespaced(self.client.clone(), key.namespace().unwrap_or_default())
    }
}

/// What all kinds here have in common.
trait Kind: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + Value {}
trait Value: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned {}
impl<K: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned> Value for K {}
impl<K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + Value> Kind for K {}

/// Only the fields that are ours: what the server fills in, or somebody else sets, stays.
fn shaped_deployment(site: &Website, mut deployment: Deployment) -> Deployment {
    let labels = own(site, &mut deployment);
    let spec = &mut deployment.spec;
    spec.replicas = Some(site.spec.replicas);
    spec.selector.match_labels = Some(labels.clone());
    spec.template.metadata.get_or_insert_default().labels = Some(labels);
    let containers = &mut spec.template.spec.get_or_insert_default().containers;
    containers.resize_with(1, Default::default);
    containers[0].name = "web".to_owned();
    containers[0].image = Some(site.spec.image.clone());
    deployment
}

fn shaped_service(site: &Website, mut service: Service) -> Service {
    let labels = own(site, &mut service);
    let spec = service.spec.get_or_insert_default();
    spec.selector = Some(labels);
    spec.ports.get_or_insert_with(|| vec![Default::default()])[0].port = 80;
    service
}

/// The name and owner of what belongs to a website, and the labels of its pods.
fn own(site: &Website, object: &mut impl Resource) -> BTreeMap<String, String> {
    let meta = object.meta_mut();
    (meta.name, meta.namespace) = (site.meta().name.clone(), site.namespace());
    meta.owner_references = site.controller_owner_ref(&()).map(|owner| vec![owner]);
    BTreeMap::from([("website".to_owned(), site.name_any())])
}

/// Waits until the cache has what was written: the next call decides by it, and not by what was before.
async fn see<K: Kind>(cache: &Store<K>, written: &K) -> Result<()> {
    let version = written.resource_version().unwrap_or_default().into();
    Ok(cache.wait_for_resource_version(&version, Duration::from_secs(10)).await.map(drop)?)
}

/// Somebody else was faster, which is no error. What has changed since it was read is looked at again: the event of that change
/// may have come before, or name no website. What is gone comes as an event, and the key with it.
fn outdated(error: anyhow::Error) -> Result<Action> {
    match error.downcast_ref() {
        Some(kube::Error::Api(status)) if status.reason == "Conflict" => {
            Ok(Action::RequeueAfter(Duration::ZERO))
        }
        Some(kube::Error::Api(status)) if status.reason == "NotFound" => Ok(Action::AwaitChange),
        _ => Err(error),
    }
}
