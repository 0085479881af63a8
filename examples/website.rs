//! A whole controller: a `Website` becomes a Deployment and a Service, with status, finalizer, events and leader election.
//! Start it twice: one instance works, the other one takes over when the first one ends.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc, time::Duration};

use anyhow::Result;
use informer::{
    Object, SharedInformerFactory, Store,
    controller::{Action, Controller},
    events::{Event, Recorder},
    leader::{LeaderElection, Leadership},
    model::ObjectKey,
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
    core::NamespaceResourceScope,
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
        made => drop(made?),
    }
    let factory = SharedInformerFactory::new(client.clone(), Duration::ZERO);
    let websites = factory.informer_for::<Website>();
    let (deployments, services) = (factory.informer_for::<Deployment>(), factory.informer_for::<Service>());
    let (recorder, delivery) = Recorder::builder(client.clone(), NAME).instance(&identity).build()?;
    let recorded = CancellationToken::new(); // not `stop`: calls that run when it comes record events until they end
    let delivery = tokio::spawn(delivery.run(recorded.clone()));
    factory.start()?;

    let election = LeaderElection::builder(client.clone(), "default", "website").identity(&identity).build()?;
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
            async move { context.reconcile(&key).await }
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
    /// An error comes back later, and later, until it is none.
    async fn reconcile(&self, key: &ObjectKey) -> Result<Action> {
        match self.apply(key).await {
            // Somebody else has changed or deleted what was read: that comes as an event, and the key with it.
            Err(error) if is_outdated(&error) => Ok(Action::AwaitChange),
            applied => applied.map(|()| Action::AwaitChange),
        }
    }

    /// Brings the world to what a website asks for.
    async fn apply(&self, key: &ObjectKey) -> Result<()> {
        let Some(site) = self.websites.get(key) else { return Ok(()) };
        let (deployment, service) = (self.deployments.get(key), self.services.get(key));
        if site.meta().deletion_timestamp.is_some() {
            self.delete(deployment).await?;
            self.delete(service).await?;
            let release = |site: &mut Website| site.finalizers_mut().retain(|name| name != NAME);
            return self.write(&self.websites, Some(&site), release).await.map(drop);
        }
        if !site.finalizers().iter().any(|name| name == NAME) {
            let hold = |site: &mut Website| site.finalizers_mut().push(NAME.to_owned());
            return self.write(&self.websites, Some(&site), hold).await.map(drop); // the change comes back
        }
        let shape = |deployment: &mut Deployment| shape_deployment(&site, deployment);
        let made = self.write(&self.deployments, deployment.as_ref(), shape).await?
            | self.write(&self.services, service.as_ref(), |service| shape_service(&site, service)).await?;
        if made {
            self.recorder.record(&site, Event::normal("Applied", format!("{:?}", site.spec)));
        }
        let ready_replicas = deployment.and_then(|now| now.status.as_ref()?.ready_replicas).unwrap_or(0);
        let status = Some(WebsiteStatus { ready_replicas, observed_generation: site.meta().generation });
        if site.status != status {
            self.leadership.fence()?.check(site.meta())?;
            let site = Website { status, ..Website::clone(&site) };
            let written = self.api(key).replace_status(key.name(), &PostParams::default(), &site).await?;
            see(&self.websites, &written).await?;
        }
        Ok(())
    }

    /// Changes an object, or makes a new one, if the change is one. Says whether it was.
    async fn write<K: Kind>(
        &self,
        cache: &Store<K>,
        now: Option<&Object<K>>,
        change: impl FnOnce(&mut K),
    ) -> Result<bool> {
        let mut object = now.map(|now| K::clone(now)).unwrap_or_default();
        change(&mut object);
        if now.is_some_and(|now| **now == object) {
            return Ok(false);
        }
        // What a later leader has written stays: it carries a higher number, or its version is not the one we read.
        let fence = self.leadership.fence()?;
        fence.check(object.meta())?;
        fence.stamp(object.meta_mut());
        let key = ObjectKey::new(object.namespace().as_deref(), &object.name_any())?;
        let written = match now {
            Some(_) => self.api(&key).replace(key.name(), &PostParams::default(), &object).await?,
            None => self.api(&key).create(&PostParams::default(), &object).await?,
        };
        see(cache, &written).await.map(|()| true)
    }

    async fn delete<K: Kind>(&self, object: Option<Object<K>>) -> Result<()> {
        let Some(object) = object else { return Ok(()) };
        self.leadership.fence()?.check(object.meta())?;
        let seen =
            Preconditions { resource_version: object.meta().resource_version.clone(), uid: object.uid() };
        let only_as_seen = DeleteParams::default().preconditions(seen);
        self.api::<K>(object.key()).delete(object.key().name(), &only_as_seen).await?;
        Ok(())
    }

    fn api<K: Kind>(&self, key: &ObjectKey) -> Api<K> {
        Api::namespaced(self.client.clone(), key.namespace().unwrap_or_default())
    }
}

/// What all kinds here have in common.
trait Kind: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Value {}
trait Value: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned {}
impl<K: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned> Value for K {}
impl<K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Value> Kind for K {}

/// Only the fields that are ours: what the server fills in, or somebody else sets, stays.
fn shape_deployment(site: &Website, deployment: &mut Deployment) {
    let labels = own(site, deployment);
    let spec = &mut deployment.spec;
    spec.replicas = Some(site.spec.replicas);
    spec.selector.match_labels = Some(labels.clone());
    spec.template.metadata.get_or_insert_default().labels = Some(labels);
    let containers = &mut spec.template.spec.get_or_insert_default().containers;
    containers.resize_with(1, Default::default);
    containers[0].name = "web".to_owned();
    containers[0].image = Some(site.spec.image.clone());
}

fn shape_service(site: &Website, service: &mut Service) {
    let labels = own(site, service);
    let spec = service.spec.get_or_insert_default();
    spec.selector = Some(labels);
    spec.ports.get_or_insert_with(|| vec![Default::default()])[0].port = 80;
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
    cache.wait_for_resource_version(&version, Duration::from_secs(10)).await?;
    Ok(())
}

/// The server no longer has what was to be changed, or not as it was read.
fn is_outdated(error: &anyhow::Error) -> bool {
    let Some(kube::Error::Api(status)) = error.downcast_ref() else { return false };
    ["Conflict", "NotFound"].contains(&&*status.reason)
}
