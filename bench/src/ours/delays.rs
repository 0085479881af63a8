//! Very many items that come in hours: what each costs, and what is left when the queue is shut down.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use informer::workqueue::WorkQueue;
use serde::Serialize;

use super::{queue::keys, settle};
use crate::process::Usage;

#[derive(Args)]
pub(crate) struct Shape {
    /// How many items are delayed
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    items: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Figures {
    /// For each item.
    cpu_us: f64,
    /// For each item, its key included.
    bytes: f64,
    shut_down_ms: f64,
    /// More than before the first key, with the queue still there.
    left_mb: f64,
}

/// From one to ten hours, without pattern.
fn delay(n: usize) -> Duration {
    let scattered = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    Duration::from_secs(3600) + Duration::from_micros(scattered * 7)
}

pub(super) async fn run(&Shape { items }: &Shape) -> Result<Figures> {
    let this = Usage::of(std::process::id());
    let empty = this.resident()?;
    let (queue, keys) = (WorkQueue::new(), keys(items)?);
    let before = this.cpu()?;
    for (n, key) in keys.into_iter().enumerate() {
        queue.add_after(key, delay(n));
    }
    let cpu = this.cpu()? - before;
    ensure!(queue.stats().delayed == items, "the queue has {} items, not {items}", queue.stats().delayed);
    settle().await?;
    let full = this.resident()?;
    let began = Instant::now();
    queue.shut_down();
    let shut_down = began.elapsed();
    settle().await?;
    let left = this.resident()?;
    ensure!(queue.get().await.is_none(), "an item comes after the end");
    Ok(Figures {
        cpu_us: cpu.as_secs_f64() * 1e6 / items as f64,
        bytes: (full - empty) * 1024.0 * 1024.0 / items as f64,
        shut_down_ms: shut_down.as_secs_f64() * 1e3,
        left_mb: left - empty,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn items_that_come_in_hours_take_memory_until_the_end() {
        let figures = run(&Shape { items: 50_000 }).await.unwrap();
        assert!(figures.bytes > 0.0 && figures.shut_down_ms > 0.0, "{figures:?}");
        let delays = [0, 1, 1_000_000].map(delay);
        let hours = Duration::from_secs(3600)..=Duration::from_secs(36_000);
        assert!(delays.iter().all(|delay| hours.contains(delay)), "{delays:?}");
    }
}
