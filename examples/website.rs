//! A whole controller: a `Website` becomes a Deployment and a Service, with status, finalizer, events and leader election.
//! Start it twice: one instance works, the other one takes over when the first one ends.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc, time::Duration};

use anyhow::Result;
use informer::{
    Object, SharedInformerFactory,
    client::{WriteError, Writes},
    controller::{Action, Controller, FinalizerError, FinalizerEvent, OnError, finalizer, is_controlled_by},
    events::{RecordedEvent, Recorder},
    leader::LeaderElection,
    manager::Manager,
    model::ObjectKey,
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt, api::PostParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

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
    let identity = format!("website-{}", std::process::id());
    Ok(manager(Client::try_default().await?, identity).await?.run_until_signal().await?)
}

/// What takes part until the stop: the caches are filled at once, the work is done while this instance leads.
pub(crate) async fn manager(client: Client, identity: String) -> Result<Manager> {
    match Api::all(client.clone()).create(&PostParams::default(), &Website::crd()).await {
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
        defined => drop(defined?),
    }
    let factory = SharedInformerFactory::new(client.clone(), Duration::ZERO);
    let websites = factory.informer_for::<Website>();
    let (deployments, services) = (factory.informer_for::<Deployment>(), factory.informer_for::<Service>());
    let (recorder, delivery) = Recorder::builder(client.clone(), NAME).instance(&identity).build()?;
    let election =
        LeaderElection::builder(client.clone(), "default", "website").identity(&identity).build()?;
    let controller = Controller::new("websites").of(&websites).workers(4).error_policy(outdated);
    let controller = controller.owns::<Website, _>(&deployments).owns::<Website, _>(&services);
    let manager = Manager::new().caches(&factory).events(delivery).election(election);
    Ok(manager.fenced_controller(controller, move |leadership| {
        println!("{identity} leads, term {}", leadership.token());
        // What a later leader has written stays, and reads wait for writes.
        let context = Arc::new(Context {
            websites: Writes::new(client.clone(), &websites).fenced(leadership.clone()),
            deployments: Writes::new(client.clone(), &deployments).fenced(leadership.clone()),
            services: Writes::new(client, &services).fenced(leadership),
            recorder,
        });
        move |key| {
            let context = Arc::clone(&context);
            async move { context.reconcile(&key).await }
        }
    }))
}

struct Context {
    websites: Writes<Website>,
    deployments: Writes<Deployment>,
    services: Writes<Service>,
    recorder: Recorder,
}

impl Context {
    /// Brings the world to what a website asks for. An error comes back later, and later, until it is none.
    async fn reconcile(&self, key: &ObjectKey) -> Result<Action> {
        let Some(site) = self.websites.lister().get_opt(key).await? else { return Ok(Action::AwaitChange) };
        let work = async |event| match event {
            FinalizerEvent::Apply(site) => self.apply(&site).await,
            FinalizerEvent::Cleanup(site) => self.clean_up(&site).await,
        };
        finalizer(&self.websites, NAME, &site, work).await.map_err(|error| match error {
            FinalizerError::Work(error) => error,
            FinalizerError::Write(error) => error.into(),
            error => anyhow::anyhow!("{error}"),
        })
    }

    async fn apply(&self, site: &Object<Website>) -> Result<Action> {
        let (_, deployment) = self
            .deployments
            .create_or_update(named(site), |deployment| shape_deployment(site, deployment))
            .await?;
        self.services.create_or_update(named(site), |service| shape_service(site, service)).await?;
        let ready_replicas = deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
        let observed_generation = site.meta().generation;
        if site.status.as_ref().is_none_or(|status| status.observed_generation != observed_generation) {
            self.recorder.record(&**site, RecordedEvent::normal("Applied", format!("{:?}", site.spec)));
        }
        let status = WebsiteStatus { ready_replicas, observed_generation };
        self.websites.update_status(site, |site| site.status = Some(status)).await?;
        Ok(Action::AwaitChange)
    }

    /// Deletes what belongs to the website. It is clean when nothing of that is there any more.
    async fn clean_up(&self, site: &Object<Website>) -> Result<Action> {
        let there = delete(&self.deployments, site).await? | delete(&self.services, site).await?;
        Ok(if there { Action::after(Duration::from_secs(5)) } else { Action::AwaitChange })
    }
}

/// Deletes what this very website controls, and says whether it is there still.
async fn delete<K: Kind>(kind: &Writes<K>, site: &Object<Website>) -> Result<bool> {
    let there = kind.lister().get_opt(site.key()).await?;
    match there.filter(|object| is_controlled_by(object.meta(), site.meta())) {
        Some(object) => Ok(kind.delete_seen(&object).await?),
        None => Ok(false),
    }
}

/// What all kinds here have in common.
trait Kind:
    Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}
impl<K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static>
    Kind for K
{
}

/// Something of the name of a website.
fn named<K: Kind + Default>(site: &Website) -> K {
    let mut object = K::default();
    (object.meta_mut().name, object.meta_mut().namespace) = (site.meta().name.clone(), site.namespace());
    object
}

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

/// The owner of what belongs to a website, and the labels of its pods.
fn own(site: &Website, object: &mut impl Resource) -> BTreeMap<String, String> {
    object.meta_mut().owner_references = site.controller_owner_ref(&()).map(|owner| vec![owner]);
    BTreeMap::from([("website".to_owned(), site.name_any())])
}

/// Somebody else was faster, which is no error. What has changed since it was read is looked at again: the event of that change
/// may have come before, or name no website. What is gone comes as an event, and the key with it.
fn outdated(_: &ObjectKey, error: &anyhow::Error) -> OnError {
    match error.downcast_ref() {
        Some(error @ WriteError::Api(_)) if error.is_conflict() || error.is_not_found() => {
            OnError::RetryAfter(Duration::ZERO)
        }
        _ => OnError::Retry,
    }
}
