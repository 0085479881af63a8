//! Streams of server-sent events, as a client sees them.

#[path = "../access/cluster.rs"]
#[allow(dead_code, reason = "each test file uses a part")]
mod cluster;
mod crowd;
mod ending;
mod events;
mod filters;
mod histories;
mod limits;
mod many;
mod pace;
mod past;
mod resume;
mod revocation;
mod several;
mod snapshot;
#[path = "../support/mod.rs"]
mod support;
