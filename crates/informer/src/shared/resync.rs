//! When each handler is to be shown all objects again. Does no waiting: the caller passes the time in.

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

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Ticks whenever asked to, each time a little late, and says at which seconds each handler was due.
    fn due(schedule: &mut ResyncSchedule, start: Instant, until: u64) -> BTreeMap<u64, Vec<u64>> {
        let mut due: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        while let Some(next) = schedule.next_check().filter(|next| *next <= start + seconds(until)) {
            let late = Duration::from_millis((next - start).as_secs() * 7 % 50);
            if schedule.tick(next + late) {
                for handler in schedule.turns.keys().filter(|handler| schedule.is_due(**handler)) {
                    due.entry(*handler).or_default().push((next - start).as_secs());
                }
                schedule.tell();
            }
        }
        due
    }

    #[test]
    fn c26_each_handler_gets_exactly_its_own_resyncs() {
        let start = Instant::now();
        let mut schedule = ResyncSchedule::new(seconds(1));
        for (handler, period) in
            [(1, Some(seconds(0))), (2, Some(seconds(2))), (3, Some(seconds(3))), (4, None)]
        {
            schedule.join(handler, period, start);
        }
        schedule.start(start);
        let due = due(&mut schedule, start, 12);
        assert_eq!(due.keys().copied().collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!((&due[&2][..], &due[&3][..]), (&[2, 4, 6, 8, 10, 12][..], &[3, 6, 9, 12][..]));
        assert_eq!(due[&4], (1..=12).collect::<Vec<_>>());
    }

    #[test]
    fn c26_before_the_start_a_shorter_period_lowers_the_check_period_and_others_keep_theirs() {
        let start = Instant::now();
        let mut schedule = ResyncSchedule::new(seconds(12 * 60 * 60));
        let mut checks = Vec::new();
        for (handler, period) in [(1, 12 * 60 * 60), (2, 60), (3, 55), (4, 5)] {
            schedule.join(handler, Some(seconds(period)), start);
            checks.push(schedule.check.unwrap().as_secs());
        }
        assert_eq!(checks, [12 * 60 * 60, 60, 55, 5]);
        let periods: Vec<u64> = schedule.turns.values().map(|turn| turn.period.as_secs()).collect();
        assert_eq!(periods, [12 * 60 * 60, 60, 55, 5]);
        schedule.start(start);
        assert_eq!(schedule.next_check(), Some(start + seconds(5)));
        assert_eq!(due(&mut schedule, start, 120)[&3], [55, 110]);
    }

    #[test]
    fn c26_after_the_start_a_shorter_period_is_raised_to_the_check_period() {
        let start = Instant::now();
        let mut schedule = ResyncSchedule::new(seconds(10));
        schedule.join(1, None, start);
        schedule.start(start);
        schedule.join(2, Some(seconds(3)), start);
        schedule.join(3, Some(seconds(15)), start);
        let due = due(&mut schedule, start, 40);
        assert_eq!((&due[&2][..], &due[&3][..]), (&[10, 20, 30, 40][..], &[20, 40][..]));
    }

    #[test]
    fn c26_a_second_is_the_least_and_nobody_checks_for_nobody() {
        let start = Instant::now();
        let mut schedule = ResyncSchedule::new(Duration::ZERO);
        schedule.join(1, None, start);
        schedule.join(2, Some(Duration::ZERO), start);
        schedule.start(start);
        assert_eq!((schedule.next_check(), schedule.tick(start + seconds(99))), (None, false));
        let later = start + seconds(100);
        schedule.join(3, Some(Duration::from_millis(1)), later);
        assert_eq!(schedule.next_check(), Some(later + seconds(1)), "who asks for it gets it");
        schedule.leave(3);
        assert_eq!(schedule.next_check(), None);
        schedule.join(4, Some(Duration::MAX), later);
        assert!(!schedule.tick(later + seconds(1_000_000)), "as long as that, and no overflow");
    }

    #[test]
    fn c26_who_was_not_told_yet_is_still_due_at_the_next_look() {
        let start = Instant::now();
        let mut schedule = ResyncSchedule::new(seconds(1));
        schedule.join(2, Some(seconds(2)), start);
        schedule.join(3, Some(seconds(3)), start);
        schedule.start(start);
        let dues = |schedule: &ResyncSchedule| [2, 3].map(|handler| schedule.is_due(handler));
        assert!(!schedule.tick(start + seconds(1)));
        assert!(schedule.tick(start + seconds(2)));
        assert_eq!(dues(&schedule), [true, false]);
        assert!(schedule.tick(start + seconds(3)));
        assert_eq!(dues(&schedule), [true, true], "the queue was slow");
        schedule.tell();
        assert!(schedule.tick(start + seconds(4)));
        assert_eq!(dues(&schedule), [true, false]);
        assert!(!schedule.tick(start + Duration::from_millis(4_500)), "too early");
        schedule.tell();
        assert!(!schedule.tick(start + seconds(5)));
        assert_eq!(dues(&schedule), [false, false]);
    }
}
