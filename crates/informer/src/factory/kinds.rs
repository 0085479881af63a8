//! Which kinds the server has, for informers that end and begin with theirs.
//!
//! An informer of the CustomResourceDefinitions tells, where it is allowed. Until it has, and for kinds that have never had a
//! definition, such as those of aggregated APIs, the server is asked what it serves.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt};
use informer_model::BUILTIN_KINDS;
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Deserialize;
use tokio::{sync::Notify, sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    SharedInformer,
    coverage::Presence,
    discovery::{Catalog, Discovery},
    source::KubeListWatch,
    store::Snapshot,
    until,
};

/// How long the definitions have for their first list before the server is asked what it serves.
const FIRST_LIST: Duration = Duration::from_secs(5);

/// What a definition says about whether its kind is served.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Definition {
    metadata: ObjectMeta,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Deserialize)]
struct Spec {
    group: String,
    names: Names,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Debug, Clone, Deserialize)]
struct Names {
    plural: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Version {
    name: String,
    served: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

crate::projection!(Definition of CustomResourceDefinition);

/// Group, version and plural.
type Resource = [String; 3];

pub(super) struct Kinds {
    discovery: Discovery,
    ask_every: Duration,
    followed: Mutex<HashMap<Resource, Followed>>,
    /// Somebody follows another kind, or the definitions are in trouble.
    look: Notify,
}

struct Followed {
    presence: watch::Sender<Presence>,
    /// Whether it has ever had a definition: then discovery, which may lag behind, is not asked.
    defined: bool,
    /// The definition that it has now.
    uid: Option<String>,
    /// How often it has come.
    times: u64,
}

/// Whether a kind is served, as somebody sees it.
enum Sight {
    /// By this definition, if it is known.
    Served(Option<String>),
    Absent(String),
}

impl Kinds {
    pub(super) fn new(discovery: Discovery, ask_every: Duration) -> Self {
        Self { discovery, ask_every, followed: Mutex::default(), look: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Resource, Followed>> {
        // Nothing of a user's runs under this lock.
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether there is such a kind, as long as somebody listens; `None` for a kind that stays.
    pub(super) fn follow(&self, resource: Resource) -> Option<watch::Receiver<Presence>> {
        let [group, _, plural] = &resource;
        if BUILTIN_KINDS.iter().any(|kind| (kind.group, kind.plural) == (group.as_str(), plural.as_str())) {
            return None;
        }
        let mut followed = self.lock();
        followed.retain(|_, kind| !kind.presence.is_closed());
        let kind = followed.entry(resource).or_insert_with(|| Followed {
            presence: watch::Sender::new(Presence::Unknown),
            defined: false,
            uid: None,
            times: 0,
        });
        self.look.notify_one();
        Some(kind.presence.subscribe())
    }

    /// Follows the definitions for ever.
    pub(super) async fn run(self: Arc<Self>, definitions: KubeListWatch<Definition>) {
        let this = Arc::clone(&self);
        let definitions = SharedInformer::builder(definitions)
            .name("the definitions of kinds")
            .watch_error_handler(move |_, _| this.look.notify_one())
            .build()
            .expect("one source, and nothing chosen that cannot be");
        let following = async {
            let _ = tokio::time::timeout(FIRST_LIST, self.known(&definitions)).await;
            let Ok(mut news) = definitions.subscribe() else { return };
            let mut asked = None;
            loop {
                let due = self.look(&definitions, &mut asked).await;
                tokio::select! {
                    event = news.next() => {
                        if event.is_none() {
                            return;
                        }
                        // What has come together is looked at once.
                        while news.next().now_or_never().flatten().is_some() {}
                        self.discovery.forget();
                    }
                    () = self.look.notified() => {}
                    () = until(due) => {}
                }
            }
        };
        // The factory ends it by dropping it.
        let running = definitions.run(CancellationToken::new());
        let _ = tokio::join!(following, running);
    }

    /// Waits until the definitions are there, or somebody says that they cannot be read.
    async fn known(&self, definitions: &SharedInformer<Definition>) {
        while !definitions.has_synced() && definitions.health().trouble().is_none() {
            tokio::select! {
                _ = definitions.wait_until_synced(FIRST_LIST) => {}
                () = self.look.notified() => {}
            }
        }
    }

    /// Looks what there is, and says when to ask the server next, if so.
    async fn look(
        &self,
        definitions: &SharedInformer<Definition>,
        asked: &mut Option<Instant>,
    ) -> Option<Instant> {
        let definitions = definitions.has_synced().then(|| definitions.store().snapshot());
        let mut open = Vec::new();
        for (resource, kind) in &mut *self.lock() {
            match definitions.as_ref().and_then(|all| kind.defined_in(all, resource)) {
                Some(sight) => kind.see(sight),
                None => open.push(resource.clone()),
            }
        }
        if open.is_empty() {
            return None;
        }
        let is_new = |resource: &Resource| {
            self.lock().get(resource).is_some_and(|kind| *kind.presence.borrow() == Presence::Unknown)
        };
        let due = asked.map(|asked| asked + self.ask_every).filter(|_| !open.iter().any(is_new));
        if let Some(due) = due.filter(|due| Instant::now() < *due) {
            return Some(due);
        }
        *asked = Some(Instant::now());
        match self.discovery.refresh().await {
            Ok(catalog) => {
                let mut followed = self.lock();
                for resource in open {
                    if let (Some(kind), Some(sight)) =
                        (followed.get_mut(&resource), served(&catalog, &resource))
                    {
                        kind.see(sight);
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, "what the server serves could not be asked: kinds stay as they were");
            }
        }
        asked.and_then(|asked| asked.checked_add(self.ask_every))
    }
}

/// What discovery says of a kind; nothing if it could not ask.
fn served(catalog: &Catalog, [group, version, plural]: &Resource) -> Option<Sight> {
    let is_it =
        |api: &kube::core::ApiResource| (&api.group, &api.version, &api.plural) == (group, version, plural);
    if catalog.resources.iter().any(|served| is_it(&served.api)) {
        return Some(Sight::Served(None));
    }
    let group_version = format!("{group}/{version}");
    let words =
        format!("the server has no {plural} in {group_version}; is its CustomResourceDefinition installed?");
    (!catalog.silent.contains(&group_version)).then_some(Sight::Absent(words))
}

impl Followed {
    /// What the definitions say; nothing about a kind that has never had one.
    fn defined_in(
        &mut self,
        all: &Snapshot<Definition>,
        [group, version, plural]: &Resource,
    ) -> Option<Sight> {
        let name = format!("{plural}.{group}");
        let definition = name.parse().ok().and_then(|key| all.get(&key));
        let definition = definition.filter(|it| it.spec.group == *group && it.spec.names.plural == *plural);
        let Some(definition) = definition else {
            let gone = || Sight::Absent(format!("its CustomResourceDefinition {name} is gone"));
            return self.defined.then(gone);
        };
        self.defined = true;
        let established = |it: &Condition| it.kind == "Established" && it.status == "True";
        Some(if !definition.status.conditions.iter().any(established) {
            Sight::Absent(format!("its CustomResourceDefinition {name} is not established yet"))
        } else if !definition.spec.versions.iter().any(|it| it.served && it.name == *version) {
            Sight::Absent(format!("its CustomResourceDefinition {name} does not serve version {version}"))
        } else {
            Sight::Served(definition.metadata.uid.clone())
        })
    }

    fn see(&mut self, sight: Sight) {
        let is_served = matches!(*self.presence.borrow(), Presence::Served(_));
        let presence = match sight {
            Sight::Served(uid) => {
                let is_another = matches!((&self.uid, &uid), (Some(known), Some(uid)) if known != uid);
                self.times += u64::from(!is_served || is_another);
                self.uid = uid.or(self.uid.take());
                Presence::Served(self.times)
            }
            Sight::Absent(why) => {
                self.uid = None;
                Presence::Absent(why.into())
            }
        };
        self.presence.send_if_modified(|known| {
            let news = *known != presence;
            *known = presence;
            news
        });
    }
}
