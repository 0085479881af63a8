//! When each handler is to be shown all objects again. Does no waiting: whoever owns it brings the time.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

/// No handler resyncs more often.
const SHORTEST: Duration = Duration::from_secs(1);

/// Thirty years: longer than any program runs, and no clock overflows.
const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The periods of all handlers, and when to look at them.
///
/// The informer looks every *check period*, and a handler is due at the first look after its own period. Until
/// the start a handler with a shorter period shortens the check period; after it, such a handler gets the
/// check period instead. Nobody checks while no handler wants a resync.
pub(super) struct ResyncSchedule {
    default: Duration,
    /// `None` until somebody wants a resync.
    check: Option<Duration>,
    /// When to look next, if there is anybody to look at; `None` before the start.
    next: Option<Instant>,
    turns: BTreeMap<u64, Turn>,
    /// Whether those who are due have begun to get what they are due.
    told: bool,
}

struct Turn {
    period: Duration,
    next: Instant,
    due: bool,
}

/// A period as it counts: zero is never, and anything else is between [`SHORTEST`] and [`LONGEST`].
fn effective(period: Duration) -> Option<Duration> {
    (!period.is_zero()).then(|| period.clamp(SHORTEST, LONGEST))
}

impl ResyncSchedule {
    pub(super) fn new(default: Duration) -> Self {
        Self { default, check: effective(default), next: None, turns: BTreeMap::new(), told: true }
    }

    /// Handlers that join from now on come after the start.
    pub(super) fn start(&mut self, now: Instant) {
        if self.next.is_some() {
            return;
        }
        self.next = Some(now + self.check.unwrap_or(LONGEST));
        for turn in self.turns.values_mut() {
            turn.next = now + turn.period;
        }
    }

    /// A handler comes, with the period that it asked for; `None` is the default, zero is never.
    pub(super) fn join(&mut self, handler: u64, period: Option<Duration>, now: Instant) {
        let Some(mut period) = effective(period.unwrap_or(self.default)) else { return };
        let check = self.check.get_or_insert(period);
        if let Some(next) = &mut self.next {
            period = period.max(*check);
            if self.turns.is_empty() {
                *next = now + *check;
            }
        } else {
            *check = period.min(*check);
        }
        self.turns.insert(handler, Turn { period, next: now + period, due: false });
    }

    pub(super) fn leave(&mut self, handler: u64) {
        self.turns.remove(&handler);
    }

    /// When to [`tick`](Self::tick) next.
    pub(super) fn next_check(&self) -> Option<Instant> {
        self.next.filter(|_| !self.turns.is_empty())
    }

    /// Looks who is due, and says whether anybody is.
    ///
    /// A look that comes late counts as if it had come in time, so that no period drifts. Who was due before
    /// and has not been told yet is still due.
    pub(super) fn tick(&mut self, now: Instant) -> bool {
        let (Some(next), Some(check)) = (self.next_check(), self.check) else { return false };
        let Some(late) = now.checked_duration_since(next) else { return false };
        let missed = late.as_nanos() % check.as_nanos();
        let at = now - Duration::from_nanos(u64::try_from(missed).unwrap_or(0));
        self.next = Some(at + check);
        let mut any = false;
        for turn in self.turns.values_mut() {
            let due = turn.next <= at;
            if due {
                turn.next = at + turn.period;
            }
            any |= due;
            turn.due = due || (turn.due && !self.told);
        }
        self.told = self.told && !any;
        any
    }

    /// Those who are due get what they are due.
    pub(super) fn tell(&mut self) {
        self.told = true;
    }

    pub(super) fn is_due(&self, handler: u64) -> bool {
        self.turns.get(&handler).is_some_and(|turn| turn.due)
    }
}
