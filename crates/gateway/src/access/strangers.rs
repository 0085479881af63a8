//! Tokens that nobody knows: how many of them an address may try.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// How many wrong tokens an address may show at once, and how soon it may show the next one.
const BURST: f64 = 50.0;
const ONE_EVERY: Duration = Duration::from_millis(200);
/// How many addresses are remembered.
const REMEMBERED: usize = 4_096;

/// What each address has left.
#[derive(Default)]
pub(super) struct Strangers(Mutex<HashMap<Option<IpAddr>, Allowance>>);

struct Allowance {
    left: f64,
    at: Instant,
}

impl Allowance {
    fn now(&self) -> f64 {
        (self.left + self.at.elapsed().div_duration_f64(ONE_EVERY)).min(BURST)
    }
}

impl Strangers {
    /// Whether an address may show one more token that is not known. It counts until it is [taken back](Self::forgive).
    pub(super) fn admit(&self, address: Option<IpAddr>) -> bool {
        self.change(address, -1.0)
    }

    /// The token was good, or nobody said that it was not.
    pub(super) fn forgive(&self, address: Option<IpAddr>) {
        self.change(address, 1.0);
    }

    fn change(&self, address: Option<IpAddr>, by: f64) -> bool {
        let mut allowances = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if allowances.len() >= REMEMBERED && !allowances.contains_key(&address) {
            allowances.retain(|_, allowance| allowance.now() < BURST);
            if allowances.len() >= REMEMBERED {
                return false;
            }
        }
        let at = Instant::now();
        let allowance = allowances.entry(address).or_insert(Allowance { left: BURST, at });
        let left = allowance.now() + by;
        let is_enough = left >= 0.0;
        *allowance = Allowance { left: if is_enough { left } else { allowance.now() }, at };
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_address_has_a_number_of_tries_and_gets_more_with_time() {
        let strangers = Strangers::default();
        let (eve, ann) = (Some("192.0.2.1".parse().unwrap()), Some("192.0.2.2".parse().unwrap()));
        assert_eq!((0..900).filter(|_| strangers.admit(eve)).count(), BURST as usize);
        assert!(strangers.admit(ann), "others are not concerned");
        advance(ONE_EVERY).await;
        assert_eq!((0..900).filter(|_| strangers.admit(eve)).count(), 1);
        strangers.forgive(eve);
        assert!(strangers.admit(eve));
    }
}
