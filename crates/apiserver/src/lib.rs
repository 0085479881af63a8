//! A Kubernetes API server inside your process.

#![allow(clippy::result_large_err, reason = "the error of a request is its answer, and made once")]

mod builtin;
mod catalog;
mod custom;
mod defaults;
mod demo;
mod discovery;
mod faults;
mod fields;
mod listener;
mod manifests;
mod media;
mod openapi;
mod path;
mod present;
mod query;
mod replica;
mod respond;
mod rules;
mod selection;
mod server;
mod service;
mod store;
mod table;
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
