//! Why a manager ended without being told to, or not well.

use std::{error::Error, time::Duration};

use crate::factory::ShutDown;

/// What went wrong first.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// A part ended with an error.
    #[error("{part} failed: {error}")]
    Part {
        /// Its name.
        part: String,
        /// Why.
        #[source]
        error: Box<dyn Error + Send + Sync>,
    },
    /// A part panicked.
    #[error("{part} panicked: {panic}")]
    Panicked {
        /// Its name.
        part: String,
        /// What the panic said.
        panic: String,
    },
    /// Another process may lead now.
    #[cfg(feature = "leader")]
    #[error("this process does not lead any more, and ends what it has begun: {why}")]
    TermLost {
        /// Why the term is over.
        #[source]
        why: crate::leader::Lost,
    },
    /// A part needs a term, and there is no election.
    #[cfg(feature = "leader")]
    #[error("{part} runs in a term, and there is no election; give the manager one")]
    NoElection {
        /// Its name.
        part: String,
    },
    /// Caches cannot be started.
    #[error(transparent)]
    Caches(#[from] ShutDown),
    /// Not everything had ended when the grace was over; it was dropped where it was waiting.
    #[error("{} had not ended {within:?} after the stop", parts.join(", "))]
    Unfinished {
        /// What had not.
        parts: Vec<String>,
        /// How long after the stop they were dropped, at most.
        within: Duration,
    },
    /// The second stop came.
    #[error("ended at once, without waiting for {}", if parts.is_empty() { "anything".to_owned() } else { parts.join(", ") })]
    AtOnce {
        /// What had not ended.
        parts: Vec<String>,
    },
}
