//! What became of all that was recorded.

use std::fmt;

/// What became of all that was recorded, event by event. In the cluster there are `sent` events, whose counts are
/// `sent + aggregated` together (until the server forgets them, after an hour as a rule).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecorderStats {
    /// How many were recorded.
    pub recorded: u64,
    /// How many are events of their own in the cluster.
    pub sent: u64,
    /// How many are there as repetitions in the series of another.
    pub aggregated: u64,
    /// How many were left out because their object had too many.
    pub suppressed: u64,
    /// How many found the queue full, or came or were left after the end.
    pub dropped: u64,
    /// How many the server refused, could not be sent in so many tries, or never could be.
    pub failed: u64,
}

impl RecorderStats {
    #[cfg(feature = "prometheus")]
    pub(crate) fn add(&mut self, other: Self) {
        self.recorded += other.recorded;
        self.sent += other.sent;
        self.aggregated += other.aggregated;
        self.suppressed += other.suppressed;
        self.dropped += other.dropped;
        self.failed += other.failed;
    }

    /// How many are still to be sent.
    pub fn waiting(&self) -> u64 {
        self.recorded - self.sent - self.aggregated - self.suppressed - self.dropped - self.failed
    }
}

impl fmt::Display for RecorderStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { recorded, sent, aggregated, suppressed, dropped, failed } = self;
        let waiting = self.waiting();
        write!(
            f,
            "{recorded} recorded: {sent} sent, {aggregated} aggregated, {suppressed} suppressed, {dropped} dropped, {failed} failed, {waiting} waiting"
        )
    }
}
