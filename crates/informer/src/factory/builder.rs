//! What can be chosen about a factory, and what its informers are made with.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    sync::Arc,
    time::Duration,
};

use informer_model::{FieldSelector, FieldSelectorError, Selector, SelectorError};
use kube::{Client, core::ObjectMeta};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Kind, Scope, ScopeError, SharedInformerFactory};
use crate::{
    Namespaces,
    coverage::{Coverage, Presence},
    discovery::Discovery,
    metrics::Metrics,
    queue::{QueueKind, Transform},
    reflector::{Backoff, Problem, ReflectorSettings, Remedy},
    shared::{
        SharedInformerBuilder,
        options::{InformerOptions, informer_options},
    },
    source::{KubeListWatch, ListOptions, ListWatch, WireOptions},
};

/// Builds a [`SharedInformerFactory`]. Every option has a default that is right for most, and holds for every
/// informer of the factory.
#[must_use]
pub struct FactoryBuilder {
    options: Options,
    scope: Result<Scope, ScopeError>,
}

/// What the informers of a factory have in common.
pub(super) struct Options {
    pub(super) client: Client,
    pub(super) stop: CancellationToken,
    name: Option<String>,
    tweak: Option<Tweak>,
    /// By the type of the objects.
    custom_resync: HashMap<TypeId, Duration>,
    /// By the type of the objects, each a `Transform` of that type.
    transforms: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    metadata_transform: Option<Arc<MetadataChange>>,
    on_problem: Option<Arc<ProblemHandler>>,
    keep_managed_fields: bool,
    pub(super) wire: WireOptions,
    /// Of each informer.
    each: InformerOptions,
    pub(super) discovery: Discovery,
    /// How often the server is asked what it serves, if kinds are followed.
    pub(super) follow_kinds: Option<Duration>,
}

type Tweak = Arc<dyn Fn(&mut ListOptions) + Send + Sync>;
type MetadataChange = dyn Fn(&mut ObjectMeta) + Send + Sync;
type ProblemHandler = dyn Fn(&str, &Problem, Remedy) + Send + Sync;

/// Why a factory cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FactoryError {
    /// The namespaces cannot be those of a scope.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// The hook makes requests that no server takes.
    #[error("tweak_list_options sets a wrong label selector: {0}")]
    LabelSelector(#[from] SelectorError),
    /// The hook makes requests that no server takes.
    #[error("tweak_list_options sets a wrong field selector: {0}")]
    FieldSelector(#[from] FieldSelectorError),
    /// A page of no objects never ends.
    #[error("the page size must be at least 1")]
    PageSize,
}

impl FactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        let discovery = Discovery::new(client.clone());
        let options = Options {
            client,
            stop: CancellationToken::new(),
            name: None,
            tweak: None,
            custom_resync: HashMap::new(),
            transforms: HashMap::new(),
            metadata_transform: None,
            on_problem: None,
            keep_managed_fields: false,
            wire: WireOptions::default(),
            each: InformerOptions::default(),
            discovery,
            follow_kinds: None,
        };
        Self { options, scope: Ok(Scope::everything()) }
    }

    /// Only objects of this namespace; the empty text stands for all. Kinds without namespaces are held whole.
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.scope = Scope::namespace(name);
        self
    }

    /// Only objects of these namespaces: each informer has one watch for each of them, and one cache.
    pub fn namespaces(mut self, names: impl IntoIterator<Item: Into<String>>) -> Self {
        self.scope = Scope::namespaces(names);
        self
    }

    /// Only objects of this scope, which may name labels and fields too. Of this and the namespaces above, the last
    /// one said counts.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = Ok(scope);
        self
    }

    /// Has the last word on what every list and watch asks for. [`build`](Self::build) calls it once to see that
    /// the selectors it sets can be read.
    pub fn tweak_list_options(mut self, tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static) -> Self {
        self.options.tweak = Some(Arc::new(tweak));
        self
    }

    /// [`resync`](Self::resync) for the informers of one type.
    pub fn custom_resync<K: 'static>(mut self, period: Duration) -> Self {
        self.options.custom_resync.insert(TypeId::of::<K>(), period);
        self
    }

    /// Changes every object of one type once before it is kept. Say it for each type; the last one said for a type
    /// counts.
    pub fn transform<K: Send + Sync + 'static>(mut self, transform: Transform<K>) -> Self {
        self.options.transforms.insert(TypeId::of::<K>(), Box::new(transform));
        self
    }

    /// Changes the metadata of every object of every type once before it is kept, for example to drop annotations
    /// that nobody reads. It comes before the [transform](Self::transform) of the type. Name, namespace and version
    /// stay the server's.
    pub fn transform_metadata(mut self, change: impl Fn(&mut ObjectMeta) + Send + Sync + 'static) -> Self {
        self.options.metadata_transform = Some(Arc::new(change));
        self
    }

    /// Keeps `metadata.managedFields`, half of most objects, which are left out before decoding otherwise.
    pub fn keep_managed_fields(mut self) -> Self {
        self.options.keep_managed_fields = true;
        self
    }

    /// In which forms answers are asked for, instead of protobuf and gzip.
    pub fn wire(mut self, options: WireOptions) -> Self {
        self.options.wire = options;
        self
    }

    /// Comes before the name of each informer in logs, metrics and errors.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = Some(name.into());
        self
    }

    /// Calls this with every problem of listing and watching that an informer has, by its name, and what is done
    /// about it. It should be quick.
    pub fn watch_error_handler(
        mut self,
        handler: impl Fn(&str, &Problem, Remedy) + Send + Sync + 'static,
    ) -> Self {
        self.options.on_problem = Some(Arc::new(handler));
        self
    }

    informer_options!(options.each);

    /// Shares this discovery, with what it has asked the server already, instead of having its own.
    pub fn discovery(mut self, discovery: Discovery) -> Self {
        self.options.discovery = discovery;
        self
    }

    /// Follows kinds that come and go: the informer of a custom resource ends with its definition, and begins with it again.
    ///
    /// While the server does not serve a kind, nothing is asked of it. Its informer is synced and empty, its
    /// [health](crate::Health::absent) and [`Lister::served`](crate::Lister::served) say why, and handlers have heard of deletions whose
    /// [`departure`](crate::Tombstone::departure) is the kind. When it comes, the same informer lists it.
    ///
    /// Where the client may list and watch `customresourcedefinitions`, they tell at once. Elsewhere the server is asked what it
    /// serves, as often as said here (between a second and a year); until then the informer of a kind that has gone is in
    /// trouble as any other. Kinds of Kubernetes itself are taken to stay.
    pub fn follow_kinds(mut self, ask_every: Duration) -> Self {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
        self.options.follow_kinds = Some(ask_every.clamp(Duration::from_secs(1), YEAR));
        self
    }

    /// Ends all informers when it is cancelled. The factory then is as after a
    /// [shutdown](SharedInformerFactory::shutdown), which can still be called to wait for the end.
    pub fn cancellation_token(mut self, stop: CancellationToken) -> Self {
        self.options.stop = stop;
        self
    }

    /// The factory. Nothing is asked of the server yet.
    pub fn build(self) -> Result<SharedInformerFactory, FactoryError> {
        let Self { options, scope } = self;
        let scope = scope?;
        if options.each.has_empty_pages() {
            return Err(FactoryError::PageSize);
        }
        if let Some(tweak) = &options.tweak {
            let mut tweaked = ListOptions::default();
            tweak(&mut tweaked);
            tweaked.label_selector.as_deref().map(Selector::parse).transpose()?;
            tweaked.field_selector.as_deref().map(FieldSelector::parse).transpose()?;
        }
        Ok(SharedInformerFactory::assemble(options, scope))
    }

    /// The factory, of a builder that was told nothing that can be wrong.
    pub(super) fn unchecked(self) -> SharedInformerFactory {
        SharedInformerFactory::assemble(self.options, Scope::everything())
    }
}

