//! The queue between reflectors and the task that writes. A lost wake-up shows as a deadlock.

use std::iter;

use k8s_openapi::api::core::v1::ConfigMap;
use shuttle::{
    future::{self, block_on},
    thread,
};

use crate::{
    check,
    queue::{InOrderFifo, Queue as _},
    shared::SharedQueue,
    support::{mk, show_deltas},
    sync::{Arc, Mutex},
};

type Queue = SharedQueue<ConfigMap, InOrderFifo<ConfigMap>>;

/// Takes single events until the queue has ended, and writes them into a log while they are in flight.
fn consume(queue: &Queue, log: &Mutex<Vec<String>>) {
    block_on(async {
        while let Some(batch) = queue.pop(1).await {
            let text = show_deltas(&batch);
            log.lock().unwrap().push(text.split(' ').next().unwrap_or_default().to_owned());
        }
    });
}

#[test]
fn c15_two_producers_two_consumers_every_event_once_and_in_order() {
    check(|| {
        let queue: Queue = SharedQueue::new(InOrderFifo::new());
        let log = Arc::new(Mutex::new(Vec::new()));
        let consumers: Vec<_> = iter::repeat_with(|| {
            let (queue, log) = (queue.clone(), Arc::clone(&log));
            thread::spawn(move || consume(&queue, &log))
        })
        .take(2)
        .collect();
        let producers = ["a", "b"].map(|name| {
            let queue = queue.clone();
            thread::spawn(move || (1..=3).for_each(|version| queue.updated(mk(name, version)).unwrap()))
        });
        for producer in producers {
            producer.join().unwrap();
        }
        queue.close();
        for consumer in consumers {
            consumer.join().unwrap();
        }
        let log = log.lock().unwrap();
        for name in ["a", "b"] {
            let of_one: Vec<&String> = log.iter().filter(|text| text.contains(name)).collect();
            assert_eq!(
                of_one,
                [&format!("~{name}@1"), &format!("~{name}@2"), &format!("~{name}@3")],
                "{log:?}"
            );
        }
        assert_eq!(log.len(), 6);
    });
}

#[test]
fn c15_closing_wakes_whoever_waits() {
    check(|| {
        let queue: Queue = SharedQueue::new(InOrderFifo::new());
        let poppers: Vec<_> = iter::repeat_with(|| {
            let queue = queue.clone();
            future::spawn(async move { queue.pop(1).await.is_none() })
        })
        .take(3)
        .collect();
        queue.close();
        for popper in poppers {
            assert!(block_on(popper).unwrap());
        }
    });
}

#[test]
fn c15_what_is_added_together_wakes_whoever_waits_when_it_is_all_there() {
    check(|| {
        let queue: Queue = SharedQueue::new(InOrderFifo::new());
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || {
                block_on(async {
                    while queue.pop(256).await.is_some_and(|batch| !show_deltas(&batch).contains("~a@2")) {}
                });
            }
        });
        let adding = queue.adding();
        (1..=2).for_each(|version| queue.updated(mk("a", version)).unwrap());
        drop(adding);
        consumer.join().unwrap();
    });
}

#[test]
fn a_batch_that_fails_comes_again_before_anything_else() {
    check(|| {
        let queue: Queue = SharedQueue::new(InOrderFifo::new());
        let producer = {
            let queue = queue.clone();
            thread::spawn(move || {
                (1..=3).for_each(|version| queue.updated(mk("a", version)).unwrap());
                queue.close();
            })
        };
        let mut failed = block_on(queue.pop(1)).unwrap();
        let again = failed.take();
        failed.retry(again);
        drop(failed);
        let log = Mutex::new(Vec::new());
        consume(&queue, &log);
        producer.join().unwrap();
        assert_eq!(*log.lock().unwrap(), ["~a@1", "#1", "~a@2", "~a@3"]);
    });
}

#[test]
fn c07_an_event_that_comes_late_is_taken_out_with_the_version_that_was_reached_before_it() {
    check(|| {
        let queue: Queue = SharedQueue::new(InOrderFifo::new());
        let consumer = thread::spawn({
            let queue = queue.clone();
            move || block_on(async { queue.pop(256).await.map(|batch| show_deltas(&batch)) })
        });
        queue
            .push(|queue| {
                queue.updated(mk("a", 99));
                queue.bookmark(100.into());
            })
            .unwrap();
        assert_eq!(consumer.join().unwrap().as_deref(), Some("~a@99 #100"));
    });
}
