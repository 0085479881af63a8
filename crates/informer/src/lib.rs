//! Shared informers for Kubernetes: list once, watch, keep an indexed cache, tell many handlers.
//!
//! A program that wants to know about the objects of a cluster asks a [`SharedInformerFactory`] for the informer of
//! their kind. However many parts of the program ask, the API server sees one list and one watch.
//!
//! ```
//! use std::time::Duration;
//!
//! use informer::{Handler, SharedInformerFactory};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = informer_apiserver::ApiServer::builder().build().client(); // or kube::Client::try_default().await?
//! let factory = SharedInformerFactory::new(client, Duration::ZERO);
//! let pods = factory.core().v1().pods();
//! pods.informer().add_handler(Handler::<Pod>::new().on_add(|pod, _initial| println!("+ {}", pod.key())))?;
//!
//! factory.start()?;
//! factory.wait_for_cache_sync(Duration::from_secs(10)).await?; // or an error that says what is wrong
//! let dns = pods.lister().namespace("kube-system").list(&"k8s-app=kube-dns".parse()?);
//! # assert!(dns.is_empty());
//! factory.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! # Which type to watch
//!
//! | what | how | costs |
//! |---|---|---|
//! | a built-in kind | `factory.core().v1().pods()` | the whole object, decoded |
//! | a kind with a Rust type, such as kube's `CustomResource` | `factory.informer_for::<Website>()` | the same |
//! | a few fields | a struct of yours and [`projection!`] | these fields |
//! | metadata only | `informer_for::<PartialObjectMeta<Pod>>()`, [`metadata_for`](SharedInformerFactory::metadata_for) | metadata; the rest is not even sent |
//! | anything, by name | [`for_resource("websites.v1.example.com")`](SharedInformerFactory::for_resource) | the whole object as JSON values |
//!
//! # What is promised, and what to know
//!
//! The promises are in `docs/contract.md`, by number; tests carry these numbers in their names.
//!
//! - An informer that nobody asked for before [`start`](SharedInformerFactory::start) is not started by it: call
//!   `start` again after asking for more. A lister counts as asking.
//! - The cache lags behind the server a little. To read your own writes, make them with [`client::Writes`], or wait for their versions:
//!   [`SharedInformer::wait_for_resource_version`].
//! - Objects are shared and immutable: [`Object`] is a handle that is cheap to clone (an `Arc`). `metadata.managedFields` is left
//!   out unless it is [asked for](factory::FactoryBuilder::keep_managed_fields).
//! - A handler's callback should be quick, or await what is slow. One that blocks its thread must say so
//!   ([`EventHandler::blocking`]). One that falls behind hears merged events, never wrong ones.
//! - A deletion may come as one whose [final state is not known](Tombstone): it happened while nobody watched.
//! - Nothing is silent: [`SharedInformer::health`] says in words what is going on and what to do, and objects that cannot
//!   be used are in [`SharedInformer::quarantined`].
//! - Events that a handler has not heard when the informer stops are dropped. Dropping a factory stops nothing;
//!   [`shutdown`](SharedInformerFactory::shutdown) does.
//! - Retrying is the informer's, which says so. kube's client retries in silence before it unless its configuration has
//!   `default_retry = false`.
//!
//! # From events to work
//!
//! A [`controller`] calls a function for every key that informers say something about, through a [`workqueue`]. With [`leader`] election
//! only one process of several does so, and [`events`] tells the users of a cluster what it did. A [`manager`] runs all of it
//! together, as in `examples/website.rs`.
//!
//! # What comes and goes
//!
//! [`Namespaces`] may change while informers follow them, [kinds](factory::FactoryBuilder::follow_kinds) end and begin with their
//! definitions, and several [`clusters`] come and go under one roof.
//!
//! # The parts
//!
//! A [`SharedInformer`] can be built without a factory, from any [source]. Its parts can be used on their own:
//! [`reflector`], [`queue`], [`store`], [`unshared`] informers, [`discovery`], and [`model`] for the
//! values of Kubernetes. `docs/from-client-go.md` has each part beside its name in client-go.

