//! Sets of namespaces that change while informers follow them.

use std::{
    collections::BTreeSet,
    fmt,
    hash::{Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use informer_model::is_dns_label;
use tokio::sync::watch;

use crate::factory::ScopeError;

/// A set of namespaces that may change while informers follow it: one list and watch for each of them, in one cache, with one
/// set of handlers.
///
/// It is cheap to clone (an `Arc`), and any number of informers can follow it. What counts is what is in the set when an
/// informer looks: what was added twice is there once, and what was taken out and added again in the meantime has never been
/// away.
///
/// - A namespace that is added is listed by itself, and told as additions: initial ones, as it existed before. The others go
///   on, the informer stays synced, and its version does not go back.
/// - The objects of one that is taken out leave the cache in one step, and handlers hear of deletions whose
///   [`departure`](crate::Tombstone::departure) says so. Nothing is asked of it any more.
///
/// ```
/// use std::time::Duration;
///
/// use informer::{Namespaces, SharedInformer, source::MemorySource};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = MemorySource::<ConfigMap>::new();
/// let teams = Namespaces::of(["shop"])?;
/// let source = server.clone(); // or KubeListWatch::all(client.clone()).in_namespace(name)
/// let maps = SharedInformer::following(&teams, move |name| source.scoped(name)).name("maps").build()?;
/// maps.start()?;
///
/// teams.add("bank")?;
/// maps.wait_until_namespace_synced("bank", Duration::from_secs(10)).await?;
/// teams.remove("shop");
/// maps.stop().await?;
/// # Ok(()) }
/// ```
///
/// Two of them are equal if they are the same set, not if they have the same namespaces now.
#[derive(Clone)]
pub struct Namespaces {
    id: u64,
    /// `None` while it is not known which they are.
    names: Arc<watch::Sender<Names>>,
}

/// Which there are, if that is known.
pub(crate) type Names = Option<Arc<BTreeSet<Arc<str>>>>;

impl Namespaces {
    /// These namespaces, to begin with; none is allowed.
    pub fn of(names: impl IntoIterator<Item: Into<String>>) -> Result<Self, ScopeError> {
        let namespaces = Self::unknown();
        namespaces.set(names)?;
        Ok(namespaces)
    }

    /// A set that is still to be told.
    pub(crate) fn unknown() -> Self {
        static SETS: AtomicU64 = AtomicU64::new(0);
        Self { id: SETS.fetch_add(1, Relaxed), names: Arc::new(watch::Sender::new(None)) }
    }

    /// Adds one. Says whether it is new.
    pub fn add(&self, name: impl Into<String>) -> Result<bool, ScopeError> {
        let name = checked(name.into())?;
        Ok(self.change(|names| names.insert(name)))
    }

    /// Takes one out. Says whether it was there.
    pub fn remove(&self, name: &str) -> bool {
        self.change(|names| names.remove(name))
    }

    /// Makes these the namespaces, whichever there were.
    pub fn set(&self, names: impl IntoIterator<Item: Into<String>>) -> Result<(), ScopeError> {
        let names: BTreeSet<Arc<str>> =
            names.into_iter().map(|name| checked(name.into())).collect::<Result<_, _>>()?;
        self.names.send_if_modified(|known| {
            let news = known.as_deref() != Some(&names);
            *known = Some(Arc::new(names));
            news
        });
        Ok(())
    }

    /// Whether it is one of them.
    pub fn contains(&self, name: &str) -> bool {
        self.names.borrow().as_ref().is_some_and(|names| names.contains(name))
    }

    /// All of them, sorted.
    pub fn list(&self) -> Vec<String> {
        self.names.borrow().iter().flat_map(|names| names.iter()).map(|name| name.to_string()).collect()
    }

    /// Tells it from all other sets of this process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn follow(&self) -> watch::Receiver<Names> {
        self.names.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<Arc<str>>) -> bool) -> bool {
        self.names.send_if_modified(|names| change(Arc::make_mut(names.get_or_insert_default())))
    }
}

fn checked(name: String) -> Result<Arc<str>, ScopeError> {
    if is_dns_label(&name) { Ok(name.into()) } else { Err(ScopeError::Namespace { name }) }
}

impl PartialEq for Namespaces {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Namespaces {}

impl Hash for Namespaces {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Debug for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Namespaces").field(&self.list()).finish()
    }
}
