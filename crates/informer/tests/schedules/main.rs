//! Queues under a model checker: their own source, compiled here against shuttle's locks and a clock that a story
//! moves, run under thousands of schedules.

mod clock;
mod shared_queue;
#[path = "../it/support/objects.rs"]
mod support;
mod work_queue;

use informer::{Object, Tombstone};

// What the queues' sources ask of their crate, with shuttle's primitives and the story's clock in the place of the real ones.
mod sync {
    pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use std::sync::PoisonError;

    pub(crate) use crate::clock::{Instant, sleep_until};
}

mod model {
    pub(crate) use informer::model::ResourceVersion;
}

mod queue {
    pub(crate) use informer::queue::{Delta, InOrderFifo, Queue, Replacement};
}

mod metrics {
    pub(crate) use informer::metrics::Measurement;

    /// No story measures anything.
    pub(crate) trait Metrics: Send + Sync + 'static {
        fn record(&self, name: &str, measurement: Measurement<'_>);
        fn queue(&self, name: &str, probe: crate::workqueue::QueueProbe);
    }

    pub(crate) fn guarded(_: &str, tell: impl FnOnce()) {
        tell();
    }
}

#[allow(dead_code, unreachable_pub, reason = "the stories use a part of what the module makes public")]
#[path = "../../src/queue/shared.rs"]
mod shared;

#[allow(dead_code, unreachable_pub, reason = "the stories use a part of what the modules make public")]
#[path = "../../src/workqueue"]
mod workqueue {
    mod core;
    mod limiter;
    mod queue;
    mod stats;

    pub(crate) use self::{queue::WorkQueue, stats::QueueProbe};
}

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
