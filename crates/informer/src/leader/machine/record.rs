//! What a Lease says, as far as an election goes.

use std::time::Duration;

/// What a Lease says. Every field may be missing or nonsense: somebody else may have written it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; nobody if it is missing or empty.
    pub holder: Option<String>,
    /// For how many seconds after a change nobody else may take it.
    pub duration_seconds: Option<i32>,
    /// How often it was acquired, for people to read: a Lease that is made anew may begin anew.
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
    /// Its `uid`: one that was deleted and made anew has another.
    pub uid: String,
    /// Its `resourceVersion`, which grows with every write, over a deletion too. The one that a term began with is its token.
    pub version: u64,
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

    /// How often it was acquired; nonsense counts as never.
    pub fn count(&self) -> i32 {
        self.transitions.filter(|transitions| *transitions > 0).unwrap_or_default()
    }
}
