//! The work queue. A lost wake-up shows as a deadlock.

use std::{collections::BTreeSet, time::Duration};

use shuttle::{
    future::{self, block_on},
    thread,
};

use crate::{
    check, clock,
    sync::{Arc, Mutex},
    workqueue::WorkQueue,
};

const S: Duration = Duration::from_secs(1);

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
