//! Writes and what is read after them.

mod apply;
mod call;
mod simulation;
pub(crate) mod stage;
mod writes;

use crate::support;
