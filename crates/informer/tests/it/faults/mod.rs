//! The faults that real clusters have shown, each against the embedded server, over many seeds.
//!
//! A test plays a fault in the middle of random writes and ends the same way every time: the cache equals the
//! server, every handler's last word on each key equals the cache, and no task is left.
//!
//! `INFORMER_SEED=N` replays one seed of a test.

mod access;
mod bad_input;
mod cluster;
mod contents;
mod crowd;
mod handlers;
mod history;
use crate::support::log_lines;
mod mixture;
mod sockets;
mod stopping;
mod streams;
use crate::support::validator;
