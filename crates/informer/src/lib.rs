//! Shared informers for Kubernetes: list once, watch, keep an indexed cache, tell many handlers.
//!
//! A [`SharedInformer`] is the whole of it. It takes objects from a [source], mostly a
//! [`KubeListWatch`], keeps them in a [store] and tells [handlers](EventHandler):
//!
//! ```
//! use std::time::Duration;
//!
//! use informer::{Handler, KubeListWatch, Lister, SharedInformer};
//! use k8s_openapi::api::core::v1::Pod;
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = informer_apiserver::ApiServer::builder().build(); // a cluster in this process
//! let pods = SharedInformer::builder(KubeListWatch::<Pod>::all(server.client())).build()?;
//! pods.add_handler(Handler::<Pod>::new().on_add(|pod, _initial| println!("+ {}", pod.key())))?;
//!
//! let stop = CancellationToken::new();
//! let running = tokio::spawn({ let (pods, stop) = (pods.clone(), stop.clone()); async move { pods.run(stop).await } });
//! pods.wait_until_synced(Duration::from_secs(10)).await?;
//! let dns = Lister::new(pods.store()).namespace("kube-system").list(&"k8s-app=kube-dns".parse()?);
//! assert!(dns.is_empty());
//! stop.cancel();
//! running.await??;
//! # Ok(()) }
//! ```
//!
//! What it promises is written down in `docs/contract.md`, by number. What to know before using it:
//!
//! - Objects are shared and immutable: [`Object`] is a handle, cloning it is a counter.
//! - A handler's callback should be quick, or await what is slow. One that blocks its thread must say so
//!   ([`EventHandler::blocking`]). One that falls behind hears merged events, never wrong ones.
//! - Nothing is silent: [`SharedInformer::health`] says in words what is going on and what to do, and objects that cannot
//!   be used are in [`SharedInformer::quarantined`].
//! - Events that a handler has not heard when the informer stops are dropped.
//!
//! The parts can be used on their own: [`reflector`], [`queue`], [`store`], [`controller`] for informers that are not
//! shared, and [`model`] for the values of Kubernetes.

pub mod controller;
mod event;
pub mod health;
mod lanes;
mod lister;
pub mod metrics;
mod monitor;
mod object;
#[cfg(feature = "prometheus")]
mod prometheus;
pub mod queue;
pub mod reflector;
pub mod shared;
pub mod source;
pub mod store;
mod sync;
mod wire;

pub use event::{Event, Tombstone};
pub use health::{Health, SyncError};
pub use informer_model as model;
pub use lister::{Lister, NamespaceLister, NotFound};
pub use object::{Object, ObjectError};
#[cfg(feature = "prometheus")]
pub use prometheus::PrometheusMetrics;
pub use shared::{EventHandler, Handler, Notice, Registration, SharedInformer, Subscription};
pub use source::KubeListWatch;

/// What a panic said, for a report to a person.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
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
