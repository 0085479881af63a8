//! How much is sent, how often, and how much is kept.

use std::time::Duration;

use super::RecorderBuildError;

/// How much a recorder sends and keeps. The defaults are client-go's where it has the same.
///
/// ```
/// use informer::events::Limits;
///
/// let patient = Limits { tries: 100, ..Limits::default() };
/// assert_eq!(patient.queue, 1_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many events may wait to be sent; another one is dropped. 1,000.
    pub queue: usize,
    /// How many series, topics and objects are remembered at most: the ones that were quiet the longest are forgotten. 4,096.
    pub tracked: usize,
    /// How many new events of one type an object may have at once: 25. Repetitions in a series do not count, for they make no event.
    pub burst: u32,
    /// How long until it may have another one: 5 minutes.
    pub refill: Duration,
    /// How many events that differ in their note alone are sent as they are. Further ones are combined into one. 10.
    pub similar: usize,
    /// After so long without a similar event, notes are told apart again: 10 minutes.
    pub similar_for: Duration,
    /// A series ends after so long without a repetition; the next one begins a new event. 6 minutes.
    pub series_end: Duration,
    /// How long a count of repetitions may be out of date: 5 minutes at most, and at first less. A series is written 10 s after it began,
    /// then whenever it is twice as old, and from then on this often: a new problem is seen growing, and an old one costs little.
    /// client-go writes the second one at once and then nothing for 30 minutes.
    pub refresh: Duration,
    /// How often an event is tried to be sent before it is given up: 12 times.
    pub tries: u32,
    /// How long sending may go on after the stop: 5 s.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Self {
            queue: 1_000,
            tracked: 4_096,
            burst: 25,
            refill: minutes(5),
            similar: 10,
            similar_for: minutes(10),
            series_end: minutes(6),
            refresh: minutes(5),
            tries: 12,
            drain: Duration::from_secs(5),
        }
    }
}

/// As good as never, and no clock overflows by it.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

impl Limits {
    /// Refuses what would send nothing, and bounds the times.
    pub(super) fn checked(mut self) -> Result<Self, RecorderBuildError> {
        let zero = [
            ("queue", self.queue == 0),
            ("tracked", self.tracked == 0),
            ("burst", self.burst == 0),
            ("similar", self.similar == 0),
            ("tries", self.tries == 0),
        ];
        if let Some((limit, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            return Err(RecorderBuildError::Zero { limit });
        }
        for time in [&mut self.series_end, &mut self.refresh, &mut self.drain] {
            *time = (*time).min(FOR_EVER);
        }
        Ok(self)
    }
}
