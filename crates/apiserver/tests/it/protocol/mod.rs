//! What a Kubernetes API server promises on the wire, sentence by sentence.
//!
//! Requests go to the server as raw HTTP, without a socket. Where time matters it is tokio's paused time.

mod applying;
mod creating;
mod custom;
mod deleting;
mod discovery;
mod errors;
mod expiry;
mod formats;
mod gzip;
mod listing;
mod patching;
mod protobuf;
mod selecting;
mod streaming;
mod updating;
mod watching;
