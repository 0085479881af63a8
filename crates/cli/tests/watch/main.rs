//! `informer watch` from the outside: what it prints, what it says about trouble, how it ends.

#![cfg(unix)]

#[path = "../command/mod.rs"]
mod command;
mod ending;
mod events;
mod forms;
mod refusals;
mod trouble;

/// What is tested here.
const SUBCOMMAND: &str = "watch";
