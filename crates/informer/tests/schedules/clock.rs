//! A clock that stands still until a story moves it.

use std::{
    future::poll_fn,
    ops::Add,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::Duration,
};

struct Clock {
    now: Duration,
    sleepers: Vec<Waker>,
}

// One story at a time in one thread of the operating system: shuttle's threads never wait for this lock.
thread_local! {
    static CLOCK: Mutex<Clock> = const { Mutex::new(Clock { now: Duration::ZERO, sleepers: Vec::new() }) };
}

fn with<R>(use_it: impl FnOnce(MutexGuard<'_, Clock>) -> R) -> R {
    CLOCK.with(|clock| use_it(clock.lock().unwrap_or_else(PoisonError::into_inner)))
}

#[derive(Clone, Copy)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Self {
        Self(with(|clock| clock.now))
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Self::now().0 - self.0
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

pub(crate) async fn sleep_until(moment: Instant) {
    poll_fn(|context| {
        with(|mut clock| {
            if clock.now >= moment.0 {
                return Poll::Ready(());
            }
            clock.sleepers.push(context.waker().clone());
            Poll::Pending
        })
    })
    .await;
}

/// Moves the clock and wakes all who sleep.
pub(crate) fn advance(duration: Duration) {
    let sleepers = with(|mut clock| {
        clock.now += duration;
        std::mem::take(&mut clock.sleepers)
    });
    sleepers.into_iter().for_each(Waker::wake);
}

/// A story begins: nobody of the one before sleeps any more.
pub(crate) fn reset() {
    with(|mut clock| clock.sleepers.clear());
}
