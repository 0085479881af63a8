//! The command from the outside, as a child process.

#![cfg(unix)]

mod apiserver;
mod command;
mod estimate;
mod serve;
mod watch;
