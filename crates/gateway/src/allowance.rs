//! How often somebody may do what costs others something: some times at once, and then one after the other.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// How many of those who do it are remembered.
const REMEMBERED: usize = 4_096;

/// What each of them has left.
pub(crate) struct Allowances<K> {
    /// So many at once.
    burst: f64,
    /// So soon the next one.
    one_every: Duration,
    left: Mutex<HashMap<K, Allowance>>,
}

struct Allowance {
    left: f64,
    at: Instant,
}

impl<K: Eq + Hash> Allowances<K> {
    pub(crate) fn new(burst: u32, one_every: Duration) -> Self {
        Self { burst: burst.into(), one_every, left: Mutex::default() }
    }

    /// Whether somebody may do it once more. It counts until it is [taken back](Self::forgive).
    pub(crate) fn admit(&self, who: K) -> bool {
        self.change(who, -1.0)
    }

    /// It cost nothing.
    pub(crate) fn forgive(&self, who: K) {
        self.change(who, 1.0);
    }

    fn change(&self, who: K, by: f64) -> bool {
        let now = |allowance: &Allowance| {
            (allowance.left + allowance.at.elapsed().div_duration_f64(self.one_every)).min(self.burst)
        };
        let mut allowances = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if allowances.len() >= REMEMBERED && !allowances.contains_key(&who) {
            allowances.retain(|_, allowance| now(allowance) < self.burst);
            if allowances.len() >= REMEMBERED {
                return false;
            }
        }
        let at = Instant::now();
        let allowance = allowances.entry(who).or_insert(Allowance { left: self.burst, at });
        let left = now(allowance) + by;
        let is_enough = left >= 0.0;
        *allowance = Allowance { left: if is_enough { left } else { now(allowance) }, at };
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_address_has_a_number_of_tries_and_gets_more_with_time() {
        let one_every = Duration::from_millis(200);
        let strangers = Allowances::new(50, one_every);
        let (eve, ann) = ("192.0.2.1", "192.0.2.2");
        assert_eq!((0..900).filter(|_| strangers.admit(eve)).count(), 50);
        assert!(strangers.admit(ann), "others are not concerned");
        advance(one_every).await;
        assert_eq!((0..900).filter(|_| strangers.admit(eve)).count(), 1);
        strangers.forgive(eve);
        assert!(strangers.admit(eve));
    }
}
