//! The program whose lives are played: an election, and a controller that gives every widget a colour outside of the cluster, a config map
//! of that colour, and so many secrets.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use informer::{
    Object, SharedInformer, SharedInformerFactory,
    client::{ReadError, WriteError, Writes},
    controller::{
        Action, AlreadyOwned, Controller, Feed, FinalizerError, FinalizerEvent, OnError, Predicate,
        condition, finalizer, is_controlled_by, set_condition, set_controller_reference,
    },
    leader::{LeaderElection, Leadership, Lost},
    model::ObjectKey,
    workqueue::WorkQueue,
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
};
use kube::{Client, ResourceExt, api::PostParams};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{process::Life, world::World};

pub(crate) const FINALIZER: &str = "example.com/colour";
pub(crate) const LEASE: Duration = Duration::from_secs(6);
pub(crate) const DEADLINE: Duration = Duration::from_secs(4);
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// What a user asks for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Widget {
    #[serde(default = "api_version")]
    api_version: String,
    #[serde(default = "kind")]
    kind: String,
    #[serde(default)]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Spec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<Status>,
}

fn api_version() -> String {
    "example.com/v1".to_owned()
}

fn kind() -> String {
    "Widget".to_owned()
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) color: String,
    pub(crate) size: usize,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) observed_generation: Option<i64>,
    #[serde(default)]
    pub(crate) conditions: Vec<Condition>,
}

informer::projection!(Widget of {
    group: "example.com", version: "v1", kind: "Widget", plural: "widgets", scope: Namespaced,
});

#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Lost(#[from] Lost),
    #[error(transparent)]
    Owned(#[from] AlreadyOwned),
    #[error("{0}")]
    Outside(String),
    #[error("{0}")]
    Finalizer(String),
}

impl From<informer::client::Behind> for Trouble {
    fn from(behind: informer::client::Behind) -> Self {
        Self::Read(behind.into())
    }
}

impl From<FinalizerError<Trouble>> for Trouble {
    fn from(error: FinalizerError<Trouble>) -> Self {
        match error {
            FinalizerError::Work(error) => error,
            FinalizerError::Write(error) => error.into(),
            error => Self::Finalizer(error.to_string()),
        }
    }
}

impl Trouble {
    /// Somebody else was faster, or the cache is behind.
    fn is_outdated(&self) -> bool {
        matches!(self, Self::Write(error) if error.is_conflict() || error.is_already_exists() || error.is_not_found())
    }
}

/// How a program is to be.
#[derive(Debug, Clone)]
pub(crate) struct Temper {
    pub(crate) seed: u64,
    pub(crate) identity: String,
    pub(crate) workers: usize,
    /// For how long at most work outside of the cluster takes.
    pub(crate) slow: Duration,
    /// How often a call asks to be called again.
    pub(crate) again: f64,
}

/// Takes part until the stop.
pub(crate) async fn run(
    client: Client,
    temper: Temper,
    world: Arc<World>,
    life: Arc<Life>,
    stop: CancellationToken,
) {
    let factory = SharedInformerFactory::builder(client.clone()).seed(temper.seed).build().unwrap();
    // One after the other, in an order that is always the same.
    let widgets = factory.informer_for::<Widget>();
    factory.start().unwrap();
    let maps = factory.informer_for::<ConfigMap>();
    factory.start().unwrap();
    let secrets = factory.informer_for::<Secret>();
    factory.start().unwrap();
    let election = LeaderElection::builder(client.clone(), "default", "boss")
        .identity(&temper.identity)
        .lease_duration(LEASE)
        .renew_deadline(DEADLINE)
        .retry_period(RETRY)
        .seed(temper.seed)
        .build()
        .unwrap();
    let ended = election.run_while_leader(stop.clone(), |leadership| {
        let controller = controller(&temper, &widgets, &maps, &secrets, &life);
        let context = Arc::new(Context {
            widgets: Writes::new(client.clone(), &widgets).fenced(leadership.clone()),
            maps: Writes::new(client.clone(), &maps).fenced(leadership.clone()),
            secrets: Writes::new(client.clone(), &secrets).fenced(leadership.clone()),
            leadership,
            world: Arc::clone(&world),
            life: Arc::clone(&life),
            temper: temper.clone(),
            chance: Mutex::default(),
        });
        controller.run(stop.clone(), move |key| {
            let context = Arc::clone(&context);
            async move { context.reconcile(key).await }
        })
    });
    if let Err(error) = ended.await.transpose() {
        world.wrong(format!("{}: {error}", temper.identity));
    }
    factory.shutdown().await;
}

fn controller(
    temper: &Temper,
    widgets: &SharedInformer<Widget>,
    maps: &SharedInformer<ConfigMap>,
    secrets: &SharedInformer<Secret>,
    life: &Life,
) -> Controller {
    let policy = |_: &ObjectKey, error: &Trouble| match error.is_outdated() {
        true => OnError::RetryAfter(Duration::ZERO),
        false => OnError::Retry,
    };
    let controller = Controller::new("widgets")
        .feed(Feed::of(widgets).when(Predicate::generation_changed()))
        .owns::<Widget, _>(maps)
        .feed(Feed::owns::<Widget>(secrets).priority(-1))
        .workers(temper.workers)
        .error_policy(policy)
        .on_failure(|_, _| {});
    let queue: WorkQueue<ObjectKey> = controller.queue();
    *life.queue.lock().unwrap() = Some(queue);
    controller
}

