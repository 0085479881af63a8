//! A Kubernetes API server inside your process: zero setup for users, truth for tests.
//!
//! It serves every built-in kind and custom resources, with the list and watch semantics of a real server, to
//! kube-rs in the same process and to kubectl, kube-rs and client-go on the loopback interface. And it can be
//! made to fail in ways that a real server would not on request, see [`Faults`].
//!
//! ```
//! use informer_apiserver::{ApiServer, Fault, Rule, Verb};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{Api, api::{ListParams, PostParams}};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::builder().build();
//! let maps: Api<ConfigMap> = Api::default_namespaced(server.client()); // no socket, no files
//! let map = serde_json::from_value(serde_json::json!({ "metadata": { "name": "settings" } }))?;
//! maps.create(&PostParams::default(), &map).await?;
//! assert_eq!(maps.list(&ListParams::default()).await?.items.len(), 1);
//!
//! // The next two lists are refused, as a server does that is not ready.
//! let busy = informer_model::Status::too_many_requests("not ready yet", 1);
//! server.faults().add(Rule::new(Fault::Status(busy)).verb(Verb::List).times(2));
//! assert!(maps.list(&ListParams::default()).await.is_err());
//! # Ok(()) }
//! ```
//!
//! [`ApiServer::listen`] opens a port for other programs, [`ApiServer::load`] reads manifests, and
//! [`DemoCluster`] makes up a cluster of any size. What a real server has and this one has not is listed in the
//! README of the crate.

#![allow(clippy::result_large_err, reason = "the error of a request is its answer, and made once")]

mod admission;
mod apply;
mod builtin;
mod catalog;
mod compress;
mod custom;
mod defaults;
mod demo;
mod discovery;
mod faults;
mod fields;
mod import;
mod listener;
mod manifests;
mod media;
mod openapi;
mod present;
mod replica;
mod respond;
mod rules;
mod selection;
mod server;
mod service;
mod store;
mod strategic;
mod token;
mod verbs;

pub use demo::{Change, Churn, DemoCluster, View};
pub use faults::{Fault, Faults, Rule, RuleId};
pub use listener::{ListenError, Listener};
pub use manifests::LoadError;
pub use respond::{Body, BoxError};
pub use server::{ApiServer, ApiServerBuilder, Size, TooOld};
pub use service::{Connection, Refused};
pub use verbs::Verb;

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
