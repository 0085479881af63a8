//! How much may be kept of something, in bytes.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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
