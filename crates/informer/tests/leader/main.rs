//! Leader election: simulated elections of the rules alone, and stories against the embedded API server.

mod bad_input;
#[path = "../support/canned.rs"]
mod canned;
mod cast;
mod forms;
#[path = "../support/log_lines.rs"]
mod log_lines;
mod problems;
mod rules;
mod simulation;
mod stage;
mod terms;
mod world;
