//! Parts of a program, run together.

mod endpoints;
mod failures;
mod order;
mod stage;
