//! Whether a watch told everything: the number of objects that there must be, against the server's.

use informer_model::ResourceVersion;

use super::problem::Problem;
use crate::source::WatchChange;

/// Counts objects by what the watch tells, and compares with what a list says at the same version.
///
/// The list's version is usually ahead of the watch's. The number is kept until the watch passes that
/// version, and compared then. One difference may be the server's estimate; the second in a row is acted on. If
/// the next list does not get rid of it, the server's number is not believed any more.
#[derive(Debug, Default)]
pub(super) struct Audit {
    objects: u64,
    pending: Option<(ResourceVersion, u64)>,
    differences: u32,
    /// A difference was acted on, and no equal number was seen since.
    acted: bool,
    distrusted: bool,
    /// The server does not say how many there are, as with a selector.
    uncounted: bool,
}

impl Audit {
    /// Whether there is anything to be learned from counting.
    pub(super) fn counts(&self) -> bool {
        !self.distrusted && !self.uncounted
    }

    /// Whether the next number decides.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.differences > 0
    }

    /// Whether the server said how many objects there are.
    pub(super) fn counting(&mut self, counts: bool) {
        self.uncounted = !counts;
    }

    /// A list has been taken.
    pub(super) fn listed(&mut self, objects: u64) {
        self.objects = objects;
        self.pending = None;
        self.differences = 0;
    }

    /// The watch told of an object.
    pub(super) fn applied(&mut self, change: WatchChange) {
        self.objects = match change {
            WatchChange::Added => self.objects.saturating_add(1),
            WatchChange::Modified => self.objects,
            WatchChange::Deleted => self.objects.saturating_sub(1),
        };
    }

    /// The watch told late of an object that the cache had: it was counted before, whatever is said of it now.
    pub(super) fn applied_late(&mut self, change: WatchChange) {
        if change == WatchChange::Deleted {
            self.applied(change);
        }
    }

    /// A list said how many objects there are at a version, when the watch had reached `last`.
    pub(super) fn counted(
        &mut self,
        version: ResourceVersion,
        objects: u64,
        last: &ResourceVersion,
    ) -> Option<Problem> {
        if version == *last {
            self.pending = None;
            return self.compare(objects);
        }
        self.pending = (version > *last).then_some((version, objects));
        None
    }

    /// The watch goes on to a version; `told_all` if everything up to it has been told already.
    pub(super) fn passing(&mut self, version: &ResourceVersion, told_all: bool) -> Option<Problem> {
        let (counted, _) = self.pending.as_ref()?;
        if *version > *counted || (told_all && version == counted) {
            let (_, objects) = self.pending.take()?;
            return self.compare(objects);
        }
        None
    }

    fn compare(&mut self, server: u64) -> Option<Problem> {
        if server == self.objects {
            (self.differences, self.acted) = (0, false);
            return None;
        }
        self.differences += 1;
        if self.differences < 2 || self.distrusted {
            return None;
        }
        self.distrusted = std::mem::replace(&mut self.acted, true);
        (!self.distrusted).then_some(Problem::EventsLost { seen: self.objects, server })
    }
}