mod any;
mod backoff;
#[cfg(feature = "controller")]
pub mod client;
pub mod clusters;
#[cfg(feature = "controller")]
pub mod controller;
mod coverage;
mod delta;
pub mod discovery;
mod dynamic;
mod event;
#[cfg(feature = "events")]
pub mod events;
pub mod factory;
pub mod health;
#[cfg(feature = "leader")]
pub mod leader;
mod lister;
#[cfg(feature = "controller")]
pub mod manager;
pub mod metrics;
mod monitor;
mod namespaces;
mod object;
#[cfg(feature = "packed")]
pub mod packed;
mod pipelines;
mod projection;
#[cfg(feature = "prometheus")]
mod prometheus;
pub mod queue;
mod raw;
pub mod reflector;
mod request;
pub mod shared;
pub mod source;
pub mod store;
mod sync;
mod trace;
pub mod unshared;
mod wire;
#[cfg(feature = "controller")]
pub mod workqueue;

pub use any::{AnyInformer, NotSynced, SyncReport, wait_for_cache_sync};
pub use dynamic::DynamicObject;
pub use event::{Departure, Event, Tombstone};
pub use factory::SharedInformerFactory;
pub use health::{Health, SyncError};
pub use informer_model as model;
pub use lister::{Lister, NamespaceLister, NotFound, NotServed};
pub use namespaces::Namespaces;
pub use object::{Object, ObjectError};
#[cfg(feature = "packed")]
pub use packed::Packed;
#[doc(hidden)]
pub use projection::__private;
#[cfg(feature = "prometheus")]
pub use prometheus::PrometheusMetrics;
pub use raw::RawObject;
pub use shared::{EventHandler, Handler, Notice, Registration, SharedInformer, Subscription};
pub use source::KubeListWatch;
// What stands in signatures, in the versions that fit.
pub use k8s_openapi;
pub use kube;
#[doc(no_inline)]
pub use tokio_util::sync::CancellationToken;

/// How long calls of a controller may go on after the stop. With the leadership that is given back and the events that are sent after it, that
/// is within the 30 seconds that a pod has.
#[cfg(any(feature = "controller", feature = "leader"))]
const CONTROLLER_GRACE: std::time::Duration = std::time::Duration::from_secs(20);

/// What a panic said, for a report to a person.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// How much of a text that should not be there is shown.
const SHOWN: usize = 100;

/// How bytes begin that should not be there, in quotes, with everything in them that cannot be printed escaped.
fn beginning(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..4 * SHOWN).unwrap_or(bytes));
    format!("{:?}", text.trim_start().chars().take(SHOWN).collect::<String>())
}

/// Waits for a moment, or for ever if there is none.
async fn until(moment: Option<tokio::time::Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-client-go.md")]
struct FromClientGo;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-kube-rs.md")]
struct FromKubeRs;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-controller-runtime.md")]
struct FromControllerRuntime;

/// The chapters of the guide with Rust in them.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../../docs/install.md")]
    struct Install;

    #[doc = include_str!("../../../docs/first-informer.md")]
    struct FirstInformer;

    #[doc = include_str!("../../../docs/indexes.md")]
    struct Indexes;

    #[doc = include_str!("../../../docs/handlers.md")]
    struct Handlers;

    #[doc = include_str!("../../../docs/controllers.md")]
    struct Controllers;

    #[doc = include_str!("../../../docs/coming-and-going.md")]
    struct ComingAndGoing;

    #[doc = include_str!("../../../docs/recipes.md")]
    struct Recipes;

    #[doc = include_str!("../../../docs/testing.md")]
    struct Testing;

    #[doc = include_str!("../../../docs/operations.md")]
    struct Operations;
}
