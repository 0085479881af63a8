//! Keys of objects in one of several clusters, and how they come into a work queue.

use std::{fmt, hash::Hash, sync::Arc};

use informer_model::ObjectKey;

use super::{ClusterInformers, group::Listener};
use crate::{
    Event,
    controller::{Controller, NOT_NEWS},
};

/// Which object of which cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterKey {
    /// The name of the cluster.
    pub cluster: Arc<str>,
    /// The object's key there.
    pub key: ObjectKey,
}

impl fmt::Display for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cluster, self.key)
    }
}

impl<K: Send + Sync + 'static> ClusterInformers<K> {
    /// Has one controller reconcile the objects of all clusters, by their keys.
    ///
    /// To be said before [`Clusters::start`](super::Clusters::start), or before the next one. The controller starts at once, and each cluster joins it when the caches of its factory are complete: a cluster that is
    /// lost keeps no other waiting. When a cluster is removed, the keys of its objects are queued once more, and
    /// [`Clusters::get`](super::Clusters::get) knows it no longer.
    ///
    /// ```
    /// use informer::{clusters::{ClusterKey, Clusters}, controller::{Action, Controller}};
    ///
    /// async fn control(clusters: Clusters, stop: informer::CancellationToken) -> Result<(), Box<dyn std::error::Error>> {
    ///     let maps = clusters.informers(|factory| factory.core().v1().config_maps().informer());
    ///     let controller = Controller::<ClusterKey>::new("maps").workers(4);
    ///     maps.feed(&controller);
    ///     clusters.start();
    ///     let reconcile = move |ClusterKey { cluster, key }| {
    ///         let map = maps.get(&cluster).and_then(|maps| maps.store().get(&key));
    ///         async move {
    ///             println!("{key} of {cluster}: {}", if map.is_some() { "make it so" } else { "it is gone" });
    ///             Ok::<_, kube::Error>(Action::AwaitChange)
    ///         }
    ///     };
    ///     Ok(controller.run(stop, reconcile).await?)
    /// }
    /// ```
    pub fn feed(&self, controller: &Controller<ClusterKey>) {
        self.feed_with(controller, |cluster, event| {
            [ClusterKey { cluster: Arc::clone(cluster), key: event.key().clone() }]
        });
    }

    /// The same with items of one's own: an event is about these, or about none.
    pub fn feed_with<T, I>(
        &self,
        controller: &Controller<T>,
        items: impl Fn(&Arc<str>, &Event<K>) -> I + Send + Sync + 'static,
    ) where
        T: Hash + Eq + Clone + fmt::Debug + Send + 'static,
        I: IntoIterator<Item = T>,
    {
        let queue = controller.queue();
        let tell = move |cluster: &Arc<str>, event: &Event<K>, initial: bool| {
            let priority = if initial || event.is_resync() { NOT_NEWS } else { 0 };
            items(cluster, event).into_iter().for_each(|item| queue.add_with_priority(item, priority));
        };
        let name = format!("controller {}", controller.name()).into();
        self.listen(Listener { name, tell: Arc::new(tell), waits: true });
    }
}
