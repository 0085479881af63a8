//! Queues of work: items go in, often more than once; workers take each out once at a time.
//!
//! A [`WorkQueue`] holds anything that can be hashed, mostly keys of objects. Handlers [`add`](WorkQueue::add) keys,
//! workers [`get`](WorkQueue::get) them. What is added while it waits stays one item; what is added while a worker has it
//! is queued once more when that worker is done, so no two workers ever have the same item. Items can come
//! [later](WorkQueue::add_after), or after a delay that a [limiter](RateLimiter) gives to what fails
//! [again and again](WorkQueue::retry).
//!
//! All time is monotonic. No task runs: a caller that waits in `get` also waits for the next delay to end.

mod core;
mod limiter;
mod queue;
mod stats;
#[cfg(test)]
mod tests;

pub use self::{
    limiter::{Bucket, FastSlow, ItemExponential, MaxOf, RateLimiter, WithMaxWait, default_limiter},
    queue::{Work, WorkQueue, WorkQueueBuilder},
    stats::{QueueProbe, QueueStats},
};
