//! What a Lease says, as far as an election goes.

use std::time::Duration;

/// What a Lease says. Every field may be missing or nonsense: somebody else may have written it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; nobody if it is missing or empty.
    pub holder: Option<String>,
    /// For how many seconds after a change nobody else may take it.
    pub duration_seconds: Option<i32>,
    /// How often it was acquired: the token of the term.
    pub transitions: Option<i32>,
    /// When it was acquired, in microseconds of the holder's wall clock. It is compared for equality only.
    pub acquired: Option<i64>,
    /// When it was renewed, in microseconds of the holder's wall clock. It is compared for equality only.
    pub renewed: Option<i64>,
}

/// A Lease on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What it says.
    pub record: Record,
    /// Its `resourceVersion`.
    pub version: String,
}

impl Record {
    /// Who holds it.
    pub fn holder(&self) -> Option<&str> {
        self.holder.as_deref().filter(|holder| !holder.is_empty())
    }

    /// For how long after a change nobody else may take it, if it says so in a way that can be used.
    pub fn duration(&self) -> Option<Duration> {
        let seconds = self.duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs)
    }

    /// The token of the term; nonsense counts as none.
    pub fn token(&self) -> u64 {
        self.transitions.and_then(|transitions| transitions.try_into().ok()).unwrap_or_default()
    }
}
