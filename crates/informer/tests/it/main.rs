//! All integration tests of the library in one program, which is linked once.
//!
//! `cargo test -p informer --test it simulation` runs those of one module.

mod client;
mod clusters;
mod controller;
mod discovery;
mod dynamic;
mod events;
mod factory;
mod faults;
mod fuzz_corpus;
mod informer;
mod kube_source;
mod leader;
mod lister;
mod lives;
mod manager;
mod memory_source;
mod metadata;
mod packed;
mod projection;
mod prometheus;
mod protobuf;
mod queue_histories;
mod queues;
mod scenarios;
mod simulation;
mod store;
mod store_histories;
mod store_readers;
mod support;
mod trace;
mod wire;
mod workqueue;
