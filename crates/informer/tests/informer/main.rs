//! What an informer promises, seen through its public face and against a server in memory.

mod controller;
mod handlers;
mod life;
#[path = "../support/log_lines.rs"]
mod log_lines;
mod namespaces;
mod objects;
mod outcomes;
mod panics;
mod problems;
mod removal;
mod resync;
mod stage;
mod stopping;
#[path = "../support/mod.rs"]
mod support;
mod time;
mod unshared;
#[path = "../support/validator.rs"]
mod validator;
