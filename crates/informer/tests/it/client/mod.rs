//! Writes and what is read after them.

mod call;
mod simulation;
mod stage;
mod writes;

use crate::support;
