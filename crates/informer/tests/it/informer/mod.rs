//! What an informer promises, seen through its public face and against a server in memory.

mod controller;
mod following;
mod handlers;
mod life;
use crate::support::log_lines;
mod namespaces;
mod objects;
mod outcomes;
mod panics;
mod problems;
mod removal;
mod resync;
mod stage;
mod stopping;
use crate::support;
mod time;
mod unshared;
use crate::support::validator;
