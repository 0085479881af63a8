//! Log lines that a stranger can cause: one of a kind every ten seconds, the others are counted.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// How long a kind of line is silent after it was written.
const SILENCE: Duration = Duration::from_secs(10);

/// Decides which lines are written. Kinds are named in the source, so that there are only a few.
#[derive(Debug, Default)]
pub(crate) struct LogLimit(Mutex<HashMap<&'static str, Kind>>);

#[derive(Debug)]
struct Kind {
    written: Instant,
    suppressed: u64,
}

impl LogLimit {
    /// Whether to write a line of this kind now, and if so how many were not written since the one before.
    pub(crate) fn admit(&self, kind: &'static str) -> Option<u64> {
        let now = Instant::now();
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = kinds.get_mut(kind) else {
            kinds.insert(kind, Kind { written: now, suppressed: 0 });
            return Some(0);
        };
        if now.duration_since(known.written) < SILENCE {
            known.suppressed += 1;
            return None;
        }
        known.written = now;
        Some(std::mem::take(&mut known.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_line_of_a_kind_is_written_in_ten_seconds_and_the_others_are_counted() {
        let limit = LogLimit::default();
        assert_eq!(limit.admit("host"), Some(0));
        assert_eq!(limit.admit("path"), Some(0), "another kind has its own silence");
        for _ in 0..3 {
            assert_eq!(limit.admit("host"), None);
        }
        tokio::time::advance(SILENCE).await;
        assert_eq!(limit.admit("host"), Some(3));
        assert_eq!(limit.admit("host"), None);
        assert_eq!(limit.admit("path"), Some(0));
    }
}
