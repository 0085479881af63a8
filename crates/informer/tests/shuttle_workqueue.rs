//! The work queue under a model checker: its own source, compiled here against shuttle's locks and a clock that a story
//! moves, run under thousands of schedules. A lost wake-up shows as a deadlock.

/// What the queue's source asks of its crate, with shuttle's primitives and the story's clock in the place of the real ones.
mod sync {
    pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use std::sync::PoisonError;

    pub(crate) use crate::clock::{Instant, sleep_until};
}

mod metrics {
    pub(crate) use informer::metrics::Measurement;

    /// No story measures anything.
    pub(crate) trait Metrics: Send + Sync + 'static {
        fn record(&self, name: &str, measurement: Measurement<'_>);
        fn queue(&self, name: &str, probe: crate::workqueue::Probe);
    }
}

#[allow(dead_code, unreachable_pub, reason = "the stories use a part of what the modules make public")]
#[path = "../src/workqueue"]
mod workqueue {
    mod core;
    mod limiter;
    mod queue;
    mod stats;

    pub(crate) use self::{queue::WorkQueue, stats::Probe};
}

/// A clock that stands still until a story moves it.
mod clock {
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
}

use std::{collections::BTreeSet, time::Duration};

use shuttle::{
    future::{self, block_on},
    thread,
};
use sync::{Arc, Mutex};
use workqueue::WorkQueue;

const S: Duration = Duration::from_secs(1);

/// Runs a story under many schedules; `INFORMER_SCHEDULES` says how many of each kind.
fn check(story: impl Fn() + Send + Sync + Copy + 'static) {
    let schedules = informer_testing::number("INFORMER_SCHEDULES").unwrap_or(2_000) as usize;
    let story = move || {
        clock::reset();
        story();
    };
    shuttle::check_random(story, schedules);
    shuttle::check_pct(story, schedules, 3);
}

/// What workers have now and have had.
#[derive(Default)]
struct Log {
    at_work: Mutex<BTreeSet<u32>>,
    done: Mutex<Vec<u32>>,
}

/// Works until the queue has ended; fails if another worker has the same item.
fn work(queue: &WorkQueue<u32>, log: &Log) {
    block_on(async {
        while let Some(work) = queue.get().await {
            assert!(log.at_work.lock().unwrap().insert(*work), "{} is with two workers", *work);
            thread::yield_now();
            log.at_work.lock().unwrap().remove(&*work);
            log.done.lock().unwrap().push(*work);
        }
    });
}

fn workers(queue: &WorkQueue<u32>, log: &Arc<Log>, count: usize) -> Vec<thread::JoinHandle<()>> {
    let worker = |_| {
        let (queue, log) = (queue.clone(), Arc::clone(log));
        thread::spawn(move || work(&queue, &log))
    };
    (0..count).map(worker).collect()
}

#[test]
fn c34_no_item_is_lost_nor_with_two_workers_and_a_drain_waits_for_all() {
    check(|| {
        let (queue, log) = (WorkQueue::new(), Arc::new(Log::default()));
        let workers = workers(&queue, &log, 2);
        let producers = [[1, 2], [2, 1]].map(|items| {
            let queue = queue.clone();
            thread::spawn(move || items.into_iter().for_each(|item| queue.add(item)))
        });
        for producer in producers {
            producer.join().unwrap();
        }
        block_on(queue.drain());
        assert!(log.at_work.lock().unwrap().is_empty());
        let done = log.done.lock().unwrap().clone();
        assert!(done.contains(&1) && done.contains(&2) && done.len() <= 4, "{done:?}");
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn c34_delays_wake_somebody_also_if_who_minds_them_goes_away() {
    check(|| {
        let queue: WorkQueue<u32> = WorkQueue::new();
        queue.add_after(1, S);
        // Who comes first minds the delay. It may be dropped before it ends, even while it is being woken.
        let first = {
            let queue = queue.clone();
            future::spawn(async move { queue.get().await.map(|work| *work) })
        };
        let second = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.get()).map(|work| *work))
        };
        let clock = thread::spawn(|| clock::advance(S));
        first.abort();
        queue.add_after(2, S / 2);
        clock.join().unwrap();
        clock::advance(S);
        let taken = second.join().unwrap().unwrap();
        assert!(taken == 1 || taken == 2);
        queue.shut_down();
        while let Some(rest) = block_on(queue.get()) {
            assert_ne!(*rest, taken);
        }
    });
}

#[test]
fn c34_shutdown_wakes_all_who_wait_and_ends_a_drain() {
    check(|| {
        let (queue, log) = (WorkQueue::new(), Arc::new(Log::default()));
        let workers = workers(&queue, &log, 2);
        queue.add(1);
        queue.add_after(2, S);
        let held = queue.try_get();
        let draining = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.drain()))
        };
        while !queue.is_shut_down() {
            thread::yield_now();
        }
        queue.shut_down();
        draining.join().unwrap();
        drop(held);
        for worker in workers {
            worker.join().unwrap();
        }
        assert!(!log.done.lock().unwrap().contains(&2), "what was delayed is dropped");
    });
}

#[test]
fn c34_each_of_several_delays_reaches_one_of_several_workers() {
    check(|| {
        let (queue, log) = (WorkQueue::new(), Arc::new(Log::default()));
        let workers = workers(&queue, &log, 3);
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.add_after(1, 2 * S);
                queue.add(2);
                queue.add_after(3, S);
            })
        };
        producer.join().unwrap();
        for _ in 0..2 {
            clock::advance(S);
        }
        while log.done.lock().unwrap().len() < 3 {
            thread::yield_now();
        }
        queue.shut_down();
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn c34_who_is_woken_and_goes_away_lets_another_have_the_item() {
    check(|| {
        let queue: WorkQueue<u32> = WorkQueue::new();
        let first = {
            let queue = queue.clone();
            future::spawn(async move { queue.get().await.map(|work| *work) })
        };
        let second = {
            let queue = queue.clone();
            thread::spawn(move || block_on(queue.get()).map(|work| *work))
        };
        queue.add(1);
        first.abort();
        // The first one may have had the first item, not both.
        queue.add(2);
        assert!(second.join().unwrap().is_some());
        queue.shut_down();
    });
}
