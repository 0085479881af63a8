//! The primitives of the parts that tasks share. One place, so that a test can put a model checker's in.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
