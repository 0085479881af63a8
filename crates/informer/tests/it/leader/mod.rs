//! Leader election: simulated elections of the rules alone, and stories against the embedded API server.

mod bad_input;
use crate::support::canned;
mod cast;
mod forms;
use crate::support::log_lines;
mod problems;
mod rules;
mod simulation;
mod stage;
mod standby;
mod terms;
mod world;