struct Context {
    widgets: Writes<Widget>,
    maps: Writes<ConfigMap>,
    secrets: Writes<Secret>,
    leadership: Leadership,
    world: Arc<World>,
    life: Arc<Life>,
    temper: Temper,
    /// Of each widget, so that it does not matter which of them comes first.
    chance: Mutex<HashMap<String, Pcg64Mcg>>,
}

impl Context {
    async fn reconcile(&self, key: ObjectKey) -> Result<Action, Trouble> {
        self.look(&key);
        let Some(widget) = self.widgets.lister().get_opt(&key).await? else {
            return Ok(Action::AwaitChange);
        };
        let work = async |event| match event {
            FinalizerEvent::Apply(widget) => self.apply(&widget).await,
            FinalizerEvent::Cleanup(widget) => self.clean_up(&widget).await,
        };
        Ok(finalizer(&self.widgets, FINALIZER, &widget, work).await?)
    }

    /// The caches show what the last call for this key has written.
    fn look(&self, key: &ObjectKey) {
        let (widgets, maps, secrets) = (self.widgets.lister(), self.maps.lister(), self.secrets.lister());
        self.life.check_fresh(&self.world, key, |plural, key| {
            let meta = match plural {
                "widgets" => widgets.at_once().get(key).ok().map(|object| object.metadata.clone()),
                "configmaps" => maps.at_once().get(key).ok().map(|object| object.metadata.clone()),
                _ => secrets.at_once().get(key).ok().map(|object| object.metadata.clone()),
            };
            meta.map(|meta| (meta.resource_version.unwrap_or_default(), meta.uid.unwrap_or_default()))
        });
    }

    /// A number between nothing and one.
    fn draw(&self, widget: &Object<Widget>) -> f64 {
        let mut chances = self.chance.lock().unwrap();
        let seed = widget
            .name_any()
            .bytes()
            .fold(self.temper.seed, |sum, byte| sum.rotate_left(8) ^ u64::from(byte));
        let chance = chances.entry(widget.name_any()).or_insert_with(|| Pcg64Mcg::seed_from_u64(seed));
        chance.random_range(0.0..1.0)
    }

    async fn dawdle(&self, widget: &Object<Widget>) {
        let time = self.temper.slow.mul_f64(self.draw(widget));
        if !time.is_zero() {
            sleep(time).await;
        }
    }

    async fn apply(&self, widget: &Object<Widget>) -> Result<Action, Trouble> {
        self.dawdle(widget).await;
        // What is outside knows nothing of leases: it is asked to do something only while the term lasts.
        let token = self.leadership.fence()?.token();
        self.world.apply(widget, &self.life, token).map_err(Trouble::Outside)?;
        self.dawdle(widget).await;

        if let Some(map) = self.maps.lister().get_opt(widget.key()).await?
            && !is_controlled_by(&map.metadata, &widget.metadata)
        {
            // It belongs to a widget that was here before.
            self.maps.delete_seen(&map).await?;
        }
        let mut new = ConfigMap::default();
        (new.metadata.name, new.metadata.namespace) = (Some(widget.name_any()), widget.namespace());
        set_controller_reference(&mut new.metadata, &**widget)?;
        let paint = |map: &mut ConfigMap| {
            map.data.get_or_insert_default().insert("color".to_owned(), widget.spec.color.clone());
        };
        self.maps.create_or_update(new, paint).await?;

        let mine = self.secrets_of(widget).await?;
        for _ in mine.len()..widget.spec.size {
            let mut secret = Secret::default();
            (secret.metadata.generate_name, secret.metadata.namespace) =
                (Some(format!("{}-", widget.name_any())), widget.namespace());
            secret.metadata.labels = Some([("widget".to_owned(), widget.name_any())].into());
            set_controller_reference(&mut secret.metadata, &**widget)?;
            self.secrets.create(&PostParams::default(), &secret).await?;
        }
        for secret in mine.iter().skip(widget.spec.size) {
            self.secrets.delete_seen(secret).await?;
        }

        let report = |widget: &mut Widget| {
            let generation = widget.metadata.generation;
            let status = widget.status.get_or_insert_default();
            status.observed_generation = generation;
            set_condition(&mut status.conditions, condition("Ready", true, "Made", "it is there"));
        };
        self.widgets.update_status(widget, report).await?;
        let again = self.world.is_troubled() && self.draw(widget) < self.temper.again;
        Ok(if again { Action::after(Duration::from_secs(2)) } else { Action::AwaitChange })
    }

    async fn secrets_of(&self, widget: &Object<Widget>) -> Result<Vec<Object<Secret>>, Trouble> {
        let label = format!("widget={}", widget.name_any()).parse().unwrap();
        let namespace = widget.namespace().unwrap_or_default();
        let mut secrets = self.secrets.lister().list_namespace(&namespace, &label).await?;
        secrets.retain(|secret| is_controlled_by(&secret.metadata, &widget.metadata));
        Ok(secrets)
    }

    async fn clean_up(&self, widget: &Object<Widget>) -> Result<Action, Trouble> {
        if let Some(map) = self.maps.lister().get_opt(widget.key()).await?
            && is_controlled_by(&map.metadata, &widget.metadata)
        {
            self.maps.delete_seen(&map).await?;
        }
        for secret in self.secrets_of(widget).await? {
            self.secrets.delete_seen(&secret).await?;
        }
        self.dawdle(widget).await;
        let token = self.leadership.fence()?.token();
        self.world.clean_up(widget, &self.life, token).map_err(Trouble::Outside)?;
        self.dawdle(widget).await;
        Ok(Action::AwaitChange)
    }
}
