//! The primitives of the parts that tasks share. One place, so that a test can put a model checker's in, and its clock.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(feature = "controller")]
pub(crate) use tokio::time::{Instant, sleep_until};
