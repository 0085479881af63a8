//! The event recorder against the embedded server: what is there afterwards, whatever went wrong. Time is paused: it moves when everybody
//! waits.

mod bad_input;
mod faults;
use crate::support::log_lines;
mod sending;
mod stage;
mod stopping;
