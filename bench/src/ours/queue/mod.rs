//! What it costs to bring items through a work queue: ours, and one that is written in ten minutes.
//!
//! Keys are made before the clock runs. The CPU time is that of the whole process, so the work of every thread counts.

mod naive;

use std::{
    hash::Hash,
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use informer::{model::ObjectKey, workqueue::WorkQueue};
use serde::Serialize;
use tokio::task::JoinSet;

use self::naive::Naive;
use crate::process::Usage;

/// A producer adds so many, as an informer's handler does with a batch of events, and then lets others run.
const BURST: usize = 100;

#[derive(Args)]
pub(crate) struct Shape {
    /// What is done with the queue
    #[arg(long, value_enum)]
    case: Case,
    /// How often an item is added
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    adds: usize,
    /// How many keys there are
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    keys: usize,
    /// How many add, where that is several at once
    #[arg(long, value_name = "N", default_value_t = 50)]
    producers: usize,
    /// How many take items, then
    #[arg(long, value_name = "N", default_value_t = 10)]
    workers: usize,
    /// Keys are strings, which are copied, instead of keys of objects, which are shared
    #[arg(long)]
    strings: bool,
    /// The naive queue instead of ours
    #[arg(long)]
    naive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Case {
    /// An item is added, taken and done, then the next; the queue is otherwise empty
    Single,
    /// All keys are added, then all are taken and done
    Crowd,
    /// Many add each key twice in a row while many take
    Busy,
    /// An item is retried with the default limiter, and forgotten
    Retry,
}

/// All for each add.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    cpu_us: f64,
    wall_us: f64,
    /// How often a worker got something.
    handled: f64,
}

/// What both queues can.
trait Queue<T>: Clone + Send + Sync + 'static {
    fn add(&self, item: T);

    /// Takes the next item and is done with it. `false` if the queue is shut down.
    fn handle(&self) -> impl Future<Output = bool> + Send;

    fn shut_down(&self);
}

impl<T: Hash + Eq + Clone + Send + 'static> Queue<T> for WorkQueue<T> {
    fn add(&self, item: T) {
        self.add(item);
    }

    async fn handle(&self) -> bool {
        black_box(self.get().await).is_some()
    }

    fn shut_down(&self) {
        self.shut_down();
    }
}

impl<T: Hash + Eq + Clone + Send + 'static> Queue<T> for Naive<T> {
    fn add(&self, item: T) {
        self.add(item);
    }

    async fn handle(&self) -> bool {
        let item = black_box(self.get().await);
        item.map(|item| self.done(item)).is_some()
    }

    fn shut_down(&self) {
        self.shut_down();
    }
}

/// The keys of so many pods.
pub(super) fn keys(count: usize) -> Result<Vec<ObjectKey>> {
    let key = |n| ObjectKey::new(Some(&format!("namespace-{}", n % 20)), &format!("pod-{n:07}"));
    Ok((0..count).map(key).collect::<Result<_, _>>()?)
}

pub(super) async fn run(shape: &Shape) -> Result<Figures> {
    ensure!(
        shape.keys.min(shape.adds).min(shape.producers).min(shape.workers) > 0,
        "there must be keys, adds, producers and workers"
    );
    let keys = keys(shape.keys)?;
    if shape.strings {
        shape.bring(keys.iter().map(ToString::to_string).collect()).await
    } else {
        shape.bring(keys).await
    }
}

