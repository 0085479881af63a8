//! How much is kept of something, and may be, in bytes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;

/// Room for so many bytes, shared by all who keep something.
pub(super) struct Room {
    limit: usize,
    used: AtomicUsize,
}

impl Room {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0) }
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// A copy to be kept, if there is room for it: what was written may have grown to twice its length.
    pub(super) fn keep(&self, bytes: &Bytes) -> Option<Bytes> {
        let taken = |used: usize| used.checked_add(bytes.len()).filter(|used| *used <= self.limit);
        self.used.fetch_update(Relaxed, Relaxed, taken).ok()?;
        Some(Bytes::copy_from_slice(bytes))
    }

    /// Gives back what was taken.
    pub(super) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
    }

    /// Whether there is little left.
    pub(super) fn is_short(&self) -> bool {
        self.used() > self.limit / 4 * 3
    }
}

/// How many bytes of objects of one resource have been replaced or deleted so far. What was so since a list was begun is all
/// that the list can keep in memory beyond what is there anyway.
#[derive(Debug, Default)]
pub(crate) struct Replaced(AtomicU64);

impl Replaced {
    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
