//! Work queues as workers and producers see them. Time is paused: it moves when everybody waits.

use std::{
    collections::{HashMap, HashSet},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use informer::{
    metrics::{Measurement, Metrics},
    workqueue::{
        Bucket, FastSlow, ItemExponential, MaxOf, QueueProbe, RateLimiter, WithMaxWait, WorkQueue,
        default_limiter,
    },
};
use informer_testing::Deadline;
use tokio::time::{Instant, advance, sleep, timeout};

const NOW: Duration = Duration::ZERO;
const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// Everything that can be taken now, in order. All of it is done at the end.
fn take_all<T: std::hash::Hash + Eq + Clone + Send + 'static>(queue: &WorkQueue<T>) -> Vec<T> {
    let work: Vec<_> = std::iter::from_fn(|| queue.try_get()).collect();
    work.iter().map(|work| T::clone(work)).collect()
}

#[tokio::test(start_paused = true)]
async fn c34_items_come_out_in_order_and_each_once() {
    let queue = WorkQueue::new();
    for item in ["c", "a", "b", "a", "c"] {
        queue.add(item);
    }
    assert_eq!(take_all(&queue), ["c", "a", "b"]);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn c34_an_item_is_never_with_two_workers_and_added_meanwhile_it_comes_once_more() {
    let queue = WorkQueue::new();
    queue.add("key");
    let first = queue.get().await.unwrap();
    queue.add("key");
    queue.add("key");
    assert!(queue.try_get().is_none(), "a worker has it");
    assert_eq!(queue.len(), 0);
    drop(first);
    let second = queue.get().await.unwrap();
    drop(second);
    assert!(queue.try_get().is_none(), "once more, and only once");
}

#[tokio::test]
async fn c34_fifty_producers_ten_workers_nothing_lost_nothing_at_once_nothing_after_shutdown() {
    let queue = WorkQueue::new();
    let at_work = Arc::new(Mutex::new(HashSet::new()));
    let worked = Arc::new(Mutex::new(HashMap::new()));
    let workers: Vec<_> = (0..10)
        .map(|_| {
            let (queue, at_work, worked) = (queue.clone(), Arc::clone(&at_work), Arc::clone(&worked));
            tokio::spawn(async move {
                while let Some(work) = queue.get().await {
                    assert!(at_work.lock().unwrap().insert(*work), "{} is with two workers", *work);
                    tokio::task::yield_now().await;
                    *worked.lock().unwrap().entry(*work).or_insert(0) += 1;
                    assert!(at_work.lock().unwrap().remove(&*work));
                }
            })
        })
        .collect();
    let producers: Vec<_> = (0..50)
        .map(|producer| {
            let queue = queue.clone();
            tokio::spawn(async move {
                for round in 0..50 {
                    queue.add((producer + round) % 100);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for producer in producers {
        producer.await.unwrap();
    }
    queue.drain().await;
    let before = worked.lock().unwrap().clone();
    assert_eq!(before.len(), 99, "each was worked on");
    queue.add(1000);
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(*worked.lock().unwrap(), before, "nothing after the shutdown");
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_woken_by_an_item_and_by_the_shutdown() {
    let queue = WorkQueue::new();
    let wait = |queue: &WorkQueue<&'static str>| {
        let queue = queue.clone();
        tokio::spawn(async move { queue.get().await.map(|work| *work) })
    };
    let (first, second, third) = (wait(&queue), wait(&queue), wait(&queue));
    tokio::task::yield_now().await;
    queue.add("one");
    queue.add("two");
    assert_eq!(first.await.unwrap(), Some("one"));
    assert_eq!(second.await.unwrap(), Some("two"));
    queue.shut_down();
    assert_eq!(third.await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_waiting_takes_nothing_with_it() {
    let queue = WorkQueue::new();
    {
        let mut waiting = pin!(queue.get());
        assert!(waiting.as_mut().now_or_never().is_none());
        queue.add("item");
        // Woken, and dropped before it looks.
    }
    let mut other = pin!(queue.get());
    assert_eq!(*timeout(S, other.as_mut()).await.unwrap().unwrap(), "item");
    // The same for the one who minds the delays.
    queue.add_after("later", 5 * S);
    let (mut minding, mut waiting) = (Box::pin(queue.get()), Box::pin(queue.get()));
    assert!(minding.as_mut().now_or_never().is_none() && waiting.as_mut().now_or_never().is_none());
    drop(minding);
    assert_eq!(*timeout(6 * S, waiting).await.unwrap().unwrap(), "later");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_worker_frees_its_item() {
    let queue = WorkQueue::new();
    queue.add("item");
    let worker = queue.clone();
    let panicked = tokio::spawn(async move {
        let _work = worker.get().await;
        worker.add("item");
        panic!("for this test");
    });
    assert!(panicked.await.is_err());
    assert_eq!(take_all(&queue), ["item"]);
}

#[tokio::test(start_paused = true)]
async fn c34_shutdown_hands_out_what_is_queued_and_waits_for_nobody() {
    let queue = WorkQueue::new();
    queue.add("at work");
    let work = queue.get().await.unwrap();
    queue.add("queued");
    queue.add_after("delayed", S);
    queue.shut_down();
    assert!(queue.is_shut_down());
    queue.add("late");
    queue.add_after("late", MS);
    queue.retry("late");
    advance(10 * S).await;
    assert_eq!(take_all(&queue), ["queued"]);
    assert!(queue.get().await.is_none(), "though one is still at work");
    assert_eq!(queue.stats().delayed, 0);
    drop(work);
}

#[tokio::test(start_paused = true)]
async fn c34_drain_waits_for_those_at_work_and_delivers_a_dirty_item_once_more() {
    let queue = WorkQueue::new();
    queue.add("item");
    let work = queue.get().await.unwrap();
    queue.add("item");
    let mut drain = pin!(queue.drain());
    assert!(drain.as_mut().now_or_never().is_none());
    drop(work);
    assert!(drain.as_mut().now_or_never().is_none(), "it is queued once more");
    let again = queue.get().await.unwrap();
    assert!(drain.as_mut().now_or_never().is_none(), "it is at work once more");
    drop(again);
    assert!(drain.now_or_never().is_some());
    assert!(queue.drain().now_or_never().is_some(), "nothing to wait for");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_frees_a_great_many_delayed_items_and_nobody_waits_for_it() {
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Item(usize, Arc<()>);
    let alive = Arc::new(());
    let queue = WorkQueue::new();
    for number in 0..200_000 {
        queue.add_after(Item(number, Arc::clone(&alive)), 3600 * S);
    }
    assert_eq!(queue.stats().delayed, 200_000);
    let waiting = queue.get();
    queue.shut_down();
    assert!(waiting.now_or_never().is_some_and(|work| work.is_none()));
    // A thread of its own drops them.
    let deadline = Deadline::start();
    while Arc::strong_count(&alive) > 1 {
        deadline.check("all items are dropped");
        std::thread::yield_now();
    }
}

#[tokio::test(start_paused = true)]
async fn c34_a_plain_shutdown_ends_a_drain() {
    let queue = WorkQueue::new();
    queue.add("item");
    let _work = queue.get().await.unwrap();
    let mut drain = pin!(queue.drain());
    assert!(drain.as_mut().now_or_never().is_none());
    queue.shut_down();
    assert!(drain.now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn c34_delayed_items_come_in_the_order_of_their_moments_and_the_earliest_counts() {
    let queue = WorkQueue::new();
    let began = Instant::now();
    queue.add_after("third", 30 * MS);
    queue.add_after("first", 10 * MS);
    queue.add_after("second", 500 * MS);
    queue.add_after("second", 20 * MS); // earlier: counts
    queue.add_after("first", 40 * MS); // later: does not
    queue.add_after("now", Duration::ZERO);
    assert_eq!(take_all(&queue), ["now"]);
    for (item, after) in [("first", 10), ("second", 20), ("third", 30)] {
        assert_eq!(*queue.get().await.unwrap(), item);
        assert_eq!(began.elapsed(), after * MS);
    }
    assert!(timeout(10 * S, queue.get()).await.is_err(), "each came once");
}

#[tokio::test(start_paused = true)]
async fn an_earlier_delay_wakes_who_sleeps_for_a_later_one() {
    let queue = WorkQueue::new();
    queue.add_after("late", 100 * S);
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { (*queue.get().await.unwrap(), *queue.get().await.unwrap()) }
    });
    sleep(S).await;
    queue.add_after("early", S);
    assert_eq!(waiting.await.unwrap(), ("early", "late"));
}

#[tokio::test(start_paused = true)]
async fn many_who_wait_share_what_is_due_at_once() {
    let queue = WorkQueue::new();
    let taken = Arc::new(AtomicUsize::new(0));
    for _ in 0..20 {
        let (queue, taken) = (queue.clone(), Arc::clone(&taken));
        tokio::spawn(async move {
            let work = queue.get().await;
            taken.fetch_add(1, Ordering::SeqCst);
            sleep(1000 * S).await;
            drop(work);
        });
    }
    tokio::task::yield_now().await;
    for item in 0..10 {
        queue.add_after(item, S);
    }
    for item in 10..20 {
        queue.add_after(item, 2 * S);
    }
    sleep(1500 * MS).await;
    assert_eq!(taken.load(Ordering::SeqCst), 10);
    sleep(S).await;
    assert_eq!(taken.load(Ordering::SeqCst), 20);
}

#[tokio::test(start_paused = true)]
async fn what_is_due_comes_before_what_is_added_after_it() {
    let queue = WorkQueue::new();
    queue.add_after("due", S);
    advance(2 * S).await;
    queue.add("added");
    assert_eq!(take_all(&queue), ["due", "added"]);
}

#[tokio::test(start_paused = true)]
async fn higher_priorities_come_first_and_an_item_keeps_the_highest() {
    let queue = WorkQueue::new();
    queue.add("plain");
    queue.add_with_priority("low", -1);
    queue.add_with_priority("high", 10);
    queue.add_with_priority("raised", -5);
    queue.add_with_priority("raised", 10);
    queue.add_with_priority("high", 1);
    queue.add_after_with_priority("delayed", S, 20);
    assert_eq!(take_all(&queue), ["high", "raised", "plain", "low"]);
    queue.add("plain");
    advance(2 * S).await;
    assert_eq!(take_all(&queue), ["delayed", "plain"], "a priority is also kept while it waits");
}

#[tokio::test(start_paused = true)]
async fn a_delay_longer_than_time_never_ends_and_breaks_nothing() {
    let queue = WorkQueue::new();
    queue.add_after("never", Duration::MAX);
    queue.add_after("soon", S);
    assert_eq!(*timeout(10 * S, queue.get()).await.unwrap().unwrap(), "soon");
    assert!(timeout(10_000 * S, queue.get()).await.is_err());
    queue.shut_down();
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_the_limiter_until_it_is_forgotten() {
    let queue = WorkQueue::builder().limiter(ItemExponential::new(S, 60 * S)).build();
    let mut waits = Vec::new();
    for _ in 0..4 {
        let began = Instant::now();
        queue.retry("item");
        drop(queue.get().await);
        waits.push(began.elapsed().as_secs());
    }
    assert_eq!(waits, [1, 2, 4, 8]);
    assert_eq!((queue.failures(&"item"), queue.failures(&"other")), (4, 0));
    queue.forget(&"item");
    assert_eq!(queue.failures(&"item"), 0);
    queue.retry("item");
    assert!(queue.get().now_or_never().is_none());
    advance(S).await;
    assert!(queue.try_get().is_some(), "from the beginning");
}

fn delays<T>(limiter: &impl RateLimiter<T>, item: T, count: usize) -> Vec<Duration> {
    (0..count).map(|_| limiter.next_delay(&item)).collect()
}

#[test]
fn c34_exponential_delays_double_up_to_the_longest_and_do_not_overflow() {
    let limiter = ItemExponential::default();
    assert_eq!(delays(&limiter, "a", 4), [5 * MS, 10 * MS, 20 * MS, 40 * MS]);
    assert_eq!(delays(&limiter, "b", 1), [5 * MS], "each item by itself");
    assert_eq!(delays(&limiter, "a", 200).last(), Some(&(1000 * S)));
    limiter.forget(&"a");
    assert_eq!(delays(&limiter, "a", 1), [5 * MS]);
    let endless = ItemExponential::new(Duration::MAX, Duration::MAX);
    assert_eq!(delays(&endless, "a", 3), [Duration::MAX; 3]);
    let instant = ItemExponential::new(Duration::ZERO, S);
    assert_eq!(delays(&instant, "a", 100), [Duration::ZERO; 100]);
    let backwards = ItemExponential::new(S, MS);
    assert_eq!(delays(&backwards, "a", 2), [MS; 2], "never longer than the longest");
}

#[tokio::test(start_paused = true)]
async fn c34_a_bucket_lets_a_burst_through_and_then_so_many_a_second() {
    let limiter = Bucket::new(10.0, 3);
    assert_eq!(delays(&limiter, (), 5), [NOW, NOW, NOW, 100 * MS, 200 * MS]);
    advance(300 * MS).await;
    assert_eq!(delays(&limiter, (), 2), [NOW, 100 * MS], "it refills");
    advance(3600 * S).await;
    assert_eq!(delays(&limiter, (), 4), [NOW, NOW, NOW, 100 * MS], "never more than a burst");
}

#[tokio::test(start_paused = true)]
async fn a_bucket_of_a_senseless_rate_holds_back_and_does_not_fail() {
    for rate in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY, f64::MIN_POSITIVE] {
        let limiter = Bucket::new(rate, 1);
        let held = delays(&limiter, (), 3);
        assert_eq!(held[0], Duration::ZERO, "{rate}");
        assert!(held[1] > 1_000_000 * S && held[2] > 1_000_000 * S, "{rate}: {held:?}");
    }
    assert_eq!(delays(&Bucket::new(f64::INFINITY, 0), (), 3), [Duration::ZERO; 3]);
    assert_eq!(delays(&Bucket::new(1.0, 0), (), 2), [S, 2 * S], "without a burst the first one waits too");
}

#[test]
fn c34_fast_slow_max_of_and_the_longest_wait() {
    let limiter = FastSlow::new(MS, S, 2);
    assert_eq!(delays(&limiter, "a", 4), [MS, MS, S, S]);
    assert_eq!(limiter.failures(&"a"), 4);
    limiter.forget(&"a");
    assert_eq!(delays(&limiter, "a", 1), [MS]);

    let both = MaxOf::new().and(FastSlow::new(MS, 3 * S, 1)).and(ItemExponential::new(S, 10 * S));
    assert_eq!(delays(&both, "a", 4), [S, 3 * S, 4 * S, 8 * S]);
    assert_eq!(both.failures(&"a"), 4);
    both.forget(&"a");
    assert_eq!(delays(&both, "a", 1), [S]);
    assert_eq!(delays(&MaxOf::new(), "a", 1), [Duration::ZERO]);

    let bounded = WithMaxWait::new(ItemExponential::new(S, 100 * S), 3 * S);
    assert_eq!(delays(&bounded, "a", 4), [S, 2 * S, 3 * S, 3 * S]);
    assert_eq!(bounded.failures(&"a"), 4);
}

#[tokio::test(start_paused = true)]
async fn c34_the_default_limiter_is_the_one_of_controllers() {
    let limiter = default_limiter();
    assert_eq!(delays(&limiter, 0, 2), [5 * MS, 10 * MS]);
    for item in 1..99 {
        assert_eq!(limiter.next_delay(&item), 5 * MS, "a hundred at once");
    }
    assert_eq!(limiter.next_delay(&200), 100 * MS, "then ten a second");
}

/// Writes down what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Metrics for Told {
    fn record(&self, name: &str, measurement: Measurement<'_>) {
        self.0.lock().unwrap().push(format!("{name}: {measurement:?}"));
    }

    fn queue(&self, name: &str, probe: QueueProbe) {
        assert_eq!(probe.stats().map(|stats| stats.adds), Some(0));
        self.0.lock().unwrap().push(format!("{name}: a queue"));
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_are_exact() {
    let told = Arc::new(Told::default());
    let queue =
        WorkQueue::builder().name("pods").metrics(told.clone()).limiter(FastSlow::new(S, S, 9)).build();
    queue.add("a");
    queue.add("a");
    advance(3 * S).await;
    let work = queue.get().await.unwrap();
    advance(2 * S).await;
    queue.add("a");
    queue.add("b");
    let other = queue.get().await.unwrap();
    advance(4 * S).await;
    let stats = queue.stats();
    assert_eq!((stats.depth, stats.processing, stats.adds), (0, 2, 3));
    assert_eq!((stats.unfinished, stats.longest_running), (10 * S, 6 * S));
    drop(work);
    queue.retry("b");
    assert_eq!((queue.stats().delayed, queue.stats().retries), (1, 1));
    drop(other);
    advance(S).await;
    assert_eq!((queue.len(), queue.stats().adds), (2, 4));
    let told = told.0.lock().unwrap().clone();
    assert_eq!(
        told,
        [
            "pods: a queue",
            "pods: WorkStarted { waited: 3s }",
            "pods: WorkStarted { waited: 0ns }",
            "pods: WorkDone { took: 6s }",
            "pods: WorkDone { took: 4s }",
        ]
    );
}

/// Panics at every measurement.
struct Clumsy;

impl Metrics for Clumsy {
    fn record(&self, _: &str, _: Measurement<'_>) {
        panic!("a measurement, as planned");
    }

    fn queue(&self, _: &str, _: QueueProbe) {
        panic!("a probe, as planned");
    }
}

#[tokio::test(start_paused = true)]
async fn c34_measurements_that_panic_lose_no_item() {
    let queue = WorkQueue::builder().metrics(Arc::new(Clumsy)).build();
    queue.add("a");
    let work = queue.get().await.unwrap();
    queue.retry(*work);
    drop(work);
    assert_eq!(*queue.get().await.unwrap(), "a");
    queue.drain().await;
}
