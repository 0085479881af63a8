//! What a controller hears of, and which items that is about.

use std::{fmt, hash::Hash};

use informer_model::ObjectKey;
use kube::Resource;

use super::{
    Predicate,
    joined::{OfInformer, Source},
    owner::{owner_of, owners_of},
};
use crate::{Event, Object, SharedInformer, store::IndexHandle};

/// Events of an informer, and which items of a controller they are about: for [`Controller::feed`](super::Controller::feed).
///
/// ```
/// use informer::{SharedInformer, controller::{Controller, Feed, Predicate}};
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Pod}};
///
/// fn controller(
///     deployments: &SharedInformer<Deployment>, pods: &SharedInformer<Pod>, maps: &SharedInformer<ConfigMap>,
/// ) -> Result<Controller, Box<dyn std::error::Error>> {
///     let by_map = deployments.add_index("config-map", |deployment| deployment.metadata.annotations.clone()?.remove("config-map"))?;
///     Ok(Controller::new("deployments")
///         .feed(Feed::of(deployments).when(Predicate::generation_changed()))
///         .feed(Feed::every_owner::<Deployment>(pods).priority(-1))
///         // All deployments that the index has under the name of the config map.
///         .feed(Feed::indexed(maps, by_map, |map| Some(map.key().name().to_owned()))))
/// }
/// ```
#[must_use = "a feed is for a controller"]
pub struct Feed<K, T = ObjectKey> {
    informer: SharedInformer<K>,
    items: Items<K, T>,
    when: Vec<Predicate<K>>,
    priority: i32,
}

type Items<K, T> = Box<dyn Fn(&Event<K>) -> Vec<T> + Send + Sync>;

impl<K: Send + Sync + 'static> Feed<K> {
    /// Each event is about its object.
    pub fn of(informer: &SharedInformer<K>) -> Self {
        Self::events(informer, |event| [event.key().clone()])
    }

    /// Each event is about the owner of kind `Owner` that controls the object.
    pub fn owns<Owner>(informer: &SharedInformer<K>) -> Self
    where
        Owner: Resource<DynamicType: Default> + 'static,
        K: Resource,
    {
        let kind = Owner::DynamicType::default();
        Self::mapped(informer, move |object| owner_of::<Owner>(object.meta(), &kind))
    }

    /// Each event is about all owners of kind `Owner`, whether they control the object or not.
    pub fn every_owner<Owner>(informer: &SharedInformer<K>) -> Self
    where
        Owner: Resource<DynamicType: Default> + 'static,
        K: Resource,
    {
        let kind = Owner::DynamicType::default();
        Self::mapped(informer, move |object| owners_of::<Owner>(object.meta(), &kind))
    }

    /// Each event is about the objects of an index: those under the values that a function makes of the object. The index is that of the cache
    /// at that moment; what comes to be under the value later is about itself.
    pub fn indexed<R, F, I>(informer: &SharedInformer<K>, index: IndexHandle<R>, values: F) -> Self
    where
        R: Send + Sync + 'static,
        F: Fn(&Object<K>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item: AsRef<str>>,
    {
        Self::mapped(informer, move |object| {
            let under = |value: &str| index.get(value).into_iter().map(|found| found.key().clone());
            values(object)
                .into_iter()
                .flat_map(|value| under(value.as_ref()).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        })
    }
}

impl<K: Send + Sync + 'static, T> Feed<K, T> {
    /// Each event is about what a function makes of the object; of an update, of what it was and of what it is.
    pub fn mapped<F, I>(informer: &SharedInformer<K>, items: F) -> Self
    where
        F: Fn(&Object<K>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item = T>,
    {
        Self::events(informer, move |event| {
            let (before, after) = event.objects();
            before.into_iter().chain(after).flat_map(&items).collect::<Vec<T>>()
        })
    }

    /// Each event is about what a function makes of it: the most general way.
    pub fn events<F, I>(informer: &SharedInformer<K>, items: F) -> Self
    where
        F: Fn(&Event<K>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item = T>,
    {
        let items = Box::new(move |event: &Event<K>| items(event).into_iter().collect());
        Self { informer: informer.clone(), items, when: Vec::new(), priority: 0 }
    }

    /// Only events that pass. May be said several times: then all have to let an event pass.
    pub fn when(mut self, predicate: Predicate<K>) -> Self {
        self.when.push(predicate);
        self
    }

    /// Items of higher priority are before others in the queue. Default: 0. What existed before and what a resync shows is 100 lower.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    pub(super) fn into_source(self, controller: &str) -> Box<dyn Source<T>>
    where
        T: Hash + Eq + Clone + Send + 'static,
        K: 'static,
    {
        let Self { informer, items, when, priority } = self;
        let items = move |event: &Event<K>| match when.iter().all(|predicate| predicate.passes(event)) {
            true => items(event),
            false => Vec::new(),
        };
        OfInformer::source(controller, informer, items, priority)
    }
}

impl<K, T> fmt::Debug for Feed<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let predicates = self.when.len();
        f.debug_struct("Feed")
            .field("predicates", &predicates)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}