impl Shape {
    async fn bring<T: Hash + Eq + Clone + Send + Sync + 'static>(&self, keys: Vec<T>) -> Result<Figures> {
        match (self.case, self.naive) {
            (Case::Retry, true) => bail!("the naive queue cannot delay anything"),
            (Case::Retry, false) => self.retry(&keys),
            (_, true) => self.through(Naive::new(), keys).await,
            (_, false) => self.through(WorkQueue::new(), keys).await,
        }
    }

    async fn through<T, Q>(&self, queue: Q, keys: Vec<T>) -> Result<Figures>
    where
        T: Clone + Send + Sync + 'static,
        Q: Queue<T>,
    {
        let keys: Arc<[T]> = keys.into();
        let clock = Clock::start()?;
        let handled = match self.case {
            Case::Busy => self.busy(queue, keys).await?,
            Case::Crowd => self.in_crowds(queue, &keys, keys.len()).await,
            Case::Single | Case::Retry => self.in_crowds(queue, &keys, 1).await,
        };
        clock.stop(self.adds, handled)
    }

    /// One task adds so many, then handles them all, and so on. Returns how many it handled.
    async fn in_crowds<T: Clone>(&self, queue: impl Queue<T>, keys: &[T], crowd: usize) -> u64 {
        let (mut added, mut handled) = (0, 0);
        while added < self.adds {
            let until = (added + crowd).min(self.adds);
            for n in added..until {
                queue.add(keys[n % keys.len()].clone());
            }
            for _ in added..until {
                handled += u64::from(queue.handle().await);
            }
            added = until;
        }
        handled
    }

    /// Producers add each key twice in a row and workers take, until everything has been added and taken. Returns how many
    /// were handled.
    async fn busy<T, Q>(&self, queue: Q, keys: Arc<[T]>) -> Result<u64>
    where
        T: Clone + Send + Sync + 'static,
        Q: Queue<T>,
    {
        let handled = Arc::new(AtomicU64::new(0));
        let (mut workers, mut producers) = (JoinSet::new(), JoinSet::new());
        for _ in 0..self.workers {
            let (queue, handled) = (queue.clone(), Arc::clone(&handled));
            workers.spawn(async move {
                let mut count = 0;
                while queue.handle().await {
                    count += 1;
                }
                handled.fetch_add(count, Ordering::Relaxed);
            });
        }
        for producer in 0..self.producers {
            let (queue, keys) = (queue.clone(), Arc::clone(&keys));
            let share = producer * self.adds / self.producers..(producer + 1) * self.adds / self.producers;
            producers.spawn(async move {
                for n in share {
                    queue.add(keys[n / 2 % keys.len()].clone());
                    if n % BURST == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            });
        }
        while let Some(ended) = producers.join_next().await {
            ended?;
        }
        queue.shut_down();
        while let Some(ended) = workers.join_next().await {
            ended?;
        }
        Ok(handled.load(Ordering::Relaxed))
    }

    fn retry<T: Hash + Eq + Clone + Send + 'static>(&self, keys: &[T]) -> Result<Figures> {
        let queue = WorkQueue::new();
        let clock = Clock::start()?;
        for n in 0..self.adds {
            let key = &keys[n % keys.len()];
            queue.retry(key.clone());
            queue.forget(key);
        }
        clock.stop(self.adds, 0)
    }
}

/// CPU and wall-clock time from a moment on.
struct Clock {
    this: Usage,
    cpu: Duration,
    began: Instant,
}

impl Clock {
    fn start() -> Result<Self> {
        let this = Usage::of(std::process::id());
        Ok(Self { this, cpu: this.cpu()?, began: Instant::now() })
    }

    fn stop(self, adds: usize, handled: u64) -> Result<Figures> {
        let (cpu, wall) = (self.this.cpu()? - self.cpu, self.began.elapsed());
        let each = |seconds: f64| seconds * 1e6 / adds as f64;
        Ok(Figures {
            cpu_us: each(cpu.as_secs_f64()),
            wall_us: each(wall.as_secs_f64()),
            handled: handled as f64 / adds as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn every_item_comes_through_unless_it_is_merged() {
        for (case, handled) in
            [(Case::Single, 1.0..=1.0), (Case::Crowd, 1.0..=1.0), (Case::Busy, 0.001..=1.0)]
        {
            for (naive, strings) in [(false, false), (false, true), (true, false)] {
                let (adds, keys, producers, workers) = (2_000, 100, 5, 3);
                let shape = Shape { case, adds, keys, producers, workers, strings, naive };
                let figures = run(&shape).await.unwrap();
                assert!(handled.contains(&figures.handled), "{case:?}: {figures:?}");
            }
        }
    }

    #[tokio::test]
    async fn retried_items_wait_and_the_naive_queue_has_none() {
        let (adds, keys, producers, workers) = (2_000, 100, 1, 1);
        let shape =
            |naive| Shape { case: Case::Retry, adds, keys, producers, workers, strings: false, naive };
        assert!(run(&shape(false)).await.unwrap().wall_us > 0.0);
        assert!(run(&shape(true)).await.is_err());
        assert!(run(&Shape { keys: 0, ..shape(false) }).await.is_err());
    }
}
