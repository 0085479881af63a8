//! How long an item waits before it is tried again.

use std::{
    fmt,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hashbrown::HashMap;
use tokio::time::Instant;

/// Decides how long an item that failed has to wait.
///
/// ```
/// use std::time::Duration;
/// use informer::workqueue::RateLimiter;
///
/// struct Patient;
///
/// impl<T> RateLimiter<T> for Patient {
///     fn next_delay(&self, _item: &T) -> Duration {
///         Duration::from_secs(60)
///     }
/// }
/// ```
pub trait RateLimiter<T>: Send + Sync {
    /// The item has failed once more: how long it has to wait now.
    fn next_delay(&self, item: &T) -> Duration;

    /// The item has succeeded, or is given up: its failures no longer count.
    fn forget(&self, item: &T) {
        let _ = item;
    }

    /// How often the item has failed since it was last forgotten.
    fn failures(&self, item: &T) -> u32 {
        let _ = item;
        0
    }
}

/// What controllers use: each item by itself 5 ms, doubled up to 1,000 s, and all together ten a second after a hundred at
/// once.
pub fn default_limiter<T: Hash + Eq + Clone + Send + 'static>() -> MaxOf<T> {
    MaxOf::new().and(ItemExponential::default()).and(Bucket::default())
}

/// Counts the failures of each item.
#[derive(Debug)]
struct Failures<T>(Mutex<HashMap<T, u32>>);

impl<T: Hash + Eq + Clone> Failures<T> {
    fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// Counts one more and returns how many there were before.
    fn count(&self, item: &T) -> u32 {
        let mut failures = self.lock();
        let count = failures.entry_ref(item).or_insert(0);
        let before = *count;
        *count = before.saturating_add(1);
        before
    }

    fn of(&self, item: &T) -> u32 {
        self.lock().get(item).copied().unwrap_or(0)
    }

    fn forget(&self, item: &T) {
        self.lock().remove(item);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<T, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Each item waits twice as long as the time before, up to a longest.
#[derive(Debug)]
pub struct ItemExponential<T> {
    first: Duration,
    longest: Duration,
    failures: Failures<T>,
}

impl<T: Hash + Eq + Clone> ItemExponential<T> {
    /// The first delay, and the longest.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: Failures::new() }
    }
}

impl<T: Hash + Eq + Clone> Default for ItemExponential<T> {
    /// 5 ms, up to 1,000 s.
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl<T: Hash + Eq + Clone + Send> RateLimiter<T> for ItemExponential<T> {
    fn next_delay(&self, item: &T) -> Duration {
        let factor = 2_u32.checked_pow(self.failures.count(item));
        let delay = factor.and_then(|factor| self.first.checked_mul(factor));
        // Past what can be counted there is only the longest, and nothing doubled is nothing.
        let past = if self.first.is_zero() { Duration::ZERO } else { self.longest };
        delay.unwrap_or(past).min(self.longest)
    }

    fn forget(&self, item: &T) {
        self.failures.forget(item);
    }

    fn failures(&self, item: &T) -> u32 {
        self.failures.of(item)
    }
}

/// A short delay for the first failures of an item, a long one for the rest.
#[derive(Debug)]
pub struct FastSlow<T> {
    fast: Duration,
    slow: Duration,
    fast_failures: u32,
    failures: Failures<T>,
}

impl<T: Hash + Eq + Clone> FastSlow<T> {
    /// The short delay, the long one, and for how many failures the short one holds.
    pub fn new(fast: Duration, slow: Duration, fast_failures: u32) -> Self {
        Self { fast, slow, fast_failures, failures: Failures::new() }
    }
}

impl<T: Hash + Eq + Clone + Send> RateLimiter<T> for FastSlow<T> {
    fn next_delay(&self, item: &T) -> Duration {
        if self.failures.count(item) < self.fast_failures { self.fast } else { self.slow }
    }

    fn forget(&self, item: &T) {
        self.failures.forget(item);
    }

    fn failures(&self, item: &T) -> u32 {
        self.failures.of(item)
    }
}

/// So many items at once, and then so many a second, whichever they are.
#[derive(Debug)]
pub struct Bucket {
    per_second: f64,
    burst: f64,
    level: Mutex<Level>,
}

/// How full the bucket was at a moment. It is below zero when items wait.
#[derive(Debug)]
struct Level {
    items: f64,
    at: Instant,
}

/// A hundred years: as good as never.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Bucket {
    /// So many a second on average, and so many at once. At a rate that is not above zero nothing more comes after those.
    pub fn new(per_second: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        let level = Mutex::new(Level { items: burst, at: Instant::now() });
        // Neither below zero nor NaN.
        Self { per_second: per_second.max(0.0), burst, level }
    }
}

impl Default for Bucket {
    /// Ten a second, a hundred at once.
    fn default() -> Self {
        Self::new(10.0, 100)
    }
}

impl<T> RateLimiter<T> for Bucket {
    fn next_delay(&self, _item: &T) -> Duration {
        let now = Instant::now();
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let refilled = level.items + (now - level.at).as_secs_f64() * self.per_second;
        // This way round, because what is no number (no time at an endless rate) is not the lesser one.
        let items = refilled.min(self.burst) - 1.0;
        *level = Level { items, at: now };
        if items >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-items / self.per_second).map_or(FOR_EVER, |delay| delay.min(FOR_EVER))
    }
}

/// The longest delay that any of some limiters gives.
pub struct MaxOf<T>(Vec<Box<dyn RateLimiter<T>>>);

impl<T> MaxOf<T> {
    /// None yet: no delay.
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// One more.
    #[must_use]
    pub fn and(mut self, limiter: impl RateLimiter<T> + 'static) -> Self {
        self.0.push(Box::new(limiter));
        self
    }
}

impl<T> Default for MaxOf<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for MaxOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MaxOf({} limiters)", self.0.len())
    }
}

impl<T> RateLimiter<T> for MaxOf<T> {
    fn next_delay(&self, item: &T) -> Duration {
        // Each is asked, for each counts.
        self.0.iter().map(|limiter| limiter.next_delay(item)).max().unwrap_or_default()
    }

    fn forget(&self, item: &T) {
        self.0.iter().for_each(|limiter| limiter.forget(item));
    }

    fn failures(&self, item: &T) -> u32 {
        self.0.iter().map(|limiter| limiter.failures(item)).max().unwrap_or(0)
    }
}

/// Another limiter, but never longer than this.
#[derive(Debug)]
pub struct WithMaxWait<L> {
    limiter: L,
    longest: Duration,
}

impl<L> WithMaxWait<L> {
    /// Bounds a limiter's delays.
    pub fn new(limiter: L, longest: Duration) -> Self {
        Self { limiter, longest }
    }
}

impl<T, L: RateLimiter<T>> RateLimiter<T> for WithMaxWait<L> {
    fn next_delay(&self, item: &T) -> Duration {
        self.limiter.next_delay(item).min(self.longest)
    }

    fn forget(&self, item: &T) {
        self.limiter.forget(item);
    }

    fn failures(&self, item: &T) -> u32 {
        self.limiter.failures(item)
    }
}
