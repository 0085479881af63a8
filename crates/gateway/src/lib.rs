//! A cluster from memory, over HTTP: one process watches the cluster, all others ask it.
//!
//! A [`Gateway`] keeps what is asked for in the caches of shared informers and answers from there: lists with label and
//! field selectors, order, pages and projections; the reading half of the Kubernetes API, so that `kubectl --server`
//! works; live streams of server-sent events; and a page that shows it all. It never writes to the cluster.
//!
//! It serves the loopback interface to everything on the machine. Any other address needs TLS and tokens of the cluster,
//! see [`Auth`].

#![allow(clippy::result_large_err, reason = "the error of a request is its answer, and made once")]

mod access;
mod allowance;
mod answer;
mod app;
mod cache;
mod compress;
mod fair;
mod follow;
mod gateway;
mod guard;
mod lease;
mod listener;
mod listing;
mod log_limit;
mod metrics;
mod pages;
mod present;
mod process;
mod query;
mod routes;
mod share;
mod tls;
mod work;

pub use cache::Packing;
pub use gateway::{Auth, Gateway, GatewayBuilder, ServeError};
pub use guard::{AllowedHost, NotAHost};
pub use tls::{Tls, TlsError};
