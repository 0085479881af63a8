//! One resource of a factory: its informer and its lister.

use std::{any::TypeId, fmt};

use kube::Resource;
use serde::de::DeserializeOwned;

use super::{SharedInformerFactory, registry::Key};
use crate::{DynamicObject, Lister, SharedInformer, shared::SharedInformerBuilder, source::is_namespaced};

/// What the objects of an informer can be: anything that is a resource of Kubernetes, can be decoded, and can be
/// shared. Every type of `k8s_openapi`, types made with kube's `CustomResource`, [`DynamicObject`],
/// [`PartialObjectMeta`](kube::core::PartialObjectMeta), and your own structs with
/// [`projection!`](crate::projection).
pub trait Kind: Resource<DynamicType: Clone> + DeserializeOwned + Clone + Send + Sync + 'static {}

impl<K> Kind for K where K: Resource<DynamicType: Clone> + DeserializeOwned + Clone + Send + Sync + 'static {}

/// A resource of a factory, client-go's `PodInformer`: what `factory.core().v1().pods()` answers.
///
/// It is a name, not an informer: the informer is made when it is asked for, once, and once more after it was
/// [stopped](SharedInformerFactory::stop_informer).
pub struct ResourceInformer<K: Kind> {
    factory: SharedInformerFactory,
    kind: K::DynamicType,
    namespaced: bool,
}

/// A resource that was looked up by name, as [`SharedInformerFactory::for_resource`] does.
pub type GenericInformer = ResourceInformer<DynamicObject>;

/// The lister of a [`GenericInformer`].
pub type GenericLister = Lister<DynamicObject>;

impl<K: Kind> ResourceInformer<K> {
    pub(super) fn typed(factory: SharedInformerFactory) -> Self
    where
        K::DynamicType: Default,
    {
        let kind = K::DynamicType::default();
        // Most kinds are in namespaces.
        let namespaced = is_namespaced::<K>(&kind).unwrap_or(true);
        Self { factory, kind, namespaced }
    }

    pub(super) fn of_kind(factory: SharedInformerFactory, kind: K::DynamicType, namespaced: bool) -> Self {
        Self { factory, kind, namespaced }
    }

    /// The informer, always the same one until it stops. It runs after the factory's next
    /// [`start`](SharedInformerFactory::start).
    pub fn informer(&self) -> SharedInformer<K> {
        let (registry, key) = (&self.factory.inner.registry, self.key());
        registry.get(&key).unwrap_or_else(|| {
            let informer =
                self.builder().build().expect("the options were checked when the factory was built");
            registry.insert(key, informer)
        })
    }

    /// Reads the informer's cache. As in client-go, asking for the lister is asking for the informer.
    pub fn lister(&self) -> Lister<K> {
        let (group, plural) = (K::group(&self.kind).into_owned(), K::plural(&self.kind).into_owned());
        Lister::named(self.informer().store(), group, plural)
    }

    /// What describes the kind at run time: kube's [`ApiResource`](kube::core::ApiResource) for a
    /// [`GenericInformer`], nothing for a type of its own.
    pub fn kind(&self) -> &K::DynamicType {
        &self.kind
    }

    /// Whether its objects are in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.namespaced
    }

    pub(super) fn builder(&self) -> SharedInformerBuilder<K> {
        let (inner, Key { resource, scope, .. }) = (&self.factory.inner, self.key());
        let namespaces = self.factory.followed_namespaces(&scope);
        let presence = inner.kinds.as_ref().and_then(|kinds| kinds.follow(resource));
        inner.options.builder(&self.kind, &scope, namespaces.as_ref(), presence)
    }

    pub(super) fn key(&self) -> Key {
        let (kind, scope) = (&self.kind, &self.factory.scope);
        let scope = if self.namespaced { (**scope).clone() } else { scope.of_cluster() };
        let resource = [K::group(kind), K::version(kind), K::plural(kind)].map(|name| name.into_owned());
        Key { objects: TypeId::of::<K>(), resource, scope }
    }
}

impl<K: Kind> Clone for ResourceInformer<K> {
    fn clone(&self) -> Self {
        Self { factory: self.factory.clone(), kind: self.kind.clone(), namespaced: self.namespaced }
    }
}

impl<K: Kind> fmt::Debug for ResourceInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceInformer({} {})", K::api_version(&self.kind), K::plural(&self.kind))
    }
}
