//! How long to wait after a failure.

use std::time::Duration;

use rand::{Rng, RngExt};

/// Delays that grow from failure to failure, each drawn anew between nothing and the step: a thousand
/// clients that lost the same server do not come back in the same instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The first step.
    pub initial: Duration,
    /// No step is longer.
    pub max: Duration,
    /// How much longer each step is than the one before.
    pub factor: f64,
    /// After this long without a failure, the next one begins with the first step.
    pub reset_after: Duration,
    /// How much of a step is left to chance: with 1 anything from nothing to the step, with 0 the step.
    pub jitter: f64,
}

impl Default for Backoff {
    /// 0.8 s, doubled up to 30 s, all of it left to chance, forgotten after two quiet minutes.
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(800),
            max: Duration::from_secs(30),
            factor: 2.0,
            reset_after: Duration::from_secs(120),
            jitter: 1.0,
        }
    }
}

/// A backoff and where it stands.
#[derive(Debug)]
pub(crate) struct Delays {
    backoff: Backoff,
    step: Duration,
    last_failure: Option<Duration>,
}

impl Delays {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self { backoff, step: backoff.initial, last_failure: None }
    }

    /// The delay after a failure at `now`.
    pub(crate) fn next(&mut self, now: Duration, rng: &mut impl Rng) -> Duration {
        let quiet = self.last_failure.is_none_or(|last| now.saturating_sub(last) >= self.backoff.reset_after);
        if quiet {
            self.step = self.backoff.initial;
        }
        let step = self.step.min(self.backoff.max);
        let jitter = self.backoff.jitter.clamp(0.0, 1.0);
        let share = 1.0 - jitter * rng.random::<f64>();
        let delay = Duration::try_from_secs_f64(step.as_secs_f64() * share).unwrap_or(step);
        let longer = step.as_secs_f64() * self.backoff.factor.max(1.0);
        self.step = Duration::try_from_secs_f64(longer).unwrap_or(self.backoff.max);
        // The wait itself is not a quiet time.
        self.last_failure = Some(now.saturating_add(delay));
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg32;

    #[test]
    fn c06_delays_grow_to_the_cap_with_full_jitter_and_are_forgotten_after_two_quiet_minutes() {
        let mut rng = Pcg32::seed_from_u64(1);
        let mut longest = Vec::new();
        for _ in 0..2_000 {
            let (mut delays, mut now) = (Delays::new(Backoff::default()), Duration::ZERO);
            for step in 0..9 {
                let delay = delays.next(now, &mut rng);
                now += delay;
                if longest.len() <= step {
                    longest.push(Duration::ZERO);
                }
                longest[step] = longest[step].max(delay);
            }
            now += Duration::from_secs(120);
            assert!(delays.next(now, &mut rng) <= Duration::from_millis(800), "begins anew");
        }
        let steps = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0].map(Duration::from_secs_f64);
        for (longest, step) in longest.into_iter().zip(steps) {
            assert!(longest <= step && longest > step.mul_f64(0.9), "{longest:?} of {step:?}");
        }
    }

    #[test]
    fn absurd_settings_neither_panic_nor_overflow() {
        let backoff = Backoff {
            initial: Duration::MAX,
            max: Duration::MAX,
            factor: f64::NAN,
            reset_after: Duration::ZERO,
            jitter: -3.0,
        };
        let mut delays = Delays::new(Backoff { factor: 1e300, ..backoff });
        let mut rng = Pcg32::seed_from_u64(1);
        assert_eq!(delays.next(Duration::ZERO, &mut rng), backoff.max);
        assert_eq!(delays.next(Duration::ZERO, &mut rng), backoff.max);
        assert_eq!(Delays::new(backoff).next(Duration::ZERO, &mut rng), backoff.max);
    }
}
