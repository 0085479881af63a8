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
#[path = "../support/log_lines.rs"]
mod log_lines;
mod mixture;
mod sockets;
mod stopping;
mod streams;
#[path = "../support/validator.rs"]
mod validator;
