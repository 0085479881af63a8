//! The server in memory keeps the rules of a real one, and breaks them when it is asked to.

mod client;
mod histories;
mod misbehaviour;
mod rules;
use crate::support;
