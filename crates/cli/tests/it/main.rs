//! The command from the outside, as a child process.

#![cfg(unix)]

mod apiserver;
mod command;
mod serve;
mod watch;
