//! Reading the cache the way programs for Kubernetes are used to: by selector, by namespace, by name.
//!
//! A [`Lister`] is a [`Store`] that knows what its objects are called, so that what is missing can be named.
//! To look at many objects without copying handles, take a [`Snapshot`](Lister::snapshot).

use std::{borrow::Borrow, fmt, sync::Arc};

use informer_model::{GroupVersionResource, ObjectKey, Selector, Status, qualified_name};
use kube::Resource;

use crate::{
    Object,
    store::{Snapshot, Store},
};

/// Reads the objects of one kind from the cache. It is cheap to clone (an `Arc`).
///
/// ```
/// use informer::{Lister, Object, model::Selector, store};
/// use k8s_openapi::api::core::v1::Pod;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
///
/// let (mut writer, store) = store::new::<Pod>();
/// let labels = Some([("app".to_owned(), "web".to_owned())].into());
/// let (name, namespace) = (Some("web-0".into()), Some("shop".into()));
/// let metadata = ObjectMeta { name, namespace, labels, ..Default::default() };
/// let pod = Object::new(Pod { metadata, ..Default::default() })?;
/// writer.write(|batch| batch.insert(pod));
///
/// let pods = Lister::new(store);
/// assert_eq!(pods.list(&"app in (web,db)".parse()?).len(), 1);
/// let shop = pods.namespace("shop");
/// assert_eq!(shop.list(&Selector::everything()).len(), 1);
/// assert!(shop.get("web-0").is_ok());
/// let missing = pods.get("shop/web-1").unwrap_err();
/// assert_eq!(missing.to_string(), r#"pods "shop/web-1" not found in the cache"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lister<K> {
    store: Store<K>,
    resource: Arc<ResourceName>,
}

/// What the objects are called in messages.
struct ResourceName {
    group: String,
    plural: String,
}

/// There is no such object in the cache. It may be on the server: the cache is a little behind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {key:?} not found in the cache{}", qualified_name(plural, group), reason(.absent.as_deref()))]
#[non_exhaustive]
pub struct NotFound {
    /// The API group of the resource, empty for the core group.
    pub group: String,
    /// The plural name of the resource.
    pub plural: String,
    /// What was asked for: `namespace/name`, or `name` alone.
    pub key: String,
    /// Why there is no object at all, in words, if that is so; see [`Lister::served`].
    pub absent: Option<Arc<str>>,
}

/// The server does not serve this kind, and so there are no objects of it. Only an informer that
/// [follows its kind](crate::factory::FactoryBuilder::follow_kinds) knows that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not served: {why}", qualified_name(plural, group))]
#[non_exhaustive]
pub struct NotServed {
    /// The API group of the resource, empty for the core group.
    pub group: String,
    /// The plural name of the resource.
    pub plural: String,
    /// What is missing, in words.
    pub why: Arc<str>,
}

fn reason(absent: Option<&str>) -> String {
    absent.map_or_else(String::new, |why| format!(", as it is not served: {why}"))
}

/// 404, as a server answers when it is asked for the object.
impl From<NotFound> for Status {
    fn from(missing: NotFound) -> Self {
        let name = missing.key.rsplit('/').next().unwrap_or_default();
        Self::not_found(&missing.plural, &missing.group, name)
    }
}

impl<K> Lister<K> {
    /// A lister for a kind that knows what it is called.
    pub fn new(store: Store<K>) -> Self
    where
        K: Resource<DynamicType: Default>,
    {
        let kind = K::DynamicType::default();
        Self::named(store, K::group(&kind).into_owned(), K::plural(&kind).into_owned())
    }

    /// A lister for objects of any kind, which are those of a resource.
    pub fn of_resource(store: Store<K>, resource: &GroupVersionResource) -> Self {
        Self::named(store, resource.group().to_owned(), resource.resource().to_owned())
    }

    pub(crate) fn named(store: Store<K>, group: String, plural: String) -> Self {
        Self { store, resource: Arc::new(ResourceName { group, plural }) }
    }

    /// All objects whose labels match, at one point in time, in the order of keys.
    pub fn list(&self, selector: &Selector) -> Vec<Object<K>> {
        self.store.list(selector)
    }

    /// One object by its key, which is an [`ObjectKey`] or a text: `namespace/name`, or `name` for a kind
    /// without namespaces.
    pub fn get<Q: Borrow<str> + ?Sized>(&self, key: &Q) -> Result<Object<K>, NotFound> {
        let key = key.borrow();
        // A text that cannot be a key is the key of nothing.
        self.find(key.parse().ok(), || key.to_owned())
    }

    /// The objects of one namespace. As in client-go, `""` stands for all.
    pub fn namespace(&self, namespace: &str) -> NamespaceLister<K> {
        NamespaceLister { lister: self.clone(), namespace: namespace.into() }
    }

    /// Everything at this moment, to look at without copying: [`Snapshot::iter`], [`Snapshot::list`].
    pub fn snapshot(&self) -> Snapshot<K> {
        self.store.snapshot()
    }

    /// Whether there can be objects at all: an empty list says so too, but not why it is empty.
    pub fn served(&self) -> Result<(), NotServed> {
        match self.store.absent() {
            None => Ok(()),
            Some(why) => {
                let ResourceName { group, plural } = &*self.resource;
                Err(NotServed { group: group.clone(), plural: plural.clone(), why })
            }
        }
    }

    fn find(&self, key: Option<ObjectKey>, asked: impl FnOnce() -> String) -> Result<Object<K>, NotFound> {
        key.and_then(|key| self.store.get(&key)).ok_or_else(|| {
            let ResourceName { group, plural } = &*self.resource;
            let absent = self.store.absent();
            NotFound { group: group.clone(), plural: plural.clone(), key: asked(), absent }
        })
    }
}

/// Reads the objects of one kind and one namespace from the cache.
pub struct NamespaceLister<K> {
    lister: Lister<K>,
    namespace: Arc<str>,
}

impl<K> NamespaceLister<K> {
    /// All objects of the namespace whose labels match, at one point in time, in the order of names.
    pub fn list(&self, selector: &Selector) -> Vec<Object<K>> {
        let snapshot = self.lister.snapshot();
        let found = match &*self.namespace {
            "" => snapshot.list(selector),
            namespace => snapshot.list_namespace(namespace, selector),
        };
        found.into_iter().cloned().collect()
    }

    /// One object of the namespace by its name.
    pub fn get(&self, name: &str) -> Result<Object<K>, NotFound> {
        let key = ObjectKey::new(Some(&self.namespace), name).ok();
        self.lister.find(key, || match &*self.namespace {
            "" => name.to_owned(),
            namespace => format!("{namespace}/{name}"),
        })
    }
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), resource: Arc::clone(&self.resource) }
    }
}

impl<K> Clone for NamespaceLister<K> {
    fn clone(&self) -> Self {
        Self { lister: self.lister.clone(), namespace: Arc::clone(&self.namespace) }
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ResourceName { group, plural } = &*self.resource;
        write!(f, "Lister({}: {} objects)", qualified_name(plural, group), self.store.len())
    }
}

impl<K> fmt::Debug for NamespaceLister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in namespace {:?}", self.lister, self.namespace)
    }
}
