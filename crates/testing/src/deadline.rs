//! The end of patience.

use std::time::{Duration, Instant};

/// Much longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// When a test that waits for something gives up. It goes by real time, whatever the clock of a runtime says: paused
/// time passes at once while a socket is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// Patience begins now.
    pub fn start() -> Self {
        Self(Instant::now() + PATIENCE)
    }

    /// To be called in each round of a loop that waits.
    ///
    /// # Panics
    /// When it has taken too long.
    #[track_caller]
    pub fn check(&self, awaited: &str) {
        assert!(Instant::now() < self.0, "waited for two minutes in vain: {awaited}");
    }
}