impl Options {
    /// An informer's builder with all of this in it.
    /// `namespaces` are those to follow, if the scope says so, and `presence` whether there is such a kind, if it may go.
    pub(super) fn builder<K: Kind>(
        &self,
        kind: &K::DynamicType,
        scope: &Scope,
        namespaces: Option<&Namespaces>,
        presence: Option<watch::Receiver<Presence>>,
    ) -> SharedInformerBuilder<K> {
        let mut all = KubeListWatch::<K>::of_kind(self.client.clone(), kind.clone())
            .label_selector(scope.label_selector())
            .field_selector(scope.field_selector())
            .wire(self.wire);
        if let Some(tweak) = self.tweak.clone() {
            all = all.tweak(move |options| tweak(options));
        }
        if self.keep_managed_fields {
            all = all.keep_managed_fields();
        }
        let fixed = scope.each_namespace().into_iter();
        let fixed: Vec<_> = fixed.map(|name| all.clone().in_namespace(name.unwrap_or_default())).collect();
        let mut name = match namespaces {
            None => fixed.iter().map(KubeListWatch::description).collect::<Vec<_>>().join(", "),
            Some(_) => all.described(&scope.place()),
        };
        let mut coverage = match namespaces {
            None => Coverage::fixed(fixed.into_iter().map(|source| Arc::new(source) as _).collect()),
            Some(followed) => {
                let resource = all.resource();
                let source = Arc::new(move |name: &str| Arc::new(all.clone().in_namespace(name)) as _);
                Coverage::following(followed, source, resource)
            }
        };
        if let Some(presence) = presence {
            coverage = coverage.of_kind(presence);
        }
        let mut builder = SharedInformerBuilder::covering(coverage);
        if let Some(view) = view::<K>(kind) {
            name = format!("{name}, as {view}");
        }
        if let Some(factory) = &self.name {
            name = format!("{factory}: {name}");
        }
        if let Some(handler) = self.on_problem.clone() {
            let name = name.clone();
            builder = builder.watch_error_handler(move |problem, remedy| handler(&name, problem, remedy));
        }
        builder = builder.name(name);
        if let Some(transform) = self.transform() {
            builder = builder.transform(transform);
        }
        let mut options = self.each.clone();
        if let Some(own) = self.custom_resync.get(&TypeId::of::<K>()) {
            options.resync = *own;
        }
        builder.with_options(options)
    }

    fn transform<K: Kind>(&self) -> Option<Transform<K>> {
        let own = self.transforms.get(&TypeId::of::<K>());
        let own = own.and_then(|transform| transform.downcast_ref::<Transform<K>>()).cloned();
        let Some(change) = self.metadata_transform.clone() else { return own };
        let metadata = Transform::new(move |object: &mut K| change(object.meta_mut()));
        Some(match own {
            Some(own) => metadata.then(own),
            None => metadata,
        })
    }
}

/// What a type is called that shows objects of its kind in a way of its own, such as a projection: it has an informer
/// of its own, which needs a name of its own. That metadata is all there is, a source says by itself.
fn view<K: Kind>(kind: &K::DynamicType) -> Option<&'static str> {
    let path = type_name::<K>().split('<').next().unwrap_or_default();
    let name = path.rsplit("::").next().unwrap_or_default();
    (name != K::kind(kind) && !K::metadata_api()).then_some(name)
}
