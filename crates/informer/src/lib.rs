//! Shared informers for Kubernetes: list once, watch, keep an indexed cache, tell many handlers.
//!
//! Finished today are the parts that do no I/O:
//!
//! - [`Object`], the handle for every object of the cluster: shared, immutable, cheap to clone;
//! - [`store`], the cache: one writer, readers that see one point in time, indexes;
//! - [`queue`], what happened and is still to be applied: [`InOrderFifo`](queue::InOrderFifo) and
//!   [`DeltaFifo`](queue::DeltaFifo);
//! - [`model`], the values of Kubernetes: keys, versions, selectors, errors, framing.
//!
//! A batch goes from the queue into the store, and comes out as [`Event`]s:
//!
//! ```
//! use informer::{Event, Object, queue::{self, InOrderFifo, Queue, Replacement}, store};
//! use k8s_openapi::api::core::v1::Node;
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
//!
//! let node = |name: &str, version: &str| {
//!     let (name, resource_version) = (Some(name.into()), Some(version.into()));
//!     Object::new(Node { metadata: ObjectMeta { name, resource_version, ..Default::default() }, ..Default::default() })
//! };
//! let (mut writer, store) = store::new::<Node>();
//! let mut queue = InOrderFifo::new();
//! queue.replace(Replacement::new(vec![node("a", "4")?, node("b", "5")?], "6"));
//! queue.updated(node("b", "7")?);
//!
//! let deltas = queue.pop(100);
//! let mut events = Vec::new();
//! writer.write(|batch| queue::apply(deltas, batch, |event| events.push(event)));
//! queue.done();
//!
//! assert!(matches!(&events[..], [Event::Added(_), Event::Added(_), Event::Updated { .. }]));
//! assert_eq!((store.len(), store.resource_version()), (2, "7".into()));
//! # Ok::<(), informer::ObjectError>(())
//! ```

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

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
