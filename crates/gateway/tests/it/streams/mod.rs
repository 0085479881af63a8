//! Streams of server-sent events, as a client sees them.

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
